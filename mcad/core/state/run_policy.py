"""How an AppWrapper lives after its dispatch: what its user or an administrator set."""

from enum import StrEnum

from mcad.core.state.records import Struct
from mcad.core.state.units import SECOND, Duration


class Growth(StrEnum):
    """How the wait before a requeue grows from one to the next."""

    EXPONENTIAL = "exponential"
    LINEAR = "linear"
    NONE = "none"


class Requeuing(Struct, frozen=True):
    """When an AppWrapper with fewer pods than ``minAvailable`` is taken back and queues again
    (v1beta1's ``schedulingSpec.requeuing``).

    ``wait`` is how long it may have too few; ``wait_max`` bounds the growing wait, 0 is no bound.
    After ``times_max`` requeues it is given up, 0 is never.
    """

    wait: Duration = 300 * SECOND
    growth: Growth = Growth.EXPONENTIAL
    wait_max: Duration = 0
    times_max: int = 0


AS_DOCUMENTED = Requeuing()
"""What MCAD documents for AppWrappers that say nothing of it."""

WEEK: Duration = 168 * 3600 * SECOND


class FaultTolerance(Struct, frozen=True):
    """What happens when something that runs breaks, in the terms of v1beta2's annotations.

    Graces are how long a state is borne: ``admission_grace`` that pods are missing,
    ``warmup_grace`` that not all of them run, ``failure_grace`` that failed ones are not replaced.
    Then it is reset, ``retry_pause`` after nothing of it is left, at most ``retry_limit`` times,
    else it fails; at once for one of ``terminal_exit_codes``, or one that is not among
    ``retryable_exit_codes`` if there are any. ``forceful_deletion_grace`` is how long pods may take
    to go before they are deleted by force; None is never. What failed is kept for
    ``deletion_on_failure_grace``, and what succeeded for ``success_ttl``; None is for ever.
    """

    admission_grace: Duration = 60 * SECOND
    warmup_grace: Duration = 300 * SECOND
    failure_grace: Duration = 60 * SECOND
    retry_pause: Duration = 90 * SECOND
    retry_limit: int = 3
    forceful_deletion_grace: Duration | None = 600 * SECOND
    deletion_on_failure_grace: Duration = 0
    success_ttl: Duration | None = WEEK
    terminal_exit_codes: tuple[int, ...] = ()
    retryable_exit_codes: tuple[int, ...] = ()


TOLERANT = FaultTolerance()
LENIENT = FaultTolerance(forceful_deletion_grace=None, success_ttl=None)
"""What holds by default: for v1beta2, and for v1beta1, which keeps what is finished."""
