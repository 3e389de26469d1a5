"""Copies of what a capacity remembers of shapes, for questions that must leave no trace.

Pools, classes and prospects are copied when a question first touches them, and what the question
makes the copies remember is gone with them. They are good until the next event.
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
    """Twins of prospects, of their classes and of their pools, one of each."""

    def __init__(self, ledger: Ledger, memory: Memory) -> None:
        self._ledger = ledger
        self._memory = memory
        self._pools: dict[Constraint, Pool] = {}
        self._classes: dict[ClassKey, PodClass] = {}
        self._prospects: dict[Shape, Prospect] = {}

    def prospect(self, shape: Shape) -> Prospect:
        """The shape's prospect, whether it has a holder or not."""
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
        """The twin of a class, on the twin of its pool."""
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
        """The nodes of a constraint without a pool; no node will know of this one."""
        pool = Pool(partial(admitted, constraint))
        pool.survey(self._ledger.worth_asking(constraint))
        return pool
