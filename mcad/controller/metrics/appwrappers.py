"""Gauges of AppWrappers, from one walk over all of them in steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from mcad.controller.metrics import declared
from mcad.controller.metrics.labels import LEAVES_MAX, Bounded, Remembered, filled, leaf
from mcad.core.state.lifecycle import Phase
from mcad.core.state.milestones import PENDING
from mcad.core.state.model import DispatchPhase
from mcad.core.state.reasons import State
from mcad.core.state.reservation import ReservationReason
from mcad.core.state.waiting_reason import Ends, WaitingReason
from mcad.core.status.status import state

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from mcad.core.cluster import Cluster
    from mcad.core.state.entry import Entry
    from mcad.core.state.units import Instant

UNTESTED, STARTING, RETRYING = "untested", "starting", "retry-pause"
NO_REASON = {
    UNTESTED: "in line, and not judged yet",
    STARTING: "it fits; its intent is being recorded",
    RETRYING: "between two attempts, with its room kept",
}
"""What pending AppWrappers wait for that have no ``WaitingReason``."""

REASONS = (*WaitingReason, *NO_REASON)
_STEP = 500  # AppWrappers between two turns of the event loop


class AppWrapperGauges:
    """The gauges. ``leaf`` bounds the values of that label, as the counters do."""

    def __init__(self, cluster: Cluster, leaves: Bounded) -> None:
        self._cluster = cluster
        self._leaves = leaves
        self._places = Bounded(2 * LEAVES_MAX)
        self._pending = Remembered(*(("", "", str(reason)) for reason in REASONS))
        self._oldest = Remembered(("",))

    def metrics(self) -> Iterator[Metric | None]:
        """The gauges, after None for each step of the walk."""
        cluster, now = self._cluster, self._cluster.now
        states: Counter[str] = Counter()
        pending: Counter[tuple[str, ...]] = Counter()
        oldest: dict[tuple[str, ...], float] = {}
        errors: Counter[str] = Counter()
        leaf_of = self._leaf_of()
        entries = iter(list(cluster.entries.values()))
        while some := list(islice(entries, _STEP)):
            for entry in some:
                if entry.phase is Phase.GONE:
                    continue
                states[state(entry).value] += 1
                if entry.error is not None:
                    errors[entry.error.id] += 1
                if entry.phase not in PENDING:
                    continue
                at, reason = leaf_of(entry), self._reason(entry)
                pending[(*self._places.of(entry.workload.namespace, at), str(reason))] += 1
                if not (isinstance(reason, WaitingReason) and reason.ends is Ends.MANIFEST):
                    here, waited = self._leaves.of(at), (now - _waits_since(entry)) / 1e6
                    oldest[here] = max(oldest.get(here, 0), waited)
            yield None
        yield filled(declared.APPWRAPPERS.gauge(), (((one,), states[one]) for one in State))
        gauge = declared.INTERNAL_ERRORS.gauge()
        yield filled(gauge, (((one,), held) for one, held in errors.items()))
        yield self._pending.fill(declared.PENDING.gauge(), pending)
        yield self._oldest.fill(declared.OLDEST_PENDING.gauge(), oldest)
        yield from self._reservations(now)

    def _leaf_of(self) -> Callable[[Entry], str]:
        """The leaf where an AppWrapper would be charged; thousands have the same labels."""
        known: dict[tuple[tuple[str, str], ...], str] = {}

        def find(entry: Entry) -> str:
            labels = entry.workload.quota
            if labels not in known:
                known[labels] = leaf(self._cluster.path(entry))
            return known[labels]

        return find

    def _reason(self, entry: Entry) -> WaitingReason | str:
        if entry.phase is Phase.INTENDING:
            return STARTING
        if entry.phase is Phase.PAUSING:
            return RETRYING
        if entry.wait.hold is not None:
            return entry.wait.hold.reason
        refusal = self._cluster.waiting.queue.refusal_of(entry)
        return refusal.reason if refusal is not None else UNTESTED

    def _reservations(self, now: Instant) -> Iterator[Metric]:
        standing = [e.reservation for e in self._cluster.reservations.values() if e.reservation]
        count = Counter(one.reason for one in standing)
        since: dict[ReservationReason, Instant] = {}
        for one in standing:
            since[one.reason] = min(since.get(one.reason, one.since), one.since)
        reasons = list(ReservationReason)
        yield filled(declared.RESERVATIONS.gauge(), (((one.value,), count[one]) for one in reasons))
        yield filled(
            declared.OLDEST_RESERVATION.gauge(),
            (((one.value,), max(0, now - since.get(one, now)) / 1e6) for one in reasons),
        )


def _waits_since(entry: Entry) -> Instant:
    """Since when it waits: since it was first seen, or since its last attempt was over."""
    last = entry.dispatch
    if last is None or last.phase is not DispatchPhase.RELEASED:
        return entry.first_seen
    return max(entry.first_seen, last.entered)
