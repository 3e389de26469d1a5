"""States of training jobs and of SparkApplications.

Sources: github.com/kubeflow/training-operator 1.9.3 (pkg/controller.v1/common/job.go and
pkg/util/status.go), github.com/kubeflow/mpi-operator 0.6.0 (pkg/controller/mpi_job_controller.go),
github.com/kubeflow/trainer 2.0.0 (pkg/controller), github.com/kubeflow/spark-operator 2.4.0
(internal/controller/sparkapplication and pkg/util/sparkapplication.go).
"""

from __future__ import annotations

from typing import Any

from tests.api.builders import Map
from tests.api.live.states import (
    AT,
    AT_MICROS,
    ENDED,
    FAILED,
    PAUSED,
    RETRIES,
    State,
    States,
    condition,
    conditions,
    written_by,
)
from tests.api.test_podsets import group, kind, kubeflow

_SUSPEND: Map = {"runPolicy": {"suspend": True}}
_REPLICAS = "replicaStatuses"


def _training(name: str, role: str) -> States:
    """States of a job of one master and four workers; ``role`` is that of its first pod."""
    thing = kubeflow(name, _SPECS[name], **{role: group(1), "Worker": group(4)})
    again = condition("Restarting", message="2 Worker replica(s) failed.")
    return {
        "not seen by its operator yet": State(thing, {}, [1, 4]),
        "created": State(thing, conditions("Created"), [1, 4]),
        "running": State(
            thing,
            conditions("Created", "Running", **{_REPLICAS: {"Worker": {"active": 4}}}),
            [1, 4],
        ),
        "with a worker that succeeded": State(
            thing, conditions("Running", **{_REPLICAS: {"Worker": {"succeeded": 1}}}), [1, 3]
        ),
        "that starts failed pods again": State(
            thing,
            {"conditions": [condition("Created"), again], _REPLICAS: {"Worker": {"failed": 2}}},
            [1, 4],
            RETRIES,
            says={"words": "2 Worker replica(s) failed."},
        ),
        "suspended": State(
            thing,
            conditions("Suspended"),
            [0, 0],
            PAUSED,
            _SUSPEND,
            written_by("kubectl-edit", "spec", "runPolicy", "suspend"),
            {"suspended": "spec.runPolicy.suspend is true, set by kubectl-edit"},
        ),
        "resumed": State(
            thing,
            {"conditions": [condition("Suspended", "False")]},
            [1, 4],
            spec={"runPolicy": {"suspend": False}},
        ),
        "succeeded": State(
            thing,
            conditions("Succeeded", completionTime=AT, **{_REPLICAS: {"Worker": {"active": 0}}}),
            [0, 0],
            ENDED,
            says={"ended": AT_MICROS, "met": frozenset({"succeeded"})},
        ),
        "succeeded, with workers that run on": State(
            thing, conditions("Succeeded", **{_REPLICAS: {"Worker": {"active": 2}}}), [0, 2], ENDED
        ),
        "succeeded, with workers that are deleted": State(
            thing,
            conditions("Succeeded", **{_REPLICAS: {"Worker": {"active": 2}}}),
            [0, 0],
            ENDED,
            {"runPolicy": {"cleanPodPolicy": "Running"}},
        ),
        "failed": State(
            thing,
            {"conditions": [condition("Failed", message="out of tries")], "completionTime": AT},
            [0, 0],
            FAILED,
            says={"words": "out of tries", "ended": AT_MICROS},
        ),
        "failed after a success": State(thing, conditions("Succeeded", "Failed"), [0, 0], FAILED),
        "scaled up": State(
            thing,
            conditions("Running"),
            [1, 6],
            spec={f"{_SPECS[name]}ReplicaSpecs": {role: group(1), "Worker": group(6)}},
        ),
    }


_SPECS = {"PyTorchJob": "pytorch", "TFJob": "tf", "XGBoostJob": "xgb", "PaddleJob": "paddle"}
_SPECS |= {"JAXJob": "jax", "MPIJob": "mpi"}


def _jax() -> States:
    """A JAXJob has workers only."""
    thing = kubeflow("JAXJob", "jax", Worker=group(4))
    return {
        "not seen by its operator yet": State(thing, {}, [4]),
        "running": State(thing, conditions("Running"), [4]),
        "with workers that succeeded": State(
            thing, conditions("Running", **{_REPLICAS: {"Worker": {"succeeded": 3}}}), [1]
        ),
        "that starts failed pods again": State(thing, conditions("Restarting"), [4], RETRIES),
        "suspended": State(thing, conditions("Suspended"), [0], PAUSED, _SUSPEND),
        "succeeded": State(thing, conditions("Succeeded"), [0], ENDED),
        "failed": State(thing, conditions("Failed"), [0], FAILED),
    }


_MPI = kubeflow("MPIJob", "mpi", Launcher=group(1), Worker=group(2))
_MPI2 = _MPI | {"apiVersion": "kubeflow.org/v2beta1"}
_EVICTED = condition("Failed", reason="MPIJobEvicted", message="1/2 workers are evicted")


def _waiting(**statuses: Map) -> tuple[Map, Map]:
    """An MPIJob whose launcher waits for the workers, and its status."""
    specs = {**_MPI2["spec"], "launcherCreationPolicy": "WaitForWorkersReady"}
    return _MPI2 | {"spec": specs}, {_REPLICAS: statuses}


MPI_JOB: States = _training("MPIJob", "Launcher") | {
    "whose launcher waits for workers": State(*_waiting(), [(0, 1), 2]),
    "whose launcher waits for one worker": State(*_waiting(Worker={"active": 1}), [(0, 1), 2]),
    "whose launcher need not wait any more": State(*_waiting(Worker={"active": 2}), [1, 2]),
    "whose launcher runs while a worker is replaced": State(
        *_waiting(Launcher={"active": 1}, Worker={"active": 1}), [1, 2]
    ),
    "whose launcher is tried again": State(
        _MPI2, {_REPLICAS: {"Launcher": {"failed": 1}, "Worker": {"active": 2}}}, [1, 2], RETRIES
    ),
    "whose workers were evicted": State(
        _MPI2,
        {"conditions": [_EVICTED]},
        [1, 2],
        RETRIES,
        says={"words": "1/2 workers are evicted", "met": frozenset()},
    ),
    "whose workers were evicted for good": State(
        _MPI2, {"conditions": [_EVICTED], "completionTime": AT}, [0, 0], FAILED
    ),
    "of v1 that deletes its workers": State(
        _MPI,
        conditions("Succeeded", **{_REPLICAS: {"Worker": {"active": 2}}}),
        [0, 0],
        ENDED,
        {"cleanPodPolicy": "All"},
    ),
    "suspended in v2beta1": State(_MPI2, conditions("Suspended"), [0, 0], PAUSED, _SUSPEND),
}

_TRAIN = kind("TrainJob", runtimeRef={"name": "torch"}, trainer={"numNodes": 3})
_INIT = kind(
    "TrainJob",
    runtimeRef={"name": "torchtune"},
    initializer={"dataset": {"storageUri": "hf://a"}, "model": {"storageUri": "hf://b"}},
    trainer={"numNodes": 3},
)


def _jobs(**counts: Map) -> Map:
    return {"jobsStatus": [{"name": n.replace("_", "-")} | one for n, one in counts.items()]}


_LOADED: Map = {"dataset_initializer": {"succeeded": 1}, "model_initializer": {"succeeded": 1}}

TRAIN_JOB: States = {
    "not seen by its controller yet": State(_TRAIN, {}, [3]),
    "running": State(_TRAIN, _jobs(node={"active": 1}), [3]),
    "whose trainer is done": State(_TRAIN, _jobs(node={"succeeded": 1}), [0]),
    "with initializers, at its start": State(_INIT, {}, [(0, 3)]),
    "that loads its data": State(_INIT, _jobs(dataset_initializer={"active": 1}), [(0, 3)]),
    "that loads its model": State(
        _INIT,
        _jobs(dataset_initializer={"succeeded": 1}, model_initializer={"active": 1}),
        [(0, 3)],
    ),
    "that has loaded all": State(_INIT, _jobs(**_LOADED), [3]),
    "whose runtime has an initializer": State(
        _TRAIN, _jobs(dataset_initializer={"active": 1}, node={}), [(0, 3)]
    ),
    "that trains": State(_INIT, _jobs(**_LOADED, node={"active": 1, "ready": 1}), [3]),
    "suspended": State(
        _TRAIN,
        conditions("Suspended"),
        [0],
        PAUSED,
        {"suspend": True},
        says={"suspended": "spec.suspend is true"},
    ),
    "complete": State(_TRAIN, conditions("Complete"), [0], ENDED, says={"ended": AT_MICROS}),
    "failed": State(_TRAIN, conditions("Failed"), [0], FAILED),
}


def _spark(word: str, **status: Any) -> Map:
    return {"applicationState": {"state": word, "errorMessage": "driver died"}} | status


_SPARK = kind("SparkApplication", driver={"cores": 1}, executor={"cores": 1, "instances": 2})
_ON_FAILURE: Map = {
    "restartPolicy": {
        "type": "OnFailure",
        "onFailureRetries": 2,
        "onSubmissionFailureRetries": 1,
    }
}
_ALWAYS: Map = {"restartPolicy": {"type": "Always"}}
_DYNAMIC: Map = {"dynamicAllocation": {"enabled": True, "minExecutors": 2}}
_BY_CONF: Map = {
    "sparkConf": {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "2",
    }
}
_DIED: Map = {"words": "driver died"}

SPARK: States = {
    "not seen by its operator yet": State(_SPARK, {}, [1, (0, 2)]),
    "submitted": State(_SPARK, _spark("SUBMITTED"), [1, (0, 2)]),
    "running": State(
        _SPARK, _spark("RUNNING"), [1, 2], says={"words": "", "met": frozenset({"running"})}
    ),
    "not heard of": State(_SPARK, _spark("UNKNOWN"), [1, 2]),
    "running with fewer executors for now": State(
        _SPARK,
        _spark("RUNNING", executorState={"e-1": "RUNNING", "e-2": "COMPLETED"}),
        [1, (1, 1)],
        spec=_DYNAMIC,
    ),
    "running with fewer executors, dynamic by Spark's own name": State(
        _SPARK, _spark("RUNNING", executorState={"e-1": "RUNNING"}), [1, (1, 1)], spec=_BY_CONF
    ),
    "running with more executors": State(
        _SPARK,
        _spark("RUNNING", executorState={f"e-{n}": "PENDING" for n in range(5)}),
        [1, 2],
        spec=_DYNAMIC,
    ),
    "that may not be submitted again": State(_SPARK, _spark("SUBMISSION_FAILED"), [0, 0]),
    "that is submitted again": State(
        _SPARK,
        _spark("SUBMISSION_FAILED", submissionAttempts=1),
        [1, (0, 2)],
        RETRIES,
        _ON_FAILURE,
        says=_DIED,
    ),
    "that was submitted often enough": State(
        _SPARK, _spark("SUBMISSION_FAILED", submissionAttempts=2), [0, 0], spec=_ON_FAILURE
    ),
    "failing for good": State(_SPARK, _spark("FAILING", executionAttempts=1), [0, 0]),
    "failing, but run again": State(
        _SPARK, _spark("FAILING", executionAttempts=2), [1, (0, 2)], RETRIES, _ON_FAILURE
    ),
    "failing once too often": State(
        _SPARK, _spark("FAILING", executionAttempts=3), [0, 0], spec=_ON_FAILURE
    ),
    "that waits for its next run": State(_SPARK, _spark("PENDING_RERUN"), [1, (0, 2)], RETRIES),
    "succeeding": State(_SPARK, _spark("SUCCEEDING"), [0, 0]),
    "succeeding, but run again": State(_SPARK, _spark("SUCCEEDING"), [1, (0, 2)], RETRIES, _ALWAYS),
    "made anew after a change": State(_SPARK, _spark("INVALIDATING"), [(0, 1), (0, 2)]),
    "suspended": State(_SPARK, _spark("SUSPENDED"), [0, 0], PAUSED, {"suspend": True}),
    "whose suspension is taken back": State(_SPARK, _spark("SUSPENDING"), [(0, 1), (0, 2)]),
    "resuming": State(_SPARK, _spark("RESUMING"), [1, (0, 2)]),
    "completed": State(
        _SPARK,
        _spark("COMPLETED", terminationTime=AT),
        [0, 0],
        ENDED,
        says={"ended": AT_MICROS, "met": frozenset({"completed"}), "words": ""},
    ),
    "failed": State(_SPARK, _spark("FAILED"), [0, 0], FAILED, says=_DIED),
}

TABLE: dict[str, States] = {
    "PyTorchJob": _training("PyTorchJob", "Master"),
    "TFJob": _training("TFJob", "Chief"),
    "XGBoostJob": _training("XGBoostJob", "Master"),
    "PaddleJob": _training("PaddleJob", "Master"),
    "JAXJob": _jax(),
    "MPIJob": MPI_JOB,
    "TrainJob": TRAIN_JOB,
    "SparkApplication": SPARK,
}
