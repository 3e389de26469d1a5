"""ReplicaSets keep their number of pods, adopt and release pods, and choose which to delete."""

from __future__ import annotations

from typing import Any

from mcad.sim.controllers.ranking import DELETION_COST
from tests.sim.worlds import World, condition, making, virtually, world

WEB = {"app": "web"}


def _replicaset(w: World, replicas: int, **spec: Any) -> None:
    w.make("ReplicaSet", "web", **(making() | {"replicas": replicas} | spec))


@virtually
async def test_orphans_are_adopted_and_strangers_released() -> None:
    async with world("n1") as w:
        w.pod("old", labels=WEB)
        _replicaset(w, 2)
        await w.settle()
        assert len(w.all("Pod")) == 2
        uid = w.get("ReplicaSet", "web")["metadata"]["uid"]
        assert w.get("Pod", "old")["metadata"]["ownerReferences"][0]["uid"] == uid
        w.remeta("Pod", "old", labels={"app": "other"})
        await w.settle()
        assert len(w.all("Pod")) == 3
        assert not w.get("Pod", "old")["metadata"].get("ownerReferences")
        w.pod("new", labels=WEB)
        await w.settle()
        assert len(w.all("Pod")) == 3, "one too many was adopted, and one of them went"
        assert w.get("ReplicaSet", "web")["status"]["replicas"] == 2


@virtually
async def test_the_order_in_which_pods_are_deleted() -> None:
    async with world("n1") as w:
        w.pod("waiting", labels=WEB, nodeName="", nodeSelector={"no": "where"})
        w.pod("pending", labels=WEB, annotations={"sim.mcad.dev/start-delay": "1h"})
        w.pod("unready", labels=WEB, command=["false"])
        for name, cost in (("costly", "5"), ("cheap", "-5"), ("junk", "junk")):
            w.pod(name, labels=WEB, annotations={DELETION_COST: cost})
        await w.settle(60)
        w.pod("young", labels=WEB)
        await w.settle()
        names = ["waiting", "pending", "unready", "cheap", "young", "junk", "costly"]
        _replicaset(w, len(names))
        for gone in range(1, len(names) + 1):
            await w.settle(2)
            w.respec("ReplicaSet", "web", replicas=len(names) - gone)
            await w.settle(2)
            assert w.placed().keys() == set(names[gone:]), names[gone - 1]
        assert w.reasons("web").count("SuccessfulDelete") == len(names)


@virtually
async def test_pods_become_available_after_min_ready_seconds() -> None:
    async with world("n1") as w:
        _replicaset(w, 1, minReadySeconds=30)
        await w.settle(30)
        assert "availableReplicas" not in w.get("ReplicaSet", "web")["status"]
        await w.settle(3)
        assert w.get("ReplicaSet", "web")["status"]["availableReplicas"] == 1


@virtually
async def test_a_refused_pod_is_told_and_tried_again() -> None:
    async with world("n1") as w:
        _replicaset(w, 1, **making(priorityClassName="gold"))
        await w.settle(1)
        assert condition(w.get("ReplicaSet", "web"), "ReplicaFailure")["reason"] == "FailedCreate"
        assert "no PriorityClass with name gold" in str(w.events("web"))
        w.create("PriorityClass", {"metadata": {"name": "gold"}, "value": 7})
        await w.settle(60)
        owner = w.get("ReplicaSet", "web")
        assert owner["status"]["replicas"] == 1
        assert condition(owner, "ReplicaFailure") == {}


@virtually
async def test_replication_controllers_select_by_a_plain_map() -> None:
    async with world("n1") as w:
        template = making()["template"]
        w.make("ReplicationController", "old", replicas=2, template=template)
        await w.settle()
        status = w.get("ReplicationController", "old")["status"]
        assert status["readyReplicas"] == 2
        assert "terminatingReplicas" not in status
