"""WATCH: the changes of one kind as lines of JSON, from a version on.

A watch reads the history of the store, so slow readers cost nothing; one that falls behind what is
kept gets the in-band 410 of a real server. Encoded lines are shared between watches.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass

from mcad.kube.errors import RequestTimeout
from mcad.kube.types import Json
from mcad.sim import failures
from mcad.sim.failures import Failure
from mcad.sim.kinds import Kind
from mcad.sim.registry import Registry
from mcad.sim.serving import forms, options
from mcad.sim.serving.forms import Form
from mcad.sim.serving.selection import Selection
from mcad.sim.store import Change, TooOld

BOOKMARK_S = 60.0  # kube-apiserver's defaultBookmarkFrequency
LAST_BOOKMARK_S = 2.0  # before the deadline: its nextBookmarkTime
WATCH_S = 1800.0  # its --min-request-timeout, for a client that does not limit the watch itself
INITIAL_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class Watch:
    """What is watched, and the form of its events."""

    kind: Kind
    selection: Selection
    form: Form
    params: Mapping[str, str]


async def lines(
    registry: Registry, watch: Watch, idle_timeout_s: float
) -> AsyncGenerator[bytes, None]:
    """The events as lines; ends when the watch's time is over, raises RequestTimeout if silent."""
    teller = _Teller(registry, watch)
    changed = asyncio.Event()
    unsubscribe = registry.store.listen(watch.kind.storage, lambda _: changed.set())
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _seconds(watch.params)
    bookmark_at = _bookmark_at(loop.time(), deadline)
    try:
        for line in teller.begin():
            yield line
        heard_at = loop.time()
        while loop.time() < deadline:
            changed.clear()
            for line in teller.news():
                yield line
                heard_at = loop.time()
            if teller.is_over:
                return
            if changed.is_set() or await _is_set_before(
                changed, min(deadline, bookmark_at, heard_at + idle_timeout_s)
            ):
                continue
            if loop.time() >= bookmark_at:
                bookmark_at = _bookmark_at(loop.time(), deadline)
                if teller.has_bookmarks:
                    yield teller.bookmark()
                    heard_at = loop.time()
            if loop.time() >= heard_at + idle_timeout_s:
                raise RequestTimeout(f"a watch was silent for {idle_timeout_s} s")
    finally:
        unsubscribe()


def _bookmark_at(now: float, deadline: float) -> float:
    """Once a minute, and shortly before the end, so that the next watch need not go far back."""
    last = deadline - LAST_BOOKMARK_S
    return min(now + BOOKMARK_S, last) if last > now else now + BOOKMARK_S


async def _is_set_before(changed: asyncio.Event, at: float) -> bool:
    try:
        async with asyncio.timeout_at(at):
            await changed.wait()
    except TimeoutError:
        return False
    return True


def check(params: Mapping[str, str]) -> None:
    """What a watch may not ask for; raises Failure."""
    options.integer(params, "timeoutSeconds")
    version = params.get("resourceVersion") or "0"
    if not version.isdecimal():
        raise Failure(500, "", options.bad_version(version))


def _seconds(params: Mapping[str, str]) -> float:
    return float(max(options.integer(params, "timeoutSeconds"), 0) or WATCH_S)


class _Teller:
    """Turns changes into lines."""

    def __init__(self, registry: Registry, watch: Watch) -> None:
        self._registry = registry
        self._store = registry.store
        self._watch = watch
        self._position = 0
        self._columns_sent = False
        self.has_bookmarks = watch.params.get("allowWatchBookmarks") in {"true", "1"}
        self.is_over = False

    def begin(self) -> Iterator[bytes]:
        """Find the place in the history; tell what is there already where that was asked for."""
        params, storage = self._watch.params, self._watch.kind.storage
        version = params.get("resourceVersion") or ""
        if params.get("sendInitialEvents") == "true" or version in {"", "0"}:
            self._position = self._store.position(storage, self._store.version)
            if params.get("sendInitialEvents") != "false":
                yield from self._present()
            if params.get("sendInitialEvents") == "true" and self.has_bookmarks:
                yield self.bookmark({INITIAL_END: "true"})
            return
        try:
            self._position = self._store.position(storage, int(version))
        except TooOld as error:
            yield self._end(error)

    def news(self) -> Iterator[bytes]:
        """What happened since it was asked last."""
        if self.is_over:
            return
        try:
            changes, self._position = self._store.changes(self._watch.kind.storage, self._position)
        except TooOld as error:
            yield self._end(error)
            return
        for change in changes:
            if line := self._line(change):
                yield line

    def bookmark(self, annotations: Json | None = None) -> bytes:
        """How far the watch has come."""
        metadata: Json = {"resourceVersion": str(self._store.version)}
        if annotations:
            metadata["annotations"] = annotations
        kind, form = self._watch.kind, self._watch.form
        obj = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
        return _encode("BOOKMARK", forms.one(kind, obj, form, 0, with_columns=False))

    def _present(self) -> Iterator[bytes]:
        selection = self._watch.selection
        for _, obj in self._store.items(self._watch.kind.storage, selection.namespace):
            if selection.covers(obj):
                yield _encode("ADDED", self._shown(obj))

    def _line(self, change: Change) -> bytes:
        """The line of a change, empty if the watch does not cover it."""
        selection = self._watch.selection
        now = change.type != "DELETED" and selection.covers(change.obj)
        before = change.previous is not None and selection.covers(change.previous)
        if now:
            return self._encoded(change, "MODIFIED" if before else "ADDED", change.obj)
        if not before:
            return b""
        if change.type == "DELETED":
            return self._encoded(change, "DELETED", change.obj)
        # It left the selection: the watcher gets what it knew, at the version of the change.
        assert change.previous is not None  # noqa: S101 - `before` says so
        version = {"resourceVersion": change.obj["metadata"]["resourceVersion"]}
        gone = change.previous | {"metadata": change.previous["metadata"] | version}
        return self._encoded(change, "DELETED", gone)

    def _encoded(self, change: Change, event: str, obj: Json) -> bytes:
        form = self._watch.form
        if form.name == "Table":
            return _encode(event, self._shown(obj))
        key = (event, form, self._watch.kind.api_version)
        line = change.encoded.get(key)
        if line is None:
            line = change.encoded[key] = _encode(event, self._shown(obj))
        return line

    def _shown(self, obj: Json) -> Json:
        with_columns, self._columns_sent = not self._columns_sent, True
        now_us = self._registry.clock.now_us()
        return forms.one(self._watch.kind, obj, self._watch.form, now_us, with_columns=with_columns)

    def _end(self, error: TooOld) -> bytes:
        self.is_over = True
        return _encode("ERROR", failures.expired(str(error)).status())


def _encode(event: str, obj: Json) -> bytes:
    return json.dumps({"type": event, "object": obj}, separators=(",", ":")).encode()
