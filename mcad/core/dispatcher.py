"""The one entrance: ``step(event, now)`` -> commands. Equal events give equal commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcad.core import events, internal_errors
from mcad.core.attempts import create, orphans, pod_warnings, remains, teardown
from mcad.core.cluster import AWAITED, Cluster
from mcad.core.commands import Command, WakeAt, WriteStatus
from mcad.core.cycle import cycle, quota_reports
from mcad.core.observed import objects, workloads
from mcad.core.running import items, reset
from mcad.core.scale_up import observed as scale_ups
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.reasons import EventReason
from mcad.core.state.settings import Settings
from mcad.core.state.status_view import Urgency
from mcad.core.state.timers import Timer
from mcad.core.state.units import Instant


class ClockWentBackError(Exception):
    """``now`` was earlier than in the step before: the shell's clock is broken."""


class Dispatcher:
    """The state machine. It owns its Cluster, which only this class may change."""

    def __init__(self, settings: Settings) -> None:
        self.cluster = Cluster(settings)

    def step(self, event: events.Event, now: Instant) -> tuple[Command, ...]:
        """Take one event at ``now`` (microseconds, never decreasing) and return commands.

        Observations and answers change state and continue attempts; only ``Decide`` starts
        AppWrappers.
        """
        cluster = self.cluster
        if now < cluster.now:
            raise ClockWentBackError(f"step at {now} after one at {cluster.now}")
        cluster.agenda.now = now
        cluster.passed.clear()
        cluster.errors.raised.clear()
        if cluster.errors.broken is not None:
            return _until_recorded(cluster, event)
        cluster.errors.about = _subject(cluster, event)
        try:
            _take(cluster, event)
        except Exception as error:  # noqa: BLE001 - hold raises an error about no AppWrapper
            seen = event.workload if isinstance(event, events.AppWrapperSeen) else None
            if cluster.errors.broken is None:
                internal_errors.hold(cluster, error, seen)
        if cluster.errors.broken is not None:
            return _last_words(cluster)
        return cluster.take_commands()


def _subject(cluster: Cluster, event: events.Event) -> str:
    """The uid of the AppWrapper that an event is about, "" if it is about none in particular."""
    match event:
        case events.AppWrapperSeen():
            return event.workload.uid
        case events.PodSeen():
            return event.pod.workload
        case events.PodGone():
            return cluster.capacity.pods.owner_of(event.uid)
        case events.ChildSeen():
            return event.child.workload
        case events.ChildGone():
            child = cluster.objects.by_uid.get(event.uid)
            return child.workload if child is not None else ""
        case events.QuotaGone() | events.PauseGone():
            return ""
        case _:
            return getattr(event, "uid", "")


def _last_words(cluster: Cluster) -> tuple[Command, ...]:
    """The last commands with wrong books: only the holds are written."""
    cluster.agenda.wake_at(cluster.now + internal_errors.RECORD_WITHIN)
    held = {uid for uid, entry in cluster.entries.items() if entry.error is not None}
    return tuple(
        one
        for one in cluster.take_commands()
        if isinstance(one, WakeAt) or (isinstance(one, WriteStatus) and one.uid in held)
    )


def _until_recorded(cluster: Cluster, event: events.Event) -> tuple[Command, ...]:
    """Take answers about the holds; raises the difference when all are on record, or too late."""
    if isinstance(event, events.StatusWritten | events.StatusRefused):
        _answered(cluster, event)
    if cluster.errors.broken is not None and internal_errors.is_over(cluster):
        raise cluster.errors.broken
    return _last_words(cluster)


def _take(cluster: Cluster, event: events.Event) -> None:
    observe = _OBSERVED.get(type(event))
    if observe is not None:
        observe(cluster, event)
        return
    match event:
        case events.Leading():
            cluster.epoch = event.epoch
        case events.Decide():
            cycle.decide(cluster, may_dispatch=event.may_dispatch)
        case events.AccessReviewed():  # concerns all AppWrappers with a request
            create.access_reviewed(cluster, event)
        case events.StrayRefused():
            orphans.refused(cluster, event)
        case (
            events.QuotaSeen() | events.QuotaGone() | events.QuotaWritten() | events.QuotaRefused()
        ):
            quota_reports.heard(cluster, event)
        case _:
            _answered(cluster, event)


_OBSERVED: dict[type, Callable[[Cluster, Any], None]] = {
    events.AppWrapperSeen: workloads.appwrapper_seen,
    events.AppWrapperGone: lambda cluster, event: workloads.appwrapper_gone(cluster, event.uid),
    events.NodeSeen: workloads.node_heard,
    events.NodeGone: workloads.node_heard,
    events.PodSeen: lambda cluster, event: objects.pod_seen(cluster, event.pod),
    events.PodGone: lambda cluster, event: objects.pod_gone(cluster, event.uid),
    events.ChildSeen: lambda cluster, event: objects.child_seen(cluster, event.child),
    events.ChildGone: lambda cluster, event: objects.child_gone(cluster, event.uid),
    events.PauseSeen: lambda cluster, event: cluster.waiting.dispatch_pauses.seen(event.pause),
    events.PauseGone: lambda cluster, event: cluster.waiting.dispatch_pauses.gone(event.uid),
    events.KindWatched: objects.kind_watched,
    events.ScaleUpServed: scale_ups.served,
    events.ScaleUpSeen: scale_ups.seen,
    events.ScaleUpGone: scale_ups.gone,
    events.ScaleUpRefused: scale_ups.refused,
}
"""By type, which is faster than to match: nearly all events are observations."""


def _answered(cluster: Cluster, event: Any) -> None:
    """Take the outcome of a command about an AppWrapper, which may be deleted meanwhile."""
    entry = cluster.entries.get(event.uid)
    if entry is not None and (entry.phase is not Phase.HELD or isinstance(event, _OF_STATUS)):
        _ANSWERS[type(event)](cluster, entry, event)
        if entry.phase is Phase.GONE:
            remains.bury(cluster, entry)


_OF_STATUS = (events.StatusWritten, events.StatusRefused)
"""Answers that count while an AppWrapper is held."""


def _status_written(cluster: Cluster, entry: Entry, event: events.StatusWritten) -> None:
    writes = entry.writes
    if not writes.answer(event.serial, is_persisted=True):
        return
    entry.stop(Timer.STATUS)
    continue_attempt = _ON_WRITTEN.get(entry.phase) if writes.flying_in is entry.phase else None
    if continue_attempt is not None:
        continue_attempt(cluster, entry)
    if writes.dirty and entry.phase is not Phase.CREATING:  # else the confirmation reports it
        cluster.settle(entry, Urgency.DISPATCH if entry.phase in AWAITED else Urgency.REPORT)


_ON_WRITTEN: dict[Phase, Callable[[Cluster, Entry], None]] = {
    Phase.INTENDING: create.intent_written,
    Phase.CONFIRMING: create.confirmed,
    Phase.UNDEPLOYING: teardown.teardown_written,
    Phase.SETTLING: reset.settled,
}


def _status_refused(cluster: Cluster, entry: Entry, event: events.StatusRefused) -> None:
    """Take a refused status write. A conflict means that the object has changed: judge it anew. Any
    other refused write is repeated, also after a 404: if the AppWrapper is gone, the observation of
    its deletion ends the repetition; if not, a proxy was wrong."""
    writes, answer = entry.writes, event.answer
    if not writes.answer(event.serial, is_persisted=False):
        return
    if answer.status == 409 and entry.phase is Phase.INTENDING:
        if writes.flying_in is Phase.INTENDING:
            create.intent_refused(cluster, entry)
        else:
            cluster.settle(entry, Urgency.DISPATCH)
        return
    writes.dirty = True
    pause = writes.tries.pause(answer)
    if answer.status == 409 and writes.tries.failures == 1:
        pause = 0  # the controller has already read the object again
    if writes.tries.is_lasting(answer):
        note = f"The status cannot be written: {answer.message}"
        cluster.announce(entry, EventReason.STATUS_REFUSED, note, action="Report", warning=True)
    cluster.agenda.wake_in(entry, Timer.STATUS, pause)


def _item_inspected(cluster: Cluster, entry: Entry, event: events.ItemInspected) -> None:
    read = items.item_read if entry.phase is Phase.RUNNING else create.item_inspected
    read(cluster, entry, event)


def _warnings_read(cluster: Cluster, entry: Entry, event: events.WarningsRead) -> None:
    """Take Events about pods that are missing or do not start, or a bare Pod that is gone."""
    if entry.phase is Phase.RUNNING:
        exists = event.pod or event.item in entry.creation.created
        (pod_warnings.read if exists else items.events_read)(cluster, entry, event)


_ANSWERS: dict[type, Callable[[Cluster, Entry, Any], None]] = {
    events.Errored: lambda cluster, entry, event: internal_errors.hold_for(
        cluster, entry, event.error
    ),
    events.StatusWritten: _status_written,
    events.StatusRefused: _status_refused,
    events.ItemCreated: create.item_created,
    events.ItemRefused: create.item_refused,
    events.ItemInspected: _item_inspected,
    events.WarningsRead: _warnings_read,
    events.ItemDeleted: teardown.item_deleted,
    events.DeletionRefused: teardown.deletion_refused,
    events.Remaining: teardown.remaining,
    events.LookFailed: teardown.look_failed,
}
