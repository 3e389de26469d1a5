"""What goes when its owners go, and in which order."""

from __future__ import annotations

from mcad.kube.types import Json
from tests.sim.worlds import World, owner, virtually, world


def _config(w: World, name: str, *owners: Json) -> Json:
    metadata: Json = {"name": name} | ({"ownerReferences": [*owners]} if owners else {})
    return w.create("ConfigMap", {"metadata": metadata})


def _names(w: World) -> list[str]:
    names = [one["metadata"]["name"] for one in w.all("ConfigMap", "default")]
    return [name for name in names if name != "kube-root-ca.crt"]


@virtually
async def test_owners_in_a_circle_do_not_wait_for_each_other() -> None:
    async with world() as w:
        one = _config(w, "one")
        two = _config(w, "two", owner(one, blockOwnerDeletion=True))
        references = [owner(two, blockOwnerDeletion=True)]
        w.remeta("ConfigMap", "one", ownerReferences=references)
        w.delete("ConfigMap", "one", propagation="Foreground")
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


@virtually
async def test_an_owner_of_an_unknown_kind_may_exist() -> None:
    async with world() as w:
        reference = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "x", "uid": "u"}
        _config(w, "child", reference)
        await w.settle()
        assert _names(w) == ["child"]


@virtually
async def test_a_reference_that_is_added_later_counts() -> None:
    async with world() as w:
        top = _config(w, "top")
        _config(w, "child")
        w.remeta("ConfigMap", "child", ownerReferences=[owner(top)])
        await w.settle()
        w.delete("ConfigMap", "top")
        await w.settle()
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
