"""The life of one AppWrapper as one table: (phase, signal) -> phase.

Both dialects use this table; they differ only in the rules that send signals (health.py,
requeue.py) and in how a phase is rendered (status.py). A pair that is not in the table is our
fault; the exception has the AppWrapper's story. docs/reference/lifecycle.md is generated from it.
"""

from collections.abc import Sequence
from enum import StrEnum


class Phase(StrEnum):
    """The phase of an AppWrapper.

    KEEPING: it has failed, and its objects are kept for a while. PAUSING: it was reset and keeps
    its room. DELETED: it was given up after too many requeues (MCAD's word). GONE: its object is
    deleted, its remains still hold room (P9). HELD: an error of the dispatcher about it keeps it as
    it is (internal_errors.py).
    """

    WAITING = "waiting"
    INTENDING = "intending"
    CREATING = "creating"
    CONFIRMING = "confirming"
    RUNNING = "running"
    COMPLETED = "completed"
    KEEPING = "keeping"
    UNDEPLOYING = "undeploying"
    DELETING = "deleting"
    VERIFYING = "verifying"
    SETTLING = "settling"
    PAUSING = "pausing"
    FAILED = "failed"
    DELETED = "deleted"
    FOREIGN = "foreign"
    HELD = "held"
    GONE = "gone"


class Signal(StrEnum):
    """The events that change a phase."""

    RESERVED = "reserved"
    INTENT_WRITTEN = "intent-written"
    INTENT_REFUSED = "intent-refused"
    ALL_EXIST = "all-exist"
    CONFIRMED = "confirmed"
    COMPLETE = "complete"
    KEEP = "keep"
    TAKE_BACK = "take-back"
    TEARDOWN_WRITTEN = "teardown-written"
    ALL_DELETED = "all-deleted"
    NOTHING_LEFT = "nothing-left"
    REQUEUED = "requeued"
    SETTLED_RESET = "settled-reset"
    SETTLED_COMPLETED = "settled-completed"
    SETTLED_FAILED = "settled-failed"
    SETTLED_DELETED = "settled-deleted"
    RETRY = "retry"
    RETRY_REFUSED = "retry-refused"
    GIVE_UP_ROOM = "give-up-room"
    ERROR = "error"
    OBJECT_GONE = "object-gone"


TABLE: dict[tuple[Phase, Signal], Phase] = {
    (Phase.WAITING, Signal.RESERVED): Phase.INTENDING,
    (Phase.INTENDING, Signal.INTENT_WRITTEN): Phase.CREATING,
    (Phase.INTENDING, Signal.INTENT_REFUSED): Phase.WAITING,
    (Phase.CREATING, Signal.ALL_EXIST): Phase.CONFIRMING,
    (Phase.CREATING, Signal.TAKE_BACK): Phase.UNDEPLOYING,
    (Phase.CONFIRMING, Signal.CONFIRMED): Phase.RUNNING,
    (Phase.RUNNING, Signal.COMPLETE): Phase.COMPLETED,
    (Phase.RUNNING, Signal.TAKE_BACK): Phase.UNDEPLOYING,
    (Phase.RUNNING, Signal.KEEP): Phase.KEEPING,
    (Phase.KEEPING, Signal.TAKE_BACK): Phase.UNDEPLOYING,
    (Phase.COMPLETED, Signal.TAKE_BACK): Phase.UNDEPLOYING,
    (Phase.UNDEPLOYING, Signal.TEARDOWN_WRITTEN): Phase.DELETING,
    (Phase.DELETING, Signal.ALL_DELETED): Phase.VERIFYING,
    (Phase.VERIFYING, Signal.REQUEUED): Phase.WAITING,
    (Phase.VERIFYING, Signal.NOTHING_LEFT): Phase.SETTLING,
    (Phase.SETTLING, Signal.SETTLED_RESET): Phase.PAUSING,
    (Phase.SETTLING, Signal.SETTLED_COMPLETED): Phase.COMPLETED,
    (Phase.SETTLING, Signal.SETTLED_FAILED): Phase.FAILED,
    (Phase.SETTLING, Signal.SETTLED_DELETED): Phase.DELETED,
    (Phase.PAUSING, Signal.RETRY): Phase.INTENDING,
    (Phase.INTENDING, Signal.RETRY_REFUSED): Phase.PAUSING,
    (Phase.PAUSING, Signal.GIVE_UP_ROOM): Phase.WAITING,
    **{(one, Signal.ERROR): Phase.HELD for one in Phase if one not in (Phase.HELD, Phase.GONE)},
    **{(phase, Signal.OBJECT_GONE): Phase.GONE for phase in Phase if phase is not Phase.GONE},
}

RETAINING = frozenset(
    {
        Phase.CREATING,
        Phase.CONFIRMING,
        Phase.RUNNING,
        Phase.COMPLETED,
        Phase.KEEPING,
        Phase.FOREIGN,
        Phase.HELD,
    }
)
"""Phases in which objects of the recorded attempt are rightly there (protocol P7)."""

TEARING_DOWN = frozenset({Phase.UNDEPLOYING, Phase.DELETING, Phase.VERIFYING, Phase.SETTLING})


LEFT_ALONE = frozenset({Phase.FOREIGN, Phase.HELD})
"""Phases in which nothing is done about its objects."""

ENDED = frozenset({Phase.COMPLETED, Phase.FAILED, Phase.DELETED})
"""Phases that last until the AppWrapper is deleted."""


class InvalidTransitionError(Exception):
    """A signal came in a phase in which it makes no sense; has the story so far."""

    def __init__(self, title: str, phase: Phase, signal: Signal, story: Sequence[str]) -> None:
        super().__init__(f"{title}: {signal} while {phase}; story: {' > '.join(story)}")


def transition(title: str, phase: Phase, signal: Signal, story: Sequence[str]) -> Phase:
    """The next phase, or InvalidTransitionError."""
    try:
        return TABLE[phase, signal]
    except KeyError:
        raise InvalidTransitionError(title, phase, signal, story) from None
