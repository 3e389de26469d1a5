"""The settings that decisions depend on; every time and bound that is none stands in bounds.py."""

from enum import StrEnum

from mcad.core.state.model import Resources
from mcad.core.state.records import Struct
from mcad.core.state.units import SECOND, Duration


class Fit(StrEnum):
    """How capacity is judged: the gang on nodes, or MCAD's plain sum."""

    NODES = "nodes"
    AGGREGATE = "aggregate"


class Policy(StrEnum):
    """What a refused AppWrapper does to those behind it."""

    BEST_EFFORT_FIFO = "BestEffortFIFO"
    STRICT_FIFO = "StrictFIFO"
    BACKFILL = "Backfill"


class Fairness(StrEnum):
    """Whose share in use counts before the time at which an AppWrapper came (R12)."""

    NONE = "none"
    NAMESPACE = "namespace"
    LEAF = "leaf"


class Settings(Struct, frozen=True):
    """What decisions depend on; durations in microseconds.

    ``max_priority`` holds (namespace, ceiling), ``*`` for all others (see priority_ceiling.py).
    ``protect_after`` is for how long an AppWrapper may be first in line in vain, 0 for ever (R8).
    ``preemption`` and ``reclaim`` permit evictions: for a higher priority, and for a share that
    others borrow (R10). ``min_run_time`` is how long a dispatched one runs at least before
    that, and ``preemption_grace`` how long an eviction is told before it begins;
    ``max_evictions_per_minute`` is of the whole cluster, 0 for no limit.
    ``quota_grace`` is for how long a QuotaSubtree that was deleted counts as before; 0 where quota
    trees do not count.
    ``pod_counts_interval`` is how old status may let pod counts become; 0 writes final ones only.
    """

    fit: Fit = Fit.NODES
    policy: Policy = Policy.BEST_EFFORT_FIFO
    fairness: Fairness = Fairness.NONE
    backoff: Duration = 20 * SECOND
    head_of_line_holding: Duration = 0
    reservation_timeout: Duration = 300 * SECOND
    placement_timeout: Duration = 300 * SECOND
    pod_counts_interval: Duration = 30 * SECOND
    protect_after: Duration = 600 * SECOND
    preemption: bool = False
    reclaim: bool = True
    min_run_time: Duration = 300 * SECOND
    preemption_grace: Duration = 0
    max_evictions_per_minute: int = 10
    quota_grace: Duration = 0
    potential_capacity: Resources = ()
    max_priority: tuple[tuple[str, int], ...] = ()
