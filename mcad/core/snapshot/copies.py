"""Copies of what a capacity remembers of shapes, for questions that must change nothing.

Pools, classes and prospects are copied when a question first touches them, and dropped with the
question. They are valid until the next event.
"""

from __future__ import annotations

from functools import partial

from mcad.core.fit.feasible import Part, Prospect
from mcad.core.fit.shape_cache import Memory, admitted
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.pod_signature import PodClass
from mcad.core.nodes.pools import Pool
from mcad.core.nodes.shape import ClassKey, Shape
from mcad.core.state.model import Constraint


class Copies:
    """Copies of prospects, of their classes and of their pools, one of each."""

    def __init__(self, ledger: Ledger, memory: Memory) -> None:
        self._ledger = ledger
        self._memory = memory
        self._pools: dict[Constraint, Pool] = {}
        self._classes: dict[ClassKey, PodClass] = {}
        self._prospects: dict[Shape, Prospect] = {}

    def prospect(self, shape: Shape) -> Prospect:
        """The shape's prospect, whether an AppWrapper waits with it or not."""
        prospect = self._prospects.get(shape)
        if prospect is None:
            prospect = self._prospects[shape] = self._copy(shape)
        return prospect

    def _copy(self, shape: Shape) -> Prospect:
        parts = tuple(
            Part(self.pod_class(key), declared, positions, per_node)
            for key, declared, positions, per_node in shape.alike
        )
        known = self._memory.prospect(shape)
        pools = self._memory.pools_of(parts)
        if known is None:
            return Prospect(shape, parts, pools)
        return known.twin(parts, pools)

    def pod_class(self, key: ClassKey) -> PodClass:
        """The copy of a class, on the copy of its pool."""
        key = self._memory.in_books(key)
        twin = self._classes.get(key)
        if twin is None:
            known, pool = self._memory.pod_class(key), self._pool(key.constraint)
            twin = PodClass(key, pool, self._ledger.log) if known is None else known.twin(pool)
            self._classes[key] = twin
        return twin

    def _pool(self, constraint: Constraint) -> Pool:
        twin = self._pools.get(constraint)
        if twin is None:
            known = self._memory.pool(constraint)
            twin = self._survey(constraint) if known is None else known.twin()
            self._pools[constraint] = twin
        return twin

    def _survey(self, constraint: Constraint) -> Pool:
        """The nodes of a constraint without a pool; no pool is registered for it."""
        pool = Pool(partial(admitted, constraint))
        pool.survey(self._ledger.worth_asking(constraint))
        return pool
