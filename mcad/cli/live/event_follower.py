"""Follows the Events about an AppWrapper; pods that are created meanwhile count as well."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from mcad.api.labels import APPWRAPPER_UID, labels_of
from mcad.api.owner import controller_of
from mcad.api.wire import as_map, as_text
from mcad.client.appwrappers.latest_events import EVENTS
from mcad.client.appwrappers.quiet_sink import QuietSink
from mcad.kube.client import Client, Selection
from mcad.kube.document import Document
from mcad.kube.kinds import PODS
from mcad.kube.reflector import Reflector

Json = dict[str, Any]

KEPT = 1000
"""Events about unknown objects: that of a pod may come before the pod."""


async def follow(
    client: Client,
    obj: Json,
    uids: set[str],
    version: str,
    show: Callable[[list[Json]], None],
) -> None:
    """Show each Event after ``version`` about one of these objects, until cancelled."""
    own = Selection(obj["metadata"]["namespace"])
    labelled = Selection(own.namespace, f"{APPWRAPPER_UID}={obj['metadata']['uid']}")
    family = _Family(obj, uids, int(version) if version.isdigit() else 0, show)
    await asyncio.gather(
        Reflector(client, EVENTS, _Sink(family.event), Document.json, own).run(),
        Reflector(client, PODS, _Sink(family.joined), Document.json, labelled).run(),
    )


class _Family:
    """The uids of an AppWrapper and of everything that belongs to it."""

    def __init__(
        self, obj: Json, uids: set[str], version: int, show: Callable[[list[Json]], None]
    ) -> None:
        self._uid = str(obj["metadata"]["uid"])
        self._uids = uids
        self._version = version
        self._show = show
        self._unknown: deque[Json] = deque(maxlen=KEPT)

    def event(self, event: Json) -> None:
        """An Event of the namespace; those up to ``version`` were shown before."""
        shown = as_text(event["metadata"].get("resourceVersion"))
        if shown.isdigit() and int(shown) <= self._version:
            return
        if as_map(event.get("involvedObject")).get("uid") in self._uids:
            self._show([event])
        else:
            self._unknown.append(event)

    def joined(self, pod: Json) -> None:
        """A pod of the AppWrapper; its owner belongs to it too."""
        if labels_of(pod).get(APPWRAPPER_UID) != self._uid:
            return
        owner = controller_of(pod)
        new = {str(pod["metadata"]["uid"]), *([owner.uid] if owner is not None else [])}
        if new <= self._uids:
            return
        self._uids |= new
        late = [one for one in self._unknown if as_map(one.get("involvedObject")).get("uid") in new]
        for one in late:
            self._unknown.remove(one)
        if late:
            self._show(late)


class _Sink(QuietSink):
    """A sink that is interested in what there is."""

    def __init__(self, seen: Callable[[Json], None]) -> None:
        self._seen = seen

    def upserted(self, obj: Json) -> None:
        """Pass it on."""
        self._seen(obj)
