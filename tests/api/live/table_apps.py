"""States of Pods and of controllers without an end.

Sources: k8s.io/kubernetes 1.36.3, pkg/controller/deployment, replicaset and statefulset; KServe
0.16 (StopAnnotationKey); the notebook controller of Kubeflow 1.7 (STOP_ANNOTATION).
"""

from __future__ import annotations

from tests.api.builders import deployment, pod, pod_spec, template
from tests.api.live.states import (
    AT,
    AT_MICROS,
    ENDED,
    FAILED,
    PAUSED,
    UNKNOWN,
    State,
    States,
    condition,
    conditions,
    written_by,
)
from tests.api.test_podsets import kind

_QUOTA = 'pods "d-1" is forbidden: exceeded quota'
_REFUSED = {"conditions": [condition("ReplicaFailure", reason="FailedCreate", message=_QUOTA)]}
_DONE = {"state": {"terminated": {"exitCode": 0, "finishedAt": AT}}}

POD: States = {
    "not seen by kubelet yet": State(pod(), {}, [1]),
    "pending": State(pod(), {"phase": "Pending"}, [1], says={"met": frozenset({"pending"})}),
    "running": State(pod(), {"phase": "Running"}, [1]),
    "on a node that is not heard of": State(pod(), {"phase": "Unknown"}, [1]),
    "succeeded": State(
        pod(),
        {"phase": "Succeeded", "containerStatuses": [_DONE]},
        [0],
        ENDED,
        says={"ended": AT_MICROS, "met": frozenset({"succeeded"})},
    ),
    "evicted by its node": State(
        pod(),
        {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."},
        [0],
        FAILED,
        says={"words": "Evicted: The node was low on memory."},
    ),
}


def _scaled(name: str) -> States:
    thing = kind(name, replicas=3, template=template()) if name != "Deployment" else deployment()
    full = thing["spec"]["replicas"]
    return {
        "not seen by its controller yet": State(thing, {}, [full]),
        "being created": State(thing, {"replicas": 1}, [full]),
        "with all pods": State(thing, {"replicas": full, "readyReplicas": full}, [full]),
        "scaled up": State(thing, {"replicas": full}, [7], spec={"replicas": 7}),
        "scaled down": State(thing, {"replicas": full}, [1], spec={"replicas": 1}),
        "scaled to zero": State(thing, {}, [0], spec={"replicas": 0}),
        "with a pod that was lost": State(thing, {"replicas": full - 1}, [full]),
        "whose pods are refused": State(thing, _REFUSED, [full], says={"words": _QUOTA}),
    }


_REVISION = {"annotations": {"deployment.kubernetes.io/revision": "1"}}

DEPLOYMENT: States = _scaled("Deployment") | {
    "rolled over, with one pod more than it wants": State(
        deployment(), {"replicas": 3, "updatedReplicas": 1, "unavailableReplicas": 1}, [2]
    ),
    "that makes no progress": State(deployment(), conditions("Available"), [2]),
    "paused before its first pod": State(
        deployment(), {}, [0], PAUSED, {"paused": True}, says={"suspended": "spec.paused is true"}
    ),
    "paused when it had pods": State(
        deployment(), {"replicas": 2}, [2], spec={"paused": True}, metadata=_REVISION
    ),
}

_ORDERED = kind("StatefulSet", replicas=3, template=template())
_PARALLEL = kind("StatefulSet", replicas=3, template=template(), podManagementPolicy="Parallel")


def _pods(exist: int, ready: int, available: int | None = None) -> dict[str, int]:
    least = ready if available is None else available
    return {"replicas": exist, "readyReplicas": ready, "availableReplicas": least}


STATEFUL_SET: States = {
    "not seen by its controller yet": State(_ORDERED, {}, [(1, 2)]),
    "whose first pod starts": State(_ORDERED, _pods(1, 0), [(1, 2)]),
    "whose first pod is ready": State(_ORDERED, _pods(1, 1), [(2, 1)]),
    "whose second pod is ready, but not for long enough": State(_ORDERED, _pods(2, 2, 1), [(2, 1)]),
    "with all pods": State(_ORDERED, _pods(3, 3), [3]),
    "whose first pod was lost": State(_ORDERED, _pods(2, 2), [3]),
    "whose first pod starts again": State(_ORDERED, _pods(3, 2), [3]),
    "scaled up by two": State(_ORDERED, _pods(3, 3), [(4, 1)], spec={"replicas": 5}),
    "scaled down": State(_ORDERED, _pods(3, 3), [1], spec={"replicas": 1}),
    "without the field that older servers lack": State(
        _ORDERED, {"replicas": 2, "readyReplicas": 2}, [3]
    ),
    "without that field, and with a pod that is not ready": State(
        _ORDERED, {"replicas": 2, "readyReplicas": 1}, [(2, 1)]
    ),
    "that starts all pods at once": State(_PARALLEL, _pods(0, 0), [3]),
    "that starts all pods at once, with one": State(_PARALLEL, _pods(1, 0), [3]),
}

_DAEMONS = kind("DaemonSet", template=template())
DAEMON_SET: States = {
    "not seen by its controller yet": State(_DAEMONS, {}, [None]),
    "of three nodes": State(_DAEMONS, {"desiredNumberScheduled": 3}, [None]),
    "with a pod that is not ready": State(
        _DAEMONS, {"desiredNumberScheduled": 3, "numberReady": 2}, [None]
    ),
    "of no node": State(_DAEMONS, {"desiredNumberScheduled": 0}, [None]),
    "with a pod where it should not be": State(_DAEMONS, {"numberMisscheduled": 1}, [None]),
    "rolled over": State(_DAEMONS, {"updatedNumberScheduled": 1}, [None]),
}

_CRON = kind("CronJob", schedule="* * * * *", jobTemplate={"spec": {"template": template()}})
CRON_JOB: States = {
    "before its first run": State(_CRON, {}, [0]),
    "with a run": State(_CRON, {"active": [{"name": "c-1"}], "lastScheduleTime": AT}, [0]),
    "with two runs": State(_CRON, {"active": [{"name": "c-1"}, {"name": "c-2"}]}, [0]),
    "after a run": State(_CRON, {"lastSuccessfulTime": AT}, [0]),
    "suspended": State(
        _CRON, {}, [0], PAUSED, {"suspend": True}, says={"suspended": "spec.suspend is true"}
    ),
    "suspended during a run": State(
        _CRON, {"active": [{"name": "c-1"}]}, [0], PAUSED, {"suspend": True}
    ),
    "resumed": State(_CRON, {"lastScheduleTime": AT}, [0], spec={"suspend": False}),
}

_BOOK = kind("Notebook", template=template())
_STOPPED = {"annotations": {"kubeflow-resource-stopped": "2026-03-02T09:00:00Z"}}
NOTEBOOK: States = {
    "not seen by its controller yet": State(_BOOK, {}, [1]),
    "starting": State(_BOOK, {"readyReplicas": 0}, [1]),
    "ready": State(_BOOK, {"readyReplicas": 1}, [1]),
    "whose container waits": State(
        _BOOK, {"containerState": {"waiting": {"reason": "ImagePullBackOff"}}}, [1]
    ),
    "stopped": State(
        _BOOK,
        {"readyReplicas": 0},
        [0],
        PAUSED,
        metadata=_STOPPED,
        says={"suspended": "metadata.annotations[kubeflow-resource-stopped] is set"},
    ),
    "that ended by itself": State(_BOOK, {"containerState": {"terminated": {}}}, [1]),
}

_SERVING = kind(
    "InferenceService",
    predictor={"minReplicas": 2, "model": {"resources": {"requests": {"cpu": "1"}}}},
)
_STOP = {"annotations": {"serving.kserve.io/stop": "true"}}
INFERENCE_SERVICE: States = {
    "not seen by its controller yet": State(_SERVING, {}, [2]),
    "not ready": State(_SERVING, {"conditions": [condition("Ready", "False")]}, [2]),
    "ready": State(_SERVING, conditions("Ready", "PredictorReady"), [2]),
    "scaled to more": State(
        _SERVING, conditions("Ready"), [5], spec={"predictor": {"minReplicas": 5}}
    ),
    "scaled to zero": State(
        _SERVING, conditions("Ready"), [0], spec={"predictor": {"minReplicas": 0}}
    ),
    "stopped": State(
        _SERVING,
        {},
        [0],
        PAUSED,
        metadata=_STOP | written_by("kubectl-annotate", "metadata", "annotations"),
        says={
            "suspended": "metadata.annotations[serving.kserve.io/stop] is true, set by "
            "kubectl-annotate"
        },
    ),
    "whose stop was taken back": State(
        _SERVING, {}, [2], metadata={"annotations": {"serving.kserve.io/stop": "false"}}
    ),
}

_WIDGET = kind("Widget", **pod_spec())
WIDGET: States = {
    "without a status": State(_WIDGET, {}, [None], UNKNOWN),
    "with a phase of its own": State(_WIDGET, {"phase": "Ready"}, [None], UNKNOWN),
    "complete": State(_WIDGET, conditions("Complete"), [None], ENDED),
    "completed": State(_WIDGET, conditions("Completed"), [None], ENDED),
    "succeeded": State(_WIDGET, conditions("Succeeded"), [None], ENDED),
    "failed, whatever that means": State(
        _WIDGET, conditions("Failed"), [None], UNKNOWN, says={"met": frozenset({"failed"})}
    ),
    "suspended, whatever that means": State(
        _WIDGET, conditions("Suspended"), [None], UNKNOWN, {"suspend": True}
    ),
}

TABLE: dict[str, States] = {
    "Pod": POD,
    "ReplicationController": _scaled("ReplicationController"),
    "ReplicaSet": _scaled("ReplicaSet"),
    "Deployment": DEPLOYMENT,
    "StatefulSet": STATEFUL_SET,
    "DaemonSet": DAEMON_SET,
    "CronJob": CRON_JOB,
    "Notebook": NOTEBOOK,
    "InferenceService": INFERENCE_SERVICE,
    "Widget": WIDGET,
}
