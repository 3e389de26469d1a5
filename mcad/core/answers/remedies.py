"""The records of answers: what would start an AppWrapper, as a sentence and as a change."""

from __future__ import annotations

from enum import StrEnum

from mcad.core.answers.changes import AddNodes, Edit, End, Leave, RaiseQuota
from mcad.core.state.records import Struct


class Kind(StrEnum):
    """What a remedy changes, in the order of display."""

    RELEASE = "release"  # spec.suspend is set to false
    AHEAD = "ahead"  # AppWrappers ahead leave the line
    ENDS = "ends"  # AppWrappers that hold room end
    NODES = "nodes"  # nodes are added
    QUOTA = "quota"  # nodes of quota trees get a larger share
    PRIORITY = "priority"
    EVICT = "evict"  # a priority with which it may evict others
    PODS = "pods"  # a pod set has fewer pods
    REQUEST = "request"  # each pod of a set requests less


class Remedy(Struct, frozen=True):
    """One change that starts an AppWrapper in the next cycle; no smaller change of its kind does.
    ``EVICT`` is the smallest priority with which it may evict others, before any other does.

    ``number`` is the figure of the change: a priority, nodes, pods, or an amount. ``uids`` are the
    AppWrappers that it concerns.
    """

    kind: Kind
    text: str
    change: Edit | AddNodes | End | Leave | RaiseQuota
    number: int = 0
    uids: tuple[str, ...] = ()
