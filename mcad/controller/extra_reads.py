"""Reads objects outside the watches: owners that no watch reports, and AppWrappers of new kinds."""

import logging

from mcad.api.owner import Owner, controller_of
from mcad.controller.event_translation import EventTranslator
from mcad.controller.mirror import Reflection
from mcad.controller.served_kinds import Kinds
from mcad.kube.client import Client
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.kinds import APPWRAPPERS

_log = logging.getLogger(__name__)

LINK_GRACE_S = 2.0  # a missing owner normally comes by its own watch; after this it is read


class Lookups:
    """Reads objects and passes them to the event translation."""

    def __init__(self, client: Client, kinds: Kinds, sightings: EventTranslator) -> None:
        self._client = client
        self._kinds = kinds
        self._sightings = sightings

    async def find_owner(self, namespace: str, owner: Owner) -> None:
        """Read an intermediate owner once if its watch does not report it (protocol C3)."""
        await self._client.clock.sleep(LINK_GRACE_S)
        if not self._sightings.is_owner_awaited(owner.uid):
            return
        resource = self._kinds.resource_of(owner)
        if resource is None:
            return
        try:
            live = await self._client.get(resource, namespace, owner.name, metadata_only=True)
        except KubeError as error:
            if isinstance(error, ApiError) and error.not_found:
                return  # deleted; its pods will follow
            _log.warning("owner unknown owner=%s/%s error=%s", namespace, owner.name, error)
            return
        if live["metadata"]["uid"] == owner.uid:
            self._sightings.owner_found(owner.uid, controller_of(live), watched=False)

    def without_kind(self) -> list[Reflection]:
        """The AppWrappers that name a kind which was not installed when they were read."""
        return self._sightings.without_kind()

    async def read_again(self) -> None:
        """Read these AppWrappers again after kinds were installed. Raises ``KubeError``."""
        for seat in self.without_kind():
            await self._read_again(seat)

    async def _read_again(self, seat: Reflection) -> None:
        work = seat.workload
        try:
            live = await self._client.get(APPWRAPPERS, work.namespace, work.name)
        except ApiError as error:
            if error.not_found:
                return
            raise
        seat.spec_mark, seat.version = b"", ""
        self._sightings.appwrapper_seen(live)
