"""States of RayClusters, RayJobs and RayServices.

Source: github.com/ray-project/kuberay/ray-operator 1.4.2, controllers/ray: reconcilePods and
calculateStatus of raycluster_controller.go, Reconcile and checkBackoffLimitAndUpdateStatusIfNeeded
of rayjob_controller.go.
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
    Pods,
    State,
    States,
    condition,
    conditions,
    written_by,
)
from tests.api.test_podsets import group, kind, ray_job, ray_spec

_CLUSTER = kind("RayCluster", **ray_spec(group(3)))
_QUOTA = 'pods "head" is forbidden: exceeded quota'
_REFUSED = {
    "conditions": [condition("ReplicaFailure", reason="FailedCreateHeadPod", message=_QUOTA)]
}
_SUSPEND = {"suspend": True}


def _groups(*specs: Map) -> Map:
    return {"workerGroupSpecs": list(specs)}


def _scaled(pods: int, /, **spec: Any) -> State:
    return State(_CLUSTER, {}, [1, pods], spec=_groups(group(**spec)))


CLUSTER: States = {
    "not seen by KubeRay yet": State(_CLUSTER, {}, [1, 3]),
    "starting": State(
        _CLUSTER,
        {"conditions": [condition("HeadPodReady", "False", message="Head Pod not found")]},
        [1, 3],
        says={"words": ""},
    ),
    "ready": State(_CLUSTER, conditions("HeadPodReady", "RayClusterProvisioned"), [1, 3]),
    "scaled up by the autoscaler": _scaled(5, replicas=5),
    "scaled down by the autoscaler": _scaled(1, replicas=1),
    "scaled below its least": _scaled(2, replicas=0, minReplicas=2),
    "scaled above its most": _scaled(4, replicas=9, maxReplicas=4),
    "of several hosts per replica": _scaled(6, replicas=3, numOfHosts=2),
    "whose pods are refused": State(_CLUSTER, _REFUSED, [1, 3], says={"words": _QUOTA}),
    "with a suspended group": State(
        _CLUSTER,
        {},
        [1, 0],
        spec=_groups(group(3, suspend=True)),
        metadata=written_by("kubectl-patch", "spec", "workerGroupSpecs"),
        says={"suspended": "spec.workerGroupSpecs[0].suspend is true, set by kubectl-patch"},
    ),
    "about to be suspended": State(
        _CLUSTER, conditions("RayClusterSuspending"), [0, 0], PAUSED, _SUSPEND
    ),
    "suspended": State(
        _CLUSTER,
        conditions("RayClusterSuspended", state="suspended"),
        [0, 0],
        PAUSED,
        _SUSPEND,
        written_by("kubectl-patch", "spec", "suspend"),
        {"suspended": "spec.suspend is true, set by kubectl-patch"},
    ),
    "whose suspension is taken back while it goes on": State(
        _CLUSTER, conditions("RayClusterSuspending"), [(0, 1), (0, 3)], spec={"suspend": False}
    ),
    "resumed": State(_CLUSTER, conditions("RayClusterSuspended"), [1, 3], spec={"suspend": False}),
}

_JOB = ray_job(3)
_KEPT: Map = {"shutdownAfterJobFinishes": False}
_SHUT: Map = {"shutdownAfterJobFinishes": True}


def _job(stage: str, job: str = "", **more: Any) -> Map:
    return {"jobDeploymentStatus": stage, "jobStatus": job, **more}


def _over(pods: list[Pods], **spec: Any) -> State:
    return State(_JOB, _job("Complete", "SUCCEEDED", endTime=AT), pods, ENDED, spec)


JOB: States = {
    "not seen by KubeRay yet": State(_JOB, {}, [1, 3, (0, 1)]),
    "whose cluster starts": State(_JOB, _job("Initializing"), [1, 3, (0, 1)]),
    "submitted": State(_JOB, _job("Running", "PENDING"), [1, 3, 1]),
    "running": State(
        _JOB, _job("Running", "RUNNING"), [1, 3, 1], says={"met": frozenset({"running"})}
    ),
    "whose job has failed while its submitter runs": State(
        _JOB, _job("Running", "FAILED"), [1, 3, 1], says={"met": frozenset({"running"})}
    ),
    "that retries": State(
        _JOB,
        _job("Retrying", "FAILED", failed=1, message="exit code 1"),
        [1, 3, 1],
        RETRIES,
        {"backoffLimit": 2},
        says={"met": frozenset({"retrying"}), "words": "exit code 1", "ended": 0},
    ),
    "begun again": State(_JOB, _job("Initializing", failed=1), [1, 3, (0, 1)]),
    "submitted by KubeRay itself": State(
        ray_job(3, submissionMode="HTTPMode"), _job("Running"), [1, 3]
    ),
    "that waits for a person to submit": State(
        ray_job(3, submissionMode="InteractiveMode"), _job("Waiting"), [1, 3]
    ),
    "submitted by its head": State(
        ray_job(3, submissionMode="SidecarMode"), _job("Running"), [1, 3]
    ),
    "on a cluster that is there": State(
        _JOB, _job("Running"), [0, 0, 1], spec={"clusterSelector": {"ray.io/cluster": "c"}}
    ),
    "about to be suspended": State(_JOB, _job("Suspending"), [0, 0, 0], PAUSED, _SUSPEND),
    "suspended": State(_JOB, _job("Suspended"), [0, 0, 0], PAUSED, _SUSPEND),
    "whose suspension is taken back while it goes on": State(
        _JOB, _job("Suspending"), [(0, 1), (0, 3), (0, 1)], spec={"suspend": False}
    ),
    "resumed": State(_JOB, _job("Suspended"), [1, 3, (0, 1)], spec={"suspend": False}),
    "with a suspended group": State(
        _JOB,
        _job("Running"),
        [1, 0, 1],
        spec={"rayClusterSpec": ray_spec(group(3, suspend=True))},
        says={"suspended": "spec.rayClusterSpec.workerGroupSpecs[0].suspend is true"},
    ),
    "whose pods are refused": State(
        _JOB, _job("Running", rayClusterStatus=_REFUSED), [1, 3, 1], says={"words": _QUOTA}
    ),
    "complete, its cluster kept": _over([1, 3, 0], **_KEPT),
    "complete, its cluster shut down": _over([0, 0, 0], **_SHUT),
    "complete, its workers deleted": _over([1, 0, 0], deletionPolicy="DeleteWorkers"),
    "complete, its cluster deleted": _over([0, 0, 0], deletionPolicy="DeleteCluster"),
    "complete, nothing deleted": _over([1, 3, 0], deletionPolicy="DeleteNone"),
    "complete on a cluster that is there": _over([0, 0, 0], clusterSelector={"a": "b"}),
    "suspended when it was complete": _over([0, 0, 0], suspend=True, **_SHUT),
    "stopped": State(_JOB, _job("Complete", "STOPPED"), [1, 3, 0], ENDED),
    "failed": State(
        _JOB,
        _job("Failed", "FAILED", message="exit code 1", endTime=AT),
        [0, 0, 0],
        FAILED,
        _SHUT,
        says={"words": "exit code 1", "ended": AT_MICROS, "met": frozenset({"failed"})},
    ),
    "failed, as older versions say it": State(
        _JOB, _job("Complete", "FAILED"), [0, 0, 0], FAILED, _SHUT
    ),
}

_SERVICE = kind("RayService", rayClusterConfig=ray_spec(group(3)))
_UP: Map = {"activeServiceStatus": {"rayClusterName": "a"}}
_NEXT: Map = {"pendingServiceStatus": {"rayClusterName": "b", "rayClusterStatus": _REFUSED}}

SERVICE: States = {
    "not seen by KubeRay yet": State(_SERVICE, {}, [1, 3]),
    "starting": State(_SERVICE, {"pendingServiceStatus": {"rayClusterName": "a"}}, [1, 3]),
    "ready": State(_SERVICE, conditions("Ready", **_UP), [1, 3]),
    "upgraded, with a second cluster": State(
        _SERVICE, conditions("UpgradeInProgress", **_UP, **_NEXT), [1, 3], says={"words": _QUOTA}
    ),
    "scaled": State(_SERVICE, _UP, [1, 5], spec={"rayClusterConfig": ray_spec(group(5))}),
    "suspended": State(
        _SERVICE,
        _UP,
        [0, 0],
        PAUSED,
        {"rayClusterConfig": ray_spec(group(3), suspend=True)},
        says={"suspended": "spec.rayClusterConfig.suspend is true"},
    ),
    "with a suspended group": State(
        _SERVICE,
        _UP,
        [1, 0],
        spec={"rayClusterConfig": ray_spec(group(3, suspend=True))},
        says={"suspended": "spec.rayClusterConfig.workerGroupSpecs[0].suspend is true"},
    ),
}

TABLE: dict[str, States] = {"RayCluster": CLUSTER, "RayJob": JOB, "RayService": SERVICE}
