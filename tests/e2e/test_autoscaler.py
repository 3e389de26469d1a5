"""The dispatcher and the real cluster-autoscaler, from zero nodes (`MCAD_CLUSTER_AUTOSCALER`)."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.controlplane.autoscaler import GROUP, NodeGroup, autoscaler, binary_or_skip, kinds
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import controlplane_or_skip
from tests.e2e.process import ACCOUNT, NAMESPACE, Dispatcher, install, printed
from tests.e2e.support import appwrapper, conditions_of, create, delete, deployment, items, pods

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]
GPU = "nvidia.com/gpu"
SMALL = NodeGroup("small", "4200m", 40)
LARGE = NodeGroup("large", "16200m", 12, memory="128Gi")
GPUS = NodeGroup(
    "gpus", "8200m", 4, extended={GPU: "8"}, taints=[{"key": GPU, "effect": "NoSchedule"}]
)
"""Two tenths of a CPU are left for what a node runs itself: the autoscaler counts a kube-proxy."""
LOOK_S = 0.2
START_S, TOLD_S = 2.0, 60.0
WASTE = 1.1
VIAS = ("ProvisioningRequest", "CapacityBuffer", "PlaceholderPods")
REQUESTS = "/apis/autoscaling.x-k8s.io/v1/provisioningrequests"
BUFFERS = "/apis/autoscaling.x-k8s.io/v1beta1/capacitybuffers"
LABEL = "workload.codeflare.dev/scale-up-uid"
OWNER = "workload.codeflare.dev/appwrapper"

SHAPES: tuple[tuple[tuple[int, str], ...], ...] = (
    ((6, "3"),),
    ((4, "1"),),
    ((2, "2"),),
    ((1, "4"),),
    ((3, "12"),),
    ((8, "500m"),),
    ((2, "gpu"),),
    ((1, "2"), (1, "gpu")),
    ((5, "2"),),
    ((3, "3"), (2, "1")),
    ((1, "16"),),
    ((10, "1"),),
    ((2, "4"),),
    ((7, "700m"),),
    ((4, "3"),),
    ((2, "6"),),
    ((1, "100m"),),
    ((6, "1500m"),),
)
"""Pods and CPUs of each pod set; `gpu` is a pod with all GPUs of a node."""
NEVER = ((1, "64"),)
TOO_MANY = ((9, "gpu"),)


def gang(name: str, shape: tuple[tuple[int, str], ...]) -> Json:
    """An AppWrapper that runs until it is deleted."""
    return appwrapper(name, *(_part(f"{name}-{n}", *one) for n, one in enumerate(shape)))


def _part(name: str, count: int, cpu: str) -> Json:
    if cpu != "gpu":
        return deployment(name, count, cpu)
    made = deployment(name, count, "1", tolerations=[{"key": GPU, "operator": "Exists"}])
    resources = made["spec"]["template"]["spec"]["containers"][0]["resources"]
    resources["requests"][GPU], resources["limits"] = "8", {GPU: "8"}
    return made


@dataclass
class Watcher:
    """When nodes took pods first, when pods had nodes first, and what was said first, by looks."""

    plane: ControlPlane
    usable: dict[str, float] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    seen: dict[str, float] = field(default_factory=dict)  # pods: uid -> first look
    bound: dict[str, tuple[float, str, str]] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    ends: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.ends.wait(LOOK_S):
            now = time.monotonic()
            nodes = items(self.plane, "/api/v1/nodes")
            for node in nodes:
                if _is_usable(node):
                    self.usable.setdefault(node["metadata"]["name"], now)
                self.groups[node["metadata"]["name"]] = node["metadata"]["labels"][GROUP]
            self.removed |= self.groups.keys() - {one["metadata"]["name"] for one in nodes}
            for pod in items(self.plane, "/api/v1/pods"):
                self._look(pod, now)

    def _look(self, pod: Json, now: float) -> None:
        tags, uid = pod["metadata"].get("labels") or {}, pod["metadata"]["uid"]
        if OWNER not in tags or LABEL in tags:
            return
        self.seen.setdefault(uid, now)
        if node := pod["spec"].get("nodeName"):
            self.bound.setdefault(uid, (now, node, tags[OWNER]))

    def starts(self) -> dict[str, float]:
        """By AppWrapper: seconds from the last of its nodes that was usable to its last pod that
        had one."""
        found: dict[str, list[tuple[float, str]]] = {}
        for at, node, owner in self.bound.values():
            found.setdefault(owner, []).append((at, node))
        return {
            owner: max(at for at, _ in those) - max(self.usable[node] for _, node in those)
            for owner, those in found.items()
        }

    def late(self) -> int:
        """How many pods had no node for five seconds."""
        return sum(
            self.bound[uid][0] - at > 5.0 for uid, at in self.seen.items() if uid in self.bound
        )


def _is_usable(node: Json) -> bool:
    ready = [one for one in node.get("status", {}).get("conditions", []) if one["type"] == "Ready"]
    taints = node["spec"].get("taints", [])
    is_new = any(one["key"].startswith("node.kubernetes.io/") for one in taints)
    return bool(ready) and ready[0]["status"] == "True" and not is_new


@contextmanager
def watching(plane: ControlPlane) -> Iterator[Watcher]:
    watcher = Watcher(plane)
    thread = threading.Thread(target=watcher.run)
    thread.start()
    try:
        yield watcher
    finally:
        watcher.ends.set()
        thread.join()


@contextmanager
def growing(via: str, *groups: NodeGroup, unneeded: str = "10m") -> Iterator[ControlPlane]:
    """A control plane without nodes, the autoscaler and the dispatcher."""
    binary_or_skip()
    settings = ("--set", f"scaleUp.via={via}")
    rights = ("--namespace", NAMESPACE, "--service-account", ACCOUNT)
    both = printed("crd") + "\n---\n" + kinds()
    with controlplane_or_skip(kinds=both) as plane:
        account = install(plane)
        plane.apply(printed("rbac", *rights, *settings))
        with (
            autoscaler(plane, *groups, unneeded=unneeded),
            Dispatcher(plane, account, *settings) as dispatcher,
        ):
            yield plane
            assert "forbidden" not in dispatcher.log().lower()


def left(plane: ControlPlane) -> list[str]:
    """What exists of requests."""
    paths = (REQUESTS, BUFFERS, "/api/v1/podtemplates", "/api/v1/pods")
    return [
        f"{path}: {one['metadata']['name']}"
        for path in paths
        for one in items(plane, path)
        if LABEL in (one["metadata"].get("labels") or {})
    ]


def running(plane: ControlPlane) -> set[str]:
    """The AppWrappers all of whose pods run."""
    wanted = {f"gang-{n}": sum(c for c, _ in shape) for n, shape in enumerate(SHAPES)}
    there: dict[str, int] = {}
    for one in pods(plane):
        owner = one["metadata"]["labels"].get(OWNER, "")
        there[owner] = there.get(owner, 0) + (one["status"]["phase"] == "Running")
    return {name for name, count in wanted.items() if there.get(name) == count}


def needed(groups: Mapping[str, str], shapes: Iterable[Sequence[tuple[int, str]]] = SHAPES) -> int:
    """How many of these nodes (name -> group) suffice for the gangs: nodes are left out, small ones
    first, as long as all pods have a place."""
    sets = [one for shape in shapes for one in shape]
    sizes = sorted((_millis(cpu) for count, cpu in sets for _ in range(count)), reverse=True)
    with_gpus = sum(count for count, cpu in sets if cpu == "gpu")
    room = sorted(CPUS[group] for group in groups.values() if group != GPUS.name)
    sizes = [size for size in sizes if size]
    for size in list(room):
        fewer = list(room)
        fewer.remove(size)
        if _fits(sizes, fewer):
            room = fewer
    return len(room) + with_gpus


CPUS = {one.name: int(one.cpu[:-1]) - 200 for one in (SMALL, LARGE)}


def _millis(cpu: str) -> int:
    """0 for pods with GPUs: each has a node of its own."""
    if cpu == "gpu":
        return 0
    return int(cpu[:-1]) if cpu.endswith("m") else int(cpu) * 1000


def _fits(sizes: Sequence[int], room: Sequence[int]) -> bool:
    """Whether the largest pods first, each on the fullest node that takes it, all have a place."""
    free = list(room)
    for size in sizes:
        best = min((one for one in free if one >= size), default=None)
        if best is None:
            return False
        free.remove(best)
        free.append(best - size)
    return True


def test_gangs_of_all_shapes_start_from_zero_nodes_and_the_impossible_block_none() -> None:
    with growing("ProvisioningRequest", SMALL, LARGE, GPUS) as plane, watching(plane) as watcher:
        create(plane, gang("never", NEVER), gang("too-many", TOO_MANY))
        began = time.monotonic()
        for number, shape in enumerate(SHAPES):
            create(plane, gang(f"gang-{number}", shape))

        def told(name: str) -> bool:
            said = conditions_of(plane, name).get("ScaleUp", {})
            return said.get("status") == "False" and "apacity is not found" in said["message"]

        for name in ("never", "too-many"):
            plane.wait_for(lambda name=name: told(name), TOLD_S, f"{name} is told why it waits")
        assert time.monotonic() - began <= TOLD_S
        plane.wait_for(lambda: len(running(plane)) == len(SHAPES), 400, "all that can run do")
        time.sleep(2 * LOOK_S)
        made, starts, least = len(watcher.groups), watcher.starts(), needed(watcher.groups)
        print(f"nodes: {Counter(watcher.groups.values())}, needed: {least}")
        print(f"{len(watcher.seen)} pods, late: {watcher.late()}")
        print("seconds from the last node to the start:", sorted(starts.values()))
        assert max(starts.values()) <= START_S + LOOK_S, starts
        assert watcher.late() <= 0.002 * len(watcher.seen)
        assert not watcher.removed
        assert made <= WASTE * least
        delete(plane)
        plane.wait_for(lambda: not left(plane), 60, "no request is left")


@pytest.mark.parametrize("via", ["CapacityBuffer", "PlaceholderPods"])
def test_buffers_and_placeholders_bring_nodes_and_what_is_idle_goes(via: str) -> None:
    with (
        growing(via, SMALL, LARGE, GPUS, unneeded="20s") as plane,
        watching(plane) as watcher,
    ):
        create(plane, *(gang(f"gang-{n}", shape) for n, shape in enumerate(SHAPES)))
        plane.wait_for(lambda: len(running(plane)) == len(SHAPES), 300, "all of them run")
        time.sleep(2 * LOOK_S)
        starts = watcher.starts()
        print(f"nodes: {Counter(watcher.groups.values())}, needed: {needed(watcher.groups)}")
        print(f"{len(watcher.seen)} pods, late: {watcher.late()}", sorted(starts.values()))
        assert watcher.late() <= 0.002 * len(watcher.seen)
        plane.wait_for(lambda: not left(plane), 60, "no request is left")
        delete(plane)
        half = len(watcher.groups) // 2  # the provider kwok forgets some when it removes many
        plane.wait_for(lambda: len(items(plane, "/api/v1/nodes")) <= half, 120, "idle nodes go")
