"""A registry with workload controllers, and a test's hands in the place of kubelets."""

import asyncio
from random import Random

from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.controllers.index import OwnedIndex
from mcad.sim.deletion import Deletion
from mcad.sim.registry import Registry
from mcad.sim.times import seconds
from mcad.sim.writes import Write


class World:
    """Controllers are added by the tests; nothing runs pods but ``set_phase``."""

    def __init__(self):
        self.registry = Registry(VirtualClock(), Random(7))
        self.pods = OwnedIndex(self.registry, self.kind("Pod"))
        self.controllers = []

    def add(self, *controllers):
        for controller in controllers:
            self.controllers.append(controller)
            controller.start()
        return controllers[0]

    def kind(self, name):
        groups = ("v1", "apps/v1", "batch/v1", "policy/v1")
        found = [self.registry.kinds.by_kind(group, name) for group in groups]
        return next(kind for kind in found if kind is not None)

    def create(self, kind, name, spec, **metadata):
        body = {"metadata": {"name": name} | metadata, "spec": spec}
        kind = self.kind(kind)
        return self.registry.create(kind, "default" if kind.namespaced else None, body)

    def get(self, kind, name):
        kind = self.kind(kind)
        return self.registry.find(kind, ("default" if kind.namespaced else "", name))

    def all(self, kind):
        return self.registry.list_all(self.kind(kind))

    def change(self, kind, name, **spec):
        kind = self.kind(kind)
        return self.registry.patch(
            kind, ("default", name), lambda live: live | {"spec": live["spec"] | spec}
        )

    def delete(self, kind, name):
        options = Deletion(propagation="Background")
        return self.registry.delete(self.kind(kind), ("default", name), options)

    def set_status(self, kind, name, **status):
        kind = self.kind(kind)
        return self.registry.patch(
            kind,
            ("default" if kind.namespaced else "", name),
            lambda live: live | {"status": (live.get("status") or {}) | status},
            Write(trusted=True, subresource="status"),
        )

    def set_phase(self, name, phase, ready=None, code=0, node="node-1"):
        """What a kubelet would do; ``ready`` is that of a running pod unless told."""
        pod = self.get("Pod", name)
        if node and not pod["spec"].get("nodeName"):
            self.change("Pod", name, nodeName=node)
        now = seconds(self.registry.clock.now_us())
        ready = phase == "Running" if ready is None else ready
        condition = {
            "type": "Ready",
            "status": "True" if ready else "False",
            "lastTransitionTime": now,
        }
        states = {"Running": {"running": {"startedAt": now}}}
        ended = {"terminated": {"exitCode": code, "finishedAt": now}}
        container = {"name": "main", "restartCount": 0, "state": states.get(phase, ended)}
        self.set_status(
            "Pod", name, phase=phase, conditions=[condition], containerStatuses=[container]
        )

    def run_all(self):
        """All pending pods run."""
        for pod in self.all("Pod"):
            if pod["status"]["phase"] == "Pending" and not pod["metadata"].get("deletionTimestamp"):
                self.set_phase(pod["metadata"]["name"], "Running")

    def reap(self):
        """Pods that are being deleted are gone, as when their grace is over."""
        for pod in self.all("Pod"):
            if pod["metadata"].get("deletionTimestamp"):
                metadata = pod["metadata"] | {"deletionGracePeriodSeconds": 0}
                if not metadata.get("finalizers"):
                    key = ("default", pod["metadata"]["name"])
                    self.registry.store.remove(("", "pods"), key)
                else:
                    self.registry.store.put(
                        ("", "pods"), ("default", metadata["name"]), pod | {"metadata": metadata}
                    )

    async def settle(self, step=None, seconds=3.0, rounds=40):
        """Let everybody work; with ``step``, do that again and again until nothing changes."""
        for _ in range(rounds):
            before = self.registry.store.version
            await asyncio.sleep(seconds)
            if step is None:
                return
            step()
            await asyncio.sleep(seconds)
            if self.registry.store.version == before:
                return
        raise AssertionError("it never comes to rest")

    def kubelets(self):
        """One step of all kubelets."""
        self.reap()
        self.run_all()

    def reasons(self, name=None):
        """Reasons of the Events, in order, with their counts spelt out."""
        events = sorted(self.all("Event"), key=lambda one: int(one["metadata"]["resourceVersion"]))
        return [
            one["reason"] for one in events if name is None or one["involvedObject"]["name"] == name
        ]

    def messages(self, reason):
        return [one["message"] for one in self.all("Event") if one["reason"] == reason]


def in_a_world(scenario):
    """Run ``scenario(world)`` in virtual time, with a check that nothing went wrong inside."""

    async def main():
        world, wrong = World(), []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: wrong.append(context))
        await scenario(world)
        for controller in world.controllers:
            controller.stop()
        assert not wrong, wrong

    run_virtually(main())


def template(app="web", image="img:1", **spec):
    """A pod template."""
    containers = [{"name": "main", "image": image}]
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": containers} | spec}


def selecting(app="web"):
    return {"matchLabels": {"app": app}}


def condition(obj, name):
    """Status and reason of a condition; None if there is none."""
    for one in obj["status"].get("conditions") or ():
        if one["type"] == name:
            return one["status"], one.get("reason")
    return None
