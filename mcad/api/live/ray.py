"""RayClusters, RayJobs and RayServices (ray.io/v1).

Facts from github.com/ray-project/kuberay/ray-operator 1.4.2: RayClusterSpec.suspend and
workerGroupSpecs (suspend, replicas, minReplicas, maxReplicas, numOfHosts); RayClusterStatus
.conditions (types ReplicaFailure, RayClusterSuspending); RayJobSpec.submissionMode,
shutdownAfterJobFinishes, deletionPolicy, clusterSelector, backoffLimit; RayJobStatus.jobStatus,
jobDeploymentStatus, message, endTime, rayClusterStatus; RayServiceStatuses.activeServiceStatus and
pendingServiceStatus. Acts of the controllers: reconcilePods of raycluster_controller.go, Reconcile
and checkBackoffLimitAndUpdateStatusIfNeeded of rayjob_controller.go. A RayCluster or a RayService
has no end.
"""

from mcad.api.live.reading import (
    LiveObject,
    LiveSet,
    Reading,
    brief,
    condition,
    message_of,
    wanted,
)
from mcad.api.located_fields import Part
from mcad.api.operators import K8S_JOB_MODE, submission_mode
from mcad.api.wire import Map, as_map, as_text, parse_instant
from mcad.core.state.model import ItemState, Wanted

_SUBMITTER = "submitterPodTemplate"


def read_cluster(obj: LiveObject) -> Reading:
    """Its head and the replicas of each group, at once. A suspension is carried out in full even if
    it is taken back: then the pods come again after that."""
    is_going = bool(obj.condition("RayClusterSuspending"))
    wants = obj.later() if is_going else obj.now()
    words = _refusal(obj.status.value)
    return Reading(wants, words=words, suspended=_suspended_groups(obj.spec))


def read_service(obj: LiveObject) -> Reading:
    """The pods of one cluster. The pods of the second one of an upgrade are surplus."""
    status = obj.status
    of_clusters = (
        status.at(key).at("rayClusterStatus").value
        for key in ("activeServiceStatus", "pendingServiceStatus")
    )
    words = next(filter(None, map(_refusal, of_clusters)), "")
    suspended = _suspended_groups(obj.spec.at("rayClusterConfig"))
    return Reading(obj.now(), words=words, suspended=suspended)


def _refusal(cluster: Map) -> str:
    """Why pods of a cluster cannot be made. That its head is not ready is no such reason."""
    return message_of(condition(cluster, "ReplicaFailure"))


def _suspended_groups(cluster: Part) -> tuple[tuple[str, ...], ...]:
    groups = cluster.elements("workerGroupSpecs[]")
    return tuple(
        (*cluster.path.split("."), "workerGroupSpecs", f"[{number}]", "suspend")
        for number, group in enumerate(groups)
        if group.value.get("suspend") is True
    )


def read_job(obj: LiveObject) -> Reading:
    """The pods of its cluster, and the submitter when the cluster is ready. A cluster that is kept
    after the end keeps its pods. A failed try that is repeated is no end."""
    status = obj.status.value
    stage, job = (as_text(status.get(key)) for key in ("jobDeploymentStatus", "jobStatus"))
    state = _state(stage, job)
    is_over = state in (ItemState.SUCCEEDED, ItemState.FAILED)
    cluster = status.get("rayClusterStatus")
    words = brief(as_text(status.get("message"))) if state in _FAILURES else ""
    return Reading(
        _after_end(obj) if is_over else _pods(obj, stage),
        state,
        words or _refusal(as_map(cluster)),
        max(0, parse_instant(status.get("endTime"))) if is_over else 0,
        (stage, job) if is_over else (stage, "" if job == "FAILED" else job),
        () if is_over else _suspended_groups(obj.spec.at("rayClusterSpec")),
    )


_FAILURES = (ItemState.FAILED, ItemState.RETRYING)


def _state(stage: str, job: str) -> ItemState:
    """Versions before 1.2 call a RayJob Complete whose job has failed."""
    if stage == "Complete":
        return ItemState.FAILED if job == "FAILED" else ItemState.SUCCEEDED
    states = {"Failed": ItemState.FAILED, "Retrying": ItemState.RETRYING}
    return states.get(stage, ItemState.PROGRESSING)


def _pods(obj: LiveObject, stage: str) -> dict[str, Wanted]:
    """The pods of a RayJob that has not ended. A retry deletes all of them and makes them anew."""
    if stage == "Suspending":  # carried out in full even if it is taken back
        return obj.later()
    is_submitted = stage in ("Running", "Retrying")
    return {
        one.path: _submitter(obj, one, is_submitted=is_submitted)
        if _is_submitter(one)
        else wanted(0 if _has_foreign_cluster(obj) else one.pods)
        for one in obj.sets
    }


def _submitter(obj: LiveObject, one: LiveSet, *, is_submitted: bool) -> Wanted:
    """Only in K8sJobMode a pod of its own submits the job."""
    if submission_mode(obj.spec.value) != K8S_JOB_MODE:
        return wanted(0)
    return wanted(one.pods) if is_submitted else wanted(0, one.pods)


def _after_end(obj: LiveObject) -> dict[str, Wanted]:
    """The pods of a RayJob that has ended: those of a cluster that nothing deletes."""
    policy = as_text(obj.spec.value.get("deletionPolicy"))
    if obj.spec.value.get("shutdownAfterJobFinishes") is True and not policy:
        policy = "DeleteCluster"
    if policy in ("DeleteCluster", "DeleteSelf") or _has_foreign_cluster(obj):
        return obj.none()
    return {
        one.path: wanted(
            0 if _is_submitter(one) or (policy == "DeleteWorkers" and _is_group(one)) else one.pods
        )
        for one in obj.sets
    }


def _is_submitter(one: LiveSet) -> bool:
    return one.path.endswith(_SUBMITTER)


def _is_group(one: LiveSet) -> bool:
    return "workerGroupSpecs" in one.path


def _has_foreign_cluster(obj: LiveObject) -> bool:
    """Whether it runs on a cluster that is there anyhow."""
    return bool(as_map(obj.spec.value.get("clusterSelector")))
