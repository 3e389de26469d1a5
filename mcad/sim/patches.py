"""PATCH: a body and its media type as a change of an object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcad.sim import failures
from mcad.sim.failures import Failure
from mcad.sim.kinds import Kind
from mcad.sim.patching import PatchError, json_patch, merge, merge_keys, strategic

Json = dict[str, Any]
Change = Callable[[Json], Json]

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


def read_patch(kind: Kind, content_type: str, body: Any) -> Change:
    """The change that a patch means; raises Failure 400 or 415, and so does the change itself."""
    match content_type.partition(";")[0].strip():
        case "application/json-patch+json":
            if not isinstance(body, list):
                raise failures.bad_request("a JSON patch is a list of operations")
            return lambda obj: _object(_guarded(lambda: json_patch(obj, body)))
        case "application/merge-patch+json":
            patch = _object(body)
            return lambda obj: _object(merge(obj, patch))
        case "application/strategic-merge-patch+json" if not kind.is_custom:
            patch, keys = _object(body), merge_keys(kind.api_version, kind.kind)
            return lambda obj: _guarded(lambda: strategic(obj, patch, keys))
        case _:
            taken = (JSON_PATCH, MERGE, *(() if kind.is_custom else (STRATEGIC,)), APPLY)
            raise failures.unsupported_media_type(taken)


def _object(value: Any) -> Json:
    if not isinstance(value, dict):
        raise failures.bad_request("the patch, or what it makes of the object, is not an object")
    return value


def _guarded(apply: Callable[[], Any]) -> Any:
    try:
        return apply()
    except PatchError as error:
        raise Failure(error.code, error.reason, error.message, {}) from error
