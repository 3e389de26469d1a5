"""Refused equivalence classes in the order of their heads, and the condition of the first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcad.core.cluster import Cluster
from mcad.core.queue.equivalence import EquivalenceClass
from mcad.core.state.entry import Entry
from mcad.core.state.reasons import FRONT_OF_QUEUE, ConditionType


def stand_in_front(cluster: Cluster, entry: Entry) -> None:
    """Set the condition HeadOfLine, which comes with the first verdict, whichever it is."""
    entry.set_condition(ConditionType.HEAD_OF_LINE, cluster.now, reason=FRONT_OF_QUEUE)


def refused(cluster: Cluster) -> Iterator[EquivalenceClass]:
    """All classes that were refused for lack of room, in the order of their heads."""
    return in_order(cluster, cluster.waiting.queue.eqclasses())


def in_order(cluster: Cluster, eqclasses: Iterable[EquivalenceClass]) -> Iterator[EquivalenceClass]:
    """The refused classes among these, in the order of their heads; without those that can never
    fit and those that only let others go first."""
    at, now = cluster.waiting.turns.at, cluster.now
    line = [
        (at(eqclass, eqclass.listed_by or eqclass.key, now), eqclass)
        for eqclass in eqclasses
        if eqclass.refusal is not None and eqclass.refusal.reason.blocks
    ]
    return (eqclass for _, eqclass in sorted(line))
