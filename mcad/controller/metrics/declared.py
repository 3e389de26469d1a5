"""Every metric, declared once: name, kind, labels, help.

docs/reference/metrics.md is generated from here.

Names follow Prometheus: base units (seconds, bytes, cores), ``_total`` for counters, no label whose
values are unbounded.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each one, and of no use to rate()

DAY = 86_400
WAITS = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, DAY, 3 * DAY)
"""Bounds of what may last from a moment to days, in seconds."""
MOMENTS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10)
"""Bounds of what should take moments, in seconds."""
REQUESTS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 2.5, 10, 30)
"""Bounds of the duration of a request, in seconds."""


class Kind(StrEnum):
    """The kind of a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Declared(NamedTuple):
    """One metric. ``buckets`` are the upper bounds of a histogram."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()

    def gauge(self) -> GaugeMetricFamily:
        """The gauge, to be filled for one page."""
        return GaugeMetricFamily(self.name, self.help, labels=self.labels)

    def counts(self) -> CounterMetricFamily:
        """The counter, to be filled for one page with what is counted elsewhere."""
        return CounterMetricFamily(self.name, self.help, labels=self.labels)

    def counter(self, registry: CollectorRegistry) -> Counter:
        """The counter, counted where it happens."""
        return Counter(self.name, self.help, self.labels, registry=registry)

    def histogram(self, registry: CollectorRegistry) -> Histogram:
        """The histogram, observed where it happens."""
        return Histogram(self.name, self.help, self.labels, registry=registry, buckets=self.buckets)

    @property
    def series(self) -> tuple[str, ...]:
        """The names of its series."""
        if self.kind is Kind.HISTOGRAM:
            return tuple(f"{self.name}{end}" for end in ("_bucket", "_count", "_sum"))
        return (self.name,)


ALL: dict[str, Declared] = {}
SECTIONS: dict[str, list[Declared]] = {}
"""The metrics by the heading under which docs/reference/metrics.md has them."""


class _Section:
    def __init__(self, title: str) -> None:
        self._metrics = SECTIONS.setdefault(title, [])

    def counter(self, name: str, labels: str, text: str) -> Declared:
        return self._add(Declared(f"mcad_{name}", Kind.COUNTER, tuple(labels.split()), text))

    def gauge(self, name: str, labels: str, text: str) -> Declared:
        return self._add(Declared(f"mcad_{name}", Kind.GAUGE, tuple(labels.split()), text))

    def histogram(self, name: str, labels: str, text: str, buckets: tuple[float, ...]) -> Declared:
        one = Declared(f"mcad_{name}", Kind.HISTOGRAM, tuple(labels.split()), text, buckets)
        return self._add(one)

    def _add(self, one: Declared) -> Declared:
        ALL[one.name] = one
        self._metrics.append(one)
        return one


_appwrappers = _Section("AppWrappers")

APPWRAPPERS = _appwrappers.gauge("appwrappers", "state", "AppWrappers that exist, by status.state")
INTERNAL_ERRORS = _appwrappers.gauge(
    "appwrappers_internal_errors",
    "id",
    "AppWrappers that are left alone after an error of the dispatcher itself, by id of the error",
)
PENDING = _appwrappers.gauge(
    "pending_appwrappers",
    "namespace leaf reason",
    "AppWrappers without an attempt under way that have not ended, by what they wait for",
)
OLDEST_PENDING = _appwrappers.gauge(
    "oldest_pending_seconds",
    "leaf",
    "Time that the oldest pending AppWrapper has waited, without those that a user has to edit or "
    "resume; 0 if there is none",
)
UNDER_WAY = _appwrappers.gauge(
    "dispatched_appwrappers", "leaf", "AppWrappers with an attempt under way, teardowns too"
)
SEEN = _appwrappers.counter(
    "appwrappers_seen_total", "", "AppWrappers that have become known to this process"
)
GONE = _appwrappers.counter(
    "appwrappers_gone_total", "", "AppWrappers that were known and are deleted"
)
TAKEN_UP = _appwrappers.counter(
    "taken_up_total", "leaf", "Attempts of an earlier leader that this process continues"
)
DISPATCHED = _appwrappers.counter(
    "dispatched_total", "leaf", "Dispatches: attempts whose intent is recorded in status"
)
FINISHED = _appwrappers.counter(
    "finished_total",
    "leaf reason",
    "Attempts after which none follows: Completed, Deleted with the AppWrapper, or why it failed",
)
REQUEUED = _appwrappers.counter(
    "requeued_total",
    "leaf reason",
    "Attempts that were taken back and after which the AppWrapper waits again, by cause",
)
PREEMPTED = _appwrappers.counter(
    "preempted_total",
    "leaf reason",
    "Those of mcad_requeued_total that made room for another AppWrapper: evictions",
)
ENDED = _appwrappers.counter(
    "attempts_ended_total", "reason next", "Teardowns that ended, by cause and next state"
)
QUEUE_WAIT = _appwrappers.histogram(
    "queue_wait_seconds",
    "leaf priority",
    "Time from when an AppWrapper was first seen, or requeued, to the decision to dispatch it",
    WAITS,
)
DISPATCH_DURATION = _appwrappers.histogram(
    "dispatch_duration_seconds",
    "",
    "Time from the decision to dispatch until all items exist and status says so",
    REQUESTS,
)
READY_WAIT = _appwrappers.histogram(
    "ready_wait_seconds",
    "leaf",
    "Time from the end of a dispatch until as many pods run as the AppWrapper has",
    WAITS,
)
RUN = _appwrappers.histogram(
    "run_seconds",
    "leaf outcome",
    "Time from the end of a dispatch until the attempt was over: completed, failed, requeued, "
    "deleted",
    WAITS,
)

_kept = _Section("Reservations and teardowns")

RESERVATIONS = _kept.gauge(
    "reservations",
    "reason",
    "AppWrappers with a reservation on room that is not free yet, by reason",
)
OLDEST_RESERVATION = _kept.gauge(
    "oldest_reservation_seconds", "reason", "Age of the oldest reservation; 0 without one"
)
RESERVED = _kept.counter(
    "reservations_made_total",
    "reason",
    "Reservations on room that was not free yet, by reason",
)
GIVEN_UP = _kept.counter(
    "reservations_given_up_total", "", "Reservations that ended without a dispatch"
)
SCALE_UPS = _kept.counter(
    "scale_up_requests_total",
    "outcome",
    "Requests to an autoscaler: asked, and what became of them: provisioned (dispatched to the new "
    "nodes), failed, withdrawn, wasted (nodes were provided, and not used)",
)
SCALE_UP_SECONDS = _kept.histogram(
    "scale_up_seconds",
    "",
    "Time from a request to an autoscaler to the dispatch to the nodes that came for it",
    WAITS,
)
STUCK = _kept.gauge(
    "stuck_teardowns",
    "kind",
    "Teardowns that have waited for objects for more than a minute, by kind of object",
)
HELD = _kept.gauge(
    "held_resources",
    "namespace resource reason",
    "1 while a wrapped resource is on hold in a namespace: no AppWrapper with it starts there",
)

_nodes = _Section("Nodes")

_SUM = "Sum over nodes, cpu in cores, memory in bytes: "
CLUSTER = {
    word: _nodes.gauge(f"cluster_{word}", "resource", _SUM + text)
    for word, text in {
        "allocatable": "what the nodes have",
        "used": "requests of pods on them",
        "reserved": "assumed for pods of dispatched AppWrappers that are not bound yet",
        "free": "what is left",
    }.items()
}
UNPLACED = _nodes.gauge(
    "cluster_unplaced",
    "resource",
    "Requests of pods of dispatched AppWrappers without a place on any node; cpu in cores",
)
UNPLACED_PODS = _nodes.gauge(
    "unplaced_pods", "", "Pods of dispatched AppWrappers without a place on any node"
)
UNKNOWN_RESERVED = _nodes.gauge(
    "unknown_appwrappers_reserved",
    "namespace resource",
    "Reserved for pods without a node of AppWrappers that do not exist; cpu in cores",
)
OVERCOMMITTED = _nodes.gauge(
    "overcommitted_nodes", "", "Nodes whose pods request more than the node has"
)
OVERCOMMITMENTS = _nodes.counter(
    "node_overcommitments_total", "", "How often a node has become overcommitted"
)

_quota = _Section("Quota")

_QUOTA_TEXTS = {
    "nominal": "Nominal quota of a node",
    "allocated": "Usage of a node and its descendants",
    "leaving": "The part of the usage whose teardown has begun",
    "reserved": "What is reserved beside the usage, for AppWrappers that wait until others leave",
    "borrowed": "Usage above the nominal quota of a node",
    "lent": "Nominal quota of a node that nodes under the same parent use",
    "waiting": "Demand of queued AppWrappers at a node",
}
QUOTA = {
    word: _quota.gauge(
        f"quota_{word}", "tree node resource", f"{text}; cpu in cores, memory in bytes"
    )
    for word, text in _QUOTA_TEXTS.items()
}
QUOTA_EXCEEDED = _quota.gauge(
    "quota_exceeded",
    "tree node resource",
    "Usage above what a root or a hard node may have, after its quota was lowered; cpu in cores",
)
INVALID_SUBTREES = _quota.gauge(
    "invalid_quota_subtrees",
    "tree reason",
    "QuotaSubtrees with nodes that are not in force, by the first reason",
)
ABSENT_SUBTREES = _quota.gauge(
    "absent_quota_subtrees",
    "tree",
    "Deleted QuotaSubtrees that count until their grace period ends",
)

_dispatcher = _Section("The dispatcher")

DECISION = _dispatcher.histogram(
    "decision_duration_seconds", "", "Time that one pass over the queue takes", MOMENTS
)
LOOP_LAG = _dispatcher.histogram(
    "loop_lag_seconds",
    "",
    "Delay of the event loop, measured at each pass over the queue",
    MOMENTS,
)
COMMANDS = _dispatcher.counter("commands_total", "command", "Commands of the core, by kind")
EVENTS = _dispatcher.counter(
    "events_total", "reason", "Kubernetes Events to be recorded, by reason"
)
EVENT_WRITES = _dispatcher.counter(
    "event_writes_total",
    "result",
    "What became of Events: written; left out because they were repeated or too many about one "
    "object (limited), or a later one came before they were written (overtaken); dropped because "
    "too many waited; failed",
)
PAUSED = _dispatcher.gauge(
    "dispatch_paused",
    "scope",
    "DispatchPauses that there are, by scope: cluster, namespace or quota",
)
IN_FLIGHT = _dispatcher.gauge("requests_in_flight", "lane", "Running write requests, by lane")
BACKLOG = _dispatcher.gauge("write_backlog", "lane", "Write requests that wait for a turn, by lane")
CHECKED = _dispatcher.counter(
    "invariant_checks_total", "", "AppWrappers checked for consistency after a pass"
)
VIOLATED = _dispatcher.counter(
    "invariant_violations_total",
    "name",
    "Inconsistencies in the state of the dispatcher, by name: bugs of the dispatcher",
)
SYNCED = _dispatcher.gauge(
    "stream_synced", "kind", "Whether a watched kind is listed, and can be watched at present"
)
SILENCE = _dispatcher.gauge(
    "stream_silence_seconds", "kind", "Time since the last sign of life of a watch"
)
STREAM_EVENTS = _dispatcher.counter(
    "stream_events_total", "kind event", "Events of a watched kind, by type"
)

_process = _Section("Every process, a standby too")

API_REQUESTS = _process.counter(
    "api_requests_total",
    "verb resource code",
    "Requests to the API server, by status code; error: no answer",
)
API_DURATION = _process.histogram(
    "api_request_duration_seconds",
    "verb resource",
    "Time until the answer to a request to the API server; watches not included",
    REQUESTS,
)
LEADER = _process.gauge("leader", "", "1 while this process leads, 0 while it stands by")
LEASE_REMAINING = _process.gauge(
    "lease_remaining_seconds",
    "",
    "Time that this process may write without renewing the Lease; 0 on a standby",
)
LEASE_TRANSITIONS = _process.counter(
    "lease_transitions_total",
    "",
    "How often the leader has changed, as the Lease says",
)
BUILD = _process.gauge("build_info", "version", "1, with the version of mcad")

LIBRARY = {
    "process_virtual_memory_bytes": "Virtual memory of the process",
    "process_resident_memory_bytes": "Resident memory of the process",
    "process_start_time_seconds": "When the process started, as a Unix time",
    "process_cpu_seconds_total": "CPU time of the process",
    "process_open_fds": "Open file descriptors",
    "process_max_fds": "The limit of open file descriptors",
    "python_gc_objects_collected_total": "Objects that garbage collections found, by generation",
    "python_gc_objects_uncollectable_total": "Objects that could not be freed, by generation",
    "python_gc_collections_total": "Garbage collections, by generation",
    "python_info": "1, with the version of Python",
}
"""Metrics of every Python process, by prometheus-client."""


def known_series() -> frozenset[str]:
    """The names of all series that a page may have."""
    return frozenset(name for one in ALL.values() for name in one.series) | LIBRARY.keys()
