"""When to try again: Retry-After, backoff, and the loop around one idempotent or safe attempt.

It must not retry a write whose outcome is unknown: repeating that is a decision (P5).
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import Random
from typing import TypeVar

from msgspec import Struct

from mcad.kube.clock import Clock
from mcad.kube.errors import RETRY_AFTER_S_MAX, ApiError, KubeError

ATTEMPT_S_MIN = 0.05  # with less than this left, an attempt could only time out

T = TypeVar("T")
Policy = Callable[[KubeError], bool]
"""Which errors are worth another attempt."""


def parse_retry_after(value: str | None, now_us: int) -> float | None:
    """Seconds to wait that a Retry-After header asks for: a number or an HTTP date (RFC 9110).

    ``now_us`` is wall-clock microseconds. None where there is no header or no sense in it.
    """
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        # int() refuses thousands of digits with a ValueError, so length is checked first.
        return RETRY_AFTER_S_MAX if len(text) > 9 else min(float(text), RETRY_AFTER_S_MAX)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    try:
        seconds = (date - datetime.fromtimestamp(now_us / 1e6, UTC)).total_seconds()
    except (ValueError, OverflowError, OSError):
        return None
    return min(max(seconds, 0.0), RETRY_AFTER_S_MAX)


class Pace(Struct, frozen=True):
    """How delays grow. ``jitter`` 1.0 means up to twice the delay: watchers must not march."""

    first_s: float
    max_s: float
    factor: float = 2.0
    jitter: float = 1.0
    reset_after_s: float = 120.0  # without a failure


RETRY_PACE = Pace(first_s=0.1, max_s=5.0)
WATCH_PACE = Pace(first_s=0.8, max_s=30.0)  # client-go's reflector


class Backoff:
    """Delays that grow per failure and are forgotten after a quiet time."""

    def __init__(self, clock: Clock, rng: Random, pace: Pace) -> None:
        """The first delay is ``pace.first_s`` with jitter."""
        self._clock = clock
        self._rng = rng
        self._pace = pace
        self._next_s = pace.first_s
        self._quiet_since = clock.monotonic()

    def delay(self, at_least: float | None = None) -> float:
        """Seconds to wait after the failure that just happened; ``at_least`` is Retry-After."""
        now, pace = self._clock.monotonic(), self._pace
        if now - self._quiet_since > pace.reset_after_s:
            self._next_s = pace.first_s
        base = self._next_s
        self._next_s = min(base * pace.factor, pace.max_s)
        delay = max(base * (1.0 + pace.jitter * self._rng.random()), at_least or 0.0)
        # Quiet time starts when the wait ends, otherwise a long Retry-After would count as health.
        self._quiet_since = now + delay
        return delay


def idempotent(error: KubeError) -> bool:
    """Retry policy of reads: whatever may pass."""
    return error.transient


def never(error: KubeError) -> bool:  # noqa: ARG001 - it has the shape of a policy
    """Retry policy of callers that have a backoff of their own."""
    return False


def not_processed(error: KubeError) -> bool:
    """Retry policy of writes: only where the server itself says so and when to come back."""
    return isinstance(error, ApiError) and error.throttled and error.retry_after is not None


class Retrier:
    """Repeats one attempt within a budget of time."""

    def __init__(self, clock: Clock, rng: Random, pace: Pace = RETRY_PACE) -> None:
        """``pace`` is that of the waits between attempts."""
        self._clock = clock
        self._rng = rng
        self._pace = pace

    async def run(
        self,
        attempt: Callable[[float], Awaitable[T]],
        *,
        again: Policy,
        budget_s: float,
        attempt_s: float | None = None,
    ) -> T:
        """The first success of ``attempt(timeout_s)`` within ``budget_s``, waits included.

        ``attempt_s`` bounds one attempt. When the budget does not allow another one, the last
        error is raised as it is.
        """
        deadline = self._clock.monotonic() + budget_s
        backoff = Backoff(self._clock, self._rng, self._pace)
        left = budget_s
        while True:
            try:
                return await attempt(left if attempt_s is None else min(attempt_s, left))
            except KubeError as error:
                if not again(error):
                    raise
                delay = backoff.delay(error.retry_after)
                left = deadline - self._clock.monotonic() - delay
                if left < ATTEMPT_S_MIN:
                    raise
            await self._clock.sleep(delay)
