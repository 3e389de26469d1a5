"""The Prometheus metrics. Gauges are computed when they are scraped; counters are kept."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from mcad.controller.cooperative import with_pauses
from mcad.controller.invariant_audit import Checks
from mcad.controller.quota_metrics import quota_metrics
from mcad.controller.streams import Stream
from mcad.controller.write_lanes import Lane
from mcad.core.attempts import leftovers
from mcad.core.attempts.teardown import TAKEN_BACK, stuck_teardowns
from mcad.core.cluster import Cluster
from mcad.core.commands import Command, RecordEvent, WriteStatus
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import DispatchPhase
from mcad.core.state.reasons import EventReason
from mcad.core.status.status import state
from mcad.kube.clock import Clock
from mcad.version import __version__

WAIT_BUCKETS = tuple(0.01 * 2**n for n in range(24))  # 10 ms to a day
_BASE_UNITS = {"cpu": ("cores", 1_000)}


def _in_base_units(resource: str, amount: int) -> float:
    return amount / _BASE_UNITS.get(resource, ("", 1))[1]


class Metrics:
    """The registry of one controller: its core, its watches and its write lanes."""

    def __init__(
        self,
        cluster: Cluster,
        streams: Mapping[tuple[str, str], Stream[Any]],
        lanes: Mapping[str, Lane],
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._streams = streams
        self._lanes = lanes
        self._clock = clock
        self._states: list[Metric] = []
        self.registry = CollectorRegistry()
        counter = partial(Counter, registry=self.registry)
        self._commands = counter(
            "mcad_commands_total", "Commands of the core, by kind", ["command"]
        )
        self._events = counter("mcad_events_total", "Kubernetes Events, by reason", ["reason"])
        self._ended = counter(
            "mcad_attempts_ended_total",
            "Ended attempts, by cause and next state",
            ["reason", "next"],
        )
        self._reserved = counter(
            "mcad_reservations_made_total",
            "Reservations on room that was not free yet, by reason",
            ["reason"],
        )
        self._given_up = counter(
            "mcad_reservations_given_up_total", "Reservations that ended without a dispatch"
        )
        self._overcommitted = counter(
            "mcad_node_overcommitments_total",
            "How often a node has become overcommitted",
        )
        self._checked = counter(
            "mcad_invariant_checks_total", "AppWrappers checked for consistency after a cycle"
        )
        self._violated = counter(
            "mcad_invariant_violations_total",
            "Inconsistencies in the state of the dispatcher, by name: bugs of the dispatcher",
            ["name"],
        )
        self._wait = Histogram(
            "mcad_queue_wait_seconds",
            "Time from the first observation of an AppWrapper to its dispatch",
            buckets=WAIT_BUCKETS,
            registry=self.registry,
        )
        self.registry.register(self)

    def count(self, command: Command) -> None:
        """Count one command of the core."""
        self._commands.labels(type(command).__name__).inc()
        if isinstance(command, RecordEvent):
            self._events.labels(command.reason).inc()
            self._count_ended(command)
            self._count_reservation(command)
        elif isinstance(command, WriteStatus):
            record = command.status.dispatch
            if record is not None and record.phase is DispatchPhase.DISPATCHED:
                self._observe_wait(command)

    def _count_ended(self, event: RecordEvent) -> None:
        entry = self._cluster.entries.get(event.uid)
        if event.action == TAKEN_BACK and entry is not None and entry.dispatch is not None:
            self._ended.labels(entry.dispatch.reason, entry.dispatch.next).inc()

    def _count_reservation(self, event: RecordEvent) -> None:
        entry = self._cluster.entries.get(event.uid)
        if event.reason == EventReason.RESERVATION_ENDED:
            self._given_up.inc()
        elif event.reason == EventReason.ROOM_RESERVED and entry is not None and entry.reservation:
            self._reserved.labels(entry.reservation.reason).inc()

    def _observe_wait(self, command: WriteStatus) -> None:
        record = command.status.dispatch
        entry = self._cluster.entries.get(command.uid)
        if record is not None and entry is not None and entry.phase is Phase.CONFIRMING:
            self._wait.observe((record.confirmed - command.status.first_seen) / 1e6)

    def count_overcommitments(self, nodes: int) -> None:
        """Count nodes that have become overcommitted."""
        self._overcommitted.inc(nodes)

    def count_checks(self, found: Checks) -> None:
        """Count the checks and violations of the audit after a cycle."""
        self._checked.inc(found.appwrappers)
        for name in found.violations:
            self._violated.labels(name).inc()

    async def page(self) -> bytes:
        """The metrics in the text format; other tasks run in between."""
        steps = with_pauses(self._collect())
        self._states = [one async for one in steps if one is not None]
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """All gauges, as computed for this page."""
        return iter(self._states)

    def _collect(self) -> Iterator[Metric | None]:
        """The gauges one by one, with None between steps of long work."""
        yield from self._queue_gauges()
        yield from self._capacity_gauges()
        yield from quota_metrics(self._cluster)
        yield from self._stream_gauges()
        yield self._held_gauge()
        yield self._stuck_gauge()
        yield self._gauge("mcad_build_info", "The version", [({"version": __version__}, 1)])

    def _queue_gauges(self) -> Iterator[Metric]:
        cluster = self._cluster
        entries = [e for e in cluster.entries.values() if e.phase is not Phase.GONE]
        states = Tally(state(entry).value for entry in entries)
        yield self._gauge(
            "mcad_appwrappers",
            "AppWrappers by state",
            [({"state": name}, count) for name, count in sorted(states.items())],
        )
        reasons: Tally[str] = Tally()
        for eqclass in cluster.waiting.queue.eqclasses():
            verdict = eqclass.refusal.reason.value if eqclass.refusal else "untested"
            reasons[verdict] += len(eqclass.members)
        reasons.update(e.hold.reason for e in entries if e.hold is not None)
        yield self._gauge(
            "mcad_pending_appwrappers",
            "Pending AppWrappers, by what they wait for",
            [({"reason": reason}, count) for reason, count in sorted(reasons.items())],
        )

        reservations = Tally(
            e.reservation.reason.value for e in entries if e.reservation is not None
        )
        yield self._gauge(
            "mcad_reservations",
            "AppWrappers with a reservation on room that is not free yet, by reason",
            [({"reason": reason}, count) for reason, count in sorted(reservations.items())],
        )

    def _stuck_gauge(self) -> Metric:
        return self._gauge(
            "mcad_stuck_teardowns",
            "Teardowns that have waited for objects for more than a minute, by kind of object",
            [({"kind": kind}, n) for kind, n in sorted(stuck_teardowns(self._cluster).items())],
        )

    def _held_gauge(self) -> Metric:
        return self._gauge(
            "mcad_held_resources",
            "Wrapped resources that are on hold in a namespace, by reason",
            [
                ({"namespace": one.namespace, "resource": one.title, "reason": one.reason}, 1)
                for one in self._cluster.held_resources()
            ],
        )

    def _capacity_gauges(self) -> Iterator[Metric]:
        totals = self._cluster.capacity.report.sums()
        for name in ("allocatable", "used", "reserved", "free"):
            samples = [
                ({"resource": resource}, _in_base_units(resource, amount))
                for resource, amount in getattr(totals, name)
            ]
            text = f"Sum over nodes: {name}; cpu in cores, memory in bytes"
            yield self._gauge(f"mcad_cluster_{name}", text, samples)
        yield self._gauge(
            "mcad_unknown_appwrappers_reserved",
            "Reserved for pods without a node of AppWrappers that do not exist; cpu in cores",
            [
                ({"namespace": namespace, "resource": name}, _in_base_units(name, amount))
                for namespace, held in leftovers.by_namespace(self._cluster).items()
                for name, amount in held
            ],
        )
        overcommitted = sum(1 for _ in self._cluster.capacity.report.overcommitted())
        text = "Nodes whose pods request more than they have"
        yield self._gauge("mcad_overcommitted_nodes", text, [({}, overcommitted)])

    def _stream_gauges(self) -> Iterator[Metric]:
        streams = self._streams.values()
        now = self._clock.monotonic()
        yield self._gauge(
            "mcad_stream_synced",
            "Whether a watched kind is listed, and can be watched at present",
            [({"kind": s.name}, int(s.is_watched)) for s in streams],
        )
        yield self._gauge(
            "mcad_stream_silence_seconds",
            "Time since the last sign of life of a watch",
            [({"kind": s.name}, now - s.alive_at) for s in streams if s.is_synced],
        )
        events = CounterMetricFamily(
            "mcad_stream_events", "Events of a watched kind", labels=["kind", "event"]
        )
        for stream in streams:
            for event, count in stream.counts.items():
                events.add_metric([stream.name, event], count)
        yield events
        yield self._gauge(
            "mcad_requests_in_flight",
            "Running requests, by lane",
            [({"lane": name}, lane.running) for name, lane in self._lanes.items()],
        )

    @staticmethod
    def _gauge(name: str, text: str, samples: list[tuple[dict[str, str], float]]) -> Metric:
        labels = list(samples[0][0]) if samples else []
        gauge = GaugeMetricFamily(name, text, labels=labels)
        for values, number in samples:
            gauge.add_metric(list(values.values()), number)
        return gauge
