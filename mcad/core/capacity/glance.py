"""Questions from people: the verdict that the judge would give now, given from copies.

Nothing that is asked here changes a later answer: pools, classes and prospects are copied when a
question first touches them, and what the question makes them remember is gone with the glance.
"""

from __future__ import annotations

from functools import partial

from mcad.core.capacity.arrears import Arrears
from mcad.core.capacity.fit import Judge
from mcad.core.capacity.ledger import Ledger
from mcad.core.capacity.memory import Memory, admitted
from mcad.core.capacity.podclass import PodClass
from mcad.core.capacity.pools import Pool
from mcad.core.capacity.ports import without_ports
from mcad.core.capacity.prospects import Part, Prospect
from mcad.core.capacity.shapes import ClassKey, Shape
from mcad.core.model import Constraint, Resources, Settings
from mcad.core.verdicts import Refusal


class Glance:
    """One look at a capacity, to be used until the next event and then thrown away.

    All that is asked of one glance shares the budget of one pass.
    """

    def __init__(
        self, settings: Settings, ledger: Ledger, memory: Memory, arrears: Arrears
    ) -> None:
        self._ledger = ledger
        self._memory = memory
        self._pools: dict[Constraint, Pool] = {}
        self._classes: dict[ClassKey, PodClass] = {}
        self._prospects: dict[Shape, Prospect] = {}
        twins = arrears.twin(lambda pods: self._class(pods.key))
        self._judge = Judge(settings, ledger, twins)

    def refusal(self, shape: Shape) -> Refusal | None:
        """Why a gang of this shape does not fit now; None if it does."""
        return self._judge.refusal(self._prospect(shape))

    def would_fit_emptied(self, shape: Shape) -> bool:
        """Whether it would fit if every AppWrapper's pods and reservations left (R6)."""
        return self._judge.would_fit_emptied(self._prospect(shape))

    def demand(self, shape: Shape) -> Resources:
        """What the whole gang declares now, with the ``pods`` slots and without host ports."""
        if not shape.per_node:
            return shape.fixed
        return without_ports(self._prospect(shape).demand)

    # -- copies --------------------------------------------------------------------------------

    def _prospect(self, shape: Shape) -> Prospect:
        prospect = self._prospects.get(shape)
        if prospect is None:
            prospect = self._prospects[shape] = self._copy(shape)
        return prospect

    def _copy(self, shape: Shape) -> Prospect:
        parts = tuple(
            Part(self._class(key), declared, positions, per_node)
            for key, declared, positions, per_node in shape.alike
        )
        known = self._memory.prospect(shape)
        pools = self._memory.pools_of(parts)
        if known is None:
            return Prospect(shape, parts, pools)
        return known.twin(parts, pools)

    def _class(self, key: ClassKey) -> PodClass:
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
        """The nodes of a constraint that nobody has a pool for; no node will know of this one."""
        pool = Pool(partial(admitted, constraint))
        pool.survey(self._ledger.worth_asking(constraint))
        return pool
