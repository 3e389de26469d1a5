"""When evictions for a waiting AppWrapper are considered, and in which order (core R10).

Refused AppWrappers are considered after the walk, in the order of the line. After a plan without
victims the same AppWrapper is planned again after half of ``backoffTime`` at the earliest, as with
verdicts. There is at most one search a second, and its work is bounded, so failing plans cost a
constant share of the time however many AppWrappers wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from mcad.core.cluster import Cluster
from mcad.core.eligibility import end_times, pre_enqueue
from mcad.core.eligibility.borrow_wait import ask_back
from mcad.core.eligibility.precedence import outranked
from mcad.core.preemption import eviction
from mcad.core.preemption.targets import evictions
from mcad.core.queue.equivalence import EquivalenceClass
from mcad.core.reservations import manage, release_set
from mcad.core.reservations.release_set import ReleaseSet
from mcad.core.snapshot.removal import Room, spare_victims
from mcad.core.state.bounds import (
    EVICTION_STEPS,
    HEADS_TRIED,
    HOLD_STEPS,
    RIGHT_STEPS,
    RUN_TIME_DOUBLED,
    RUN_TIME_DOUBLES_MAX,
    TEARDOWN_MARGIN,
    Look,
)
from mcad.core.state.entry import Entry
from mcad.core.state.eviction_pace import NextEvictions
from mcad.core.state.lifecycle import TEARING_DOWN
from mcad.core.state.reservation import EVICTIONS, Eviction, ReservationReason
from mcad.core.state.survey import Survey
from mcad.core.state.units import Duration, Instant

if TYPE_CHECKING:
    from collections.abc import Set

    from mcad.core.state.quota_records import Path


def walk(cluster: Cluster) -> None:
    """Search once, if a search is due."""
    if not (_is_possible(cluster) and (len(cluster.waiting.queue) or cluster.reservations)):
        return
    agenda = cluster.agenda
    if not (_may_evict_now(cluster) and agenda.is_time_for(Look.EVICTIONS)):
        return
    if not agenda.has_work_for(_look_steps(cluster)):
        _go_on(cluster)
        return
    due = _due(cluster)
    if due or cluster.reservations or cluster.eviction_pace.next:
        _look(cluster, due)


def _go_on(cluster: Cluster) -> None:
    """Leave the rest for the next pass, where many AppWrappers wait or run."""
    cluster.walk.gives_way = True
    cluster.agenda.look_again(Look.EVICTIONS)


def _may_evict_now(cluster: Cluster) -> bool:
    """Whether evictions may begin: while one preemptor waits for its victims, no other evicts."""
    due = cluster.eviction_pace.next
    if due is None or due.at <= cluster.now or _still_waits(cluster, due) is None:
        return True
    cluster.agenda.wake_at(due.at)
    return False


def _still_waits(cluster: Cluster, due: NextEvictions) -> Entry | None:
    """The preemptor, None if it does not wait any more."""
    entry = cluster.entries.get(due.preemptor)
    if entry is None or not (entry in cluster.waiting.queue or entry.uid in cluster.reservations):
        return None
    return entry


def _is_possible(cluster: Cluster) -> bool:
    settings = cluster.settings
    return settings.preemption or (settings.reclaim and bool(cluster.forest.trees))


def _due(cluster: Cluster) -> list[EquivalenceClass]:
    """The refused classes to plan for: the oldest last plan first, then in the order of the line.
    AppWrappers without a right to evict, nearly all of them at overload, are left out."""
    last = cluster.now - cluster.settings.backoff // 2
    is_everyone, share = cluster.settings.preemption, _Share(cluster)
    wanted = [
        eqclass
        for eqclass in cluster.waiting.queue.eqclasses()
        if eqclass.planned_at <= last and (is_everyone or share.is_left(eqclass))
    ]
    return sorted(cluster.waiting.refused(wanted), key=attrgetter("planned_at"))


class _Share:
    """Whether a leaf of a class, in one of the trees, has share left of a demanded resource."""

    def __init__(self, cluster: Cluster) -> None:
        self._forest = cluster.forest
        self._unspent: dict[Path, list[Set[str]]] = {}

    def is_left(self, eqclass: EquivalenceClass) -> bool:
        unspent = self._unspent.get(eqclass.path)
        if unspent is None:
            unspent = self._unspent[eqclass.path] = self._forest.unspent(eqclass.path)
        return any(not of_tree.isdisjoint(eqclass.shape.demanded) for of_tree in unspent)


def _look(cluster: Cluster, due: list[EquivalenceClass]) -> None:
    left = EVICTION_STEPS
    present: Survey | None = None
    preemptors = chain(_next_preemptor(cluster), _take_owners(cluster), _firsts(cluster, due))
    while left > 0:  # checked first: each preemptor taken counts as planned for
        entry = next(preemptors, None)
        if entry is None:
            return
        if may_win(cluster, entry):
            if present is None:
                present = survey(cluster)
            if not _has_a_right(cluster, entry, present.lowest):
                continue
            sought = _try(cluster, entry, present)
            left -= sought.steps
            cluster.agenda.spent += sought.steps
            if cluster.eviction_pace.next is not None:
                return
            if sought.releasing is not None:
                present = None  # the victims are candidates no more
                if not cluster.agenda.has_work_for(_look_steps(cluster)):
                    _go_on(cluster)
                    return
    cluster.agenda.is_time_for(Look.EVICTIONS)  # the rest at the next look


def _next_preemptor(cluster: Cluster) -> Iterator[Entry]:
    """The preemptor whose evictions are due, if it still waits. Its status stops announcing
    them."""
    due, cluster.eviction_pace.next = cluster.eviction_pace.next, None
    entry = _still_waits(cluster, due) if due is not None else None
    if entry is not None:
        _report_anew(cluster, entry)
        yield entry


def _report_anew(cluster: Cluster, entry: Entry) -> None:
    """Report the AppWrapper anew: its reason to wait has changed."""
    entry.report_anew()
    cluster.agenda.to_report[entry.uid] = None


def _firsts(cluster: Cluster, due: Iterable[EquivalenceClass]) -> Iterator[Entry]:
    """The first of each class that may evict; the class counts as planned for when its turn
    comes."""
    for eqclass in due:
        if eqclass.members and eqclass.refusal is not None:
            eqclass.planned_at = cluster.now
            ask_back(cluster, eqclass)  # its leaf may have got room since it was refused
            entry = _first_that_may(cluster, eqclass)
            eqclass.planned_for = entry.uid if entry is not None else ""
            if entry is not None:
                yield entry


def _first_that_may(cluster: Cluster, eqclass: EquivalenceClass) -> Entry | None:
    """The first of a class that may evict. As in the walk, AppWrappers before it that something
    besides room keeps from starting are put on hold, so that they block no other."""
    for entry in eqclass.front(HEADS_TRIED):
        if not _may_evict(cluster, entry):
            continue
        hindrance = pre_enqueue.obstacle(cluster, entry)
        if hindrance is None:
            return entry
        cluster.agenda.spent += HOLD_STEPS
        cluster.waiting.hold(entry, hindrance)
        eqclass.planned_at = 0  # for the next head
    return None


def _due_owners(cluster: Cluster) -> list[Entry]:
    """Owners of reservations that wait for others to end by themselves. They keep the right to
    evict, which may be sooner."""
    last = cluster.now - cluster.settings.backoff // 2
    return [
        owner
        for owner in cluster.reservations.values()
        if owner.planned_at <= last
        and owner.reservation is not None
        and owner.reservation.reason not in EVICTIONS
    ]


def _take_owners(cluster: Cluster) -> Iterator[Entry]:
    """The owners that are due; each counts as planned for when its turn comes."""
    for owner in _due_owners(cluster):
        if owner.uid in cluster.reservations:
            owner.planned_at = cluster.now
            yield owner


def may_win(cluster: Cluster, entry: Entry) -> bool:
    """Whether the AppWrapper may evict, and only missing room keeps it from starting."""
    return _may_evict(cluster, entry) and pre_enqueue.obstacle(cluster, entry) is None


def _may_evict(cluster: Cluster, entry: Entry) -> bool:
    """Whether the AppWrapper has a right to evict, and no reservation of its own expired lately."""
    if entry.workload.never_preempts or cluster.now < entry.eviction_patience.until:
        return False
    return _has_a_right(cluster, entry)


def _has_a_right(cluster: Cluster, entry: Entry, lowest: int | None = None) -> bool:
    """Whether a victim may exist for the AppWrapper (rights.py); ``lowest`` is the lowest priority
    of all candidates, if known. This cheap question comes first: at overload most waiting
    AppWrappers have used up their share."""
    settings, work = cluster.settings, entry.workload
    if settings.preemption and (lowest is None or lowest < work.priority):
        return True
    if _is_charged(entry):
        return settings.reclaim
    demand = cluster.admission.demand(cluster.capacity.shape(work.sets))
    return settings.reclaim and cluster.forest.may_reclaim(cluster.path(entry), demand)


def _is_charged(entry: Entry) -> bool:
    """Whether its demand is charged to its shares already, for its reservation."""
    reservation = entry.reservation
    return reservation is not None and reservation.reason is not ReservationReason.SCALING_UP


def may_find_victims(cluster: Cluster, entry: Entry, planned: Planned) -> bool:
    """Whether victims for the AppWrapper may be found by a search to come: the last one is too long
    ago, its evictions are due later, or it found victims for another member of the class."""
    if not (_is_possible(cluster) and may_win(cluster, entry)):
        return False
    due, served = cluster.eviction_pace.next, cluster.entries.get(planned.uid)
    if due is not None and due.preemptor in (entry.uid, planned.uid):
        return True
    is_old = planned.at <= cluster.now - cluster.settings.backoff // 2
    return is_old or served is None or not _still_lacks(cluster, served)


def _still_lacks(cluster: Cluster, entry: Entry) -> bool:
    """Whether the AppWrapper waits, and without victims."""
    reservation = entry.reservation
    if reservation is not None:
        return reservation.reason not in EVICTIONS
    return entry in cluster.waiting.queue


def _survey_steps(cluster: Cluster) -> int:
    return 2 * len(cluster.capacity.gangs.uids())


def _look_steps(cluster: Cluster) -> int:
    return _survey_steps(cluster) + EVICTION_STEPS


class Planned(NamedTuple):
    """The last search for victims of a class: when, and for which member (a uid)."""

    at: Instant
    uid: str


VictimOrder = tuple[int, int, str]


def victim_order(entry: Entry) -> VictimOrder:
    """The victim with the lowest priority goes first, then the latest dispatch."""
    since = entry.dispatch.since if entry.dispatch is not None else 0
    return entry.workload.priority, -since, entry.uid


def survey(cluster: Cluster) -> Survey:
    """All AppWrappers that hold room, in the order of eviction."""
    found: list[Entry] = []
    releasing_soon: list[str] = []
    promised: list[str] = []
    now, shortest = cluster.now, cluster.settings.min_run_time
    for uid in cluster.capacity.gangs.uids():
        cluster.errors.about = uid
        entry = cluster.entries.get(uid)
        if entry is None:
            continue
        if uid in cluster.evictions:
            promised.append(uid)
        elif eviction.may_be_evicted(entry):
            since = entry.record.since
            run_time = shortest if entry.eviction is None else _run_time(entry.eviction, shortest)
            if since + run_time <= now:
                found.append(entry)
        elif _leaves_soon(cluster, entry):
            releasing_soon.append(uid)
    found.sort(key=victim_order)
    cluster.agenda.spent += _survey_steps(cluster)
    return Survey({one.uid: one.workload for one in found}, releasing_soon, promised)


def _run_time(before: Eviction, shortest: Duration) -> Duration:
    """The minimum run time, doubled by each eviction, so that a borrower gets work done in the end,
    and two AppWrappers that evict each other in turn do so at growing intervals."""
    return max(shortest, RUN_TIME_DOUBLED) << min(before.count, RUN_TIME_DOUBLES_MAX)


def _leaves_soon(cluster: Cluster, entry: Entry) -> bool:
    if entry.phase not in TEARING_DOWN or entry.keeps_room:
        return False
    return (
        cluster.now - entry.record.entered
        < end_times.teardown_time(cluster, entry) + TEARDOWN_MARGIN
    )


class Sought(NamedTuple):
    """The result of a plan: the victims, if their eviction is of use; the AppWrappers that leave
    soon and are waited for as well; where the preemptor goes; and the work of the plan in
    ``steps``."""

    steps: int
    victims: tuple[tuple[str, ReservationReason], ...] = ()
    reason: ReservationReason = ReservationReason.PREEMPTING
    releasing: ReleaseSet | None = None


def plan(cluster: Cluster, entry: Entry, present: Survey) -> Sought:
    """The victims that would make room for a waiting AppWrapper; nothing is changed."""
    snapshot = release_set.what_if(cluster, entry, (*outranked(cluster, entry), entry.uid))
    releasing_soon = [uid for uid in present.releasing_soon if snapshot.remove(uid)]
    removed = set(releasing_soon)
    for uid in (*present.releasing_soon, *present.promised):
        if uid not in removed:  # of no use on nodes, but its team borrows less then
            snapshot.shares.remove(uid)
    found = evictions(entry.workload, present.candidates, snapshot, cluster.settings)
    if snapshot.shares.seats:
        snapshot.spend(RIGHT_STEPS * len(present.candidates))
    if found is None or not found.victims:
        return Sought(snapshot.steps)
    room = Room((), found.plan)
    if releasing_soon:
        room = spare_victims(snapshot, releasing_soon) or Room(tuple(releasing_soon), found.plan)
    leaving = (*room.leaving, *(uid for uid, _ in found.victims))
    return Sought(snapshot.steps, found.victims, found.reason, ReleaseSet(room.plan, leaving))


def _are_there(cluster: Cluster, sought: Sought) -> bool:
    """Whether all victims may still be evicted: the survey may be from an earlier pass."""
    return all(
        uid in cluster.entries
        and uid not in cluster.evictions
        and cluster.capacity.gangs.exists(uid)
        and eviction.may_be_evicted(cluster.entries[uid])
        for uid, _ in sought.victims
    )


def _try(cluster: Cluster, entry: Entry, present: Survey) -> Sought:
    """Plan for a waiting AppWrapper, and evict if that is of use."""
    cluster.errors.about = entry.uid
    sought = plan(cluster, entry, present)
    if sought.releasing is None or not _are_there(cluster, sought):
        return Sought(sought.steps)
    pace = cluster.eviction_pace
    if pace.may_begin(entry.uid, len(sought.victims), cluster.now):
        pace.spend(len(sought.victims), cluster.now)
        cluster.unreserve(entry)
        manage.clear(cluster, entry, sought.releasing.plan)
        manage.make(cluster, entry, sought.reason, sought.releasing)
        eviction.begin(cluster, entry, sought.victims)
    else:
        _report_anew(cluster, entry)
        cluster.agenda.wake_at(pace.next.at if pace.next is not None else cluster.now)
    return sought
