"""What becomes of AppWrappers, counted by their milestones in the step that was just made.

Two laws hold at every moment, and a test checks them on random histories: what was seen is pending,
under way, has ended, or is gone; what was dispatched or taken up is under way, was requeued, or is
finished.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from mcad.controller.metrics import declared
from mcad.controller.metrics.labels import LEAVES_MAX, OTHER, PRIORITIES_MAX, Bounded, leaf
from mcad.core.state.lifecycle import ENDED, Phase
from mcad.core.state.milestones import Milestone, Passed, is_under_way
from mcad.core.state.model import DispatchPhase
from mcad.core.state.reasons import TeardownReason

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from mcad.core.cluster import Cluster
    from mcad.core.state.entry import Entry

COMPLETED, DELETED, READ_ANEW = "Completed", "Deleted", "ReadAnew"
"""Reasons of ``mcad_finished_total`` besides those of teardowns. The last one: another process
wrote its status, and it was read again as at a start."""

EVICTIONS = (TeardownReason.PREEMPTED.value, TeardownReason.RECLAIMED.value)
_ENDING = (Phase.VERIFYING, Phase.SETTLING)
CAUSES = tuple(one.rstrip(".") for one in TeardownReason)
_REASONS = {
    "finished": (COMPLETED, DELETED, READ_ANEW, *CAUSES),
    "requeued": CAUSES,
    "preempted": EVICTIONS,
}


class Turnover:
    """Counts since the start of this process."""

    def __init__(self, cluster: Cluster, registry: CollectorRegistry) -> None:
        self.seen = self.gone = 0
        self.taken_up: Counter[str] = Counter()
        self.dispatched: Counter[str] = Counter()
        self.under_way: Counter[str] = Counter()
        self.finished: Counter[tuple[str, str]] = Counter()
        self.requeued: Counter[tuple[str, str]] = Counter()
        self.preempted: Counter[tuple[str, str]] = Counter()
        self._cluster = cluster
        self.leaves = Bounded(LEAVES_MAX)
        self.leaves.of("")
        self._waits = Bounded(2 * LEAVES_MAX)
        self._priorities = Bounded(PRIORITIES_MAX)
        self._awaiting_pods: set[str] = set()  # uids of those dispatched by this process
        self._begun_as: dict[str, str] = {}  # the leaf of each attempt under way, by uid
        self._wait = declared.QUEUE_WAIT.histogram(registry)
        self._dispatch = declared.DISPATCH_DURATION.histogram(registry)
        self._ready = declared.READY_WAIT.histogram(registry)
        self._run = declared.RUN.histogram(registry)

    def count(self, passed: list[Passed]) -> None:
        """Count the milestones of one step."""
        for one in passed:
            match one.milestone:
                case Milestone.SEEN:
                    self._see(one.entry)
                case Milestone.MOVED:
                    self._move(one.entry, one.before, one.after)
                case Milestone.PODS_READY:
                    self._pods_ready(one.entry)
                case Milestone.FORGOTTEN if one.after is not Phase.GONE:
                    self._leave(one.entry, one.before, READ_ANEW)

    def _see(self, entry: Entry) -> None:
        self.seen += 1
        self.leaves.of(leaf(self._cluster.path(entry)))
        if is_under_way(entry, entry.phase):
            self.taken_up[self._begin(entry)] += 1

    def _move(self, entry: Entry, before: Phase, after: Phase) -> None:
        if after is Phase.GONE:
            self._leave(entry, before, DELETED)
        elif before is Phase.INTENDING and after is Phase.CREATING:
            self._dispatched(entry)
        elif before is Phase.CONFIRMING:
            self._dispatch.observe((self._cluster.now - entry.record.since) / 1e6)
            self._awaiting_pods.add(entry.uid)
        elif before is Phase.RUNNING and after is Phase.COMPLETED:
            self._end(entry, self.finished, COMPLETED, "completed")
        elif before in _ENDING and after not in (*_ENDING, Phase.COMPLETED):
            failed = after in ENDED
            counted = self.finished if failed else self.requeued
            reason = entry.record.reason.rstrip(".")
            at = self._end(entry, counted, reason, "failed" if failed else "requeued")
            if not failed and reason in EVICTIONS:
                self.preempted[at, reason] += 1

    def _leave(self, entry: Entry, before: Phase, reason: str) -> None:
        self.gone += 1
        if is_under_way(entry, before):
            self._end(entry, self.finished, reason, "deleted")

    def _begin(self, entry: Entry) -> str:
        (at,) = self.leaves.of(leaf(entry.record.quota))
        self._begun_as[entry.uid] = at
        self.under_way[at] += 1
        return at

    def _dispatched(self, entry: Entry) -> None:
        at = self._begin(entry)
        self.dispatched[at] += 1
        last, waits_since = entry.superseded, entry.first_seen
        if last is not None:
            if last.phase is DispatchPhase.PAUSED:  # a retry with its room kept did not queue
                return
            waits_since = max(waits_since, last.entered)
        (priority,) = self._priorities.of(str(entry.workload.priority))
        waited = max(0, entry.record.since - waits_since) / 1e6
        self._wait.labels(*self._waits.of(at, priority)).observe(waited)

    def _pods_ready(self, entry: Entry) -> None:
        if entry.uid in self._awaiting_pods:
            self._awaiting_pods.remove(entry.uid)
            waited = (self._cluster.now - entry.record.confirmed) / 1e6
            self._ready.labels(self._begun_as[entry.uid]).observe(waited)

    def _end(
        self, entry: Entry, counted: Counter[tuple[str, str]], reason: str, outcome: str
    ) -> str:
        # A wrong figure is better than a dispatcher that stops for one.
        at, record = self._begun_as.pop(entry.uid, ""), entry.record
        self._awaiting_pods.discard(entry.uid)
        self.under_way[at] -= 1
        counted[at, reason] += 1
        if record.confirmed:
            until = record.entered or self._cluster.now
            self._run.labels(at, outcome).observe(max(0, until - record.confirmed) / 1e6)
        return at

    def metrics(self) -> Iterator[Metric]:
        """The counters and the gauge that the counts make; zeros for every leaf."""
        leaves = [values[0] for values in self.leaves.known]
        if OTHER in {*self.dispatched, *self.taken_up}:
            leaves.append(OTHER)
        for one, number in ((declared.SEEN, self.seen), (declared.GONE, self.gone)):
            family = one.counts()
            family.add_metric((), number)
            yield family
        for one, by_leaf in (
            (declared.TAKEN_UP, self.taken_up),
            (declared.DISPATCHED, self.dispatched),
        ):
            family = one.counts()
            for at in leaves:
                family.add_metric((at,), by_leaf[at])
            yield family
        gauge = declared.UNDER_WAY.gauge()
        for at in leaves:
            gauge.add_metric((at,), self.under_way[at])
        yield gauge
        for one, by_reason, reasons in (
            (declared.FINISHED, self.finished, _REASONS["finished"]),
            (declared.REQUEUED, self.requeued, _REASONS["requeued"]),
            (declared.PREEMPTED, self.preempted, _REASONS["preempted"]),
        ):
            family = one.counts()
            for at in leaves:
                for reason in reasons:
                    family.add_metric((at, reason), by_reason[at, reason])
            yield family
