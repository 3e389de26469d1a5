"""docs/reference/lifecycle.md: the phases of an AppWrapper, and why it waits."""

from __future__ import annotations

from collections.abc import Iterator

from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import LEFT_ALONE, RETAINING, TABLE, TEARING_DOWN, Phase, Signal
from mcad.core.state.model import Dialect, DispatchPhase, DispatchRecord, Next
from mcad.core.state.waiting_reason import WaitingReason
from mcad.core.state.waiting_state import WAITING
from mcad.core.status.status import derive
from tests.core.builders import appwrapper
from tests.documents.pages import DOCS

PAGE = DOCS / "reference" / "lifecycle.md"

MEANING = {
    Signal.RESERVED: "all of it fits: its room is reserved",
    Signal.INTENT_WRITTEN: "the intent is recorded in status",
    Signal.INTENT_REFUSED: "the object was changed first",
    Signal.ALL_EXIST: "every item is created",
    Signal.CONFIRMED: "that is recorded in status, or its end is about to be",
    Signal.COMPLETE: "every item is finished and no pod runs",
    Signal.KEEP: "it failed and is kept to be looked at",
    Signal.TAKE_BACK: "its attempt ends",
    Signal.TEARDOWN_WRITTEN: "the teardown is recorded in status",
    Signal.ALL_DELETED: "every deletion is accepted",
    Signal.NOTHING_LEFT: "a live list finds no object and no pod",
    Signal.REQUEUED: "a live list finds no object and no pod: it queues again",
    Signal.SETTLED_RESET: "recorded: it is tried again",
    Signal.SETTLED_COMPLETED: "recorded: its time to live is over",
    Signal.SETTLED_FAILED: "recorded: it has failed",
    Signal.SETTLED_DELETED: "recorded: it is given up",
    Signal.RETRY: "the pause is over, its room is still there",
    Signal.RETRY_REFUSED: "the object was changed first",
    Signal.GIVE_UP_ROOM: "suspended, edited, or its node is gone",
    Signal.ERROR: "the dispatcher has an error of its own about it",
    Signal.OBJECT_GONE: "the AppWrapper is deleted",
}

_FROM_ANY = {Signal.ERROR: Phase.HELD, Signal.OBJECT_GONE: Phase.GONE}
"""From any phase but itself, and from ``gone`` to no other."""

_RECORDED = {
    Phase.CREATING: DispatchPhase.CREATING,
    Phase.KEEPING: DispatchPhase.KEEPING,
    Phase.PAUSING: DispatchPhase.PAUSED,
    **dict.fromkeys(TEARING_DOWN, DispatchPhase.UNDEPLOYING),
}


def generated() -> str:
    """The generated part of the page."""
    return "\n".join(
        (*_diagram(), "", *_transitions(), "", *_words(), "", *_waiting(), *_reasons(), "")
    )


def _diagram() -> Iterator[str]:
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield "    [*] --> waiting"
    for (start, signal), end in TABLE.items():
        if signal not in _FROM_ANY:
            yield f"    {start} --> {end}: {signal}"
    yield "```"


def _transitions() -> Iterator[str]:
    yield "| phase | what happens | signal | next phase |"
    yield "|---|---|---|---|"
    for (start, signal), end in TABLE.items():
        if signal not in _FROM_ANY:
            yield f"| {start} | {MEANING[signal]} | `{signal}` | {end} |"
    for signal, end in _FROM_ANY.items():
        yield f"| any | {MEANING[signal]} | `{signal}` | {end} |"


def _words() -> Iterator[str]:
    yield "| phase | `status.state` | `status.phase` (v1beta2) |"
    yield "|---|---|---|"
    for phase in Phase:
        if phase not in (Phase.GONE, *LEFT_ALONE) and phase not in TEARING_DOWN:
            view = derive(_example(phase, Next.QUEUED))
            yield f"| {phase} | {view.state} | {view.phase} |"
    for then in Next:
        views = {(v.state, v.phase) for v in (derive(_example(p, then)) for p in TEARING_DOWN)}
        ((state, word),) = views  # the same in all of a teardown
        yield f"| a teardown that ends in *{then}* | {state} | {word} |"
        held = derive(_example(Phase.DELETING, then, suspended=True))
        if held.phase != word:
            yield f"| the same, and suspended meanwhile | {held.state} | {held.phase} |"
    leaving = {
        derive(_example(p, Next.QUEUED, deleting=True)).phase for p in RETAINING - {Phase.HELD}
    }
    (word,) = leaving
    yield f"| any in which there are objects, and it is deleted after them | as before | {word} |"


def _waiting() -> Iterator[str]:
    """How a waiting AppWrapper moves."""
    yield from ("| an AppWrapper waits | signal | then |", "|---|---|---|")
    yield from (f"| {state} | `{signal}` | {then} |" for (state, signal), then in WAITING.items())


def _reasons() -> Iterator[str]:
    """The code is the word in the condition, in metrics and under ``waitsFor``."""
    yield "| an AppWrapper waits, by the code | AppWrappers behind may wait for it | what ends it |"
    yield "|---|---|---|"
    for reason in WaitingReason:
        yield f"| `{reason}` | {'yes' if reason.blocks else 'no'} | {reason.ends} |"


def _example(phase: Phase, then: Next, **changes: bool) -> Entry:
    work = appwrapper("example", (), (), dialect=Dialect.V1BETA2, **changes)
    recorded = _RECORDED.get(phase, DispatchPhase.DISPATCHED)
    record = DispatchRecord(1, 1, recorded, "", (), 0, next=then)
    return Entry(work, 0, phase=phase, dispatch=record)
