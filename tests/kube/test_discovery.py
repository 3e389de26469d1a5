"""Discovery: both protocols, partial failures, and how seldom it asks."""

import asyncio
import os
from random import Random

import pytest

from mcad.kube.client import Client
from mcad.kube.discovery import FRESH_S, INVALIDATED_S, PATIENCE_S_MAX, RETRY_S, Discovery
from mcad.kube.errors import ApiError, KubeError, RequestTimeout
from mcad.kube.port import Request, Response
from mcad.kube.resource import Resource
from tests.fakeapi import answer, hang, refuse, reset
from tests.kube.support import NODES, PODS, WRAPPERS, FakeClock, eventually

GROUP = "workload.codeflare.dev"


def item(plural: str, kind: str, scope: str = "Namespaced") -> dict:
    return {
        "resource": plural,
        "responseKind": {"group": "", "version": "", "kind": kind},
        "scope": scope,
        "verbs": ["get", "list"],
        "subresources": [{"subresource": "status"}],
    }


def group(name: str, version: str, *items: dict, freshness: str = "Current") -> dict:
    versions = [{"version": version, "freshness": freshness, "resources": list(items)}]
    return {"metadata": {"name": name}, "versions": versions}


def aggregated(*groups: dict) -> dict:
    return {"kind": "APIGroupDiscoveryList", "items": list(groups)}


CORE = aggregated(group("", "v1", item("pods", "Pod"), item("nodes", "Node", "Cluster")))
WRAPPER_GROUP = group(GROUP, "v1beta2", item("appwrappers", "AppWrapper"))


@pytest.fixture
def modern(server):
    server.fail_always("GET", "^/api$", answer(CORE))
    server.fail_always("GET", "^/apis$", answer(aggregated(WRAPPER_GROUP)))
    return server


@pytest.fixture
def classic(server):
    def resources(*rows: tuple[str, str, bool]):
        return answer({"resources": [dict(zip(KEYS, row, strict=True)) for row in rows]})

    KEYS = ("name", "kind", "namespaced")  # noqa: N806
    names = [f"{GROUP}/v1beta1", f"{GROUP}/v1beta2"]
    groups = [{"versions": [{"groupVersion": name} for name in names]}]
    server.fail_always("GET", "^/api$", answer({"kind": "APIVersions", "versions": ["v1"]}))
    server.fail_always("GET", "^/apis$", answer({"kind": "APIGroupList", "groups": groups}))
    server.fail_always(
        "GET",
        "^/api/v1$",
        resources(
            ("pods/eviction", "Eviction", True), ("pods", "Pod", True), ("nodes", "Node", False)
        ),
    )
    rows = resources(
        ("appwrappers", "AppWrapper", True), ("appwrappers/status", "AppWrapper", True)
    )
    for name in names:
        server.fail_always("GET", f"^/apis/{name}$", rows)
    return server


@pytest.fixture
async def discovery(client):
    made = Discovery(client)
    yield made
    await made.aclose()


def replace(server, path: str, fault) -> None:
    server.always[:] = [entry for entry in server.always if entry[1] != path]
    server.fail_always("GET", path, fault)


class TestFinding:
    async def test_a6_aggregated_discovery_is_used(self, modern, discovery):
        assert await discovery.find("v1", "Pod") == PODS
        assert await discovery.find("v1", "Node") == NODES
        assert await discovery.find(f"{GROUP}/v1beta2", "AppWrapper") == WRAPPERS
        assert [request.path for request in modern.requests] == ["/api", "/apis"]
        assert "APIGroupDiscoveryList" in modern.requests[0].headers["Accept"]

    async def test_classic_endpoints_are_the_fallback(self, classic, discovery):
        assert await discovery.find("v1", "Pod") == PODS
        assert await discovery.find("v1", "Node") == NODES
        assert await discovery.find(f"{GROUP}/v1beta2", "AppWrapper") == WRAPPERS
        older = Resource(GROUP, "v1beta1", "appwrappers", "AppWrapper")
        assert await discovery.find(f"{GROUP}/v1beta1", "AppWrapper") == older
        assert await discovery.find("v1", "Eviction") is None
        assert len(classic.requests) == 5

    async def test_what_does_not_exist(self, modern, discovery):
        assert await discovery.find("v1", "Nothing") is None
        assert await discovery.find("no.such.group/v1", "Pod") is None
        assert await discovery.find("", "") is None

    @pytest.mark.parametrize(
        "body",
        [
            {"kind": "APIGroupDiscoveryList"},
            {"kind": "APIGroupDiscoveryList", "items": [1, {}, {"versions": [None, {}]}]},
            {
                "kind": "APIGroupDiscoveryList",
                "items": [{"metadata": 3, "versions": [{"resources": [{"responseKind": None}]}]}],
            },
            {"groups": "none", "versions": None},
            {"groups": [{"versions": [{}]}]},
        ],
    )
    async def test_odd_answers_find_nothing_and_break_nothing(self, server, discovery, body):
        server.fail_always("GET", "/", answer(body))
        assert await discovery.find("v1", "Pod") is None


class TestHowOften:
    async def test_a6_unknown_kinds_do_not_lead_to_many_requests(self, modern, discovery, clock):
        for number in range(1000):
            assert await discovery.find(f"group{number}/v1", "Kind") is None
            clock.now += 0.6
        fetches = len(modern.seen("GET", "^/apis$"))
        assert 600 / RETRY_S <= fetches <= 600 / RETRY_S + 1

    async def test_a6_single_flight(self, modern, discovery):
        await asyncio.gather(*(discovery.find("v1", f"Kind{number}") for number in range(50)))
        assert len(modern.requests) == 2

    async def test_a6_single_flight_of_known_and_unknown(self, modern, discovery):
        found = await asyncio.gather(*(discovery.find("v1", kind) for kind in ("Pod", "X") * 20))
        assert found == [PODS, None] * 20
        assert len(modern.requests) == 2

    async def test_known_kinds_are_believed_for_ten_minutes(self, modern, discovery, clock):
        for _ in range(99):
            await discovery.find("v1", "Pod")
            clock.now += FRESH_S / 100
        assert len(modern.requests) == 2
        clock.now += FRESH_S / 50
        await discovery.find("v1", "Pod")
        assert len(modern.requests) == 4

    async def test_a_kind_installed_later_is_found_after_the_interval(
        self, modern, discovery, clock
    ):
        assert await discovery.find("v1", "New") is None
        replace(modern, "^/api$", answer(aggregated(group("", "v1", item("news", "New")))))
        clock.now += RETRY_S - 1
        assert await discovery.find("v1", "New") is None
        clock.now += 1
        assert await discovery.find("v1", "New") is not None

    async def test_invalidation_shortens_the_interval_but_does_not_lift_it(
        self, modern, discovery, clock
    ):
        await discovery.find("v1", "New")
        discovery.invalidate()
        await discovery.find("v1", "New")
        assert len(modern.requests) == 2
        clock.now += INVALIDATED_S
        for _ in range(10):
            await discovery.find("v1", "New")
        assert len(modern.requests) == 4
        clock.now += INVALIDATED_S
        await discovery.find("v1", "New")
        assert len(modern.requests) == 4

    async def test_after_an_invalidation_everything_is_asked_for_again(
        self, modern, discovery, clock
    ):
        await discovery.all_resources()
        clock.now += INVALIDATED_S
        await discovery.all_resources()
        assert len(modern.requests) == 2
        discovery.invalidate()
        for _ in range(3):
            await discovery.all_resources()
        assert len(modern.requests) == 4

    async def test_a_cancelled_caller_does_not_stop_the_others(self, modern, discovery):
        tasks = [asyncio.ensure_future(discovery.find("v1", "Pod")) for _ in range(2)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        assert await tasks[1] == PODS
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]

    async def test_a6_no_files_are_written(self, modern, discovery, tmp_path, monkeypatch):
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.chdir(tmp_path)
        await discovery.find("v1", "Pod")
        assert os.listdir(tmp_path) == []


class TestFailures:
    async def test_nothing_answered_so_far_is_an_error_not_an_absence(self, server, discovery):
        server.fail_always("GET", "/", refuse(403, "Forbidden"))
        for _ in range(3):
            with pytest.raises(KubeError):
                await discovery.find("v1", "Pod")
        assert len(server.requests) == 1

    async def test_a_stale_group_does_not_lose_the_others(self, modern, discovery, clock):
        metrics = item("nodemetrics", "NodeMetrics")
        healthy = aggregated(WRAPPER_GROUP, group("metrics.k8s.io", "v1", metrics))
        replace(modern, "^/apis$", answer(healthy))
        assert await discovery.find("metrics.k8s.io/v1", "NodeMetrics") is not None
        stale = aggregated(WRAPPER_GROUP, group("metrics.k8s.io", "v1", freshness="Stale"))
        replace(modern, "^/apis$", answer(stale))
        clock.now += FRESH_S
        assert await discovery.find(f"{GROUP}/v1beta2", "AppWrapper") == WRAPPERS
        assert len(modern.requests) == 4
        assert await discovery.find("metrics.k8s.io/v1", "NodeMetrics") is not None
        with pytest.raises(ApiError, match=r"metrics\.k8s\.io/v1 is down"):
            await discovery.find("metrics.k8s.io/v1", "PodMetrics")
        assert await discovery.find("v1", "Nothing") is None

    @pytest.mark.parametrize("fault", [refuse(503), reset, answer(b"<html>")])
    async def test_a_classic_group_that_fails_does_not_lose_the_others(
        self, classic, client, clock, fault
    ):
        replace(classic, f"^/apis/{GROUP}/v1beta1$", fault)
        discovery = Discovery(client)
        assert await discovery.find(f"{GROUP}/v1beta2", "AppWrapper") == WRAPPERS
        with pytest.raises(KubeError):
            await discovery.find(f"{GROUP}/v1beta1", "AppWrapper")
        await discovery.aclose()

    async def test_an_outage_keeps_what_is_known(self, modern, discovery, clock):
        assert await discovery.find("v1", "Pod") == PODS
        modern.always.clear()
        modern.fail_always("GET", "/", refuse(403))
        clock.now += FRESH_S
        assert await discovery.find("v1", "Pod") == PODS
        with pytest.raises(ApiError):
            await discovery.find("v1", "New")

    async def test_closing_ends_a_fetch_under_way(self, server, client):
        server.fail_always("GET", "/", hang)
        discovery = Discovery(client)
        task = asyncio.ensure_future(discovery.find("v1", "Pod"))
        await eventually(lambda: server.requests)
        await discovery.aclose()
        with pytest.raises(asyncio.CancelledError):
            await task


class Slow:
    """A server that takes ``takes_s`` for each answer; time passes by asking."""

    def __init__(self, clock: FakeClock, takes_s: float) -> None:
        self.clock, self.takes_s = clock, takes_s
        self.timeouts: list[float] = []

    async def request(self, request: Request, timeout: float) -> Response:
        self.timeouts.append(timeout)
        self.clock.now += min(timeout, self.takes_s)
        if timeout <= self.takes_s:
            raise RequestTimeout(f"no answer within {timeout:g} s")
        body = CORE if request.path == "/api" else aggregated(WRAPPER_GROUP)
        return Response(200, body)


class TestPatience:
    async def test_a_server_that_takes_30_s_for_each_answer_is_understood(self, clock):
        slow = Slow(clock, 30.0)
        discovery = Discovery(Client(slow, clock, Random(1)))
        with pytest.raises(RequestTimeout):
            await discovery.all_resources()
        tries = 1
        while True:
            clock.now += RETRY_S
            tries += 1
            try:
                found = await discovery.all_resources()
                break
            except RequestTimeout:
                assert tries < 4
        assert WRAPPERS in found
        assert tries == 3, "15, 30, then 60 s for each answer"

    async def test_patience_has_a_limit(self, clock):
        slow = Slow(clock, 1e9)
        discovery = Discovery(Client(slow, clock, Random(1)))
        for _ in range(8):
            with pytest.raises(RequestTimeout):
                await discovery.all_resources()
            clock.now += RETRY_S
        assert max(slow.timeouts) == PATIENCE_S_MAX

    async def test_a_refusal_adds_no_patience(self, server, discovery):
        server.fail_always("GET", "/", refuse(403, "Forbidden"))
        before = discovery.patience_s
        with pytest.raises(KubeError):
            await discovery.all_resources()
        assert discovery.patience_s == before
