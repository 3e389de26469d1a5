"""CronJobs: schedules, concurrency, history."""

import asyncio
from datetime import datetime

import pytest

from mcad.sim.clock import START_US
from mcad.sim.controllers import cron
from mcad.sim.controllers.cronjob import CronJobController
from mcad.sim.controllers.index import OwnedIndex
from mcad.sim.controllers.job import JobController
from tests.sim.workloads import in_a_world, template


def _us(text):
    return round(datetime.fromisoformat(text).timestamp() * 1e6)


def _cronjob(world, schedule="*/10 * * * *", **spec):
    jobs = OwnedIndex(world.registry, world.kind("Job"))
    world.add(CronJobController(world.registry, jobs), JobController(world.registry, world.pods))
    of_jobs = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"template": template(restartPolicy="Never")},
    }
    return world.create("CronJob", "tick", {"schedule": schedule, "jobTemplate": of_jobs} | spec)


def _finish_all(world, phase="Succeeded"):
    for pod in world.all("Pod"):
        if pod["status"]["phase"] == "Pending":
            world.set_phase(pod["metadata"]["name"], phase, ready=False, code=phase == "Failed")


async def _minutes(world, count, phase="Succeeded"):
    for _ in range(count):
        await asyncio.sleep(60)
        if phase:
            _finish_all(world, phase)


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ("* * * * *", "2027-01-15T08:00:00+00:00", "2027-01-15T08:01:00+00:00"),
        ("*/15 * * * *", "2027-01-15T08:44:59+00:00", "2027-01-15T08:45:00+00:00"),
        ("5,10-12 3 * * *", "2027-01-15T03:10:00+00:00", "2027-01-15T03:11:00+00:00"),
        ("0 0 29 feb ?", "2027-01-15T00:00:00+00:00", "2028-02-29T00:00:00+00:00"),
        ("0 12 13 * fri", "2027-01-16T00:00:00+00:00", "2027-01-22T12:00:00+00:00"),
        ("0 12 */2 * MON", "2027-01-15T13:00:00+00:00", "2027-01-17T12:00:00+00:00"),
        ("10/20 * * * *", "2027-01-15T08:10:00+00:00", "2027-01-15T08:30:00+00:00"),
        ("@hourly", "2027-12-31T23:30:00+00:00", "2028-01-01T00:00:00+00:00"),
        ("@every 1h30m", "2027-01-15T08:00:00.5+00:00", "2027-01-15T09:30:00+00:00"),
        ("TZ=Europe/Berlin 0 9 * * *", "2027-07-01T00:00:00+00:00", "2027-07-01T07:00:00+00:00"),
        ("TZ=Europe/Berlin * * * * *", "2027-10-31T00:59:00+00:00", "2027-10-31T01:00:00+00:00"),
        # 02:30 comes twice on the day on which they go back.
        ("TZ=Europe/Berlin 30 2 * * *", "2027-10-31T00:30:00+00:00", "2027-10-31T01:30:00+00:00"),
        # 02:30 does not exist on the day on which the clocks go forward.
        ("TZ=Europe/Berlin 30 2 * * *", "2027-03-27T12:00:00+00:00", "2027-03-29T00:30:00+00:00"),
    ],
)
def test_the_next_time(schedule, after, expected):
    assert cron.parse(schedule).next_us(_us(after)) == _us(expected)


def test_a_day_that_never_comes():
    assert cron.parse("0 0 31 2 *").next_us(START_US) is None


@pytest.mark.parametrize(
    "schedule",
    ["", "* * * *", "60 * * * *", "* * * * 7", "5-1 * * * *", "x * * * *", "*/0 * * * *"],
)
def test_schedules_that_are_none(schedule):
    with pytest.raises(ValueError, match=r"."):
        cron.parse(schedule)


def test_jobs_are_created_and_old_ones_deleted():
    async def scenario(world):
        _cronjob(world)
        await _minutes(world, 11)
        (job,) = world.all("Job")
        minutes = (START_US // 60_000_000 // 10 + 1) * 10
        assert job["metadata"]["name"] == f"tick-{minutes}"
        assert job["metadata"]["labels"] == {"a": "b"}
        assert job["metadata"]["annotations"] == {
            "batch.kubernetes.io/cronjob-scheduled-timestamp": "2027-01-15T08:10:00Z"
        }
        assert job["spec"]["backoffLimit"] == 6
        (reference,) = job["metadata"]["ownerReferences"]
        assert (reference["kind"], reference["controller"]) == ("CronJob", True)
        await _minutes(world, 50)
        status = world.get("CronJob", "tick")["status"]
        assert status["lastScheduleTime"] == "2027-01-15T09:00:00Z"
        assert status["lastSuccessfulTime"] > "2027-01-15T08:50:00Z"
        names = [job["metadata"]["name"] for job in world.all("Job")]
        assert names == [f"tick-{minutes + more}" for more in (20, 30, 40, 50)]
        reasons = set(world.reasons("tick"))
        assert reasons == {"SuccessfulCreate", "SawCompletedJob", "SuccessfulDelete"}

    in_a_world(scenario)


@pytest.mark.parametrize(
    ("policy", "jobs", "active"), [("Allow", 3, 3), ("Forbid", 1, 1), ("Replace", 1, 1)]
)
def test_concurrency(policy, jobs, active):
    async def scenario(world):
        _cronjob(world, concurrencyPolicy=policy)
        await _minutes(world, 31, None)
        assert len(world.all("Job")) == jobs
        assert len(world.get("CronJob", "tick")["status"]["active"]) == active
        assert ("JobAlreadyActive" in world.reasons("tick")) is (policy == "Forbid")

    in_a_world(scenario)


def test_a_suspended_one_catches_up_once():
    async def scenario(world):
        _cronjob(world, suspend=True)
        await _minutes(world, 35)
        assert not world.all("Job")
        world.change("CronJob", "tick", suspend=False)
        await asyncio.sleep(5)
        (job,) = world.all("Job")
        scheduled = job["metadata"]["annotations"].popitem()[1]
        assert scheduled == "2027-01-15T08:30:00Z"

    in_a_world(scenario)


def test_too_late_is_missed():
    async def scenario(world):
        _cronjob(world, "0 * * * *", suspend=True, startingDeadlineSeconds=600)
        await _minutes(world, 75)
        world.change("CronJob", "tick", suspend=False)
        await asyncio.sleep(5)
        assert not world.all("Job")
        await _minutes(world, 50)
        assert len(world.all("Job")) == 1

    in_a_world(scenario)


def test_another_schedule_waits_for_its_first_time():
    async def scenario(world):
        _cronjob(world, "0 0 1 1 *")
        await _minutes(world, 3)
        world.change("CronJob", "tick", schedule="*/5 * * * *")
        await asyncio.sleep(60)
        assert not world.all("Job")
        await _minutes(world, 2)
        assert len(world.all("Job")) == 1

    in_a_world(scenario)


def test_a_schedule_that_is_none_is_told():
    async def scenario(world):
        _cronjob(world, "every day")
        await asyncio.sleep(5)
        assert world.reasons("tick") == ["UnparseableSchedule"]
        world.change("CronJob", "tick", schedule="0 0 * * *", timeZone="Mars/Olympus")
        await asyncio.sleep(5)
        assert world.reasons("tick")[-1] == "UnknownTimeZone"

    in_a_world(scenario)


def test_a_job_that_went_missing_is_no_longer_active():
    async def scenario(world):
        _cronjob(world)
        await _minutes(world, 11, None)
        world.delete("Job", world.all("Job")[0]["metadata"]["name"])
        await asyncio.sleep(5)
        assert "active" not in world.get("CronJob", "tick")["status"]
        assert "MissingJob" in world.reasons("tick")

    in_a_world(scenario)
