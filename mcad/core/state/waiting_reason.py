"""Why an AppWrapper waits: each reason is declared once, with its code, its end and its texts.

docs/reference/lifecycle.md and conditions.md show them in tables, which are generated from here.
"""

from __future__ import annotations

from enum import StrEnum

from mcad.core.state.records import Struct


class Ends(StrEnum):
    """What ends a wait."""

    ROOM = "room or quota comes free"
    CAPACITY = "nodes or quotas change"
    NODES = "the nodes that it asked for come"
    TURN = "the AppWrapper ahead starts or leaves"
    EVENT = "the kind, the name or the right becomes available"
    INSTANT = "its pause is over"
    MANIFEST = "the AppWrapper is edited, or a setting or the installed kinds change"
    RESUME = "dispatch is resumed"


class WaitingReason(StrEnum):
    """The value is the code: the word in conditions, metrics and ``waitsFor`` of the CLI.

    ``meaning`` is for the reference. ``text`` has the figures of a refusal in place of
    ``{figures}``, and the obstacle of nodes in place of ``{obstacle}``; it is "" where the place
    that finds the reason adds more.
    """

    ends: Ends
    meaning: str
    text: str

    def __new__(cls, code: str, ends: Ends, meaning: str, text: str = "") -> WaitingReason:
        """A member by its code alone."""
        one = str.__new__(cls, code)
        one._value_, one.ends, one.meaning, one.text = code, ends, meaning, text
        return one

    # Verdicts on nodes.
    INSUFFICIENT = (
        "insufficient",
        Ends.ROOM,
        "The nodes have too little free room in sum.",
        "{figures}",
    )
    FRAGMENTED = (
        "fragmented",
        Ends.ROOM,
        "The free room suffices in sum, but the nodes have no places.",
        "The sum suffices, but no placement on nodes does. {figures}",
    )
    NO_NODE = (
        "no-node",
        Ends.CAPACITY,
        "No node admits its pods: selectors, taints, readiness.",
        "No node admits its pods: {obstacle}.",
    )
    TOO_LARGE = (
        "too-large",
        Ends.CAPACITY,
        "One pod is larger than any node that admits it, or asks for what none of them has.",
        "One pod is larger than any node that admits it. {figures}",
    )
    NO_DOMAIN = (
        "no-domain",
        Ends.ROOM,
        "The nodes have places, but no single topology domain has enough.",
        "The nodes have places, but no single topology domain has enough.",
    )
    UNDECIDED = (
        "undecided",
        Ends.ROOM,
        "The search for places ran out of its budget.",
        "No placement was found within the search budget; retrying.",
    )
    # It fits, but another AppWrapper goes first: the head of the line (R6), or an AppWrapper that
    # asks within its share for room that this one would borrow.
    BLOCKED = (
        "blocked",
        Ends.TURN,
        "It fits, but the head of the line goes first.",
        "The head of the line goes first.",
    )
    LENDING = (
        "lending",
        Ends.TURN,
        "It fits, but would borrow what another AppWrapper waits for.",
        "It would borrow room that another AppWrapper waits for within its share.",
    )
    BINDING = (
        "binding",
        Ends.TURN,
        "It fits, but pods of others that were dispatched a moment ago could take its nodes.",
        "Pods that were dispatched a moment ago are bound first.",
    )
    # Verdicts by quota trees, which have texts of their own (quota/explain.py).
    QUOTA = "quota", Ends.ROOM, "Its quota or that of a node above is used up."
    ABOVE_QUOTA = (
        "above-quota",
        Ends.CAPACITY,
        "It demands more than its quota allows even if nothing else runs.",
    )
    NO_LEAF = "no-leaf", Ends.CAPACITY, "The quota tree has no leaf for it."
    # Out of the line.
    KIND_NOT_WATCHED = (
        "KindNotWatched",
        Ends.EVENT,
        "The dispatcher does not observe a kind in it yet.",
    )
    WAITING_FOR_NAME = (
        "WaitingForName",
        Ends.EVENT,
        "Another object has the name of one of its items.",
    )
    MISSING_RIGHT = "MissingRight", Ends.EVENT, "A right to create one of its items is missing."
    CREATION_BACKOFF = (
        "CreationBackoff",
        Ends.INSTANT,
        "Its items could not be created; retried after a pause.",
    )
    PLACEMENT_BACKOFF = (
        "PlacementBackoff",
        Ends.INSTANT,
        "Its pods found no node; retried after a pause.",
    )
    PREEMPTION_TRIGGERED = (
        "PreemptionTriggered",
        Ends.INSTANT,
        "It was requeued; it rests for a while.",
    )
    ROOM_RESERVED = (
        "RoomReserved",
        Ends.ROOM,
        "Room is reserved for it, and it waits until that is free.",
    )
    SCALING_UP = (
        "ScalingUp",
        Ends.NODES,
        "An autoscaler is asked for nodes for it, and it waits until they are there.",
    )
    DISPATCH_PAUSED = "DispatchPaused", Ends.RESUME, "A DispatchPause stops dispatch."
    SUSPENDED = (
        "Suspended",
        Ends.MANIFEST,
        "`spec.suspend` is true.",
        "spec.suspend is true; set it to false to queue it.",
    )
    NOT_GRANTED = (
        "NotGranted",
        Ends.MANIFEST,
        "It is a copy for another cluster's queue, and was not granted there.",
        "It is a copy for another cluster's queue: its annotation workload.codeflare.dev/granted is"
        " not its uid.",
    )
    DELETED = (
        "Terminating",
        Ends.MANIFEST,
        "It is being deleted.",
        "The AppWrapper is being deleted.",
    )
    # Faults of the manifest.
    INVALID = (
        "InvalidAppWrapper",
        Ends.MANIFEST,
        "The manifest has a fault; the message names the field.",
    )
    NOT_WRAPPED = (
        "KindNotWrapped",
        Ends.MANIFEST,
        "A kind in it may not be wrapped (setting wrappedResources).",
    )
    NOT_INSTALLED = "KindNotInstalled", Ends.MANIFEST, "The cluster has no such kind."
    NOT_SERVED = (
        "NamespaceNotServed",
        Ends.MANIFEST,
        "Its namespace is not served (setting excludedNamespaces).",
    )
    UNSUPPORTED_DRA = "UnsupportedDRA", Ends.MANIFEST, "Its pods ask for ResourceClaims."

    @property
    def blocks(self) -> bool:
        """Whether AppWrappers behind may have to wait for it: it may start when room comes free."""
        return self.ends is Ends.ROOM

    @property
    def lets_others_first(self) -> bool:
        """Whether it might fit, and only lets another AppWrapper go first."""
        return self.ends is Ends.TURN

    @property
    def is_impossible(self) -> bool:
        """Whether no release of room will ever let it in, so that it blocks no other."""
        return self.ends is Ends.CAPACITY


RESERVED = frozenset({WaitingReason.ROOM_RESERVED, WaitingReason.SCALING_UP})
"""Reasons of AppWrappers with a reservation."""

HOLDS = {str(one): one for one in WaitingReason if one.ends in {Ends.EVENT, Ends.INSTANT}}
"""By code: holds that the dispatcher finds, and that are on record in the condition alone. Other
holds follow from the manifest or from ``status.reservation``."""


class Hold(Struct, frozen=True):
    """A reason that keeps an AppWrapper out of the line, with its message.

    ``until`` is the instant of the next look at the AppWrapper, 0 if an event ends the hold.
    """

    reason: WaitingReason
    message: str
    until: int = 0

    @property
    def code(self) -> str:
        """The reason of the wait, in one word."""
        return self.reason.value
