"""The kubelets of all nodes in one: bound pods start, run, end, and go.

commands.py has how a container ends, held.py why one cannot be created. What differs from real
ones: init containers are done at once and sidecars are not seen, images are there already unless an
annotation says that they cannot be pulled, probes succeed at once or after ``ready-after``,
lifecycle hooks and resource limits do nothing, a pod that is bound where it does not fit runs all
the same (no OutOfcpu), and a pod that is deleted is gone after a second at most, however long its
grace period.

A node that is not ready has a kubelet that is not heard: nothing happens to its pods until it is
ready again, and then everything that was due happens at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf

from mcad.kube.types import Json
from mcad.sim.controllers import podstatus
from mcad.sim.controllers.base import Controller
from mcad.sim.controllers.commands import (
    READY_AFTER,
    START_DELAY,
    duration_s,
    end_of,
    faults,
    noted_s,
)
from mcad.sim.controllers.events import Recorder
from mcad.sim.controllers.held import Hold
from mcad.sim.controllers.pods import annotations_of, is_deleting, is_finished, is_ready, phase_of
from mcad.sim.controllers.podstatus import ContainerState
from mcad.sim.deletion import Deletion
from mcad.sim.registry import Registry
from mcad.sim.store import Change, Key
from mcad.sim.times import seconds
from mcad.sim.writes import Write

START_DELAY_S = 1.0
KILL_S = 1.0  # what a pod is granted of its grace period
_KILLED = 137
_ADDRESSES = 254  # of a node's pods: 10.244.N.1 and on


@dataclass(eq=False, slots=True)
class _Run:
    """A pod on its node."""

    uid: str
    ready_s: float  # when its containers are started
    pod_ip: str
    since_s: float  # for activeDeadlineSeconds
    containers: list[ContainerState] = field(default_factory=list)
    kill_s: float | None = None
    hold: Hold | None = None  # until the first container is created


@dataclass(eq=False, slots=True)
class _Node:
    """What is known of a node."""

    host_ip: str
    subnet: str
    recorder: Recorder
    is_ready: bool = False
    last: int = 0  # the last address given
    pods: dict[Key, None] = field(default_factory=dict)


class Kubelet(Controller):
    """Runs pods on every node that is ready."""

    def __init__(
        self,
        registry: Registry,
        start_delay_s: float = START_DELAY_S,
        *,
        container_events: bool = True,
    ) -> None:
        """``start_delay_s`` is the time from binding to running, in seconds.

        Without ``container_events`` no Event says that a container was pulled, created and
        started: three writes less of the ten or so in the life of a pod.
        """
        super().__init__(registry)
        self.notes: Callable[[Json], Mapping[str, str]] = annotations_of
        """The annotations of a pod that count here; a test may draw more by a seed."""
        self._start_delay_s = start_delay_s
        self._container_events = container_events
        self._kind = registry.kind("v1", "Pod")
        self._nodes: dict[str, _Node] = {}
        self._runs: dict[Key, _Run] = {}

    def start(self) -> None:
        """Look at nodes and pods; pods that run go on where they were."""
        self._nodes.clear()
        self._runs = {
            key: run
            for key, run in self._runs.items()
            if self.registry.find(self._kind, key) is not None
        }
        self.watch(self.registry.kind("v1", "Node"), self._on_node)
        self.watch(self._kind, self._on_pod)

    # -- what happens --------------------------------------------------------------------------

    def _on_node(self, change: Change) -> None:
        name, obj = change.key[1], change.obj
        node = self._node(name)
        was_ready = node.is_ready
        node.is_ready = change.type != "DELETED" and _is_ready(obj)
        if not was_ready:
            node.host_ip = _address(obj)
            node.subnet = (obj.get("spec") or {}).get("podCIDR", "10.244.0.0/24").rpartition(".")[0]
        if node.is_ready and not was_ready:
            for key in node.pods:
                self.enqueue(key)

    def _on_pod(self, change: Change) -> None:
        name = (change.obj.get("spec") or {}).get("nodeName")
        if not name:
            return
        node = self._node(name)
        if change.type == "DELETED":
            node.pods.pop(change.key, None)
            self._runs.pop(change.key, None)
            return
        node.pods[change.key] = None
        self.enqueue(change.key)

    def _node(self, name: str) -> _Node:
        node = self._nodes.get(name)
        if node is None:
            recorder = Recorder(self.registry, "kubelet", name)
            node = self._nodes[name] = _Node("", "10.244.0", recorder)
        return node

    # -- one pod -------------------------------------------------------------------------------

    def reconcile(self, key: Key) -> None:
        pod = self.registry.find(self._kind, key)
        if pod is None or not pod["spec"].get("nodeName"):
            return
        node = self._node(pod["spec"]["nodeName"])
        if not node.is_ready:
            return
        run = self._runs.get(key)
        if run is not None and run.uid != pod["metadata"]["uid"]:
            del self._runs[key]
            run = None
        now_s = asyncio.get_running_loop().time()
        if is_deleting(pod):
            self._end(key, pod, node, now_s)
        elif is_finished(pod):
            self._runs.pop(key, None)
        elif run is None:
            self._begin(key, pod, node, now_s)
        elif now_s < run.ready_s:
            self.enqueue_after(key, run.ready_s - now_s)
        else:
            self._go_on(key, pod, node, now_s)

    def _begin(self, key: Key, pod: Json, node: _Node, now_s: float) -> None:
        notes = self.notes(pod)
        delay_s = duration_s(notes.get(START_DELAY, ""))
        delay_s = self._start_delay_s if delay_s is None else delay_s
        on_host = bool(pod["spec"].get("hostNetwork"))
        pod_ip = node.host_ip if on_host else _give_address(node)
        run = _Run(pod["metadata"]["uid"], now_s + delay_s, pod_ip, now_s)
        run.hold = Hold.of(notes, run.ready_s)
        self._runs[key] = run
        if phase_of(pod) == "Running":  # since before this kubelet was started
            delay_s, run.ready_s, run.hold = 0.0, now_s, None
            run.pod_ip = pod["status"].get("podIP", pod_ip)
            run.containers = podstatus.found(pod, now_s, self.registry.clock.now_us())
        for fault in faults(notes):
            node.recorder.warning(pod, "InvalidAnnotation", fault)
        if delay_s > 0:
            at = seconds(self.registry.clock.now_us())
            self._write(key, podstatus.waiting(pod, node.host_ip, at))
            self.enqueue_after(key, delay_s)
        else:
            self._go_on(key, pod, node, now_s)

    def _go_on(self, key: Key, pod: Json, node: _Node, now_s: float) -> None:
        """Start and end containers up to now; come again when the next thing is due."""
        run = self._runs[key]
        deadline_s = self._deadline_s(pod, run)
        if deadline_s is not None and now_s >= deadline_s:
            self._stop_late(key, pod, node, run)
            return
        if run.hold is not None and self._hold(key, pod, node, deadline_s or inf):
            return
        at = seconds(self.registry.clock.now_us())
        is_first = not run.containers
        if is_first:
            run.containers = [ContainerState(one) for one in pod["spec"]["containers"]]
            for container in run.containers:
                container.start(now_s, at)
        changed, next_s = self._advance(pod, run, node, now_s, at)
        # While the node was not heard, the node controller called its pods unready.
        changed = changed or is_ready(pod) != all(one.is_ready for one in run.containers)
        if is_first or changed:
            ips = (node.host_ip, run.pod_ip)
            pod = self._write(key, podstatus.running(pod, run.containers, ips, at))
        if is_first and self._container_events:
            self._tell_started(pod, node)
        if is_finished(pod):
            return
        times = [one for one in (next_s, deadline_s) if one is not None]
        if times:
            self.enqueue_after(key, min(times) - now_s)

    def _hold(self, key: Key, pod: Json, node: _Node, deadline_s: float) -> bool:
        """Whether no container can be created yet; come again when that may have changed."""
        run, now_s = self._runs[key], asyncio.get_running_loop().time()
        refusal = run.hold.check(now_s) if run.hold else None
        if refusal is None:
            run.hold = None
            return False
        at = seconds(self.registry.clock.now_us())
        why = None if refusal.is_silent else refusal.waiting
        status = podstatus.waiting(pod, node.host_ip, at, why)
        if status != pod.get("status"):
            pod = self._write(key, status)
            refusal.record(pod, node.recorder)
        elif refusal.is_silent:
            refusal.record(pod, node.recorder)
        again_s = min(refusal.again_s, deadline_s)
        if again_s < inf:
            self.enqueue_after(key, again_s - now_s)
        return True

    def _advance(
        self, pod: Json, run: _Run, node: _Node, now_s: float, at: str
    ) -> tuple[bool, float | None]:
        """Whether anything changed, and when the next thing is due."""
        policy = pod["spec"].get("restartPolicy", "Always")
        annotations = self.notes(pod)
        ready_after_s = noted_s(annotations, READY_AFTER)
        changed = False
        due: list[float] = []
        for container in run.containers:
            while True:
                if container.again_s is not None and container.again_s <= now_s:
                    container.start(now_s, at)
                    changed = True
                if not container.is_running:
                    break
                ready_s = container.started_s + ready_after_s
                if not container.is_ready and ready_s <= now_s:
                    container.is_ready = changed = True
                end = end_of(container.spec, annotations)
                if end is None:
                    break
                ends_s = container.started_s + end.after_s
                if ends_s > now_s:
                    due.append(ends_s)
                    break
                container.end(at, end.code)
                changed = True
                if policy == "Always" or (policy == "OnFailure" and end.code):
                    container.restart(now_s)
                    self._tell_backoff(pod, container, node, now_s)
            if container.again_s is not None:
                due.append(container.again_s)
            elif container.is_running and not container.is_ready:
                due.append(container.started_s + ready_after_s)
        return changed, min(due, default=None)

    def _deadline_s(self, pod: Json, run: _Run) -> float | None:
        limit = pod["spec"].get("activeDeadlineSeconds")
        return None if limit is None else run.since_s + float(limit)

    def _stop_late(self, key: Key, pod: Json, node: _Node, run: _Run) -> None:
        text = "Pod was active on the node longer than the specified deadline"
        if run.containers:
            pod = pod | {"status": self._killed(pod, node, run)}
        node.recorder.normal(pod, "DeadlineExceeded", text)
        at = seconds(self.registry.clock.now_us())
        self._write(key, podstatus.failed(pod, "DeadlineExceeded", text, at))

    def _end(self, key: Key, pod: Json, node: _Node, now_s: float) -> None:
        """Stop a pod that is being deleted, and delete it for good."""
        grace_s = pod["metadata"].get("deletionGracePeriodSeconds") or 0
        if not grace_s:
            return  # a finalizer keeps it; it has ended
        run = self._runs.get(key)
        if run is not None and run.containers and not is_finished(pod):
            if run.kill_s is None:
                run.kill_s = now_s + min(grace_s, KILL_S)
                for container in run.containers:
                    path = _path(container.spec)
                    name = container.spec["name"]
                    node.recorder.normal(pod, "Killing", f"Stopping container {name}", path)
            if run.kill_s > now_s:
                self.enqueue_after(key, run.kill_s - now_s)
                return
            if pod["metadata"].get("finalizers"):
                self._write(key, self._killed(pod, node, run))
        uid = pod["metadata"]["uid"]
        self.registry.delete(self._kind, key, Deletion(uid=uid, grace_s=0))

    def _killed(self, pod: Json, node: _Node, run: _Run) -> Json:
        """Stop its containers now; the status that says so."""
        at = seconds(self.registry.clock.now_us())
        for container in run.containers:
            if container.is_running:
                container.end(at, _KILLED)
            container.again_s = None
        return podstatus.running(pod, run.containers, (node.host_ip, run.pod_ip), at)

    # -- parts ---------------------------------------------------------------------------------

    def _write(self, key: Key, status: Json) -> Json:
        return self.registry.patch(
            self._kind,
            key,
            lambda pod: pod | {"status": status},
            Write(trusted=True, subresource="status"),
        )

    def _tell_started(self, pod: Json, node: _Node) -> None:
        for container in pod["spec"]["containers"]:
            path = _path(container)
            image = container.get("image", "")
            text = f'Container image "{image}" already present on machine'
            node.recorder.normal(pod, "Pulled", f"{text} and can be accessed by the pod", path)
            node.recorder.normal(pod, "Created", "Container created", path)
            node.recorder.normal(pod, "Started", "Container started", path)

    def _tell_backoff(
        self, pod: Json, container: ContainerState, node: _Node, now_s: float
    ) -> None:
        if container.again_s is None or container.again_s <= now_s:
            return
        metadata, name = pod["metadata"], container.spec["name"]
        where = f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"
        text = f"Back-off restarting failed container {name} in pod {where}"
        node.recorder.warning(pod, "BackOff", text, _path(container.spec))


def _path(container: Json) -> str:
    return f"spec.containers{{{container['name']}}}"


def _is_ready(node: Json) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _address(node: Json) -> str:
    for one in (node.get("status") or {}).get("addresses") or ():
        if one["type"] == "InternalIP":
            found: str = one["address"]
            return found
    return ""


def _give_address(node: _Node) -> str:
    """The next one; after the last of a node comes its first again."""
    node.last = node.last % _ADDRESSES + 1
    return f"{node.subnet}.{node.last}"
