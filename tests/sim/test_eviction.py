"""Evictions, and the budgets that refuse them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from mcad.sim.deletion import Deletion
from mcad.sim.eviction import evict
from mcad.sim.failures import Failure
from mcad.sim.times import seconds
from tests.sim.nodeside import World, condition, virtually, world

Json = dict[str, Any]
APP = {"matchLabels": {"app": "a"}}


def _budget(w: World, name: str = "b", **spec: Any) -> Json:
    body = {"metadata": {"name": name}, "spec": {"selector": APP} | spec}
    return w.create("PodDisruptionBudget", body, "policy/v1")


def _status(w: World, name: str = "b") -> Json:
    status: Json = w.get("PodDisruptionBudget", name, api="policy/v1")["status"]
    return status


def _evict(w: World, name: str, **options: Any) -> None:
    dry_run = options.pop("dry_run", False)
    evict(w.registry, ("default", name), Deletion(**options), dry_run=dry_run)


def _deployment(w: World, replicas: int) -> None:
    template = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    spec = {"replicas": replicas, "selector": APP, "template": template}
    w.create("Deployment", {"metadata": {"name": "d"}, "spec": spec}, "apps/v1")


@virtually
async def test_without_a_budget_an_eviction_is_a_deletion_with_its_reason() -> None:
    async with world("n1") as w:
        w.pod("p")
        await w.settle()
        _evict(w, "p")

        pod = w.get("Pod", "p")
        assert "deletionTimestamp" in pod["metadata"]
        assert condition(pod, "DisruptionTarget")["reason"] == "EvictionByEvictionAPI"
        await w.settle()
        assert w.find("Pod", "p") is None

        with pytest.raises(Failure) as failure:
            _evict(w, "p")
        assert failure.value.code == 404


@virtually
async def test_a_budget_allows_as_many_evictions_as_leave_enough() -> None:
    async with world("n1") as w:
        for number in range(3):
            w.pod(f"p{number}", labels={"app": "a"})
        _budget(w, minAvailable=2)
        await w.settle()
        status = _status(w)
        assert (status["currentHealthy"], status["desiredHealthy"]) == (3, 2)
        assert (status["expectedPods"], status["disruptionsAllowed"]) == (3, 1)
        assert condition({"status": status}, "DisruptionAllowed")["reason"] == "SufficientPods"

        _evict(w, "p0", dry_run=True)
        assert w.get("Pod", "p0")["metadata"].get("deletionTimestamp") is None
        assert _status(w)["disruptionsAllowed"] == 1

        _evict(w, "p0")
        assert list(_status(w)["disruptedPods"]) == ["p0"]
        with pytest.raises(Failure) as failure:
            _evict(w, "p1")
        assert failure.value.code == 429
        assert failure.value.message == (
            "Cannot evict pod as it would violate the pod's disruption budget."
        )

        await w.settle()
        with pytest.raises(Failure) as failure:
            _evict(w, "p1")
        assert failure.value.details == {
            "causes": [
                {
                    "reason": "DisruptionBudget",
                    "message": "The disruption budget b needs 2 healthy pods and has 2 currently",
                }
            ]
        }
        assert condition({"status": _status(w)}, "DisruptionAllowed")["status"] == "False"


@virtually
async def test_a_budget_that_was_not_reckoned_up_yet_asks_to_come_again() -> None:
    async with world("n1") as w:
        w.pod("p", labels={"app": "a"})
        await w.settle()
        _budget(w, minAvailable=0)
        with pytest.raises(Failure) as failure:
            _evict(w, "p")

        assert (failure.value.code, failure.value.retry_after_s) == (429, 10)
        await w.settle()
        _evict(w, "p")


@virtually
async def test_an_eviction_that_was_allowed_is_believed_for_two_minutes() -> None:
    async with world("n1") as w:
        for number in range(2):
            w.pod(f"p{number}", labels={"app": "a"})
        _budget(w, minAvailable=1)
        await w.settle()
        budget = w.get("PodDisruptionBudget", "b", api="policy/v1")
        disrupted = {"p0": seconds(w.registry.clock.now_us())}
        status = budget["status"] | {"disruptedPods": disrupted, "disruptionsAllowed": 0}
        kind = w.registry.kind("policy/v1", "PodDisruptionBudget")
        w.registry.update_status(kind, budget | {"status": status})
        await w.settle(100)
        assert (_status(w)["currentHealthy"], _status(w)["disruptionsAllowed"]) == (1, 0)

        await w.settle(30)
        assert (_status(w)["currentHealthy"], _status(w)["disruptionsAllowed"]) == (2, 1)
        assert "disruptedPods" not in _status(w)


@virtually
async def test_two_budgets_for_one_pod_are_one_too_many() -> None:
    async with world("n1") as w:
        w.pod("p", labels={"app": "a"})
        _budget(w, "b1", minAvailable=0)
        _budget(w, "b2", minAvailable=0)
        await w.settle()

        with pytest.raises(Failure, match="more than one PodDisruptionBudget") as failure:
            _evict(w, "p")
        assert failure.value.code == 500


@virtually
async def test_pods_that_do_not_run_are_not_guarded() -> None:
    async with world("n1") as w:
        w.pod("done", labels={"app": "a"}, command=["true"], restartPolicy="Never")
        w.pod("waits", labels={"app": "a"}, cpu="64")
        _budget(w, minAvailable=5)
        await w.settle()
        _evict(w, "done")
        _evict(w, "waits")

        assert w.find("Pod", "done") is None
        assert w.find("Pod", "waits") is None


@virtually
async def test_an_unhealthy_pod_may_go_if_the_healthy_ones_are_enough() -> None:
    async with world("n1") as w:
        w.pod("well", labels={"app": "a"})
        for name in ("ill", "worse"):
            w.pod(name, labels={"app": "a"}, command=["false"])
        _budget(w, minAvailable=1)
        await w.settle()
        assert _status(w)["disruptionsAllowed"] == 0
        _evict(w, "ill")
        with pytest.raises(Failure):
            _evict(w, "well")

        spec = {"selector": APP, "minAvailable": 3, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
        kind = w.registry.kind("policy/v1", "PodDisruptionBudget")
        w.registry.patch(kind, ("default", "b"), lambda one: one | {"spec": spec})
        await w.settle()
        _evict(w, "worse")


@pytest.mark.parametrize(
    ("spec", "expected", "desired", "allowed"),
    [
        ({"maxUnavailable": 1}, 5, 4, 1),
        ({"maxUnavailable": "30%"}, 5, 3, 2),
        ({"minAvailable": "50%"}, 5, 3, 2),
        ({"minAvailable": 9}, 5, 9, 0),
    ],
)
def test_shares_are_those_of_what_controllers_want(
    spec: Json, expected: int, desired: int, allowed: int
) -> None:
    @virtually
    async def run() -> None:
        async with world("n1") as w:
            _deployment(w, 5)
            _budget(w, **spec)
            await w.settle()

            status = _status(w)
            assert (status["expectedPods"], status["desiredHealthy"]) == (expected, desired)
            assert status["disruptionsAllowed"] == allowed

    run()


@virtually
async def test_a_drained_deployment_moves_on_as_fast_as_its_budget_allows() -> None:
    async with world("n1") as w:
        _deployment(w, 3)
        _budget(w, maxUnavailable=1)
        await w.settle()
        w.cluster.add_node("n2")
        w.cluster.cordon("n1")
        for _ in range(40):
            for name, node in w.placed().items():
                if node == "n1" and "deletionTimestamp" not in w.get("Pod", name)["metadata"]:
                    with suppress(Failure):
                        _evict(w, name)
            await w.settle(0.5)
            assert _status(w)["currentHealthy"] >= 2

        assert list(w.placed().values()) == ["n2"] * 3


@virtually
async def test_preconditions_hold_for_evictions_too() -> None:
    async with world("n1") as w:
        w.pod("p")
        await w.settle()
        for options in ({"uid": "other"}, {"resource_version": "1"}):
            with pytest.raises(Failure) as failure:
                _evict(w, "p", **options)
            assert failure.value.code == 409
        assert condition(w.get("Pod", "p"), "DisruptionTarget") == {}

        metadata = w.get("Pod", "p")["metadata"]
        _evict(w, "p", uid=metadata["uid"], resource_version=metadata["resourceVersion"])
        assert "deletionTimestamp" in w.get("Pod", "p")["metadata"]
