"""Taking an attempt back, the mirror image of dispatching it (protocol P4)."""

from __future__ import annotations

from collections import Counter

from mcad.core.attempts import attribution, orphans
from mcad.core.cluster import Cluster
from mcad.core.commands import DeleteItem, ForceDeletion, LookForRemains
from mcad.core.events import DeletionRefused, ItemDeleted, LookFailed, Remaining
from mcad.core.state.bounds import (
    CREATION_BACKOFF_BASE,
    CREATION_BACKOFF_MAX,
    LOOK_BASE,
    LOOK_MAX,
    STUCK_AFTER,
    backoff,
)
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase, Signal
from mcad.core.state.model import (
    TERMINAL_PHASES,
    DispatchPhase,
    DispatchRecord,
    Next,
    ObjectRef,
    Remnant,
)
from mcad.core.state.reasons import (
    AWAITING_HEAD_OF_LINE,
    CAME_TO_NOTHING,
    DELETION_COMPLETE,
    SUSPENDED_NOTE,
    WAITING_FOR_REMAINS,
    ConditionType,
    EventReason,
    TeardownReason,
    explain_remains,
    most_telling,
)
from mcad.core.state.records import replace
from mcad.core.state.status_view import Urgency
from mcad.core.state.timers import Timer
from mcad.core.state.units import SECOND, Duration, Instant
from mcad.core.state.waiting_reason import Hold, WaitingReason

_PAUSED: dict[str, WaitingReason] = {
    TeardownReason.ITEM_CREATION_FAILURE: WaitingReason.CREATION_BACKOFF,
    TeardownReason.WAITING_FOR_NAME: WaitingReason.WAITING_FOR_NAME,
    TeardownReason.NOT_PLACED: WaitingReason.PLACEMENT_BACKOFF,
    TeardownReason.MIN_PODS_NOT_RUNNING: WaitingReason.PREEMPTION_TRIGGERED,
    TeardownReason.SUSPENDED: WaitingReason.PLACEMENT_BACKOFF,
    TeardownReason.SPEC_CHANGED: WaitingReason.PLACEMENT_BACKOFF,
}
"""Reasons after which no event shows when another attempt is worth while: there is a pause."""

_QUIET = frozenset(
    {TeardownReason.MISSING_RIGHT, TeardownReason.SUCCESS_TTL, TeardownReason.TERMINATING}
)
"""Reasons of teardowns that are no warning: reported elsewhere (access.py), or expected."""

_WISHED = frozenset({TeardownReason.SUSPENDED, TeardownReason.SPEC_CHANGED})
"""Reasons that users cause. They cost no turn, but an AppWrapper that takes room again and again
and never has pods keeps others out for nothing: from the second such attempt on there is a
pause."""


def take_back(
    cluster: Cluster,
    entry: Entry,
    reason: TeardownReason,
    message: str,
    then: Next = Next.QUEUED,
) -> None:
    """Record that the attempt is being taken back.

    Its assumed pods are frozen until it is gone. For a reset they are replaced at once by those of
    the next attempt, which find their place as the pods go.
    """
    if reason in _PAUSED:
        in_vain = entry.phase is not Phase.RUNNING or not cluster.capacity.pods.is_placed(entry.uid)
        entry.past.in_vain = entry.past.in_vain + 1 if in_vain else 0
    if then is Next.RESET:
        cluster.keep_room(entry)
    else:
        cluster.admission.freeze(entry.uid)
    entry.end(DispatchPhase.UNDEPLOYING, cluster.now, reason, message, then)
    entry.unset_condition(ConditionType.DISPATCHED, cluster.now, reason=reason, message=message)
    entry.unset_condition(ConditionType.RUNNING_HOLD_COMPLETION, cluster.now, reason=reason)
    if then is not Next.COMPLETED:
        kind = ConditionType.PODS_READY
        entry.unset_condition(kind, cluster.now, reason=reason, message=message)
    cluster.move(entry, Signal.TAKE_BACK)
    cluster.settle(entry, Urgency.DISPATCH)


def take_back_unwanted(cluster: Cluster, entry: Entry) -> None:
    """Take back the attempt of an AppWrapper that is suspended, or that a finalizer keeps after its
    deletion (M12): what runs would run on, and its state would say so for ever."""
    reason, message = TeardownReason.SUSPENDED, SUSPENDED_NOTE
    if keeper := entry.workload.kept_by:
        reason, message = (
            TeardownReason.TERMINATING,
            f"It is deleted, and the finalizer {keeper} keeps it.",
        )
    take_back(cluster, entry, reason, message)


def teardown_written(cluster: Cluster, entry: Entry) -> None:
    """Delete all objects that were or may have been created, once the teardown is persisted."""
    cluster.move(entry, Signal.TEARDOWN_WRITTEN)
    delete_all(cluster, entry)


def delete_all(cluster: Cluster, entry: Entry) -> None:
    """Delete every object of the inventory up to an item with an open create."""
    entry.removal.undeleted = set(range(min(entry.creation.cursor + 1, len(entry.inventory))))
    delete_rest(cluster, entry)
    if not entry.removal.undeleted:
        _all_deleted(cluster, entry)


def delete_rest(cluster: Cluster, entry: Entry) -> None:
    """Repeat the deletions that are not accepted yet."""
    for item in sorted(entry.removal.undeleted):
        _delete(cluster, entry, item)


def late_item(cluster: Cluster, entry: Entry, item: int) -> None:
    """Delete an item whose create, open at the beginning of the teardown, did succeed."""
    if entry.phase in (Phase.DELETING, Phase.VERIFYING):
        _delete(cluster, entry, item)


def _delete(cluster: Cluster, entry: Entry, item: int, uid: str = "") -> None:
    own = (one for one in cluster.objects.of(entry) if one.attempt == entry.attempt)
    observed = next((one.uid for one in own if one.item == item), "")
    known = uid or entry.creation.created.get(item) or observed
    if known:
        cluster.objects.swept[known] = orphans.NEVER
    cluster.emit(DeleteItem(entry.uid, entry.attempt, item, entry.ref(item), known))


def item_deleted(cluster: Cluster, entry: Entry, event: ItemDeleted) -> None:
    """Note an accepted deletion."""
    if event.attempt != entry.attempt or entry.phase is not Phase.DELETING:
        return
    entry.removal.undeleted.discard(event.item)
    if not entry.removal.undeleted:
        _all_deleted(cluster, entry)


def deletion_refused(cluster: Cluster, entry: Entry, event: DeletionRefused) -> None:
    """Repeat a failed deletion, and report a missing right."""
    if event.attempt != entry.attempt or entry.phase is not Phase.DELETING:
        return
    first = Timer.STEP not in entry.timers  # of the deletions requested at once
    pause = entry.tries.pause(event.answer, count=first)
    if first and entry.tries.is_lasting(event.answer):
        note = f"Item {event.item} cannot be deleted: {event.answer.message}"
        cluster.announce(entry, EventReason.REFUSED, note, action="Delete", warning=True)
    cluster.agenda.wake_in(entry, Timer.STEP, pause)


def _all_deleted(cluster: Cluster, entry: Entry) -> None:
    cluster.move(entry, Signal.ALL_DELETED)
    entry.removal.remains, entry.removal.looks, entry.removal.forced = (), 0, False
    look(cluster, entry)


def look(cluster: Cluster, entry: Entry) -> None:
    """List the remaining objects live: a cache may lie about absence (P4 c)."""
    entry.stop(Timer.STEP)
    entry.removal.overtaken = False
    namespace = entry.workload.namespace
    cluster.emit(LookForRemains(entry.uid, namespace, entry.attempt, entry.inventory))


def remaining(cluster: Cluster, entry: Entry, event: Remaining) -> None:
    """Take up a live list: look again, at growing intervals, until nothing is left. Observations
    meanwhile shorten the interval (``last_one_gone``)."""
    if event.attempt != entry.attempt:
        return
    event = replace(event, objects=attribution.own_remains(cluster, entry, event.objects))
    if entry.phase is Phase.GONE:
        orphans.found_of_deleted(cluster, entry, event.objects)
        if not orphans.is_spared(entry):
            entry.removal.remains = event.objects
            _use_force(cluster, entry, entry.step_since)
    if entry.lingers and event.objects:
        entry.removal.found(event.objects)
        _use_force(cluster, entry, _asked_to_go(entry))
        _say_what_is_left(cluster, entry, _asked_to_go(entry))
        cluster.agenda.wake_in(entry, Timer.TOMBSTONE, next_look(cluster, entry))
    if entry.phase is not Phase.VERIFYING:
        return
    if event.objects:
        entry.removal.found(event.objects)
        patience = _use_force(cluster, entry, entry.record.entered)
        _delete_what_stayed(cluster, entry)
        _say_what_is_left(cluster, entry, entry.step_since)
        if entry.removal.overtaken:
            look(cluster, entry)
        else:
            pause = backoff(entry.removal.looks, LOOK_BASE, LOOK_MAX)
            cluster.agenda.wake_in(entry, Timer.STEP, min(pause, patience))
    elif cluster.now < entry.creation.doubt:  # absence may not last (ADR 7)
        cluster.agenda.set_timer(entry, Timer.STEP, entry.creation.doubt)
    else:
        _nothing_left(cluster, entry)


def _asked_to_go(entry: Entry) -> Instant:
    """Since when the objects of an AppWrapper in foreground deletion have to be deleted."""
    return entry.conditions[ConditionType.DELETING_RESOURCES].changed


def next_look(cluster: Cluster, entry: Entry) -> Duration:
    """How long until the next look at the objects of an AppWrapper in foreground deletion: until a
    report on the remaining objects is due, force is due, or a growing interval ends."""
    due = force_is_due(cluster, entry, _asked_to_go(entry))
    pause = backoff(entry.removal.looks, STUCK_AFTER, LOOK_MAX)
    return min(pause, due) if due > 0 else pause


def _delete_what_stayed(cluster: Cluster, entry: Entry) -> None:
    """Delete again the items whose deletion was accepted without effect."""
    numbers = {ref.key: number for number, ref in enumerate(entry.inventory)}
    for one in entry.removal.remains:
        item = numbers.get(one.ref.key)
        if item is not None and not one.terminating:
            _delete(cluster, entry, item, one.uid)


def force_is_due(cluster: Cluster, entry: Entry, since: Instant) -> Duration:
    """How long until force may be used on objects that have to be deleted since ``since``."""
    grace = entry.workload.tolerance.forceful_deletion_grace
    return LOOK_MAX if grace is None else since + grace - cluster.now


def _use_force(cluster: Cluster, entry: Entry, since: Instant) -> Duration:
    """Delete remaining pods by force after ``forceful_deletion_grace``, and then the items. Returns
    how long until force is due. Finalizers are never removed."""
    left = force_is_due(cluster, entry, since)
    if left > 0 or not entry.removal.remains:
        return left
    pods = [one for one in entry.removal.remains if one.ref.kind == "Pod"]
    for one in pods or entry.removal.remains:
        cluster.emit(ForceDeletion(entry.uid, one.ref, one.uid))
    if not entry.removal.forced:
        entry.removal.forced = True
        rest = explain_remains(entry.removal.remains, "")
        note = f"Deleted by force after {(cluster.now - since) // SECOND} s: {rest}"
        cluster.announce(entry, EventReason.REMAINS, note, action="Delete", warning=True)
    return LOOK_MAX


def _say_what_is_left(cluster: Cluster, entry: Entry, since: Instant) -> None:
    """Report what the teardown waits for."""
    if cluster.now - since < STUCK_AFTER:
        return
    node = cluster.capacity.pods.node_of(most_telling(entry.removal.remains).uid)
    text, kind = explain_remains(entry.removal.remains, node), ConditionType.DELETING_RESOURCES
    if not _is_stuck(entry):
        cluster.announce(entry, EventReason.REMAINS, text, action="Delete", warning=True)
    entry.set_condition(kind, cluster.now, reason=WAITING_FOR_REMAINS, message=text)
    cluster.settle(entry)


def _is_stuck(entry: Entry) -> bool:
    """Whether the status reports what the teardown waits for."""
    shown = entry.conditions.get(ConditionType.DELETING_RESOURCES)
    return shown is not None and shown.status and shown.reason == WAITING_FOR_REMAINS


def explain(entry: Entry) -> str:
    """What a teardown that has begun waits for, in a sentence."""
    begun = "Its objects are being deleted."
    shown = entry.conditions[ConditionType.DELETING_RESOURCES] if _is_stuck(entry) else None
    return f"{begun} {shown.message}" if shown is not None else begun


def look_failed(cluster: Cluster, entry: Entry, event: LookFailed) -> None:
    """Repeat a failed list: absence is not proven."""
    if entry.phase is Phase.VERIFYING and event.attempt == entry.attempt:
        cluster.agenda.wake_in(entry, Timer.STEP, entry.tries.pause(event.answer))


def last_one_gone(cluster: Cluster, entry: Entry) -> None:
    """Look now: no object and no pod of the AppWrapper is observed any more."""
    if entry.phase is not Phase.VERIFYING:
        return
    if Timer.STEP in entry.timers:
        look(cluster, entry)
    else:
        entry.removal.overtaken = True  # the answer in progress may be older than this


def _nothing_left(cluster: Cluster, entry: Entry) -> None:
    """End the teardown (P4 c). A requeued AppWrapper is in line again in the same step in which its
    room comes free, so that no AppWrapper behind it takes that room first."""
    now, is_reset = cluster.now, entry.record.next is Next.RESET
    phase = DispatchPhase.PAUSED if is_reset else DispatchPhase.RELEASED
    used = entry.limit_used()
    entry.amend(phase=phase, entered=now, limit_since=now - used if used else 0)
    entry.unset_condition(ConditionType.DELETING_RESOURCES, now, reason=DELETION_COMPLETE)
    if entry.record.next is Next.QUEUED:
        _requeue(cluster, entry)
    else:
        if not is_reset:
            cluster.admission.release(entry.uid)
        cluster.move(entry, Signal.NOTHING_LEFT)
    cluster.settle(entry, Urgency.DISPATCH)


def _requeue(cluster: Cluster, entry: Entry) -> None:
    """Requeue the AppWrapper; the next write records that (P4 d), perhaps an intent."""
    now, record = cluster.now, entry.record
    entry.unset_condition(ConditionType.HEAD_OF_LINE, now, reason=AWAITING_HEAD_OF_LINE)
    entry.stamp_condition(ConditionType.QUEUEING, now, reason=AWAITING_HEAD_OF_LINE)
    if record.preemptor:
        reason, message = record.reason, record.message
        entry.unset_condition(ConditionType.PREEMPT_CANDIDATE, now, reason=reason)
        entry.set_condition(ConditionType.PREEMPTED, now, reason=reason, message=message)
    cluster.move(entry, Signal.REQUEUED)
    _end(cluster, entry, EventReason.TAKEN_BACK)
    pause = _pause_after(cluster, entry, record, now)
    waits_for_name = pause is not None and pause.reason == WaitingReason.WAITING_FOR_NAME
    if not waits_for_name:
        cluster.waiting.pause(entry, pause)
    cluster.line_up(entry)
    if pause is not None and waits_for_name and entry.wait.hold is None:
        cluster.waiting.hold(entry, pause)  # until the name is free


TAKEN_BACK = "TakeBack"
"""The action of the Event at the end of a teardown, and of no other Event."""

_SETTLED = {
    Next.RESET: (Signal.SETTLED_RESET, EventReason.RESET),
    Next.COMPLETED: (Signal.SETTLED_COMPLETED, EventReason.CLEARED),
    Next.FAILED: (Signal.SETTLED_FAILED, EventReason.FAILED),
    Next.DELETED: (Signal.SETTLED_DELETED, EventReason.GIVEN_UP),
}
"""The ends of teardowns without a requeue: the signal, and the reason of the Event."""


def settled(cluster: Cluster, entry: Entry) -> None:
    """End an attempt without a requeue, once that is persisted."""
    signal, reason = _SETTLED[entry.record.next]
    cluster.move(entry, signal)
    _end(cluster, entry, reason)


def _end(cluster: Cluster, entry: Entry, reason: EventReason) -> None:
    """End an attempt: nothing of it counts any more, except the room that a reset keeps."""
    record = entry.record
    entry.creation.created.clear()
    entry.stops_waiting()
    if entry.edited is not None:
        cluster.agenda.to_settle[entry.uid] = None  # EditPending ends with the attempt
    if record.next is not Next.RESET:
        cluster.end_attempt(entry)
    for child in cluster.objects.of(entry):
        cluster.objects.unswept[child.uid] = None
    note, warning = record.message or str(record.reason), record.reason not in _QUIET
    cluster.announce(entry, reason, note, action=TAKEN_BACK, warning=warning)


def pause_on_record(cluster: Cluster, entry: Entry) -> Hold | None:
    """The pause that was running before a restart, if it is not over: as long as a first pause,
    since the number of failed attempts is not on record. Names are checked again anyway."""
    record = entry.record
    is_over = record.phase is DispatchPhase.RELEASED and record.next is Next.QUEUED
    pause = _pause_after(cluster, entry, record, record.entered) if is_over else None
    if (
        pause is None
        or pause.reason == WaitingReason.WAITING_FOR_NAME
        or pause.until <= cluster.now
    ):
        return None
    return pause


def _pause_after(
    cluster: Cluster, entry: Entry, record: DispatchRecord, since: Instant
) -> Hold | None:
    """How long the AppWrapper stays out of the line: longer with each failed attempt."""
    why, is_wished = _PAUSED.get(record.reason), record.reason in _WISHED
    times = entry.past.in_vain - is_wished
    if why is None or (is_wished and times < 1):
        return None
    pause = backoff(times, CREATION_BACKOFF_BASE, CREATION_BACKOFF_MAX)
    if record.reason == TeardownReason.MIN_PODS_NOT_RUNNING:
        pause = max(pause, cluster.settings.backoff)  # as MCAD
    return Hold(why, CAME_TO_NOTHING if is_wished else record.message, since + pause)


# -- for users -----------------------------------------------------------------------------------


def stuck_teardowns(cluster: Cluster) -> dict[str, int]:
    """How many teardowns take longer than they should, by the kind of object that they wait for."""
    kinds = (_waited_for(cluster, entry) for entry in cluster.entries.values())
    return Counter(filter(None, kinds))


def _waited_for(cluster: Cluster, entry: Entry) -> str:
    if (entry.phase is Phase.VERIFYING or entry.lingers) and _is_stuck(entry):
        return most_telling(entry.removal.remains).ref.kind if entry.removal.remains else ""
    if entry.phase is Phase.GONE and cluster.now - entry.step_since >= STUCK_AFTER:
        left = first_left(cluster, entry)
        return left.ref.kind if left is not None else ""
    return ""


def first_left(cluster: Cluster, entry: Entry) -> Remnant | None:
    """The first observed object of a deleted AppWrapper, else its first pod that has not ended."""
    for child in cluster.objects.by_workload.get(entry.uid, {}).values():
        return Remnant(child.ref, child.uid)
    for pod in cluster.capacity.pods.of(entry.uid):
        if pod.phase not in TERMINAL_PHASES:
            ref = ObjectRef("", "v1", "pods", "Pod", pod.namespace, pod.name)
            return Remnant(ref, pod.uid)
    return None
