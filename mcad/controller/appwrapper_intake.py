"""Passes AppWrappers from the watch to the core: first judged all together, then read."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from mcad.controller.event_translation import Reading
from mcad.kube.document import Document
from mcad.kube.errors import BadAnswer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcad.controller.adoption import Adoption
    from mcad.controller.event_translation import EventTranslator
    from mcad.controller.mirror import Mirror
    from mcad.controller.other_controllers import Write
    from mcad.controller.preflight import Gate, Preflight
    from mcad.controller.streams import Part

_log = logging.getLogger(__name__)


class AppWrapperIntake:
    """Receives AppWrappers from the watch. Without a preflight the cluster is taken as it is."""

    def __init__(
        self,
        mirror: Mirror,
        sightings: EventTranslator,
        preflight: Preflight | None,
        gate: Gate | None,
        adoption: Adoption | None,
    ) -> None:
        """``adoption`` is None if another controller manages AppWrappers too, because that one
        removes its finalizers itself."""
        self._mirror = mirror
        self._sightings = sightings
        self._preflight = preflight
        self._gate = gate
        self._adoption = adoption

    async def await_served(self, part: Part[Any]) -> None:
        """Return when AppWrappers can be listed; until then, report the state to ``part``."""
        if self._gate is not None:
            await self._gate.passed(part)

    def listing(self, namespace: str) -> None:
        """A list of this namespace, or of all (""), begins; it may report older versions (P13)."""
        self._mirror.rewind(namespace)

    def judge(self, writes: Iterable[Write]) -> None:
        """Judge the last foreign writes to the first list, before anything else is done."""
        if self._preflight is not None:
            self._preflight.listed(writes)

    def read_ahead(self, document: Document) -> Document | Reading:
        """Read an AppWrapper that is held back. It stays a text if it is going to be read again:
        its kind may be installed until then, and finalizers are looked at."""
        try:
            obj = document.json()
        except BadAnswer:
            return document.kept()
        reading = self._sightings.read(obj)
        is_final = reading.workload.problem is None
        return reading if is_final and not obj["metadata"].get("finalizers") else document.kept()

    def listed(self, one: Document | Reading) -> None:
        """Take an AppWrapper of the first list, in its order."""
        if isinstance(one, Document):
            self._take(one, listed=True)
        else:
            self._sightings.appwrapper_read(one)

    def seen(self, document: Document) -> None:
        """Take a new or changed AppWrapper."""
        self._take(document)

    def _take(self, document: Document, *, listed: bool = False) -> None:
        """Read an AppWrapper if it is news. Log an unreadable one: it must not block the others."""
        if not self._sightings.is_news(document):
            return
        try:
            obj = document.json()
        except BadAnswer as error:
            where = f"{document.identity.namespace}/{document.identity.name}"
            _log.warning("cannot be read appwrapper=%s error=%s", where, error)
            return
        self._sightings.appwrapper_seen(obj, listed=listed)
        if self._adoption is not None:
            self._adoption.seen(obj)
