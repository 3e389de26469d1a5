"""The one entrance: ``step(event, now)`` -> commands. Equal events give equal commands."""

from __future__ import annotations

from collections.abc import Callable

from mcad.core.attempts import create, orphans, remains, teardown
from mcad.core.cluster import AWAITED, Cluster
from mcad.core.commands import Command
from mcad.core.cycle import cycle, quota_reports
from mcad.core.events import (
    AccessReviewed,
    AppWrapperGone,
    AppWrapperSeen,
    ChildGone,
    ChildSeen,
    Decide,
    DeletionRefused,
    Event,
    ItemCreated,
    ItemDeleted,
    ItemInspected,
    ItemRefused,
    KindWatched,
    Leading,
    LookFailed,
    LookOn,
    NodeGone,
    NodeSeen,
    PodGone,
    PodSeen,
    QuotaGone,
    QuotaRefused,
    QuotaSeen,
    QuotaWritten,
    Remaining,
    StatusRefused,
    StatusWritten,
    StrayRefused,
)
from mcad.core.observed import objects, workloads
from mcad.core.running import health, reset
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.reasons import EventReason
from mcad.core.state.settings import Settings
from mcad.core.state.status_view import Urgency
from mcad.core.state.timers import Timer
from mcad.core.state.units import Instant
from mcad.core.views import standby_view


class ClockWentBackError(Exception):
    """``now`` was earlier than in the step before: the shell's clock is broken."""


class Dispatcher:
    """The state machine. It owns its Cluster; nothing else may change that."""

    def __init__(self, settings: Settings) -> None:
        self.cluster = Cluster(settings)

    def step(self, event: Event, now: Instant) -> tuple[Command, ...]:
        """Take one event at ``now`` (microseconds, never decreasing) and return commands.

        Observations and answers change state and continue attempts; what starts is decided on
        ``Decide`` alone.
        """
        cluster = self.cluster
        if now < cluster.now:
            raise ClockWentBackError(f"step at {now} after one at {cluster.now}")
        cluster.agenda.now = now
        self._route(event)
        return cluster.take_commands()

    def _route(self, event: Event) -> None:
        cluster = self.cluster
        match event:
            case AppWrapperSeen():
                workloads.appwrapper_seen(cluster, event)
            case AppWrapperGone():
                workloads.appwrapper_gone(cluster, event.uid)
            case NodeSeen() | NodeGone():
                workloads.node_heard(cluster, event)
            case QuotaSeen() | QuotaGone() | QuotaWritten() | QuotaRefused():
                quota_reports.heard(cluster, event)
            case PodSeen():
                objects.pod_seen(cluster, event)
            case PodGone():
                objects.pod_gone(cluster, event.uid)
            case ChildSeen():
                objects.child_seen(cluster, event.child)
            case ChildGone():
                objects.child_gone(cluster, event.uid)
            case KindWatched():
                objects.kind_watched(cluster, event)
            case StrayRefused():
                orphans.refused(cluster, event)
            case Leading() | Decide() | LookOn():
                self._lead(event)
            case _:
                self._route_answer(event)

    def _lead(self, event: Leading | Decide | LookOn) -> None:
        if isinstance(event, Leading):
            self.cluster.epoch = event.epoch
        elif isinstance(event, LookOn):
            standby_view.look_on(self.cluster, is_led=event.is_led)
        else:
            cycle.decide(self.cluster, may_dispatch=event.may_dispatch)

    def _route_answer(self, event: Event) -> None:
        cluster = self.cluster
        if isinstance(event, AccessReviewed):  # it concerns all that asked
            create.access_reviewed(cluster, event)
            return
        entry = cluster.entries.get(getattr(event, "uid", ""))
        if entry is None:
            return  # deleted meanwhile
        match event:
            case StatusWritten():
                _status_written(cluster, entry, event)
            case StatusRefused():
                _status_refused(cluster, entry, event)
            case ItemCreated():
                create.item_created(cluster, entry, event)
            case ItemRefused():
                create.item_refused(cluster, entry, event)
            case ItemInspected():
                read = health.item_read if entry.phase is Phase.RUNNING else create.item_inspected
                read(cluster, entry, event)
            case ItemDeleted():
                teardown.item_deleted(cluster, entry, event)
            case DeletionRefused():
                teardown.deletion_refused(cluster, entry, event)
            case Remaining():
                teardown.remaining(cluster, entry, event)
            case LookFailed():
                teardown.look_failed(cluster, entry, event)
        if entry.phase is Phase.GONE:
            remains.bury(cluster, entry)


def _status_written(cluster: Cluster, entry: Entry, event: StatusWritten) -> None:
    writes = entry.writes
    if not writes.answer(event.serial, is_persisted=True):
        return
    entry.stop(Timer.STATUS)
    continue_attempt = _ON_WRITTEN.get(entry.phase) if writes.flying_in is entry.phase else None
    if continue_attempt is not None:
        continue_attempt(cluster, entry)
    if writes.dirty and entry.phase is not Phase.CREATING:  # there the confirmation reports it
        cluster.settle(entry, Urgency.DISPATCH if entry.phase in AWAITED else Urgency.REPORT)


_ON_WRITTEN: dict[Phase, Callable[[Cluster, Entry], None]] = {
    Phase.INTENDING: create.intent_written,
    Phase.CONFIRMING: create.confirmed,
    Phase.UNDEPLOYING: teardown.teardown_written,
    Phase.SETTLING: reset.settled,
}


def _status_refused(cluster: Cluster, entry: Entry, event: StatusRefused) -> None:
    """A conflict means that the object has changed: judge it anew. Any other refused write is
    repeated, also after a 404: if the AppWrapper is gone, its deletion is going to be observed and
    ends the repetition; if not, a proxy was wrong."""
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
