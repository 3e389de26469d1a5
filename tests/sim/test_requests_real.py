"""The judge of the dispatcher's arithmetic is judged by a real kube-scheduler, pod by pod.

A node has one unit less of everything than our arithmetic says that it takes: the scheduler must
find each of these resources insufficient, and no other. Then it has exactly that: the pod must be
bound. So every figure is right from both sides.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any, TypeVar

import pytest

from mcad.api.pods import read_pod
from mcad.api.podspec import effective_request
from mcad.kube.types import Json
from mcad.sim.objects.requests import requested, whole
from tests import budget
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import control_plane
from tests.sim.randompods import OVERHEADS, RESOURCES, random_spec, random_status, stored

__all__ = ["control_plane"]

pytestmark = pytest.mark.controlplane

Amounts = dict[str, int]
T = TypeVar("T")

NODES = 200 if budget.SOAK else 80
ROUNDS = int(os.environ.get("JUDGED_ROUNDS", "1"))  # 5 are 2,000 pods, which all agreed
PODS = "/api/v1/namespaces/default/pods"
CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
MERGE = "application/merge-patch+json"
WORKERS = 8
SEEN_S = 0.5  # until a scheduler on a busy machine has seen a node: it watches nodes and pods apart
PROBE = {"cpu": "1m", "memory": "1", "ephemeral-storage": "1"}
_INSUFFICIENT = re.compile(r"1 Insufficient (\S+?)[,.] ")


class Fleet:
    """Nodes whose room is set anew in each round; pod ``p<i>`` may only go to node ``n<i>``."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.nodes = [f"n{number}" for number in range(NODES)]
        self.pods = [f"p{number}" for number in range(NODES)]
        self._pool = ThreadPoolExecutor(WORKERS)
        for number, overhead in enumerate(OVERHEADS):
            named = {"metadata": {"name": f"class-{number}"}, "handler": "any"}
            self.plane.ask("POST", CLASSES, named | {"overhead": {"podFixed": overhead}})
        self.each(lambda name: plane.add_node(name, wait=False), self.nodes)
        plane.wait_for_nodes(self.nodes)
        self.clear()

    def each(self, do: Callable[..., T], *args: Iterable[Any]) -> list[T]:
        return list(self._pool.map(do, *args))

    def furnish(self, rooms: Iterable[Amounts]) -> None:
        """Let the nodes have this room, and let the scheduler know of it before it knows more."""
        self.each(self._furnish, self.nodes, rooms)
        time.sleep(SEEN_S)

    def clear(self) -> None:
        """No pods, and no room that a pod of the next round could be given."""
        self.plane.ask("DELETE", f"{PODS}?gracePeriodSeconds=0")
        self.plane.wait_for(lambda: not self._live(), 60, "the pods of the round are gone")
        self.furnish({} for _ in self.nodes)

    def put(self, name: str, spec: Json, **meta: Any) -> Json:
        """A pod. Its overhead comes from a RuntimeClass; clients may not set it."""
        overhead = spec.get("overhead")
        named = {"runtimeClassName": f"class-{OVERHEADS.index(overhead)}"} if overhead else {}
        rest = {key: value for key, value in spec.items() if key != "overhead"}
        return self.plane.ask(
            "POST", PODS, {"metadata": {"name": name, **meta}, "spec": rest | named}
        )

    def occupy(self, node: str, spec: Json, status: Json) -> Json:
        """A pod that is on the node, and stays as it is reported."""
        still = {"controlplane.test/start-delay": "9h"}
        self.put(f"on-{node}", spec | {"nodeName": node}, annotations=still)
        path = f"{PODS}/on-{node}/status"
        return self.plane.ask("PATCH", path, {"status": status}, content_type=MERGE)

    def judge(self, wanted: list[Amounts], used: list[Amounts]) -> None:
        """Pod i waits for node i, which has a unit too little; then it gets just enough."""
        refused = self.plane.wait_for(self._refused, 60, "every pod is refused")
        for name, request in zip(self.pods, wanted, strict=True):
            told = set(_INSUFFICIENT.findall(f"{_refusal(refused[name])} "))
            assert told == request.keys(), (_refusal(refused[name]), request, refused[name]["spec"])
        self.furnish(_sum(one, other) for one, other in zip(wanted, used, strict=True))
        try:
            self.plane.wait_for(lambda: not self._waiting(), 60, "every pod is bound")
        except TimeoutError:
            left = [(one["spec"], _refusal(one)) for one in self._waiting()[:3]]
            raise AssertionError(left) from None

    def _furnish(self, name: str, room: Amounts) -> None:
        amounts = {key: f"{n}m" if key == "cpu" else str(n) for key, n in room.items()}
        # Nothing of the round before may stay: null takes a resource away.
        allocatable = dict.fromkeys(RESOURCES) | {"pods": "9"} | amounts
        status = {"capacity": allocatable, "allocatable": allocatable}
        self.plane.ask(
            "PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, content_type=MERGE
        )

    def _live(self) -> dict[str, Json]:
        return {one["metadata"]["name"]: one for one in self.plane.ask("GET", PODS)["items"]}

    def _refused(self) -> dict[str, Json] | None:
        found = self._live()
        return found if all(_refusal(found[one]) for one in self.pods) else None

    def _waiting(self) -> list[Json]:
        found = self._live()
        return [found[one] for one in self.pods if not found[one]["spec"].get("nodeName")]


def _pinned(spec: Json, node: str) -> Json:
    one = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [one]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return spec | {"affinity": {"nodeAffinity": required}}


def _refusal(pod: Json) -> str:
    for one in (pod.get("status") or {}).get("conditions") or ():
        if one["type"] == "PodScheduled" and one["status"] == "False":
            return str(one["message"])
    return ""


def _counted(spec: Json, status: Json | None = None) -> Amounts:
    return {name: size for name, size in whole(requested(spec, status)).items() if size}


def _sum(one: Amounts, other: Amounts, less: int = 0) -> Amounts:
    return {name: size + other.get(name, 0) - less for name, size in one.items()}


def _asking(rng: Random) -> Json:
    """A pod that requests anything at all."""
    while True:
        spec = random_spec(rng)
        if _counted(stored(spec)):
            return spec


@pytest.fixture(scope="module", name="fleet")
def fleet_of_nodes(control_plane: ControlPlane) -> Fleet:
    return Fleet(control_plane)


def test_what_a_pod_asks_for_is_what_kube_scheduler_looks_for(fleet: Fleet) -> None:
    rng = Random(2026)
    for _ in range(ROUNDS):
        specs = [_asking(rng) for _ in fleet.nodes]
        wanted = [_counted(stored(one)) for one in specs]
        for spec, request in zip(specs, wanted, strict=True):
            assert dict(effective_request(spec)) == request | {"pods": 1}, spec
        fleet.furnish(_sum(one, {}, less=1) for one in wanted)
        fleet.each(fleet.put, fleet.pods, map(_pinned, specs, fleet.nodes))
        fleet.judge(wanted, [{} for _ in wanted])
        fleet.clear()


def test_what_a_pod_takes_while_it_is_resized_is_what_kube_scheduler_counts(fleet: Fleet) -> None:
    rng = Random(2027)
    probe = {"name": "c", "image": "busybox", "resources": {"requests": PROBE}}
    for _ in range(ROUNDS):
        specs = [random_spec(rng) for _ in fleet.nodes]
        statuses = [random_status(rng, one) for one in specs]
        live = fleet.each(fleet.occupy, fleet.nodes, specs, statuses)
        used = [_counted(one["spec"], one["status"]) for one in live]
        for pod, taken in zip(live, used, strict=True):
            assert dict(read_pod(pod).request) == taken | {"pods": 1}, pod
        wanted = [dict.fromkeys(PROBE, 1) for _ in live]
        fleet.furnish(_sum(one, other, less=1) for one, other in zip(wanted, used, strict=True))
        fleet.each(
            fleet.put, fleet.pods, (_pinned({"containers": [probe]}, one) for one in fleet.nodes)
        )
        fleet.judge(wanted, used)
        fleet.clear()
