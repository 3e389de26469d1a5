"""The objects that are wrapped, with what is declared of their pods, and the custom kinds.

Every pod template bears the label ``SET`` with the name of its pod set, so that the oracle need not
know how the dispatcher tells pod sets apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests import manifests

Json = dict[str, Any]
SET = "example.com/set"
CPU_M = 1000  # of every pod


@dataclass(frozen=True, slots=True)
class Item:
    """One object to wrap. ``declared`` are the pods of each set, ``later`` the sets of which pods
    come after others; ``ends`` is whether it ends by itself."""

    obj: Json
    declared: Mapping[str, int]
    ends: bool = False
    later: frozenset[str] = field(default_factory=frozenset)

    @property
    def kind(self) -> str:
        """Of the object."""
        return str(self.obj["kind"])

    @property
    def name(self) -> str:
        """Of the object."""
        return str(self.obj["metadata"]["name"])


def template(name: str, command: list[str] | None = None, policy: str = "Always") -> Json:
    """A pod template of a set."""
    container: Json = {
        "name": "main",
        "image": "app:1",
        "resources": {"requests": {"cpu": f"{CPU_M}m"}},
    }
    if command:
        container["command"] = command
    spec = {"containers": [container], "restartPolicy": policy, "terminationGracePeriodSeconds": 1}
    return {"metadata": {"labels": {SET: name}}, "spec": spec}


def templates(thing: Any) -> list[Json]:
    """The pod templates in an object, or the object itself if it is a Pod."""
    if isinstance(thing, list):
        return [found for one in thing for found in templates(one)]
    if not isinstance(thing, dict):
        return []
    if SET in ((thing.get("metadata") or {}).get("labels") or {}):
        return [thing]
    return [found for one in thing.values() for found in templates(one)]


def _made(api_version: str, kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _run(rng: Random) -> list[str]:
    return ["sleep", str(rng.choice((20, 90, 240)))]


def _selected(name: str, made: Json) -> tuple[Json, Json]:
    tags = {"app": name}
    made["metadata"]["labels"] |= tags
    return {"matchLabels": tags}, made


def deployment(rng: Random, name: str) -> Item:
    """Pods that do not end."""
    count = rng.randint(1, 3)
    selector, made = _selected(name, template(name))
    spec = {"replicas": count, "selector": selector, "template": made}
    return Item(_made("apps/v1", "Deployment", name, spec), {name: count})


def stateful_set(rng: Random, name: str) -> Item:
    """Pods that come one after the other, each when the one before is ready."""
    count = rng.randint(2, 3)
    selector, made = _selected(name, template(name))
    policy = rng.choice(("OrderedReady", "OrderedReady", "Parallel"))
    spec = {
        "replicas": count,
        "selector": selector,
        "template": made,
        "serviceName": name,
        "podManagementPolicy": policy,
    }
    later = frozenset({name} if policy == "OrderedReady" else ())
    return Item(_made("apps/v1", "StatefulSet", name, spec), {name: count}, later=later)


def pod(rng: Random, name: str) -> Item:
    """A bare Pod."""
    made = template(name, _run(rng) if rng.random() < 0.5 else None, "Never")
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name} | made["metadata"]}
    ends = "command" in made["spec"]["containers"][0]
    return Item(obj | {"spec": made["spec"]}, {name: 1}, ends)


def job_spec(rng: Random, name: str) -> tuple[Json, int]:
    """Some Job, and how many pods of it run at a time."""
    count = rng.randint(1, 3)
    spec: Json = {"parallelism": count, "completions": count * rng.choice((1, 1, 2))}
    spec["template"] = template(name, _run(rng), "Never")
    spec["backoffLimit"] = rng.choice((2, 6))
    if rng.random() < 0.4:
        spec["completionMode"] = "Indexed"
        if rng.random() < 0.6:
            del spec["backoffLimit"]
            spec["backoffLimitPerIndex"] = rng.choice((0, 1))
    return spec, count


def job(rng: Random, name: str) -> Item:
    """A Job, some of which delete themselves."""
    spec, count = job_spec(rng, name)
    if rng.random() < 0.3:
        spec["ttlSecondsAfterFinished"] = rng.choice((0, 5, 60))
    return Item(_made("batch/v1", "Job", name, spec), {name: count}, ends=True)


def cron_job(rng: Random, name: str) -> Item:
    """A Job every minute, of which no room is kept."""
    del rng
    spec = {"template": template(name, ["sleep", "30"], "Never")}
    made = {"schedule": "* * * * *", "jobTemplate": {"spec": spec}}
    return Item(_made("batch/v1", "CronJob", name, made), {name: 0})


def job_set(rng: Random, name: str) -> Item:
    """Two replicated jobs, the second of which may wait for the first."""
    waits = rng.choice(("Ready", "Complete", "InOrder", ""))
    jobs: list[Json] = []
    declared = {}
    for number, role in enumerate(("first", "second")):
        count, replicas = rng.randint(1, 2), rng.choice((1, 1, 2))
        declared[f"{name}-{role}"] = count * replicas
        inner = {"parallelism": count, "completions": count, "backoffLimit": rng.choice((0, 2))}
        inner["template"] = template(f"{name}-{role}", _run(rng), "Never")
        made: Json = {"name": role, "replicas": replicas, "template": {"spec": inner}}
        if number and waits in ("Ready", "Complete"):
            made["dependsOn"] = [{"name": "first", "status": waits}]
        jobs.append(made)
    spec: Json = {"replicatedJobs": jobs, "failurePolicy": {"maxRestarts": rng.choice((0, 1, 3))}}
    if waits == "InOrder":
        spec["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
    later = frozenset({f"{name}-second"} if waits else ())
    obj = _made("jobset.x-k8s.io/v1alpha2", "JobSet", name, spec)
    return Item(obj, declared, ends=True, later=later)


def leader_worker_set(rng: Random, name: str) -> Item:
    """Groups whose workers may wait for their leader."""
    groups, size = rng.choice((1, 1, 2)), rng.randint(2, 3)
    policy = rng.choice(("LeaderReady", "LeaderReady", "LeaderCreated"))
    leader, worker = f"{name}-leader", f"{name}-worker"
    inner = {"size": size, "restartPolicy": "None", "leaderTemplate": template(leader)}
    inner["workerTemplate"] = template(worker)
    spec = {"replicas": groups, "startupPolicy": policy, "leaderWorkerTemplate": inner}
    declared = {leader: groups, worker: groups * (size - 1)}
    obj = _made("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", name, spec)
    return Item(obj, declared, later=frozenset({worker} if policy == "LeaderReady" else ()))


def _ray(rng: Random, name: str) -> tuple[Json, dict[str, int]]:
    head, worker = f"{name}-head", f"{name}-worker"
    count = rng.randint(1, 2)
    group = {"groupName": "g", "replicas": count, "minReplicas": 0, "maxReplicas": 5}
    group["template"] = template(worker)
    spec = {"headGroupSpec": {"rayStartParams": {}, "template": template(head)}}
    return spec | {"workerGroupSpecs": [group]}, {head: 1, worker: count}


def ray_cluster(rng: Random, name: str) -> Item:
    """A head and a group of workers, for ever."""
    spec, declared = _ray(rng, name)
    return Item(_made("ray.io/v1", "RayCluster", name, spec), declared)


def ray_job(rng: Random, name: str) -> Item:
    """A cluster, and a pod that submits the job once the cluster is ready."""
    inner, declared = _ray(rng, name)
    submitter = f"{name}-submitter"
    spec: Json = {"entrypoint": "python job.py", "rayClusterSpec": inner}
    spec["submitterPodTemplate"] = template(submitter, _run(rng), "Never")
    spec["backoffLimit"] = rng.choice((0, 1, 2))
    spec["shutdownAfterJobFinishes"] = rng.random() < 0.5
    obj = _made("ray.io/v1", "RayJob", name, spec)
    later = frozenset({submitter})
    return Item(obj, declared | {submitter: 1}, ends=True, later=later)


def mpi_job(rng: Random, name: str) -> Item:
    """A launcher, which may wait for the workers, and workers, which may stay at the end."""
    launcher, worker, count = f"{name}-launcher", f"{name}-worker", rng.randint(1, 3)
    policy = rng.choice(("WaitForWorkersReady", "AtStartup"))
    spec: Json = {
        "launcherCreationPolicy": policy,
        "runPolicy": {"cleanPodPolicy": rng.choice(("None", "Running", "All"))},
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "template": template(launcher, _run(rng), "Never")},
            "Worker": {"replicas": count, "template": template(worker, None, "Never")},
        },
    }
    obj = _made("kubeflow.org/v2beta1", "MPIJob", name, spec)
    later = frozenset({launcher} if policy != "AtStartup" else ())
    return Item(obj, {launcher: 1, worker: count}, ends=True, later=later)


def widget(rng: Random, name: str) -> Item:
    """A kind that no table has: a driver, which makes workers when it has been ready for long."""
    driver, worker, count = f"{name}-driver", f"{name}-worker", rng.randint(1, 2)
    spec = {
        "driver": {"template": template(driver)},
        "worker": {"template": template(worker), "replicas": count},
        "afterSeconds": rng.choice((0, 20, 100)),
    }
    obj = _made("example.com/v1", "Widget", name, spec)
    return Item(obj, {driver: 1, worker: count}, later=frozenset({worker}))


MAKERS = (
    *(deployment, deployment, stateful_set, stateful_set, pod, job, job, job, cron_job),
    *(job_set, job_set, leader_worker_set, ray_cluster, ray_cluster, ray_job, ray_job),
    *(mpi_job, widget),
)


def wrapped(name: str, dialect: str, items: list[Item]) -> Json:
    """An AppWrapper around them."""
    objs = [item.obj for item in items]
    if dialect == "v1beta2":
        made = manifests.components(name, *objs)
        for component, item in zip(made["spec"]["components"], items, strict=True):
            if item.kind == "Widget":
                component["podSets"] = [
                    {"replicas": 1, "path": "template.spec.driver.template"},
                    {
                        "replicas": item.obj["spec"]["worker"]["replicas"],
                        "path": "template.spec.worker.template",
                    },
                ]
        return made
    made = manifests.generic(name, *objs)
    for one, item in zip(made["spec"]["resources"]["GenericItems"], items, strict=True):
        if item.ends:
            one["completionstatus"] = "Complete, Completed, Succeeded"
        if item.kind == "Widget":
            one["custompodresources"] = [
                {"replicas": sum(item.declared.values()), "requests": {"cpu": f"{CPU_M}m"}}
            ]
    return made


_CUSTOM = (
    ("jobset.x-k8s.io", "v1alpha2", "JobSet"),
    ("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet"),
    ("ray.io", "v1", "RayCluster"),
    ("ray.io", "v1", "RayJob"),
    ("kubeflow.org", "v2beta1", "MPIJob"),
    ("example.com", "v1", "Widget"),
)


def custom_kinds() -> list[Json]:
    """Their CRDs, which take everything."""
    found = []
    for group, version, kind in _CUSTOM:
        plural = f"{kind.lower()}s"
        served = {
            "name": version,
            "served": True,
            "storage": True,
            "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            },
            "subresources": {"status": {}},
        }
        spec = {
            "group": group,
            "names": {"plural": plural, "kind": kind, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [served],
        }
        made = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        found.append(made | {"metadata": {"name": f"{plural}.{group}"}, "spec": spec})
    return found
