"""What happens to each case once it was submitted, and how much room it has.

Controllers that do not run here are played from their sources: what MPIJob's writes is that of
kubeflow/mpi-operator 0.6.0 (``updateMPIJobStatus``, ``newWorker``, ``newLauncherJob``).
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable

from tests.controlplane.operators import KUBERAY
from tests.e2e.running.case import Case, Json, waiting

LONG = 90
"""Seconds that a step may take on a busy machine."""

HIGH, LOW = "case-high", "case-low"
PRIORITY_CLASSES = [
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }
    for name, value in ((HIGH, 1000), (LOW, 1))
]

CPUS: dict[str, tuple[str, ...]] = {
    "growth": ("3",),
    "cronjob": ("4",),
    "autoscaled": ("3",),
    "lost-node": ("1", "1", "1"),
    "gated": ("2",),
    "slow-image": ("2",),
    "in-order": ("3",),
    "leader-ready": ("3",),
    "failed-index": ("3",),
    "retrying": ("2",),
    "suspended-group": ("4",),
    "suspended": ("2",),
    "workers-stay": ("3",),
    "preempted": ("2",),
    "image": ("2",),
    "surge": ("2",),
    "depends-on": ("3",),
    "suspended-ray": ("2",),
    "preempted-job": ("2",),
}
"""The nodes of each case, and so the cases themselves."""


def scale_up(case: Case) -> None:
    """To four pods, of which three have room."""
    case.wait_for_pods(2, seconds=LONG)
    case.remember()
    case.patch_item({"spec": {"replicas": 4}})
    case.wait_for_pods(3, seconds=LONG)


def run_by_hand(case: Case) -> None:
    """A run begins when another Pod has taken a part of the node."""
    case.plane.wait_for(case.item, LONG, "the CronJob")
    case.add_pod("other", "1")
    case.remember()
    case.plane.kubectl(
        "create", "job", "by-hand", f"--from=cronjob/{case.name}", f"--namespace={case.pool}"
    )
    case.plane.wait_for(lambda: list(waiting(case.pods())), LONG, "a run waits")


def ask_for_workers(case: Case) -> None:
    """As Ray's autoscaler does: three workers, of which two have room."""
    case.wait_for_pods(2, seconds=LONG)
    case.remember()
    groups = case.item()["spec"]["workerGroupSpecs"]
    groups[0]["replicas"] = 3
    case.patch_item({"spec": {"workerGroupSpecs": groups}})
    case.wait_for_pods(3, seconds=LONG)


def lose_a_node(case: Case) -> None:
    """Its pod goes with it, after a while; the Deployment makes another one."""
    case.wait_for_pods(3, seconds=LONG)
    lost = case.nodes[0]
    case.item_uid = case.item()["metadata"]["uid"]
    kept = [one for one in case.pods() if one["spec"]["nodeName"] != lost]
    case.first_pods = frozenset(one["metadata"]["uid"] for one in kept)
    case.plane.remove_node(lost)


def is_there(case: Case) -> None:
    """Its object exists; whatever else happens is its controller's doing."""
    case.plane.wait_for(case.item, LONG, f"{case.pool}: its object")
    case.remember()


def wait_for_gates(case: Case) -> None:
    """Both pods are there, and gated."""
    case.wait_for_pods(2, "Pending", LONG)
    case.remember()


def fail_an_index(case: Case) -> None:
    """Index 1 fails for good, and another AppWrapper wants its room."""
    case.wait_for_pods(3, seconds=LONG)
    case.follow("1")
    case.remember()
    (failing,) = (one for one in case.pods() if _index(one) == "1")
    case.first_pods -= {failing["metadata"]["uid"]}
    case.plane.wait_for(lambda: case.state("next") == "Pending", LONG, "the next one waits")
    case.end_pod(failing, 1)


def _index(pod: Json) -> str:
    found: str = pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
    return found


def fail_once(case: Case) -> None:
    """The Ray job fails. That Ray says so is played; what KubeRay does then is its own: it deletes
    the cluster and the submitter, and begins anew. Meanwhile its room is kept: KubeRay stands still
    for a moment, without any pod of the RayJob, and the next AppWrapper has to wait."""
    case.wait_for_pods(3, seconds=LONG)
    case.follow("2")
    case.remember()
    case.plane.wait_for(lambda: case.state("next") == "Pending", LONG, "the next one waits")
    kuberay = case.plane.process(KUBERAY.name)
    kuberay.send_signal(signal.SIGSTOP)
    try:
        told = {"jobStatus": "FAILED", "jobDeploymentStatus": "Retrying", "failed": 1}
        case.patch_item({"status": told}, "status")
        submitter = _path(case, "batch", "jobs")
        case.plane.ask("DELETE", submitter, {"propagationPolicy": "Background"})
        case.plane.ask("DELETE", _path(case, "", "pods"))
        case.plane.wait_for(lambda: not case.pods(), LONG, "its pods are gone")
        case.look_once_more()
        assert case.state("next") == "Pending", "the room of the retry was given away"
    finally:
        kuberay.send_signal(signal.SIGCONT)


def suspend(case: Case) -> None:
    """A person suspends it; another AppWrapper wants its room."""
    case.wait_for_pods(2, seconds=LONG)
    case.follow("2")
    case.remember()
    case.plane.wait_for(lambda: case.state("next") == "Pending", LONG, "the next one waits")
    case.patch_item({"spec": {"suspend": True}})


def leave_workers(case: Case) -> None:
    """The launcher ends, the workers run on, and the MPIJob has succeeded."""
    item = case.plane.wait_for(case.item, LONG, "the MPIJob")
    specs = item["spec"]["mpiReplicaSpecs"]
    for number in range(2):
        case.plane.ask("POST", _path(case, "", "pods"), _worker(item, specs["Worker"], number))
    case.plane.ask("POST", _path(case, "batch", "jobs"), _launcher(item, specs["Launcher"]))
    job = f"{_path(case, 'batch', 'jobs')}/{case.name}-launcher"
    case.wait_for_pods(2, seconds=LONG)
    done = case.plane.wait_for(
        lambda: case.plane.get(job).get("status", {}).get("completionTime"), LONG, "its end"
    )
    case.remember()
    status = {
        "startTime": item["metadata"]["creationTimestamp"],
        "completionTime": done,
        "conditions": [_condition(one, done) for one in ("Created", "Running", "Succeeded")],
        "replicaStatuses": {"Launcher": {"succeeded": 1}, "Worker": {"active": 2}},
    }
    case.patch_item({"status": status}, "status")


def _path(case: Case, group: str, plural: str) -> str:
    root = f"/apis/{group}/v1" if group else "/api/v1"
    return f"{root}/namespaces/{case.pool}/{plural}"


def _condition(kind: str, at: str) -> Json:
    told = {"reason": f"MPIJob{kind}", "message": f"MPIJob {kind}"}
    times = {"lastUpdateTime": at, "lastTransitionTime": at}
    return {"type": kind, "status": "True", **told, **times}


def _made_by(item: Json, name: str, role: str) -> Json:
    owner = {key: item[key] for key in ("apiVersion", "kind")}
    owner |= {key: item["metadata"][key] for key in ("name", "uid")}
    labels = {
        "training.kubeflow.org/job-name": item["metadata"]["name"],
        "training.kubeflow.org/job-role": role,
    }
    return {"name": name, "labels": labels, "ownerReferences": [{**owner, "controller": True}]}


def _worker(item: Json, spec: Json, number: int) -> Json:
    meta = _made_by(item, f"{item['metadata']['name']}-worker-{number}", "worker")
    meta["labels"] |= spec["template"].get("metadata", {}).get("labels", {})
    inner = {"restartPolicy": "Never", **spec["template"]["spec"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": inner}


def _launcher(item: Json, spec: Json) -> Json:
    meta = _made_by(item, f"{item['metadata']['name']}-launcher", "launcher")
    inner = json.loads(json.dumps(spec["template"]))
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": inner}}


def preempt(case: Case) -> None:
    """kube-scheduler takes the node of a bare Pod for another one."""
    case.wait_for_pods(1, seconds=LONG)
    before = case.item()["metadata"]["uid"]
    _add_urgent(case)
    assert case.item().get("metadata", {}).get("uid") != before


def preempt_a_pod(case: Case) -> None:
    """The same of a pod that its controller replaces."""
    case.wait_for_pods(1, seconds=LONG)
    case.item_uid = case.item()["metadata"]["uid"]
    _add_urgent(case)


def _add_urgent(case: Case) -> None:
    case.add_pod("urgent", "2", priorityClassName=HIGH)
    urgent = f"{_path(case, '', 'pods')}/urgent"
    case.plane.wait_for(
        lambda: case.plane.get(urgent)["status"].get("phase") == "Running", LONG, "it is preempted"
    )


def roll_over(case: Case) -> None:
    """A new image: the first pod of it has no room."""
    case.wait_for_pods(2, seconds=LONG)
    case.remember()
    containers = case.item()["spec"]["template"]["spec"]["containers"]
    containers[0]["image"] = "busybox:next"
    case.patch_item({"spec": {"template": {"spec": {"containers": containers}}}})
    case.plane.wait_for(lambda: list(waiting(case.pods())), LONG, "a pod of the new image")


ACTS: dict[str, Callable[[Case], None]] = {
    "lost-node": lose_a_node,
    "gated": wait_for_gates,
    "cronjob": run_by_hand,
    "growth": scale_up,
    "autoscaled": ask_for_workers,
    "failed-index": fail_an_index,
    "retrying": fail_once,
    "suspended": suspend,
    "workers-stay": leave_workers,
    "preempted": preempt,
    "slow-image": is_there,
    "in-order": is_there,
    "leader-ready": is_there,
    "suspended-group": is_there,
    "image": is_there,
    "depends-on": is_there,
    "surge": roll_over,
    "suspended-ray": suspend,
    "preempted-job": preempt_a_pod,
}
"""In this order: what starts a clock that has to run out comes first."""
