"""The AppWrappers of the first lists: held back until all are there, then fed in their order.

Held back they are text, because a dict of one costs five times as much, and they are read one at a
time with turns for all else in between. Nothing is decided before they are through (P11).
"""

from collections.abc import Callable, Iterable
from itertools import islice

from msgspec import Struct

from mcad.api import projections
from mcad.controller.event_translation import CreationOrder, creation_order
from mcad.controller.other_controllers import Write, last_write
from mcad.kube.clock import Clock
from mcad.kube.document import Document

FED_AT_ONCE = 5  # between two turns of the loop: some 5 ms


class _Held(Struct, frozen=True):
    document: Document
    order: CreationOrder
    write: Write


class FirstList:
    """An AppWrapper that is held back changes here alone; the core is not told."""

    def __init__(
        self,
        judge: Callable[[Iterable[Write]], None],
        seen: Callable[[Document], None],
        clock: Clock,
    ) -> None:
        """``judge`` hears the last foreign write to each before any is given to ``seen``."""
        self._judge = judge
        self._seen = seen
        self._clock = clock
        self._held: dict[str, _Held] = {}
        self._is_feeding = False

    def put(self, document: Document) -> None:
        """It is new or changed: in its old place, or behind all others."""
        obj = document.pick(projections.APPWRAPPER)
        held = _Held(document.kept(), creation_order(obj), last_write(obj))
        self._held[document.identity.uid] = held

    def drop(self, uid: str) -> bool:
        """It was deleted. True if the core had not been told of it."""
        return self._held.pop(uid, None) is not None and not self._is_feeding

    async def feed(self) -> None:
        """Feed all that is held back, and what is put meanwhile."""
        self._judge(held.write for held in self._held.values())
        await self._clock.sleep(0)
        in_order = sorted(self._held.items(), key=lambda pair: pair[1].order)
        self._held, self._is_feeding = dict(in_order), True
        del in_order  # it would keep every text until the last one is read
        while self._held:
            await self._clock.sleep(0)
            for uid in tuple(islice(self._held, FED_AT_ONCE)):
                self._seen(self._held.pop(uid).document)
