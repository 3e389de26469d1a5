"""Quota through the controller: what it watches, what it waits for, and what it makes of labels."""

from __future__ import annotations

from typing import Any

from mcad.core.events import AppWrapperSeen, QuotaGone, QuotaSeen
from mcad.kube.kinds import QUOTA_SUBTREES
from tests.controller.test_runtime import KINDS, Rig, add_appwrapper, add_node, reads
from tests.controller.test_watches import lively, told

Json = dict[str, Any]


def subtree(name: str, parent: str = "", tree: str = "gold", **cpu: str) -> Json:
    """A QuotaSubtree whose nodes have these shares of CPU."""
    children = [{"name": one, "quotas": {"requests": {"cpu": n}}} for one, n in cpu.items()]
    spec = {"parent": parent, "children": children} if parent else {"children": children}
    metadata = {"name": name, "namespace": "quota", "uid": f"uid-{name}", "generation": 1}
    return {"metadata": {**metadata, "labels": {"tree": tree}}, "spec": spec}


def rig_with(*subtrees: Json, **settings: object) -> Rig:
    """A dispatcher that counts shares, and a node with room for four CPUs."""
    rig = Rig(**{"quotaEnabled": True, **settings})
    rig.server.served = (*KINDS, QUOTA_SUBTREES)
    add_node(rig.server, "4")
    for one in subtrees:
        rig.server.put("quotasubtrees", one)
    return rig


def add_labelled(rig: Rig, name: str, cpu: str, **labels: str) -> None:
    add_appwrapper(rig.server, name, cpu)
    label(rig, name, labels)


def label(rig: Rig, name: str, labels: dict[str, str]) -> None:
    rig.server.change("appwrappers", name, lambda obj: obj["metadata"].update(labels=labels))


def told_of(rig: Rig, name: str) -> str:
    """Why an AppWrapper waits, by its last condition."""
    return str(rig.status(name)["conditions"][-1]["message"])


TREE = (subtree("root", root="2"), subtree("teams", "root", red="1", blue="1"))


async def test_who_asks_for_more_than_is_left_waits_and_is_told() -> None:
    async with rig_with(*TREE) as rig:
        for name in ("a", "b", "c"):
            add_labelled(rig, name, "1", gold="red")
            await rig.clock.advance(1)

        assert [rig.status(n)["state"] for n in "abc"] == ["Running", "Running", "Pending"]
        assert rig.status("a")["dispatch"]["quota"] == [{"tree": "gold", "leaf": "red"}]
        assert 'node "root": cpu: 1 requested, 2 of 2 used' in told_of(rig, "c")
        rig.server.change("quotasubtrees", "root", _resize("3"))
        await rig.clock.advance(1)
        assert rig.status("c")["state"] == "Running"


def _resize(cpu: str) -> Any:
    def change(obj: Json) -> None:
        obj["spec"]["children"][0]["quotas"]["requests"]["cpu"] = cpu

    return change


async def test_without_a_tree_nothing_is_limited() -> None:
    async with rig_with() as rig:
        add_labelled(rig, "a", "1", gold="red")
        await rig.clock.advance(1)
        assert rig.status("a")["state"] == "Running"


async def test_a_tree_that_is_deleted_limits_nobody_any_more() -> None:
    async with rig_with(subtree("root", root="0")) as rig:
        add_labelled(rig, "a", "1", gold="root")
        await rig.clock.advance(1)
        assert rig.status("a")["state"] == "Pending"
        rig.server.remove("quotasubtrees", "root")
        await rig.clock.advance(1)
        assert rig.status("a")["state"] == "Running"


async def test_a_subtree_that_loses_its_label_is_of_no_tree() -> None:
    async with rig_with(subtree("root", root="0")) as rig:
        add_labelled(rig, "a", "1", gold="root")
        await rig.clock.advance(1)
        rig.server.change("quotasubtrees", "root", lambda obj: obj["metadata"].pop("labels"))
        await rig.clock.advance(1)
        assert rig.status("a")["state"] == "Running"
        assert [type(e) for e in rig.events if isinstance(e, QuotaSeen | QuotaGone)] == [
            QuotaSeen,
            QuotaGone,
        ]


async def test_what_the_core_knows_already_is_not_told_again() -> None:
    async with rig_with(subtree("root", root="1")) as rig:
        rig.server.change("quotasubtrees", "root", lambda obj: obj.update(status={}))
        await rig.clock.advance(1)
        assert len([e for e in rig.events if isinstance(e, QuotaSeen)]) == 1


async def test_the_queue_of_kueue_is_a_leaf_of_the_tree_of_the_setting() -> None:
    async with rig_with(*TREE, queueNameTree="gold") as rig:
        add_appwrapper(rig.server, "a", "1")
        label(rig, "a", {"kueue.x-k8s.io/queue-name": "blue"})
        await rig.clock.advance(1)
        assert rig.status("a")["dispatch"]["quota"] == [{"tree": "gold", "leaf": "blue"}]


async def test_a_label_that_is_changed_names_another_leaf_at_once() -> None:
    async with rig_with(subtree("root", root="2"), subtree("t", "root", red="1")) as rig:
        add_labelled(rig, "a", "1", gold="rde")
        await rig.clock.advance(1)
        assert told_of(rig, "a").endswith(
            'Quota tree "gold" has no leaf "rde"; it waits until there is one. Alike: red.'
        )
        label(rig, "a", {"gold": "red"})
        await rig.clock.advance(1)
        assert rig.status("a")["state"] == "Running"


async def test_without_quota_labels_mean_nothing_and_nothing_is_watched() -> None:
    async with rig_with(subtree("root", root="0"), quotaEnabled=False) as rig:
        add_labelled(rig, "a", "1", gold="root")
        await rig.clock.advance(1)
        assert rig.status("a")["state"] == "Running"
        assert not [one.path for one in rig.server.requests if "quotasubtrees" in one.path]
        seen = [e for e in rig.events if isinstance(e, AppWrapperSeen)]
        assert {e.workload.quota for e in seen} == {()}


# -- what cannot be seen --------------------------------------------------------------------------


async def test_nothing_is_dispatched_before_the_trees_are_listed() -> None:
    rig = rig_with(*TREE)
    rig.server.deny("quotasubtrees", method="GET")
    add_labelled(rig, "a", "1", gold="red")
    async with rig:
        await rig.clock.advance(5)
        assert rig.status("a") == {}
        rig.server.recover()
        await rig.clock.advance(60)
        assert rig.status("a")["state"] == "Running"


async def test_trees_that_are_not_installed_are_told_and_waited_for() -> None:
    rig = rig_with()
    rig.server.served = KINDS
    add_labelled(rig, "a", "1")
    async with rig:
        await lively(rig, 5)
        assert rig.status("a") == {}
        status, text = await told(rig, "/readyz")
        assert status == 503
        assert text == (
            "not synced: quotasubtrees: QuotaSubtrees are not installed; install them with `mcad "
            "crd | kubectl apply --server-side -f -`, or set quotaEnabled to false\n"
        )
        assert 'mcad_stream_synced{kind="quotasubtrees"} 0.0' in (await told(rig, "/metrics"))[1]
        rig.server.served = (*KINDS, QUOTA_SUBTREES)
        await lively(rig, 60)
        assert rig.status("a")["state"] == "Running"
        assert await told(rig, "/readyz") == (200, "ok\n")


async def test_only_where_it_watches_do_trees_count() -> None:
    async with rig_with(watchNamespaces=["default"]) as rig:
        rig.server.put("quotasubtrees", subtree("root", root="0"))
        add_labelled(rig, "a", "1", gold="root")
        await rig.clock.advance(1)
        assert rig.status("a")["state"] == "Running"
        assert [one for one in reads(rig.server) if "quota" in one] == [
            "/apis/quota.codeflare.dev/v1alpha1/namespaces/default/quotasubtrees"
        ]
