"""Answers as they can be compared: what each server chooses by itself gets a name of ours.

uids and generated names are numbered as they appear; times become "now" or the seconds they lie
ahead; resourceVersions become their rank among the versions of all objects that the script has
seen, so that their order counts and their distance does not. The version of a list or a bookmark
becomes the rank of the youngest object that it covers.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from tests.contract.runner import Answer

# What servers choose by themselves, by the key under which it stands.
MASKED = {
    "clusterIP": "the allocator chooses it",
    "clusterIPs": "the allocator chooses it",
    "continue": "tokens are opaque",
}
DROPPED = {"managedFields": "the writers of fields are not kept by the embedded server"}
_SUFFIX = "[bcdfghjklmnpqrstvwxz2456789]{5}"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_VERSION_IN_TEXT = re.compile(
    r"((?:resource version|current): |ResourceVersion in (?:the precondition|record) \()(\d+)"
)
_TOO_OLD = re.compile(r"(too old resource version: )\d+ \(\d+\)")
_AGE = re.compile(r"\d+s")
_AHEAD_S = 3  # a time that is less far ahead counts as now
_ROUND_S = 5


class Names:
    """The names for one run of one script."""

    def __init__(self, answers: Sequence[Answer], bases: Iterable[str] = ()) -> None:
        """``bases`` are the ``generateName`` that were sent: not every name made of one is used."""
        self._refused = [re.compile(re.escape(base[:58]) + _SUFFIX) for base in bases]
        self._versions = sorted({one for answer in answers for one in _versions(answer.body)})
        self._names: dict[str, str] = {}
        for answer in answers:
            for text in _generated(answer.body):
                self._names.setdefault(text, f"<name-{len(self._names)}>")
        self._uids: dict[str, str] = {}
        self._seen_at: dict[tuple[str, str], int] = {}
        for answer in answers:
            for one in _times(answer.body):
                self._seen_at.setdefault(one, answer.at_us)

    def normal(self, answer: Answer) -> dict[str, Any]:
        """The whole answer, to be compared with the other server's."""
        return {
            "status": answer.status,
            "headers": {key: self._text(value) for key, value in answer.headers.items()},
            "body": self._value(answer.body),
        }

    def _value(self, value: Any, uid: str = "") -> Any:
        """``uid`` is that of the metadata which a text stands in, if it stands in some."""
        if isinstance(value, dict):
            if value.get("kind") == "Status":
                value = _ordered(value)
            return {
                key: self._entry(key, one, value.get("uid", ""))
                for key, one in sorted(value.items())
                if key not in DROPPED
            }
        if isinstance(value, list):
            return [self._value(one, uid) for one in value if not _is_timed_bookmark(one)]
        if isinstance(value, str):
            return self._time(value, uid) if _TIME.fullmatch(value) else self._text(value)
        return value

    def _entry(self, key: str, value: Any, uid: str) -> Any:
        if key in MASKED and value:
            return f"<{key}>"
        if key == "cells":
            return [_cell(one) for one in self._value(value)]
        if key == "resourceVersion" and isinstance(value, str) and value.isdecimal():
            return self._version(int(value))
        return self._value(value, uid)

    def _version(self, version: int) -> str:
        return f"<version-{bisect_right(self._versions, version)}>"

    def _text(self, text: str) -> str:
        for name, ours in self._names.items():
            text = text.replace(name, ours)
        for generated in self._refused:
            text = generated.sub("<refused name>", text)
        text = _TOO_OLD.sub(r"\1<old> (<oldest>)", text)
        text = _TIME.sub("<time>", text)  # of a refusal that quotes one
        text = _UID.sub(lambda found: self._uid(found[0]), text)
        return _VERSION_IN_TEXT.sub(lambda found: found[1] + self._version(int(found[2])), text)

    def _time(self, text: str, uid: str) -> str:
        """How far ahead it lay when it was seen first, there: two pods may end at one time."""
        moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
        ahead_s = moment.timestamp() - self._seen_at[uid, text] / 1e6
        form = "micro" if "." in text else "time"
        if ahead_s < _AHEAD_S:
            return f"<{form}>"
        return f"<{form}+{round(ahead_s / _ROUND_S) * _ROUND_S}s>"

    def _uid(self, uid: str) -> str:
        return self._uids.setdefault(uid, f"<uid-{len(self._uids)}>")


def _versions(value: Any) -> Iterator[int]:
    """Versions of objects, but not of CRDs, which a real server establishes bit by bit."""
    if isinstance(value, dict):
        if value.get("kind") == "CustomResourceDefinition":
            return
        if value.get("uid") and str(value.get("resourceVersion", "")).isdecimal():
            yield int(value["resourceVersion"])
        for one in value.values():
            yield from _versions(one)
    elif isinstance(value, list):
        for one in value:
            yield from _versions(one)


def _generated(value: Any) -> Iterator[str]:
    """Names made of a ``generateName``."""
    if isinstance(value, dict):
        base, name = value.get("generateName"), value.get("name")
        if base and name and name.startswith(base[:58]) and name != base:
            yield name
        for one in value.values():
            yield from _generated(one)
    elif isinstance(value, list):
        for one in value:
            yield from _generated(one)


def _is_timed_bookmark(event: Any) -> bool:
    """When these come is a matter of seconds; the one that ends the initial events is kept."""
    is_bookmark = isinstance(event, dict) and event.get("type") == "BOOKMARK"
    return is_bookmark and "initial-events-end" not in str(event)


def _ordered(status: dict[str, Any]) -> dict[str, Any]:
    """A Status with its causes in our order: Go has none where it walks a map."""
    details = status.get("details") or {}
    causes = details.get("causes") or []
    head, found, told = status.get("message", "").partition(" is invalid: [")
    texts = sorted({f"{one.get('field')}: {one.get('message')}" for one in causes})
    if found and all(text in told for text in texts):
        if sum(map(len, texts)) + 2 * (len(texts) - 1) + 1 == len(told):
            status = status | {"message": f"{head}{found}{', '.join(texts)}]"}
    causes = sorted(causes, key=lambda one: (one.get("field", ""), one.get("message", "")))
    return status | ({"details": details | {"causes": causes}} if causes else {})


def _cell(value: Any) -> Any:
    """Of a row of a Table; how old something is depends on how fast a server answers."""
    return "<age>" if isinstance(value, str) and _AGE.fullmatch(value) else value


def _times(value: Any, uid: str = "") -> Iterator[tuple[str, str]]:
    """With the uid of the metadata that each stands in."""
    if isinstance(value, dict):
        for one in value.values():
            yield from _times(one, value.get("uid", ""))
    elif isinstance(value, list):
        for one in value:
            yield from _times(one, uid)
    elif isinstance(value, str) and _TIME.fullmatch(value):
        yield uid, value
