"""What one capacity remembers of the shapes it is asked about: pools, pod classes, prospects.

How long depends on events alone. What waits or holds a reservation holds a prospect or a class;
what the last holder lets go is forgotten at once, and never because memory was freed. Pools outlive
their last class, because the next gang often has the same constraint. They are dropped in numbers:
users invent constraints for ever, and every pool costs something when a node changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from mcad.core.fit.feasible import Part, Prospect
from mcad.core.fit.queueing_hints import QueueingHints
from mcad.core.nodes.filters import admits, in_service
from mcad.core.nodes.host_ports import is_port
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.pod_signature import PodClass
from mcad.core.nodes.pool_without import unwanted, without_not_in
from mcad.core.nodes.pools import Pool
from mcad.core.nodes.shape import ClassKey, Shape
from mcad.core.state.model import Constraint
from mcad.core.state.work_bounds import POOLS_KEPT_MIN, WITHOUT_MAX


class Memory:
    """Owner of all pools, classes and prospects of a ledger. ``everywhere`` is the pool of every
    node in service and stays. What is refused is among the ``queueing_hints``."""

    def __init__(self, ledger: Ledger, *, on_nodes: bool) -> None:
        self._ledger = ledger
        self._on_nodes = on_nodes
        self.everywhere = ledger.pool(in_service)
        self._pools: dict[Constraint, Pool] = {}
        self._pools_max = POOLS_KEPT_MIN
        self._classes: dict[ClassKey, PodClass] = {}
        self._prospects: dict[Shape, Prospect] = {}
        self.queueing_hints = QueueingHints(ledger)

    # -- prospects -----------------------------------------------------------------------------

    def prospect(self, shape: Shape) -> Prospect | None:
        """What is remembered of the shape; None if it has no holder."""
        return self._prospects.get(shape)

    def prospects(self) -> list[Prospect]:
        """Those that have a holder."""
        return list(self._prospects.values())

    def remembered(self, shape: Shape) -> Prospect:
        """What is remembered of a shape that has a holder."""
        return self._prospects[shape]

    def hold(self, shape: Shape) -> Prospect:
        """Remember the shape until it is let go as often as it was held."""
        prospect = self._prospects.get(shape)
        if prospect is None:
            prospect = self._prospects[shape] = self._make(shape)
            self._drop_unused_pools()
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

    def held(self, shape: Shape) -> Held:
        """The shape's prospect, remembered at least for the length of a question."""
        return Held(self, shape)

    def _make(self, shape: Shape) -> Prospect:
        parts = tuple(
            Part(self.hold_class(one.key), one.declared, one.positions, one.per_node, one.apart)
            for one in shape.alike
        )
        return Prospect(shape, parts, self.pools_of(parts))

    def pools_of(self, parts: Iterable[Part]) -> tuple[Pool, ...]:
        """The pools whose rises concern these parts."""
        if not self._on_nodes:
            return (self.everywhere,)
        return tuple(dict.fromkeys(part.pods.pool for part in parts))

    # -- classes -------------------------------------------------------------------------------

    def hold_class(self, key: ClassKey) -> PodClass:
        """Remember the class until it is let go as often as it was held."""
        if key.ports:
            self._ledger.load(key.request, key.ports)  # they are in the books from now on
        key = self.in_books(key)
        pods = self._classes.get(key)
        if pods is None:
            pool = self._pool(key.constraint)
            pods = self._classes[key] = PodClass(key, pool, self._ledger.log)
        pods.holders += 1
        return pods

    def let_go_class(self, pods: PodClass) -> None:
        """One holder less."""
        pods.holders -= 1
        if not pods.holders:
            del self._classes[pods.key]
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

    # -- pools ---------------------------------------------------------------------------------

    def count_nodes(self, constraint: Constraint) -> int:
        """How many nodes the constraint admits. This changes nothing."""
        pool = self._pools.get(constraint)
        if pool is not None:
            return len(pool.rows)
        labels, ledger = self._ledger.demanded(constraint), self._ledger
        among = ledger.rows.values() if labels is None else ledger.with_labels(labels)
        return sum(admits(row.node, constraint) for row in among)

    def _pool(self, constraint: Constraint) -> Pool:
        pool = self._pools.get(constraint)
        if pool is None:
            pool = self._pools[constraint] = self._new_pool(constraint)
        return pool

    def _new_pool(self, constraint: Constraint) -> Pool:
        labels, wider = unwanted(constraint), without_not_in(constraint)
        if labels and self._ledger.count_labelled(labels) <= WITHOUT_MAX:
            return self._ledger.pool_without(self._pool(wider).base, constraint)
        # No lambda: a journal's snapshot pickles the pools.
        selects = partial(admits, constraint=constraint)
        return self._ledger.pool(selects, self._ledger.demanded(constraint))

    def _drop_unused_pools(self) -> None:
        if len(self._pools) <= self._pools_max:
            return
        used: dict[Pool, None] = dict.fromkeys(pods.pool for pods in self._classes.values())
        used |= dict.fromkeys(pool.base for pool in used)
        self._pools = {key: pool for key, pool in self._pools.items() if pool in used}
        self._ledger.keep_pools({self.everywhere: None, **used})
        self._pools_max = max(POOLS_KEPT_MIN, 2 * len(self._pools))


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
