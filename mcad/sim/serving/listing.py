"""LIST: versions, pages and continue tokens.

The pages of one list are all of the version of its first page, as etcd serves them; when the
history has moved on, the token is answered with 410.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from mcad.kube.types import Json
from mcad.sim import failures
from mcad.sim.failures import Failure
from mcad.sim.kinds import Kind
from mcad.sim.serving import options
from mcad.sim.serving.selection import Selection
from mcad.sim.store import Key, Store, TooOld

_FORM = "meta.k8s.io/v1"
_FORGOTTEN = (
    "The provided continue parameter is too old to display a consistent list result. You can start"
    " a new list without the continue parameter, or use the continue token in this response to"
    " retrieve the remainder of the results. Continuing with the provided token results in an"
    " inconsistent list - objects that were created, modified, or deleted between the time the"
    " first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a page begins: at which version, behind which object."""

    version: int
    after: Key | None


def page(
    store: Store, kind: Kind, selection: Selection, params: Mapping[str, str]
) -> tuple[list[Json], Json]:
    """Stored objects of one page, and the list's metadata; raises Failure 400, 410 or 504."""
    place, limit = _place(store, params, selection.namespace), _limit(params)
    try:
        found = _matching(store, kind, selection, place)
        objects = list(islice(found, limit or None))
        following = next(found, None) if limit else None
        left = 1 + sum(1 for _ in found) if following is not None and selection.is_whole else 0
    except TooOld as error:
        raise failures.expired("The resourceVersion for the provided list is too old.") from error
    metadata: Json = {"resourceVersion": str(place.version)}
    if following is not None:
        last = objects[-1]["metadata"]
        after = (last.get("namespace") or "", last["name"])
        metadata["continue"] = _token(place.version, after, selection.namespace)
        if selection.is_whole:
            metadata["remainingItemCount"] = left
    return objects, metadata


def _limit(params: Mapping[str, str]) -> int:
    """Objects per page, 0 for all: what is asked at version 0 comes out of a cache, whole."""
    limit = max(options.integer(params, "limit"), 0)
    return 0 if params.get("resourceVersion") == "0" and not params.get("continue") else limit


def _matching(store: Store, kind: Kind, selection: Selection, place: _Place) -> Iterator[Json]:
    namespace = selection.namespace
    for _, obj in store.snapshot(kind.storage, place.version, namespace, place.after):
        if selection.covers(obj):
            yield obj


def _place(store: Store, params: Mapping[str, str], namespace: str | None) -> _Place:
    version = options.version(params)
    if token := params.get("continue"):
        if version:
            raise failures.bad_request(
                "specifying resource version is not allowed when using continue"
            )
        return _resume(store, token, namespace)
    check_not_ahead(store, version)
    match = params.get("resourceVersionMatch")
    # A page of a version that is named is of that version, if nothing else is said.
    is_exact = match == "Exact" or (not match and version and _limit(params))
    return _Place(version if is_exact else store.version, None)


def check_readable(store: Store, params: Mapping[str, str]) -> None:
    """The version that a GET of one object asks for; raises Failure 500 or 504."""
    text = params.get("resourceVersion") or "0"
    if not text.isdecimal():
        raise Failure(500, "", options.bad_version(text))
    check_not_ahead(store, int(text))


def check_not_ahead(store: Store, version: int) -> None:
    """Refuse a version that does not exist yet; raises Failure 504."""
    if version > store.version:
        message = f"Too large resource version: {version}, current: {store.version}"
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        details = {"causes": [cause], "retryAfterSeconds": 1}
        raise Failure(504, "Timeout", f"Timeout: {message}", details, retry_after_s=1)


def _resume(store: Store, token: str, namespace: str | None) -> _Place:
    """The place that a token names (``storage.DecodeContinue``); raises Failure 400."""
    try:
        decoded = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        version, start = int(decoded["rv"]), str(decoded["start"])
    except (ValueError, LookupError, TypeError) as error:
        text = f"invalid continue token: continue key is not valid: {error}"
        raise failures.bad_request(text) from error
    first, _, second = start.rstrip("\0").rpartition("/")
    return _Place(version if version > 0 else store.version, (namespace or first, second))


def expired_token(kind: Kind, store: Store, token: str, namespace: str | None) -> Json | None:
    """The Status for a token whose version is forgotten, with another to go on from; or None."""
    place = _resume(store, token, namespace)
    try:
        next(store.snapshot(kind.storage, place.version, None, place.after), None)
    except TooOld:
        status = failures.expired(_FORGOTTEN).status()
        status["metadata"] = {"continue": _token(-1, place.after or ("", ""), namespace)}
        return status
    return None


def _token(version: int, after: Key, namespace: str | None) -> str:
    """As kube-apiserver encodes it: the next key, relative to what is listed; -1: any version."""
    start = f"{after[1] if namespace or not after[0] else '/'.join(after)}\0"
    text = json.dumps({"v": _FORM, "rv": version, "start": start}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
