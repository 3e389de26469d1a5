"""Server-side apply: what is left out goes away, what others applied stays, clashes are told."""

from random import Random
from typing import Any

import pytest

from mcad.kube.port import Request, Response
from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.registry import Registry
from mcad.sim.serving.patches import APPLY
from mcad.sim.serving.server import SimApi

Json = dict[str, Any]
PATH = "/api/v1/namespaces/default/configmaps/m"
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/d"
TYPES = {
    PATH: {"apiVersion": "v1", "kind": "ConfigMap"},
    DEPLOYMENT: {"apiVersion": "apps/v1", "kind": "Deployment"},
}


class World:
    def __init__(self) -> None:
        self.api = SimApi(Registry(VirtualClock(), Random(1)))

    def apply(self, path: str, body: Json, manager: str = "one", **params: str) -> Response:
        params = {"fieldManager": manager} | params
        return self.api.answer(Request("PATCH", path, params, TYPES[path] | body, APPLY))

    def get(self, path: str) -> Json:
        return self.api.answer(Request("GET", path)).json()


def in_world(work: Any) -> None:
    async def run() -> None:
        work(World())

    run_virtually(run())


def test_the_first_apply_creates() -> None:
    def work(world: World) -> None:
        assert world.apply(PATH, {"data": {"a": "1"}}).status == 201
        assert world.apply(PATH, {"data": {"a": "2"}}).status == 200
        assert world.get(PATH)["data"] == {"a": "2"}

    in_world(work)


def test_what_a_manager_leaves_out_next_time_goes_away_and_nothing_else() -> None:
    def work(world: World) -> None:
        world.apply(PATH, {"data": {"a": "1", "b": "1"}, "metadata": {"labels": {"x": "1"}}})
        world.apply(PATH, {"data": {"c": "1"}}, "two")
        world.apply(PATH, {"data": {"a": "1"}})
        live = world.get(PATH)
        assert live["data"] == {"a": "1", "c": "1"}
        assert not live["metadata"].get("labels")

    in_world(work)


@pytest.mark.parametrize("force", [False, True])
def test_two_values_for_one_field_are_a_conflict_unless_forced(force: bool) -> None:
    def work(world: World) -> None:
        world.apply(PATH, {"data": {"a": "1"}})
        params = {"force": "true"} if force else {}
        answer = world.apply(PATH, {"data": {"a": "2"}}, "two", **params)
        if force:
            assert world.get(PATH)["data"] == {"a": "2"}
            return
        assert answer.status == 409
        assert (
            answer.json()["message"] == 'Apply failed with 1 conflict: conflict with "one": .data.a'
        )
        assert world.get(PATH)["data"] == {"a": "1"}

    in_world(work)


def test_several_conflicts_are_told_manager_by_manager() -> None:
    def work(world: World) -> None:
        world.apply(PATH, {"data": {"a": "1", "b": "1"}}, "two")
        world.apply(PATH, {"data": {"a": "1"}}, "one")
        answer = world.apply(PATH, {"data": {"a": "2", "b": "2"}}, "three")
        assert answer.json()["message"] == (
            'Apply failed with 3 conflicts: conflicts with "one":\n- .data.a\n'
            'conflicts with "two":\n- .data.a\n- .data.b'
        )

    in_world(work)


def test_the_same_value_is_no_conflict() -> None:
    def work(world: World) -> None:
        world.apply(PATH, {"data": {"a": "1"}})
        assert world.apply(PATH, {"data": {"a": "1"}}, "two").status == 200

    in_world(work)


def test_containers_are_merged_by_name() -> None:
    def deployment(*containers: Json) -> Json:
        labels = {"app": "d"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": list(containers)}}
        return {"spec": {"selector": {"matchLabels": labels}, "template": template}}

    def work(world: World) -> None:
        answer = world.apply(DEPLOYMENT, deployment({"name": "a", "image": "i"}))
        assert answer.status == 201
        world.apply(DEPLOYMENT, deployment({"name": "b", "image": "j"}), "two")
        world.apply(DEPLOYMENT, deployment({"name": "a", "image": "k"}))
        spec = world.get(DEPLOYMENT)["spec"]["template"]["spec"]
        assert [(c["name"], c["image"]) for c in spec["containers"]] == [("a", "k"), ("b", "j")]

    in_world(work)


def test_a_field_manager_is_needed() -> None:
    def work(world: World) -> None:
        answer = world.apply(PATH, {"data": {}}, "")
        assert answer.status == 422
        assert "fieldManager: Required value" in answer.json()["message"]

    in_world(work)


def test_applying_the_same_again_writes_nothing() -> None:
    def work(world: World) -> None:
        world.apply(PATH, {"data": {"a": "1"}})
        before = world.get(PATH)["metadata"]["resourceVersion"]
        world.apply(PATH, {"data": {"a": "1"}})
        assert world.get(PATH)["metadata"]["resourceVersion"] == before

    in_world(work)
