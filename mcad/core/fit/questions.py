"""Questions from people: the verdict that the cycle would give now. No answer changes a later one.

A question looks at what the cycle remembers and adds nothing to it: neither nodes looked at, nor
nodes sorted, nor changes read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mcad.core.assumed.unplaced import UnplacedPods
from mcad.core.fit.domains import Domains
from mcad.core.fit.feasible import Prospect
from mcad.core.fit.fit import Judge
from mcad.core.fit.shape_cache import Memory
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.pod_signature import UNBOUNDED, PodClass
from mcad.core.nodes.pools import Row
from mcad.core.nodes.shape import Shape
from mcad.core.state.refusal import Refusal
from mcad.core.state.settings import Settings


class Questions:
    """Verdicts on remembered shapes, valid until the next event. All questions to one of these
    share the bound of work of one pass."""

    def __init__(
        self,
        settings: Settings,
        ledger: Ledger,
        memory: Memory,
        unplaced_pods: UnplacedPods,
        domains: Domains,
    ) -> None:
        self._memory = memory
        self._judge = Judge(settings, ledger, unplaced_pods, remembers=False)
        self._domains = domains.for_questions(self._judge, self)
        self._prospects: dict[Shape, Prospect] = {}
        self._refusals: dict[Shape, Refusal | None] = {}

    def refusal(self, shape: Shape) -> Refusal | None:
        """Why a gang of this shape does not fit now; None if it does."""
        if shape not in self._refusals:
            found = self._domains.find(self.hold(shape))
            self._refusals[shape] = found if isinstance(found, Refusal) else None
        return self._refusals[shape]

    def would_fit_emptied(self, shape: Shape) -> bool:
        """Whether the gang would fit on an empty cluster, or may for all that is known: without the
        pods and assumed pods of all AppWrappers (R6)."""
        return self._domains.fits_emptied(self.hold(shape)) is not False

    def hold(self, shape: Shape) -> Prospect:
        """A prospect that starts from what is remembered and is dropped with the question."""
        prospect = self._prospects.get(shape)
        if prospect is None:
            # The AppWrapper of a row may have been deleted since: then nothing holds its shape.
            with self._memory.held(shape) as known:
                parts = tuple(part._replace(pods=_Counted(part.pods)) for part in known.parts)
                prospect = self._prospects[shape] = replace(
                    known, parts=parts, variants={}, domain_slots={}
                )
        return prospect


class _Counted(PodClass):
    """A class that counts its slots node by node where the original does not know them."""

    def __init__(self, known: PodClass) -> None:
        super().__init__(known.key, known.pool, known.log)
        rows = known.rows_with_room()
        self._knows_rooms = rows is not None
        self._rows = list(known.pool.rows.values()) if rows is None else rows

    def places(self) -> Iterator[Row]:
        name = self.request[0][0]
        found = [row for row in self._rows if self.slots(row)]
        return iter(sorted(found, key=lambda row: row.free.get(name, 0)))

    def at_most(self) -> int:
        return UNBOUNDED

    def missing(self, replicas: int, *, closely: bool = False) -> int:
        sums = self.pool.total
        for name, n in () if closely or self._knows_rooms else self.request:
            if sums.get(name, 0) // n < replicas:
                return replicas - max(0, sums.get(name, 0) // n)
        missing = replicas
        for row in self._rows:
            if missing <= 0:
                break
            missing -= self.slots(row)
        return max(0, missing)
