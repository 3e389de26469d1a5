"""Which AppWrappers ask an autoscaler for nodes (core R13).

An AppWrapper asks if only nodes keep it from being dispatched: quota, holds and pauses are judged
first. AppWrappers ask in the order of the line. An AppWrapper does not ask if declared or expected
ends let it start sooner than nodes come, nor while victims for it may be found. While pods of an
earlier request are bound, no AppWrapper asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from mcad.core.admission import Demanded
from mcad.core.cluster import Cluster
from mcad.core.eligibility import pre_enqueue
from mcad.core.eligibility.precedence import outranked
from mcad.core.nodes.ledger import Plan
from mcad.core.preemption import search
from mcad.core.preemption.search import Planned
from mcad.core.queue.equivalence import EquivalenceClass
from mcad.core.reservations import manage, release_set
from mcad.core.scale_up import keep
from mcad.core.snapshot.snapshot import Snapshot
from mcad.core.state.bounds import (
    HEADS_TRIED,
    REFUSED_STEPS,
    SCALE_UP_BINDING,
    SCALE_UPS_JUDGED,
    Look,
)
from mcad.core.state.entry import Entry
from mcad.core.state.refusal import Refusal
from mcad.core.state.reservation import ReservationReason
from mcad.core.state.scale_up import ScaleUpRequest
from mcad.core.state.units import Instant
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

_BY_ENDS = frozenset({ReservationReason.STARVED, ReservationReason.PLANNED})
"""Reservations that wait until AppWrappers end by themselves."""


def may_be_ended_by_nodes(refusal: Refusal | None) -> bool:
    """Whether new nodes may end the wait."""
    return refusal is not None and refusal.reason in _BY_NODES


def look(cluster: Cluster) -> None:
    """Let the first AppWrappers that lack nodes ask, as many as may wait at a time."""
    if not (cluster.scale_ups.served and (len(cluster.waiting.queue) or cluster.reservations)):
        return
    free = cluster.settings.scale_up_concurrent - len(keep.owners(cluster))
    if free <= 0 or _is_counted_twice(cluster) or not cluster.agenda.is_time_for(Look.SCALE_UPS):
        return
    cluster.scale_ups.forget_judged(cluster.now - cluster.settings.backoff // 2)
    found = list(islice(_candidates(cluster), SCALE_UPS_JUDGED))
    order = cluster.reservations.soon
    if found and not release_set.knows_ends(cluster, order):
        cluster.walk.gives_way = True
        cluster.agenda.look_again(Look.SCALE_UPS)
        return
    for entry, planned in found:
        cluster.errors.about = entry.uid
        if planned is not None and search.may_find_victims(cluster, entry, planned):
            continue  # asked about again at the next look
        cluster.scale_ups.judged[entry.uid] = cluster.now
        free -= _consider(cluster, entry)
        if free <= 0 or cluster.agenda.is_spent:
            break
    order.forget()


def _is_counted_twice(cluster: Cluster) -> bool:
    """Whether a request stands beside the pods that use its nodes: until it is gone an autoscaler
    counts both, and adds too many nodes for a request that is made meanwhile (ADR 68)."""
    used = (_used_since(cluster, one) for one in cluster.scale_ups)
    until = max((since + SCALE_UP_BINDING for since in used if since), default=0)
    if cluster.now < until:
        cluster.agenda.wake_at(until)
    return cluster.now < until


def _used_since(cluster: Cluster, request: ScaleUpRequest) -> Instant:
    """Since when the request is withdrawn, or its AppWrapper is dispatched; 0 if it is neither."""
    if request.withdrawn:
        return request.withdrawn_at
    entry = cluster.entries.get(request.uid)
    if entry is None or entry.attempt != request.attempt:
        return 0
    return entry.record.since


def _candidates(cluster: Cluster) -> Iterator[tuple[Entry, Planned | None]]:
    """The AppWrappers that may start on new nodes, in the order of the line, each with the last
    search for its victims; None if there was none, because it would not fit on an empty cluster.
    Owners of reservations that wait for ends come first: they were first in line."""
    for owner in list(cluster.reservations.values()):
        if owner.reserved.reason in _BY_ENDS and _is_due(cluster, owner):
            yield owner, Planned(owner.planned_at, owner.uid)
    for eqclass in _refused(cluster):
        if cluster.agenda.is_spent:
            return
        due = [one for one in eqclass.front(HEADS_TRIED) if _is_due(cluster, one)]
        if not due:
            continue
        if not _is_served(cluster, due[0]):  # the others are equal
            cluster.scale_ups.judged.update((one.uid, cluster.now) for one in due)
            continue
        last = Planned(eqclass.planned_at, eqclass.planned_for)
        for entry in due:
            yield entry, last if eqclass.is_refused else None


def _is_due(cluster: Cluster, entry: Entry) -> bool:
    """Whether the AppWrapper was not judged lately, and no request of it exists or failed lately;
    asked first of all in line, so that those behind are reached."""
    known, patience = cluster.scale_ups, entry.scale_up_patience
    is_judged = entry.uid in known.judged
    return not (is_judged or cluster.now < patience.until or known.of(entry.uid))


def _refused(cluster: Cluster) -> list[EquivalenceClass]:
    """The classes that lack nodes, in the order of their heads."""
    waiting = cluster.waiting
    refused = [
        one
        for one in waiting.queue.eqclasses()
        if may_be_ended_by_nodes(one.refusal) and one.members
    ]
    cluster.agenda.spent += len(refused) * REFUSED_STEPS
    return [eqclass for _, eqclass in sorted(waiting.turns.line(refused, cluster.now))]


def _consider(cluster: Cluster, entry: Entry) -> bool:
    """Let the AppWrapper ask, unless it cannot start by that, or starts sooner without."""
    if not _is_served(cluster, entry) or pre_enqueue.obstacle(cluster, entry) is not None:
        return False
    lifted = (entry.uid, *outranked(cluster, entry))
    snapshot = release_set.what_if(cluster, entry, lifted, keep.FULLEST)
    soon = _ends_soon(cluster)
    if release_set.least(cluster, snapshot, soon) is not None:
        return False
    begun, plan = snapshot.steps, snapshot.partial()
    is_near = not _lacking(entry, plan) or _waits_for_pods(cluster, entry, snapshot, soon)
    cluster.agenda.spent += snapshot.steps - begun
    if is_near:
        return False
    cluster.unreserve(entry)
    manage.clear(cluster, entry, plan)
    keep.begin(cluster, entry, plan)
    return True


def _lacking(entry: Entry, plan: Plan) -> int:
    """The pods without a place in the plan. Those of DaemonSets do not count: a new node would need
    one more."""
    counted = [not one.per_node for one in entry.workload.sets]
    there = sum(pods for sets, _, pods in plan if counted[sets[0]])
    return sum(one.replicas for one in entry.workload.sets if not one.per_node) - there


def _ends_soon(cluster: Cluster) -> list[str]:
    """The uids of the AppWrappers that are gone, as they declare or as is expected, before nodes
    would come."""
    horizon = cluster.now + cluster.scale_ups.usual
    return [
        uid
        for (late, likely, _), uid in cluster.reservations.soon.line
        if min(late, likely) <= horizon
    ]


def _waits_for_pods(
    cluster: Cluster, entry: Entry, snapshot: Snapshot, soon: Iterable[str]
) -> bool:
    """Whether pods of no AppWrapper that terminate leave enough room, beside the AppWrappers that
    end soon. Such pods may stay for ever, so they are waited for as long as for nodes."""
    snapshot.remove_leaving_pods()
    for uid in soon:
        snapshot.remove_anyway(uid)
    if _lacking(entry, snapshot.partial()):
        cluster.scale_ups.near.pop(entry.uid, None)
        return False
    since = cluster.scale_ups.near.setdefault(entry.uid, cluster.now)
    return cluster.now < since + cluster.scale_ups.usual


def _is_served(cluster: Cluster, entry: Entry) -> bool:
    """Whether its quota suffices beside all that wait for nodes, and nodes can be asked for: in
    which topology domain a new node will be is unknown."""
    if any(one.topology is not None and one.topology.required for one in entry.workload.sets):
        return False
    if not cluster.path(entry):
        return True
    begun = cluster.admission.steps
    others = (_demanded(cluster, one) for one in keep.owners(cluster))
    suffices = cluster.admission.suffices_beside(_demanded(cluster, entry), others)
    cluster.agenda.spent += cluster.admission.steps - begun
    return suffices


def _demanded(cluster: Cluster, entry: Entry) -> Demanded:
    shape = cluster.capacity.shape(entry.workload.sets)
    return Demanded(entry.uid, shape, cluster.path(entry))
