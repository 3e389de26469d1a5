"""Which AppWrappers would be evicted if a dispatcher started now and none ended by itself.

A dispatcher is run ahead in simulated time, and all its commands succeed without being carried out.
This shows the effect of new shares or settings.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from mcad.core.commands import (
    Command,
    CreateItem,
    DeleteItem,
    InspectItem,
    LookForRemains,
    ReadWarnings,
    ReviewAccess,
    WakeAt,
    WriteQuota,
    WriteStatus,
)
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import (
    AccessReviewed,
    ChildGone,
    Decide,
    Event,
    ItemCreated,
    ItemDeleted,
    ItemInspected,
    PodGone,
    QuotaWritten,
    Remaining,
    StatusWritten,
    WarningsRead,
)
from mcad.core.state.records import replace
from mcad.core.state.reservation import Eviction
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND, Duration, Instant

HORIZON: Duration = 600 * SECOND
"""The time after the minimum run time of all present AppWrappers."""

_NEVER: Duration = 365 * 86_400 * SECOND


class Foreseen(NamedTuple):
    """One eviction: the victim, the preemptor, the right, and how soon."""

    victim: str
    preemptor: str
    reason: str
    after: Duration


def unhurried(settings: Settings) -> Settings:
    """The settings for questions: evictions without a pace, and no placement timeout, because pods
    exist in no cluster."""
    return replace(
        settings,
        max_evictions_per_minute=0,
        placement_timeout=0,
        reservation_timeout=_NEVER,
    )


def foresee(dispatcher: Dispatcher, now: Instant) -> list[Foreseen]:
    """Run a dispatcher that has observed everything; returns the evictions in order."""
    return _Drive(dispatcher, now).evictions()


class _Drive:
    def __init__(self, dispatcher: Dispatcher, now: Instant) -> None:
        self._dispatcher = dispatcher
        self._begun = self._now = now
        self._wakes: set[Instant] = {now}
        self._found: dict[tuple[str, int], Foreseen] = {}

    def evictions(self) -> list[Foreseen]:
        end = self._begun + self._dispatcher.cluster.settings.min_run_time + HORIZON
        while self._wakes and (at := min(self._wakes)) <= end:
            self._wakes = {one for one in self._wakes if one > at}
            # A second at a time: periodic looks do not come more often.
            self._now = max(at, self._now + SECOND)
            self._step(Decide())
        return list(self._found.values())

    def _note(self, uid: str, eviction: Eviction) -> None:
        """Note an eviction that a status reports, maybe one on record."""
        after = eviction.at - self._begun
        if after > 0:
            title = self._dispatcher.cluster.entries[uid].title
            found = Foreseen(title, eviction.title, eviction.reason.value, after)
            self._found.setdefault((uid, eviction.count), found)

    def _step(self, event: Event) -> None:
        inbox = deque([event])
        while inbox:
            for command in self._dispatcher.step(inbox.popleft(), self._now):
                inbox += self._answers(command)

    def _answers(self, command: Command) -> list[Event]:
        match command:
            case WriteStatus():
                if command.status.eviction is not None:
                    self._note(command.uid, command.status.eviction)
                return [StatusWritten(command.uid, command.serial)]
            case WriteQuota():
                return [QuotaWritten(command.uid, command.serial)]
            case CreateItem(uid, attempt, item):
                return [ItemCreated(uid, attempt, item, f"{uid}-{attempt}-{item}")]
            case InspectItem(uid, attempt, item):
                return [ItemInspected(uid, attempt, item, None)]
            case ReadWarnings(uid, attempt, item, pod=pod):
                return [WarningsRead(uid, attempt, item, "", pod)]
            case DeleteItem(uid, attempt, item):
                return [ItemDeleted(uid, attempt, item)]
            case LookForRemains(uid, _, attempt):
                return [*self._gone(uid), Remaining(uid, attempt, ())]
            case ReviewAccess(ref):
                return [AccessReviewed(ref.namespace, ref.group, ref.resource, allowed=True)]
            case WakeAt(at):
                self._wakes.add(at)
        return []

    def _gone(self, uid: str) -> list[Event]:
        """The removals of the objects and pods of an AppWrapper that is taken back."""
        cluster = self._dispatcher.cluster
        children = [ChildGone(one) for one in cluster.objects.by_workload.get(uid, {})]
        return [*children, *(PodGone(pod.uid) for pod in cluster.capacity.pods.of(uid))]
