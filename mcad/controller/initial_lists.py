"""Holds back the AppWrappers of the first lists until all are there, then feeds them in their
order.

They are held as text, because a dict of one costs five times as much. They are read one at a time,
with turns for all other tasks in between. Nothing is decided before all of them are fed (P11).
"""

from collections.abc import Callable, Iterable
from itertools import islice

from msgspec import Struct

from mcad.api import projections
from mcad.controller.event_translation import CreationOrder, creation_order
from mcad.controller.other_controllers import Write, last_write
from mcad.kube.clock import Clock
from mcad.kube.document import Document

FED_AT_ONCE = 5  # between two turns of the event loop: about 5 ms


class _Held(Struct, frozen=True):
    document: Document
    order: CreationOrder
    write: Write


class FirstList:
    """The AppWrappers that are held back, with their changes; the core does not know them yet."""

    def __init__(
        self,
        judge: Callable[[Iterable[Write]], None],
        seen: Callable[[Document], None],
        clock: Clock,
    ) -> None:
        """``judge`` gets all last foreign writes before the first document is given to ``seen``."""
        self._judge = judge
        self._seen = seen
        self._clock = clock
        self._held: dict[str, _Held] = {}
        self._is_feeding = False

    def put(self, document: Document) -> None:
        """Hold a new or changed AppWrapper: in its old place, or behind all others."""
        obj = document.pick(projections.APPWRAPPER)
        held = _Held(document.kept(), creation_order(obj), last_write(obj))
        self._held[document.identity.uid] = held

    def drop(self, uid: str) -> bool:
        """Forget a deleted AppWrapper. Return True if the core certainly does not know it."""
        return self._held.pop(uid, None) is not None and not self._is_feeding

    async def feed(self) -> None:
        """Feed all that is held back, and what is put meanwhile."""
        self._judge(held.write for held in self._held.values())
        await self._clock.sleep(0)
        in_order = sorted(self._held.items(), key=lambda pair: pair[1].order)
        self._held, self._is_feeding = dict(in_order), True
        del in_order  # else every text is kept until the last one is read
        while self._held:
            await self._clock.sleep(0)
            for uid in tuple(islice(self._held, FED_AT_ONCE)):
                self._seen(self._held.pop(uid).document)
