"""PATCH: a body and its media type as a change of an object."""

from __future__ import annotations

from collections.abc import Callable

from mcad.kube.port import MERGE_PATCH, Request
from mcad.kube.types import Json
from mcad.sim import failures
from mcad.sim.failures import Failure
from mcad.sim.kinds import Kind
from mcad.sim.patching import PatchError, merge, merge_keys, strategic
from mcad.sim.serving.bodies import read_any

Change = Callable[[Json], Json]

JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


def change_of(kind: Kind, request: Request) -> Change:
    """The change that a patch means; raises Failure 400 or 415, and so does the change itself."""
    media = request.content_type.partition(";")[0].strip()
    if media != MERGE_PATCH and (kind.is_custom or media != STRATEGIC):
        raise _unspoken(kind, media)  # before the body is read
    body = read_any(request)
    if not isinstance(body, dict):
        raise failures.bad_request("error decoding patch: it is no object")
    if media == MERGE_PATCH:
        return lambda obj: _typed(kind, merge(obj, body))
    keys = merge_keys(kind.api_version, kind.kind)

    def change(obj: Json) -> Json:
        try:
            return _typed(kind, strategic(obj, body, keys))
        except PatchError as error:
            raise failures.bad_request(str(error)) from error

    return change


def _unspoken(kind: Kind, media: str) -> Failure:
    spoken = (MERGE_PATCH, APPLY) if kind.is_custom else (MERGE_PATCH, STRATEGIC, APPLY)
    if media == JSON_PATCH:
        message = "the embedded cluster reads no JSON patches; a real cluster does: send a merge"
        return Failure(415, "UnsupportedMediaType", f"{message} patch")
    return failures.unsupported_media_type(spoken)


def _typed(kind: Kind, obj: Json) -> Json:
    """What a patch has made, if that is still an object of its kind."""
    found = obj.get("apiVersion"), obj.get("kind")
    if found != (kind.api_version, kind.kind):
        raise failures.invalid_patch(obj, f"it is not a {kind.kind} of {kind.api_version} any more")
    return obj
