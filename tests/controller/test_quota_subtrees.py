"""Quota through the controller: what it watches, what it waits for, and what it makes of labels."""

from __future__ import annotations

from typing import Any

import pytest

from mcad.api.config import Config
from mcad.api.crd import crds
from mcad.controller.preflight import Preflight, Unfit
from mcad.controller.quota_subtrees import Quotas
from mcad.core.commands import WriteQuota
from mcad.core.events import AppWrapperSeen, Event, QuotaRefused, QuotaSeen
from mcad.core.state.quota_records import QuotaView
from mcad.kube.kinds import CRDS, QUOTA_SUBTREES
from tests.controller.test_runtime import KINDS, Rig, add_appwrapper, reads
from tests.controller.test_watches import backup, lively, restore, told
from tests.fakeapi import content, refuse

Json = dict[str, Any]


def subtree(name: str, parent: str = "", tree: str = "gold", **cpu: str) -> Json:
    """A QuotaSubtree whose nodes have these shares of CPU."""
    children = [{"name": one, "quotas": {"requests": {"cpu": n}}} for one, n in cpu.items()]
    spec = {"parent": parent, "children": children} if parent else {"children": children}
    metadata = {"name": name, "namespace": "quota", "uid": f"uid-{name}", "generation": 1}
    return {"metadata": {**metadata, "labels": {"tree": tree}}, "spec": spec}


def rig_with(*subtrees: Json, **settings: object) -> Rig:
    """A dispatcher that counts shares, and a node with room for four CPUs."""
    rig = Rig(cpu="4", **{"quotaEnabled": True, **settings})
    rig.server.served = (*KINDS, QUOTA_SUBTREES)
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


async def test_a_demand_above_the_free_quota_waits_with_a_reason() -> None:
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


async def test_a_subtree_that_loses_its_label_is_of_no_tree() -> None:
    async with rig_with(subtree("root", root="0")) as rig:
        add_labelled(rig, "a", "1", gold="root")
        await rig.clock.advance(1)
        rig.server.change("quotasubtrees", "root", lambda obj: obj["metadata"].pop("labels"))
        await rig.clock.advance(2)
        assert rig.status("a")["state"] == "Running"
        assert ready(rig, "root")["reason"] == "NoTree"


async def test_what_the_core_knows_already_is_not_told_again() -> None:
    """Of its own writes among others."""
    async with rig_with(subtree("root", root="1")) as rig:
        rig.server.change("quotasubtrees", "root", lambda obj: obj["metadata"].update(x={}))
        add_labelled(rig, "a", "1", gold="root")
        await rig.clock.advance(5)
        assert quota_writes(rig) > 1
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
            'Quota tree "gold" has no leaf "rde"; it waits until there is one. Did you mean "red"?'
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


# -- what their status says -----------------------------------------------------------------------


def status_of(rig: Rig, name: str) -> Json:
    """The status of a QuotaSubtree."""
    status: Json = rig.server.named("quotasubtrees", name).get("status", {})
    return status


def ready(rig: Rig, name: str) -> Json:
    """Its condition Ready."""
    (one,) = [each for each in status_of(rig, name)["conditions"] if each["type"] == "Ready"]
    return one


def quota_writes(rig: Rig) -> int:
    """The status writes to QuotaSubtrees so far."""
    return len(rig.server.seen("PUT", "/quotasubtrees/"))


async def test_every_node_shows_its_figures_and_nothing_is_written_at_rest() -> None:
    async with rig_with(*TREE) as rig:
        for name, cpu in (("a", "1500m"), ("b", "1"), ("c", "250m")):
            add_labelled(rig, name, cpu, gold="red" if name != "c" else "blue")
        await rig.clock.advance(5)
        assert status_of(rig, "teams")["children"] == [
            {
                "name": "red",
                "nominal": {"cpu": "1"},
                "allocated": {"cpu": "1500m"},
                "borrowed": {"cpu": "500m"},
                "waiting": {"cpu": "1"},
            },
            {
                "name": "blue",
                "nominal": {"cpu": "1"},
                "allocated": {"cpu": "250m"},
                "lent": {"cpu": "500m"},
            },
        ]
        assert status_of(rig, "teams")["observedGeneration"] == 1
        assert ready(rig, "teams")["status"] == "True"
        before = quota_writes(rig)
        await lively(rig, 120)
        assert quota_writes(rig) == before


async def test_a_restart_writes_no_status_that_is_shown_already() -> None:
    async with rig_with(*TREE) as rig:
        add_labelled(rig, "a", "1500m", gold="red")
        add_labelled(rig, "b", "1", gold="red")
        await rig.clock.advance(5)
    again = Rig(quotaEnabled=True)
    again.server.served = rig.server.served
    again.server.objects, again.server.version = rig.server.objects, rig.server.version
    async with again:
        await lively(again, 30)
        assert again.cluster.forest.trees.get("gold") is not None
        assert quota_writes(again) == 0


async def test_a_status_that_another_client_wrote_is_corrected() -> None:
    async with rig_with(*TREE) as rig:
        await rig.clock.advance(5)
        right = status_of(rig, "teams")
        wrong = {**right, "children": []}
        rig.server.change("quotasubtrees", "teams", lambda obj: obj.update(status=wrong))
        await rig.clock.advance(5)
        assert status_of(rig, "teams") == right


async def test_fields_of_a_status_that_are_not_ours_stay() -> None:
    async with rig_with(*TREE) as rig:
        await rig.clock.advance(5)
        rig.server.change("quotasubtrees", "teams", lambda obj: obj["status"].update(later=[1]))
        add_labelled(rig, "a", "500m", gold="red")
        await rig.clock.advance(10)
        assert status_of(rig, "teams")["children"][0]["allocated"] == {"cpu": "500m"}
        assert status_of(rig, "teams")["later"] == [1]


async def test_a_write_is_fenced_by_the_version_that_was_judged() -> None:
    async with rig_with(*TREE) as rig:
        await rig.clock.advance(5)
        for one in rig.server.seen("PUT", "/quotasubtrees/"):
            assert content(one)["metadata"]["resourceVersion"]
            assert one.path.endswith("/status")
        rig.server.fail("PUT", "/quotasubtrees/", *[refuse(409, "Conflict")] * 2)
        add_labelled(rig, "a", "500m", gold="red")
        await rig.clock.advance(10)
        assert status_of(rig, "teams")["children"][0]["allocated"] == {"cpu": "500m"}


async def test_a_status_that_may_not_be_written_is_told_once_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = rig_with(subtree("root", root="1"))
    rig.server.fail_always("PUT", "/quotasubtrees/", refuse(403, "Forbidden", "no right"))
    async with rig:
        await lively(rig, 60)
        told = [one.getMessage() for one in caplog.records if "quotasubtree=" in one.getMessage()]
        assert told == [
            "a status cannot be written quotasubtree=quota/root error=403 Forbidden: no right"
        ]
        add_labelled(rig, "a", "1", gold="root")
        rig.server.recover()
        await lively(rig, 60)
        assert rig.status("a")["state"] == "Running"
        assert status_of(rig, "root")["children"][0]["allocated"] == {"cpu": "1"}


async def test_a_server_that_was_restored_is_believed() -> None:
    async with rig_with(*TREE) as rig:
        await rig.clock.advance(5)
        kept = backup(rig.server)
        rig.server.change("quotasubtrees", "root", _resize("9"))
        await rig.clock.advance(5)
        assert status_of(rig, "root")["children"][0]["nominal"] == {"cpu": "9"}
        restore(rig.server, kept)
        await lively(rig, 90)
        tree = rig.cluster.forest.trees.get("gold")
        assert tree is not None
        assert tree.root.nominal == {"cpu": 2000}
        assert status_of(rig, "root")["children"][0]["nominal"] == {"cpu": "2"}


async def test_one_that_is_deleted_and_made_anew_is_written_anew() -> None:
    async with rig_with(*TREE, quotaGracePeriod=20) as rig:
        await rig.clock.advance(5)
        rig.server.remove("quotasubtrees", "root")
        await rig.clock.advance(5)
        assert ready(rig, "teams")["reason"] == "InForce", "it counts as before"
        await rig.clock.advance(20)
        assert ready(rig, "teams")["reason"] == "NoRoot"
        made = subtree("root", root="5")
        made["metadata"]["uid"] = "another"
        rig.server.put("quotasubtrees", made)
        await rig.clock.advance(5)
        assert status_of(rig, "root")["children"][0]["nominal"] == {"cpu": "5"}
        assert ready(rig, "teams")["reason"] == "InForce"


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


async def test_mcads_own_crd_is_noticed_before_anything_is_done() -> None:
    """It has no status to write, so what we say would be lost, and said again."""
    rig = rig_with()
    old = crds()[1]
    del old["spec"]["versions"][0]["subresources"]
    rig.server.put("customresourcedefinitions", crds()[0], old)
    for counts in (False, True):
        config = Config(quotaEnabled=counts)
        preflight = Preflight(rig.client, config, coexist=True)
        if counts:
            with pytest.raises(Unfit, match=r"quotasubtrees.*has no status subresource"):
                await preflight.check()
        else:
            await preflight.check()


async def test_the_status_of_an_appwrapper_names_its_leaves_and_nothing_else_is_touched() -> None:
    async with rig_with(*TREE) as rig:
        for name, cpu in (("runs", "2"), ("waits", "1")):
            add_labelled(rig, name, cpu, gold="red")
            await rig.clock.advance(1)
        for name in ("runs", "waits"):
            assert rig.status(name)["quota"] == [{"tree": "gold", "leaf": "red"}]
            assert rig.server.named("appwrappers", name)["metadata"]["labels"] == {"gold": "red"}
        assert not [one for one in rig.server.seen("PUT") if not one.path.endswith("/status")]


async def test_trees_that_are_installed_later_are_found_by_their_crd() -> None:
    rig = rig_with()
    rig.server.served = KINDS
    rig.server.put(CRDS.plural, crds()[0])
    add_labelled(rig, "a", "1")
    async with rig:
        await lively(rig, 300)  # by now it is asked for very seldom
        assert rig.status("a") == {}
        rig.server.served = (*KINDS, QUOTA_SUBTREES)
        rig.server.put(CRDS.plural, crds()[1])
        await lively(rig, 4)
        assert rig.status("a")["state"] == "Running"


async def test_a_lost_right_to_list_trees_stops_all_dispatches_and_is_reported() -> None:
    async with rig_with(*TREE) as rig:
        add_labelled(rig, "before", "1", gold="red")
        await lively(rig, 2)
        rig.server.fail_always("GET", "/quotasubtrees", refuse(403, "Forbidden", "no right"))
        rig.server.send(None)
        await lively(rig, 5)
        add_labelled(rig, "after", "500m", gold="red")
        writes_before = quota_writes(rig)
        await lively(rig, 30)
        assert rig.status("before")["state"] == "Running"
        assert rig.status("after").get("state", "") != "Running"
        assert quota_writes(rig) == writes_before
        code, text = await told(rig, "/readyz")
        assert code == 503
        assert text.startswith("nothing is dispatched: quotasubtrees: 403 Forbidden: no right")
        rig.server.recover()
        await lively(rig, 70)
        assert rig.status("after")["state"] == "Running"


async def test_a_status_that_is_not_sent_because_the_dispatcher_ends_is_no_trouble(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fed: list[Event] = []
    rig = rig_with(subtree("root", root="1"))
    quotas = Quotas(rig.client.fenced(lambda: 0.0), fed.append)
    quotas.seen(rig.server.named("quotasubtrees", "root"))
    await quotas.write(WriteQuota("uid-root", 1, QuotaView(1)))
    assert [type(one) for one in fed] == [QuotaSeen, QuotaRefused]
    assert caplog.records == []
