"""Faults in the embedded cluster, and the metrics that a dispatcher shows meanwhile.

Time is virtual. The page of the process is read once a minute, as Prometheus would read it, before
the fault, while it is there, and after.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

from mcad.api.config import Config
from mcad.cli.demo_cluster.cluster import embedded_cluster
from mcad.controller.replica import Replica
from mcad.kube.client import Client, DeleteOptions
from mcad.kube.errors import ConnectionLost
from mcad.kube.kinds import (
    APPWRAPPERS,
    CRDS,
    DISPATCH_PAUSES,
    OLD_APPWRAPPERS,
    PODS,
    QUOTA_SUBTREES,
)
from mcad.kube.port import Request, Response, nothing
from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.cluster import Cluster
from mcad.sim.serving.server import SimApi
from tests import errors_held
from tests.autoscaler.groups import Group, Moods
from tests.autoscaler.kinds import crds
from tests.autoscaler.standin import StandIn
from tests.autoscaler.standin import start as start_autoscaler
from tests.manifests import generic, pod, subtree

Json = dict[str, Any]

MINUTE = 60
FORBIDDEN = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "reason": "Forbidden",
    "message": "you may not create pods",
    "code": 403,
}
GOLD = "gold"

_SAMPLE = re.compile(r"^(\w+)(\{.*\})? (\S+)$")


class Clock(VirtualClock):
    """Virtual time in which the event loop may be late."""

    late_s = 0.0

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds + self.late_s)

    async def pass_by(self, seconds: float) -> None:
        """Sleep without being late."""
        await super().sleep(seconds)


class Line:
    """The connection of a process. ``lost`` are paths that are not reached, ``denied`` are what may
    not be created."""

    def __init__(self, cluster: Cluster) -> None:
        self._api = SimApi(cluster.registry)
        self.lost: tuple[str, ...] = ()
        self.denied: tuple[str, ...] = ()

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        self._reach(request)
        if request.method == "POST" and request.path.endswith(self.denied):
            return Response(403, FORBIDDEN)
        return await self._api.request(request, timeout)

    async def stream(
        self, request: Request, idle_timeout: float, opened: Callable[[], None] = nothing
    ) -> AsyncGenerator[bytes, None]:
        self._reach(request)
        async for line in self._api.stream(request, idle_timeout, opened):
            self._reach(request)
            yield line

    def _reach(self, request: Request) -> None:
        if request.path in self.lost:
            raise ConnectionLost("no route to host")


class Stage:
    """A cluster with one node of one CPU, a user, and a dispatcher that is scraped."""

    def __init__(
        self, cluster: Cluster, clock: Clock, config: Config, wanted: frozenset[str]
    ) -> None:
        self.cluster, self.clock = cluster, clock
        self.user = Client(SimApi(cluster.registry), clock, Random(7))
        self.series: dict[str, list[str]] = {}
        self.minute = 0
        self._config, self._wanted = config, wanted
        self._replica: Replica | None = None
        self.autoscaler: asyncio.Task[None] | None = None
        cluster.add_node("node", cpu="1")
        self.start()

    def start(self) -> None:
        """A new process of the dispatcher."""
        self.line = Line(self.cluster)
        client = Client(self.line, self.clock, Random(1))
        self._replica = Replica(client, self._config, identity=f"mcad-{self.minute}")
        self._life = asyncio.ensure_future(self._replica.run(asyncio.Event()))

    def kill(self) -> None:
        self._life.cancel()
        self._replica = None

    @property
    def replica(self) -> Replica:
        assert self._replica is not None
        return self._replica

    async def submit(self, name: str, cpu: str, *, priority: int = 0, leaf: str = "") -> None:
        made = generic(name, pod(name, cpu), priority=priority)
        if leaf:
            made["metadata"]["labels"] = {GOLD: leaf}
        await self.user.create(OLD_APPWRAPPERS, "default", made)

    async def delete(self, *names: str) -> None:
        for name in names:
            await self.user.delete(APPWRAPPERS, "default", name, DeleteOptions())

    async def change(self, name: str, **spec: Any) -> None:
        await self.user.patch(OLD_APPWRAPPERS, "default", name, {"spec": spec})

    async def minutes(self, count: int) -> None:
        """Let time pass, and read the metrics once a minute."""
        for _ in range(count):
            await self.clock.pass_by(MINUTE)
            self._note(await self._page())
            self.minute += 1

    async def _page(self) -> str:
        if self._replica is None:
            return ""
        leading = self._replica.controller
        page = await leading.metrics.page() if leading is not None else self._replica.metrics.page()
        return page.decode()

    def _note(self, page: str) -> None:
        found = {}
        for line in page.splitlines():
            match = _SAMPLE.match(line)
            if match is not None and match[1] in self._wanted:
                found[f"{match[1]}{match[2] or ''}"] = match[3]
        for name in found:
            self.series.setdefault(name, ["_"] * self.minute)
        for name, values in self.series.items():
            values.append(found.get(name, "stale"))


Story = Callable[[Stage], Awaitable[None]]


NOTHING: Mapping[str, Any] = MappingProxyType({})


class Fault(NamedTuple):
    """What goes wrong, and how it ends. ``lasts`` and ``clears`` are in minutes.

    ``config`` is that of the dispatcher, ``thresholds`` are those of the chart, where the default
    ones would take a day.
    """

    alert: str
    what: str
    begin: Story
    lasts: int
    end: Story
    clears: int
    config: Mapping[str, Any] = NOTHING
    thresholds: Mapping[str, Any] = NOTHING


class Recording(NamedTuple):
    """Series by name, one value a minute, and the minutes at which the alert is off, on and off."""

    fault: Fault
    series: dict[str, list[str]]
    healthy: int
    broken: int
    mended: int


HEALTHY = 3


def record(fault: Fault, wanted: Iterable[str]) -> Recording:
    """Play a fault from the beginning to the end."""

    async def whole() -> Recording:
        clock = Clock()
        async with embedded_cluster(clock, Random(3)) as cluster:
            stage = Stage(
                cluster, clock, Config.model_validate(dict(fault.config)), frozenset(wanted)
            )
            await stage.minutes(HEALTHY + 1)
            await fault.begin(stage)
            await stage.minutes(fault.lasts)
            broken = stage.minute - 1
            await fault.end(stage)
            await stage.minutes(fault.clears)
            stage.kill()
            return Recording(fault, stage.series, HEALTHY, broken, stage.minute - 1)

    with errors_held():
        return run_virtually(whole())


# -- the faults ------------------------------------------------------------------------------------


async def _kill(stage: Stage) -> None:
    stage.kill()


async def _start(stage: Stage) -> None:
    stage.start()


async def _lose_nodes(stage: Stage) -> None:
    stage.line.lost = ("/api/v1/nodes",)
    await stage.cluster.registry.clock.sleep(0)
    stage.cluster.add_node("second", cpu="1")  # an event, so that the watch breaks


async def _find_nodes(stage: Stage) -> None:
    stage.line.lost = ()


async def _too_large(stage: Stage) -> None:
    await stage.submit("large", "2")


async def _withdraw(stage: Stage) -> None:
    await stage.delete("large")


async def _stop_scheduler(stage: Stage) -> None:
    stage.cluster.scheduler.stop()
    for name in ("a", "b"):
        await stage.submit(name, "100m")


async def _start_scheduler(stage: Stage) -> None:
    stage.cluster.scheduler.start()


async def _hold_a_pod(stage: Stage) -> None:
    await stage.submit("a", "100m")
    await stage.clock.pass_by(5)
    await stage.user.patch(PODS, "default", "a", {"metadata": {"finalizers": ["example.com/held"]}})
    await stage.change("a", suspend=True)


async def _let_the_pod_go(stage: Stage) -> None:
    await stage.user.patch(PODS, "default", "a", {"metadata": {"finalizers": None}})


async def _starve(stage: Stage) -> None:
    await stage.submit("runs", "600m")
    await stage.clock.pass_by(5)
    await stage.submit("starves", "800m")


async def _make_room(stage: Stage) -> None:
    await stage.delete("runs")


async def _evict(stage: Stage) -> None:
    for name in ("a", "b", "c"):
        await stage.submit(name, "300m")
    await stage.clock.pass_by(5)
    await stage.submit("first", "900m", priority=5)


async def _deny(stage: Stage) -> None:
    stage.line.denied = ("/pods", "/selfsubjectaccessreviews")
    for number in range(4):
        await stage.submit(f"w{number}", "10m")


async def _allow(stage: Stage) -> None:
    stage.line.denied = ()


async def _slow(stage: Stage) -> None:
    stage.clock.late_s = 2.5
    await stage.submit("large", "2")  # something to look at, again and again


async def _quick(stage: Stage) -> None:
    stage.clock.late_s = 0.0


async def _share(stage: Stage, cpu: int) -> None:
    made = subtree("root", GOLD, red=cpu)
    await stage.user.patch(
        QUOTA_SUBTREES, "default", "root", {"spec": {"children": made["spec"]["children"]}}
    )


async def _lower(stage: Stage) -> None:
    await stage.user.create(QUOTA_SUBTREES, "default", subtree("root", GOLD, red=1))
    await stage.clock.pass_by(5)
    await stage.submit("a", "600m", leaf="red")
    await stage.clock.pass_by(5)
    await _share(stage, 0)


async def _raise(stage: Stage) -> None:
    await _share(stage, 1)


async def _pause(stage: Stage) -> None:
    made = {
        "apiVersion": DISPATCH_PAUSES.api_version,
        "kind": "DispatchPause",
        "metadata": {"name": "upgrade"},
        "spec": {"reason": "the storage is moved"},
    }
    await stage.user.create(DISPATCH_PAUSES, None, made)


async def _resume(stage: Stage) -> None:
    await stage.user.delete(DISPATCH_PAUSES, None, "upgrade", DeleteOptions())


async def _break_the_books(stage: Stage) -> None:
    await stage.submit("a", "100m")
    await stage.clock.pass_by(5)
    controller = stage.replica.controller
    assert controller is not None
    (entry,) = controller.dispatcher.cluster.entries.values()
    entry.wait.hold = object()  # type: ignore[assignment]  # no running AppWrapper has one


async def _autoscale(stage: Stage, moods: Moods) -> None:
    """An autoscaler with nodes of 2 CPUs, and what it reads."""
    for crd in crds():
        await stage.user.create(CRDS, None, crd)
    groups = [Group("small", "2", 3)]
    stage.autoscaler = start_autoscaler(StandIn(stage.user, groups, moods))


async def _ask_in_vain(stage: Stage) -> None:
    await _autoscale(stage, Moods())
    await stage.submit("large", "3")


async def _ask_for_nodes_that_do_not_come(stage: Stage) -> None:
    await _autoscale(stage, Moods(never=1.0))
    await stage.submit("large", "1500m")


async def _ask_no_more(stage: Stage) -> None:
    await _withdraw(stage)
    assert stage.autoscaler is not None
    stage.autoscaler.cancel()


async def _withdraw_a(stage: Stage) -> None:
    await stage.delete("a")


async def _nothing(stage: Stage) -> None:
    """It ends by itself."""


FAULTS = (
    Fault("McadNoLeader", "every process is killed", _kill, 7, _start, 3),
    Fault("McadStreamSilent", "nodes cannot be listed or watched", _lose_nodes, 10, _find_nodes, 5),
    Fault(
        "McadOldestPending",
        "an AppWrapper that fits on no node",
        _too_large,
        22,
        _withdraw,
        2,
        NOTHING,
        {"oldestPendingSeconds": 600},
    ),
    Fault(
        "McadPlacementTimeouts",
        "kube-scheduler binds nothing",
        _stop_scheduler,
        10,
        _start_scheduler,
        75,
        {"placementTimeout": 60},
        {"placementTimeoutsPerHour": 1},
    ),
    Fault("McadStuckTeardown", "a pod with a finalizer", _hold_a_pod, 20, _let_the_pod_go, 4),
    Fault(
        "McadReservationLasts",
        "room for the first in line does not come free",
        _starve,
        17,
        _make_room,
        2,
        {"protectAfter": 600},
        {"reservationSeconds": 300},
    ),
    Fault(
        "McadManyEvictions",
        "an AppWrapper of higher priority takes the room of three",
        _evict,
        3,
        _nothing,
        70,
        {"preemption": True, "minRunTime": 0},
        {"evictionsPerHour": 2},
    ),
    Fault("McadForbidden", "pods may not be created", _deny, 10, _allow, 25),
    Fault("McadLoopLag", "the event loop is late by 2.5 s", _slow, 20, _quick, 10),
    Fault(
        "McadOverQuota",
        "a quota is lowered below what runs",
        _lower,
        10,
        _raise,
        2,
        {"quotaEnabled": True},
        {"overQuotaFor": "5m"},
    ),
    Fault(
        "McadDispatchPaused",
        "a pause of the whole cluster is forgotten",
        _pause,
        10,
        _resume,
        2,
        thresholds={"pausedFor": "5m"},
    ),
    Fault(
        "McadScaleUpsFail",
        "an autoscaler that has no node that is large enough",
        _ask_in_vain,
        20,
        _ask_no_more,
        75,
        {"scaleUp": {"via": "ProvisioningRequest"}},
        {"scaleUpFailuresPerHour": 2},
    ),
    Fault(
        "McadScaleUpsWasted",
        "a cloud whose nodes do not come",
        _ask_for_nodes_that_do_not_come,
        20,
        _ask_no_more,
        75,
        {"scaleUp": {"via": "ProvisioningRequest", "timeout": 60}},
        {"scaleUpsWastedPerHour": 1},
    ),
    Fault("McadInternalError", "a book is changed by hand", _break_the_books, 3, _withdraw_a, 3),
)
