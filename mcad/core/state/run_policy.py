"""How an AppWrapper runs after its dispatch, as its user or an administrator has set it."""

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
    (v1beta1's ``schedulingSpec.requeuing``)."""

    wait: Duration = 300 * SECOND  # how long too few pods are allowed
    growth: Growth = Growth.EXPONENTIAL
    wait_max: Duration = 0  # bounds the growing wait; 0 is no bound
    times_max: int = 0  # after this many requeues it fails; 0 is never


AS_DOCUMENTED = Requeuing()
"""MCAD's documented defaults."""

WEEK: Duration = 168 * 3600 * SECOND


class FaultTolerance(Struct, frozen=True):
    """The reaction to an unhealthy AppWrapper, in the terms of v1beta2's annotations.

    After a grace it is reset, at most ``retry_limit`` times, else it fails. It fails at once for
    one of ``terminal_exit_codes``, or for a code outside of ``retryable_exit_codes`` if there are
    any.
    """

    admission_grace: Duration = 60 * SECOND  # while pods are missing
    warmup_grace: Duration = 300 * SECOND  # while not all of them run
    failure_grace: Duration = 60 * SECOND  # while failed pods are not replaced
    retry_pause: Duration = 90 * SECOND  # between the end of its objects and the next attempt
    retry_limit: int = 3
    forceful_deletion_grace: Duration | None = 600 * SECOND  # of its pods; None: never by force
    deletion_on_failure_grace: Duration = 0  # how long failed objects are kept
    success_ttl: Duration | None = WEEK  # how long finished objects are kept; None is for ever
    terminal_exit_codes: tuple[int, ...] = ()
    retryable_exit_codes: tuple[int, ...] = ()


TOLERANT = FaultTolerance()
LENIENT = FaultTolerance(forceful_deletion_grace=None, success_ttl=None)
"""The defaults: for v1beta2, and for v1beta1, which keeps finished objects."""
