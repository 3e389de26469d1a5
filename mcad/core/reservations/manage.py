"""The life of reservations: made, kept, and ended by a dispatch or given up (core R8-R10).

An AppWrapper with a reservation is out of the line. Its room is reserved and charged to its shares
although others still use it, so no new AppWrapper gets that room. As soon as all of it is free the
AppWrapper is dispatched. A reservation is recorded in status: the next leader plans it anew,
counting on the AppWrappers that already leave.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice

from mcad.core.attempts import create
from mcad.core.cluster import Cluster
from mcad.core.eligibility import end_times, pre_enqueue
from mcad.core.eligibility.precedence import outranked, outranks
from mcad.core.nodes.ledger import Plan
from mcad.core.reservations import release_set
from mcad.core.reservations.release_set import ReleaseSet
from mcad.core.state.bounds import (
    EVICTION_STEPS,
    OUTRANKING_TRIED,
    RESERVATION_TRIES_MAX,
    RESERVED_RETRY,
    RESTATE_INTERVAL,
    STUCK_AFTER,
    TEARDOWN_MARGIN,
    Look,
)
from mcad.core.state.entry import Entry
from mcad.core.state.reasons import (
    SCALE_UP_WITHDRAWN,
    ConditionType,
    EventReason,
    explain_reservation,
    some_of,
)
from mcad.core.state.records import replace
from mcad.core.state.reservation import EVICTIONS, Reservation, ReservationReason
from mcad.core.state.settings import Fit, Settings
from mcad.core.state.units import Duration, Instant

# -- making --------------------------------------------------------------------------------------


def make(cluster: Cluster, entry: Entry, reason: ReservationReason, releasing: ReleaseSet) -> None:
    """Reserve, for an AppWrapper in line, the room that comes free when the release set is gone."""
    until = _until(cluster, entry, reason, releasing)
    reservation = Reservation(reason, cluster.now, until, releasing.start)
    message = begin(cluster, entry, reservation, releasing)
    cluster.announce(entry, EventReason.ROOM_RESERVED, message, action="Reservation")


def _until(
    cluster: Cluster, entry: Entry, reason: ReservationReason, releasing: ReleaseSet
) -> Instant:
    """When the reservation expires: by then the victims are gone, or a limit was not kept. Without
    a start date it lasts as long as is likely to suffice, within the limit for all reservations."""
    settings = cluster.settings
    if reason in EVICTIONS:
        return cluster.now + settings.preemption_grace + evicted_within(cluster, releasing.leaving)
    if releasing.start:
        return releasing.start + to_leave(settings)
    tries, after = min(entry.patience.tries, RESERVATION_TRIES_MAX), settings.protect_after
    longest = cluster.now + (after << RESERVATION_TRIES_MAX)
    likely = min(releasing.likely + to_leave(settings), longest)
    return max(likely, cluster.now + (after << tries))


def evicted_within(cluster: Cluster, victims: Iterable[str]) -> Duration:
    """How long a reservation waits for victims (uids) from the announcement on: the grace period of
    their pods, and a margin for delays."""
    graces = (end_times.grace(cluster, one) for one in cluster.known(victims))
    return max(graces, default=0) + to_leave(cluster.settings)


def to_leave(settings: Settings) -> Duration:
    """The margin for AppWrappers to be gone after their end."""
    return max(settings.reservation_timeout, STUCK_AFTER)


def begin(cluster: Cluster, entry: Entry, reservation: Reservation, releasing: ReleaseSet) -> str:
    """Reserve the places of the plan; returns the sentence about the reservation. Nodes that may
    never come are charged to no share."""
    gang, designation = cluster.next_gang(entry)
    if reservation.reason is ReservationReason.SCALING_UP:
        cluster.admission.reserve_uncharged(gang, releasing.plan)
    else:
        cluster.admission.reserve(gang, designation, releasing.plan)
    places = cluster.capacity.gangs.places_of(entry.uid)
    reservation = replace(reservation, nodes=tuple(places), pods=tuple(places.values()))
    waits_for = {uid: cluster.entries[uid].attempt for uid in releasing.leaving}
    cluster.reservations.add(entry, reservation, waits_for)
    cluster.reservations.show(entry, _waits_for(cluster, entry))
    cluster.waiting.stand_in_front(entry)
    message = explain_reservation(entry.reserved)
    cluster.waiting.reserve(entry, message)
    cluster.agenda.wake_at(reservation.until)
    return message


def _waits_for(cluster: Cluster, entry: Entry) -> tuple[str, ...]:
    """The titles of the AppWrappers of the release set that are still there."""
    return tuple(sorted(cluster.entries[uid].title for uid in still_there(cluster, entry)))


def still_there(cluster: Cluster, entry: Entry) -> list[str]:
    """The uids of the AppWrappers of the release set that are still there. An AppWrapper that has
    left and runs elsewhere in another attempt does not count."""
    return [
        one.uid
        for one in cluster.known(entry.waits_for)
        if one.attempt == entry.waits_for[one.uid]
        and cluster.capacity.gangs.exists(one.uid)
        and one.uid not in cluster.reservations
    ]


# -- keeping -------------------------------------------------------------------------------------


def keep(cluster: Cluster) -> None:
    """First in a pass: dispatch to free reserved room, end expired reservations. Each reservation
    may cost a look at all nodes; when the work of the pass is done the rest is left for the next
    pass."""
    if cluster.reservations.on_record or cluster.reservations.preemptors:
        resume(cluster)
    reservations, pressed = cluster.reservations, cluster.capacity.reserved.take_pressed()
    if reservations and cluster.agenda.is_time_for(Look.RESERVATIONS):
        reservations.to_look.update(dict.fromkeys(reservations))
    owners = [one for one in reservations.in_turn() if not _scales_up(one[1])]
    for number, (uid, entry) in enumerate(owners):
        if number and cluster.agenda.is_spent:
            left = [one for one, _ in owners[number:] if one in pressed]
            reservations.to_look.update(dict.fromkeys(left))
            reservations.leave(uid)
            cluster.agenda.carry_over()
            return
        cluster.errors.about = uid
        is_due = uid in reservations.to_look
        reservations.to_look.pop(uid, None)
        _keep_one(cluster, entry, pressed.get(uid, ()), is_due=is_due)


def _scales_up(entry: Entry) -> bool:
    return entry.reserved.reason is ReservationReason.SCALING_UP  # kept by scale_up/keep.py


def _keep_one(cluster: Cluster, entry: Entry, pressed: Iterable[str], *, is_due: bool) -> None:
    is_free = cluster.admission.is_free(entry.uid, cluster.reservations.younger(entry.uid))
    is_over = entry.reserved.until <= cluster.now
    if cluster.capacity.gangs.unplaced(entry.uid):
        _plan_again(cluster, entry, "A node is gone.")
    elif is_free and (plan := _try(cluster, entry, at_once=is_over)) is not None:
        fulfil(cluster, entry, plan)
    elif is_over:
        left = _waits_for(cluster, entry) or _intruders(cluster, entry)
        end(cluster, entry, f"It expired while waiting for {some_of(left) or 'its quota'}.")
    elif not (is_free or _may_come_free(cluster, entry, look=is_due)):
        others = some_of(_intruders(cluster, entry)) or "others"
        _plan_again(cluster, entry, f"Its room was taken by {others}.")
    elif _is_crowded(cluster, entry, pressed, look=is_due):
        _move(cluster, entry)
    elif is_due:
        _look(cluster, entry)


def _may_come_free(cluster: Cluster, entry: Entry, *, look: bool) -> bool:
    """Whether the release set is still there and (on a ``look``) makes enough room: pods that were
    bound to the nodes meanwhile may stay for ever."""
    start = entry.reserved.start
    if cluster.now < start:
        return True  # backfill let in only AppWrappers that end in time
    if start and not _is_crowded(cluster, entry, (), look=True):
        return True  # they end in time and take some seconds to go
    left = still_there(cluster, entry)
    if not left and cluster.settings.fit is not Fit.NODES:
        return False
    if not left:
        if cluster.capacity.reserved.is_left(entry.uid, entry.waits_for):
            return True  # the watch of pods has not yet reported that they are gone
        is_short = cluster.forest.is_overcommitted(entry.uid)
        owners = cluster.reservations.values() if is_short else ()
        waits = not is_short or any(still_there(cluster, owner) for owner in owners)
        return waits and not _intruders(cluster, entry)
    if not look:
        return True
    removal = release_set.for_owner(cluster, entry)
    # Pods of vanished AppWrappers may still be there.
    vanished = (uid for uid in entry.waits_for if not cluster.capacity.gangs.exists(uid))
    others = (uid for owner in cluster.reservations.values() for uid in still_there(cluster, owner))
    for uid in dict.fromkeys((*vanished, *others)):
        removal.remove(uid)
    return release_set.place(cluster, removal) is not None


def _is_crowded(cluster: Cluster, entry: Entry, nodes: Iterable[str], *, look: bool) -> bool:
    """Whether pods that stay beyond the promised start use room of the reservation (on a ``look``,
    on any of its nodes): kube-scheduler binds pods to reserved nodes too."""
    if not entry.reserved.start:
        return False
    promised = _promised(cluster, entry)

    @cache
    def leaves(uid: str) -> bool:
        one = cluster.entries.get(uid)
        return one is not None and end_times.at_latest(cluster, one) <= promised

    nodes = cluster.capacity.gangs.nodes_of(entry.uid) if look else nodes
    return cluster.capacity.reserved.is_crowded(entry.uid, nodes, leaves)


def _promised(cluster: Cluster, entry: Entry) -> Instant:
    """The time by which room has to be free to keep the promise, with a margin: ends move by the
    seconds that a creation takes, and overdue AppWrappers are about to leave."""
    return max(entry.reserved.start, cluster.now + TEARDOWN_MARGIN) + TEARDOWN_MARGIN


def _move(cluster: Cluster, entry: Entry) -> None:
    """Move the reservation to other nodes, where the AppWrapper starts as promised. Without such
    nodes it stays: an AppWrapper may end earlier than it has to."""
    reservation, promised = entry.reserved, _promised(cluster, entry)
    ends = ((end_times.at_latest(cluster, one), one.uid) for one in release_set.present(cluster))
    leaving = [uid for end, uid in sorted(ends) if end <= promised]
    snapshot = release_set.what_if(cluster, entry, (entry.uid,))
    found = release_set.least(cluster, snapshot, leaving)
    if found is not None:
        cluster.unreserve(entry)
        releasing = ReleaseSet(found.plan, found.leaving, reservation.start)
        begin(cluster, entry, reservation, releasing)


def _intruders(cluster: Cluster, entry: Entry) -> list[str]:
    """The titles of the users of its nodes that do not leave (kube-scheduler put them there)."""
    pods, uids = cluster.capacity.reserved.occupants(entry.uid)
    names: dict[str, None] = {}
    for pod in pods:
        if entry.waits_for.get(pod.workload) != pod.attempt:
            names[_owner(cluster, pod.workload) or f"pod {pod.namespace}/{pod.name}"] = None
    names.update((_owner(cluster, uid), None) for uid in uids if uid not in entry.waits_for)
    return [name for name in names if name]


def _owner(cluster: Cluster, uid: str) -> str:
    owner = cluster.entries.get(uid)
    return owner.title if owner is not None else ""


def _try(cluster: Cluster, entry: Entry, *, at_once: bool) -> Plan | None:
    """Where the AppWrapper goes now that its reserved room is free. If a try leaves too little work
    of the pass for a search, the next try comes after a pause, or ``at_once`` on expiry."""
    next_try = cluster.reservations.next_try
    if cluster.now < next_try.get(entry.uid, 0) and not at_once:
        return None
    plan = _room(cluster, entry)
    if not cluster.agenda.has_work_for(EVICTION_STEPS):
        next_try[entry.uid] = cluster.now + RESERVED_RETRY
        cluster.agenda.wake_at(next_try[entry.uid])
    return plan


def _room(cluster: Cluster, entry: Entry) -> Plan | None:
    """Where the AppWrapper goes without its reservation. It may not fit on its free nodes: another
    AppWrapper may be about to replace a pod that was there a moment ago (C2)."""
    return release_set.place(cluster, release_set.for_owner(cluster, entry))


def fulfil(cluster: Cluster, entry: Entry, plan: Plan) -> None:
    """Dispatch by the plan: the reserved room is free, or as much elsewhere. Room that came free by
    itself goes to the highest priority that fits by now; room of evicted victims does not."""
    reservation = entry.reserved
    hindrance = pre_enqueue.obstacle(cluster, entry)
    if reservation.reason in EVICTIONS:
        if hindrance is not None and cluster.now < reservation.until:
            return  # its victims may not be evicted again
    else:
        for other in islice(outranking(cluster, entry), OUTRANKING_TRIED):
            if cluster.agenda.is_spent:
                break  # the owner does not wait for all offers
            snapshot = release_set.what_if(cluster, other, (entry.uid,))
            if release_set.place(cluster, snapshot) is not None:
                give_way(cluster, entry, other)
                return
    cluster.unreserve(entry)
    if hindrance is not None:
        cluster.waiting.hold(entry, hindrance)
        return
    gang, designation = cluster.next_gang(entry)
    is_short = cluster.admission.quota_refusal(gang.shape, cluster.path(entry)) is not None
    if is_short or cluster.settings.fit is not Fit.NODES:  # short because of younger reservations
        cluster.admission.assume_at(gang, designation, plan)
    elif cluster.admission.assume(gang, designation) is not None:
        cluster.line_up(entry)  # it does not fit after all
        return
    cluster.reservations.fulfil(entry, reservation)
    create.begin(cluster, entry)


def _plan_again(cluster: Cluster, entry: Entry, why: str) -> None:
    """Plan again for nodes that will not come free: a node is gone or no longer admits the pods, or
    other pods are bound there. The reservation moves, with the same release set or, if it waits for
    declared ends, with any release set."""
    reservation, leaving = entry.reserved, still_there(cluster, entry)
    cluster.unreserve(entry)
    releasing = release_set.without(cluster, entry, leaving)
    if releasing is None and reservation.reason not in EVICTIONS:
        releasing = release_set.earliest(cluster, entry, outranked(cluster, entry))
        if releasing is not None and reservation.start and not releasing.start:
            releasing = None  # a start was promised
        if releasing is not None:
            until = max(reservation.until, _until(cluster, entry, reservation.reason, releasing))
            reservation = replace(reservation, start=releasing.start, until=until)
    if releasing is not None:
        begin(cluster, entry, reservation, releasing)
    else:
        give_up(cluster, entry, f"{why} There is no room for it elsewhere.")


def _look(cluster: Cluster, entry: Entry) -> None:
    """Dispatch if there is room elsewhere by now; else report what is still there."""
    shape, free = cluster.capacity.shape(entry.workload.sets), cluster.capacity.reserved.spare()
    plan = _room(cluster, entry) if cluster.capacity.may_fit(shape, free) else None
    if plan is not None:
        fulfil(cluster, entry, plan)
    elif cluster.now - entry.wait.reported_at >= RESTATE_INTERVAL:
        left = _waits_for(cluster, entry)
        if left != entry.reserved.waits_for:
            entry.wait.reported_at = cluster.now
            cluster.reservations.show(entry, left)
            cluster.settle(entry)


# -- ending --------------------------------------------------------------------------------------


def end(cluster: Cluster, entry: Entry, why: str) -> None:
    """End a reservation that lasted too long: its room is free for all, and the AppWrapper is in
    line again. If it waited for AppWrappers to end by themselves, it keeps its right to evict."""
    is_evicting = entry.reserved.reason in EVICTIONS
    patience = entry.eviction_patience if is_evicting else entry.patience
    patience.came_to_nothing(entry.reserved.since, cluster.now)
    give_up(cluster, entry, why)


def outranking(cluster: Cluster, owner: Entry) -> Iterator[Entry]:
    """The AppWrappers in line, in order, that go before the owner of the reservation, want the same
    nodes, and fit, reservations aside; as many as this pass has work for."""
    shape, free = cluster.capacity.shape(owner.workload.sets), cluster.capacity.reserved.spare()
    for eqclass in cluster.waiting.refused(cluster.waiting.queue.eqclasses()):
        entry = eqclass.first()
        if not (outranks(entry, owner) and cluster.capacity.compete(shape, eqclass.shape)):
            continue
        begun = cluster.admission.steps
        may_fit = cluster.capacity.may_fit(eqclass.shape, free)
        cluster.agenda.spent += cluster.admission.steps - begun
        if may_fit:
            yield entry
        if cluster.agenda.is_spent:
            return


def owners_on(cluster: Cluster, plan: Plan) -> list[Entry]:
    """The owners of the reserved nodes that the plan uses."""
    owners = {row.reserved_for: None for _, row, _ in plan if row.reserved_for}
    return [cluster.entries[uid] for uid in owners]


def clear(cluster: Cluster, entry: Entry, plan: Plan) -> None:
    """End reservations of others on nodes of the plan: the AppWrapper goes before them."""
    for owner in owners_on(cluster, plan):
        give_way(cluster, owner, entry)


def give_way(cluster: Cluster, entry: Entry, other: Entry) -> None:
    """End a reservation for an AppWrapper with a higher priority."""
    give_up(cluster, entry, f"{other.title} has a higher priority and goes first.")


def give_up(cluster: Cluster, entry: Entry, why: str) -> None:
    """End a reservation; the AppWrapper is in line again, at its position."""
    cluster.line_up(entry)
    note = f"Room is not kept for it any more. {why}"
    cluster.announce(entry, EventReason.RESERVATION_ENDED, note, action="Reservation", warning=True)


# -- after a restart -----------------------------------------------------------------------------


def resume(cluster: Cluster) -> None:
    """Resume reservations on record, the oldest first, as far as victims already leave."""
    for entry, reservation in in_line(cluster, cluster.reservations.take_on_record()):
        if reservation.reason is ReservationReason.SCALING_UP and cluster.settings.asks_for_nodes:
            cluster.reservations.on_record[entry.uid] = reservation  # resumed by scale_up/keep.py
        elif _may_resume(cluster, reservation):
            _resume_one(cluster, entry, reservation)
        else:
            reason = SCALE_UP_WITHDRAWN
            entry.unset_condition(ConditionType.SCALE_UP, cluster.now, reason=reason)
            cluster.settle(entry)  # this dispatcher makes no such reservation


def _may_resume(cluster: Cluster, reservation: Reservation) -> bool:
    if reservation.reason is ReservationReason.SCALING_UP:
        return False  # requests are switched off
    return cluster.settings.fit is Fit.NODES or reservation.reason in EVICTIONS


def in_line(cluster: Cluster, found: dict[str, Reservation]) -> Iterator[tuple[Entry, Reservation]]:
    """The AppWrappers on record that still wait, the oldest reservation first. A preemptor that was
    dispatched since has had its room, although the records of its victims still name it."""
    for uid, reservation in sorted(found.items(), key=lambda one: (one[1].since, one[0])):
        entry = cluster.entries.get(uid)
        if entry is None or entry not in cluster.waiting.queue:
            continue
        if entry.dispatch is None or entry.dispatch.since <= reservation.since:
            yield entry, reservation


def _resume_one(cluster: Cluster, entry: Entry, reservation: Reservation) -> None:
    leaving = release_set.releasing_soon(cluster)
    # On its own nodes: free room elsewhere may be reserved for a later AppWrapper.
    releasing = release_set.without(cluster, entry, leaving, reservation.nodes)
    if releasing is None:
        releasing = release_set.without(cluster, entry, leaving)
    if releasing is None and reservation.reason not in EVICTIONS:
        releasing = release_set.earliest(cluster, entry)
    if releasing is not None:
        begin(cluster, entry, reservation, releasing)
    else:
        cluster.settle(entry)  # removes the reservation from its status
