"""Which AppWrappers ask an autoscaler for nodes (core R14).

Those that would be dispatched but for nodes, in the order of the line: quota, holds and pauses are
judged first. An AppWrapper does not ask if declared or expected ends let it start sooner than nodes
come, nor while victims for it may be found.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from mcad.core.cluster import Cluster
from mcad.core.eligibility import pre_enqueue
from mcad.core.eligibility.precedence import outranked
from mcad.core.preemption import search
from mcad.core.reservations import manage, release_set
from mcad.core.scale_up import keep
from mcad.core.state.bounds import HEADS_TRIED, SCALE_UPS_JUDGED, Look
from mcad.core.state.entry import Entry
from mcad.core.state.waiting_reason import WaitingReason

_BY_NODES = frozenset(
    {
        WaitingReason.INSUFFICIENT,
        WaitingReason.FRAGMENTED,
        WaitingReason.NO_NODE,
        WaitingReason.TOO_LARGE,
    }
)
"""Refusals that new nodes may end."""


def look(cluster: Cluster) -> None:
    """Let the first in line that nodes are missing for ask, as many as may wait at a time."""
    if not len(cluster.waiting.queue) or not cluster.agenda.is_time_for(Look.SCALE_UPS):
        return
    free = cluster.settings.scale_up_concurrent - len(keep.owners(cluster))
    if free <= 0:
        return
    cluster.scale_ups.forget_judged(cluster.now - cluster.settings.backoff // 2)
    for entry, planned_at in islice(_candidates(cluster), SCALE_UPS_JUDGED):
        cluster.errors.about = entry.uid
        cluster.scale_ups.judged[entry.uid] = cluster.now
        free -= _consider(cluster, entry, planned_at)
        if free <= 0 or cluster.agenda.is_spent:
            return


def _candidates(cluster: Cluster) -> Iterator[tuple[Entry, int]]:
    """The AppWrappers whose refusal new nodes may end, in the order of the line, with the instant
    of the last search for victims."""
    waiting = cluster.waiting
    refused = [
        one
        for one in waiting.queue.eqclasses()
        if one.refusal is not None and one.refusal.reason in _BY_NODES and one.members
    ]
    cluster.agenda.spent += len(refused)
    for _, eqclass in sorted(waiting.turns.line(refused, cluster.now)):
        for entry in eqclass.front(HEADS_TRIED):
            if entry.uid not in cluster.scale_ups.judged:
                yield entry, eqclass.planned_at


def _consider(cluster: Cluster, entry: Entry, planned_at: int) -> bool:
    """Let the AppWrapper ask, unless it cannot start by that, or starts sooner without."""
    if not _may_ask(cluster, entry) or search.may_find_victims(cluster, entry, planned_at):
        return False
    snapshot = release_set.what_if(cluster, entry, outranked(cluster, entry))
    if release_set.place(cluster, snapshot) is not None:
        return False  # it fits, and has its turn in the next walk
    begun = snapshot.steps
    plan = snapshot.partial()
    cluster.agenda.spent += snapshot.steps - begun
    manage.clear(cluster, entry, plan)
    keep.begin(cluster, entry, plan)
    return True


def _may_ask(cluster: Cluster, entry: Entry) -> bool:
    if cluster.now < entry.scale_up_patience.until or cluster.scale_ups.of(entry.uid):
        return False
    if any(one.topology is not None and one.topology.required for one in entry.workload.sets):
        return False  # nobody knows in which domain a new node will be
    return pre_enqueue.obstacle(cluster, entry) is None
