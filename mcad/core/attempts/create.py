"""One attempt: intent, creation, confirmation (protocol P1-P3, P5, P6 and the table of errors)."""

from __future__ import annotations

from enum import StrEnum

from mcad.core.attempts import access, teardown
from mcad.core.cluster import Cluster
from mcad.core.commands import CreateItem, InspectItem
from mcad.core.eligibility import binding_wait, pre_enqueue, precedence
from mcad.core.events import AccessReviewed, Holder, ItemCreated, ItemInspected, ItemRefused
from mcad.core.state.answer import Answer
from mcad.core.state.bounds import (
    COMMIT_GRACE,
    CREATION_ATTEMPTS_MAX,
    DENIALS_BORNE,
    NAME_GRACE,
    RETRY_BASE,
    RETRY_MAX,
    backoff,
)
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import TEARING_DOWN, Phase, Signal
from mcad.core.state.model import DispatchPhase, DispatchRecord, Next
from mcad.core.state.reasons import (
    RESUMING,
    RUNNABLE,
    ConditionType,
    EventReason,
    TeardownReason,
    held_by,
    no_fault_of_it,
    some_of,
)
from mcad.core.state.status_view import Urgency
from mcad.core.state.timers import Timer
from mcad.core.state.units import SECOND, Duration


class Meaning(StrEnum):
    """What a refusal to create an item means (protocol, table of errors)."""

    RETRY = "retry"
    INSPECT = "inspect"
    REVIEW = "review"
    FAIL = "fail"


def classify(answer: Answer) -> Meaning:
    """The meaning of an answer to a create: only an error of the manifest is a failure.

    An unknown outcome is no failure (P5), nor is a credential, a redirect, or a missing collection:
    they depend on the state of the server or the installation, and are repeated.
    """
    match answer.status:
        case 409 if answer.reason == "AlreadyExists":
            return Meaning.INSPECT
        case 403 if answer.reason != "NamespaceTerminating":
            return Meaning.REVIEW
        case 400 | 403 | 422:
            return Meaning.FAIL
        case _:
            return Meaning.RETRY


def begin(cluster: Cluster, entry: Entry, signal: Signal = Signal.RESERVED) -> None:
    """Record the intent, with room reserved. Nothing is created before it is persisted (P1)."""
    work = entry.workload
    cluster.leave_line(entry)
    binding_wait.note_dispatch(cluster, entry, cluster.now)
    entry.path = cluster.forest.path_of(entry.uid)
    counted = entry.limit_counts_from(cluster.now)
    record = DispatchRecord(
        attempt=entry.attempt + 1,
        epoch=cluster.epoch,
        phase=DispatchPhase.CREATING,
        payload=work.payload,
        inventory=tuple(item.ref for item in work.items),
        since=cluster.now,
        quota=entry.path,
        limit_since=counted if counted < cluster.now else 0,
        domains=cluster.capacity.gangs.domains(entry.uid),
        prefers=cluster.capacity.preferred_domain(entry.uid),
        apart=cluster.capacity.gangs.keep_apart(entry.uid, _lasting(entry)),
        added=cluster.injections.shown_by(entry.workload),
    )
    entry.unset_condition(ConditionType.UNHEALTHY, cluster.now, reason=RESUMING)
    cluster.begin_attempt(entry, record)
    cluster.move(entry, signal)
    cluster.settle(entry, Urgency.DISPATCH)


def _lasting(entry: Entry) -> list[int]:
    """The items that may run for ever, whose controllers replace pods: Deployments and other kinds
    that do not report their end."""
    return [number for number, item in enumerate(entry.workload.items) if not item.tells_end]


def intent_refused(cluster: Cluster, entry: Entry) -> None:
    """Judge the AppWrapper anew: it changed before the intent was written, so nothing was recorded.
    After a reset it still has its room."""
    if entry.superseded is not None and entry.superseded.phase is DispatchPhase.PAUSED:
        entry.withdraw()
        cluster.move(entry, Signal.RETRY_REFUSED)
        cluster.agenda.to_judge[entry.uid] = None
        return
    cluster.end_attempt(entry)
    entry.withdraw()
    cluster.move(entry, Signal.INTENT_REFUSED)
    cluster.line_up(entry)
    cluster.reservations.intent_refused(entry)


def intent_written(cluster: Cluster, entry: Entry) -> None:
    """Continue after the intent is persisted: from here on every observer counts its room."""
    cluster.reservations.intent_written(entry)
    cluster.move(entry, Signal.INTENT_WRITTEN)
    continue_attempt(cluster, entry)


def continue_attempt(cluster: Cluster, entry: Entry) -> None:
    """Create the next item, or confirm if all exist."""
    if entry.phase is not Phase.CREATING or entry.goes or judge(cluster, entry):
        return
    while entry.creation.cursor in entry.creation.created:
        entry.creation.cursor += 1
    if entry.creation.cursor == len(entry.inventory):
        _all_exist(cluster, entry)
    elif (hold := pre_enqueue.missing_right(cluster, entry.ref(entry.creation.cursor))) is not None:
        cluster.rights.concern(entry.uid, [item.ref for item in entry.workload.items])
        teardown.take_back(cluster, entry, TeardownReason.MISSING_RIGHT, hold.message)
    else:
        entry.creation.asked = True
        item = entry.creation.cursor
        rules = precedence.reserved_nodes(cluster, entry, item)._replace(
            apart=entry.record.apart_of(item),
            domains=entry.record.domains_of(item),
            prefers=entry.record.prefers,
        )
        cluster.emit(CreateItem(entry.uid, entry.attempt, item, rules))


def judge(cluster: Cluster, entry: Entry) -> bool:
    """Take the attempt back if it is not wanted any more; returns whether that happens. A create in
    progress is waited for: its answer leads here too."""
    if entry.creation.asked:
        return False
    if entry.is_unwanted:
        teardown.take_back_unwanted(cluster, entry)
    elif entry.workload.payload != entry.record.payload:
        note = "The spec changed during creation."
        teardown.take_back(cluster, entry, TeardownReason.SPEC_CHANGED, note)
    return entry.phase is not Phase.CREATING


def _all_exist(cluster: Cluster, entry: Entry) -> None:
    now = cluster.now
    entry.amend(phase=DispatchPhase.DISPATCHED, confirmed=now)
    entry.past.first_dispatch = entry.past.first_dispatch or now
    entry.unset_condition(ConditionType.BACKOFF, now, reason=RUNNABLE)
    entry.unset_condition(ConditionType.PREEMPTED, now, reason=RUNNABLE)
    entry.stamp_condition(ConditionType.DISPATCHED, now, reason=RUNNABLE)
    cluster.move(entry, Signal.ALL_EXIST)
    cluster.settle(entry, Urgency.CONFIRMATION)


def run(cluster: Cluster, entry: Entry) -> None:
    """Begin to run: the confirmation is persisted, or the end that supersedes it is about to be."""
    cluster.move(entry, Signal.CONFIRMED)
    entry.stops_waiting()
    entry.past.refusals, entry.wait.head_for = 0, 0
    cluster.reservations.waits_no_more(entry)
    entry.run.awaits_nodes, entry.run.waited_for_nodes = True, 0
    entry.begin_stage(cluster.now)


def confirmed(cluster: Cluster, entry: Entry) -> None:
    """Run, and announce it: the confirmation is persisted."""
    run(cluster, entry)
    count, waited = len(entry.inventory), (cluster.now - entry.first_seen) // 1_000
    note = f"Created {count} item{'' if count == 1 else 's'} {waited} ms after it was first seen"
    note += f"{_where(entry.record)}{_apart(entry.record)}."
    cluster.announce(entry, EventReason.DISPATCHED, note, action="Dispatch")
    cluster.agenda.to_judge[entry.uid] = None


def _where(record: DispatchRecord) -> str:
    """The topology domains of its pods, for users."""
    if record.prefers is not None:
        return f"; its pods prefer {'='.join(record.prefers)}"
    found = dict.fromkeys("=".join(one.domain) for one in record.domains)
    return f"; its pods have to be in {some_of(tuple(found))}" if found else ""


def _apart(record: DispatchRecord) -> str:
    """The nodes that some of its pods leave to others of its pods (core R2), for users."""
    nodes = tuple(sorted({name for one in record.apart for name in one.nodes}))
    return f"; some of its pods keep off {some_of(nodes)}, which others need" if nodes else ""


def item_created(cluster: Cluster, entry: Entry, event: ItemCreated) -> None:
    """Note that one more item exists, and go on."""
    if event.attempt != entry.attempt:
        return  # the sweep finds the object through the watch
    entry.creation.asked = False
    entry.creation.exists(event.item, event.object_uid)
    if event.warnings:
        note = f"{entry.ref(event.item)}: the API server warns: {some_of(event.warnings)}."
        cluster.announce(entry, EventReason.MANIFEST, note, action="Create", warning=True)
    if entry.phase is Phase.CREATING and event.item == entry.creation.cursor:
        entry.begin_step(cluster.now)
        continue_attempt(cluster, entry)
    elif entry.phase in TEARING_DOWN:
        teardown.late_item(cluster, entry, event.item)


def item_refused(cluster: Cluster, entry: Entry, event: ItemRefused) -> None:
    """React to an item that was not created, or whose outcome is unknown."""
    answer = event.answer
    if event.attempt == entry.attempt:
        entry.creation.asked = False
        # Without a clear answer the create may still be committed (ADR 7).
        if answer.status == 0 or answer.status >= 500:
            entry.creation.doubt = cluster.now + COMMIT_GRACE
        if event.item in entry.creation.created:  # a watch has shown the object
            entry.found(event.item)
    if not entry.is_at(event.attempt, event.item) or judge(cluster, entry):
        return
    match classify(answer):
        case Meaning.RETRY:
            _retry(cluster, entry, answer)
        case Meaning.INSPECT:
            ref = entry.ref(event.item)
            cluster.emit(InspectItem(entry.uid, event.attempt, event.item, ref))
        case Meaning.REVIEW:
            _forbidden(cluster, entry, event.item, answer.message)
        case Meaning.FAIL:
            _roll_back(cluster, entry, answer.message, Next.FAILED)


def _forbidden(cluster: Cluster, entry: Entry, item: int, words: str) -> None:
    """A 403 is retried a few times, unless the right is known to be missing (ADR 8)."""
    ref = entry.ref(item)
    if pre_enqueue.missing_right(cluster, ref) is not None:
        continue_attempt(cluster, entry)
    elif entry.tries.denials < DENIALS_BORNE:
        entry.tries.denials += 1
        pause = backoff(entry.tries.denials, RETRY_BASE, RETRY_MAX)
        cluster.agenda.wake_in(entry, Timer.STEP, pause)
    else:
        entry.creation.words = words
        access.ask(cluster, entry, item, ref)


def access_reviewed(cluster: Cluster, event: AccessReviewed) -> None:
    """Tell a 403 for a missing right from a 403 of a quota or admission that may yield."""
    for entry in access.reviewed(cluster, event):
        if event.allowed is None:
            _retry(cluster, entry, Answer(0, "", entry.creation.words))
        elif event.allowed:  # retried after a pause, and given up after some attempts
            entry.past.refusals += 1
            is_hopeless = entry.past.refusals >= CREATION_ATTEMPTS_MAX
            then = Next.FAILED if is_hopeless else Next.QUEUED
            _roll_back(cluster, entry, entry.creation.words, then)
        else:
            continue_attempt(cluster, entry)


def item_inspected(cluster: Cluster, entry: Entry, event: ItemInspected) -> None:
    """React to a taken name: by this AppWrapper, a terminating object, or another owner (P6)."""
    if not entry.is_at(event.attempt, event.item):
        return
    if event.answer is not None:
        _retry(cluster, entry, event.answer)
        return
    holder = event.holder
    if holder is None:
        continue_attempt(cluster, entry)
    elif _is_this_attempts(entry, holder):
        entry.found(event.item)
        item_created(cluster, entry, ItemCreated(entry.uid, event.attempt, event.item, holder.uid))
    elif _is_leaving(entry, holder):
        message = f"{entry.ref(event.item)} did not go away within {NAME_GRACE // SECOND} s."
        _again(cluster, entry, NAME_GRACE, message)
    elif (rival := cluster.entries.get(holder.owner_uid)) is not None:  # as if known before
        note = f"{entry.ref(event.item)} belongs to AppWrapper {rival.title}; "
        note += "it waits until that is gone."
        teardown.take_back(cluster, entry, TeardownReason.WAITING_FOR_NAME, note)
    else:
        owner = f"{holder.owner_name!r}" if holder.owner_uid else "an unknown owner"
        message = held_by(entry.ref(event.item), owner)
        _roll_back(cluster, entry, message, Next.FAILED)


def _is_this_attempts(entry: Entry, holder: Holder) -> bool:
    ours = holder.owner_uid == entry.uid and holder.attempt == entry.attempt
    return ours and not holder.terminating


def _is_leaving(entry: Entry, holder: Holder) -> bool:
    if holder.terminating or (holder.owner_uid == entry.uid and holder.attempt < entry.attempt):
        return True
    return holder.owner_is_appwrapper and not holder.owner_exists


def _retry(cluster: Cluster, entry: Entry, answer: Answer) -> None:
    message = no_fault_of_it(answer.status, answer.reason, answer.message)
    _again(cluster, entry, entry.workload.tolerance.admission_grace, message, answer.retry_after)


def _again(
    cluster: Cluster, entry: Entry, grace: Duration, message: str, at_least: Duration = 0
) -> None:
    """Retry the create during the grace; then take the attempt back."""
    entry.tries.failures += 1
    if cluster.now - entry.step_since > grace:
        _roll_back(cluster, entry, message, Next.QUEUED)
        return
    pause = backoff(entry.tries.failures, RETRY_BASE, RETRY_MAX)
    cluster.agenda.wake_in(entry, Timer.STEP, max(at_least, pause))


def _roll_back(cluster: Cluster, entry: Entry, message: str, then: Next) -> None:
    ref = entry.ref(entry.creation.cursor)
    note = f"{ref.namespace}/{ref.name} creation failure: {message}"
    teardown.take_back(cluster, entry, TeardownReason.ITEM_CREATION_FAILURE, note, then)
