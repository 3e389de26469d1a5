"""Some hundred random workloads, and what is to be the same about them on every cluster.

Where pods go is compared only where one node is possible; where more pods want to run than fit,
only how many run. So nothing here depends on the order of events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

Json = dict[str, Any]

NAMESPACES = ("blue", "green", "red")
NODES: tuple[tuple[str, Json], ...] = (
    *((f"general-{number}", {"cpu": "200", "memory": "8Gi"}) for number in range(3)),
    ("ssd-0", {"cpu": "200", "memory": "8Gi", "labels": {"disk": "ssd"}}),
    ("big-0", {"cpu": "200", "memory": "4Ti"}),
    (
        "gpu-0",
        {
            "cpu": "200",
            "memory": "8Gi",
            "labels": {"pool": "gpu"},
            "taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
            "extended": {"nvidia.com/gpu": "400"},
        },
    ),
    *(
        (
            f"pack-{number}",
            {
                "cpu": "4",
                "memory": "8Gi",
                "labels": {"pool": "pack"},
                "taints": [{"key": "pack", "effect": "NoSchedule"}],
            },
        )
        for number in range(3)
    ),
    (
        "leaving-0",
        {"cpu": "200", "memory": "8Gi", "taints": [{"key": "leaving", "effect": "NoExecute"}]},
    ),
)
PODS_PER_NODE = 400
PACKED = 12  # pods of one CPU that fit on the pack nodes

_GPU = {"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}
_PACK = {"key": "pack", "operator": "Exists"}


@dataclass(frozen=True)
class Workload:
    """One object to create. ``forced`` is the only node for its pods, "" if there are others."""

    plural: str
    obj: Json
    forced: str = ""
    contended: bool = False

    @property
    def name(self) -> str:
        metadata = self.obj["metadata"]
        return f"{self.plural}/{metadata['namespace']}/{metadata['name']}"


# -- pods --------------------------------------------------------------------------------------


def _affinity(key: str, value: str) -> Json:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    required = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


_PLACES: tuple[tuple[str, Json, Json], ...] = (
    # the only node, what the spec says, what the container requests
    ("", {}, {}),
    ("", {}, {"cpu": "250m"}),
    ("ssd-0", {"nodeSelector": {"disk": "ssd"}}, {}),
    ("ssd-0", {"affinity": _affinity("disk", "ssd")}, {"cpu": "100m"}),
    ("big-0", {}, {"memory": "10Gi"}),
    ("gpu-0", {"tolerations": [_GPU]}, {"nvidia.com/gpu": "1"}),
    ("gpu-0", {"tolerations": [_GPU], "nodeSelector": {"pool": "gpu"}}, {"cpu": "1"}),
    ("general-1", {"nodeName": "general-1"}, {}),
    ("nowhere", {}, {"nvidia.com/gpu": "1"}),  # not tolerated
    ("nowhere", {"nodeSelector": {"pool": "gpu"}}, {}),
    ("nowhere", {"nodeSelector": {"disk": "tape"}}, {}),
    ("nowhere", {}, {"cpu": "1k"}),
)


def _pod(rng: Random, command: Iterable[str] = (), **spec: Any) -> tuple[str, Json]:
    forced, place, requests = rng.choice(_PLACES)
    return forced, _pod_spec(place, requests, command) | spec


def _pod_spec(place: Json, requests: Json, command: Iterable[str] = ()) -> Json:
    container: Json = {"name": "main", "image": "registry.example/app:1"}
    if command:
        container["command"] = list(command)
    if requests:
        container["resources"] = {"requests": requests, "limits": requests}
    return {"containers": [container]} | place


def _selected(name: str, spec: Json) -> Json:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {"selector": {"matchLabels": labels}, "template": template}


def _object(rng: Random, kind: str, api: str, name: str) -> Json:
    namespace = rng.choice(NAMESPACES)
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": namespace}}


# -- kinds -------------------------------------------------------------------------------------


def workloads(seed: int) -> list[Workload]:
    """All of them, in the order in which they are to be created."""
    rng = Random(seed)
    return [
        *(_deployment(rng, number) for number in range(45)),
        *_packed(rng),
        *(_job(rng, number) for number in range(45)),
        *(_statefulset(rng, number) for number in range(10)),
        *(_daemonset(rng, number) for number in range(3)),
    ]


def _deployment(rng: Random, number: int) -> Workload:
    forced, pod = _pod(rng)
    obj = _object(rng, "Deployment", "apps/v1", f"web-{number}")
    obj["spec"] = {"replicas": rng.choice((0, 1, 1, 2, 3, 4))} | _selected(f"web-{number}", pod)
    strategy = rng.choice(("default", "recreate", "surge", "replace", "percent"))
    if strategy == "recreate":
        obj["spec"]["strategy"] = {"type": "Recreate"}
    elif strategy != "default":
        fences: Any = {"surge": (2, 0), "replace": (0, 1), "percent": ("50%", "50%")}[strategy]
        rolling = {"maxSurge": fences[0], "maxUnavailable": fences[1]}
        obj["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
    obj["spec"] |= rng.choice(({}, {}, {"minReadySeconds": 1}, {"revisionHistoryLimit": 0}))
    return Workload("deployments", obj, forced)


def _packed(rng: Random) -> Iterator[Workload]:
    """More pods of one CPU than the pack nodes have room for."""
    for number in range(6):
        place = {"tolerations": [_PACK], "nodeSelector": {"pool": "pack"}}
        obj = _object(rng, "Deployment", "apps/v1", f"packed-{number}")
        pod = _pod_spec(place, {"cpu": "1"})
        obj["spec"] = {"replicas": 4} | _selected(f"packed-{number}", pod)
        yield Workload("deployments", obj, contended=True)


_SUCCEED = (("true",), ("sleep", "1"), ("sh", "-c", "sleep 2; exit 0"))
_FAIL = (("false",), ("sh", "-c", "sleep 1; exit 3"))
_LAST = (("sleep", "100000"),)


def _job(rng: Random, number: int) -> Workload:
    """If several pods can end a Job, their order would decide: such pods run one by one."""
    commands = rng.choice((_SUCCEED, _SUCCEED, _FAIL, _LAST))
    forced, pod = _pod(rng, rng.choice(commands), restartPolicy="Never")
    obj = _object(rng, "Job", "batch/v1", f"sum-{number}")
    spec: Json = {"template": {"spec": pod}, "backoffLimit": rng.choice((0, 0, 1))}
    spec["parallelism"] = 1 if commands is _FAIL else rng.choice((1, 1, 2, 3))
    completions = rng.choice((None, 1, 2, 4))
    if completions is not None:
        spec["completions"] = completions
        if rng.random() < 0.5:
            spec["completionMode"] = "Indexed"
    if commands is _LAST and rng.random() < 0.5:
        spec["activeDeadlineSeconds"] = 6
    spec |= rng.choice(({}, {}, {"suspend": True}))
    return Workload("jobs", obj | {"spec": spec}, forced)


def _statefulset(rng: Random, number: int) -> Workload:
    forced, pod = _pod(rng)
    obj = _object(rng, "StatefulSet", "apps/v1", f"db-{number}")
    obj["spec"] = _selected(f"db-{number}", pod) | {
        "replicas": rng.choice((0, 1, 2, 3)),
        "serviceName": "db",
        "podManagementPolicy": rng.choice(("OrderedReady", "Parallel")),
    }
    return Workload("statefulsets", obj, forced)


def _daemonset(rng: Random, number: int) -> Workload:
    place = ({}, {"nodeSelector": {"disk": "ssd"}}, {"tolerations": [{"operator": "Exists"}]})
    obj = _object(rng, "DaemonSet", "apps/v1", f"agent-{number}")
    obj["spec"] = _selected(f"agent-{number}", _pod_spec(place[number % 3], {}))
    return Workload("daemonsets", obj)


# -- changes -----------------------------------------------------------------------------------


def changes(seed: int, made: list[Workload]) -> list[tuple[Workload, Json]]:
    """Merge patches: scaled up and down, rolled out, resumed."""
    rng = Random(seed)
    patches = []
    for one in made:
        if one.contended or one.plural not in {"deployments", "statefulsets", "jobs"}:
            continue
        spec = one.obj["spec"]
        if one.plural == "jobs":
            if spec.get("suspend"):
                patches.append((one, {"spec": {"suspend": False}}))
            continue
        choices: list[Json] = [{}, {"replicas": rng.choice((0, 1, 2, 5))}]
        # One that is stuck is scaled in proportion by the real controller, and not here.
        if one.plural == "deployments" and one.forced != "nowhere":
            choices += [
                _with_image("registry.example/app:2"),
                _with_image("registry.example/app:2") | {"replicas": rng.choice((1, 3))},
                _with_image(None),
            ]
        change = rng.choice(choices)
        if change:
            patches.append((one, {"spec": change}))
    return patches


def _with_image(image: str | None) -> Json:
    """An annotation, as a merge patch cannot change one container of a list; None rolls back."""
    return {"template": {"metadata": {"annotations": {"image": image}}}}


# -- what is compared --------------------------------------------------------------------------


def summary(made: list[Workload], found: dict[str, list[Json]]) -> Json:
    """All that has to be the same; ``found`` are all objects by plural."""
    owners = {
        obj["metadata"]["uid"]: (plural, obj) for plural, objs in found.items() for obj in objs
    }
    pods: dict[str, list[Json]] = {}
    for pod in found["pods"]:
        if not pod["metadata"].get("deletionTimestamp"):
            pods.setdefault(_top(pod, owners), []).append(pod)
    by_name = {_name(plural, obj): obj for plural, objs in found.items() for obj in objs}
    told: Json = {}
    bound = 0
    for one in made:
        own = pods.get(one.name, [])
        if one.contended:
            bound += sum(bool(pod["spec"].get("nodeName")) for pod in own)
            continue
        told[one.name] = _state(one, by_name.get(one.name), own)
        if one.plural == "deployments":
            sets = _sets(one, found["replicasets"], owners)
            told[one.name]["sets"] = sets
    return told | {"packed": bound}


def _top(obj: Json, owners: dict[str, tuple[str, Json]]) -> str:
    """The name of the workload at the end of the chain of controllers."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller") and reference["uid"] in owners:
            plural, owner = owners[reference["uid"]]
            return _top(owner, owners) if plural == "replicasets" else _name(plural, owner)
    return ""


def _name(plural: str, obj: Json) -> str:
    metadata = obj["metadata"]
    return f"{plural}/{metadata.get('namespace', '')}/{metadata['name']}"


_IGNORED = {"conditions", "startTime", "completionTime", "collisionCount"}
_REVISIONS = {"currentRevision", "updateRevision", "currentReplicas", "updatedReplicas"}
"""Of StatefulSets: the embedded cluster does not keep their revisions."""


def _state(one: Workload, obj: Json | None, pods: list[Json]) -> Json:
    if obj is None:
        return {"missing": True}
    status = dict(obj.get("status") or {})
    ignored = _IGNORED | (_REVISIONS if one.plural == "statefulsets" else set())
    state: Json = {
        "conditions": sorted(
            [condition["type"], condition["status"], _reason(condition)]
            for condition in status.get("conditions") or ()
        ),
        "status": {name: value for name, value in status.items() if name not in ignored},
        "pods": sorted(map(list, Counter(map(_pod_state, pods)).items())),
    }
    if one.plural == "deployments":
        annotations = obj["metadata"].get("annotations") or {}
        state["revision"] = annotations.get("deployment.kubernetes.io/revision")
    if one.forced and one.forced != "nowhere":
        state["nodes"] = sorted({pod["spec"].get("nodeName", "") for pod in pods})
    if one.plural == "daemonsets":
        state["nodes"] = sorted(pod["spec"].get("nodeName", "") for pod in pods)
    return state


def _reason(condition: Json) -> str:
    """Whether the first updated pods count as progress is a race within the real controller."""
    reason: str = condition.get("reason", "")
    return "ReplicaSetUpdated" if reason == "NewReplicaSetCreated" else reason


def _pod_state(pod: Json) -> str:
    status = pod.get("status") or {}
    scheduled = next(
        (one for one in status.get("conditions") or () if one["type"] == "PodScheduled"), {}
    )
    bound = "bound" if pod["spec"].get("nodeName") else "unbound"
    return f"{status.get('phase')} {bound} {scheduled.get('reason', '')}"


def _sets(one: Workload, sets: list[Json], owners: dict[str, tuple[str, Json]]) -> list[Json]:
    mine = [replicaset for replicaset in sets if _top(replicaset, owners) == one.name]
    revision = "deployment.kubernetes.io/revision"
    return sorted(
        [replicaset["metadata"]["annotations"][revision], replicaset["spec"]["replicas"]]
        for replicaset in mine
    )
