"""A standby holds a copy of what a leader knows, and leads by it once it has caught up (ADR 55)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from random import Random
from typing import Any

import pytest

from mcad.api.config import Config
from mcad.controller.event_translation import SlimNode
from mcad.controller.initial_lists import COPIES_FED_AT_ONCE, Copy
from mcad.controller.preflight import Unfit
from mcad.controller.replica import Replica
from mcad.core.events import Decide, Event
from mcad.core.state.entry import Entry
from mcad.core.state.model import Node
from mcad.core.state.waiting_reason import WaitingReason
from mcad.kube import reflector
from mcad.kube.client import Client
from mcad.kube.errors import ApiError
from mcad.kube.kinds import APPWRAPPERS, CRDS, NODES, PODS
from mcad.kube.port import Request, Response, nothing
from mcad.kube.resource import Resource
from tests.controller.clock import LoopClock
from tests.controller.test_replica import Line, Stage, asked, played
from tests.controller.test_runtime import Later
from tests.manifests import components, pod

Json = dict[str, Any]
LIMIT_RANGES = Resource("", "v1", "limitranges", "LimitRange")
PLURALS = [one.plural for one in (APPWRAPPERS, NODES, PODS)]
TERMS = Config().leader_election
UNTIL_IT_LEADS_S = TERMS.lease_duration + 1.0
TO_CATCH_UP_S = 3.0


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """One object is many: nothing is listed because it costs little."""
    monkeypatch.setattr(reflector, "FEW", 0)


class Wire(Line):
    """A connection that remembers what it was asked; with ``late`` watches say nothing more."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.cluster)
        self.asked: list[Request] = []
        self.is_late = False

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        self.asked.append(request)
        return await super().request(request, timeout)

    async def stream(
        self, request: Request, idle_timeout: float, opened: Callable[[], None] = nothing
    ) -> AsyncGenerator[bytes, None]:
        self.asked.append(request)
        async for line in super().stream(request, idle_timeout, opened):
            if self.is_late:
                await asyncio.Event().wait()
            yield line

    def whole_lists(self) -> set[str]:
        """The essential kinds that were listed as a whole."""
        return {plural for plural in PLURALS for one in self._of(plural) if self._is_whole(one)}

    def watches(self) -> set[str]:
        return {plural for plural in PLURALS for one in self._of(plural) if "watch" in one.params}

    def _of(self, plural: str) -> list[Request]:
        return [one for one in self.asked if one.path.endswith(f"/{plural}")]

    @staticmethod
    def _is_whole(request: Request) -> bool:
        return request.method == "GET" and int(request.params.get("limit", "0")) > 1


class Process:
    """A replica, what its core was fed, and what became of it."""

    def __init__(self, stage: Stage, name: str, **more: Any) -> None:
        self.wire = Wire(stage)
        client = Client(self.wire, stage.clock, Random(1))
        self.replica = Replica(client, Config(), identity=name, **more)
        self.stop = asyncio.Event()
        self.life = asyncio.ensure_future(self.replica.run(self.stop))

    @property
    def leads(self) -> bool:
        return self.replica.lease.is_held

    @property
    def entries(self) -> set[str]:
        """The names of the AppWrappers that the core knows."""
        assert self.replica.standby is not None
        cluster = self.replica.standby.dispatcher.cluster
        return {one.workload.name for one in cluster.entries.values()}

    def entry(self, name: str) -> Entry:
        """What the core knows of an AppWrapper."""
        assert self.replica.standby is not None
        entries = self.replica.standby.dispatcher.cluster.entries.values()
        return next(one for one in entries if one.workload.name == name)


async def pair(stage: Stage, **more: Any) -> tuple[Process, Process]:
    """A leader, and a standby that has had time to copy everything."""
    a = Process(stage, "a")
    await stage.clock.sleep(1)
    b = Process(stage, "b", **more)
    await stage.clock.sleep(20)
    assert (a.leads, b.leads) == (True, False)
    return a, b


async def succeeded(stage: Stage, a: Process, b: Process) -> None:
    """The leader is killed, and the other one leads."""
    a.life.cancel()
    b.wire.asked.clear()
    while not b.leads:
        await stage.clock.sleep(0.1)


def slow_down(
    stage: Stage, process: Process, seconds: float, concerns: Callable[[str], bool]
) -> None:
    """Requests for the paths that this concerns are sent so much later."""
    inner = process.wire.request

    async def slow(request: Request, timeout: float | None = None) -> Response:
        if concerns(request.path):
            await stage.clock.sleep(seconds)
        return await inner(request, timeout)

    process.wire.request = slow  # type: ignore[method-assign]


def of_tfjob(name: str) -> Json:
    """An AppWrapper of a TFJob without pods that are declared."""
    job = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "t"}, "spec": {}}
    body = components(name, job)
    body["spec"]["components"][0]["podSets"] = []
    return body


@played
async def test_it_leads_without_listing_anything(stage: Stage) -> None:
    await stage.submit("before")
    a, b = await pair(stage)
    assert b.wire.whole_lists() == {*PLURALS}
    assert b.entries == set(), "its core knows nothing yet"
    assert b.wire.writes == []
    await succeeded(stage, a, b)
    await stage.submit("after")
    await stage.clock.sleep(TO_CATCH_UP_S)
    assert b.wire.whole_lists() == set()
    assert b.entries == {"before", "after"}
    assert (await stage.status("after"))["state"] == "Running"
    assert (await stage.status("after"))["dispatch"]["epoch"] == 2
    b.life.cancel()


@played
async def test_what_happened_since_the_kill_counts_before_anything_is_decided(stage: Stage) -> None:
    """The node is full. An AppWrapper ends and another one waits for its room; both are seen."""
    await stage.submit("full", "900m")
    await stage.submit("deleted", "900m")
    a, b = await pair(stage)
    a.life.cancel()
    await stage.user.delete(APPWRAPPERS, "default", "deleted")
    await stage.user.delete(APPWRAPPERS, "default", "full")
    await stage.submit("new", "800m")
    known: list[set[str]] = []
    while b.replica.controller is None:
        await stage.clock.sleep(0.01)
    step = b.replica.controller.dispatcher.step

    def record(event: Event, now: int) -> tuple[Any, ...]:
        if isinstance(event, Decide):
            known.append(b.entries)
        return step(event, now)

    b.replica.controller.dispatcher.step = record  # type: ignore[method-assign]
    await stage.clock.sleep(TO_CATCH_UP_S + 1)
    assert known[0] == {"new"}
    assert (await stage.status("new"))["state"] == "Running"
    b.life.cancel()


@played
async def test_a_copy_that_cannot_catch_up_is_listed(stage: Stage) -> None:
    await stage.submit("before")
    a, b = await pair(stage)
    b.wire.is_late = True
    await stage.submit("unheard")
    await succeeded(stage, a, b)
    await stage.clock.sleep(reflector.CATCH_UP_S - 1)
    assert b.entries == set()
    await stage.clock.sleep(2)
    assert b.wire.whole_lists() == {*PLURALS}
    assert b.entries == {"before", "unheard"}
    b.life.cancel()


@played
async def test_lists_that_are_under_way_are_not_begun_again(stage: Stage) -> None:
    """They began before the take-over, so what happened since is asked for as well."""
    await stage.submit("before")
    a = Process(stage, "a")
    await stage.clock.sleep(1)
    b = Process(stage, "b")
    paths = ("/pods", "/appwrappers")
    slow_down(stage, b, TERMS.lease_duration, lambda path: not b.leads and path.endswith(paths))
    await stage.clock.sleep(5)
    await succeeded(stage, a, b)
    await stage.submit("after")
    await stage.clock.sleep(TERMS.lease_duration + TO_CATCH_UP_S)
    whole = [one.path.rpartition("/")[2] for one in b.wire.asked if b.wire._is_whole(one)]
    assert (whole.count("pods"), whole.count("appwrappers")) == (1, 1)
    assert b.entries == {"before", "after"}
    assert (await stage.status("after"))["state"] == "Running"
    b.life.cancel()


@played
async def test_a_process_that_finds_the_lease_free_makes_no_copy(stage: Stage) -> None:
    a = Process(stage, "a")
    await stage.clock.sleep(5)
    whole = [one for one in a.wire.asked if one.path.endswith("/nodes") and a.wire._is_whole(one)]
    assert len(whole) == 1
    assert a.replica.controller is a.replica.standby
    a.life.cancel()


@played
async def test_defaults_of_pods_are_those_of_the_take_over(stage: Stage) -> None:
    """They were made after the AppWrapper was read, and they are listed late."""
    bare = pod("bare")
    bare["spec"]["containers"][0].pop("resources")
    body = components("bare", bare)
    body["spec"]["suspend"] = True
    await stage.user.create(APPWRAPPERS, "default", body)
    a, b = await pair(stage)
    ranged = {"limits": [{"type": "Container", "defaultRequest": {"cpu": "200m"}}]}
    meta = {"name": "r", "namespace": "default"}
    await stage.user.create(LIMIT_RANGES, "default", {"metadata": meta, "spec": ranged})
    slow_down(stage, b, 5, lambda path: path.endswith("/limitranges"))
    await succeeded(stage, a, b)
    await stage.clock.sleep(4)
    assert b.entries == set()
    await stage.clock.sleep(2)
    assert dict(b.entry("bare").workload.sets[0].request)["cpu"] == 200
    b.life.cancel()


@played
async def test_a_kind_that_is_installed_meanwhile_is_known(stage: Stage) -> None:
    """What names it was not readable when it was copied."""
    body = of_tfjob("early")
    await stage.submit("unconcerned")
    a, b = await pair(stage)
    await stage.user.create(APPWRAPPERS, "default", body)
    await stage.clock.sleep(2)
    await stage.user.create(CRDS, None, tfjobs())
    await stage.clock.sleep(20)
    await succeeded(stage, a, b)
    await stage.clock.sleep(TO_CATCH_UP_S)
    assert b.replica.controller is not None
    assert ("kubeflow.org", "tfjobs") in b.replica.controller.watches.streams
    assert (await stage.status("early"))["state"] != "Failed"
    assert b.entries == {"early", "unconcerned"}
    assert b.entry("early").workload.problem is None
    b.life.cancel()


def tfjobs() -> Json:
    """A CRD that accepts anything."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "tfjobs.kubeflow.org"},
        "spec": {
            "group": "kubeflow.org",
            "names": {"plural": "tfjobs", "singular": "tfjob", "kind": "TFJob", "listKind": "L"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


@played
async def test_a_standby_that_is_told_to_end_leaves_nothing_running(stage: Stage) -> None:
    a, b = await pair(stage)
    b.stop.set()
    await asyncio.wait_for(b.life, 1)
    await stage.clock.sleep(1)
    b.wire.asked.clear()
    await stage.clock.sleep(60)
    assert b.wire.asked == []
    a.life.cancel()


@played
async def test_a_standby_that_cannot_make_a_copy_ends_with_its_error(stage: Stage) -> None:
    class Broken(Later):
        answer = True

        async def installed(self) -> bool:
            raise Unfit("another schema")

    a = Process(stage, "a")
    await stage.clock.sleep(1)
    b = Process(stage, "b", preflight=Broken())
    with pytest.raises(Unfit, match="another schema"):
        await asyncio.wait_for(b.life, 10)
    assert a.leads
    a.life.cancel()


@played
async def test_the_check_at_a_take_over_counts_for_no_later_list(stage: Stage) -> None:
    """The first list would have asked for its result, and there is none."""

    class Judging(Later):
        answer = True
        is_judged = False
        taken = 0

        async def check(self) -> None:
            self.is_judged = True

        async def installed(self) -> bool:
            self.taken += self.is_judged
            self.is_judged = False
            return await super().installed()

    preflight = Judging()
    a, b = await pair(stage, preflight=preflight)
    assert preflight.taken == 0
    await succeeded(stage, a, b)
    await stage.clock.sleep(TO_CATCH_UP_S)
    assert (preflight.taken, preflight.is_judged) == (1, False)
    b.life.cancel()


@played
async def test_the_log_says_once_that_a_copy_is_complete(stage: Stage) -> None:
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("mcad.controller")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        a, b = await pair(stage)
        assert len([one for one in said if one.startswith("a copy is complete kinds=")]) == 1
        a.life.cancel()
        b.life.cancel()
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def overload(stage: Stage, process: Process, plural: str) -> None:
    """Lists of a kind fail as on a server that has too much to do."""
    inner = process.wire.request

    async def request(request: Request, timeout: float | None = None) -> Response:
        if request.path.endswith(f"/{plural}") and "watch" not in request.params:
            await stage.clock.sleep(1)
            raise ApiError(503, "ServiceUnavailable", "overloaded")
        return await inner(request, timeout)

    process.wire.request = request  # type: ignore[method-assign]


@played
async def test_a_standby_is_not_ready_while_lists_fail(stage: Stage) -> None:
    a = Process(stage, "a")
    await stage.clock.sleep(1)
    b = Process(stage, "b")
    works = b.wire.request
    overload(stage, b, "pods")
    await stage.clock.sleep(10)
    assert (await asked(b.replica, "/readyz"))[0] == 503
    b.wire.request = works  # type: ignore[method-assign]
    await stage.clock.sleep(60)
    assert (await asked(b.replica, "/readyz"))[0] == 200
    a.life.cancel()
    b.life.cancel()


@played
async def test_a_standby_is_not_ready_while_appwrappers_are_listed_anew(stage: Stage) -> None:
    await stage.submit("before")
    a, b = await pair(stage)
    assert (await asked(b.replica, "/readyz"))[0] == 200
    overload(stage, b, "appwrappers")
    await stage.user.create(CRDS, None, tfjobs())
    await stage.clock.sleep(20)
    assert (await asked(b.replica, "/readyz"))[0] == 503
    a.life.cancel()
    b.life.cancel()


class Slow(Later):
    """Its checks take longer than a Lease may stay without renewal."""

    answer = True

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self.clock = stage.clock

    async def check(self) -> None:
        await self.clock.sleep(TERMS.renew_deadline + 5)


@played
async def test_the_lease_is_renewed_during_the_checks_at_a_take_over(stage: Stage) -> None:
    a, b = await pair(stage, preflight=Slow(stage))
    a.life.cancel()
    await stage.clock.sleep(UNTIL_IT_LEADS_S + TERMS.renew_deadline + 10)
    assert not b.life.done()
    assert b.replica.controller is not None
    b.life.cancel()


@played
async def test_a_stop_during_the_checks_at_a_take_over_gives_the_lease_away(stage: Stage) -> None:
    a, b = await pair(stage, preflight=Slow(stage))
    await succeeded(stage, a, b)
    b.stop.set()
    await stage.clock.sleep(2)
    assert b.life.done()
    c = Process(stage, "c")
    await stage.clock.sleep(3)
    assert c.leads
    c.life.cancel()


@played
async def test_pods_that_are_items_are_known_as_both(stage: Stage) -> None:
    await stage.submit("before")
    a, b = await pair(stage)
    await succeeded(stage, a, b)
    await stage.clock.sleep(TO_CATCH_UP_S)
    assert b.replica.controller is not None
    cluster = b.replica.controller.dispatcher.cluster
    children = cluster.objects.of(b.entry("before"))
    assert [one.ref.name for one in children] == ["before"]
    assert (await stage.status("before"))["state"] == "Running"
    b.life.cancel()


@played
async def test_what_was_read_with_a_kind_that_is_gone_is_read_again(stage: Stage) -> None:
    body = of_tfjob("late")
    body["spec"]["suspend"] = True
    await stage.user.create(CRDS, None, tfjobs())
    await stage.user.create(APPWRAPPERS, "default", body)
    a, b = await pair(stage)
    await stage.user.delete(CRDS, None, "tfjobs.kubeflow.org")
    await stage.clock.sleep(20)
    await succeeded(stage, a, b)
    await stage.clock.sleep(TO_CATCH_UP_S)
    problem = b.entry("late").workload.problem
    assert problem is not None
    assert problem.kind is WaitingReason.NOT_INSTALLED
    b.life.cancel()


async def test_an_object_that_is_too_deep_to_be_written_is_copied_as_it_is() -> None:
    """It was read with less on the stack."""
    seen: list[Json] = []
    deep: Json = {}
    for _ in range(10_000):
        deep = {"a": deep}
    copy = Copy(seen.append, LoopClock())
    copy.put({"metadata": {"uid": "u"}, "spec": deep})
    await copy.feed()
    assert seen[0]["spec"] is deep


async def test_a_node_is_copied_as_the_core_knows_it() -> None:
    """It is read once, not written as text to be read again."""
    seen: list[SlimNode] = []
    copy = Copy(seen.append, LoopClock())
    before, after = (SlimNode("u", Node("n", (), ready=ready)) for ready in (True, False))
    copy.put(before)
    copy.put(after)
    copy.put(SlimNode("v", Node("m", ())))
    assert copy.drop("v")
    await copy.feed()
    assert [id(one) for one in seen] == [id(after)]


async def test_objects_are_copied_as_text_and_fed_in_turns() -> None:
    seen: list[Json] = []
    copy = Copy(seen.append, LoopClock())
    many = 2 * COPIES_FED_AT_ONCE
    for number in range(many):
        copy.put({"metadata": {"uid": f"u{number}"}, "spec": {"n": number, "s": "\ud800"}})
    copy.put({"metadata": {"uid": "u1"}, "spec": {"n": -1}})
    assert copy.drop("u0")
    assert not copy.drop("u0")
    feeding = asyncio.ensure_future(copy.feed())
    await asyncio.sleep(0)
    assert len(seen) == COPIES_FED_AT_ONCE
    copy.put({"metadata": {"uid": "u2"}, "spec": {"n": -2}})
    copy.put({"metadata": {"uid": "u3"}, "spec": {"n": -3}})
    assert not copy.drop("u3"), "the core knows an earlier version of it"
    await feeding
    assert [one["spec"]["n"] for one in seen] == [-1, *range(2, many), -2]
    assert seen[-2]["spec"]["s"] == "\ud800"
