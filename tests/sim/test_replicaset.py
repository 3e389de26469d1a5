"""ReplicaSets keep their number of pods, adopt and release, and choose whom to delete."""

import asyncio

from mcad.sim.controllers.ranking import DELETION_COST
from mcad.sim.controllers.replicaset import ReplicaSetController, ReplicationController
from tests.sim.workloads import condition, in_a_world, selecting, template


def _replicaset(world, replicas=3, **spec):
    world.add(ReplicaSetController(world.registry, world.pods))
    spec = {"replicas": replicas, "selector": selecting(), "template": template()} | spec
    return world.create("ReplicaSet", "web", spec)


def _names(world):
    return {
        pod["metadata"]["name"]
        for pod in world.all("Pod")
        if not pod["metadata"].get("deletionTimestamp")
    }


def test_orphans_are_adopted_and_strangers_released():
    async def scenario(world):
        world.create("Pod", "old", template()["spec"], labels={"app": "web"})
        _replicaset(world, 2)
        await world.settle()
        assert len(world.all("Pod")) == 2
        uid = world.get("ReplicaSet", "web")["metadata"]["uid"]
        assert world.get("Pod", "old")["metadata"]["ownerReferences"][0]["uid"] == uid
        kind = world.kind("Pod")
        world.registry.patch(
            kind,
            ("default", "old"),
            lambda pod: pod | {"metadata": pod["metadata"] | {"labels": {"app": "other"}}},
        )
        await world.settle()
        assert len(world.all("Pod")) == 3
        assert not world.get("Pod", "old")["metadata"].get("ownerReferences")
        world.create("Pod", "new", template()["spec"], labels={"app": "web"})
        await world.settle()
        assert len(_names(world)) == 3  # one too many was adopted, and one of them went
        assert world.get("ReplicaSet", "web")["status"]["replicas"] == 2

    in_a_world(scenario)


def test_who_goes_first():
    async def scenario(world):
        _replicaset(world, 6)
        await world.settle()
        waiting, pending, unready, costly, cheap, crowded = sorted(_names(world))
        world.set_phase(pending, "Pending", ready=False)
        world.set_phase(unready, "Running", ready=False)
        for name, cost in ((costly, "5"), (cheap, "-5"), (crowded, "junk")):
            world.set_phase(name, "Running", node="node-2")
            kind = world.kind("Pod")
            noted = {"annotations": {DELETION_COST: cost}}
            world.registry.patch(
                kind,
                ("default", name),
                lambda pod, noted=noted: pod | {"metadata": pod["metadata"] | noted},
            )
        left = [waiting, pending, unready, cheap, crowded, costly]
        for replicas in range(5, -1, -1):
            world.change("ReplicaSet", "web", replicas=replicas)
            await world.settle()
            world.reap()
            gone, left = left[0], left[1:]
            assert _names(world) == set(left), gone
        assert world.reasons("web").count("SuccessfulDelete") == 6

    in_a_world(scenario)


def test_pods_become_available_after_min_ready_seconds():
    async def scenario(world):
        _replicaset(world, 1, minReadySeconds=30)
        await world.settle()
        world.run_all()
        await asyncio.sleep(28)
        assert "availableReplicas" not in world.get("ReplicaSet", "web")["status"]
        await asyncio.sleep(3)
        assert world.get("ReplicaSet", "web")["status"]["availableReplicas"] == 1

    in_a_world(scenario)


def test_a_refused_pod_is_told_and_tried_again():
    async def scenario(world):
        _replicaset(world, 1, template=template(priorityClassName="gold"))
        await asyncio.sleep(1)
        owner = world.get("ReplicaSet", "web")
        assert condition(owner, "ReplicaFailure") == ("True", "FailedCreate")
        assert "no PriorityClass with name gold" in world.messages("FailedCreate")[0]
        body = {"metadata": {"name": "gold"}, "value": 7}
        kind = world.registry.kind("scheduling.k8s.io/v1", "PriorityClass")
        world.registry.create(kind, None, body)
        await asyncio.sleep(60)
        owner = world.get("ReplicaSet", "web")
        assert owner["status"]["replicas"] == 1
        assert condition(owner, "ReplicaFailure") is None

    in_a_world(scenario)


def test_replication_controllers_select_by_a_plain_map():
    async def scenario(world):
        world.add(ReplicationController(world.registry, world.pods))
        world.create("ReplicationController", "old", {"replicas": 2, "template": template()})
        await world.settle(world.kubelets)
        status = world.get("ReplicationController", "old")["status"]
        assert status["readyReplicas"] == 2
        assert "terminatingReplicas" not in status

    in_a_world(scenario)
