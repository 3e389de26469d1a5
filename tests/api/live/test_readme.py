"""The states of the public cases ("What a live object says, and what its controller does")."""

from __future__ import annotations

import pytest

from tests.api.builders import Map, job
from tests.api.live.states import State, conditions, read, wants
from tests.api.test_podsets import group, jobset, kind, kubeflow, ray_job, ray_spec

_INDEXED: Map = {"parallelism": 4, "completions": 4, "completionMode": "Indexed"}
_FOUR = job(parallelism=4, completions=4)
_EACH = job(**_INDEXED, backoffLimitPerIndex=0)
_CLUSTER = kind("RayCluster", **ray_spec(group(3)))
_RAY_JOB = ray_job(3)
_OVER = {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}
_SUSPEND = {"suspend": True}

CASES: dict[str, State] = {
    "Job, failedIndexes 2": State(_EACH, {"failedIndexes": "2"}, [3]),
    "Job, failedIndexes 0,2, succeeded 1": State(
        _EACH, {"failedIndexes": "0,2", "succeeded": 1}, [1]
    ),
    "Job with suspend": State(_FOUR, {}, [0], spec=_SUSPEND),
    "Job with FailureTarget": State(_FOUR, conditions("FailureTarget"), [0]),
    "Job with SuccessCriteriaMet": State(_FOUR, conditions("SuccessCriteriaMet"), [0]),
    "JobSet with suspend": State(kind("JobSet", **jobset(("a", 4, {}))), {}, [0], spec=_SUSPEND),
    "RayCluster with suspend": State(_CLUSTER, {}, [0, 0], spec=_SUSPEND),
    "RayCluster, group with suspend": State(
        _CLUSTER, {}, [1, 0], spec={"workerGroupSpecs": [group(3, suspend=True)]}
    ),
    "RayJob, suspended": State(
        _RAY_JOB, {"jobDeploymentStatus": "Suspended"}, [0, 0, 0], spec=_SUSPEND
    ),
    "RayJob that retries": State(
        _RAY_JOB, {"jobDeploymentStatus": "Retrying", "jobStatus": "FAILED"}, [1, 3, 1]
    ),
    "RayJob finished, its cluster kept": State(
        _RAY_JOB, _OVER, [1, 3, 0], spec={"shutdownAfterJobFinishes": False}
    ),
    "PyTorchJob with suspend": State(
        kubeflow("PyTorchJob", "pytorch", Worker=group(4)),
        {},
        [0],
        spec={"runPolicy": {"suspend": True}},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_pods_that_the_controller_has_or_makes_at_this_moment(case: State) -> None:
    assert read(case).wants == wants(case.pods)
