"""The small parts of the controller: versions, lanes, the alarm, streams, owner chains."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from mcad.api.owner import Owner, controller_of
from mcad.controller.mirror import spec_mark, status_mark
from mcad.controller.owner_chains import CHAIN_MAX, FOREIGN, End, Missing, Owners
from mcad.controller.streams import SILENCE_S, Stream
from mcad.controller.wakeup import Alarm
from mcad.controller.write_lanes import BUSY, CALM, LOOKS, Job, Lane
from mcad.core.state.model import Pod, PodPhase
from mcad.core.state.units import SECOND
from mcad.kube.errors import ApiError, ConnectionLost, KubeError, RequestTimeout
from mcad.kube.versions import is_older
from tests.controller.clock import LoopClock


@pytest.mark.parametrize(
    ("version", "known", "older"),
    [
        pytest.param("9", "10", True, id="numbers, not texts"),
        pytest.param("10", "9", False, id="newer"),
        pytest.param("10", "10", False, id="our echo is not older"),
        pytest.param("abc", "10", False, id="what is no number is never older"),
        pytest.param("٩", "10", True, id="any decimal digits"),
    ],
)
def test_versions_are_compared_as_numbers(version: str, known: str, older: bool) -> None:
    assert is_older(version, known) is older


def test_a_status_mark_ignores_nulls_and_the_order_of_keys() -> None:
    assert status_mark({"a": 1, "b": None}) == status_mark({"a": 1})
    assert status_mark({"a": [{"x": None}]}) == status_mark({"a": [{}]})
    assert status_mark({"a": 1, "b": 2}) == status_mark({"b": 2, "a": 1})
    assert status_mark(None) == status_mark({})
    assert status_mark({"a": 1}) != status_mark({"a": 2})


def test_a_spec_mark_follows_generation_deletion_and_other_metadata_that_counts() -> None:
    base = {"metadata": {"generation": 1, "labels": {"a": "b"}}, "status": {"x": 1}}

    assert spec_mark(base) == spec_mark({**base, "status": {"x": 2}})
    later = {"deletionTimestamp": "now"}
    for change in ({"generation": 2}, later, {"labels": {}}, {"finalizers": ["orphan"]}):
        changed = {"metadata": {**base["metadata"], **change}}
        assert spec_mark(base) != spec_mark(changed)


async def test_a_lane_runs_so_many_at_once_and_starts_in_order() -> None:
    lane, started, gates = Lane(2), [], [asyncio.Event() for _ in range(4)]

    async def job(number: int) -> None:
        started.append(number)
        await gates[number].wait()

    for number in range(4):
        lane.submit(lambda number=number: job(number))
    await asyncio.sleep(0)
    assert (started, lane.running, lane.waiting) == ([0, 1], 2, 2)
    gates[1].set()
    for _ in range(4):
        await asyncio.sleep(0)
    assert started == [0, 1, 2]
    for gate in gates:
        gate.set()
    draining = asyncio.ensure_future(lane.drain())
    await asyncio.sleep(0)
    lane.submit(lambda: job(3))  # as the outcome of a job that ends meanwhile may have it
    await draining
    assert (lane.running, lane.waiting) == (0, 0)
    assert started == [0, 1, 2]  # a draining lane starts nothing more


@pytest.fixture(autouse=True)
async def _no_job_is_left() -> AsyncIterator[None]:
    """A task that is destroyed while it waits is an error in the log of a later test."""
    yield
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for one in left:
        one.cancel()
    await asyncio.gather(*left, return_exceptions=True)


class Jobs:
    """Jobs of a lane that end when they are told to."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self._gates: dict[str, asyncio.Event] = {}

    def job(self, name: str) -> Job:
        gate = self._gates[name] = asyncio.Event()

        async def run() -> None:
            self.started.append(name)
            await gate.wait()

        return run

    async def end(self, *names: str) -> None:
        for name in names:
            self._gates[name].set()
            await settled()


async def settled() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


async def test_what_was_begun_goes_first_and_one_of_four_begins() -> None:
    lane, jobs = Lane(1), Jobs()
    lane.submit(jobs.job("first"))
    for number in range(2):
        lane.submit(jobs.job(f"begins-{number}"), begins=True)
    for number in range(7):
        lane.submit(jobs.job(f"goes-on-{number}"))
    await settled()
    assert lane.waiting == 9
    while lane.running:
        await jobs.end(jobs.started[-1])
    assert jobs.started == [
        *("first", "goes-on-0", "goes-on-1", "begins-0"),
        *("goes-on-2", "goes-on-3", "goes-on-4", "begins-1"),
        *("goes-on-5", "goes-on-6"),
    ]


async def test_a_lane_behind_another_runs_one_job_while_jobs_wait_there() -> None:
    dispatches, jobs = Lane(1), Jobs()
    reports = Lane(3, before=dispatches)
    for name in ("a", "b"):
        dispatches.submit(jobs.job(name))
    for name in ("1", "2", "3", "4", "5"):
        reports.submit(jobs.job(name))
    await settled()
    assert jobs.started == ["a", "1"]
    await jobs.end("1")
    assert jobs.started == ["a", "1", "2"], "reports go on, one by one"
    await jobs.end("a")
    assert dispatches.waiting == 0
    await jobs.end("2")
    assert jobs.started == ["a", "1", "2", "b", "3", "4", "5"]


class Naps:
    """Sleeps that a test ends."""

    def __init__(self) -> None:
        self._over = asyncio.Event()

    async def sleep(self, _: float) -> None:
        await self._over.wait()

    async def end(self) -> None:
        self._over.set()
        self._over = asyncio.Event()
        await settled()


async def test_a_deferred_job_starts_at_once_at_rest_and_after_a_moment_in_a_busy_lane() -> None:
    naps, jobs = Naps(), Jobs()
    dispatches = Lane(2 * BUSY, sleep=naps.sleep)
    reports = Lane(1, before=dispatches, sleep=naps.sleep)
    for lane, name in ((dispatches, "confirmation"), (reports, "report")):
        lane.defer(jobs.job(name))
    await settled()
    assert jobs.started == ["confirmation", "report"]
    await jobs.end("confirmation", "report")
    for number in range(BUSY):
        dispatches.submit(jobs.job(f"d{number}"))
    dispatches.defer(jobs.job("later confirmation"))
    reports.defer(jobs.job("later report"))
    await settled()
    for _ in range(LOOKS):
        assert jobs.started[2:] == [f"d{number}" for number in range(BUSY)]
        await naps.end()
    assert jobs.started[-2:] == ["later confirmation", "later report"]


async def test_deferred_jobs_start_once_the_lane_is_calm() -> None:
    naps, jobs = Naps(), Jobs()
    lane = Lane(2 * BUSY, sleep=naps.sleep)
    for number in range(BUSY):
        lane.submit(jobs.job(f"d{number}"))
    for number in range(2 * BUSY):
        lane.defer(jobs.job(f"later {number}"))
    await settled()
    await jobs.end("d0")
    for _ in range(CALM):
        assert len(jobs.started) == BUSY
        await naps.end()
    assert len(jobs.started) == BUSY + BUSY + 1, "as many as may run"
    assert lane.waiting == BUSY - 1


async def test_a_lane_that_drains_drops_what_is_deferred() -> None:
    naps, jobs = Naps(), Jobs()
    lane = Lane(2 * BUSY, sleep=naps.sleep)
    for number in range(BUSY):
        lane.submit(jobs.job(f"d{number}"))
    lane.defer(jobs.job("deferred"))
    await settled()
    draining = asyncio.ensure_future(lane.drain())
    await jobs.end(*(f"d{number}" for number in range(BUSY)))
    await draining
    await naps.end()
    assert "deferred" not in jobs.started


async def test_a_lane_remembers_what_a_job_died_of() -> None:
    lane = Lane(1)

    async def job() -> None:
        raise ValueError("a bug")

    lane.submit(job)
    await lane.drain()
    await asyncio.sleep(0)
    with pytest.raises(ValueError, match="a bug"):
        lane.raise_failure()


async def test_the_alarm_rings_at_the_earliest_wish_and_at_every_later_one() -> None:
    clock, rings = LoopClock(), []
    start = clock.now_us()
    alarm = Alarm(clock, lambda: rings.append((clock.now_us() - start) // SECOND))
    for seconds in (5, 2, 0):
        alarm.wake_at(start + seconds * SECOND)
    for seconds, expected in ((0, [0]), (2, [0, 2]), (3, [0, 2, 5])):
        await clock.advance(seconds)
        assert rings == expected
    alarm.wake_at(start + 9 * SECOND)
    alarm.close()
    await clock.advance(10)
    assert len(rings) == 3


class HeldBack:
    """Of the first lists; ``feed`` waits until it is let go on."""

    is_due_listed = False

    def __init__(self) -> None:
        self.objs: list[str] = []
        self.going = asyncio.Event()
        self.was_fed = False

    def put(self, obj: str) -> None:
        self.objs.append(obj)

    def drop(self, uid: str) -> bool:
        if self.was_fed or uid not in self.objs:
            return False
        self.objs.remove(uid)
        return True

    async def feed(self) -> None:
        self.was_fed = True
        await self.going.wait()


async def test_a_stream_in_parts_is_synced_when_all_parts_are_and_their_objects_fed() -> None:
    held, seen, lost, changes = HeldBack(), [], [], []
    stream: Stream[str] = Stream(
        "x", seen.append, lost.append, lambda s: changes.append(s.is_synced), float, first=held
    )
    one, two = stream.part(), stream.part()
    one.upserted("a")
    one.synced(relist=False)
    two.upserted("b")
    await asyncio.sleep(0)
    assert not held.was_fed
    one.gone("a", "", "a", None)
    two.synced(relist=False)
    await asyncio.sleep(0)
    one.upserted("c")
    one.gone("b", "", "b", None)
    assert (held.objs, lost, seen, changes) == (["b", "c"], ["b"], [], [])
    held.going.set()
    for _ in range(3):
        await asyncio.sleep(0)
    one.upserted("d")
    one.synced(relist=True)
    assert (held.objs, seen, changes) == (["b", "c"], ["d"], [True])


async def test_the_core_of_a_standby_hears_nothing() -> None:
    """Neither of objects, nor of deletions of those that its copy does not have."""
    held, seen, lost, states = HeldBack(), [], [], []
    stream: Stream[str] = Stream(
        "x",
        seen.append,
        lost.append,
        lambda s: states.append((s.is_synced, s.is_copied)),
        float,
        first=held,
        stands_by=True,
    )
    part = stream.part()
    part.upserted("a")
    part.synced(relist=False)
    part.gone("unknown", "", "unknown", None)
    await asyncio.sleep(0)
    assert (held.objs, held.was_fed, seen, lost, states) == (["a"], False, [], [], [(False, True)])

    stream.lead()
    assert not stream.is_copied
    held.going.set()
    for _ in range(3):
        await asyncio.sleep(0)
    part.gone("a", "", "a", None)
    assert (stream.is_synced, lost) == (False, ["a"])
    part.synced(relist=False)
    assert (stream.is_synced, states[1:]) == (True, [(True, True)])


async def test_what_was_refused_to_a_standby_is_said_anew_when_it_leads() -> None:
    errors: list[str] = []
    stream: Stream[str] = Stream(
        "x",
        lambda _: None,
        lambda _: None,
        lambda s: errors.append(s.error),
        float,
        first=HeldBack(),
        stands_by=True,
    )
    part = stream.part()
    part.failing(ApiError(403, "Forbidden", "no right"))
    assert stream.is_copied, "it cannot have more"
    stream.lead()
    assert (stream.error, stream.is_absent) == ("", False)
    part.failing(ApiError(403, "Forbidden", "no right"))
    assert errors == ["403 Forbidden: no right"] * 2


class Health:
    """A stream in one part, and what it said of itself: (synced, error) at each change."""

    def __init__(self) -> None:
        self.now = 100.0
        self.changes: list[tuple[bool, str]] = []
        self.stream: Stream[str] = Stream(
            "jobs", lambda _: None, lambda _: None, self._changed, lambda: self.now
        )
        self.part = self.stream.part()

    def _changed(self, stream: Stream[str]) -> None:
        self.changes.append((stream.is_synced, stream.error))

    def works(self) -> None:
        """A list, and the watch that follows it."""
        self.part.alive(self.now)
        self.part.synced(relist=False)
        self.part.alive(self.now)


def test_a_stream_that_cannot_be_listed_says_why_until_it_can() -> None:
    health = Health()
    health.part.failing(ApiError(403, "Forbidden", "no right to list"))
    health.part.failing(ApiError(403, "Forbidden", "no right to list"))
    health.works()

    error = "403 Forbidden: no right to list"
    assert health.changes == [(False, error), (True, error), (True, "")]


@pytest.mark.parametrize(
    ("status", "error"),
    [(403, "403 Forbidden: no"), (404, "it is not installed"), (405, "405 MethodNotAllowed: no")],
)
def test_a_stream_that_is_refused_later_cannot_be_believed_until_it_is_listed_again(
    status: int, error: str
) -> None:
    health = Health()
    health.works()
    health.part.failing(ApiError(status, message="no"))
    assert not health.stream.is_watched
    assert health.stream.is_synced
    health.part.alive(101.0)  # a sign of life is no list
    assert health.stream.error == error
    assert health.stream.is_absent is (status == 404)
    health.works()
    assert health.stream.is_watched
    assert not health.stream.is_absent
    assert len(health.changes) == 3


def test_a_stream_that_may_list_but_not_watch_is_not_trusted_in_between(
    caplog: pytest.LogCaptureFixture,
) -> None:
    health = Health()
    for _ in range(3):
        health.part.alive(health.now)
        health.part.synced(relist=False)
        health.part.failing(ApiError(403, "Forbidden", "may not watch"))
    assert health.changes == [(True, ""), (True, "403 Forbidden: may not watch")]
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "error",
    [ApiError(503), ApiError(401), ApiError(410), ConnectionLost("reset"), RequestTimeout("slow")],
    ids=str,
)
def test_other_failures_count_when_they_last_longer_than_a_silence(error: KubeError) -> None:
    health = Health()
    health.works()
    health.now += 10 * SILENCE_S  # nothing happened, without bookmarks
    health.part.failing(error)
    health.now += SILENCE_S
    health.part.failing(error)
    assert health.stream.is_watched
    health.now += 1.0
    health.part.failing(error)
    assert health.stream.error == str(error)
    health.part.alive(health.now)  # a watch that goes on where it was
    assert health.stream.is_watched
    assert len(health.changes) == 3


def test_a_stream_is_silent_when_one_part_is() -> None:
    stream: Stream[str] = Stream("x", id, id, id, lambda: 0.0)
    one, two = stream.part(), stream.part()
    one.alive(100.0)
    assert stream.is_silent(100.0)
    two.alive(100.0)
    assert not stream.is_silent(100.0 + SILENCE_S)
    assert stream.is_silent(101.0 + SILENCE_S)


def _pod(uid: str = "p") -> Pod:
    return Pod(uid, "ns", "name", "", PodPhase.PENDING, (), attempt=1)


REPLICA_SET = Owner("rs", "apps", "v1", "ReplicaSet", "rs")
DEPLOYMENT = Owner("deploy", "apps", "v1", "Deployment", "d")
APPWRAPPER = Owner("aw", "workload.codeflare.dev", "v1beta1", "AppWrapper", "aw")


def test_the_chain_of_controllers_ends_at_the_appwrapper() -> None:
    owners = Owners()
    assert owners.appwrapper(REPLICA_SET) == Missing(REPLICA_SET)
    owners.learn("rs", DEPLOYMENT)
    assert owners.appwrapper(REPLICA_SET) == Missing(DEPLOYMENT)
    owners.learn("deploy", APPWRAPPER)
    assert owners.appwrapper(REPLICA_SET) == End("aw", "deploy")
    assert owners.appwrapper(APPWRAPPER) == End("aw", "")
    assert owners.appwrapper(None) == FOREIGN


def test_a_chain_that_ends_elsewhere_or_nowhere_belongs_to_nobody() -> None:
    owners = Owners()
    owners.learn("rs", None)
    assert owners.appwrapper(REPLICA_SET) == FOREIGN
    owners.learn("rs", REPLICA_SET)  # a loop
    assert owners.appwrapper(REPLICA_SET) == FOREIGN
    assert CHAIN_MAX > 3


def test_pods_wait_for_a_missing_link_and_are_told_once() -> None:
    owners = Owners()
    assert owners.wait(REPLICA_SET, _pod("p1"), REPLICA_SET)
    assert not owners.wait(REPLICA_SET, _pod("p2"), REPLICA_SET)
    owners.forget_pod("p1")
    assert owners.is_awaited("rs")
    assert [pod.uid for pod, _ in owners.learn("rs", DEPLOYMENT)] == ["p2"]
    assert owners.learn("rs", DEPLOYMENT) == []
    assert not owners.is_awaited("rs")


def test_a_link_that_was_asked_for_is_kept_while_a_pod_needs_it() -> None:
    """No watch tells when it ends."""
    owners = Owners()
    owners.learn("deploy", APPWRAPPER)
    for pod in ("p1", "p2"):
        owners.wait(REPLICA_SET, _pod(pod), REPLICA_SET)
    for pod, controller in owners.learn("rs", DEPLOYMENT, watched=False):
        owners.attributed(pod.uid, controller)
    owners.forget_pod("p1")
    assert owners.appwrapper(REPLICA_SET) == End("aw", "deploy")
    owners.forget_pod("p2")
    assert owners.appwrapper(REPLICA_SET) == Missing(REPLICA_SET)
    owners.learn("rs", DEPLOYMENT, watched=False)  # no pod waits for this answer any more
    assert owners.appwrapper(REPLICA_SET) == Missing(REPLICA_SET)


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param({}, id="no metadata"),
        pytest.param({"metadata": {"ownerReferences": None}}, id="null"),
        pytest.param({"metadata": {"ownerReferences": ["x"]}}, id="garbage"),
        pytest.param({"metadata": {"ownerReferences": [{"uid": "u"}]}}, id="not a controller"),
    ],
)
def test_objects_without_a_controller(obj: dict) -> None:
    assert controller_of(obj) is None


def test_a_watch_that_goes_on_failing_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    health = Health()
    part = health.part
    part.failing(ApiError(403, message="not yet"))
    part.failing(ApiError(403, message="not yet"))
    health.works()
    part.failing(ApiError(503, message="once"))
    part.alive(101.0)
    for _ in range(3):
        part.failing(ApiError(403, message="no right"))
    part.alive(101.0)
    health.works()
    part.alive(101.0)
    for _ in range(3):
        part.failing(ApiError(410, message="too old"))

    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("WARNING", "watch fails kind=jobs error=403 Forbidden: not yet"),
        ("INFO", "watch works again kind=jobs"),
        ("WARNING", "watch fails kind=jobs error=403 Forbidden: no right"),
        ("INFO", "watch works again kind=jobs"),
        ("WARNING", "watch fails kind=jobs error=410 Gone: too old"),
    ]
