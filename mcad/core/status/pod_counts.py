"""The pod counts in status: how many, their requests, and the pods without a node (ADR 22).

They are counted with every write of status, and cause a write only when the last count is old
enough (monitor.py). The counts of a Completed AppWrapper are final: its pods may be deleted later.
"""

from __future__ import annotations

from mcad.core.capacity import Capacity
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Next, PodCounts
from mcad.core.state.records import replace
from mcad.core.state.units import Instant

LIVE = frozenset({Phase.RUNNING, Phase.KEEPING, Phase.UNDEPLOYING, Phase.DELETING, Phase.VERIFYING})
"""Phases that may last while pods come and go; the transition into them is written."""

_WITH_OBJECTS = LIVE | {Phase.CREATING, Phase.CONFIRMING, Phase.COMPLETED}

UNSCHEDULED_SHOWN = 10
"""Pods without a node that status names: a gang of thousands waits for the same few reasons."""


def recount(entry: Entry, capacity: Capacity, now: Instant) -> bool:
    """Count before a write of status, unless the counts are final; returns whether they changed."""
    if _are_final(entry):
        return False
    before = entry.pods
    count(entry, capacity, now)
    return entry.pods != before


def count(entry: Entry, capacity: Capacity, now: Instant) -> None:
    """Count its pods now."""
    entry.counted_at = now
    if entry.phase not in _WITH_OBJECTS:
        entry.pods = PodCounts()
        return
    uid = entry.uid
    pods = replace(capacity.pods.counts(uid), leaving=0)
    totals = capacity.pods.totals(uid) if pods.running or pods.succeeded else ()
    waiting = capacity.pods.unscheduled(uid, UNSCHEDULED_SHOWN) if pods.pending else ()
    entry.pods = replace(pods, totals=totals, unscheduled=waiting)


def are_right(entry: Entry, capacity: Capacity) -> bool:
    """Whether status has the right numbers, and names the right pods. kube-scheduler's words are
    written along with the rest, and cause no write: they have figures of the whole cluster, which
    change all the time."""
    if _are_final(entry):
        return True
    shown, pods = entry.pods, capacity.pods.counts(entry.uid)
    if _numbers(shown) != _numbers(pods):
        return False
    waiting = capacity.pods.unscheduled(entry.uid, UNSCHEDULED_SHOWN) if pods.pending else ()
    return [name for name, _ in shown.unscheduled] == [name for name, _ in waiting]


def _numbers(pods: PodCounts) -> tuple[int, int, int, int]:
    return (pods.pending, pods.running, pods.succeeded, pods.failed)


def _are_final(entry: Entry) -> bool:
    record = entry.dispatch
    return entry.phase is Phase.COMPLETED or (record is not None and record.next is Next.COMPLETED)
