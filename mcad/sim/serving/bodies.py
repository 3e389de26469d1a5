"""Bodies of requests: bytes as objects of the kind that the path means."""

from __future__ import annotations

import json
from typing import Any

import yaml

from mcad.kube.port import Request
from mcad.kube.types import Json
from mcad.sim import failures
from mcad.sim.kinds import Kind

_SPOKEN = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")


def read(request: Request, kind: Kind) -> Json:
    """The object in the body, of the kind that the path means; raises Failure 400 or 415."""
    body, media = request.body, request.content_type.partition(";")[0].strip()
    if body is None or media not in {"", *_SPOKEN[:2]}:
        raise failures.unsupported_media_type(_SPOKEN)
    if isinstance(body, bytes):
        try:
            body = yaml.safe_load(body) if media == "application/yaml" else json.loads(body)
        except (ValueError, yaml.YAMLError) as error:
            text = f"couldn't get version/kind; json parse error: {error}"
            raise _unrecognized(kind, text) from error
    if not isinstance(body, dict):
        raise _unrecognized(kind, "it is no object")
    _check_type(body, kind)
    return body


def read_applied(request: Request, kind: Kind) -> Json:
    """The configuration that is applied, as JSON or YAML; raises Failure 400."""
    body = request.body
    try:
        config = yaml.safe_load(body) if isinstance(body, bytes) else body
    except yaml.YAMLError as error:
        raise failures.bad_request(f"error decoding YAML: {error}") from error
    if not isinstance(config, dict):
        raise failures.bad_request(f"what is applied is no {kind.kind}")
    _check_type(config, kind)
    return config


def read_any(request: Request) -> Any:
    """Whatever JSON is in the body, of a patch for example; raises Failure 400 or 415."""
    body = request.body
    if body is None:
        raise failures.unsupported_patch()
    if not isinstance(body, bytes):
        return body
    try:
        return json.loads(body)
    except ValueError as error:
        raise failures.bad_request(f"error decoding patch: {error}") from error


def _check_type(body: Json, kind: Kind) -> None:
    """Built-in kinds may leave their type out, and custom ones must not."""
    version, name = body.get("apiVersion") or "", body.get("kind") or ""
    if not kind.is_custom:
        version, name = version or kind.api_version, name or kind.kind
    elif not name:
        raise _unrecognized(kind, "Object 'Kind' is missing")
    if version != kind.api_version:
        raise failures.bad_request(
            f"the API version in the data ({version}) does not match the expected API version"
            f" ({kind.api_version})"
        )
    if name != kind.kind:
        raise failures.bad_request(f"the kind in the data ({name}) is not {kind.kind}")


def _unrecognized(kind: Kind, why: str) -> failures.Failure:
    return failures.bad_request(
        f"the object provided is unrecognized (must be of type {kind.kind}): {why}"
    )
