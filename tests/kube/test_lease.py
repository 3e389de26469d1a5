"""Leadership by a Lease: on the embedded API server, in virtual time.

The defects of the client library's leader election are cases here: errors of the connection,
requests that hang, judgements by the wall clock, no release on the way out, no transitions.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from functools import wraps
from random import Random
from typing import Any

import pytest

from mcad.kube.client import Client
from mcad.kube.errors import ConnectionLost, Fenced, RequestTimeout
from mcad.kube.kinds import CONFIG_MAPS, LEASES
from mcad.kube.lease import Lease, LeaseLost, Terms
from mcad.kube.port import Request, Response, nothing
from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.registry import Registry
from mcad.sim.serving.server import SimApi

Json = dict[str, Any]

TERMS = Terms("kube-system", "mcad-dispatcher", duration_s=15, renew_deadline_s=10.0, retry_s=2.0)


def virtually(story: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Let a test run in virtual time."""

    @wraps(story)
    def test(*args: Any, **more: Any) -> None:
        run_virtually(story(*args, **more))

    return test


class Skewed:
    """The common time as one machine tells it: its wall clock is an hour off, or is set back."""

    def __init__(self, clock: VirtualClock, skew_s: float) -> None:
        self._clock = clock
        self.skew_s = skew_s

    def monotonic(self) -> float:
        return self._clock.monotonic() + 12345.0 + self.skew_s

    def now_us(self) -> int:
        return self._clock.now_us() + int(self.skew_s * 1e6)

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


class Process:
    """One candidate; ``trouble`` is what becomes of its requests."""

    def __init__(
        self,
        clock: VirtualClock,
        registry: Registry,
        name: str,
        skew_s: float,
        terms: Terms = TERMS,
    ) -> None:
        self.api = SimApi(registry)
        self.clock = Skewed(clock, skew_s)
        self.client = Client(self, self.clock, Random(1))
        self.lease = Lease(self.client, terms, name)
        self.fenced = self.client.fenced(self.lease.left)
        self.trouble: Callable[[Request], Coroutine[Any, Any, Response | None]] | None = None
        self.timeouts: list[float] = []
        self.ended: asyncio.Task[None] | None = None

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        assert timeout is not None, "every request of a lease has a timeout"
        self.timeouts.append(timeout)
        if self.trouble is not None:
            answer = await self.trouble(request)
            if answer is not None:
                return answer
        return await self.api.request(request, timeout)

    def stream(
        self, request: Request, idle_timeout: float, opened: Callable[[], None] = nothing
    ) -> AsyncGenerator[bytes, None]:
        raise NotImplementedError

    def begin(self) -> None:
        """Stand by, lead, and remember what the end was."""
        self.ended = asyncio.ensure_future(self._live())

    def kill(self) -> None:
        """As kill -9: it says nothing."""
        self.ended.cancel()

    async def _live(self) -> None:
        await self.lease.acquire()
        await self.lease.hold()

    async def hang(self, request: Request) -> None:
        """A server, or a network, that never answers: the transport gives up in time."""
        await self.clock.sleep(self.timeouts[-1])
        raise RequestTimeout("no answer in time")

    async def refuse(self, request: Request) -> None:
        """Nobody listens."""
        raise ConnectionLost("connection refused")

    async def answer_late(self, request: Request) -> Response:
        """The write is committed at once, and its answer comes 3 s later, just in time."""
        answer = await self.api.request(request, 1.0)
        await self.clock.sleep(3.0)
        return answer

    async def commit_late(self, request: Request) -> Response:
        """The request is 3 s on its way, and answered at once."""
        await self.clock.sleep(3.0)
        return await self.api.request(request, 1.0)

    def loses_answer(self, method: str) -> None:
        """The next request of a method is committed, and its answer is lost."""

        async def once(request: Request) -> None:
            if request.method == method:
                self.trouble = None
                await self.lose_answer(request)

        self.trouble = once

    async def lose_answer(self, request: Request) -> None:
        """The write is committed, and its answer is lost."""
        await self.api.request(request, 1.0)
        raise ConnectionLost("reset")


class World:
    """A server and its candidates."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.registry = Registry(self.clock, Random(1))
        self.admin = Client(SimApi(self.registry), self.clock, Random(2))

    def process(self, name: str, skew_s: float = 0.0, terms: Terms = TERMS) -> Process:
        return Process(self.clock, self.registry, name, skew_s, terms)

    async def leading(self, seconds: float) -> Process:
        """One that has led for so long."""
        a = self.process("a")
        a.begin()
        await self.clock.sleep(seconds)
        return a

    async def pair(self, skew_s: float = 0.0) -> tuple[Process, Process]:
        """One that leads, and one that stands by."""
        a, b = await self.leading(1), self.process("b", skew_s)
        b.begin()
        return a, b

    async def record(self) -> Json:
        spec: Json = (await self.admin.get(LEASES, TERMS.namespace, TERMS.name))["spec"]
        return spec

    async def until(self, predicate: Callable[[], object]) -> float:
        """Seconds until it holds, to a tenth."""
        begun = self.clock.monotonic()
        while not predicate():
            await self.clock.sleep(0.1)
            assert self.clock.monotonic() < begun + 100
        return self.clock.monotonic() - begun


@virtually
async def test_the_first_holder_records_its_name_its_times_and_the_duration() -> None:
    world = World()
    a = await world.leading(0.5)
    assert (a.lease.is_held, a.lease.epoch, a.lease.leader) == (True, 1, "a")
    first = await world.record()
    assert first == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": first["acquireTime"],
        "renewTime": first["acquireTime"],
        "leaseTransitions": 0,
    }
    await world.clock.sleep(60)
    later = await world.record()
    assert later == first | {"renewTime": later["renewTime"]}
    assert later["renewTime"] > first["renewTime"]
    assert a.lease.is_held


@pytest.mark.parametrize("skew_s", [0.0, 3600.0, -3600.0], ids=["equal", "ahead", "behind"])
@virtually
async def test_a_holder_that_dies_is_succeeded_within_the_duration_with_any_wall_clock(
    skew_s: float,
) -> None:
    world = World()
    a, b = await world.pair(skew_s)
    await world.clock.sleep(60)
    assert (a.lease.is_held, b.lease.is_held, b.lease.leader) == (True, False, "a")
    a.kill()
    took = await world.until(lambda: b.lease.is_held)
    assert 15 - TERMS.retry_s <= took <= 15 + TERMS.retry_s / 2
    assert (await world.record())["leaseTransitions"] == 1
    assert b.lease.epoch == 2


@virtually
async def test_a_released_lease_is_taken_at_the_next_look() -> None:
    world = World()
    a, b = await world.pair()
    await world.clock.sleep(10)
    a.kill()
    await a.lease.release()
    assert not a.lease.is_held
    record = await world.record()
    assert (record["holderIdentity"], record["leaseDurationSeconds"]) == ("", 1)
    took = await world.until(lambda: b.lease.is_held)
    assert took <= TERMS.retry_s / 2 + 0.1
    assert (await world.record())["leaseTransitions"] == 1


@virtually
async def test_what_is_not_held_is_not_released() -> None:
    world = World()
    _, b = await world.pair()
    await world.clock.sleep(5)
    await b.lease.release()
    assert (await world.record())["holderIdentity"] == "a"


@pytest.mark.parametrize("fault", ["hang", "refuse"])
@virtually
async def test_a_holder_that_cannot_renew_stops_before_the_next_one_begins(fault: str) -> None:
    """No moment in which both may write; the library's elector leads on, or dies leading."""
    world = World()
    a, b = await world.pair()
    await world.clock.sleep(20)
    a.trouble = getattr(a, fault)
    stopped = await world.until(lambda: not a.lease.is_held)
    assert stopped <= TERMS.renew_deadline_s + 0.1
    assert not b.lease.is_held
    with pytest.raises(LeaseLost, match="of a is lost: it was not renewed for 10 s"):
        await a.ended
    assert await world.until(lambda: b.lease.is_held) >= 15 - 10 - 0.1
    assert max(a.timeouts) <= TERMS.renew_deadline_s


@virtually
async def test_a_passing_trouble_loses_nothing() -> None:
    world = World()
    a = await world.leading(20)
    a.trouble = a.hang
    await world.clock.sleep(6)
    assert "no answer in time" in a.lease.trouble
    a.trouble = None
    await world.clock.sleep(60)
    assert (a.lease.is_held, a.lease.trouble) == (True, "")


@virtually
async def test_no_write_begins_after_the_deadline_and_none_outlasts_the_lease() -> None:
    world = World()
    a = world.process("a")

    async def write(name: str) -> None:
        body = {"metadata": {"name": name}}
        await a.fenced.create(CONFIG_MAPS, "default", body)

    with pytest.raises(Fenced, match=r"POST .*configmaps was not sent"):
        await write("before")
    await a.lease.acquire()  # and never renewed
    await write("at-once")
    assert a.timeouts[-1] == pytest.approx(15.0)  # of the 30 s that it would have otherwise
    await world.clock.sleep(9.9)
    await write("late")
    assert a.timeouts[-1] == pytest.approx(5.1)
    await world.clock.sleep(0.2)
    sent = len(a.timeouts)
    with pytest.raises(Fenced):
        await write("too-late")
    assert len(a.timeouts) == sent
    assert await a.fenced.get(CONFIG_MAPS, "default", "late")  # reads need no lease


@virtually
async def test_a_holder_that_was_suspended_beyond_the_deadline_writes_nothing_and_ends() -> None:
    """The process does not know that it was: only its clock tells."""
    world = World()
    a, b = world.process("a"), world.process("b")
    await a.lease.acquire()
    b.begin()
    await world.until(lambda: b.lease.is_held)  # meanwhile a does not run
    with pytest.raises(Fenced):
        await a.fenced.delete(CONFIG_MAPS, "default", "x")
    with pytest.raises(LeaseLost):
        await a.lease.hold()
    await a.lease.release()
    assert (await world.record())["holderIdentity"] == "b"


@virtually
async def test_a_lease_that_was_lost_is_taken_back_at_once_as_a_new_hold() -> None:
    world = World()
    a = world.process("a")
    await a.lease.acquire()
    await world.clock.sleep(100)  # in which a does not run
    with pytest.raises(LeaseLost):
        await a.lease.hold()
    assert not a.lease.is_held
    began = world.clock.monotonic()
    await a.lease.acquire()
    assert (a.lease.is_held, world.clock.monotonic() - began) == (True, 0)
    assert ((await world.record())["leaseTransitions"], a.lease.epoch) == (1, 2)


@virtually
async def test_a_lease_that_another_one_took_is_lost_at_the_next_renewal() -> None:
    world = World()
    a = await world.leading(5)
    patch = {"spec": {"holderIdentity": "other"}}
    await world.admin.patch(LEASES, TERMS.namespace, TERMS.name, patch)
    with pytest.raises(LeaseLost, match="other holds it now"):
        await a.ended
    assert not a.lease.is_held


@virtually
async def test_what_others_annotate_neither_ends_nor_prolongs_it() -> None:
    world = World()
    a, b = await world.pair()

    async def annotate() -> None:
        for number in range(40):
            note = {"metadata": {"annotations": {"note": str(number)}}}
            await world.admin.patch(LEASES, TERMS.namespace, TERMS.name, note)
            await world.clock.sleep(3)

    noise = asyncio.ensure_future(annotate())
    await world.clock.sleep(60)
    assert a.lease.is_held
    a.kill()
    assert await world.until(lambda: b.lease.is_held) <= 16
    noise.cancel()


@virtually
async def test_a_lease_that_is_deleted_is_made_again_by_its_holder() -> None:
    world = World()
    a, b = await world.pair()
    await world.clock.sleep(5)
    await world.admin.delete(LEASES, TERMS.namespace, TERMS.name)
    await world.clock.sleep(30)
    assert (a.lease.is_held, b.lease.is_held) == (True, False)
    assert (await world.record())["holderIdentity"] == "a"


@pytest.mark.parametrize("method", ["POST", "PATCH"])
@virtually
async def test_a_grasp_whose_answer_is_lost_is_found_to_be_ours(method: str) -> None:
    world = World()
    if method == "PATCH":
        earlier = world.process("earlier")
        await earlier.lease.acquire()
        await earlier.lease.release()
    a = world.process("a")
    a.loses_answer(method)
    a.begin()
    assert await world.until(lambda: a.lease.is_held) <= 3
    transitions = int(method == "PATCH")
    assert (await world.record())["leaseTransitions"] == transitions
    assert a.lease.epoch == transitions + 1
    await world.clock.sleep(20)
    assert a.lease.is_held


@virtually
async def test_a_renewal_whose_answer_is_lost_is_found_to_be_ours() -> None:
    world = World()
    a = await world.leading(5)
    a.loses_answer("PATCH")
    await world.clock.sleep(30)
    assert a.lease.is_held


@virtually
async def test_of_many_candidates_one_leads_at_a_time_and_each_has_an_epoch_of_its_own() -> None:
    world = World()
    crowd = [world.process(name, skew) for name, skew in zip("abcde", range(5), strict=True)]
    for one in crowd:
        one.begin()
    epochs = []
    for _ in range(5):
        await world.until(lambda: any(one.lease.is_held for one in crowd))
        await world.clock.sleep(5)
        (leader,) = [one for one in crowd if one.lease.is_held]
        epochs.append(leader.lease.epoch)
        leader.kill()
        crowd.remove(leader)
        await world.clock.sleep(11)
    assert epochs == [1, 2, 3, 4, 5]


@virtually
async def test_a_right_that_is_missing_is_named_with_its_remedy_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    a = world.process("a")
    words = 'leases.coordination.k8s.io is forbidden: User "x" cannot create resource "leases"'
    denial = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": words}

    async def deny(request: Request) -> Response | None:
        return Response(403, denial) if request.method == "POST" else None

    a.trouble = deny
    a.begin()
    await world.clock.sleep(30)
    assert not a.lease.is_held
    assert a.lease.trouble.startswith(f"403 Forbidden: {words}; grant the dispatcher's rights")
    told = [one for one in caplog.messages if "lease trouble" in one]
    assert len(told) == 1
    assert "mcad rbac" in told[0]
    a.trouble = None
    await world.until(lambda: a.lease.is_held)
    assert a.lease.trouble == ""


LONG = Terms("kube-system", "mcad-dispatcher", duration_s=60, renew_deadline_s=40.0, retry_s=8.0)


async def last_write(world: World, a: Process, b: Process) -> tuple[float, float]:
    """Until when a write of ``a`` may last, and when ``b`` comes to lead; ``a`` is cut off."""
    until = 0.0
    while not b.lease.is_held:
        if a.lease.is_held:
            until = max(until, world.clock.monotonic() + a.lease.left())
        await world.clock.sleep(0.1)
        assert world.clock.monotonic() < 1000
    return until, world.clock.monotonic()


@pytest.mark.parametrize("cut_after", [0, 1, 2, 5])
@pytest.mark.parametrize("slow", ["answer_late", "commit_late"])
@virtually
async def test_with_slow_renewals_no_write_outlasts_the_lease(slow: str, cut_after: int) -> None:
    """A renewal that counted from its answer would: by as much as the answer took."""
    world = World()
    a, b = await world.pair()
    await world.clock.sleep(10)
    sent = 0

    async def count(request: Request) -> Response | None:
        nonlocal sent
        if request.method == "PATCH":
            sent += 1
            if sent > cut_after + 1:
                await a.refuse(request)
        return await getattr(a, slow)(request)

    a.trouble = count
    until, came = await last_write(world, a, b)
    assert sent > cut_after + 1, "it was renewed slowly before it was cut off"
    assert until <= came
    with pytest.raises(LeaseLost):
        await a.ended


@pytest.mark.parametrize(
    ("old", "new"), [(LONG, TERMS), (TERMS, LONG)], ids=["to-shorter", "to-longer"]
)
@virtually
async def test_a_rolling_upgrade_that_changes_the_duration_has_one_leader(
    old: Terms, new: Terms
) -> None:
    """The holder is succeeded by its own word, not by that of its successor."""
    world = World()
    a, b = world.process("a", terms=old), world.process("b", terms=new)
    a.begin()
    await world.clock.sleep(1)
    b.begin()
    await world.clock.sleep(2 * old.duration_s)
    assert (a.lease.is_held, b.lease.is_held) == (True, False)
    a.trouble = a.refuse
    cut = world.clock.monotonic()
    until, came = await last_write(world, a, b)
    assert until <= came
    with pytest.raises(LeaseLost):
        await a.ended
    assert came - cut <= old.duration_s + new.retry_s / 2 + 0.2  # it looks so often
    assert (await world.record())["leaseDurationSeconds"] == new.duration_s


@virtually
async def test_the_count_of_transitions_wraps_where_the_server_takes_no_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    a = world.process("a")
    await a.lease.acquire()
    await a.lease.release()
    full = {"spec": {"leaseTransitions": 2**31 - 1}}
    await world.admin.patch(LEASES, TERMS.namespace, TERMS.name, full)
    b = world.process("b")
    b.begin()
    await world.until(lambda: b.lease.is_held)
    assert (b.lease.is_held, b.lease.epoch) == (True, 1)
    assert (await world.record())["leaseTransitions"] == 0
    assert len([line for line in caplog.messages if "begins at 0 again" in line]) == 1


@virtually
async def test_a_refusal_whose_words_change_with_each_try_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    a = world.process("a")

    async def refuse(request: Request) -> Response | None:
        words = f"cannot decode {world.clock.now_us()}"
        said = {"kind": "Status", "code": 400, "reason": "BadRequest", "message": words}
        return Response(400, said) if request.method == "POST" else None

    a.trouble = refuse
    a.begin()
    await world.clock.sleep(60)
    assert len([line for line in caplog.messages if "lease trouble" in line]) == 1
    assert a.lease.trouble == "400 BadRequest: cannot decode 1800000059000000", "the latest"
