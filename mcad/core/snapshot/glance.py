"""Questions from people: the verdict that would be given now, computed on copies, so that no
question changes a later answer."""

from __future__ import annotations

from mcad.core.assumed.unplaced import UnplacedPods
from mcad.core.fit.fit import Judge
from mcad.core.fit.shape_cache import Memory
from mcad.core.nodes.host_ports import without_ports
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.shape import Shape
from mcad.core.snapshot.copies import Copies
from mcad.core.state.model import Resources
from mcad.core.state.refusal import Refusal
from mcad.core.state.settings import Settings


class Glance:
    """Verdicts for people, valid until the next event. All questions to one glance share the budget
    of one pass."""

    def __init__(
        self, settings: Settings, ledger: Ledger, memory: Memory, unplaced_pods: UnplacedPods
    ) -> None:
        self._copies = Copies(ledger, memory)
        twins = unplaced_pods.twin(lambda pods: self._copies.pod_class(pods.key))
        self._judge = Judge(settings, ledger, twins)

    def refusal(self, shape: Shape) -> Refusal | None:
        """Why a gang of this shape does not fit now; None if it does."""
        return self._judge.refusal(self._copies.prospect(shape))

    def would_fit_emptied(self, shape: Shape) -> bool:
        """Whether the gang would fit on an empty cluster: without the pods and assumed pods of all
        AppWrappers (R6)."""
        return self._judge.would_fit_emptied(self._copies.prospect(shape))

    def demand(self, shape: Shape) -> Resources:
        """What the whole gang declares now, with the ``pods`` slots and without host ports."""
        if not shape.per_node:
            return shape.fixed
        return without_ports(self._copies.prospect(shape).demand)
