"""Bodies of requests: bytes as objects of the kind that the path means."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import yaml

from mcad.kube.port import Request
from mcad.sim import failures
from mcad.sim.failures import Failure
from mcad.sim.kinds import Kind, KindTable
from mcad.sim.objects import causes

Json = dict[str, Any]

_SPOKEN = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_SUMMARY = 30  # characters of a body that an error quotes
_SCHEME = "pkg/runtime/scheme.go:111"
_GO_TYPE = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\"";'
    r' Kind string "json:\"kind,omitempty\"" }'
)


def read(request: Request, kind: Kind, kinds: KindTable) -> Json:
    """The object in the body, of the kind that the path means; raises Failure 400 or 415."""
    body = _decoded(request, kind)
    if body is None:
        body = {}  # so Go reads null
    if not isinstance(body, dict):
        text = f"json: cannot unmarshal {json_type(body)} into Go value of type {_GO_TYPE}"
        raise _unrecognized(kind, f"couldn't get version/kind; json parse error: {text}", request)
    _check_type(body, request, kind, kinds)
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


def _decoded(request: Request, kind: Kind) -> Any:
    body, media = request.body, request.content_type.partition(";")[0].strip()
    if body is None or media not in {"", *_SPOKEN[:2]}:
        raise failures.unsupported_media_type(_SPOKEN)
    if not isinstance(body, bytes):
        return body
    try:
        return yaml.safe_load(body) if media == "application/yaml" else json.loads(body)
    except (ValueError, yaml.YAMLError) as error:
        text = f"couldn't get version/kind; json parse error: {error}"
        raise _unrecognized(kind, text, request) from error


def _check_type(body: Json, request: Request, kind: Kind, kinds: KindTable) -> None:
    """Built-in kinds may leave their type out, and custom ones must not."""
    version, name = body.get("apiVersion") or "", body.get("kind") or ""
    if (version, name) == (kind.api_version, kind.kind):
        return
    if version.count("/") > 1:
        raise _unrecognized(kind, f"unexpected GroupVersion string: {version}", request)
    if kind.is_custom:
        _check_custom(kind, version, name, request)
        return
    version, name = version or kind.api_version, name or kind.kind
    if (version, name) == (kind.api_version, kind.kind):
        return
    if kinds.by_kind(version, name) is None:
        why = f'no kind "{name}" is registered for version "{version}" in scheme "{_SCHEME}"'
    else:
        here, there = version.rpartition("/")[2], kind.group.partition(".")[0] or "core"
        why = f"converting ({here}.{name}) to ({there}.{kind.kind}): unknown conversion"
    short = version.rpartition("/")[2]
    raise failures.bad_request(
        f'{name} in version "{short}" cannot be handled as a {kind.kind}: {why}'
    )


def _check_custom(kind: Kind, version: str, name: str, request: Request) -> None:
    if not name:
        text = f"Object 'Kind' is missing in '{_text(request)}'"
        raise _unrecognized(kind, text, request)
    if version != kind.api_version:
        raise failures.bad_request(
            f"the API version in the data ({version}) does not match the expected API version"
            f" ({kind.api_version})"
        )
    if name != kind.kind:
        cause = causes.invalid("kind", name, f"must be {kind.kind}")
        raise failures.invalid(replace(kind, kind=name), _name(request.body), [cause])


def _name(body: Any) -> str:
    decoded = json.loads(body) if isinstance(body, bytes) else body
    metadata = decoded.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""


def _unrecognized(kind: Kind, why: str, request: Request) -> Failure:
    text = _text(request)
    if not text:
        summary = "<empty>"
    elif text.startswith("{"):
        summary = text if len(text) <= _SUMMARY else f"{text[:_SUMMARY]} ..."
    else:
        summary = text.encode()[:_SUMMARY].hex()
    return failures.bad_request(
        f"the object provided is unrecognized (must be of type {kind.kind}): {why} ({summary})"
    )


def _text(request: Request) -> str:
    body = request.body
    if isinstance(body, bytes):
        return body.decode(errors="replace")
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def json_type(value: Any) -> str:
    """What Go's decoder calls the type of a JSON value."""
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case None:
            return "null"
        case _:
            return "number"
