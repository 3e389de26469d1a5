"""Training jobs and notebooks (kubeflow.org, trainer.kubeflow.org).

Facts from github.com/kubeflow/training-operator 1.9.3, v1: RunPolicy.suspend and cleanPodPolicy
(None where it is absent), JobStatus.conditions (types Succeeded, Failed, Restarting),
replicaStatuses (active, succeeded) and completionTime; MPIJobSpec.cleanPodPolicy. The operator
counts pods as succeeded that run on after a success (ReconcileJobs of pkg/controller.v1/common).

Facts from github.com/kubeflow/mpi-operator 0.6.0, v2beta1: MPIJobSpec.launcherCreationPolicy. Its
launcher is a Job, whose failed pods replicaStatuses counts (updateMPIJobStatus). Both MPI
controllers go on with an MPIJob that Failed because its workers were evicted (mpiJobEvict), as long
as it has no completionTime.

Facts from github.com/kubeflow/trainer 2.0.0, v1alpha1: TrainJobSpec.initializer, TrainJobStatus
.conditions (types Complete, Failed) and jobsStatus, with the job names of pkg/constants.
"""

from mcad.api.live import batch
from mcad.api.live.jobset import reports_of, started
from mcad.api.live.reading import (
    LiveObject,
    LiveSet,
    Reading,
    end_of,
    message_of,
    wanted,
)
from mcad.api.located_fields import Part
from mcad.api.wire import as_text
from mcad.core.state.model import ItemState, Wanted

_ENDS = {"Failed": ItemState.FAILED, "Succeeded": ItemState.SUCCEEDED}
_INITIALIZERS = {"dataset": "dataset-initializer", "model": "model-initializer"}
_TRAINER = "node"
_LAUNCHER, _EVICTED = "Launcher", "MPIJobEvicted"


def read_training_job(obj: LiveObject) -> Reading:
    """The pods of each role that have not succeeded."""
    end = end_of(obj, _ENDS)
    if end is not None:
        return Reading(_left_behind(obj), end.state, end.words, end.ended)
    restarting = obj.condition("Restarting")
    state = ItemState.RETRYING if restarting else ItemState.PROGRESSING
    return Reading(_by_role(obj), state, message_of(restarting))


def read_mpi_job(obj: LiveObject) -> Reading:
    """As other training jobs, but the launcher may wait for its workers, and is tried again."""
    failed = obj.condition("Failed")
    if failed.get("reason") == _EVICTED and not obj.status.value.get("completionTime"):
        return Reading(_by_role(obj), ItemState.RETRYING, message_of(failed))
    said = read_training_job(obj)
    if said.state is not ItemState.PROGRESSING:
        return said
    launcher = obj.status.at("replicaStatuses").at(_LAUNCHER)
    if launcher.count("failed", 0) and not launcher.count("active", 0):
        return Reading(said.wants, ItemState.RETRYING)
    return Reading(_before_launcher(obj)) if _launcher_waits(obj) else said


def _before_launcher(obj: LiveObject) -> dict[str, Wanted]:
    wants = _by_role(obj)
    for one in obj.sets:
        if one.part.name == _LAUNCHER:
            wants[one.path] = wanted(0, wants[one.path].now)
    return wants


def _by_role(obj: LiveObject) -> dict[str, Wanted]:
    return {
        one.path: wanted(one.pods - _report(obj, one).count("succeeded", 0)) for one in obj.sets
    }


def _report(obj: LiveObject, one: LiveSet) -> Part:
    return obj.status.at("replicaStatuses").at(one.part.name)


def _left_behind(obj: LiveObject) -> dict[str, Wanted]:
    """Pods that run on after the end, which is so with cleanPodPolicy None, as far as the status
    says that they did."""
    policies = (obj.spec.at("runPolicy").value, obj.spec.value)
    given = (as_text(one.get("cleanPodPolicy")) for one in policies)
    if next(filter(None, given), "None") != "None":
        return obj.none()
    return {
        one.path: wanted(min(one.pods, _report(obj, one).count("active", 0))) for one in obj.sets
    }


def _launcher_waits(obj: LiveObject) -> bool:
    """Whether the launcher has yet to be made: nothing was heard of it, and workers do not run."""
    if obj.spec.value.get("launcherCreationPolicy") != "WaitForWorkersReady":
        return False
    launcher = obj.status.at("replicaStatuses").at(_LAUNCHER)
    if any(launcher.count(key, 0) for key in ("active", "succeeded", "failed")):
        return False
    workers = [one for one in obj.sets if one.part.name == "Worker"]
    return any(_report(obj, one).count("active", 0) < one.pods for one in workers)


def read_train_job(obj: LiveObject) -> Reading:
    """The nodes of its trainer, after its initializers."""
    if (end := end_of(obj, batch.ENDS)) is not None:
        return end
    jobs = reports_of(obj.status, "jobsStatus")
    trainer = jobs.get(_TRAINER)
    if trainer is not None and trainer.count("succeeded", 0):
        return Reading(obj.none())
    is_running = trainer is not None and (started(trainer) or trainer.count("active", 0))
    return Reading(obj.now() if is_running or not _initializes(obj, jobs) else obj.later())


def _initializes(obj: LiveObject, jobs: dict[str, Part]) -> bool:
    """Whether an initializer that it asks for, or that its runtime has, is not done yet."""
    asked = obj.spec.at("initializer").value
    named = [job for key, job in _INITIALIZERS.items() if job in jobs or asked.get(key) is not None]
    return any(job not in jobs or not jobs[job].count("succeeded", 0) for job in named)
