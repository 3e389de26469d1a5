"""The shapes are those of Kueue's harness, and the generators count what they see."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import kueue_load, kueue_scale_up, kueue_stream
from benchmarks.dispatch_rate import is_alive
from benchmarks.kueue_arms import EDITS, JOB, Kueue, KueueJobs, Mcad, edited, queues, quotas
from benchmarks.kueue_load import (
    BASELINE,
    LARGE_SCALE,
    NOMINAL,
    Class,
    Course,
    Load,
    Shape,
    Workload,
    record,
)
from benchmarks.kueue_queued import QUEUE, resize
from mcad.kube.errors import ApiError, ConnectionLost

Json = dict[str, Any]
LARGE = Class("large", 1, 0.0, 20, 1.0, 200)
THREE = Shape("tiny", 1, 1, (Class("small", 3, 0.0, 1, 0.01, 50),))


def workloads(shape: Shape) -> int:
    return sum(one.count for one in shape.classes) * shape.cohorts * shape.queues


def test_the_shapes_have_as_many_workloads_as_kueues() -> None:
    assert (workloads(BASELINE), BASELINE.nominal) == (15_000, 600)
    assert (workloads(LARGE_SCALE), LARGE_SCALE.nominal) == (50_000, 20_000)
    assert len(set(BASELINE.leaves())) == 30


def test_a_cohort_may_use_what_its_queues_have() -> None:
    root, cohorts, *leaves = quotas(BASELINE)
    assert len(leaves) == BASELINE.cohorts
    shares = [one["quotas"] for one in cohorts["spec"]["children"]]
    assert shares == [{"requests": {"cpu": "120"}, "hardLimit": True}] * 5
    assert root["spec"]["children"][0]["quotas"]["requests"] == {"cpu": "600"}
    made = queues(BASELINE, "StrictFIFO")
    kinds = [one["kind"] for one in made]
    assert kinds.count("ClusterQueue") == kinds.count("LocalQueue") == 30
    specs = [one["spec"] for one in made if one["kind"] == "ClusterQueue"]
    assert {one["queueingStrategy"] for one in specs} == {"StrictFIFO"}


def test_the_flags_replace_the_two_constants_and_add_a_controller_of_jobs() -> None:
    changed = edited("\n".join(EDITS))
    assert "float32(*qps)" in changed
    assert "= 50\n" not in changed
    assert "jobs.SetupWithManager(mgr)" in changed
    with pytest.raises(RuntimeError, match="has changed"):
        edited("")


def test_a_job_of_kueue_is_the_item_of_the_dispatcher_but_suspended() -> None:
    for of in BASELINE.classes:
        work = Workload(of, "q", "small-0")
        resource, created = KueueJobs().written(work)
        assert resource is JOB
        assert created["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] == f"p{of.priority}"
        item = Mcad().written(work)[1]["spec"]["resources"]["GenericItems"][0]["generictemplate"]
        assert not KueueJobs().seen("ADDED", created).admitted
        assert created["spec"].pop("runPolicy") == {"suspend": True}
        assert KueueJobs().seen("MODIFIED", created).admitted
        assert item["spec"] == created["spec"]


def test_an_eviction_shows_as_a_workload_that_is_admitted_no_longer() -> None:
    admitted = {"type": "Admitted", "status": "True"}
    evicted = {"type": "Evicted", "status": "True"}
    metadata = {"namespace": "q", "name": "large-0"}
    for conditions, expected in (([], False), ([admitted], True), ([admitted, evicted], False)):
        obj = {"metadata": metadata, "status": {"conditions": conditions}}
        assert Kueue().seen("MODIFIED", obj).admitted is expected
    item: Json = {"metadata": metadata}
    assert Mcad().seen("ADDED", item).admitted
    assert not Mcad().seen("DELETED", item).admitted
    assert not Mcad().seen("MODIFIED", {"metadata": metadata | {"deletionTimestamp": "x"}}).admitted


def test_use_counts_every_time_that_a_workload_was_admitted() -> None:
    course = Course(Workload(LARGE, "q", "large-0"), created=10.0)
    course.first = course.admitted = 12.0
    course.ends(12.5)
    course.evictions = 1
    course.admitted = 19.0
    course.ends(20.0)
    course.finished = 20.0
    found = record(Shape("tiny", 1, 1, (LARGE,)), {course.work.key: course})
    assert found.wall_s == 10.0
    assert found.use == pytest.approx(1.5 * 20 / (20 * 10))
    assert (found.times["large"].p50, found.times["large"].evictions) == (2.0, 1)


class Table:
    """As much of a client as the generators ask for; a gang is admitted after ``gang_s``, and
    everything else at once."""

    def __init__(self, gang_s: float = 0.0) -> None:
        self.finished: list[tuple[str, str]] = []
        self._gang_s = gang_s
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()

    async def list_all(self, _: object) -> tuple[list[Json], str]:
        return [], "1"

    async def create(self, _: object, namespace: str, body: Json) -> Json:
        name = body["metadata"]["name"]
        head = f'{{"type": "ADDED", "object": {{"metadata": {{"namespace": "{namespace}", '
        tail = f'"name": "{name}", "uid": "u", "resourceVersion": "2"}}}}}}'
        delay = self._gang_s if name == "gang" else 0.0
        line = (head + tail).encode()
        asyncio.get_running_loop().call_later(delay, self._lines.put_nowait, line)
        return body

    async def watch(self, resource: object, _: str) -> Any:
        assert resource is JOB
        while True:
            yield await self._lines.get()

    async def patch_status(self, _: object, namespace: str, name: str, __: Json) -> Json:
        self.finished.append((namespace, name))
        return {}


async def test_the_generator_finishes_what_it_has_created() -> None:
    shape = THREE._replace(cohorts=2, queues=2)
    table: Any = Table()
    running = Load(shape, Mcad(), table)
    await running.run()
    assert len(set(table.finished)) == 12
    assert 0 < record(shape, running.courses).use < 1


async def test_a_run_whose_arm_has_ended_is_given_up() -> None:
    table: Any = Table()
    slow = THREE._replace(classes=(THREE.classes[0]._replace(count=1, every_s=60.0),))
    with pytest.raises(SystemExit, match="the arm's process ended with 1 workloads left"):
        await Load(slow, Mcad(), table).run(lambda: False)


async def test_a_run_ends_with_the_first_request_that_failed() -> None:
    table: Any = Table()
    table.create = answers(ApiError(403, "Forbidden", "no"))
    with pytest.raises(ApiError, match="no"):
        await Load(THREE, Mcad(), table).run()


async def test_a_request_without_an_answer_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kueue_load, "LOOK_S", 0.01)
    table: Any = Table()
    lost = [ConnectionLost("gone"), ApiError(504, "Timeout"), ApiError(409, "AlreadyExists")]
    table.create = answers(*lost, then=table.create)
    work = asyncio.ensure_future(Load(THREE, Mcad(), table).run())
    # The first one exists, though no answer said so: the watch of this table does not show it.
    async with asyncio.timeout(30):
        while len(table.finished) < 2:
            await asyncio.sleep(0.01)
    work.cancel()


def answers(*errors: Exception, then: Any = None) -> Any:
    """A request that has these answers, one after the other."""
    left = list(errors)

    async def request(*args: Any) -> Any:
        if left:
            raise left.pop(0) if then else left[0]
        return await then(*args)

    return request


def test_a_process_that_ended_is_not_alive_though_none_has_waited_for_it() -> None:
    assert is_alive(os.getpid())
    with subprocess.Popen(["true"]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        assert not is_alive(ended.pid)
    assert not is_alive(ended.pid)


@pytest.mark.parametrize("arm", [Kueue(), Mcad()])
def test_a_queued_workload_has_the_size_that_it_is_given(arm: Kueue | Mcad) -> None:
    small, large = (arm.written(Workload(LARGE, QUEUE, "a"))[1] for _ in range(2))
    resize(large, "10001m")
    assert str(small).count("'cpu': '20'") == 1
    assert str(large) == str(small).replace("'cpu': '20'", "'cpu': '10001m'")


def test_more_arrives_in_a_stream_than_can_run() -> None:
    small, gang = kueue_stream.SMALL, kueue_stream.GANG
    assert small.cpu * small.runs_s / small.every_s == pytest.approx(1.2 * NOMINAL)
    assert (gang.cpu, gang.priority) == (NOMINAL, small.priority)


@pytest.mark.parametrize("gang_s", [0.2, 9.0])
async def test_a_gang_in_a_stream_is_watched_until_it_is_admitted(
    gang_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kueue_stream, "LOOK_S", 0.01)
    small = kueue_stream.SMALL._replace(every_s=0.02, count=100, runs_s=0.1)
    monkeypatch.setattr(kueue_stream, "SMALL", small)
    table: Any = Table(gang_s)
    stream = kueue_stream.Stream(kueue_stream.SHAPE._replace(classes=(small,)), Mcad(), table)
    running = asyncio.ensure_future(stream.run())
    await asyncio.sleep(0.2)
    found = await stream.gang(0.5)
    running.cancel()
    assert (found.gang_s is None) is (gang_s > 0.5)
    assert ("not admitted" in str(found)) is (gang_s > 0.5)
    assert found.use > 0
    assert 0 <= found.small_p50_s <= found.small_most_s


def test_a_gang_of_the_scale_up_is_the_same_for_both() -> None:
    for shape in (kueue_scale_up.SHAPES[0], kueue_scale_up.SHAPES[7]):
        plain = kueue_scale_up.written("gang", shape)
        queued = kueue_scale_up.Kueue().of(kueue_scale_up.written("gang", shape))
        assert queued["spec"].pop("suspend")
        assert queued["spec"] == plain["spec"]
        text = str(plain)
        assert text.count("'cpu'") == len(shape)
        assert text.count("'nvidia.com/gpu': '8'") == 2 * sum(cpu == "gpu" for _, cpu in shape)


def test_a_gang_has_started_when_its_last_pod_is_bound() -> None:
    course = kueue_scale_up.Course({"gang": ((2, "1"),)}, created={"gang": time.monotonic()})
    pods = [_pod("a", "node"), _pod("b", "")]
    answers = {"/api/v1/nodes": [], "/api/v1/namespaces/default/pods": pods}
    plane: Any = SimpleNamespace(request=lambda _, path: (200, {"items": answers[path]}))
    plane.wait_for = lambda predicate, **_: predicate()
    course.look(plane)
    assert not course.started
    course.seen["b"] -= 6.0
    pods[1] = _pod("b", "node")
    course.look(plane)
    assert course.started.keys() == {"gang"}
    assert (course.late, len(course.seen)) == (1, 2)


def _pod(uid: str, node: str) -> Json:
    metadata = {"uid": uid, "labels": {kueue_scale_up.GANG: "gang"}}
    return {"metadata": metadata, "spec": {"nodeName": node} if node else {}}


def test_the_go_file_is_called_once() -> None:
    changed = edited("\n".join(EDITS), kueue_scale_up.KUEUE_EDITS)
    assert changed.count("setupScaleUp(ctx, mgr, cCache, queues)") == 1
    assert "func setupScaleUp(" in kueue_scale_up.GO.read_text()
