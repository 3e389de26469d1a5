"""Small stories in which everything that a dispatcher does happens once: a few dozen writes each.

A pod asks for one CPU and nodes have whole ones, so that there is no question of where pods go: if
a pod ever finds no room, then too much was admitted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from mcad.controller.kinds import APPWRAPPERS, NODES
from mcad.kube.client import Client

Json = dict[str, Any]
NAMESPACE = "default"
Action = Callable[[Client], Awaitable[object]]


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """What users do, and when, in virtual seconds; ``cpus`` per node.

    Pods of the ``crowded`` AppWrappers may find no room, because what they had is taken away.
    """

    name: str
    cpus: tuple[int, ...]
    acts: tuple[tuple[float, Action], ...]
    ends: dict[str, str]  # state of every AppWrapper at the end, "" where it is deleted
    crowded: tuple[str, ...] = ()


def container(seconds: int = 0) -> Json:
    """One CPU for a while, or for ever."""
    command = ["sleep", str(seconds)] if seconds else ["sleep", "infinity"]
    return {
        "name": "work",
        "image": "busybox",
        "command": command,
        "resources": {"requests": {"cpu": "1", "memory": "64Mi"}},
    }


def pod(name: str, seconds: int = 0) -> Json:
    """A bare pod."""
    spec = {"restartPolicy": "Never", "containers": [container(seconds)]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def job(name: str, pods: int, seconds: int) -> Json:
    """So many pods at once, that end."""
    template = {"spec": {"restartPolicy": "Never", "containers": [container(seconds)]}}
    spec = {"parallelism": pods, "completions": pods, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def deployment(name: str, replicas: int) -> Json:
    """Pods that do not end."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container()]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def config(name: str) -> Json:
    """Something without pods."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}


def wrapper(name: str, *templates: Json, complete: bool = False, priority: int = 0) -> Json:
    """A v1beta1 AppWrapper of these items."""
    items: list[Json] = [{"generictemplate": template} for template in templates]
    if complete:
        for item in items:
            if item["generictemplate"]["kind"] == "Job":
                item["completionstatus"] = "Complete"
    return {
        "apiVersion": APPWRAPPERS.api_version,
        "kind": "AppWrapper",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"priority": priority, "resources": {"GenericItems": items}},
    }


def components(name: str, *templates: Json) -> Json:
    """A v1beta2 AppWrapper of these items."""
    return {
        "apiVersion": APPWRAPPERS.api_version,
        "kind": "AppWrapper",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"components": [{"template": template} for template in templates]},
    }


def _refused(name: str) -> Json:
    """A Deployment that no server takes: its selector does not select its pods."""
    made = deployment(name, 1)
    made["spec"]["selector"] = {"matchLabels": {"app": "another"}}
    return made


def create(obj: Json) -> Action:
    """A user creates an AppWrapper."""
    return lambda client: client.create(APPWRAPPERS, NAMESPACE, obj)


def delete(name: str) -> Action:
    """A user deletes an AppWrapper."""
    return lambda client: client.delete(APPWRAPPERS, NAMESPACE, name)


def edit(name: str, patch: Json) -> Action:
    """A user changes an AppWrapper by a merge patch."""
    return lambda client: client.patch(APPWRAPPERS, NAMESPACE, name, patch)


IN_TURN = Scenario(
    "one waits until the other is deleted",
    cpus=(2, 1),
    acts=(
        (0.0, create(wrapper("first", config("first"), deployment("first", 3)))),
        (1.0, create(wrapper("second", deployment("second", 2), pod("second")))),
        (40.0, delete("first")),
    ),
    ends={"first": "", "second": "Running"},
)

COMPLETED = Scenario(
    "jobs complete, and what waits follows in order",
    cpus=(2, 2),
    acts=(
        (0.0, create(wrapper("a", job("a", 4, 20), complete=True))),
        (0.1, create(wrapper("b", job("b-1", 2, 15), job("b-2", 1, 25), complete=True))),
        (0.2, create(components("c", job("c", 2, 10), config("c")))),
        (0.3, create(wrapper("d", job("d", 4, 10), complete=True, priority=9))),
    ),
    ends=dict.fromkeys("abcd", "Completed"),
)

ROLLED_BACK = Scenario(
    "a dispatch that the server refuses in the middle is taken back",
    cpus=(3,),
    acts=(
        (0.0, create(wrapper("bad", config("bad"), deployment("bad", 2), _refused("worse")))),
        (1.1, create(wrapper("good", deployment("good", 3)))),
    ),
    ends={"bad": "Failed", "good": "Running"},
)

DELETED = Scenario(
    "one is deleted while it is dispatched, one while it waits, and one comes back by its name",
    cpus=(2,),
    acts=(
        (0.0, create(wrapper("a", config("x"), pod("a-0"), pod("a-1")))),
        (0.01, delete("a")),
        (0.02, create(wrapper("b", pod("b-0"), pod("b-1")))),
        (0.03, create(wrapper("c", pod("c-0")))),
        (5.0, delete("c")),
        (6.0, create(wrapper("a", config("x"), pod("a-0"), pod("a-1")))),
        (20.0, delete("b")),
    ),
    ends={"a": "Running", "b": "", "c": ""},
)

EDITED = Scenario(
    "what waits is edited until it fits",
    cpus=(2, 1),
    acts=(
        (0.0, create(wrapper("a", deployment("a", 2)))),
        (1.0, create(wrapper("b", deployment("b", 2)))),
        (2.0, create(wrapper("c", job("c", 1, 30), complete=True))),
        (50.0, edit("b", wrapper("b", deployment("b", 1)))),
    ),
    ends={"a": "Running", "b": "Running", "c": "Completed"},
)

SUSPENDED = Scenario(
    "one is suspended, another takes its room, and it runs again when that is over",
    cpus=(2,),
    acts=(
        (0.0, create(components("a", config("a"), deployment("a", 2)))),
        (5.0, create(wrapper("b", job("b", 2, 20), complete=True))),
        (10.0, edit("a", {"spec": {"suspend": True}})),
        (60.0, edit("a", {"spec": {"suspend": False}})),
    ),
    ends={"a": "Running", "b": "Completed"},
)

NODE_LOST = Scenario(
    "a node is taken away under a job, and what waits stays behind it",
    cpus=(2, 2),
    acts=(
        (0.0, create(wrapper("a", job("a", 2, 60), complete=True))),
        (1.0, create(wrapper("b", job("b", 2, 60), complete=True))),
        (2.0, create(wrapper("c", job("c", 2, 10), complete=True))),
        (20.0, lambda client: client.delete(NODES, None, "node-1")),
    ),
    ends=dict.fromkeys("abc", "Completed"),
    crowded=("a", "b"),
)

SCENARIOS = (IN_TURN, COMPLETED, ROLLED_BACK, DELETED, EDITED, SUSPENDED, NODE_LOST)
