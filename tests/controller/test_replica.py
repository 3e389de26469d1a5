"""A process leads while it holds the Lease, and stands by otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from mcad.api.config import Config
from mcad.api.labels import LEASE_NAME, LEASE_NAMESPACE
from mcad.cli.demo_cluster.cluster import embedded_cluster
from mcad.controller.http_port import application
from mcad.controller.other_controllers import Write
from mcad.controller.preflight import Preflight, Unfit
from mcad.controller.replica import Replica
from mcad.kube.client import Client
from mcad.kube.errors import ApiError, ConnectionLost
from mcad.kube.kinds import APPWRAPPERS, LEASES
from mcad.kube.lease import LeaseLost
from mcad.kube.port import Request, Response, nothing
from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.cluster import Cluster
from mcad.sim.serving.server import SimApi
from tests.controller.test_runtime import Later
from tests.manifests import components, pod

Json = dict[str, Any]


class Line:
    """One process's connection; ``cut``, nothing goes through it."""

    def __init__(self, cluster: Cluster) -> None:
        self._api = SimApi(cluster.registry)
        self.cut = False
        self.writes: list[str] = []

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        if request.method != "GET":
            self.writes.append(request.path)
        if self.cut:
            raise ConnectionLost("no route to host")
        return await self._api.request(request, timeout)

    def stream(
        self, request: Request, idle_timeout: float, opened: Callable[[], None] = nothing
    ) -> AsyncGenerator[bytes, None]:
        return self._api.stream(request, idle_timeout, opened)


class Process:
    """A replica, its line and what became of it."""

    def __init__(self, cluster: Cluster, name: str, preflight: Preflight | None = None) -> None:
        self.line = Line(cluster)
        client = Client(self.line, cluster.registry.clock, Random(1))
        self.replica = Replica(client, Config(), identity=name, preflight=preflight)
        self.stop = asyncio.Event()
        self.life = asyncio.ensure_future(self.replica.run(self.stop))

    @property
    def leads(self) -> bool:
        return self.replica.lease.is_held


class Stage:
    """A cluster with one node of one CPU, and a user."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.clock = cluster.registry.clock
        self.user = Client(SimApi(cluster.registry), self.clock, Random(7))
        cluster.add_node("node", cpu="1")

    async def submit(self, name: str, cpu: str = "100m") -> None:
        await self.user.create(APPWRAPPERS, "default", components(name, pod(name, cpu)))

    async def status(self, name: str) -> Json:
        found: Json = (await self.user.get(APPWRAPPERS, "default", name)).get("status") or {}
        return found

    async def holder(self) -> str:
        lease = await self.user.get(LEASES, LEASE_NAMESPACE, LEASE_NAME)
        name: str = lease["spec"]["holderIdentity"]
        return name


def play(story: Any) -> None:
    """Run a story on a stage, in virtual time."""

    async def whole() -> None:
        async with embedded_cluster(VirtualClock(), Random(3)) as cluster:
            await story(Stage(cluster))

    run_virtually(whole())


def played(story: Callable[[Stage], Awaitable[None]]) -> Callable[[], None]:
    """A story as a test."""
    return lambda: play(story)


@played
async def test_one_leads_and_the_other_writes_nothing_until_it_takes_over(stage: Stage) -> None:
    a = Process(stage.cluster, "a")
    await stage.clock.sleep(1)
    b = Process(stage.cluster, "b")
    await stage.submit("first")
    await stage.clock.sleep(30)
    assert (a.leads, b.leads, b.line.writes) == (True, False, [])
    assert (await stage.status("first"))["state"] == "Running"
    assert (await stage.status("first"))["dispatch"]["epoch"] == 1

    a.stop.set()
    await asyncio.wait_for(a.life, 5)
    assert await stage.holder() == ""
    await stage.clock.sleep(2)
    assert (b.leads, await stage.holder()) == (True, "b")
    await stage.submit("second")
    await stage.clock.sleep(2)
    assert (await stage.status("second"))["dispatch"]["epoch"] == 2
    b.life.cancel()


@played
async def test_a_process_that_loses_the_lease_ends_at_once_without_a_write(stage: Stage) -> None:
    a = Process(stage.cluster, "a")
    await stage.clock.sleep(1)
    b = Process(stage.cluster, "b")
    await stage.clock.sleep(5)
    a.line.cut = True
    a.line.writes.clear()
    for number in range(4):
        await stage.submit(f"w{number}")
    with pytest.raises(LeaseLost, match="kube-system/mcad-dispatcher of a is lost"):
        await a.life
    assert not b.leads
    mine = len(a.line.writes)
    await stage.clock.sleep(20)
    assert len(a.line.writes) == mine
    assert b.leads
    states = [(await stage.status(f"w{number}"))["state"] for number in range(4)]
    assert states == ["Running"] * 4
    b.life.cancel()


@played
async def test_a_process_that_ends_during_a_write_does_not_release_the_lease(
    stage: Stage,
) -> None:
    """The write may still be carried out: no process may lead before."""

    a = Process(stage.cluster, "a")
    inner = a.line.request

    async def stuck(request: Request, timeout: float | None = None) -> Response:
        if "/appwrappers/" in request.path and request.method != "GET":
            await stage.clock.sleep(60)
        return await inner(request, timeout)

    a.line.request = stuck  # type: ignore[method-assign]
    await stage.submit("w")
    await stage.clock.sleep(2)
    a.stop.set()
    await a.life
    assert await stage.holder() == "a"


@played
async def test_what_it_dies_of_gives_the_lease_to_the_next_one(stage: Stage) -> None:
    class Rivals(Later):
        answer = True

        def listed(self, writes: Iterable[Write]) -> None:
            raise Unfit("another controller")

    await stage.submit("w")
    a = Process(stage.cluster, "a", Rivals())
    with pytest.raises(Unfit, match="another controller"):
        await a.life
    assert await stage.holder() == ""


@played
async def test_the_preflight_is_repeated_after_a_long_standby(stage: Stage) -> None:
    class Counting(Later):
        answer = True
        checks = 0

        async def check(self) -> None:
            self.checks += 1

    first, second = Counting(), Counting()
    a = Process(stage.cluster, "a", first)
    await stage.clock.sleep(1)
    b = Process(stage.cluster, "b", second)
    await stage.clock.sleep(60)
    a.stop.set()
    await stage.clock.sleep(5)
    assert (b.leads, first.checks, second.checks) == (True, 0, 1)
    b.life.cancel()


# -- what a standby answers ----------------------------------------------------------------------


def standby(*, is_copied: bool = True) -> Replica:
    """A process that knows the leader, and does nothing."""
    replica = Replica(
        Client(None, VirtualClock(), Random(1)),  # type: ignore[arg-type]  # not used
        Config(),
        identity="b",
    )
    replica.lease.leader, replica.lease.transitions = "a", 4
    replica.standby = SimpleNamespace(  # type: ignore[assignment]
        watches=SimpleNamespace(is_copied=is_copied)
    )
    return replica


async def asked(replica: Replica, path: str) -> tuple[int, str]:
    """Status and text of an answer."""
    async with TestClient(TestServer(application(replica))) as http:
        answer = await http.get(path)
        return answer.status, await answer.text()


STANDS_BY = "this process stands by; a leads: forward its port and ask it\n"


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/healthz", 200, "ok\n"),
        ("/readyz", 200, "standby; a leads\n"),
        ("/api/v1/queue", 503, STANDS_BY),
        ("/api/v1/appwrappers", 503, STANDS_BY),
        ("/api/v1/appwrappers/ns/known", 503, STANDS_BY),
        ("/api/v1/appwrappers/ns/known/why", 503, STANDS_BY),
        ("/api/v1/capacity", 503, STANDS_BY),
        ("/api/v1/quota", 503, STANDS_BY),
        ("/api/v1/quota/gold/red", 503, STANDS_BY),
    ],
)
async def test_a_standby_names_the_leader_for_figures(path: str, status: int, text: str) -> None:
    assert await asked(standby(), path) == (status, text)


async def test_nobody_can_be_named_before_one_leads() -> None:
    replica = standby()
    replica.lease.leader = ""
    text = "this process stands by; no process leads yet\n"
    assert await asked(replica, "/api/v1/queue") == (503, text)


async def test_what_there_is_not_is_not_there_on_a_standby_either() -> None:
    assert (await asked(standby(), "/api/v1/nothing"))[0] == 404


async def test_metrics_tell_that_it_does_not_lead() -> None:
    _, text = await asked(standby(), "/metrics")
    assert "mcad_leader 0.0" in text
    assert "mcad_lease_transitions_total 4.0" in text
    assert "mcad_lease_remaining_seconds 0.0" in text
    assert "process_resident_memory_bytes " in text
    assert "mcad_appwrappers{" not in text


@played
async def test_metrics_tell_of_requests_decisions_and_the_lease(stage: Stage) -> None:
    a = Process(stage.cluster, "a")
    await stage.submit("first")
    await stage.clock.sleep(30)
    controller = a.replica.controller
    assert controller is not None
    page = (await controller.metrics.page()).decode().splitlines()
    values = dict(line.rsplit(" ", 1) for line in page)
    requests = "mcad_api_requests_total"
    assert values[f'{requests}{{code="201",resource="pods",verb="create"}}'] == "1.0"
    assert float(values[f'{requests}{{code="200",resource="nodes",verb="watch"}}']) >= 1
    status = "appwrappers.workload.codeflare.dev/status"
    assert float(values[f'{requests}{{code="200",resource="{status}",verb="update"}}']) >= 2
    timed = f'mcad_api_request_duration_seconds_count{{resource="{status}",verb="update"}}'
    assert float(values[timed]) >= 2
    assert float(values["mcad_decision_duration_seconds_count"]) > 2
    assert float(values["mcad_loop_lag_seconds_count"]) > 2
    assert values["mcad_leader"] == "1.0"
    assert 5 < float(values["mcad_lease_remaining_seconds"]) <= 15
    assert float(values['mcad_event_writes_total{result="written"}']) >= 1
    assert values['mcad_event_writes_total{result="dropped"}'] == "0.0"
    assert values['mcad_write_backlog{lane="dispatch"}'] == "0.0"
    a.life.cancel()


@pytest.mark.parametrize(
    ("leader", "trouble", "text"),
    [
        ("", "", "not synced: no leader yet\n"),
        ("b", "", "not synced: no leader yet\n"),
        ("a", "403 Forbidden", "not leading: 403 Forbidden\n"),
    ],
    ids=["none", "itself, a moment ago", "no rights"],
)
async def test_a_standby_that_could_not_take_over_is_not_ready(
    leader: str, trouble: str, text: str
) -> None:
    replica = standby()
    replica.lease.leader, replica.lease.trouble = leader, trouble
    assert await asked(replica, "/readyz") == (503, text)


async def test_a_standby_is_ready_when_it_holds_its_copy() -> None:
    not_yet = 503, "standby: its copy is not complete yet\n"
    replica = standby(is_copied=False)
    assert await asked(replica, "/readyz") == not_yet
    replica.standby = None
    assert await asked(replica, "/readyz") == not_yet
    assert await asked(standby(), "/readyz") == (200, "standby; a leads\n")


@played
async def test_without_the_right_to_use_the_lease_a_process_does_nothing(stage: Stage) -> None:
    a = Process(stage.cluster, "a")
    inner = a.line.request

    async def deny(request: Request, timeout: float | None = None) -> Response:
        if "/leases" in request.path:
            raise ApiError(403, "Forbidden", "no leases for you")
        return await inner(request, timeout)

    a.line.request = deny  # type: ignore[method-assign]
    await stage.submit("w")
    await stage.clock.sleep(60)
    assert (a.leads, a.line.writes, a.replica.controller) == (False, [], None)
    assert "mcad rbac" in a.replica.lease.trouble
    a.line.request = inner  # type: ignore[method-assign]
    await stage.clock.sleep(3)
    assert (await stage.status("w"))["state"] == "Running"
    a.life.cancel()
