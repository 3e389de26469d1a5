"""Questions from users: the verdict that the cycle would give now. No answer changes another."""

from __future__ import annotations

from dataclasses import replace

from mcad.core.assumed.unplaced import UnplacedPods
from mcad.core.fit.domains import Domains
from mcad.core.fit.fit import Judge
from mcad.core.fit.memory import Memory
from mcad.core.fit.prospect import Prospect
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.shape import Shape
from mcad.core.state.refusal import Refusal
from mcad.core.state.settings import Settings


class Questions:
    """Verdicts on shapes, valid until the next event. All questions to one instance share the work
    bound of one pass."""

    def __init__(
        self,
        settings: Settings,
        ledger: Ledger,
        memory: Memory,
        unplaced_pods: UnplacedPods,
        domains: Domains,
    ) -> None:
        self._memory = memory
        self._judge = Judge(settings, ledger, unplaced_pods, memory.bounds, remembers=False)
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
        """Whether the gang would fit without the pods and assumed pods of all AppWrappers (R6), or
        may as far as is known."""
        return self._domains.fits_emptied(self.hold(shape)) is not False

    def hold(self, shape: Shape) -> Prospect:
        """A prospect that starts from the remembered findings and is dropped with the question."""
        prospect = self._prospects.get(shape)
        if prospect is None:
            # The AppWrapper of a row may have been deleted since: then its shape has no holder.
            prospect = replace(self._memory.hold_for_questions(shape), variants={})
            self._prospects[shape] = prospect
        return prospect
