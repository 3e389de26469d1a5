"""The loop around the core: barrier, coalescing, wakes, silence. On a server that is a table."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from mcad.api.config import Config
from mcad.controller.execute import DISPATCH_WIDTH
from mcad.controller.http_port import STALL_S
from mcad.controller.other_controllers import Write
from mcad.controller.preflight import Preflight, Unfit
from mcad.controller.runtime import Controller
from mcad.controller.write_lanes import MOMENT_S
from mcad.core.cluster import Cluster
from mcad.core.commands import DeleteItem
from mcad.core.events import Decide, Event
from mcad.core.state.bounds import DISPATCHES_PER_PASS
from mcad.core.state.model import ObjectRef
from mcad.kube.client import Client
from mcad.kube.document import Document
from mcad.kube.errors import ApiError
from mcad.kube.kinds import APPWRAPPERS, CRDS, DISPATCH_PAUSES
from mcad.kube.resource import Resource
from tests.controller.clock import LoopClock
from tests.fakeapi import FakeApi, held, refuse

Json = dict[str, Any]
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
KINDS = (
    Resource("", "v1", "pods", "Pod"),
    Resource("", "v1", "nodes", "Node", namespaced=False),
    CONFIG_MAPS,
    Resource("", "v1", "limitranges", "LimitRange"),
    Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False),
    Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False),
    Resource("events.k8s.io", "v1", "events", "Event"),
    CRDS,
    APPWRAPPERS,
    DISPATCH_PAUSES,
)


def writes(server: FakeApi) -> list[tuple[str, str]]:
    """What was sent: creates with their plurals, writes of a status with the name."""
    sent = [(one.method, one.path.split("/")) for one in server.requests]
    verbs = {"POST": ("create", -1), "PUT": ("status", -2)}
    return [(verbs[method][0], path[verbs[method][1]]) for method, path in sent if method in verbs]


def reads(server: FakeApi) -> list[str]:
    """The paths of all that was asked for, watches left out."""
    return [one.path for one in server.seen("LIST")]


def add_node(server: FakeApi, cpu: str = "1") -> None:
    status = {
        "allocatable": {"cpu": cpu, "pods": "1000"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    server.put("nodes", {"metadata": {"name": "n1"}, "spec": {}, "status": status})


def add_appwrapper(
    server: FakeApi,
    name: str,
    cpu: str,
    priority: int = 0,
    *,
    namespace: str = "default",
    status: Json | None = None,
) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container]},
    }
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "generation": 1}
    spec = {"priority": priority, "resources": {"GenericItems": [{"generictemplate": pod}]}}
    server.put("appwrappers", {"metadata": metadata, "spec": spec, "status": status or {}})


class Rig:
    """A controller on a table with a node of ``cpu``; a context manager."""

    def __init__(
        self,
        preflight: Preflight | None = None,
        *,
        cpu: str = "1",
        server: FakeApi | None = None,
        **settings: object,
    ) -> None:
        self.server = server or FakeApi(served=KINDS)
        if server is None:
            add_node(self.server, cpu)
        self.clock = LoopClock()
        wrapped = [{"apiGroup": "", "resources": ["pods", "configmaps"]}]
        config = Config(**{"wrappedResources": wrapped, **settings})
        self.client = Client(self.server, self.clock, Random(1))
        self.controller = Controller(self.client, config, identity="test", preflight=preflight)
        self.events: list[Event] = []
        step = self.controller.dispatcher.step

        def record(event: Event, now: int) -> tuple:
            self.events.append(event)
            return step(event, now)

        self.controller.dispatcher.step = record  # type: ignore[method-assign]
        self.stop = asyncio.Event()

    async def __aenter__(self) -> Rig:
        self.task = asyncio.ensure_future(self.controller.run(self.stop))
        await self.clock.advance(0.2)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop.set()
        await self.clock.advance(1.0)
        await asyncio.wait_for(self.task, 5)

    @property
    def cluster(self) -> Cluster:
        """What the core knows."""
        return self.controller.dispatcher.cluster

    def status(self, name: str) -> Json:
        return self.server.named("appwrappers", name).get("status", {})


async def test_an_appwrapper_goes_all_the_way_with_three_writes_and_an_event() -> None:
    async with Rig() as rig:
        add_appwrapper(rig.server, "a", "500m")
        await rig.clock.advance(1)

        assert rig.status("a")["state"] == "Running"
        assert sorted(writes(rig.server)) == [
            ("create", "events"),
            ("create", "pods"),
            ("status", "a"),
            ("status", "a"),
        ]


async def test_a_wrapped_kind_that_cannot_be_listed_blocks_no_other_appwrapper() -> None:
    rig = Rig()
    add_appwrapper(rig.server, "a", "500m")
    rig.server.deny("configmaps", method="GET")
    async with rig:
        await rig.clock.advance(1)
        assert rig.status("a")["state"] == "Running"


async def test_data_is_watched_without_being_read() -> None:
    """A dispatcher that wraps Secrets would otherwise hold those of the whole cluster."""
    async with Rig() as rig:
        await rig.clock.advance(1)
    asked = {
        (one.path.split("/")[-1], one.headers.get("Accept", "")) for one in rig.server.requests
    }
    whole = {plural for plural, accept in asked if "PartialObjectMetadata" not in accept}
    assert {"pods", "nodes", "appwrappers"} <= whole
    assert "configmaps" not in whole
    assert rig.server.seen("WATCH", "/configmaps")


async def test_observations_are_coalesced_into_few_decisions() -> None:
    async with Rig() as rig:
        rig.events.clear()
        for number in range(50):
            add_appwrapper(rig.server, f"a{number}", "2")
        await rig.clock.advance(0.05)
        assert len([e for e in rig.events if isinstance(e, Decide)]) < 10


async def test_a_pass_that_ended_at_its_limit_is_followed_by_another_at_once() -> None:
    rig = Rig()
    count = DISPATCHES_PER_PASS + 50
    for number in range(count):
        add_appwrapper(rig.server, f"a{number}", "1m")
    async with rig:
        await rig.clock.advance(2)
        assert writes(rig.server).count(("create", "pods")) == count
        await rig.clock.advance(MOMENT_S)
        states = [rig.status(f"a{n}").get("state") for n in range(count)]
        assert states == ["Running"] * count


async def test_nothing_is_dispatched_while_a_stream_is_silent() -> None:
    async with Rig() as rig:
        await rig.clock.advance(80)  # not even a bookmark
        add_appwrapper(rig.server, "a", "500m")
        await rig.clock.advance(1)
        assert rig.status("a").get("dispatch") is None
        add_node(rig.server, "2")
        rig.server.put(
            "pods",
            {"metadata": {"name": "x", "namespace": "default"}, "spec": {}, "status": {}},
        )
        rig.server.put("dispatchpauses", {"metadata": {"name": "x"}, "spec": {"namespace": "y"}})
        await rig.clock.advance(2)
        assert rig.status("a")["state"] == "Running"


async def test_a_right_that_is_missing_for_a_minute_is_told_once_and_fails_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="mcad.controller.held_log")
    async with Rig(cpu="100") as rig:
        rig.server.fail_always("POST", "/pods", refuse(403, "Forbidden", "no"))
        for number in range(40):
            add_appwrapper(rig.server, f"a{number}", "1m")
        await rig.clock.advance(60)
        asked = Counter(plural for verb, plural in writes(rig.server) if verb == "create")
        assert asked["pods"] <= 4 * 40
        assert asked["selfsubjectaccessreviews"] <= 6
        held = 'mcad_held_resources{namespace="default",reason="MissingRight",resource="pods"}'
        assert f"{held} 1.0" in (await rig.controller.metrics.page()).decode()
        assert {rig.status(f"a{number}")["state"] for number in range(40)} == {"Pending"}

        rig.server.recover()
        rig.server.bookmark()
        await rig.clock.advance(60)
        assert {rig.status(f"a{number}")["state"] for number in range(40)} == {"Running"}
        assert f"{held} 0.0" in (await rig.controller.metrics.page()).decode()
    begin, end = [record.message for record in caplog.records]
    assert begin.startswith("held: not created for now resource=pods namespace=default")
    assert "no right to create pods in namespace default: “no”. Grant it" in begin
    assert end.startswith("no longer held resource=pods namespace=default reason=MissingRight")


async def test_a_cluster_in_which_nothing_happens_does_not_look_like_a_stall() -> None:
    async with Rig() as rig:
        await rig.clock.advance(1)
        rig.server.requests.clear()
        for _ in range(14):  # after 75 s without a bookmark it is looked at every second anyway
            await rig.clock.advance(5)
            assert rig.clock.monotonic() - rig.controller.stepped_at < STALL_S / 2
        assert writes(rig.server) == []


async def test_a_stop_lets_what_is_under_way_end_and_begins_nothing() -> None:
    async with Rig(cpu="100") as rig:
        gate = asyncio.Event()
        rig.server.fail_always("POST", "", held(gate))
        rig.server.fail_always("PUT", "", held(gate))
        for number in range(3 * DISPATCH_WIDTH):
            add_appwrapper(rig.server, f"a{number}", "1m")
        await rig.clock.advance(1)
        begun = writes(rig.server)
        assert begun == [("status", f"a{number}") for number in range(DISPATCH_WIDTH)]

        rig.stop.set()
        await rig.clock.advance(0.1)
        gate.set()
        await rig.clock.advance(1)
        assert rig.task.done()
        assert writes(rig.server) == begun
        intents = [name for _, name in begun if rig.status(name)["dispatch"]["phase"] == "creating"]
        assert len(intents) == DISPATCH_WIDTH


async def held_back(rig: Rig, count: int) -> asyncio.Event:
    """So many AppWrappers come, and no status is written until the event is set."""
    gate = asyncio.Event()
    rig.server.fail_always("PUT", "", held(gate))
    for number in range(count):
        add_appwrapper(rig.server, f"a{number}", "1m")
    await rig.clock.advance(1)
    return gate


async def test_an_item_is_created_before_most_of_the_intents_that_waited_longer() -> None:
    async with Rig(cpu="100") as rig:
        gate = await held_back(rig, 3 * DISPATCH_WIDTH)
        gate.set()
        await rig.clock.advance(1)
    made = writes(rig.server)
    last_intent = made.index(("status", f"a{3 * DISPATCH_WIDTH - 1}"))
    assert made[:last_intent].count(("create", "pods")) >= DISPATCH_WIDTH


async def test_a_higher_priority_overtakes_those_whose_intents_could_not_be_written_yet() -> None:
    async with Rig(cpu="100") as rig:
        gate = await held_back(rig, 8 * DISPATCHES_PER_PASS)
        add_appwrapper(rig.server, "urgent", "1m", priority=9)
        await rig.clock.advance(1)
        gate.set()
        await rig.clock.advance(3)
        made = writes(rig.server)
        assert made.count(("create", "pods")) == 8 * DISPATCHES_PER_PASS + 1
    before = made[: made.index(("status", "urgent"))]
    assert len({one for one in before if one[0] == "status"}) <= 2 * DISPATCHES_PER_PASS


async def test_the_core_hears_of_no_outcome_after_the_stop() -> None:
    async with Rig() as rig:
        gate = asyncio.Event()
        rig.server.fail_always("PUT", "", held(gate))
        add_appwrapper(rig.server, "a", "1m")
        await rig.clock.advance(1)
        rig.stop.set()
        await rig.clock.advance(0.1)
        heard = len(rig.events)
        gate.set()
        await rig.clock.advance(1)
        assert rig.status("a")["dispatch"]["phase"] == "creating"
        assert rig.events[heard:] == []


async def test_a_job_of_several_requests_sends_none_after_the_stop() -> None:
    """To delete an item whose uid is not known takes a read before."""
    async with Rig() as rig:
        add_appwrapper(rig.server, "a", "1m")
        await rig.clock.advance(1)
        assert rig.server.names("pods") == ["a"]
        gate = asyncio.Event()
        rig.server.fail("GET", "/pods/a", held(gate))
        ref = ObjectRef("", "v1", "pods", "Pod", "default", "a")
        rig.controller.executor.submit(DeleteItem("uid-a", 1, 0, ref, ""))
        await rig.clock.advance(0.1)
        rig.stop.set()
        await rig.clock.advance(0.1)
        gate.set()
        await rig.clock.advance(1)
        assert len(rig.server.seen("GET", "/pods/a")) == 1
        assert rig.server.seen("DELETE") == []


@pytest.mark.parametrize("denials", [0, 1])
async def test_a_kind_that_is_installed_later_is_found(denials: int) -> None:
    """Even if the AppWrapper that waits for it cannot be read at once."""
    rig = Rig()
    rig.server.served = tuple(one for one in KINDS if one != CONFIG_MAPS)
    template = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    metadata = {"name": "a", "namespace": "default", "generation": 1}
    spec = {"components": [{"template": template}]}
    rig.server.put("appwrappers", {"metadata": metadata, "spec": spec})
    async with rig:
        await rig.clock.advance(5)
        assert rig.status("a")["conditions"][-1]["reason"] == "KindNotInstalled"
        rig.server.served = KINDS
        rig.server.fail("GET", "/appwrappers/a$", *[refuse(403, "Forbidden")] * denials)
        for _ in range(1 + denials):
            await rig.clock.advance(60)
            rig.server.bookmark()
        await rig.clock.advance(5)
        assert rig.status("a")["state"] == "Running"
        assert rig.server.names("configmaps") == ["a"]


class Later(Preflight):
    """AppWrappers are installed when the test says so."""

    answer: bool | Exception = False

    def __init__(self) -> None:
        super().__init__(None, Config())  # type: ignore[arg-type]  # nothing is asked of it
        self.asked = 0
        self.listed_count = 0

    async def installed(self) -> bool:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def listed(self, writes: Iterable[Write]) -> None:
        self.listed_count += len(list(writes))


async def test_appwrappers_are_not_looked_at_before_they_are_installed() -> None:
    later = Later()
    rig = Rig(later, watchNamespaces=["default", "a", "b"])
    add_appwrapper(rig.server, "early", "500m")
    async with rig:
        await rig.clock.advance(5)
        assert not rig.controller.watches.is_synced
        assert "mcad crd | kubectl apply" in rig.controller.watches.absence
        assert 5 <= later.asked <= 7  # once a second, whatever the number of namespaces
        later.answer = ApiError(503, message="busy")
        await rig.clock.advance(5)
        assert rig.status("early") == {}
        later.answer = True
        await rig.clock.advance(2)
        assert rig.status("early")["state"] == "Running"


async def test_a_wrong_crd_that_comes_later_ends_it() -> None:
    later = Later()
    rig = Rig(later)
    add_appwrapper(rig.server, "early", "500m")
    await rig.__aenter__()
    later.answer = Unfit("another one")
    await rig.clock.advance(2)
    with pytest.raises(Unfit, match="another one"):
        await asyncio.wait_for(rig.task, 5)
    assert writes(rig.server) == []


async def test_another_controllers_writes_end_it_before_anything_is_done() -> None:
    class Rivals(Later):
        def listed(self, writes: Iterable[Write]) -> None:
            super().listed(writes)
            raise Unfit("another controller")

    rivals = Rivals()
    rivals.answer = True
    rig = Rig(rivals)
    for name in ("a", "b"):
        add_appwrapper(rig.server, name, "500m")
    await rig.__aenter__()
    with pytest.raises(Unfit, match="another controller"):
        await asyncio.wait_for(rig.task, 5)
    assert rivals.listed_count == 2
    assert writes(rig.server) == []


async def test_its_own_echo_is_not_told_to_the_core_nor_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []
    whole = Document.json
    monkeypatch.setattr(Document, "json", lambda one: read.append(one._resource.kind) or whole(one))
    async with Rig() as rig:
        rig.events.clear()
        add_appwrapper(rig.server, "a", "500m")
        await rig.clock.advance(1)
        seen = [e for e in rig.events if type(e).__name__ == "AppWrapperSeen"]
        assert len(seen) == 1
        assert rig.status("a")["state"] == "Running"
        assert read.count("AppWrapper") == 1


async def test_the_first_list_is_taken_in_the_order_of_creation() -> None:
    """Within a second, AppWrappers that were seen before come first."""
    rig = Rig()
    for name, created in (("z", "01"), ("a", "03"), ("new", "02"), ("seen", "02")):
        add_appwrapper(rig.server, name, "2")
        metadata = rig.server.named("appwrappers", name)["metadata"]
        metadata["creationTimestamp"] = f"2026-01-01T00:00:{created}Z"
    status = {"state": "Pending", "controllerfirsttimestamp": "2026-01-01T00:00:00.200000Z"}
    rig.server.named("appwrappers", "seen")["status"] = status
    async with rig:
        await rig.clock.advance(0.1)
        seen = [e.workload.name for e in rig.events if type(e).__name__ == "AppWrapperSeen"]
        assert seen == ["z", "seen", "new", "a"]


@pytest.mark.parametrize("path", ["/configmaps", "/limitranges", "/nodes"])
async def test_nothing_is_decided_before_all_that_counts_is_listed(path: str) -> None:
    """Not even with what is listed already: half of it would be judged without the other half."""
    rig, gate = Rig(), asyncio.Event()
    add_appwrapper(rig.server, "a", "500m")
    rig.server.fail("LIST", f"{path}$", held(gate))
    async with rig:
        await rig.clock.advance(5)
        assert not [e for e in rig.events if isinstance(e, Decide)]
        assert writes(rig.server) == []
        gate.set()
        await rig.clock.advance(5)
        assert rig.status("a")["state"] == "Running"
