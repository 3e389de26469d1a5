"""What one capacity remembers of the shapes it is asked about: pod classes and prospects.

How long depends on events alone. What waits or holds a reservation holds a prospect or a class;
what the last holder lets go is forgotten at once, and never because memory was freed.
"""

from __future__ import annotations

from mcad.core.fit.prospect import Part, Prospect
from mcad.core.fit.queueing_hints import QueueingHints
from mcad.core.nodes.host_ports import is_port
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.pod_class import Bounds, PodClass
from mcad.core.nodes.shape import ClassKey, Shape


class Memory:
    """Owner of all classes and prospects of a ledger. What is refused is among the
    ``queueing_hints``; ``bounds`` are those of all classes."""

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
        """What is remembered of the shape; None if it has no holder."""
        return self._prospects.get(shape)

    def remembered(self, shape: Shape) -> Prospect:
        """What is remembered of a shape that has a holder."""
        return self._prospects[shape]

    def hold(self, shape: Shape) -> Prospect:
        """Remember the shape until it is let go as often as it was held."""
        prospect = self._prospects.get(shape)
        if prospect is None:
            prospect = self._prospects[shape] = self._make(shape)
        prospect.holders += 1
        return prospect

    def let_go(self, shape: Shape) -> None:
        """One holder less."""
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
        """What is remembered of the shape, until its last holder lets it go; if it has none, until
        ``end_questions``."""
        if shape not in self._prospects:
            self._asked[shape] = None
            self.hold(shape)
        return self._prospects[shape]

    def end_questions(self) -> None:
        """No question is answered any more."""
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
        """Remember the class until it is let go as often as it was held."""
        if key.ports:
            self._ledger.load(key.request, key.ports)  # they are in the books from now on
        key = self.in_books(key)
        pods = self._classes.get(key)
        if pods is None:
            pods = self._classes[key] = PodClass(key, self._ledger, self.bounds.place())
            self.bounds.enter(pods)
        pods.holders += 1
        return pods

    def let_go_class(self, pods: PodClass) -> None:
        """One holder less."""
        pods.holders -= 1
        if not pods.holders:
            del self._classes[pods.key]
            self.bounds.leave(pods)
            pods.retire()

    def classes(self) -> list[PodClass]:
        """The classes that have a holder, in the order of their making."""
        return list(self._classes.values())

    def in_books(self, key: ClassKey) -> ClassKey:
        """The class as the books have it: with host ports among the amounts, if they are known."""
        load, cap = self._ledger.known_load(key.request, key.ports), key.cap
        if key.ports and not any(is_port(name) for name, _ in load):
            cap = 1  # the books do not have them, but they exclude each other in any case
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
