"""The settings on which decisions depend; other times and bounds are in bounds.py."""

from enum import StrEnum

from mcad.core.state.bounds import BINDING_WAIT, SCALE_UP_TIMEOUT
from mcad.core.state.records import Struct
from mcad.core.state.units import SECOND, Duration


class Fit(StrEnum):
    """How capacity is judged."""

    NODES = "nodes"  # the gang on nodes
    AGGREGATE = "aggregate"  # sums, as MCAD does


class Policy(StrEnum):
    """The effect of a refused AppWrapper on the AppWrappers behind it."""

    BEST_EFFORT_FIFO = "BestEffortFIFO"
    STRICT_FIFO = "StrictFIFO"
    BACKFILL = "Backfill"


class Fairness(StrEnum):
    """The share in use that counts before the arrival of an AppWrapper (R12)."""

    NONE = "none"
    NAMESPACE = "namespace"
    LEAF = "leaf"


class Settings(Struct, frozen=True):
    """The settings on which decisions depend."""

    fit: Fit = Fit.NODES
    policy: Policy = Policy.BEST_EFFORT_FIFO
    fairness: Fairness = Fairness.NONE
    backoff: Duration = 20 * SECOND
    head_of_line_holding: Duration = 0
    reservation_timeout: Duration = 300 * SECOND
    placement_timeout: Duration = 300 * SECOND
    binding_wait: Duration = BINDING_WAIT  # 0 is never, for dry runs; users cannot set it
    protect_after: Duration = 600 * SECOND  # first in line without room until reserved; 0 is never
    preemption: bool = False  # evictions for a higher priority (R10)
    reclaim: bool = True  # evictions for a share that others borrow (R10)
    min_run_time: Duration = 300 * SECOND  # before an AppWrapper may be evicted
    preemption_grace: Duration = 0  # between the announcement of an eviction and its begin
    max_evictions_per_minute: int = 10  # of the whole cluster; 0 is no limit
    quota_grace: Duration = 0  # how long a deleted QuotaSubtree counts; 0 if quotas do not count
    topology_levels: tuple[str, ...] = ()  # node labels, those of the widest domains first
    max_priority: tuple[tuple[str, int], ...] = ()  # (namespace, ceiling); ``*`` is all others
    scale_up: bool = False  # ask an autoscaler for missing nodes
    scale_up_concurrent: int = 5  # AppWrappers that wait for new nodes at a time
    scale_up_timeout: Duration = SCALE_UP_TIMEOUT
    startup_taints: tuple[str, ...] = ()  # keys; a node with one of them is not usable yet

    @property
    def asks_for_nodes(self) -> bool:
        """Whether an autoscaler is asked for nodes; where only sums count none can be."""
        return self.scale_up and self.fit is Fit.NODES
