"""How an AppWrapper waits, as a table: (state, signal) -> state.

A waiting AppWrapper is in line, or out of it for one reason. In line it shares the verdict of its
equivalence class, so that a verdict on thousands of equal AppWrappers changes one field. A pair
that is not in the table is a fault of the dispatcher. It is in docs/reference/lifecycle.md.
"""

from __future__ import annotations

from enum import StrEnum

from mcad.core.state.violations import InvariantViolated


class WaitingState(StrEnum):
    """Where an AppWrapper is while its phase is ``waiting``; ``OUT`` in every other phase."""

    OUT = "out"
    IN_LINE = "in-line"  # its equivalence class has the verdict
    RESERVED = "reserved"  # room is reserved for it, and not free yet
    ON_HOLD = "on-hold"  # its manifest, a right, a kind or a name keeps it out of the line
    PAUSED = "paused"  # for a time, after a failed attempt


class WaitingSignal(StrEnum):
    """The events that change where an AppWrapper waits."""

    LINE_UP = "line-up"
    RESERVE = "reserve"
    HOLD = "hold"
    PAUSE = "pause"
    LEAVE = "leave"


WAITING: dict[tuple[WaitingState, WaitingSignal], WaitingState] = {
    (WaitingState.OUT, WaitingSignal.LINE_UP): WaitingState.IN_LINE,
    (WaitingState.OUT, WaitingSignal.RESERVE): WaitingState.RESERVED,
    (WaitingState.OUT, WaitingSignal.HOLD): WaitingState.ON_HOLD,
    (WaitingState.OUT, WaitingSignal.PAUSE): WaitingState.PAUSED,
    (WaitingState.IN_LINE, WaitingSignal.RESERVE): WaitingState.RESERVED,
    (WaitingState.IN_LINE, WaitingSignal.HOLD): WaitingState.ON_HOLD,
    **{(state, WaitingSignal.LEAVE): WaitingState.OUT for state in WaitingState},
}


def waiting(title: str, state: WaitingState, signal: WaitingSignal) -> WaitingState:
    """The next state of an AppWrapper, or ``InvariantViolated``."""
    following = WAITING.get((state, signal))
    if following is None:
        raise InvariantViolated("waits-by-the-table", f"{title}: {signal} while {state}")
    return following
