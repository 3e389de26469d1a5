"""Deployments: their ReplicaSets, and how pods move from one to the next."""

import pytest

from mcad.sim.controllers.deployment import DeploymentController
from mcad.sim.controllers.index import OwnedIndex
from mcad.sim.controllers.numbers import scaled
from mcad.sim.controllers.replicaset import ReplicaSetController
from tests.sim.workloads import condition, in_a_world, selecting, template


def _start(world):
    sets = OwnedIndex(world.registry, world.kind("ReplicaSet"))
    world.add(
        DeploymentController(world.registry, world.pods, sets),
        ReplicaSetController(world.registry, world.pods),
    )


def _deploy(world, replicas=4, **spec):
    _start(world)
    spec = {"replicas": replicas, "selector": selecting(), "template": template()} | spec
    return world.create("Deployment", "web", spec, annotations={"team": "a"})


def _images(world):
    """How many pods that are not being deleted have which image."""
    counted = {}
    for pod in world.all("Pod"):
        if not pod["metadata"].get("deletionTimestamp"):
            image = pod["spec"]["containers"][0]["image"]
            counted[image] = counted.get(image, 0) + 1
    return counted


def _revisions(world):
    noted = [one["metadata"]["annotations"] for one in world.all("ReplicaSet")]
    return sorted(one["deployment.kubernetes.io/revision"] for one in noted)


def test_a_rolling_update_stays_within_its_fences():
    async def scenario(world):
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
        _deploy(world, 6, strategy=rolling)
        await world.settle(world.kubelets)
        world.change("Deployment", "web", template=template(image="img:2"))
        seen = []

        def step():
            available = world.get("Deployment", "web")["status"].get("availableReplicas", 0)
            seen.append((available, sum(_images(world).values())))
            world.kubelets()

        await world.settle(step)
        assert min(available for available, _ in seen) == 5
        assert max(total for _, total in seen) == 7
        assert _images(world) == {"img:2": 6}
        assert sorted(one["spec"]["replicas"] for one in world.all("ReplicaSet")) == [0, 6]
        assert _revisions(world) == ["1", "2"]
        assert condition(world.get("Deployment", "web"), "Progressing") == (
            "True",
            "NewReplicaSetAvailable",
        )

    in_a_world(scenario)


def test_recreate_waits_for_the_old_pods_to_go():
    async def scenario(world):
        _deploy(world, 2, strategy={"type": "Recreate"})
        await world.settle(world.kubelets)
        world.change("Deployment", "web", template=template(image="img:2"))
        await world.settle()
        assert _images(world) == {}
        assert len(world.all("Pod")) == 2  # they are still terminating
        world.reap()
        await world.settle()
        assert _images(world) == {"img:2": 2}
        await world.settle(world.kubelets)
        assert world.get("Deployment", "web")["status"]["availableReplicas"] == 2

    in_a_world(scenario)


def test_a_paused_deployment_scales_but_does_not_roll():
    async def scenario(world):
        _deploy(world, 2)
        await world.settle(world.kubelets)
        world.change("Deployment", "web", paused=True, template=template(image="img:2"))
        await world.settle(world.kubelets)
        assert _images(world) == {"img:1": 2}
        world.change("Deployment", "web", replicas=3)
        await world.settle(world.kubelets)
        assert _images(world) == {"img:1": 3}
        world.change("Deployment", "web", paused=False)
        await world.settle(world.kubelets)
        assert _images(world) == {"img:2": 3}
        deployment = world.get("Deployment", "web")
        assert condition(deployment, "Progressing") == ("True", "NewReplicaSetAvailable")

    in_a_world(scenario)


def test_a_failure_of_its_replicaset_is_passed_on():
    async def scenario(world):
        _deploy(world, 1, template=template(priorityClassName="gold"))
        await world.settle()
        deployment = world.get("Deployment", "web")
        assert condition(deployment, "ReplicaFailure") == ("True", "FailedCreate")

    in_a_world(scenario)


@pytest.mark.parametrize(
    ("value", "total", "up", "expected"),
    [
        ("25%", 10, True, 3),
        ("25%", 10, False, 2),
        (7, 3, True, 7),
        ("0%", 5, True, 0),
        (None, 5, True, 0),
        ("much", 5, True, 0),
    ],
)
def test_numbers_and_percentages(value, total, up, expected):
    assert scaled(value, total, up=up) == expected
