"""Every waiting time and bound of the dispatcher that is not a setting, each with its why."""

from dataclasses import dataclass
from enum import StrEnum

from mcad.core.state.answer import Answer
from mcad.core.state.units import SECOND, Duration, Instant

DISPATCHES_PER_PASS = 200
"""A pass must not keep the loop from reading its inbox; it asks for another one (core R5)."""

STEPS_PER_PASS = 50_000
"""Steps of all verdicts of a pass, about a microsecond each: another pass goes on from there."""

HOLD_STEPS = 15
"""What it counts for in a pass to put one AppWrapper on hold."""

REPORTS_PER_PASS = 500
"""Status writes about refusals that one pass may ask for; they give way to dispatches."""

RESTATED_PER_SHAPE = 100
"""How many of a shape's first in line learn that another resource binds them now: a change of
circumstances must not rewrite 100,000 objects. Those further back are told when they are nearer."""

QUOTA_INTERVAL: Duration = SECOND
"""The status of a QuotaSubtree is written at most once in this time, and its tree counted."""

RESTATE_INTERVAL: Duration = 60 * SECOND
"""A refusal is rewritten at most once a minute per AppWrapper (design section 5)."""

RETRY_BASE: Duration = SECOND // 2
RETRY_MAX: Duration = 15 * SECOND
"""Retry of one request whose outcome is unknown or transient."""

NAME_GRACE: Duration = 300 * SECOND
"""How long an attempt waits for a name whose holder is on its way out (protocol P6 ii)."""

CREATION_BACKOFF_BASE: Duration = 10 * SECOND
CREATION_BACKOFF_MAX: Duration = 300 * SECOND
CREATION_ATTEMPTS_MAX = 6
"""After an admission plugin or a ResourceQuota refused an item: wait, exponentially, then give up.
Six attempts span about ten minutes, in which a quota is usually raised or freed."""

REFUSED_WRITE_RETRY: Duration = 60 * SECOND
"""A request that the server refuses outright (403, 422) is a fault of the installation: it is
repeated ever more slowly, up to this, so that mending the installation is enough."""

DENIALS_BORNE = 3
"""An API server that has just started refuses everything with 403 until it has read the roles: that
passes within seconds. So many refusals in a row are met with nothing but another try."""

RIGHT_TEST_BASE: Duration = 5 * SECOND
RIGHT_TEST_MAX: Duration = 60 * SECOND
"""How soon a right that is missing is asked for again: a slip is mended soon, or not for hours."""

LOOK_BASE: Duration = 5 * SECOND
LOOK_MAX: Duration = 300 * SECOND
"""Live lists of a teardown when no watch event told that something is gone, ever more slowly."""


READS_PER_SECOND = 50
"""Live reads of items that no watch has told of: they share the lane of the dispatches."""


@dataclass(slots=True)
class PerSecond:
    """A bound on how often something is done in a second."""

    most: int
    second: int = 0
    count: int = 0

    def take(self, now: Instant) -> bool:
        """Whether it may be done once more."""
        second = now // SECOND
        self.count = 1 + (self.count if second == self.second else 0)
        self.second = second
        return self.count <= self.most


class Look(StrEnum):
    """At what is looked now and then, however often is decided."""

    RESERVATIONS = "reservations"  # whether there is room elsewhere, and what is still in the way
    BACKFILL = "backfill"  # which others may use what is reserved and free
    EVICTIONS = "evictions"  # for which AppWrappers others may be evicted


LOOKS: dict[Look, Duration] = {
    Look.RESERVATIONS: 10 * SECOND,
    Look.BACKFILL: 20 * SECOND,
    Look.EVICTIONS: SECOND,
}
"""At most so often. Slurm looks for backfill every 30 s (``bf_interval``)."""

FIRSTS_LOOK: Duration = 30 * SECOND
"""How often, with the policy Backfill, the present first in line gets a date; at once if a
reservation ended."""

BACKFILL_TRIES = 20
"""How many it is offered to at a time: each costs a look at every node."""

BACKFILL_MEMBERS = 20
"""Of equal shapes so many, the first, are asked whether one of them is gone in time."""

AVOIDED_MAX = 128
"""Names of nodes that a pod template is told to keep off: each takes 60 bytes of it."""

OUTRANKING_TRIED = 20
"""How many of a higher priority are asked whether they want reserved room that is free; each costs
a look at every node."""

FIRSTS_MAX = 8
"""Reservations that may stand at a time before no other is protected."""

FIRSTS_LOOKED_AT = 2_000
"""Shapes of which it is asked whether their first is first in line for its nodes."""

OWNERS_MAX = 64
"""How many may keep borrowers waiting at a time: all are looked at in every pass in which one would
borrow."""

RESERVATION_TRIES_MAX = 8
"""A reservation without a date lasts twice as long as the one before, up to 2^8 times
``protectAfter``: a day and a half by default."""

EVICTION_STEPS = 20_000
"""Work of plans at a time, about a microsecond each; one more is begun as long as any is left."""

RUN_TIME_DOUBLES_MAX = 6
"""One that was evicted this often or more runs 64 times ``minRunTime`` at least: 5 hours by
default."""

START_TIMES_AHEAD = 100
START_TIMES_STEPS = 30_000
"""How many in line are looked at for a start time estimate, and with how much work, about a
microsecond each: people ask, and the loop has other things to do."""

STUCK_AFTER: Duration = 60 * SECOND
"""When a teardown that waits for objects to go says for which: by default pods get 30 s to end."""

TEARDOWN_MARGIN: Duration = 30 * SECOND
"""What a teardown takes besides the grace period of its pods: status writes, deletions, lists."""

COMMIT_GRACE: Duration = 75 * SECOND
"""How long a create without an answer may still be committed: kube-apiserver gives up on a request
after 60 s (its ``--request-timeout``); the rest is for the way there."""

LEFTOVERS_PART = 10
"""Pods without a node, of AppWrappers that are not known, keep at most one part in so many of what
the nodes have, for each namespace: any tenant may write the labels that make them such pods."""

TOMBSTONE_GRACE: Duration = 600 * SECOND
"""The longest time that the remains of a deleted AppWrapper hold room (protocol P9)."""

TOMBSTONE_LOOK: Duration = 30 * SECOND
"""What was created and not observed since is looked for after this long: the watch of its kind may
have had a gap in which it came and went."""


def backoff(failures: int, base: Duration, ceiling: Duration) -> Duration:
    """Exponential, saturating: ``base`` after the first failure, never above ``ceiling``."""
    return min(ceiling, base << min(max(failures - 1, 0), 20))


def is_denial(answer: Answer) -> bool:
    """Whether the server understood and will not, whatever we do."""
    return 400 <= answer.status < 500 and answer.status not in (401, 408, 409, 429)


@dataclass(slots=True)
class Tries:
    """Requests for one thing that failed in a row: ``denials`` those that were refused outright."""

    failures: int = 0
    denials: int = 0

    def pause(self, answer: Answer, *, count: bool = True) -> Duration:
        """One more has failed (unless it is not to ``count``): how long to wait with the next."""
        if is_denial(answer):
            self.denials += count
            return backoff(self.denials, RETRY_BASE, REFUSED_WRITE_RETRY)
        self.failures += count
        return max(answer.retry_after, backoff(self.failures, RETRY_BASE, RETRY_MAX))

    def is_lasting(self, answer: Answer) -> bool:
        """Whether this is the refusal by which it is clear that it does not pass by itself."""
        return is_denial(answer) and self.denials == DENIALS_BORNE + 1
