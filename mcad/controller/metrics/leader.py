"""The metrics of the process that leads: gauges are computed for a page, counters are kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, get_args

from prometheus_client import CollectorRegistry, generate_latest

from mcad.controller.cooperative import with_pauses
from mcad.controller.metrics import declared
from mcad.controller.metrics.appwrappers import AppWrapperGauges
from mcad.controller.metrics.cluster import NodeGauges, lane_metrics, stream_metrics
from mcad.controller.metrics.quota import QuotaGauges
from mcad.controller.metrics.scale_ups import ScaleUpCounts
from mcad.controller.metrics.turnover import Turnover
from mcad.core.attempts.teardown import TAKEN_BACK
from mcad.core.commands import Command, RecordEvent
from mcad.core.state.reasons import EventReason
from mcad.core.state.reservation import ReservationReason

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from mcad.controller.invariant_audit import Checks
    from mcad.controller.streams import Stream
    from mcad.controller.write_lanes import Lane
    from mcad.core.cluster import Cluster
    from mcad.kube.clock import Clock
    from mcad.kube.recorder import Counts


class Metrics:
    """The metrics of one controller: its core, its watches, its write lanes and its Events."""

    def __init__(
        self,
        cluster: Cluster,
        streams: Mapping[tuple[str, str], Stream[Any]],
        lanes: Mapping[str, Lane],
        clock: Clock,
        events: Counts | None = None,
    ) -> None:
        self._cluster = cluster
        self._streams = streams
        self._lanes = lanes
        self._clock = clock
        self._written = events
        self.registry = registry = CollectorRegistry()
        self._also: list[CollectorRegistry] = []
        self._commands = declared.COMMANDS.counter(registry)
        self._events = declared.EVENTS.counter(registry)
        self._ended = declared.ENDED.counter(registry)
        self._reserved = declared.RESERVED.counter(registry)
        self._given_up = declared.GIVEN_UP.counter(registry)
        self._overcommitted = declared.OVERCOMMITMENTS.counter(registry)
        self._checked = declared.CHECKED.counter(registry)
        self._violated = declared.VIOLATED.counter(registry)
        self._decision = declared.DECISION.histogram(registry)
        self._lag = declared.LOOP_LAG.histogram(registry)
        self._scale_ups = ScaleUpCounts(cluster, registry, clock)
        self.turnover = Turnover(cluster, registry)
        self._appwrappers = AppWrapperGauges(cluster, self.turnover.leaves)
        self._nodes = NodeGauges(cluster)
        self._quota = QuotaGauges(cluster)
        self._begin_at_zero()

    def _begin_at_zero(self) -> None:
        """A counter that appears with its first event hides it from ``increase``."""
        for command in get_args(Command):
            self._commands.labels(command.__name__)
        for reason in EventReason:
            self._events.labels(reason.value)
        for why in ReservationReason:
            self._reserved.labels(why.value)

    def show_also(self, registry: CollectorRegistry) -> None:
        """Add the metrics of this registry to every page."""
        self._also.append(registry)

    # -- what is counted when it happens ----------------------------------------------------------

    def count_step(self, commands: tuple[Command, ...]) -> None:
        """Count what the step that was just made has changed and commands."""
        self.turnover.count(self._cluster.passed)
        for command in commands:
            self._commands.labels(type(command).__name__).inc()
            self._scale_ups.count(command)
            if isinstance(command, RecordEvent):
                self._events.labels(command.reason).inc()
                self._count_ended(command)
                self._count_reservation(command)

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

    def observe_decision(self, seconds: float) -> None:
        """How long a pass over the queue took."""
        self._decision.observe(seconds)

    def observe_lag(self, seconds: float) -> None:
        """By how much the event loop was late."""
        self._lag.observe(max(0.0, seconds))

    def count_overcommitments(self, nodes: int) -> None:
        """Count nodes that have become overcommitted."""
        self._overcommitted.inc(nodes)

    def count_checks(self, found: Checks) -> None:
        """Count the checks and violations of the audit after a cycle."""
        self._checked.inc(found.appwrappers)
        for name in found.violations:
            self._violated.labels(name).inc()

    # -- the page ---------------------------------------------------------------------------------

    async def page(self) -> bytes:
        """The metrics in the text format; other tasks run in between."""
        parts = [generate_latest(_One(one)) async for one in with_pauses(self._collect()) if one]
        return b"".join(parts)

    def _collect(self) -> Iterator[Metric | None]:
        """All metrics one by one, with None between steps of long work."""
        yield from self._appwrappers.metrics()
        yield from self.turnover.metrics()
        yield from self._nodes.metrics()
        yield from self._quota.metrics()
        yield from stream_metrics(self._streams, self._clock.monotonic())
        yield from lane_metrics(self._lanes)
        yield from self._event_writes()
        for registry in (self.registry, *self._also):
            yield from registry.collect()

    def _event_writes(self) -> Iterator[Metric]:
        if self._written is None:
            return
        family = declared.EVENT_WRITES.counts()
        for result in ("written", "repeated", "limited", "overtaken", "dropped", "failed"):
            family.add_metric((result,), getattr(self._written, result))
        yield family


class _One(CollectorRegistry):
    """A registry of one metric that is computed already."""

    def __init__(self, metric: Metric) -> None:
        super().__init__()
        self._metric = metric

    def collect(self) -> Iterator[Metric]:
        yield self._metric
