"""Starvation prevention: an AppWrapper that is first in line for too long gets a reservation, so
that no stream of small AppWrappers starves it (core R8). With the policy Backfill it gets one at
once, if its start is known (R9).

There is one first AppWrapper for each set of nodes, and for each node of a quota tree. Its clock
runs while it is first and would fit on an empty cluster, and stands still while another AppWrapper
is first.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from itertools import islice

from mcad.core.cluster import Cluster
from mcad.core.eligibility import pre_enqueue
from mcad.core.eligibility.precedence import outranked, outranks
from mcad.core.nodes.shape import Shape
from mcad.core.queue.equivalence import EquivalenceClass
from mcad.core.reservations import manage, release_set
from mcad.core.state.bounds import (
    FIRSTS_LOOK,
    FIRSTS_LOOKED_AT,
    FIRSTS_MAX,
    WORK_PER_PASS,
)
from mcad.core.state.entry import Entry
from mcad.core.state.reservation import ReservationReason
from mcad.core.state.reservation_book import Ends
from mcad.core.state.settings import Fit, Policy
from mcad.core.state.units import SECOND, Duration

_Kind = tuple[Hashable, int]
"""The nodes that an AppWrapper wants, and its priority."""

_LOOKS = 10
"""How often the first in line is determined within the time until it is protected."""


def watch(cluster: Cluster) -> None:
    """Determine at intervals the AppWrappers that are first, and for how long."""
    interval = _interval(cluster)
    if not interval or cluster.settings.fit is not Fit.NODES or not len(cluster.waiting.queue):
        return
    firsts = cluster.reservations.firsts
    passed = cluster.now - firsts.looked_at
    if firsts.to_consider:
        _consider_rest(cluster)
    elif passed >= interval or firsts.reservation_ended:
        firsts.reservation_ended = False
        firsts.looked_at = cluster.now
        _look(cluster, passed)
    cluster.agenda.wake_at(firsts.looked_at + interval)


def _interval(cluster: Cluster) -> Duration:
    """How often the first in line is determined; 0 is never. An AppWrapper that is never overtaken
    needs no reservation."""
    settings = cluster.settings
    match settings.policy:
        case Policy.STRICT_FIFO:
            return 0
        case Policy.BACKFILL:
            return FIRSTS_LOOK
        case Policy.BEST_EFFORT_FIFO:
            interval = -(-settings.protect_after // _LOOKS)
            return max(interval, SECOND) if interval else 0


def _look(cluster: Cluster, passed: Duration) -> None:
    firsts = cluster.reservations.firsts
    before = firsts.waited
    waited = firsts.waited = {uid: n for uid, n in before.items() if _waits(cluster, uid)}
    begun, unreserved = cluster.admission.steps, _Unreserved(cluster)
    line = cluster.waiting.refused(filter(unreserved.wants, cluster.waiting.queue.eqclasses()))
    found = list(_firsts(cluster, line))
    cluster.agenda.spent += cluster.admission.steps - begun
    for entry in found:
        known = before.get(entry.uid)
        waited[entry.uid] = 0 if known is None else known + passed
        firsts.to_consider[entry.uid] = None
    _consider_rest(cluster)


def _consider_rest(cluster: Cluster) -> None:
    """Plan for the first in line, as far as this pass gets: each plan costs a look at all nodes and
    at all running AppWrappers, and so does the order of their ends."""
    firsts = cluster.reservations.firsts
    for uid in list(firsts.to_consider):
        entry = cluster.entries.get(uid)
        if entry is not None and _may_get_one(cluster, entry):
            if not release_set.knows_ends(cluster, firsts.ends) or cluster.agenda.is_spent:
                cluster.walk.gives_way = True
                cluster.agenda.carry_over()
                return
            _consider(cluster, entry, firsts.ends.line)
        del firsts.to_consider[uid]
    firsts.ends.forget()


def _waits(cluster: Cluster, uid: str) -> bool:
    entry = cluster.entries.get(uid)
    return entry is not None and (entry in cluster.waiting.queue or uid in cluster.reservations)


def _firsts(cluster: Cluster, line: Iterable[EquivalenceClass]) -> Iterator[Entry]:
    """The first refused AppWrapper that would fit on an empty cluster, the first of those that want
    neither the same nodes nor the same share, and so on. The work is bounded; results are cached,
    so the next look gets further."""
    most = cluster.admission.steps + WORK_PER_PASS // 2
    taken: list[Shape] = []
    scopes: set[tuple[str, str]] = set()
    behind: set[_Kind] = set()  # kinds with another first for their nodes
    for eqclass in islice(line, FIRSTS_LOOKED_AT):
        if len(taken) >= FIRSTS_MAX or cluster.admission.steps >= most:
            return
        kind = _kind(cluster, eqclass)
        if kind in behind:
            continue
        if any(cluster.capacity.compete(one, eqclass.shape) for one in taken):
            behind.add(kind)
            continue
        limit = eqclass.refusal.quota if eqclass.refusal is not None else None
        if limit is not None and (limit.tree, limit.node) in scopes:
            continue
        if cluster.capacity.would_fit_emptied(eqclass.shape):
            taken.append(eqclass.shape)
            if limit is not None:
                scopes.add((limit.tree, limit.node))
            yield eqclass.first()


def _kind(cluster: Cluster, eqclass: EquivalenceClass) -> _Kind:
    return cluster.capacity.nodes_for(eqclass.shape), eqclass.first().workload.priority


class _Unreserved:
    """The classes that want no node of a reservation that counts for them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._behind: dict[_Kind, bool] = {}

    def wants(self, eqclass: EquivalenceClass) -> bool:
        if not self._cluster.reservations:
            return True
        kind = _kind(self._cluster, eqclass)
        is_behind = self._behind.get(kind)
        if is_behind is None:
            is_behind = _is_behind_a_reservation(self._cluster, eqclass)
            self._behind[kind] = is_behind
        return not is_behind


def _is_behind_a_reservation(cluster: Cluster, eqclass: EquivalenceClass) -> bool:
    entry, shape_of = eqclass.first(), cluster.capacity.shape
    reservations = cluster.reservations.values()
    owners = (
        one
        for one in reservations
        if not outranks(entry, one) and one.reserved.reason is not ReservationReason.SCALING_UP
    )
    reserved = (shape_of(one.workload.sets) for one in owners)
    return any(cluster.capacity.compete(one, eqclass.shape) for one in reserved)


def _may_get_one(cluster: Cluster, entry: Entry) -> bool:
    """Whether the first in line may get a reservation, and only room is missing."""
    if entry not in cluster.waiting.queue or cluster.now < entry.patience.until:
        return False
    if not (_is_starved(cluster, entry) or cluster.settings.policy is Policy.BACKFILL):
        return False
    return pre_enqueue.obstacle(cluster, entry) is None


def _is_starved(cluster: Cluster, entry: Entry) -> bool:
    waited = cluster.reservations.firsts.waited.get(entry.uid, 0)
    return 0 < cluster.settings.protect_after <= waited


def _consider(cluster: Cluster, entry: Entry, line: list[tuple[Ends, str]]) -> None:
    cluster.errors.about = entry.uid
    is_starved = _is_starved(cluster, entry)
    releasing = release_set.earliest(cluster, entry, outranked(cluster, entry), line)
    if releasing is None or not releasing.leaving or not (is_starved or releasing.start):
        return
    manage.clear(cluster, entry, releasing.plan)
    reason = ReservationReason.STARVED if is_starved else ReservationReason.PLANNED
    manage.make(cluster, entry, reason, releasing)
