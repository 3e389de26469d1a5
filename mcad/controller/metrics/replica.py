"""The metrics that a standby has too: its requests to the API server, the Lease, the process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from mcad.controller.metrics import declared
from mcad.controller.metrics.labels import filled
from mcad.version import __version__

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from mcad.kube.lease import Lease
    from mcad.kube.port import Request

_VERBS = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}
OTHER_PATHS = "other"
"""The resource of a request that is for none: discovery, versions."""


class ReplicaMetrics:
    """The registry of one process, whether it leads or stands by."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = declared.API_REQUESTS.counter(self.registry)
        self._duration = declared.API_DURATION.histogram(self.registry)
        self.registry.register(_Build())
        for collector in (ProcessCollector, GCCollector, PlatformCollector):
            collector(registry=self.registry)

    def watch_lease(self, lease: Lease) -> None:
        """Add the metrics of the Lease."""
        self.registry.register(_LeaseGauges(lease))

    def count_request(self, request: Request, code: str, seconds: float) -> None:
        """Count one request to the API server and its answer; ``code`` is ``error`` without one."""
        verb, resource = target(request)
        self._requests.labels(verb, resource, code).inc()
        if verb != "watch":
            self._duration.labels(verb, resource).observe(seconds)

    def page(self) -> bytes:
        """The metrics in the text format."""
        return generate_latest(self.registry)


def target(request: Request) -> tuple[str, str]:
    """The verb and the resource of a request, as an audit log calls them: ``patch``,
    ``appwrappers.workload.codeflare.dev/status``."""
    parts = request.path.strip("/").split("/")
    group = ""
    if parts[0] == "apis" and len(parts) > 3:
        group, rest = parts[1], parts[3:]
    elif parts[0] == "api" and len(parts) > 2:
        rest = parts[2:]
    else:
        return _VERBS.get(request.method, "get"), OTHER_PATHS
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    resource = f"{rest[0]}.{group}" if group else rest[0]
    if len(rest) > 2:
        resource = f"{resource}/{rest[2]}"
    if request.method in _VERBS:
        return _VERBS[request.method], resource
    if request.params.get("watch") == "true":
        return "watch", resource
    return "list" if len(rest) == 1 else "get", resource


class _LeaseGauges:
    """The metrics of the Lease, of the leader and of standbys."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease

    def collect(self) -> Iterator[Metric]:
        """The gauges and the counter."""
        lease = self._lease
        yield filled(declared.LEADER.gauge(), [((), int(lease.is_held))])
        yield filled(declared.LEASE_REMAINING.gauge(), [((), lease.left())])
        changes = declared.LEASE_TRANSITIONS.counts()
        changes.add_metric((), lease.transitions)
        yield changes


class _Build:
    def collect(self) -> Iterator[Metric]:
        yield filled(declared.BUILD.gauge(), [((__version__,), 1)])
