"""The life of reservations for which nodes are asked: places as nodes come, and the dispatch when
all pods have one (core R13).

Such a reservation charges no share. Its request stands until the AppWrapper is dispatched, or until
its pods are bound if they name the request; every other request is withdrawn.
"""

from __future__ import annotations

from mcad.core.cluster import Cluster
from mcad.core.commands import RequestScaleUp, WithdrawScaleUp
from mcad.core.eligibility import binding_wait, end_times
from mcad.core.nodes.ledger import Plan, placed
from mcad.core.reservations import manage, release_set
from mcad.core.reservations.release_set import ReleaseSet
from mcad.core.scale_up import shown
from mcad.core.snapshot.snapshot import Where
from mcad.core.state.bounds import SCALE_UP_OVERDUE, SCALE_UP_PAUSE
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.reasons import SCALE_UP_TIMED_OUT, ConditionType, EventReason
from mcad.core.state.reservation import Reservation, ReservationReason
from mcad.core.state.scale_up import FAILURES, ScaleUpRequest, ScaleUpState, Searched
from mcad.core.state.units import SECOND, Instant

FULLEST = Where(fullest=True)
"""The autoscaler fills free room before it adds nodes: on emptier nodes a pod would take the room
that is meant for larger pods."""
_BESIDE = Where(beside=True, fullest=True)

# -- making --------------------------------------------------------------------------------------


def begin(cluster: Cluster, entry: Entry, plan: Plan) -> None:
    """Reserve the places of the plan for an AppWrapper in line, and ask for the other pods."""
    settings, now = cluster.settings, cluster.now
    start, until = now + cluster.scale_ups.usual, now + settings.scale_up_timeout
    reservation = Reservation(ReservationReason.SCALING_UP, now, until, start)
    message = manage.begin(cluster, entry, reservation, ReleaseSet(plan, ()))
    cluster.announce(entry, EventReason.ROOM_RESERVED, message, action="Reservation")
    nodes = frozenset(one.name for one in cluster.capacity.nodes())
    cluster.scale_ups.nodes_before[entry.uid] = nodes
    _ask(cluster, entry)


def _ask(cluster: Cluster, entry: Entry) -> None:
    lacking = cluster.capacity.gangs.unplaced_pods(entry.uid)
    if lacking:
        request = cluster.scale_ups.ask(entry.uid, entry.attempt + 1, cluster.now, lacking)
        _emit(cluster, entry)
        shown.show_one(cluster, entry, request)


def _emit(cluster: Cluster, entry: Entry) -> None:
    """Ask for the whole gang: the autoscaler puts its pods on free room first, also on the room
    that is reserved for the pods with a place (ADR 68)."""
    sets = (one for one in entry.workload.sets if not one.per_node and one.replicas)
    pods = tuple((one.item, one.index, one.replicas) for one in sets)
    cluster.emit(RequestScaleUp(entry.uid, entry.attempt + 1, pods))


def resume(cluster: Cluster) -> None:
    """Resume the reservations on record, with the places that there are now. The request of an
    earlier leader is known from its object; what it did not create is asked for again."""
    for entry, reservation in manage.in_line(cluster, cluster.reservations.take_on_record()):
        snapshot = release_set.what_if(cluster, entry, where=FULLEST)
        manage.begin(cluster, entry, reservation, ReleaseSet(snapshot.partial(), ()))


# -- keeping -------------------------------------------------------------------------------------


def owners(cluster: Cluster) -> list[Entry]:
    """The AppWrappers that wait for nodes: those with a provisioned request first, in the order in
    which the autoscaler found nodes for them, then the oldest reservation."""
    found = [one for one in cluster.reservations.values() if _scales_up(one)]
    return sorted(found, key=lambda one: _turn(cluster, one))


def _turn(cluster: Cluster, entry: Entry) -> tuple[bool, Instant, Instant, int, Instant, str]:
    request = request_of(cluster, entry)
    at = request.provisioned_at if request is not None and _is_provisioned(cluster, entry) else 0
    asked_with_it = -entry.workload.priority, entry.first_seen, entry.uid
    return (not at, at, entry.reserved.since, *asked_with_it)


def _scales_up(entry: Entry) -> bool:
    return entry.reserved.reason is ReservationReason.SCALING_UP


def request_of(cluster: Cluster, entry: Entry) -> ScaleUpRequest | None:
    """The request for the next attempt of a waiting AppWrapper."""
    return cluster.scale_ups.get(entry.uid, entry.attempt + 1)


def _is_provisioned(cluster: Cluster, entry: Entry) -> bool:
    request = request_of(cluster, entry)
    return request is not None and request.state is ScaleUpState.PROVISIONED


def keep(cluster: Cluster, *, at_once: bool = False) -> None:
    """First in a pass, after the other reservations: find places on nodes that came, dispatch,
    follow the requests, and withdraw those that nothing waits for. ``at_once``: search for places
    after each change, for dry runs."""
    if cluster.reservations.on_record:
        resume(cluster)
    while _keep_all(cluster, at_once=at_once):
        cluster.scale_ups.searched.clear()  # before others get what the dispatched one leaves
    cluster.scale_ups.keep_only(cluster.reservations)
    _withdraw_unneeded(cluster)
    shown.show(cluster, owners(cluster))


def _keep_all(cluster: Cluster, *, at_once: bool) -> bool:
    """Keep each reservation; returns whether an AppWrapper was dispatched."""
    is_any = False
    for number, entry in enumerate(owners(cluster)):
        if number and cluster.agenda.is_spent:
            cluster.agenda.carry_over()
            return False
        cluster.errors.about = entry.uid
        if entry.uid in cluster.reservations:
            _keep_one(cluster, entry, at_once=at_once)
            is_any |= entry.phase is Phase.INTENDING
    return is_any


def _keep_one(cluster: Cluster, entry: Entry, *, at_once: bool) -> None:
    if _may_find_places(cluster, entry, at_once=at_once):
        _find_places(cluster, entry)
    if entry.uid not in cluster.reservations:
        return
    if entry.reserved.until <= cluster.now:
        why = "The nodes that it asked for did not come in time."
        _fail(cluster, entry, SCALE_UP_TIMED_OUT, why)
        return
    _follow(cluster, entry)


def _may_find_places(cluster: Cluster, entry: Entry, *, at_once: bool) -> bool:
    """Whether nodes came or changed since the last search; after other changes there is one search
    a second."""
    capacity, found = cluster.capacity, cluster.scale_ups.searched
    last = found.get(entry.uid)
    if last is not None and last.changes == capacity.changes:
        return False
    is_early = last is not None and cluster.now < last.at + SECOND and not at_once
    if last is not None and is_early and last.moved == capacity.moved:
        cluster.agenda.wake_at(last.at + SECOND)
        return False
    found[entry.uid] = Searched(capacity.changes, capacity.moved, cluster.now)
    return True


def _find_places(cluster: Cluster, entry: Entry) -> None:
    """Dispatch if all pods have places; else keep the places that there are."""
    own = (entry.uid,)
    plan = release_set.place(cluster, release_set.what_if(cluster, entry, own, _BESIDE))
    if plan is None and _is_provisioned(cluster, entry):
        plan = _instead_of_others(cluster, entry)
    if plan is not None and not binding_wait.owner_waits(cluster, entry):
        _go(cluster, entry, plan)
        return
    if plan is not None:
        cluster.scale_ups.searched.pop(entry.uid, None)  # the next pass searches again
    snapshot = release_set.what_if(cluster, entry, own, FULLEST)
    for uid in _passing(cluster, entry):
        snapshot.remove_anyway(uid)
    begun = snapshot.steps
    partial = snapshot.partial()
    cluster.agenda.spent += snapshot.steps - begun
    if placed(partial) != _held(cluster, entry) or not _holds(cluster, entry):
        _place(cluster, entry, partial)
    if not cluster.capacity.gangs.unplaced(entry.uid) and _lacks_quota(cluster, entry):
        manage.give_up(cluster, entry, "Its quota has been used by others since.")


def _lacks_quota(cluster: Cluster, entry: Entry) -> bool:
    shape = cluster.capacity.shape(entry.workload.sets)
    return cluster.admission.quota_refusal(shape, cluster.path(entry)) is not None


def _held(cluster: Cluster, entry: Entry) -> int:
    places = cluster.capacity.gangs.places_of(entry.uid)
    return sum(map(sum, places.values()))


def _holds(cluster: Cluster, entry: Entry) -> bool:
    """Whether its nodes exist, and only AppWrappers that end in time use room there."""
    if list(entry.reserved.nodes) != cluster.capacity.gangs.nodes_of(entry.uid):
        return False
    pods, uids = cluster.capacity.reserved.occupants(entry.uid)
    passing = _passing(cluster, entry)
    return all(one.workload in passing for one in pods) and all(uid in passing for uid in uids)


def _passing(cluster: Cluster, entry: Entry) -> dict[str, None]:
    """The uids (an ordered set) of the AppWrappers on its nodes that are gone when its nodes are
    expected, as they declare: backfill let them in."""
    pods, uids = cluster.capacity.reserved.occupants(entry.uid)
    known = cluster.known(dict.fromkeys((*(one.workload for one in pods), *uids)))
    start = entry.reserved.start
    return {one.uid: None for one in known if end_times.at_latest(cluster, one) <= start}


def _place(cluster: Cluster, entry: Entry, plan: Plan) -> None:
    reservation = entry.reserved
    cluster.unreserve(entry)
    manage.begin(cluster, entry, reservation, ReleaseSet(plan, ()))


def _instead_of_others(cluster: Cluster, entry: Entry) -> Plan | None:
    """Where an AppWrapper with a provisioned request goes if it takes the nodes of AppWrappers
    without one: new nodes are equal, so the other may have got the nodes that came for it."""
    lifted = [one.uid for one in owners(cluster) if not _is_provisioned(cluster, one)]
    snapshot = release_set.what_if(cluster, entry, (entry.uid, *lifted), FULLEST)
    plan = release_set.place(cluster, snapshot) if lifted else None
    for owner in manage.owners_on(cluster, plan or []):
        if owner is not entry:
            _place(cluster, owner, [])
            cluster.scale_ups.searched.pop(owner.uid, None)
    return plan


def _go(cluster: Cluster, entry: Entry, plan: Plan) -> None:
    request = request_of(cluster, entry)
    since = entry.reserved.since if request is None else request.since
    manage.fulfil(cluster, entry, plan)
    before = cluster.scale_ups.nodes_before.get(entry.uid)
    if entry.phase is not Phase.INTENDING or before is None:
        return
    if not before.issuperset(cluster.capacity.gangs.nodes_of(entry.uid)):
        cluster.scale_ups.took(cluster.now - since)  # else room came free


# -- following -----------------------------------------------------------------------------------


def _follow(cluster: Cluster, entry: Entry) -> None:
    request = request_of(cluster, entry)
    if request is None:
        _ask(cluster, entry)
    elif request.withdrawn:
        return  # it is asked for again when that is gone
    elif request.state in FAILURES:
        words = request.message.rstrip(".") or "no reason is given"
        why = f"{request.object or 'The request'}: {request.state}: {words}."
        _fail(cluster, entry, request.state, why)
    elif (
        request.state is ScaleUpState.EXPIRED
        or _is_too_small(cluster, entry, request)
        or _is_overdue(cluster, entry, request)
    ):
        _withdraw(cluster, request)  # and ask anew
    elif not request.seen and 0 < request.again_at <= cluster.now:
        request.again_at = 0
        _emit(cluster, entry)


def _is_too_small(cluster: Cluster, entry: Entry, request: ScaleUpRequest) -> bool:
    """Whether more pods lack a place than when it was made, for some time: places were lost."""
    before = {(item, index): count for item, index, count in request.lacking}
    lacking = cluster.capacity.gangs.unplaced_pods(entry.uid)
    if not before or all(count <= before.get((item, index), 0) for item, index, count in lacking):
        request.small_since = 0
        return False
    request.small_since = request.small_since or cluster.now
    until = request.small_since + SCALE_UP_PAUSE
    cluster.agenda.wake_at(max(until, cluster.now))
    return until <= cluster.now


def _is_overdue(cluster: Cluster, entry: Entry, request: ScaleUpRequest) -> bool:
    """Whether pods lack a place long after the autoscaler ordered the nodes: other pods took room
    that the autoscaler had counted on."""
    if request.state is not ScaleUpState.PROVISIONED:
        return False
    due = request.provisioned_at + max(SCALE_UP_OVERDUE, 2 * cluster.scale_ups.usual)
    if cluster.now < due:
        cluster.agenda.wake_at(due)
        return False
    return bool(cluster.capacity.gangs.unplaced_pods(entry.uid))


def _fail(cluster: Cluster, entry: Entry, reason: str, why: str) -> None:
    kind = ConditionType.SCALE_UP
    entry.put_condition(kind, cluster.now, status=False, reason=reason, message=why)
    cluster.reservations.scale_up_failed(entry, cluster.now)
    manage.give_up(cluster, entry, why)


def _withdraw_unneeded(cluster: Cluster) -> None:
    for request in cluster.scale_ups:
        if not request.withdrawn and not _is_needed(cluster, request):
            _withdraw(cluster, request)


def _withdraw(cluster: Cluster, request: ScaleUpRequest) -> None:
    request.withdrawn_at = cluster.now
    cluster.emit(WithdrawScaleUp(request.uid, request.attempt))


def _is_needed(cluster: Cluster, request: ScaleUpRequest) -> bool:
    entry = cluster.entries.get(request.uid)
    if entry is None:
        return False
    if entry.uid in cluster.reservations:
        return _scales_up(entry) and request.attempt == entry.attempt + 1
    return request.until_bound and entry.attempt == request.attempt and _binds(entry)


def _binds(entry: Entry) -> bool:
    """Whether pods of its present attempt are yet to be bound."""
    return entry.phase in end_times.AT_WORK and not entry.record.placed
