"""Objects to wrap, and the AppWrappers around them, as users write them."""

from __future__ import annotations

from typing import Any

from mcad.api.labels import GROUP, KIND, QUOTA_GROUP, QUOTA_KIND, TREE
from mcad.api.tolerance import PREFIX as TOLERANCE

Json = dict[str, Any]


def pod(
    name: str, cpu: str = "100m", seconds: float | None = None, extended: Json | None = None
) -> Json:
    """A bare pod; with ``seconds`` it succeeds after so long."""
    requests = {"cpu": cpu, "memory": "16Mi", **(extended or {})}
    resources = {"requests": requests} | ({"limits": extended} if extended else {})
    container: Json = {"name": "main", "image": "busybox", "resources": resources}
    spec: Json = {"containers": [container], "terminationGracePeriodSeconds": 0}
    if seconds is not None:
        container["command"] = ["sleep", str(seconds)]
        spec["restartPolicy"] = "Never"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def failing(name: str, cpu: str, seconds: float, code: int = 1) -> Json:
    """A bare pod that fails after so long."""
    made = pod(name, cpu, seconds)
    made["spec"]["containers"][0]["command"] = ["sh", "-c", f"sleep {seconds}; exit {code}"]
    return made


def bearing(obj: Json, **values: str) -> Json:
    """An AppWrapper with these annotations of v1beta2's fault tolerance."""
    notes = {f"{TOLERANCE}{name}": value for name, value in values.items()}
    obj["metadata"].setdefault("annotations", {}).update(notes)
    return obj


def config_map(name: str, data: Json | None = None) -> Json:
    """An object without pods."""
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data or {"k": "v"}}


def deployment(name: str, replicas: int = 2, cpu: str = "100m") -> Json:
    """A Deployment that runs for ever."""
    tags = {"app": name}
    template = {"metadata": {"labels": tags}, "spec": pod(name, cpu)["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": dict(tags)}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def job(name: str, pods: int, cpu: str, seconds: float, waves: int = 1) -> Json:
    """A Job with this parallelism, in so many waves."""
    template = {"spec": pod(name, cpu, seconds)["spec"]}
    completions = pods * waves
    spec = {"parallelism": pods, "completions": completions, "backoffLimit": 0}
    spec["template"] = template
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def wrapper(name: str, spec: Any, version: str = "v1beta1") -> Json:
    """An AppWrapper with this spec."""
    meta = {"name": name}
    return {"apiVersion": f"{GROUP}/{version}", "kind": KIND, "metadata": meta, "spec": spec}


def generic(name: str, *templates: Any, completion: str = "", **spec: Any) -> Json:
    """In the v1beta1 dialect; ``completion`` is the completionstatus of the first item."""
    items: list[Json] = [{"generictemplate": template} for template in templates]
    if completion:
        items[0]["completionstatus"] = completion
    return wrapper(name, {"resources": {"GenericItems": items}, **spec})


def components(name: str, *templates: Any, **spec: Any) -> Json:
    """In the v1beta2 dialect."""
    made = [{"template": template} for template in templates]
    return wrapper(name, {"components": made, **spec}, "v1beta2")


def subtree(name: str, tree: str, parent: str = "", *, hard: bool = False, **cpu: int) -> Json:
    """A QuotaSubtree with so many CPUs per node; nodes in ``hard`` do not borrow."""
    children = [
        {"name": one, "quotas": {"requests": {"cpu": str(share)}, "hardLimit": hard}}
        for one, share in cpu.items()
    ]
    meta = {"name": name, "labels": {TREE: tree}}
    spec = {"parent": parent, "children": children}
    return {"apiVersion": f"{QUOTA_GROUP}/v1alpha1", "kind": QUOTA_KIND, "metadata": meta} | {
        "spec": spec
    }
