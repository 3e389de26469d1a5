"""The loop around the core: barrier, coalescing, wakes, silence. On a server that is a table."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable
from random import Random
from typing import Any

import pytest

from mcad.api.config import Config
from mcad.controller.execute import DISPATCH_WIDTH
from mcad.controller.http import STALL_S
from mcad.controller.preflight import Preflight, Unfit
from mcad.controller.rivals import Write
from mcad.controller.runtime import Controller
from mcad.core.events import Decide, Event
from mcad.core.pacing import DISPATCHES_PER_PASS
from mcad.kube.client import Client
from mcad.kube.document import Document
from mcad.kube.errors import ApiError, ConnectionLost, api_error
from mcad.kube.port import Request, Response
from tests.controller.clock import LoopClock

Json = dict[str, Any]
GROUP = "workload.codeflare.dev"
KINDS = [
    ("", "v1", "pods", "Pod"),
    ("", "v1", "nodes", "Node"),
    ("", "v1", "configmaps", "ConfigMap"),
    ("", "v1", "limitranges", "LimitRange"),
    ("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass"),
    (GROUP, "v1beta2", "appwrappers", "AppWrapper"),
]


class TableServer:
    """Lists, watches, creates and status patches on a dict of objects; one version counter."""

    def __init__(self) -> None:
        self.version = 100
        self.objects: dict[str, dict[str, Json]] = {kind[2]: {} for kind in KINDS}
        self.objects["customresourcedefinitions"] = {}
        self.watchers: list[tuple[str, asyncio.Queue[bytes | None]]] = []
        self.forbidden: set[str] = set()
        self.uncreatable: set[str] = set()  # plurals that we have no right to create
        self.reads: list[str] = []
        self.denials: dict[str, int] = {}  # end of a path -> how many reads are denied
        self.writes: list[tuple[str, str]] = []
        self.answering = asyncio.Event()  # cleared, every write lasts until it is set again
        self.answering.set()

    def put(self, plural: str, obj: Json, kind: str = "ADDED") -> Json:
        """An object as it is now; watchers are told."""
        self.version += 1
        obj["metadata"] |= {"resourceVersion": str(self.version)}
        obj["metadata"].setdefault("uid", f"uid-{obj['metadata']['name']}")
        obj["metadata"].setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        self.objects[plural][obj["metadata"]["name"]] = obj
        line = json.dumps({"type": kind, "object": obj}).encode()
        for watched, queue in self.watchers:
            if watched == plural:
                queue.put_nowait(line)
        return obj

    def remove(self, plural: str, name: str) -> None:
        """An object is deleted; watchers are told."""
        self.put(plural, self.objects[plural][name], "DELETED")
        del self.objects[plural][name]

    def bookmark(self) -> None:
        """A sign of life on every watch."""
        line = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(self.version)}}}
        for _, queue in self.watchers:
            queue.put_nowait(json.dumps(line).encode())

    def cut(self) -> None:
        """Break every watch."""
        for _, queue in self.watchers:
            queue.put_nowait(None)
        self.watchers.clear()

    def backup(self) -> str:
        """Everything, to be restored."""
        return json.dumps([self.version, self.objects])

    def restore(self, backup: str) -> None:
        """Versions go back, too."""
        self.version, self.objects = json.loads(backup)
        self.cut()

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        await asyncio.sleep(0)
        parts = request.path.strip("/").split("/")
        if request.method == "GET":
            self.reads.append(request.path)
        for end in [one for one, left in self.denials.items() if left]:
            if request.method == "GET" and request.path.endswith(end):
                self.denials[end] -= 1
                return Response(403, {"kind": "Status", "reason": "Forbidden"})
        if request.path in ("/api", "/apis"):
            return Response(200, self._discovery(request.path))
        if request.method == "GET":
            if parts[-2] not in self.objects:
                return self._list(parts[-1])
            one = self.objects[parts[-2]].get(parts[-1])
            missing = Response(404, {"kind": "Status", "reason": "NotFound"})
            return Response(200, json.loads(json.dumps(one))) if one else missing
        body = json.loads(request.body) if isinstance(request.body, bytes) else request.body
        if request.method == "POST":
            self.writes.append(("create", parts[-1]))
            await self.answering.wait()
            if parts[-1] == "events":
                return Response(201, {"metadata": {}})
            if parts[-1] == "selfsubjectaccessreviews":
                asked = body["spec"]["resourceAttributes"]["resource"]
                return Response(201, {"status": {"allowed": asked not in self.uncreatable}})
            if parts[-1] in self.uncreatable:
                return Response(403, {"kind": "Status", "reason": "Forbidden", "message": "no"})
            return Response(201, self.put(parts[-1], body | {"status": {}}))
        name = parts[-2]
        self.writes.append(("status", name))
        await self.answering.wait()
        obj = self.objects["appwrappers"][name]
        if obj["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]:
            return Response(409, {"kind": "Status", "reason": "Conflict"})
        changed = obj | {"status": obj.get("status", {}) | body["status"]}
        return Response(200, self.put("appwrappers", json.loads(json.dumps(changed)), "MODIFIED"))

    async def stream(
        self, request: Request, idle_timeout: float, opened: Callable[[], None]
    ) -> AsyncGenerator[bytes, None]:
        plural = request.path.split("/")[-1]
        since = int(request.params["resourceVersion"])
        refusal = self._refusal(plural)
        if refusal is not None:
            raise api_error(refusal.status, refusal.body)
        if since > self.version:
            raise ApiError(504, "Timeout", "Too large resource version")
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        for obj in self.objects[plural].values():
            if int(obj["metadata"]["resourceVersion"]) > since:
                queue.put_nowait(json.dumps({"type": "ADDED", "object": obj}).encode())
        self.watchers.append((plural, queue))
        opened()
        while (line := await queue.get()) is not None:
            yield line
        raise ConnectionLost("cut")

    def _refusal(self, plural: str) -> Response | None:
        if plural in self.forbidden:
            return Response(403, {"kind": "Status", "reason": "Forbidden", "message": "no right"})
        if plural not in self.objects:
            return Response(
                404, {"kind": "Status", "reason": "NotFound", "message": "no such kind"}
            )
        return None

    def _list(self, plural: str) -> Response:
        refusal = self._refusal(plural)
        if refusal is not None:
            return refusal
        items = json.loads(json.dumps(list(self.objects[plural].values())))
        return Response(200, {"metadata": {"resourceVersion": str(self.version)}, "items": items})

    def _discovery(self, root: str) -> Json:
        groups: dict[str, Json] = {}
        for group, version, plural, kind in KINDS:
            if (root == "/api") is (group == ""):
                served = groups.setdefault(
                    group,
                    {
                        "metadata": {"name": group},
                        "versions": [{"version": version, "resources": []}],
                    },
                )
                scope = "Cluster" if plural == "nodes" else "Namespaced"
                served["versions"][0]["resources"].append(
                    {"resource": plural, "responseKind": {"kind": kind}, "scope": scope}
                )
        return {"kind": "APIGroupDiscoveryList", "items": list(groups.values())}


def add_node(server: TableServer, cpu: str = "1") -> None:
    status = {
        "allocatable": {"cpu": cpu, "pods": "1000"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    server.put("nodes", {"metadata": {"name": "n1"}, "spec": {}, "status": status})


def add_appwrapper(server: TableServer, name: str, cpu: str) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container]},
    }
    server.put(
        "appwrappers",
        {
            "metadata": {"name": name, "namespace": "default", "generation": 1},
            "spec": {"resources": {"GenericItems": [{"generictemplate": pod}]}},
        },
    )


class Rig:
    """A controller on a table; a context manager."""

    def __init__(self, preflight: Preflight | None = None, **settings: object) -> None:
        self.server = TableServer()
        self.clock = LoopClock()
        wrapped = [{"apiGroup": "", "resources": ["pods", "configmaps"]}]
        config = Config(**{"wrappedResources": wrapped, **settings})
        self.client = Client(self.server, self.clock, Random(1))
        self.controller = Controller(
            self.client,
            config,
            identity="test",
            preflight=preflight,
        )
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

    def status(self, name: str) -> Json:
        return self.server.objects["appwrappers"][name].get("status", {})


async def test_an_appwrapper_goes_all_the_way_with_three_writes_and_an_event() -> None:
    async with Rig() as rig:
        add_node(rig.server)
        add_appwrapper(rig.server, "a", "500m")
        await rig.clock.advance(1)

        assert rig.status("a")["state"] == "Running"
        assert sorted(rig.server.writes) == [
            ("create", "events"),
            ("create", "pods"),
            ("status", "a"),
            ("status", "a"),
        ]


async def test_nothing_is_decided_before_every_kind_is_listed() -> None:
    rig = Rig()
    add_node(rig.server)
    add_appwrapper(rig.server, "a", "500m")
    rig.server.forbidden.add("nodes")
    async with rig:
        await rig.clock.advance(5)
        assert not [e for e in rig.events if isinstance(e, Decide)]
        assert rig.server.writes == []
        rig.server.forbidden.clear()
        await rig.clock.advance(60)
        assert rig.status("a")["state"] == "Running"


async def test_a_wrapped_kind_that_cannot_be_listed_blocks_nobody_else() -> None:
    rig = Rig()
    add_node(rig.server)
    add_appwrapper(rig.server, "a", "500m")
    rig.server.forbidden.add("configmaps")
    async with rig:
        await rig.clock.advance(1)
        assert rig.status("a")["state"] == "Running"


async def test_data_is_watched_without_being_read() -> None:
    """A dispatcher that wraps Secrets would otherwise hold those of the whole cluster."""
    rig = Rig()
    whole: set[str] = set()
    answer, tell = rig.server.request, rig.server.stream

    def note(request: Request) -> None:
        if "PartialObjectMetadata" not in request.headers.get("Accept", ""):
            whole.add(request.path.split("/")[-1])

    async def request(one: Request, timeout: float | None = None) -> Response:
        note(one)
        return await answer(one, timeout)

    def stream(one: Request, *how: Any) -> AsyncGenerator[bytes, None]:
        note(one)
        return tell(one, *how)

    rig.server.request, rig.server.stream = request, stream  # type: ignore[method-assign]
    async with rig:
        await rig.clock.advance(1)
    assert {"pods", "nodes", "appwrappers"} <= whole
    assert "configmaps" not in whole
    assert any(plural == "configmaps" for plural, _ in rig.server.watchers)


async def test_observations_are_coalesced_into_few_decisions() -> None:
    async with Rig() as rig:
        add_node(rig.server)
        rig.events.clear()
        for number in range(50):
            add_appwrapper(rig.server, f"a{number}", "2")
        await rig.clock.advance(0.05)
        assert len([e for e in rig.events if isinstance(e, Decide)]) < 10


async def test_a_pass_that_ended_at_its_limit_is_followed_by_another_at_once() -> None:
    rig = Rig()
    add_node(rig.server)
    count = DISPATCHES_PER_PASS + 50
    for number in range(count):
        add_appwrapper(rig.server, f"a{number}", "1m")
    async with rig:
        await rig.clock.advance(2)
        states = [rig.status(f"a{n}").get("state") for n in range(count)]
        assert states == ["Running"] * count


async def test_nothing_is_dispatched_while_a_stream_is_silent() -> None:
    async with Rig() as rig:
        add_node(rig.server)
        await rig.clock.advance(80)  # not even a bookmark
        add_appwrapper(rig.server, "a", "500m")
        await rig.clock.advance(1)
        assert rig.status("a").get("dispatch") is None
        add_node(rig.server, "2")
        rig.server.put(
            "pods",
            {"metadata": {"name": "x", "namespace": "default"}, "spec": {}, "status": {}},
        )
        await rig.clock.advance(2)
        assert rig.status("a")["state"] == "Running"


async def test_a_right_that_is_missing_for_a_minute_is_told_once_and_fails_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="mcad.controller.holds")
    async with Rig() as rig:
        add_node(rig.server, "100")
        rig.server.uncreatable = {"pods"}
        for number in range(40):
            add_appwrapper(rig.server, f"a{number}", "1m")
        await rig.clock.advance(60)
        asked = Counter(plural for verb, plural in rig.server.writes if verb == "create")
        assert asked["pods"] <= 4 * 40
        assert asked["selfsubjectaccessreviews"] <= 6
        sample = (
            'mcad_held_resources{namespace="default",reason="MissingRight",resource="pods"} 1.0'
        )
        assert sample in (await rig.controller.metrics.page()).decode()
        assert {rig.status(f"a{number}")["state"] for number in range(40)} == {"Pending"}

        rig.server.uncreatable.clear()
        rig.server.bookmark()
        await rig.clock.advance(60)
        assert {rig.status(f"a{number}")["state"] for number in range(40)} == {"Running"}
        assert "mcad_held_resources{" not in (await rig.controller.metrics.page()).decode()
    begin, end = [record.message for record in caplog.records]
    assert begin.startswith("held: not created for now resource=pods namespace=default")
    assert "no right to create pods in namespace default: no. Grant it" in begin
    assert end.startswith("no longer held resource=pods namespace=default reason=MissingRight")


async def test_a_cluster_in_which_nothing_happens_does_not_look_like_a_stall() -> None:
    async with Rig() as rig:
        add_node(rig.server)
        await rig.clock.advance(1)
        rig.server.writes.clear()
        for _ in range(14):  # after 75 s without a bookmark it is looked at every second anyway
            await rig.clock.advance(5)
            assert rig.clock.monotonic() - rig.controller.stepped_at < STALL_S / 2
        assert rig.server.writes == []


async def test_a_stop_lets_what_is_under_way_end_and_begins_nothing() -> None:
    async with Rig() as rig:
        add_node(rig.server, "100")
        rig.server.answering.clear()
        for number in range(3 * DISPATCH_WIDTH):
            add_appwrapper(rig.server, f"a{number}", "1m")
        await rig.clock.advance(1)
        begun = list(rig.server.writes)
        assert begun == [("status", f"a{number}") for number in range(DISPATCH_WIDTH)]

        rig.stop.set()
        await rig.clock.advance(0.1)
        rig.server.answering.set()
        await rig.clock.advance(1)
        assert rig.task.done()
        assert rig.server.writes == begun
        intents = [name for _, name in begun if rig.status(name)["dispatch"]["phase"] == "creating"]
        assert len(intents) == DISPATCH_WIDTH


@pytest.mark.parametrize("denials", [0, 1])
async def test_a_kind_that_is_installed_later_is_found(
    denials: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the AppWrapper that waits for it cannot be read at once."""
    all_kinds = list(KINDS)
    monkeypatch.setitem(globals(), "KINDS", [one for one in KINDS if one[2] != "configmaps"])
    rig = Rig()
    add_node(rig.server)
    template = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    metadata = {"name": "a", "namespace": "default", "generation": 1}
    spec = {"components": [{"template": template}]}
    rig.server.put("appwrappers", {"metadata": metadata, "spec": spec})
    async with rig:
        await rig.clock.advance(5)
        assert rig.status("a")["conditions"][-1]["reason"] == "KindNotInstalled"
        monkeypatch.setitem(globals(), "KINDS", all_kinds)
        rig.server.objects["configmaps"] = {}
        rig.server.denials["/appwrappers/a"] = denials
        for _ in range(1 + denials):
            await rig.clock.advance(60)
            rig.server.bookmark()
        await rig.clock.advance(5)
        assert rig.status("a")["state"] == "Running"
        assert list(rig.server.objects["configmaps"]) == ["a"]


class Later(Preflight):
    """AppWrappers are installed when the test says so."""

    def __init__(self) -> None:
        super().__init__(None, Config())  # type: ignore[arg-type]  # nothing is asked of it
        self.answer: bool | Exception = False
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
    add_node(rig.server)
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
    assert rig.server.writes == []


async def test_another_controllers_writes_end_it_before_anything_is_done() -> None:
    class Rivals(Later):
        def listed(self, writes: Iterable[Write]) -> None:
            super().listed(writes)
            raise Unfit("somebody else")

    rivals = Rivals()
    rivals.answer = True
    rig = Rig(rivals)
    add_node(rig.server)
    for name in ("a", "b"):
        add_appwrapper(rig.server, name, "500m")
    await rig.__aenter__()
    with pytest.raises(Unfit, match="somebody else"):
        await asyncio.wait_for(rig.task, 5)
    assert rivals.listed_count == 2
    assert rig.server.writes == []


async def test_its_own_echo_is_not_told_to_the_core_nor_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []
    whole = Document.json
    monkeypatch.setattr(Document, "json", lambda one: read.append(one._resource.kind) or whole(one))
    async with Rig() as rig:
        add_node(rig.server)
        rig.events.clear()
        add_appwrapper(rig.server, "a", "500m")
        await rig.clock.advance(1)
        seen = [e for e in rig.events if type(e).__name__ == "AppWrapperSeen"]
        assert len(seen) == 1
        assert rig.server.objects["appwrappers"]["a"]["status"]["state"] == "Running"
        assert read.count("AppWrapper") == 1


async def test_the_first_list_is_taken_in_the_order_of_creation() -> None:
    rig = Rig()
    for name, created in (("z", "01"), ("a", "03"), ("m", "02")):
        add_appwrapper(rig.server, name, "2")
        rig.server.objects["appwrappers"][name]["metadata"]["creationTimestamp"] = (
            f"2026-01-01T00:00:{created}Z"
        )
    async with rig:
        await rig.clock.advance(0.1)
        seen = [e.workload.name for e in rig.events if type(e).__name__ == "AppWrapperSeen"]
        assert seen == ["z", "m", "a"]


async def test_what_was_seen_before_a_restart_is_taken_before_what_never_was() -> None:
    rig = Rig()
    for name in ("new", "seen"):  # of the same second; a status write made "seen" the newer version
        add_appwrapper(rig.server, name, "2")
    status = {"state": "Pending", "controllerfirsttimestamp": "2026-01-01T00:00:00.200000Z"}
    rig.server.objects["appwrappers"]["seen"]["status"] = status
    async with rig:
        await rig.clock.advance(0.1)
        seen = [e.workload.name for e in rig.events if type(e).__name__ == "AppWrapperSeen"]
        assert seen == ["seen", "new"]
