"""Follows the logs of all pods of an AppWrapper, also of those that start later."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from mcad.api.labels import APPWRAPPER_UID, labels_of
from mcad.cli.errors import warn
from mcad.cli.live.log_reader import LogReader
from mcad.client.appwrappers.owned_objects import item_of
from mcad.client.appwrappers.pod_state import ENDED, phase_of, pod_state
from mcad.client.appwrappers.quiet_sink import QuietSink
from mcad.kube.client import Client, Selection
from mcad.kube.document import Document
from mcad.kube.kinds import PODS
from mcad.kube.reflector import Reflector

Json = dict[str, Any]


async def follow(
    client: Client, obj: Json, reader: LogReader, present: Sequence[Json], item: int | None
) -> bool:
    """Read the pods as they start, until all that exist have ended; whether all went well.

    ``present`` may have pods without our labels, which are not watched: they end with their log.
    """
    pods, metadata = _Pods(reader, item), obj["metadata"]
    for pod in present:
        if labels_of(pod).get(APPWRAPPER_UID) != metadata["uid"]:
            pods.adopt(pod)
    selector = f"{APPWRAPPER_UID}={metadata['uid']}"
    selection = Selection(metadata["namespace"], label_selector=selector)
    watch = asyncio.ensure_future(Reflector(client, PODS, pods, Document.json, selection).run())
    ended = asyncio.ensure_future(pods.ended.wait())
    try:
        await asyncio.wait([watch, ended], return_when=asyncio.FIRST_COMPLETED)
        if watch.done():
            watch.result()
        await asyncio.gather(*pods.readings.values())
    finally:
        for task in (watch, ended, *pods.readings.values()):
            task.cancel()
        await asyncio.gather(watch, ended, *pods.readings.values(), return_exceptions=True)
    return reader.well


class _Pods(QuietSink):
    """The sink of the watch: begins to read each pod once it has started."""

    def __init__(self, reader: LogReader, item: int | None) -> None:
        self.readings: dict[str, asyncio.Task[None]] = {}
        self.ended = asyncio.Event()
        self._reader = reader
        self._item = item
        self._live: dict[str, Json] = {}
        self._unwatched: set[str] = set()
        self._named: set[str] = set()
        self._synced = False

    def adopt(self, pod: Json) -> None:
        """Read a pod that the watch does not tell of."""
        uid = str(pod["metadata"]["uid"])
        self._unwatched.add(uid)
        self.upserted(pod)
        if uid in self.readings:
            self.readings[uid].add_done_callback(lambda _: self._look())

    def upserted(self, obj: Json) -> None:
        if self._item not in (None, item_of(obj)):
            return
        uid = str(obj["metadata"]["uid"])
        self._live[uid] = obj
        self._reader.prefixed |= len(self._live) > 1
        if uid not in self.readings and self._reader.is_ready(obj):
            self.readings[uid] = asyncio.ensure_future(self._reader.read(obj))
        self._look()

    def gone(self, uid: str, namespace: str, name: str, last: Json | None) -> None:  # noqa: ARG002
        self._live.pop(uid, None)
        self._look()

    def synced(self, *, relist: bool) -> None:  # noqa: ARG002
        self._synced = True
        self._look()

    def _look(self) -> None:
        """Name the pods that have not started, once; end if all have ended."""
        if not self._synced:
            return
        for uid, pod in self._live.items():
            if uid not in self.readings and uid not in self._named:
                self._named.add(uid)
                warn(f"pod {pod['metadata']['name']} has not started ({pod_state(pod)})")
        if all(self._has_ended(uid, pod) for uid, pod in self._live.items()):
            self.ended.set()

    def _has_ended(self, uid: str, pod: Json) -> bool:
        if uid in self._unwatched:
            return uid not in self.readings or self.readings[uid].done()
        return phase_of(pod) in ENDED
