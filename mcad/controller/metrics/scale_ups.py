"""What becomes of scale-up requests, counted by the commands of the core."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from mcad.controller.metrics import declared
from mcad.core.commands import Command, CreateItem, RequestScaleUp, WithdrawScaleUp
from mcad.core.state.scale_up import FAILURES, Key, ScaleUpState

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from mcad.core.cluster import Cluster
    from mcad.kube.clock import Clock


class Outcome(StrEnum):
    """What became of a request, after it was ASKED."""

    ASKED = "asked"
    PROVISIONED = "provisioned"  # its AppWrapper was dispatched to the nodes
    FAILED = "failed"  # the autoscaler refused it, or could not provide
    WITHDRAWN = "withdrawn"  # not needed any more, or too late
    WASTED = "wasted"  # nodes were provided, and its AppWrapper was not dispatched


class ScaleUpCounts:
    """Requests of this process."""

    def __init__(self, cluster: Cluster, registry: CollectorRegistry, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._asked: dict[Key, float] = {}  # when, of those without an outcome
        self._requests = declared.SCALE_UPS.counter(registry)
        self._seconds = declared.SCALE_UP_SECONDS.histogram(registry)
        for outcome in Outcome:
            self._requests.labels(outcome.value)

    def count(self, command: Command) -> None:
        """Count what a command says about a request. The first item of the attempt is created when
        all nodes are there."""
        match command:
            case RequestScaleUp():
                self._count_asked(command)
            case CreateItem():
                self._count_provisioned(command)
            case WithdrawScaleUp():
                self._count_withdrawn(command)

    def _count_asked(self, command: RequestScaleUp) -> None:
        """A request that is repeated after a refusal is one request."""
        key = command.uid, command.attempt
        if key not in self._asked:
            self._asked[key] = self._clock.monotonic()
            self._requests.labels(Outcome.ASKED.value).inc()

    def _count_provisioned(self, command: CreateItem) -> None:
        since = self._asked.pop((command.uid, command.attempt), None)
        if since is not None:
            self._requests.labels(Outcome.PROVISIONED.value).inc()
            self._seconds.observe(self._clock.monotonic() - since)

    def _count_withdrawn(self, command: WithdrawScaleUp) -> None:
        since = self._asked.pop((command.uid, command.attempt), None)
        if since is not None:
            self._requests.labels(self._outcome(command).value).inc()

    def _outcome(self, command: WithdrawScaleUp) -> Outcome:
        request = self._cluster.scale_ups.get(command.uid, command.attempt)
        state = request.state if request is not None else ScaleUpState.ASKED
        if state in FAILURES:
            return Outcome.FAILED
        provided = state in (ScaleUpState.PROVISIONED, ScaleUpState.EXPIRED)
        return Outcome.WASTED if provided else Outcome.WITHDRAWN
