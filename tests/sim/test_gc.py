"""What goes when its owners go, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sim.nodeside import World, owner, virtually, world

Json = dict[str, Any]

WIDGETS = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}


def _config(w: World, name: str, *owners: Json, finalizers: tuple[str, ...] = ()) -> Json:
    metadata: Json = {"name": name}
    if owners:
        metadata["ownerReferences"] = list(owners)
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    return w.create("ConfigMap", {"metadata": metadata})


def _names(w: World) -> list[str]:
    found = w.registry.list_all(w.registry.kind("v1", "ConfigMap"), "default")
    names = [one["metadata"]["name"] for one in found]
    return [name for name in names if name != "kube-root-ca.crt"]


@virtually
async def test_background_takes_the_owner_at_once_and_its_dependants_after_it() -> None:
    async with world() as w:
        top = _config(w, "top")
        middle = _config(w, "middle", owner(top))
        _config(w, "bottom", owner(middle))
        _config(w, "other")
        w.delete("ConfigMap", "top")
        assert _names(w) == ["bottom", "middle", "other"]

        await w.settle(0.1)
        assert _names(w) == ["other"]


@virtually
async def test_foreground_waits_for_dependants_that_block() -> None:
    async with world() as w:
        top = _config(w, "top")
        _config(w, "blocks", owner(top, blockOwnerDeletion=True), finalizers=("example.com/x",))
        _config(w, "follows", owner(top), finalizers=("example.com/x",))
        w.delete("ConfigMap", "top", propagation="Foreground")
        await w.settle()
        assert _names(w) == ["blocks", "follows", "top"]
        assert w.get("ConfigMap", "top")["metadata"]["finalizers"] == ["foregroundDeletion"]
        for name in ("blocks", "follows"):
            assert "deletionTimestamp" in w.get("ConfigMap", name)["metadata"]

        _let_go(w, "blocks")
        await w.settle()
        assert _names(w) == ["follows"]


def _let_go(w: World, name: str) -> None:
    w.change(
        "ConfigMap", name, lambda one: one | {"metadata": one["metadata"] | {"finalizers": []}}
    )


@virtually
async def test_foreground_goes_all_the_way_down() -> None:
    async with world() as w:
        top = _config(w, "top")
        middle = _config(w, "middle", owner(top, blockOwnerDeletion=True))
        _config(w, "bottom", owner(middle, blockOwnerDeletion=True), finalizers=("example.com/x",))
        w.delete("ConfigMap", "top", propagation="Foreground")
        await w.settle()
        assert _names(w) == ["bottom", "middle", "top"]

        _let_go(w, "bottom")
        await w.settle()
        assert _names(w) == []


@virtually
async def test_owners_in_a_circle_do_not_wait_for_each_other() -> None:
    async with world() as w:
        one = _config(w, "one")
        two = _config(w, "two", owner(one, blockOwnerDeletion=True))
        references = [owner(two, blockOwnerDeletion=True)]
        w.change(
            "ConfigMap",
            "one",
            lambda live: live | {"metadata": live["metadata"] | {"ownerReferences": references}},
        )
        w.delete("ConfigMap", "one", propagation="Foreground")
        await w.settle()

        assert _names(w) == []


@virtually
async def test_orphans_stay_without_their_owner() -> None:
    async with world() as w:
        top = _config(w, "top")
        second = _config(w, "second")
        _config(w, "child", owner(top), owner(second))
        w.delete("ConfigMap", "top", propagation="Orphan")
        await w.settle()

        assert _names(w) == ["child", "second"]
        references = w.get("ConfigMap", "child")["metadata"]["ownerReferences"]
        assert [one["name"] for one in references] == ["second"]


@virtually
async def test_who_has_another_owner_stays_and_loses_the_reference() -> None:
    async with world() as w:
        first, second = _config(w, "first"), _config(w, "second")
        _config(w, "child", owner(first), owner(second))
        w.delete("ConfigMap", "first")
        await w.settle()
        assert _names(w) == ["child", "second"]
        references = w.get("ConfigMap", "child")["metadata"]["ownerReferences"]
        assert [one["name"] for one in references] == ["second"]

        w.delete("ConfigMap", "second")
        await w.settle()
        assert _names(w) == []


@virtually
async def test_another_owner_frees_from_one_that_waits_in_the_foreground() -> None:
    async with world() as w:
        first, second = _config(w, "first"), _config(w, "second")
        _config(w, "child", owner(first, blockOwnerDeletion=True), owner(second))
        w.delete("ConfigMap", "first", propagation="Foreground")
        await w.settle()

        assert _names(w) == ["child", "second"]


@pytest.mark.parametrize("change", [{"uid": "gone"}, {"name": "nobody"}])
def test_an_owner_that_is_not_there_is_none(change: Json) -> None:
    @virtually
    async def run() -> None:
        async with world() as w:
            top = _config(w, "top")
            _config(w, "child", owner(top) | change)
            await w.settle()

            assert _names(w) == ["top"]

    run()


@virtually
async def test_an_owner_of_an_unknown_kind_may_exist() -> None:
    async with world() as w:
        reference = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "x", "uid": "u"}
        _config(w, "child", reference)
        await w.settle()

        assert _names(w) == ["child"]


@virtually
async def test_an_owner_in_another_namespace_is_none_and_an_event_says_so() -> None:
    async with world() as w:
        w.create("Namespace", {"metadata": {"name": "other"}})
        top = w.create("ConfigMap", {"metadata": {"name": "top", "namespace": "other"}})
        _config(w, "child", owner(top))
        await w.settle()

        assert _names(w) == []
        assert [reason for reason, _ in w.events("child")] == ["OwnerRefInvalidNamespace"]


@virtually
async def test_a_cluster_scoped_owner_takes_what_it_owns_with_it() -> None:
    async with world("n1") as w:
        _config(w, "child", owner(w.get("Node", "n1")))
        await w.settle()
        assert _names(w) == ["child"]

        w.cluster.remove_node("n1")
        await w.settle()
        assert _names(w) == []


@virtually
async def test_a_reference_that_is_added_later_counts() -> None:
    async with world() as w:
        top = _config(w, "top")
        _config(w, "child")
        w.change(
            "ConfigMap",
            "child",
            lambda one: one | {"metadata": one["metadata"] | {"ownerReferences": [owner(top)]}},
        )
        await w.settle()
        w.delete("ConfigMap", "top")
        await w.settle()

        assert _names(w) == []


@virtually
async def test_custom_kinds_own_and_are_owned() -> None:
    async with world() as w:
        w.create("CustomResourceDefinition", WIDGETS, "apiextensions.k8s.io/v1")
        top = w.create("Widget", {"metadata": {"name": "top"}}, "example.com/v1")
        body = {"metadata": {"name": "child", "ownerReferences": [owner(top)]}}
        w.create("Widget", body, "example.com/v1")
        _config(w, "config", owner(top))
        w.delete("Widget", "top", api="example.com/v1")
        await w.settle()

        assert w.find("Widget", "child", api="example.com/v1") is None
        assert _names(w) == []


@virtually
async def test_an_owner_deleted_before_the_collector_started_is_noticed() -> None:
    async with world() as w:
        top = _config(w, "top")
        w.cluster.stop()
        _config(w, "child", owner(top))
        w.delete("ConfigMap", "top")
        w.cluster.start()
        await w.settle()

        assert _names(w) == []


@virtually
async def test_a_deployment_takes_its_pods_with_it() -> None:
    async with world("n1") as w:
        template = {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": template}
        w.create("Deployment", {"metadata": {"name": "d"}, "spec": spec}, "apps/v1")
        await w.settle()
        assert len(w.placed()) == 2

        w.delete("Deployment", "d", api="apps/v1", propagation="Foreground")
        await w.settle()
        assert w.placed() == {}
        assert w.find("Deployment", "d", api="apps/v1") is None
