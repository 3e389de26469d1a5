"""Reads the records of an earlier leader, assumes attempts again, continues them (P1, P11)."""

from __future__ import annotations

from functools import partial

from mcad.core.attempts import create, edits, teardown
from mcad.core.cluster import Cluster
from mcad.core.eligibility import binding_wait
from mcad.core.internal_errors import for_each
from mcad.core.observed import objects
from mcad.core.preemption import eviction
from mcad.core.reservations import manage
from mcad.core.running import reset
from mcad.core.state.bounds import COMMIT_GRACE, RECOVER_STEPS, RECOVERED_PER_PASS
from mcad.core.state.entry import Entry
from mcad.core.state.internal_error import on_record
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import DispatchPhase, DispatchRecord, Next, Persisted
from mcad.core.state.quota_records import DEFAULT_LEAF
from mcad.core.state.reasons import ConditionType, EventReason, TeardownReason
from mcad.core.state.records import replace
from mcad.core.state.reservation import Reservation, ReservationReason
from mcad.core.state.restored_phase import restored_phase
from mcad.core.state.units import Instant

_LIVE = (Phase.CREATING, Phase.RUNNING, Phase.PAUSING)


def restore(cluster: Cluster, entry: Entry, saved: Persisted) -> None:
    """Take over a recorded status; the next ``recover`` continues the attempt."""
    if saved.unreadable:
        _leave_alone(cluster, entry, saved.unreadable)
        return
    saved = _timed(saved, cluster.now)
    entry.conditions = {condition.type: condition for condition in saved.conditions}
    entry.past.first_dispatch, entry.past.requeueings = saved.first_dispatch, saved.requeueings
    entry.past.requeueing_wait, entry.past.resets = saved.requeueing_wait, saved.resets
    entry.path, entry.eviction = saved.quota, saved.eviction
    entry.counted = tuple(at for at in saved.quota if at[1] == DEFAULT_LEAF)
    entry.deleted_trees = saved.deleted_trees
    entry.dispatch, entry.pods = saved.dispatch, saved.pods
    if entry.shows(ConditionType.SCALE_UP):
        cluster.scale_ups.shown[entry.uid] = None
    cluster.reservations.scale_up_on_record(entry, cluster.now, cluster.settings.scale_up_timeout)
    if saved.reservation is not None:
        cluster.reservations.on_record[entry.uid] = saved.reservation
    if saved.dispatch is not None and saved.dispatch.preemptor:
        _note_preemptor(cluster, entry, saved.dispatch)
    if not cluster.started:
        cluster.restored[entry.uid] = None
    entry.counted_at = cluster.now  # a start has more urgent things to write
    entry.wait.restored = True
    if saved.observed_generation not in (0, entry.workload.generation):
        # This dispatcher wrote the record, and the spec was edited since.
        cluster.agenda.to_settle[entry.uid] = None
    entry.phase = restored_phase(saved)
    _hold_on_record(cluster, entry, saved)
    if saved.dispatch is not None:
        if saved.dispatch.phase is not DispatchPhase.RELEASED:
            cluster.begin_attempt(entry, saved.dispatch)
        cluster.waiting.pause(entry, teardown.pause_on_record(cluster, entry))
    elif entry.phase is Phase.FOREIGN:
        note = "Dispatched by another controller: it is left alone, its pods count."
        cluster.announce(entry, EventReason.LEFT_ALONE, note, action="Adopt", warning=True)


def _hold_on_record(cluster: Cluster, entry: Entry, saved: Persisted) -> None:
    """Keep the AppWrapper held: an error of this version about this spec would come again."""
    shown = entry.conditions.get(ConditionType.INTERNAL_ERROR)
    if shown is None or not shown.status:
        return
    is_same_spec = saved.observed_generation in (0, entry.workload.generation)
    error = on_record(shown.message)
    if is_same_spec and error is not None:
        entry.set_aside(cluster.now)
        entry.blame(error, cluster.now)
    else:
        entry.drop_condition(ConditionType.INTERNAL_ERROR)
        cluster.agenda.to_settle[entry.uid] = None


def _leave_alone(cluster: Cluster, entry: Entry, what: str) -> None:
    """Leave an AppWrapper with an unreadable record alone: it may have objects."""
    entry.phase, entry.unreadable = Phase.FOREIGN, True
    note = (
        f"status.dispatch has a record that this version does not understand ({what}): it is left "
        "alone, its pods count. Run the version that wrote it; or, if none of its objects exist, "
        "remove status.dispatch with kubectl patch --subresource=status, and it queues anew."
    )
    cluster.announce(entry, EventReason.LEFT_ALONE, note, action="Adopt", warning=True)


def _timed(saved: Persisted, now: Instant) -> Persisted:
    """The record in times of this process.

    A missing time is now, not 1970: the first version did not write all of them, and every clock
    that counts from a missing time would have run out. A time in the future was written before the
    wall clock was set back, and is now as well: its clocks would last that much longer.
    """

    def past(at: Instant) -> Instant:
        return min(at, now)

    conditions = tuple(replace(one, changed=past(one.changed or now)) for one in saved.conditions)
    record = saved.dispatch
    if record is not None:
        is_past = record.phase not in (DispatchPhase.CREATING, DispatchPhase.DISPATCHED)
        entered = record.entered or (now if is_past else 0)
        confirmed = record.confirmed or (now if record.phase is DispatchPhase.DISPATCHED else 0)
        since = record.since or now
        times = {"since": past(since), "confirmed": past(confirmed), "entered": past(entered)}
        record = replace(record, **times)
    evicted = saved.eviction and replace(saved.eviction, at=past(saved.eviction.at))
    deleted = tuple((tree, past(since)) for tree, since in saved.deleted_trees)
    return replace(
        saved, conditions=conditions, dispatch=record, eviction=evicted, deleted_trees=deleted
    )


def _note_preemptor(cluster: Cluster, victim: Entry, record: DispatchRecord) -> None:
    """Note the preemptor of an eviction: its reservation may not have been written."""
    until = record.entered + manage.evicted_within(cluster, (victim.uid,))
    is_over = record.phase is DispatchPhase.RELEASED and record.next is not Next.QUEUED
    if is_over or until <= cluster.now:
        return
    reclaims = record.reason == TeardownReason.RECLAIMED
    reason = ReservationReason.RECLAIMING if reclaims else ReservationReason.PREEMPTING
    evicted = victim.eviction
    is_of_it = evicted is not None and evicted.by == record.preemptor
    since = evicted.at if evicted is not None and is_of_it else record.entered
    reservation = Reservation(reason, since, until)
    cluster.reservations.preemptors[record.preemptor] = reservation


def recover(cluster: Cluster) -> None:
    """Continue the attempts of an earlier leader (P1, P11): attempts with a right to their room
    come first, the oldest first. The next pass continues while any are ``recovering``."""
    begun = _take_begun(cluster, RECOVERED_PER_PASS)
    cluster.agenda.spent += RECOVER_STEPS * len(begun)
    late = {entry.uid for entry in begun if entry.untested and _may_be_late(entry)}
    for_each(cluster, [entry for entry in begun if entry.uid not in late], _assume_again)
    for_each(cluster, begun, partial(_go_on, late=late))


def _go_on(cluster: Cluster, entry: Entry, *, late: set[str]) -> None:
    entry.untested, is_late = False, entry.uid in late
    if is_late and not _has_room(cluster, entry):
        _give_way(cluster, entry)
        return
    if not is_late:
        _note_absence(cluster, entry)
    _resume(cluster, entry)


def _take_begun(cluster: Cluster, most: int) -> list[Entry]:
    agenda = cluster.agenda
    if agenda.to_recover:
        begun = list(cluster.known(agenda.to_recover))
        latest = max((entry.dispatch.epoch for entry in begun if entry.dispatch), default=0)
        for entry in begun:
            entry.untested = _is_late(entry, latest)
        begun.sort(key=lambda e: (e.untested, e.dispatch.since if e.dispatch else 0, e.uid))
        agenda.recovering.update((entry.uid, None) for entry in begun)
        agenda.to_recover.clear()
        if len(begun) > most:  # sorting so many is the work of a pass
            agenda.carry_over()
            return []
    return list(cluster.known(agenda.take(agenda.recovering, most)))


def _is_late(entry: Entry, latest: int) -> bool:
    """P12: whether the room may have been given away by a leader that did not know the attempt: by
    this leader after its barrier, or by a later epoch before an intent in flight arrived."""
    superseded = entry.phase is Phase.CREATING and entry.record.epoch < latest
    return _may_be_late(entry) and (superseded or entry.untested)


def _may_be_late(entry: Entry) -> bool:
    return not entry.workload.deleting and entry.phase in _LIVE


def _has_room(cluster: Cluster, entry: Entry) -> bool:
    """P12: an attempt that was unknown when its room was given away stays if it fits all the same.

    The exact verdict counts a DaemonSet's pod on every node, present or not; so an adopted attempt
    that finds nodes for all pods that it still wants fits as well.
    """
    cluster.capacity.place_unplaced()
    own = [child for child in cluster.objects.of(entry) if child.attempt == entry.attempt]
    wants = {(one.item, index): want for one in own for index, want in enumerate(one.wants)}
    refusal = cluster.admission.assume(*cluster.gang(entry), wants)
    _assume_again(cluster, entry)
    if refusal is None or refusal.quota is not None:
        return refusal is None
    cluster.capacity.place_unplaced()
    return not cluster.capacity.gangs.unplaced(entry.uid)


def _give_way(cluster: Cluster, entry: Entry) -> None:
    record = entry.record
    if entry.phase is Phase.PAUSING:
        reset.give_up_room(cluster, entry)
        return
    making = entry.creation
    making.cursor = len(record.inventory)  # all created objects are deleted
    if record.phase is DispatchPhase.CREATING:
        making.doubt = cluster.now + COMMIT_GRACE  # a create may be in flight (ADR 7)
    note = f"Attempt {record.attempt} of epoch {record.epoch} does not fit any more."
    teardown.take_back(cluster, entry, TeardownReason.SUPERSEDED, note)


def _assume_again(cluster: Cluster, entry: Entry) -> None:
    if not cluster.capacity.gangs.exists(entry.uid):
        cluster.adopt(entry)
    for child in cluster.objects.of(entry):
        objects.apply(cluster, entry, child)
    if entry.workload.deleting:
        cluster.freeze(entry)
    elif entry.phase is Phase.DELETING and not entry.keeps_room:
        cluster.admission.freeze(entry.uid)


def _note_absence(cluster: Cluster, entry: Entry) -> None:
    """Note a confirmed item that is not in the lists of the barrier as deleted (P2, P11)."""
    if entry.phase is not Phase.RUNNING:
        return
    for number, item in enumerate(entry.workload.items):
        if number not in entry.creation.created and cluster.objects.is_watched(item.ref):
            objects.wants_nothing(cluster, entry, number)


def _resume(cluster: Cluster, entry: Entry) -> None:
    entry.begin_step(cluster.now)
    making = entry.creation
    cluster.agenda.to_judge[entry.uid] = None
    edits.report(cluster, entry)
    if entry.phase in (Phase.CREATING, Phase.RUNNING):
        eviction.forget(cluster, entry)
        # Pods that are yet to be created can only be bound from now on.
        since = cluster.now if entry.phase is Phase.CREATING else entry.record.since
        binding_wait.note_dispatch(cluster, entry, since)
    if entry.phase is Phase.CREATING:
        # An item before the last existing one was deleted: not created again (P2).
        making.cursor = max(making.created, default=-1) + 1
        if making.cursor < len(entry.workload.items):
            making.doubt = cluster.now + COMMIT_GRACE  # a create may be in flight (ADR 7)
        create.continue_attempt(cluster, entry)
    elif entry.phase in (Phase.DELETING, Phase.RUNNING, Phase.KEEPING, Phase.PAUSING):
        making.cursor = len(entry.inventory)  # all exist, for a teardown to come
    if entry.phase is Phase.DELETING:
        if not entry.record.confirmed:
            making.doubt = cluster.now + COMMIT_GRACE
        teardown.delete_all(cluster, entry)
    elif entry.phase is Phase.RUNNING:
        _resume_run(cluster, entry)


def _resume_run(cluster: Cluster, entry: Entry) -> None:
    """Wait for pods as before: clocks that count from a recorded time go on. The time since when a
    pod is missing is not recorded: it may have vanished a moment ago, so that clock begins anew."""
    pods = cluster.capacity.pods
    entry.run.awaits_nodes = not entry.record.placed and pods.lack_nodes(entry.uid)
    entry.run.waited_for_nodes = 0
    entry.begin_stage(entry.record.confirmed)
    for pod in pods.live(entry.uid):
        entry.begin_stage(min(max(pod.created, pod.bound, pod.ready_since), cluster.now))
