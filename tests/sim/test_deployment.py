"""Deployments: their ReplicaSets, and how pods move from one to the next."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from mcad.sim.controllers.numbers import scaled
from tests.sim.worlds import World, condition, making, virtually, world


def _deploy(w: World, replicas: int, **spec: Any) -> None:
    w.make("Deployment", "web", **(making() | {"replicas": replicas} | spec))


def _roll(w: World, **spec: Any) -> None:
    w.respec("Deployment", "web", template=making("img:2")["template"], **spec)


def _images(w: World) -> dict[str, int]:
    """How many pods that are not being deleted have which image."""
    return dict(Counter(one["spec"]["containers"][0]["image"] for one in w.live()))


@virtually
async def test_a_rolling_update_stays_within_its_fences() -> None:
    async with world("n1") as w:
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
        _deploy(w, 6, strategy=rolling)
        await w.settle()
        before = w.registry.store.version
        _roll(w)
        await w.settle(60)
        told = [one.obj["status"] for one in w.history("Deployment", before)]
        assert min(one["availableReplicas"] for one in told) == 5
        sizes, most = Counter[str](), 0
        for one in w.history("ReplicaSet"):
            sizes[one.key[1]] = one.obj["spec"]["replicas"]
            most = max(most, sizes.total())
        assert most == 7, "of the sets: their pods go and come as they can"
        assert _images(w) == {"img:2": 6}
        revision = "deployment.kubernetes.io/revision"
        sets = w.all("ReplicaSet")
        assert sorted(
            (one["metadata"]["annotations"][revision], one["spec"]["replicas"]) for one in sets
        ) == [("1", 0), ("2", 6)]
        progress = condition(w.get("Deployment", "web"), "Progressing")
        assert (progress["status"], progress["reason"]) == ("True", "NewReplicaSetAvailable")


@virtually
async def test_recreate_waits_for_the_old_pods_to_go() -> None:
    async with world("n1") as w:
        _deploy(w, 2, strategy={"type": "Recreate"})
        await w.settle()
        _roll(w)
        await w.settle(0.5)
        assert _images(w) == {}
        assert len(w.all("Pod")) == 2, "they are still terminating"
        await w.settle()
        assert _images(w) == {"img:2": 2}
        assert w.get("Deployment", "web")["status"]["availableReplicas"] == 2


@virtually
async def test_a_paused_deployment_scales_but_does_not_roll() -> None:
    async with world("n1") as w:
        _deploy(w, 2)
        await w.settle()
        _roll(w, paused=True)
        await w.settle()
        assert _images(w) == {"img:1": 2}
        w.respec("Deployment", "web", replicas=3)
        await w.settle()
        assert _images(w) == {"img:1": 3}
        w.respec("Deployment", "web", paused=False)
        await w.settle(60)
        assert _images(w) == {"img:2": 3}


@virtually
async def test_a_failure_of_its_replicaset_is_passed_on() -> None:
    async with world("n1") as w:
        _deploy(w, 1, **making(priorityClassName="gold"))
        await w.settle()
        assert condition(w.get("Deployment", "web"), "ReplicaFailure")["reason"] == "FailedCreate"


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
def test_numbers_and_percentages(value: Any, total: int, up: bool, expected: int) -> None:
    assert scaled(value, total, up=up) == expected
