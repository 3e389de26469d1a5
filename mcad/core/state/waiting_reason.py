"""Why an AppWrapper waits: each reason is declared once, with its code, what ends it and its text.

docs/reference/lifecycle.md shows them as a table, which is generated from here.
"""

from __future__ import annotations

from enum import StrEnum

from mcad.core.state.records import Struct


class Ends(StrEnum):
    """What ends a wait."""

    ROOM = "room or quota comes free"
    CAPACITY = "nodes or quotas change"
    TURN = "the AppWrapper ahead starts or leaves"
    EVENT = "the kind, the name or the right becomes available"
    INSTANT = "its pause is over"
    MANIFEST = "the AppWrapper is edited, or its kind is installed"
    RESUME = "dispatch is resumed"


class WaitingReason(StrEnum):
    """The value is the code: the word in conditions, metrics and ``waitsFor`` of the CLI.

    ``text`` has the figures of a refusal in place of ``{figures}``; it is "" where the place that
    finds the reason has more to say.
    """

    ends: Ends
    text: str

    def __new__(cls, code: str, ends: Ends, text: str = "") -> WaitingReason:
        """A member by its code alone."""
        one = str.__new__(cls, code)
        one._value_, one.ends, one.text = code, ends, text
        return one

    # Verdicts on nodes: the sum of free room is too small; the sum suffices, the nodes do not; no
    # node admits the pods; a pod is larger than any node; the exact search ran out of its budget.
    INSUFFICIENT = "insufficient", Ends.ROOM, "{figures}"
    FRAGMENTED = (
        "fragmented",
        Ends.ROOM,
        "The sum suffices, but no placement on nodes does. {figures}",
    )
    NO_NODE = (
        "no-node",
        Ends.CAPACITY,
        "No node admits its pods: look at node selectors, taints and readiness.",
    )
    TOO_LARGE = (
        "too-large",
        Ends.CAPACITY,
        "One pod is larger than any node that admits it. {figures}",
    )
    UNDECIDED = (
        "undecided",
        Ends.ROOM,
        "No placement was found within the search budget; retrying.",
    )
    # It fits, but another AppWrapper goes first: the head of the line (R6), or one that asks
    # within its share for what this one would borrow.
    BLOCKED = "blocked", Ends.TURN, "The head of the line goes first."
    LENDING = (
        "lending",
        Ends.TURN,
        "It would borrow room that another AppWrapper waits for within its share.",
    )
    # Verdicts by quota trees, which have texts of their own (quota/explain.py).
    QUOTA = "quota", Ends.ROOM
    ABOVE_QUOTA = "above-quota", Ends.CAPACITY
    NO_LEAF = "no-leaf", Ends.CAPACITY
    # Out of the line.
    KIND_NOT_WATCHED = "KindNotWatched", Ends.EVENT
    WAITING_FOR_NAME = "WaitingForName", Ends.EVENT
    MISSING_RIGHT = "MissingRight", Ends.EVENT
    CREATION_BACKOFF = "CreationBackoff", Ends.INSTANT
    PLACEMENT_BACKOFF = "PlacementBackoff", Ends.INSTANT
    PREEMPTION_TRIGGERED = "PreemptionTriggered", Ends.INSTANT
    ROOM_RESERVED = "RoomReserved", Ends.ROOM
    DISPATCH_PAUSED = "DispatchPaused", Ends.RESUME
    SUSPENDED = "Suspended", Ends.MANIFEST, "spec.suspend is true; set it to false to queue it."
    DELETED = "Terminating", Ends.MANIFEST, "The AppWrapper is being deleted."
    # Faults of the manifest.
    INVALID = "InvalidAppWrapper", Ends.MANIFEST
    NOT_WRAPPED = "KindNotWrapped", Ends.MANIFEST
    NOT_INSTALLED = "KindNotInstalled", Ends.MANIFEST
    NOT_SERVED = "NamespaceNotServed", Ends.MANIFEST
    UNSUPPORTED_DRA = "UnsupportedDRA", Ends.MANIFEST

    @property
    def blocks(self) -> bool:
        """Whether AppWrappers behind may have to wait for it: what comes free may let it start."""
        return self.ends is Ends.ROOM

    @property
    def lets_others_first(self) -> bool:
        """Whether it might fit, and only lets another AppWrapper go first."""
        return self.ends is Ends.TURN

    @property
    def is_impossible(self) -> bool:
        """Whether no release of room will ever let it in, so that it blocks no other."""
        return self.ends is Ends.CAPACITY


HOLDS = {str(one): one for one in WaitingReason if one.ends in {Ends.EVENT, Ends.INSTANT}}
"""By code: holds that the dispatcher finds, and that are on record in the condition alone. Others
follow from the manifest or from ``status.reservation``."""


class Hold(Struct, frozen=True):
    """A reason that keeps an AppWrapper out of the line, with its message.

    ``until`` is the instant at which it is looked at again, 0 if an event ends it.
    """

    reason: WaitingReason
    message: str
    until: int = 0

    @property
    def code(self) -> str:
        """What it waits for, in one word."""
        return self.reason.value
