"""What one capacity remembers of the shapes it is asked about: pod classes and prospects.

How long depends on events alone: an AppWrapper that waits or holds a reservation holds a prospect
or a class, and the release of the last holder forgets it at once; garbage collection plays no part.
"""

from __future__ import annotations

from mcad.core.fit.prospect import Part, Prospect
from mcad.core.fit.queueing_hints import QueueingHints
from mcad.core.nodes.host_ports import is_port
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.pod_class import Bounds, PodClass
from mcad.core.nodes.shape import ClassKey, Shape


class Memory:
    """Owner of all classes and prospects of a ledger. Refused prospects are in ``queueing_hints``;
    ``bounds`` are the bounds of all classes."""

    def __init__(self, ledger: Ledger, *, on_nodes: bool) -> None:
        self._ledger = ledger
        self._on_nodes = on_nodes
        self._classes: dict[ClassKey, PodClass] = {}
        self._prospects: dict[Shape, Prospect] = {}
        self._asked: dict[Shape, None] = {}
        self.bounds = Bounds(ledger)
        self.queueing_hints = QueueingHints(ledger, self.bounds, on_nodes=on_nodes)

    # -- prospects -----------------------------------------------------------------------------

    def prospect(self, shape: Shape) -> Prospect | None:
        """The prospect of the shape; None if it has no holder."""
        return self._prospects.get(shape)

    def remembered(self, shape: Shape) -> Prospect:
        """The prospect of a shape that has a holder."""
        return self._prospects[shape]

    def hold(self, shape: Shape) -> Prospect:
        """Remember the shape until each ``hold`` has its ``let_go``."""
        prospect = self._prospects.get(shape)
        if prospect is None:
            prospect = self._prospects[shape] = self._make(shape)
        prospect.holders += 1
        return prospect

    def let_go(self, shape: Shape) -> None:
        """Drop one holder."""
        prospect = self._prospects[shape]
        prospect.holders -= 1
        if not prospect.holders:
            del self._prospects[shape]
            self.queueing_hints.forget(prospect)
            for variant in prospect.variants.values():
                self.let_go(variant.shape)
            for part in prospect.parts:
                self.let_go_class(part.pods)

    def hold_for_questions(self, shape: Shape) -> Prospect:
        """The prospect of the shape, remembered until its last holder lets it go, or without a
        holder until ``end_questions``."""
        if shape not in self._prospects:
            self._asked[shape] = None
            self.hold(shape)
        return self._prospects[shape]

    def end_questions(self) -> None:
        """Forget the shapes that only questions remembered."""
        for shape in self._asked:
            self.let_go(shape)
        self._asked = {}

    def held(self, shape: Shape) -> Held:
        """The shape's prospect, remembered at least for the length of a question."""
        return Held(self, shape)

    def _make(self, shape: Shape) -> Prospect:
        parts = tuple(
            Part(self.hold_class(one.key), one.declared, one.positions, one.per_node, one.apart)
            for one in shape.alike
        )
        return Prospect(shape, parts, self._ledger, self._on_nodes)

    # -- classes -------------------------------------------------------------------------------

    def hold_class(self, key: ClassKey) -> PodClass:
        """Remember the class until each ``hold_class`` has its ``let_go_class``."""
        if key.ports:
            self._ledger.load(key.request, key.ports)  # enters its host ports in the books
        key = self.in_books(key)
        pods = self._classes.get(key)
        if pods is None:
            pods = self._classes[key] = PodClass(key, self._ledger, self.bounds.place())
            self.bounds.enter(pods)
        pods.holders += 1
        return pods

    def let_go_class(self, pods: PodClass) -> None:
        """Drop one holder."""
        pods.holders -= 1
        if not pods.holders:
            del self._classes[pods.key]
            self.bounds.leave(pods)
            pods.retire()

    def classes(self) -> list[PodClass]:
        """The classes that have a holder, in order of creation."""
        return list(self._classes.values())

    def in_books(self, key: ClassKey) -> ClassKey:
        """The class as in the books: with host ports among the amounts, if the books know them."""
        load, cap = self._ledger.known_load(key.request, key.ports), key.cap
        if key.ports and not any(is_port(name) for name, _ in load):
            cap = 1  # the books lack these ports, but equal pods exclude each other in any case
        return ClassKey(load, key.constraint, cap)


class Held:
    """A shape while a question about it is asked: ``with memory.held(shape) as prospect``."""

    __slots__ = ("_memory", "_shape")

    def __init__(self, memory: Memory, shape: Shape) -> None:
        self._memory = memory
        self._shape = shape

    def __enter__(self) -> Prospect:
        return self._memory.hold(self._shape)

    def __exit__(self, *_: object) -> None:
        self._memory.let_go(self._shape)
