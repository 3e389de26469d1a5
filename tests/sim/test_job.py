"""Jobs: counting, retries, indexes, suspension, and how they end."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from mcad.sim.controllers.jobpods import parse_indexes, show_indexes
from mcad.sim.controllers.kubelet import Kubelet
from mcad.sim.times import parse_us
from tests.sim.worlds import World, notes_of, pod, virtually, world

TRACKING = "batch.kubernetes.io/job-tracking"


def _job(w: World, *command: str, policy: str = "Never", **spec: Any) -> None:
    of_pod = pod("any", command=[*command], restartPolicy=policy)["spec"]
    w.make("Job", "sum", template={"spec": of_pod}, **spec)


def _counts(w: World) -> dict[str, Any]:
    status = w.get("Job", "sum")["status"]
    return {key: number for key, number in status.items() if isinstance(number, int)}


def _conditions(w: World) -> list[tuple[str, str]]:
    """Types and reasons in the order in which watchers have seen them come."""
    seen = [
        (one["type"], one["reason"])
        for change in w.history("Job")
        for one in change.obj["status"].get("conditions") or ()
    ]
    return list(dict.fromkeys(seen))


@virtually
async def test_a_pod_that_succeeds_completes_the_job() -> None:
    async with world("n1") as w:
        _job(w, "sleep", "5")
        await w.settle(0.5)
        (made,) = w.all("Pod")
        assert made["metadata"]["finalizers"] == [TRACKING]
        assert made["metadata"]["generateName"] == "sum-"
        assert _counts(w) == {"active": 1, "ready": 0, "terminating": 0}
        await w.settle(3)
        assert _counts(w)["ready"] == 1
        await w.settle()
        assert _counts(w) == {"succeeded": 1, "ready": 0, "terminating": 0}
        ends = [(name, "CompletionsReached") for name in ("SuccessCriteriaMet", "Complete")]
        assert _conditions(w) == ends
        status = w.get("Job", "sum")["status"]
        assert status["completionTime"] > status["startTime"]
        assert not w.all("Pod")[0]["metadata"].get("finalizers")
        assert w.reasons("sum") == ["SuccessfulCreate", "Completed"]


@virtually
async def test_failures_back_off_until_the_limit() -> None:
    async with world("n1") as w:
        _job(w, "false", backoffLimit=2)
        await w.settle(60)
        made = sorted(parse_us(one["metadata"]["creationTimestamp"]) for one in w.all("Pod"))
        waits_s = [(after - before) // 1_000_000 for before, after in pairwise(made)]
        assert waits_s == [12, 22], "two for the pod and its count, and then 10 and 20"
        ends = [(name, "BackoffLimitExceeded") for name in ("FailureTarget", "Failed")]
        assert _conditions(w) == ends
        assert "completionTime" not in w.get("Job", "sum")["status"]
        assert _counts(w)["failed"] == 3
        assert w.reasons("sum")[-1] == "BackoffLimitExceeded"


@virtually
async def test_restarts_count_with_on_failure() -> None:
    async with world("n1") as w:
        _job(w, "false", policy="OnFailure", backoffLimit=2)
        await w.settle(60)
        assert _conditions(w)[-1] == ("Failed", "BackoffLimitExceeded")
        assert _counts(w)["failed"] == 1


@virtually
async def test_the_deadline_stops_what_runs_and_waits_for_it() -> None:
    async with world("n1") as w:
        _job(w, "sleep", "99", parallelism=2, completions=2, activeDeadlineSeconds=30)
        await w.settle(29.5)
        assert len(w.live()) == 2
        await w.settle(1)
        assert _conditions(w) == [("FailureTarget", "DeadlineExceeded")], "its pods are there yet"
        assert _counts(w)["terminating"] == 2
        await w.settle()
        assert _conditions(w)[1:] == [("Failed", "DeadlineExceeded")]
        assert (_counts(w)["failed"], _counts(w)["terminating"]) == (2, 0)
        assert w.reasons("sum")[-1] == "DeadlineExceeded"


@virtually
async def test_a_pod_that_is_deleted_counts_as_failed_before_it_has_ended() -> None:
    async with world("n1") as w:
        _job(w, "sleep", "99")
        await w.settle()
        name = w.all("Pod")[0]["metadata"]["name"]
        w.cluster.fail_node("n1")
        w.delete("Pod", name)
        await w.settle()
        assert w.find("Pod", name) is not None
        assert _counts(w)["failed"] == 1
        w.cluster.recover_node("n1")
        await w.settle(60)
        assert [one["metadata"]["name"] == name for one in w.all("Pod")] == [False]


@virtually
async def test_less_parallelism_ends_pods_that_count_for_nothing() -> None:
    async with world("n1") as w:
        _job(w, "sleep", "99", parallelism=3, completions=3)
        await w.settle()
        w.respec("Job", "sum", parallelism=1)
        await w.settle()
        assert len(w.all("Pod")) == _counts(w)["active"] == 1
        assert "failed" not in _counts(w)


@virtually
async def test_pods_of_a_job_that_is_gone_are_let_go() -> None:
    async with world("n1") as w:
        _job(w, "sleep", "99")
        await w.settle()
        w.delete("Job", "sum", propagation="Background")
        await w.settle()
        assert w.all("Pod") == []


@virtually
async def test_another_controller_may_manage_it() -> None:
    async with world("n1") as w:
        _job(w, "true", managedBy="example.com/other")
        await w.settle()
        assert w.all("Pod") == []
        assert w.get("Job", "sum")["status"] == {}


def _with_index(w: World, index: int) -> list[Any]:
    name = "batch.kubernetes.io/job-completion-index"
    return [one for one in w.all("Pod") if one["metadata"]["annotations"][name] == str(index)]


@virtually
async def test_an_index_that_fails_too_often_leaves_the_others_alone() -> None:
    async with world("n1") as w:
        kubelet = w.cluster.controllers["Kubelet"]
        assert isinstance(kubelet, Kubelet)
        fails = notes_of(fail_after="3s")
        kubelet.notes = lambda pod: fails if "sum-0-" in pod["metadata"]["name"] else {}
        indexed = {"completionMode": "Indexed", "backoffLimitPerIndex": 1}
        _job(w, "sleep", "60", parallelism=3, completions=3, **indexed)
        await w.settle(12)
        assert (len(_with_index(w, 0)), w.get("Job", "sum")["status"]["failedIndexes"]) == (1, "")
        await w.settle(20)
        assert len(_with_index(w, 0)) == 2, "10 s after its first failure it is tried again"
        assert w.get("Job", "sum")["status"]["failedIndexes"] == "0"
        assert len(w.live()) == 4
        assert _conditions(w) == []
        await w.settle(60)
        assert w.get("Job", "sum")["status"]["completedIndexes"] == "1,2"
        ends = [(name, "FailedIndexes") for name in ("FailureTarget", "Failed")]
        assert _conditions(w) == ends


@virtually
async def test_too_many_failed_indexes_end_the_job() -> None:
    async with world("n1") as w:
        limits = {"backoffLimitPerIndex": 0, "maxFailedIndexes": 1}
        _job(w, "false", parallelism=1, completions=4, completionMode="Indexed", **limits)
        await w.settle(60)
        assert _conditions(w)[-1] == ("Failed", "MaxFailedIndexesExceeded")
        assert w.get("Job", "sum")["status"]["failedIndexes"] == "0,1"


@virtually
async def test_a_finished_job_is_deleted_when_its_time_is_over() -> None:
    async with world("n1") as w:
        _job(w, "sleep", "5", ttlSecondsAfterFinished=30)
        await w.settle(35)
        assert _conditions(w)[-1] == ("Complete", "CompletionsReached")
        await w.settle(10)
        assert (w.find("Job", "sum"), w.all("Pod")) == (None, [])


@pytest.mark.parametrize(
    ("text", "numbers"), [("", []), ("1,3-5,7", [1, 3, 4, 5, 7]), ("0,1", [0, 1]), ("8-9,10", None)]
)
def test_indexes_are_read_and_written(text: str, numbers: list[int] | None) -> None:
    found = parse_indexes(text)
    if numbers is None:  # three in a row have a dash, two have none
        assert show_indexes(found) == "8-10"
    else:
        assert sorted(found) == numbers
        assert show_indexes(found) == text
