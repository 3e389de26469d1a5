"""PATCH: a body and its media type as a change of an object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mcad.kube.port import Request
from mcad.sim import failures
from mcad.sim.failures import Failure
from mcad.sim.kinds import Kind
from mcad.sim.objects import causes
from mcad.sim.patching import PatchError, json_patch, merge, merge_keys, strategic
from mcad.sim.serving.bodies import json_type, read_any

Json = dict[str, Any]
Change = Callable[[Json], Json]

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


_MAP = "map[string]interface {}"
_OPERATIONS = "[]handlers.jsonPatchOp"


def change_of(kind: Kind, request: Request) -> Change:
    """The change that a patch means; raises Failure 400 or 415, and so does the change itself."""
    media = request.content_type.partition(";")[0].strip()
    if media not in {JSON_PATCH, MERGE} and (kind.is_custom or media != STRATEGIC):
        raise _unspoken(kind)  # before anybody looks at the body
    return _read(kind, media, read_any(request))


def _unspoken(kind: Kind) -> Failure:
    if kind.is_custom:
        return failures.unsupported_media_type((JSON_PATCH, MERGE, APPLY))
    return failures.unsupported_patch()


def _read(kind: Kind, media: str, body: Any) -> Change:
    match media:
        case "application/json-patch+json":
            if not isinstance(body, list):
                raise _undecodable(body, _OPERATIONS)
            return lambda obj: _typed(kind, _guarded(lambda: json_patch(obj, body), {}))
        case "application/merge-patch+json":
            if not isinstance(body, dict):
                raise _undecodable(body, _MAP)
            return lambda obj: _typed(kind, merge(obj, body))
        case _:
            if not isinstance(body, dict):
                raise failures.bad_request(f"json: {_mismatch(body, _MAP)}")
            keys = merge_keys(kind.api_version, kind.kind)
            return lambda obj: _typed(kind, _guarded(lambda: strategic(obj, body, keys), None))


def _undecodable(body: Any, wanted: str) -> Failure:
    return failures.bad_request(f"error decoding patch: json: {_mismatch(body, wanted)}")


def _mismatch(body: Any, wanted: str) -> str:
    return f"cannot unmarshal {json_type(body)} into Go value of type {wanted}"


def _typed(kind: Kind, obj: Any) -> Json:
    """What a patch has made, if that is still an object of its kind."""
    if not isinstance(obj, dict):
        raise failures.invalid_patch(obj, "the result is no object")
    if not obj.get("metadata"):
        return obj  # without a name, which is refused first
    found = obj.get("apiVersion"), obj.get("kind")
    if found == (kind.api_version, kind.kind):
        return obj
    if not kind.is_custom:
        why = f'no kind "{found[1]}" is registered for version "{found[0]}"'
        raise failures.invalid_patch(obj, why)
    wanted = zip(("apiVersion", "kind"), found, (kind.api_version, kind.kind), strict=True)
    faults = [
        causes.invalid(name, value, f"must be {right}")
        for name, value, right in wanted
        if value != right
    ]
    title = found[1] if isinstance(found[1], str) else kind.kind
    raise failures.invalid(replace(kind, kind=title), obj["metadata"].get("name") or "", faults)


def _guarded(apply: Callable[[], Any], details: Json | None) -> Any:
    try:
        return apply()
    except PatchError as error:
        raise Failure(error.code, error.reason, error.message, details) from error
