"""One pass: its steps in order, and which AppWrappers get a report (core R1-R6, R11).

1. take up begun work   2. timers   3. completion and orphans   4. nodes for unplaced pods
5. dispatch of AppWrappers whose reserved room is free, then of others in the order of the line
6. evictions, reservations for the starved, backfill, requests for nodes
7. reports about the refused and the trees
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice

from mcad.core import internal_errors
from mcad.core.attempts import access, create, leftovers, orphans, remains, teardown
from mcad.core.cluster import AWAITED, Cluster
from mcad.core.cycle import paused, quota_reports
from mcad.core.cycle.admit import dispatch
from mcad.core.fit.questions import Questions
from mcad.core.internal_errors import for_each, part
from mcad.core.observed import recovery, workloads
from mcad.core.preemption import eviction, search
from mcad.core.queue.equivalence import EquivalenceClass
from mcad.core.quota.absent import reports_absence
from mcad.core.quota.explain import Words
from mcad.core.reservations import backfill, manage, starvation
from mcad.core.running import monitor, reset, stage
from mcad.core.scale_up import asking
from mcad.core.scale_up import keep as scale_up
from mcad.core.state.bounds import JUDGED_PER_PASS, REPORTS_PER_PASS, RESTATE_INTERVAL
from mcad.core.state.entry import Entry
from mcad.core.state.eviction_pace import reports_due_evictions
from mcad.core.state.injections import explain
from mcad.core.state.lifecycle import Phase
from mcad.core.state.reasons import (
    INSUFFICIENT_QUOTA,
    INSUFFICIENT_RESOURCES,
    NOT_RUNNABLE,
    ConditionType,
    EventReason,
)
from mcad.core.state.refusal import Refusal
from mcad.core.state.status_view import Urgency
from mcad.core.state.timers import Timer
from mcad.core.state.waiting_reason import Hold, WaitingReason


def decide(cluster: Cluster, *, may_dispatch: bool) -> None:
    """Make one pass."""
    cluster.agenda.spent = 0
    internal_errors.compare(cluster)
    if not cluster.started:
        _start(cluster)
    workloads.complete_anew(cluster)
    quota_reports.refresh(cluster)
    quota_reports.rank_anew(cluster)
    if not cluster.agenda.to_rank:
        recovery.recover(cluster)
    stage.take_changed(cluster)
    for entry, timer in cluster.agenda.timers.expired(cluster.now):
        for_each(cluster, (entry,), partial(_on_timer, timer=timer))
    if cluster.agenda.is_behind:
        return
    if cluster.agenda.is_spent:
        cluster.agenda.carry_over()  # taking up the last of many was the work of this pass
        return
    if not cluster.recovered:
        cluster.recovered = True
        leftovers.take_up(cluster)
    access.test(cluster)
    monitor.judge(cluster)
    part(cluster, orphans.sweep)
    _settle_changed(cluster)
    begun = cluster.admission.steps
    cluster.capacity.place_unplaced()
    cluster.agenda.spent += cluster.admission.steps - begun
    scales_up = cluster.settings.asks_for_nodes
    if paused.apply(cluster) and may_dispatch:
        part(cluster, manage.keep)
        if scales_up:
            part(cluster, scale_up.keep)
        reset.resume(cluster)
        part(cluster, eviction.continue_attempt)
        quota_reports.report_late(cluster)
        _walk_and_look(cluster, (*_LOOKS, asking.look) if scales_up else _LOOKS)
        part(cluster, _report)
        quota_reports.report(cluster)


_LOOKS = (search.walk, starvation.watch, backfill.walk)


def _walk_and_look(cluster: Cluster, looks: tuple[Callable[[Cluster], None], ...]) -> None:
    """The walk along the line, and the periodic steps. When the work of the pass is done, the rest
    is left for the next pass, which begins with it, so that walk and steps all get their turn. No
    step begins before all that may fit is found."""
    is_look_first = cluster.walk.gives_way
    if is_look_first:
        cluster.waiting.requeue_for_nodes()
    cluster.walk.gives_way = False
    stages = (*looks, dispatch) if is_look_first else (dispatch, *looks)
    for number, step in enumerate(stages):
        if number and cluster.agenda.is_spent:
            cluster.walk.gives_way = not is_look_first
            cluster.agenda.carry_over()
            return
        part(cluster, step)


def _start(cluster: Cluster) -> None:
    """Pass the barrier: the epoch is the lease's, and above every epoch found (P11, P12)."""
    found = list(cluster.known(cluster.restored))  # no other entry has anything on record yet
    cluster.restored.clear()
    epochs = [one.dispatch.epoch for one in found if one.dispatch is not None]
    cluster.epoch = max(cluster.epoch, 1 + max(epochs, default=0))
    cluster.started = True
    cluster.eviction_pace.recall([one.eviction.at for one in found if one.eviction is not None])
    quota_reports.expect_trees(cluster, found)


def _on_timer(cluster: Cluster, entry: Entry, *, timer: Timer) -> None:
    match timer:
        case Timer.STATUS:
            if entry.writes.flying is None and (entry.writes.dirty or entry.phase in AWAITED):
                cluster.settle(entry, Urgency.DISPATCH)
        case Timer.STEP:
            _repeat_step(cluster, entry)
        case Timer.HOLD:
            cluster.line_up(entry)
        case Timer.CEILING:
            cluster.waiting.rank_anew(entry)
        case Timer.RESTATE:
            _restate_if_changed(cluster, entry)
        case Timer.RECORD:
            cluster.settle(entry)
        case Timer.TOMBSTONE:
            remains.visit(cluster, entry)
        case _:
            cluster.agenda.to_judge[entry.uid] = None


def _repeat_step(cluster: Cluster, entry: Entry) -> None:
    match entry.phase:
        case Phase.CREATING:
            create.continue_attempt(cluster, entry)
        case Phase.DELETING:
            teardown.delete_rest(cluster, entry)
        case Phase.VERIFYING:
            teardown.look(cluster, entry)
        case _:
            pass


def _settle_changed(cluster: Cluster) -> None:
    changed = cluster.known(cluster.agenda.take(cluster.agenda.to_settle, JUDGED_PER_PASS))
    for_each(cluster, changed, Cluster.settle)


# -- reports -------------------------------------------------------------------------------------


def _report(cluster: Cluster) -> None:
    words, agenda = Words(cluster.forest), cluster.agenda
    _take_up_reports(cluster)
    most = REPORTS_PER_PASS // 5 if agenda.is_spent else REPORTS_PER_PASS
    for uid in agenda.take(agenda.to_report, most):
        entry = cluster.entries.get(uid)
        if entry is None or entry.phase is not Phase.WAITING:
            continue
        if _is_untested(cluster, entry):
            agenda.to_report_later[uid] = None  # perhaps thousands: other reports do not wait
        else:
            agenda.to_report_later.pop(uid, None)
            for_each(cluster, (entry,), partial(_report_one, words=words))


def _take_up_reports(cluster: Cluster) -> None:
    """Report AppWrappers without a verdict, or with a short wait for bindings, when they have a
    verdict that lasts."""
    agenda, is_any = cluster.agenda, False
    for uid in list(islice(agenda.to_report_later, REPORTS_PER_PASS)):
        del agenda.to_report_later[uid]
        entry = cluster.entries.get(uid)
        if entry is None or entry.phase is not Phase.WAITING:
            continue
        if _is_untested(cluster, entry) or _waits_for_bindings(cluster, entry):
            agenda.to_report_later[uid] = None  # behind the others
        else:
            agenda.to_report[uid] = None
            is_any = True
    if is_any and agenda.to_report_later:
        agenda.carry_over()


def _waits_for_bindings(cluster: Cluster, entry: Entry) -> bool:
    refusal = cluster.waiting.queue.refusal_of(entry)
    return refusal is not None and refusal.reason is WaitingReason.BINDING


def _is_untested(cluster: Cluster, entry: Entry) -> bool:
    """Whether the AppWrapper is in line, but the pass ended before its shape had a verdict."""
    return entry in cluster.waiting.queue and cluster.waiting.queue.refusal_of(entry) is None


def _report_one(cluster: Cluster, entry: Entry, *, words: Words) -> None:
    refusal, before = cluster.waiting.queue.refusal_of(entry), entry.path
    entry.path = cluster.forest.has_place(cluster.path(entry), entry.designation)
    if entry.wait.hold is not None:
        _report_hold(cluster, entry, entry.wait.hold)
    elif _waits_for_bindings(cluster, entry):
        cluster.agenda.to_report_later[entry.uid] = None
    elif refusal is not None:
        _report_refusal(cluster, entry, refusal, words)
    if entry.path != before:
        cluster.settle(entry)  # if there was nothing else to report


def _report_hold(cluster: Cluster, entry: Entry, hold: Hold) -> None:
    if hold.reason == WaitingReason.DELETED:
        return
    entry.report_anew()
    before = entry.conditions.get(ConditionType.BACKOFF)
    entry.set_condition(
        ConditionType.BACKOFF, cluster.now, reason=hold.reason, message=hold.message
    )
    cluster.settle(entry)
    if entry.wait.restored and entry.conditions[ConditionType.BACKOFF] == before:
        entry.wait.announced = True  # a restart does not repeat what is on record
    entry.wait.restored = False
    if not entry.wait.announced and entry.workload.problem is not None:
        entry.wait.announced = True
        cluster.announce(entry, EventReason.REFUSED, hold.message, action="Parse", warning=True)


def _report_refusal(cluster: Cluster, entry: Entry, refusal: Refusal, words: Words) -> None:
    if entry.wait.reported is not None and cluster.now - entry.wait.reported_at < RESTATE_INTERVAL:
        if Timer.RESTATE not in entry.timers:
            cluster.agenda.wake_in(
                entry, Timer.RESTATE, entry.wait.reported_at + RESTATE_INTERVAL - cluster.now
            )
        return
    due = cluster.eviction_pace.explain(entry.uid)
    is_brief = bool(due) or refusal.rests_on_absence
    on_record = entry.wait.restored and not is_brief and _shows_refusal(entry)
    entry.wait.restored = False
    entry.wait.reported, entry.wait.reported_at = refusal, cluster.now
    cluster.waiting.stand_in_front(entry)
    if on_record:
        # After a restart the figures stay frozen at the refusal that is on record.
        entry.wait.announced = True
        return
    lack = INSUFFICIENT_RESOURCES if refusal.quota is None else INSUFFICIENT_QUOTA
    why = (lack, words.explain(refusal), explain(entry.workload), due)
    message = " ".join(filter(None, why))
    entry.set_condition(ConditionType.BACKOFF, cluster.now, reason=NOT_RUNNABLE, message=message)
    cluster.settle(entry)
    if not entry.wait.announced:
        entry.wait.announced = True
        cluster.announce(entry, EventReason.QUEUED, message, action="Queue")


def _shows_refusal(entry: Entry) -> bool:
    """Whether the record has a refusal, and nothing in it that may be over by now."""
    shown = entry.conditions.get(ConditionType.BACKOFF)
    if shown is None or not shown.status or shown.reason != NOT_RUNNABLE:
        return False
    return not (reports_absence(shown.message) or reports_due_evictions(shown.message))


def _restate_if_changed(cluster: Cluster, entry: Entry) -> None:
    current = cluster.waiting.queue.refusal_of(entry)
    if current is None or entry.wait.reported is None:
        return
    if current.signature != entry.wait.reported.signature:
        cluster.agenda.to_report[entry.uid] = None


# -- for users -----------------------------------------------------------------------------------


def start_what_fits(cluster: Cluster) -> bool:
    """Steps 4 and 5 of a pass alone, for dry runs: no eviction, no new reservation, no report.
    Returns whether another pass has to follow: a pass that continued a walk may have left classes
    for the next walk."""
    continues = cluster.walk.resume_at is not None
    cluster.agenda.spent = 0
    quota_reports.refresh(cluster)
    while cluster.agenda.to_rank:
        quota_reports.rank_anew(cluster)
    cluster.capacity.place_unplaced()
    manage.keep(cluster)
    if cluster.settings.asks_for_nodes:
        scale_up.keep(cluster, at_once=True)
    dispatch(cluster)
    return continues or not is_at_rest(cluster)


def is_at_rest(cluster: Cluster) -> bool:
    """Whether no walk is in progress, and no change is left that may let in a class."""
    return cluster.walk.resume_at is None and not cluster.capacity.has_news


def verdict(cluster: Cluster, questions: Questions, eqclass: EquivalenceClass) -> Refusal | None:
    """The present verdict on a class, for users: with live figures, without changes. A class that
    would fit may be held back."""
    refusal = _by_quota(cluster, eqclass) or questions.refusal(eqclass.shape)
    if refusal is None and eqclass.refusal is not None and eqclass.refusal.reason.lets_others_first:
        return eqclass.refusal
    return refusal


def _by_quota(cluster: Cluster, eqclass: EquivalenceClass) -> Refusal | None:
    demand = cluster.admission.demand(eqclass.shape)
    return cluster.forest.refusal(eqclass.path, demand) if eqclass.path else None


def may_be_head(cluster: Cluster, questions: Questions, eqclass: EquivalenceClass) -> bool:
    """Whether the first of a class is head of the line, if none before it is: refused by capacity,
    but would fit if AppWrappers left (R6). For users, without changes."""
    if _by_quota(cluster, eqclass) is not None:
        return False
    refusal = questions.refusal(eqclass.shape)
    if refusal is None or not refusal.reason.blocks:
        return False
    return questions.would_fit_emptied(eqclass.shape)
