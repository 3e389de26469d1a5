"""Jobs: counting, retries, indexes, suspension, and how they end."""

import asyncio

import pytest

from mcad.sim.controllers.job import JobController
from mcad.sim.controllers.jobpods import JobPodReleaser, parse_indexes, show_indexes
from tests.sim.workloads import condition, in_a_world, template

UID = "batch.kubernetes.io/controller-uid"
INDEX = "batch.kubernetes.io/job-completion-index"
TRACKING = "batch.kubernetes.io/job-tracking"


def _job(world, **spec):
    world.add(
        JobController(world.registry, world.pods),
        JobPodReleaser(world.registry, world.pods),
    )
    return world.create("Job", "sum", {"template": template(restartPolicy="Never")} | spec)


def _pods(world, phase=None):
    return [
        pod
        for pod in world.all("Pod")
        if (phase is None or pod["status"]["phase"] == phase)
        and not pod["metadata"].get("deletionTimestamp")
    ]


def _finish(world, pod, phase="Succeeded", code=0):
    world.set_phase(pod["metadata"]["name"], phase, ready=False, code=code)


def _indexes(pods):
    return sorted(int(pod["metadata"]["annotations"][INDEX]) for pod in pods)


def _status(world):
    status = dict(world.get("Job", "sum")["status"])
    for name in ("conditions", "startTime", "completionTime"):
        status.pop(name, None)
    return status


def _seen_conditions(world):
    """The types of conditions in the order in which watchers have seen them come."""
    seen = []
    for change in world.registry.store._shelf(("batch", "jobs")).history:
        for one in change.obj["status"].get("conditions") or ():
            if one["type"] not in seen:
                seen.append(one["type"])
    return seen


def test_a_pod_that_succeeds_completes_the_job():
    async def scenario(world):
        _job(world)
        await asyncio.sleep(0.1)
        (pod,) = _pods(world)
        assert pod["metadata"]["finalizers"] == [TRACKING]
        assert pod["metadata"]["generateName"] == "sum-"
        assert _status(world) == {
            "active": 1,
            "ready": 0,
            "terminating": 0,
            "uncountedTerminatedPods": {},
        }
        world.run_all()
        await world.settle()
        assert _status(world)["ready"] == 1
        _finish(world, pod)
        await world.settle()
        job = world.get("Job", "sum")
        assert _status(world) == {
            "succeeded": 1,
            "ready": 0,
            "terminating": 0,
            "uncountedTerminatedPods": {},
        }
        assert condition(job, "SuccessCriteriaMet") == ("True", "CompletionsReached")
        assert condition(job, "Complete") == ("True", "CompletionsReached")
        assert _seen_conditions(world) == ["SuccessCriteriaMet", "Complete"]
        assert job["status"]["completionTime"] > job["status"]["startTime"]
        assert not _pods(world)[0]["metadata"].get("finalizers")
        assert world.reasons("sum") == ["SuccessfulCreate", "Completed"]

    in_a_world(scenario)


def test_failures_back_off_until_the_limit():
    async def scenario(world):
        _job(world, backoffLimit=2)
        loop, waits = asyncio.get_running_loop(), []
        for failed in range(3):
            before = loop.time()
            while len(world.all("Pod")) <= failed:
                await asyncio.sleep(0.5)
            waits.append(loop.time() - before)
            _finish(world, _pods(world, "Pending")[0], "Failed", 1)
            await asyncio.sleep(1.5)
        await world.settle()
        assert waits[1] == pytest.approx(10, abs=2.1)
        assert waits[2] == pytest.approx(20, abs=2.1)
        job = world.get("Job", "sum")
        assert condition(job, "FailureTarget") == ("True", "BackoffLimitExceeded")
        assert condition(job, "Failed") == ("True", "BackoffLimitExceeded")
        assert _seen_conditions(world) == ["FailureTarget", "Failed"]
        assert "completionTime" not in job["status"]
        assert _status(world)["failed"] == 3
        assert world.reasons("sum")[-1] == "BackoffLimitExceeded"

    in_a_world(scenario)


def test_restarts_count_with_on_failure():
    async def scenario(world):
        _job(world, backoffLimit=2, template=template(restartPolicy="OnFailure"))
        await world.settle()
        world.run_all()
        name = _pods(world)[0]["metadata"]["name"]
        status = [{"name": "main", "restartCount": 2, "state": {}}]
        world.set_status("Pod", name, containerStatuses=status)
        await world.settle(world.reap)
        assert condition(world.get("Job", "sum"), "Failed") == ("True", "BackoffLimitExceeded")
        assert _status(world)["failed"] == 1

    in_a_world(scenario)


def test_the_deadline_stops_what_runs_and_waits_for_it():
    async def scenario(world):
        _job(world, parallelism=2, completions=2, activeDeadlineSeconds=30)
        await world.settle()
        world.run_all()
        await asyncio.sleep(20)
        assert len(_pods(world)) == 2
        await asyncio.sleep(15)
        job = world.get("Job", "sum")
        assert condition(job, "FailureTarget") == ("True", "DeadlineExceeded")
        assert condition(job, "Failed") is None  # its pods are still terminating
        assert _status(world)["terminating"] == 2
        world.reap()
        await world.settle()
        job = world.get("Job", "sum")
        assert condition(job, "Failed") == ("True", "DeadlineExceeded")
        assert (_status(world)["failed"], _status(world)["terminating"]) == (2, 0)
        assert world.reasons("sum")[-1] == "DeadlineExceeded"

    in_a_world(scenario)


def test_a_pod_that_is_deleted_counts_as_failed():
    async def scenario(world):
        _job(world)
        await world.settle()
        world.run_all()
        world.delete("Pod", _pods(world)[0]["metadata"]["name"])
        await asyncio.sleep(2)
        assert _status(world)["failed"] == 1
        world.reap()
        await asyncio.sleep(60)
        assert len(_pods(world)) == 1

    in_a_world(scenario)


def test_less_parallelism_ends_pods_that_count_for_nothing():
    async def scenario(world):
        _job(world, parallelism=3, completions=3)
        await world.settle()
        world.change("Job", "sum", parallelism=1)
        await world.settle()
        assert len(_pods(world)) == 1
        world.reap()
        await world.settle()
        assert _status(world)["active"] == 1
        assert "failed" not in _status(world)

    in_a_world(scenario)


def test_pods_of_a_job_that_is_gone_are_let_go():
    async def scenario(world):
        _job(world)
        await world.settle()
        world.delete("Job", "sum")
        await world.settle()
        assert not world.all("Pod")[0]["metadata"].get("finalizers")

    in_a_world(scenario)


def test_another_controller_may_manage_it():
    async def scenario(world):
        _job(world, managedBy="example.com/other")
        await world.settle()
        assert not _pods(world)
        assert world.get("Job", "sum")["status"] == {}

    in_a_world(scenario)


@pytest.mark.parametrize(
    ("text", "numbers"), [("", []), ("1,3-5,7", [1, 3, 4, 5, 7]), ("0,1", [0, 1]), ("8-9,10", None)]
)
def test_indexes_are_read_and_written(text, numbers):
    found = parse_indexes(text)
    if numbers is None:  # three in a row have a dash, two have none
        assert show_indexes(found) == "8-10"
    else:
        assert sorted(found) == numbers
        assert show_indexes(found) == text
