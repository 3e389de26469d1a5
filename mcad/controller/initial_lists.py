"""Holds objects back from the core, then feeds them to it.

The AppWrappers of the first lists are held until all are there, and are fed in their order. A
standby holds back everything that its watches tell (ADR 55).

Objects are held as text, because a dict of one costs five times as much, or as they are fed to the
core. They are read one at a time, with turns for all other tasks in between. Nothing is decided
before all are fed (P11).
"""

from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mcad.api import projections
from mcad.api.wire import to_json
from mcad.controller.event_translation import (
    CreationOrder,
    Reading,
    SlimNode,
    SlimPod,
    creation_order,
)
from mcad.controller.other_controllers import Write, last_write
from mcad.kube.clock import Clock
from mcad.kube.decode import decode
from mcad.kube.document import Document

Json = dict[str, Any]
T = TypeVar("T")

FED_AT_ONCE = 20  # AppWrappers between two turns of the event loop: 1 ms, 5 if they are not read
COPIES_FED_AT_ONCE = 100  # other objects: at most as long


class _HeldBack(Generic[T]):
    """Objects by uid, as they are held."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[str, T] = {}
        self._is_feeding = False

    def drop(self, uid: str) -> bool:
        """Forget a deleted object. Return True if the core certainly does not know it."""
        return self._held.pop(uid, None) is not None and not self._is_feeding


class Copy(_HeldBack[tuple[Any, bytes]], Generic[T]):
    """What a standby holds of a kind."""

    is_due_listed = False

    def __init__(self, seen: Callable[[T], None], clock: Clock) -> None:
        super().__init__(clock)
        self._seen = seen

    def put(self, obj: T) -> None:
        """Hold a new or changed object."""
        uid, packed = _packed(obj)
        self._held[uid] = packed

    async def feed(self) -> None:
        """Feed all that is held back, and what is put meanwhile."""
        self._is_feeding = True
        while self._held:
            for uid in tuple(islice(self._held, COPIES_FED_AT_ONCE)):
                self._seen(_unpacked(*self._held.pop(uid)))
            await self._clock.sleep(0)


def _packed(obj: Any) -> tuple[str, tuple[Any, bytes]]:
    """The uid, and the object with every dict of it as text."""
    rest: SlimPod | None = None
    match obj:
        case SlimNode(uid=uid):
            return uid, (obj, b"")
        case SlimPod(pod=pod, obj=None):
            return pod.uid, (obj, b"")
        case SlimPod(pod=pod, obj=whole):
            uid, rest = pod.uid, replace(obj, obj=None)
        case _:
            uid, whole = obj["metadata"]["uid"], obj
    try:
        return uid, (rest, to_json(whole))
    except RecursionError:  # it was decoded with less on the stack
        return uid, (obj, b"")


def _unpacked(obj: Any, text: bytes) -> Any:
    if obj is None:
        return decode(text)
    return replace(obj, obj=decode(text)) if text else obj


async def _at_once() -> None:
    """The default: everything that is needed to read AppWrappers is known."""


class _Held(Struct, frozen=True):
    document: Document | Reading
    order: CreationOrder
    write: Write


class FirstList(_HeldBack[_Held]):
    """The AppWrappers that are held back, with their changes; the core does not know them yet.

    They are read ``ahead``: what is read takes less memory than the text, and to read them is most
    of the work of a start, which a standby has then done.
    """

    is_due_listed = True

    def __init__(
        self,
        judge: Callable[[Iterable[Write]], None],
        seen: Callable[[Document | Reading], None],
        clock: Clock,
        ahead: Callable[[Document], Document | Reading] = Document.kept,
        ready: Callable[[], Awaitable[object]] = _at_once,
    ) -> None:
        """``judge`` gets all last foreign writes before the first document is given to ``seen``,
        and ``ready`` is awaited before."""
        super().__init__(clock)
        self._judge = judge
        self._seen = seen
        self._ahead = ahead
        self._ready = ready

    def put(self, document: Document) -> None:
        """Hold a new or changed AppWrapper: in its old place, or behind all others."""
        obj = document.pick(projections.APPWRAPPER)
        order, write = creation_order(obj), last_write(obj)
        kept = document.kept() if self._is_feeding else self._ahead(document)
        self._held[document.identity.uid] = _Held(kept, order, write)

    def clear(self) -> None:
        """Forget all of them: they are going to be listed anew."""
        self._held.clear()

    async def feed(self) -> None:
        """Feed all that is held back, and what is put meanwhile."""
        await self._ready()
        self._judge(held.write for held in self._held.values())
        await self._clock.sleep(0)
        in_order = sorted(self._held.items(), key=lambda pair: pair[1].order)
        self._held, self._is_feeding = dict(in_order), True
        del in_order  # else every text is kept until the last one is read
        while self._held:
            await self._clock.sleep(0)
            for uid in tuple(islice(self._held, FED_AT_ONCE)):
                self._seen(self._held.pop(uid).document)
