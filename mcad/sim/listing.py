"""LIST: versions, pages and tokens.

The pages of one list are all of the version of its first page, as etcd serves them; when the
history has moved on, the token is answered with 410.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from mcad.sim import failures
from mcad.sim.failures import Failure
from mcad.sim.kinds import Kind
from mcad.sim.selection import Selection
from mcad.sim.store import Key, Store, TooOld

Json = dict[str, Any]

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
    place = _place(store, params)
    limit = _number("limit", params.get("limit"))
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
        metadata["continue"] = _token(place.version, (last.get("namespace") or "", last["name"]))
        if selection.is_whole:
            metadata["remainingItemCount"] = left
    return objects, metadata


def _matching(store: Store, kind: Kind, selection: Selection, place: _Place) -> Iterator[Json]:
    namespace = selection.namespace
    for _, obj in store.snapshot(kind.storage, place.version, namespace, place.after):
        if selection.covers(obj):
            yield obj


def _place(store: Store, params: Mapping[str, str]) -> _Place:
    if token := params.get("continue"):
        return _resume(store, token)
    match, text = params.get("resourceVersionMatch", ""), params.get("resourceVersion", "")
    if match and not text:
        raise failures.bad_request(
            "resourceVersionMatch is forbidden unless resourceVersion is provided"
        )
    version = _number("resourceVersion", text)
    check_not_ahead(store, version)
    return _Place(version if match == "Exact" else store.version, None)


def check_not_ahead(store: Store, version: int) -> None:
    """A version that is not there yet is waited for in vain; raises Failure 504."""
    if version > store.version:
        message = f"Too large resource version: {version}, current: {store.version}"
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        details = {"causes": [cause], "retryAfterSeconds": 1}
        raise Failure(504, "Timeout", f"Timeout: {message}", details, retry_after_s=1)


def _resume(store: Store, token: str) -> _Place:
    try:
        decoded = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        place = _Place(int(decoded["rv"]), (decoded["ns"], decoded["name"]))
    except (ValueError, KeyError, TypeError) as error:
        raise failures.bad_request("continue key is not valid: it is not one of ours") from error
    return place if place.version else _Place(store.version, place.after)


def expired_token(kind: Kind, store: Store, token: str) -> Json | None:
    """The Status for a token whose version is forgotten, with another to go on from; or None."""
    place = _resume(store, token)
    try:
        next(store.snapshot(kind.storage, place.version, None, place.after), None)
    except TooOld:
        status = failures.expired(_FORGOTTEN).status()
        status["metadata"] = {"continue": _token(0, place.after or ("", ""))}
        return status
    return None


def _token(version: int, after: Key) -> str:
    text = json.dumps({"rv": version, "ns": after[0], "name": after[1]})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _number(name: str, text: str | None) -> int:
    if not text:
        return 0
    if not text.isdecimal():
        raise failures.bad_request(f'{name}: Invalid value: "{text}": must be an integer')
    return int(text)
