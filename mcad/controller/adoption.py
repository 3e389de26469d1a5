"""Removes the upstream controller's finalizer from AppWrappers that it left behind.

Without that controller nothing else removes it, so a deletion would never end. The wrapped objects
are still garbage-collected by their owner references. Only that finalizer is removed, by a fenced
patch, and only if ``spec.managedBy`` does not assign the AppWrapper to another controller.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from mcad.api.labels import CONTROLLERS, FINALIZER
from mcad.api.wire import as_list, as_map, dig
from mcad.core.state.reasons import EventReason
from mcad.kube.client import Client
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.kinds import APPWRAPPERS
from mcad.kube.recorder import Recorder, Regarding

Json = dict[str, Any]
_log = logging.getLogger(__name__)

WIDTH = 4  # concurrent patches: there may be thousands of AppWrappers, and nothing waits for them
RETRY_MAX_S = 60.0


class Adoption:
    """Removes the finalizer; at most one task per AppWrapper at a time."""

    def __init__(
        self,
        client: Client,
        recorder: Recorder,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        """``spawn`` runs a task that ends with the controller."""
        self._client = client
        self._recorder = recorder
        self._spawn = spawn
        self._busy: set[str] = set()
        self._turns = asyncio.Semaphore(WIDTH)

    def seen(self, obj: Json) -> None:
        """Take an AppWrapper as it is now; start a task if it has the finalizer."""
        uid = obj["metadata"]["uid"]
        if uid not in self._busy and _is_left_behind(obj):
            self._busy.add(uid)
            self._spawn(self._adopt(obj))

    async def _adopt(self, obj: Json) -> None:
        """Retry until the finalizer or the AppWrapper is gone; log only the first refusal."""
        metadata, pause = obj["metadata"], 0.0
        left: Json | None = obj
        try:
            while left is not None and _is_left_behind(left):
                await self._client.clock.sleep(pause)
                try:
                    async with self._turns:
                        left = await self._take_away(left)
                except KubeError as error:
                    if not pause:
                        title = f"{metadata['namespace']}/{metadata['name']}"
                        _log.warning(
                            "finalizer cannot be removed appwrapper=%s error=%s", title, error
                        )
                    pause = min(2 * pause + 1.0, RETRY_MAX_S)
        finally:
            self._busy.discard(metadata["uid"])

    async def _take_away(self, obj: Json) -> Json | None:
        """Patch the finalizer away. Return None, or the AppWrapper read again after a conflict."""
        metadata = obj["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        others = [one for one in metadata["finalizers"] if one != FINALIZER]
        fence = {"resourceVersion": metadata["resourceVersion"], "finalizers": others}
        try:
            await self._client.patch(APPWRAPPERS, namespace, name, {"metadata": fence})
        except ApiError as error:
            if error.not_found:
                return None
            if error.conflict:
                return await self._read_again(obj)
            raise
        _log.info("finalizer removed appwrapper=%s/%s", namespace, name)
        note = f"Removed {FINALIZER} of the controller that managed it before."
        self._recorder.record(Regarding.of(obj), EventReason.ADOPTED, note, action="Adopt")
        return None

    async def _read_again(self, obj: Json) -> Json | None:
        metadata = obj["metadata"]
        try:
            live = await self._client.get(APPWRAPPERS, metadata["namespace"], metadata["name"])
        except ApiError as error:
            if error.not_found:
                return None
            raise
        return live if live["metadata"]["uid"] == metadata["uid"] else None


def _is_left_behind(obj: Json) -> bool:
    owner = dig(obj, "spec", "managedBy")
    ours = not owner or owner in CONTROLLERS
    return ours and FINALIZER in as_list(as_map(obj["metadata"]).get("finalizers"))
