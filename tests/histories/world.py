"""One history in virtual time: the embedded cluster, played operators, a dispatcher, and users."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from random import Random
from typing import Any

from mcad.api.crd import crds
from mcad.api.labels import GROUP
from mcad.sim import failures
from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.cluster import Cluster
from mcad.sim.controllers.base import Controller
from mcad.sim.controllers.kubelet import Kubelet
from mcad.sim.controllers.pods import annotations_of, is_active, labels_of
from mcad.sim.controllers.workload import write_status
from mcad.sim.deletion import Deletion
from mcad.sim.failures import Failure
from mcad.sim.kinds import Kind
from mcad.sim.registry import Registry, key_of
from mcad.sim.store import Change, Key
from mcad.sim.writes import Write
from tests.histories.chronicle import NEVER, Chronicle
from tests.histories.client import merged
from tests.histories.drawing import LASTS_S, SIM, History
from tests.histories.objects import SET, custom_kinds
from tests.histories.operators import operators
from tests.histories.process import Process, WholeProcess

Json = dict[str, Any]
NAMESPACE = "default"
GATE = "example.com/hold"
KINDS = {
    "Pod": "v1",
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
    "RayCluster": "ray.io/v1",
    "RayJob": "ray.io/v1",
    "MPIJob": "kubeflow.org/v2beta1",
    "Widget": "example.com/v1",
}


@cache
def _kinds() -> list[Json]:
    """The CRDs of all kinds; none of them changes."""
    return [*crds(), *custom_kinds()]


class Gatekeeper(Controller):
    """Takes the gates off pods when it is time."""

    def __init__(self, registry: Registry, gates_s: Mapping[str, float]) -> None:
        super().__init__(registry)
        self._kind, self._gates_s = registry.kind("v1", "Pod"), gates_s

    def start(self) -> None:
        """Look at new pods."""
        self.watch(self._kind, self._on_pod)

    def _on_pod(self, change: Change) -> None:
        wait_s = self._gates_s.get(labels_of(change.obj).get(SET, ""))
        if change.type == "ADDED" and wait_s is not None:
            self.enqueue_after(change.key, wait_s)

    def reconcile(self, key: Key) -> None:
        """Take the gates off."""
        if (pod := self.registry.find(self._kind, key)) is not None:
            spec = {name: value for name, value in pod["spec"].items() if name != "schedulingGates"}
            self.registry.patch(self._kind, key, lambda live: live | {"spec": spec})


class World:
    """Plays a history; afterwards ``chronicle`` has what was stored."""

    def __init__(self, history: History, cluster: Cluster, *, is_whole: bool = False) -> None:
        """``is_whole``: with all of the controller, which takes longer."""
        self._is_whole = is_whole
        self.history, self.cluster, self.registry = history, cluster, cluster.registry
        self.deleted: list[tuple[float, str, str]] = []  # by users: when, kind, name
        self.gaps: list[tuple[float, float]] = []  # without a dispatcher, from and until
        self.suspended: list[
            tuple[float, str, str, bool, str]
        ] = []  # when, kind, name, value, part
        self.refusing: list[tuple[float, bool]] = []  # since when pods are refused, or not
        self.refusals: list[tuple[float, str]] = []  # of pods: when, their set
        # From then on pods may find no room through no fault.
        self.crowded_s = 0.0 if history.keeps_off_others else float("inf")
        self.lives: list[Process | WholeProcess] = []
        self.ended_s = 0.0
        self._refuses = False
        self._firsts: dict[str, str] = {}  # uid of the first pod of a set
        kind = self.registry.kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        for crd in _kinds():
            self.registry.create(kind, None, crd)
        urgent = {"metadata": {"name": "urgent"}, "value": 100}
        classes = self.registry.kind("scheduling.k8s.io/v1", "PriorityClass")
        self.registry.create(classes, None, urgent)
        self.chronicle = Chronicle(self.registry)
        self.registry.webhooks.append(self._admit)
        kubelet = cluster.controllers["Kubelet"]
        assert isinstance(kubelet, Kubelet)
        kubelet.notes = self._notes
        for name, lag_s in history.lags_s.items():
            cluster.controllers[name].lag_s = lag_s
        self._controllers = [*operators(self.registry), Gatekeeper(self.registry, history.gates_s)]

    async def play(self) -> None:
        """All of it."""
        for number, cpu in enumerate(self.history.cpus):
            self.cluster.add_node(f"n{number}", cpu=str(cpu))
        for one in self._controllers:
            one.start()
        await asyncio.sleep(1.0)
        self._begin()
        begun_s = self.chronicle.now_s
        for act in self.history.acts:
            await asyncio.sleep(max(begun_s + act.at_s - self.chronicle.now_s, 0.0))
            with suppress(Failure):  # what it is about may not be there
                getattr(self, f"_{act.what}")(*act.arguments)
        await asyncio.sleep(max(begun_s + LASTS_S - self.chronicle.now_s, 0.0))
        self.ended_s = self.chronicle.now_s
        self.lives[-1].kill()
        for one in self._controllers:
            one.stop()

    def _begin(self) -> None:
        number = len(self.lives) + 1
        rng = Random(f"{self.history.seed} life {number}")
        life = WholeProcess if self._is_whole else Process
        self.lives.append(life(self.registry, self.history.config, rng, number))
        self.lives[-1].start()

    def unseen_since(self, at_s: float) -> float:
        """Since when no dispatcher looked at that time, ``NEVER`` if one did."""
        begun = (from_s for from_s, until_s in self.gaps if from_s <= at_s <= until_s)
        return next(begun, NEVER)

    # -- how pods live -------------------------------------------------------------------------

    def _notes(self, pod: Json) -> Mapping[str, str]:
        pod_set = labels_of(pod).get(SET, "")
        mood = self.history.moods.get(pod_set)
        if not mood:
            return annotations_of(pod)
        is_first = self._firsts.setdefault(pod_set, pod["metadata"]["uid"])
        index = annotations_of(pod).get("batch.kubernetes.io/job-completion-index")
        only = mood.get("only", "all")
        if only == "first" and is_first != pod["metadata"]["uid"]:
            return {}
        if only == "index 0" and index != "0":
            return {}
        return {f"{SIM}{key}": value for key, value in mood.items() if key != "only"}

    def _admit(self, kind: Kind, obj: Json) -> None:
        pod_set = labels_of(obj).get(SET, "")
        if kind.kind != "Pod" or not pod_set:
            return
        if self._refuses:
            self.refusals.append((self.chronicle.now_s, pod_set))
            words = "exceeded quota: small, requested: pods=1, used: pods=9, limited: pods=9"
            raise failures.forbidden(kind, obj["metadata"]["name"], words)
        if cpu := self.history.sidecars.get(pod_set):
            requests = {"resources": {"requests": {"cpu": cpu}}}
            obj["spec"]["containers"].append({"name": "proxy", "image": "proxy", **requests})
        if pod_set in self.history.gates_s:
            obj["spec"]["schedulingGates"] = [{"name": GATE}]
            gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
            gated |= {"lastTransitionTime": None, "message": "Scheduling is blocked"}
            obj["status"]["conditions"] = [gated]

    # -- acts ----------------------------------------------------------------------------------

    def _submit(self, name: str) -> None:
        made = next(one for one in self.history.submitted if one.name == name)
        kind = self.registry.kind(made.obj["apiVersion"], "AppWrapper")
        self.registry.create(kind, NAMESPACE, made.obj, Write())

    def _patch(self, kind: str, name: str, patch: Json) -> None:
        served = self.registry.kind(KINDS[kind], kind)
        self.registry.patch(served, (NAMESPACE, name), lambda live: merged(live, patch))

    def _spec(self, kind: str, name: str) -> Json:
        served = self.registry.kind(KINDS[kind], kind)
        spec: Json = self.registry.get(served, (NAMESPACE, name))["spec"]
        return spec

    def _scale(self, kind: str, name: str, count: int) -> None:
        self._crowd()
        if kind == "RayCluster":
            (group,) = self._spec(kind, name)["workerGroupSpecs"]
            groups = [group | {"replicas": count}]
            self._patch(kind, name, {"spec": {"workerGroupSpecs": groups}})
        else:
            self._patch(kind, name, {"spec": {"replicas": count}})

    def _roll(self, kind: str, name: str) -> None:
        self._crowd()
        template = self._spec(kind, name)["template"]
        notes = {"rolled": str(self.chronicle.now_s)}
        meta = template["metadata"] | {"annotations": notes}
        self._patch(kind, name, {"spec": {"template": template | {"metadata": meta}}})

    def _suspend_item(self, kind: str, name: str, value: bool, part: str) -> None:
        self._crowd()
        if part:
            (group,) = self._spec(kind, name)["workerGroupSpecs"]
            groups = [group | {"suspend": value}]
            self._patch(kind, name, {"spec": {"workerGroupSpecs": groups}})
        else:
            self._patch(kind, name, {"spec": {"suspend": value}})
        self.suspended.append((self.chronicle.now_s, kind, name, value, part))

    def _suspend(self, name: str, value: bool) -> None:
        kind = self.registry.kind(f"{GROUP}/v1beta2", "AppWrapper")
        patch = {"spec": {"suspend": value}}
        self.registry.patch(kind, (NAMESPACE, name), lambda live: merged(live, patch))

    def _delete_item(self, kind: str, name: str) -> None:
        served = self.registry.kind(KINDS[kind], kind)
        self.registry.delete(served, (NAMESPACE, name), Deletion(propagation="Background"))
        self.deleted.append((self.chronicle.now_s, kind, name))

    def _delete(self, name: str) -> None:
        kind = self.registry.kind(f"{GROUP}/v1beta2", "AppWrapper")
        self.registry.delete(kind, (NAMESPACE, name), Deletion(propagation="Background"))

    def _some_pod(self, number: int) -> Json | None:
        every = self.registry.list_all(self.registry.kind("v1", "Pod"))
        pods = [one for one in every if SET in labels_of(one) and is_active(one)]
        return pods[number % len(pods)] if pods else None

    def _delete_pod(self, number: int) -> None:
        if (pod := self._some_pod(number)) is not None:
            self._crowd()
            self.deleted.append((self.chronicle.now_s, "Pod", pod["metadata"]["name"]))
            self.registry.delete(self.registry.kind("v1", "Pod"), key_of(pod), Deletion())

    def _evict(self, number: int) -> None:
        if (pod := self._some_pod(number)) is not None:
            self._crowd()
            kind, status = self.registry.kind("v1", "Pod"), pod["status"]
            why = {
                "type": "DisruptionTarget",
                "status": "True",
                "message": "Eviction API: evicting",
            }
            why |= {"reason": "EvictionByEvictionAPI", "lastTransitionTime": None}
            status = status | {"conditions": [*status.get("conditions", ()), why]}
            write_status(self.registry, kind, pod, status)
            self.registry.delete(kind, key_of(pod), Deletion())

    def _lose(self, node: str) -> None:
        self._crowd()
        self.cluster.remove_node(node)

    def _silence(self, node: str) -> None:
        self._crowd()
        self.cluster.fail_node(node)

    def _recover(self, node: str) -> None:
        kind = self.registry.kind("v1", "Node")
        if self.registry.find(kind, ("", node)) is None:
            self.cluster.add_node(node, cpu=str(self.history.cpus[int(node[1:])]))
        else:
            self.cluster.recover_node(node)

    def _cordon(self, node: str, value: bool) -> None:
        self._crowd()
        self.cluster.cordon(node, unschedulable=value)

    def _intrude(self, number: int, is_urgent: bool, lasts_s: int) -> None:
        self._crowd()
        container = {"name": "main", "image": "other:1", "command": ["sleep", str(lasts_s)]}
        container["resources"] = {"requests": {"cpu": "2"}}
        spec: Json = {"containers": [container], "restartPolicy": "Never"}
        if is_urgent:
            spec["priorityClassName"] = "urgent"
        kind = self.registry.kind("v1", "Pod")
        body = {"metadata": {"name": f"other-{number}"}, "spec": spec}
        self.registry.create(kind, NAMESPACE, body)

    def _refuse(self, value: bool) -> None:
        self._crowd()
        self._refuses = value
        self.refusing.append((self.chronicle.now_s, value))

    def _restart(self, gap_s: float) -> None:
        if not self.lives[-1].is_dead:
            self.lives[-1].kill()
            self.gaps.append((self.chronicle.now_s, self.chronicle.now_s + gap_s))
            asyncio.get_running_loop().call_later(gap_s, self._begin)

    def _crowd(self) -> None:
        self.crowded_s = min(self.crowded_s, self.chronicle.now_s)


def play(history: History, *, is_whole: bool = False) -> World:
    """Play a history to its end; raises what a controller or the dispatcher raises."""

    async def whole() -> World:
        loop = asyncio.get_running_loop()
        failed: asyncio.Future[BaseException] = loop.create_future()

        def note(_: object, context: Mapping[str, Any]) -> None:
            if not failed.done():
                failed.set_result(context.get("exception") or AssertionError(context["message"]))

        loop.set_exception_handler(note)
        clock = VirtualClock()
        rng = Random(f"cluster {history.seed}")
        async with Cluster(clock, rng, container_events=False) as cluster:
            world = World(history, cluster, is_whole=is_whole)
            playing = asyncio.ensure_future(world.play())
            await asyncio.wait((playing, failed), return_when=asyncio.FIRST_COMPLETED)
            playing.cancel()
            if failed.done():
                raise failed.result()
            await playing
        return world

    return run_virtually(whole())
