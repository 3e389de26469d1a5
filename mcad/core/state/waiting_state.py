"""How an AppWrapper waits, as two tables: (state, signal) -> state.

An AppWrapper that waits is in line, or out of it for one reason. In line it shares the state of its
equivalence class, so that a verdict on thousands of equal AppWrappers changes one field. A pair
that is not in its table is a fault of the dispatcher. Both are in docs/reference/lifecycle.md.
"""

from __future__ import annotations

from enum import StrEnum

from mcad.core.state.violations import InvariantViolated


class WaitingState(StrEnum):
    """Where an AppWrapper is while its phase is ``waiting``; ``OUT`` in every other phase."""

    OUT = "out"
    IN_LINE = "in-line"  # its equivalence class says the rest
    RESERVED = "reserved"  # room is reserved for it, and not free yet
    ON_HOLD = "on-hold"  # its manifest, a right, a kind or a name keeps it out of the line
    PAUSED = "paused"  # for a time, after an attempt that came to nothing


class WaitingSignal(StrEnum):
    """What changes where an AppWrapper waits."""

    LINE_UP = "line-up"
    RESERVE = "reserve"
    HOLD = "hold"
    PAUSE = "pause"
    LEAVE = "leave"


class ClassState(StrEnum):
    """The state of all AppWrappers in line that share an equivalence class."""

    ACTIVE = "active"  # the next pass tries its head
    REPRESENTATIVE = "representative"  # active, for all classes of one inadmissible list
    INADMISSIBLE = "inadmissible"  # its verdict stands until something changes


class ClassSignal(StrEnum):
    """What changes the state of an equivalence class."""

    REFUSE = "refuse"
    REQUEUE = "requeue"
    APPOINT = "appoint"
    HAND_OVER = "hand-over"


WAITING: dict[tuple[WaitingState, WaitingSignal], WaitingState] = {
    (WaitingState.OUT, WaitingSignal.LINE_UP): WaitingState.IN_LINE,
    (WaitingState.OUT, WaitingSignal.RESERVE): WaitingState.RESERVED,
    (WaitingState.OUT, WaitingSignal.HOLD): WaitingState.ON_HOLD,
    (WaitingState.OUT, WaitingSignal.PAUSE): WaitingState.PAUSED,
    (WaitingState.IN_LINE, WaitingSignal.RESERVE): WaitingState.RESERVED,
    (WaitingState.IN_LINE, WaitingSignal.HOLD): WaitingState.ON_HOLD,
    **{(state, WaitingSignal.LEAVE): WaitingState.OUT for state in WaitingState},
}

CLASSES: dict[tuple[ClassState, ClassSignal], ClassState] = {
    (ClassState.ACTIVE, ClassSignal.REFUSE): ClassState.INADMISSIBLE,
    (ClassState.REPRESENTATIVE, ClassSignal.REFUSE): ClassState.INADMISSIBLE,
    (ClassState.INADMISSIBLE, ClassSignal.REQUEUE): ClassState.ACTIVE,
    (ClassState.ACTIVE, ClassSignal.APPOINT): ClassState.REPRESENTATIVE,
    (ClassState.REPRESENTATIVE, ClassSignal.HAND_OVER): ClassState.ACTIVE,
}


def waiting(title: str, state: WaitingState, signal: WaitingSignal) -> WaitingState:
    """The next state of an AppWrapper, or ``InvariantViolated``."""
    following = WAITING.get((state, signal))
    if following is None:
        raise InvariantViolated("waits-by-the-table", f"{title}: {signal} while {state}")
    return following


def of_class(story: str, state: ClassState, signal: ClassSignal) -> ClassState:
    """The next state of an equivalence class, or ``InvariantViolated``."""
    following = CLASSES.get((state, signal))
    if following is None:
        raise InvariantViolated("classes-wait-by-the-table", f"{story}: {signal} while {state}")
    return following
