"""Gauges of nodes, teardowns, streams and write lanes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mcad.controller.metrics import declared
from mcad.controller.metrics.labels import Remembered, Values, filled
from mcad.core.attempts import leftovers
from mcad.core.attempts.teardown import stuck_teardowns

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from mcad.controller.streams import Stream
    from mcad.controller.write_lanes import Lane
    from mcad.core.cluster import Cluster
    from mcad.core.state.dispatch_pause import DispatchPause

_MILLIS = 1000


def in_base_units(resource: str, amount: int) -> float:
    """Cores, bytes, or a number."""
    return amount / _MILLIS if resource == "cpu" else amount


class NodeGauges:
    """What nodes have, and what hangs on them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._sums = {word: Remembered() for word in declared.CLUSTER}
        self._unplaced = Remembered(("cpu",), ("memory",))
        self._unknown = Remembered()
        self._stuck = Remembered(("Pod",))
        self._held = Remembered()
        self._paused = Remembered(("cluster",), ("namespace",), ("quota",))

    def metrics(self) -> Iterator[Metric | None]:
        """The gauges; None where the work may be interrupted."""
        report = self._cluster.capacity.report
        totals = report.sums()
        there = [name for name, _ in totals.allocatable]
        yield None
        for word, one in declared.CLUSTER.items():
            amounts = dict(getattr(totals, word))
            values: dict[Values, float] = {
                (name,): in_base_units(name, amounts.pop(name, 0)) for name in there
            }
            values |= {(name,): in_base_units(name, n) for name, n in amounts.items()}
            yield self._sums[word].fill(one.gauge(), values)
        yield None
        yield self._unplaced.fill(
            declared.UNPLACED.gauge(),
            {(name,): in_base_units(name, amount) for name, amount in report.unplaced()},
        )
        yield filled(declared.UNPLACED_PODS.gauge(), [((), report.unplaced_pods())])
        crowded = sum(1 for _ in report.overcommitted())
        yield filled(declared.OVERCOMMITTED.gauge(), [((), crowded)])
        yield self._unknown.fill(
            declared.UNKNOWN_RESERVED.gauge(),
            {
                (namespace, name): in_base_units(name, amount)
                for namespace, held in leftovers.by_namespace(self._cluster).items()
                for name, amount in held
            },
        )
        yield None
        stuck: dict[Values, float] = {
            (kind,): n for kind, n in stuck_teardowns(self._cluster).items()
        }
        yield self._stuck.fill(declared.STUCK.gauge(), stuck)
        held = self._cluster.held_resources()
        yield self._held.fill(
            declared.HELD.gauge(), {(one.namespace, one.title, one.reason): 1 for one in held}
        )
        pauses = self._cluster.waiting.dispatch_pauses.by_uid.values()
        scopes = Counter((_scope(one),) for one in pauses)
        yield self._paused.fill(
            declared.PAUSED.gauge(), {key: float(n) for key, n in scopes.items()}
        )


def _scope(pause: DispatchPause) -> str:
    return "namespace" if pause.namespace else "quota" if pause.tree else "cluster"


def stream_metrics(streams: Mapping[tuple[str, str], Stream[Any]], now: float) -> Iterator[Metric]:
    """The gauges of watched kinds; ``now`` is in monotonic seconds."""
    each = streams.values()
    synced = (((one.name,), float(one.is_watched)) for one in each)
    yield filled(declared.SYNCED.gauge(), synced)
    silence = (((one.name,), now - one.alive_at) for one in each if one.is_synced)
    yield filled(declared.SILENCE.gauge(), silence)
    counts = declared.STREAM_EVENTS.counts()
    for one in each:
        for event, count in one.counts.items():
            counts.add_metric((one.name, event), count)
    yield counts


def lane_metrics(lanes: Mapping[str, Lane]) -> Iterator[Metric]:
    """The gauges of write requests, under way and waiting."""
    running = (((name,), float(lane.running)) for name, lane in lanes.items())
    yield filled(declared.IN_FLIGHT.gauge(), running)
    waiting = (((name,), float(lane.waiting)) for name, lane in lanes.items())
    yield filled(declared.BACKLOG.gauge(), waiting)
