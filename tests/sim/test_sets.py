"""StatefulSets: order and names. DaemonSets: a pod for each node that fits."""

from __future__ import annotations

from typing import Any

from mcad.sim.controllers.pods import is_ready
from tests.sim.worlds import World, making, virtually, world


@virtually
async def test_pods_come_one_after_the_other_and_the_highest_goes_first() -> None:
    async with world("n1") as w:
        w.make("StatefulSet", "db", serviceName="db", replicas=3, **making())
        await w.settle()
        told = [
            change.key[1] + (" is ready" if is_ready(change.obj) else "")
            for change in w.history("Pod")
        ]
        names = ["db-0", "db-1", "db-2"]
        in_turn = [f"{name}{what}" for name in names for what in ("", " is ready")]
        assert list(dict.fromkeys(told)) == in_turn
        last = w.get("Pod", "db-2")
        assert last["metadata"]["labels"] == {
            "app": "web",
            "statefulset.kubernetes.io/pod-name": "db-2",
            "apps.kubernetes.io/pod-index": "2",
        }
        assert (last["spec"]["hostname"], last["spec"]["subdomain"]) == ("db-2", "db")
        assert w.get("StatefulSet", "db")["status"]["availableReplicas"] == 3

        w.delete("Pod", "db-0")
        await w.settle()
        assert [*w.placed()] == names, "a deleted pod comes again"
        w.respec("StatefulSet", "db", replicas=1)
        await w.settle(0.5)
        assert [one["metadata"]["name"] for one in w.live()] == ["db-0", "db-1"], "one at a time"
        await w.settle()
        assert [*w.placed()] == ["db-0"]


def _agents(w: World) -> dict[str, str]:
    """Image by node, of pods that run; all others, by what they are meant for, are pending."""
    return {
        one["spec"].get("nodeName", "none"): one["spec"]["containers"][0]["image"]
        for one in w.all("Pod")
    }


def _taint(w: World, node: str, key: str, effect: str) -> Any:
    return w.respec("Node", node, taints=[{"key": key, "effect": effect}])


@virtually
async def test_each_node_that_fits_has_one_that_bears_what_kubernetes_says_of_nodes() -> None:
    async with world() as w:
        for name in ("gpu", "cordoned", "n1", "n2"):
            w.cluster.add_node(name, labels={"disk": "ssd"})
        w.cluster.add_node("full", labels={"disk": "ssd"}, pods=0)
        w.cluster.add_node("hdd", labels={"disk": "hdd"})
        _taint(w, "gpu", "gpu", "NoSchedule")
        w.cluster.cordon("cordoned")
        ssd: Any = {"nodeSelector": {"disk": "ssd"}}
        w.make("DaemonSet", "agent", **making(hostNetwork=True, **ssd))
        await w.settle()
        assert _agents(w) == dict.fromkeys(("cordoned", "n1", "n2", "none"), "img:1")
        keys = {one["key"] for one in w.all("Pod")[0]["spec"]["tolerations"]}
        assert "node.kubernetes.io/network-unavailable" in keys, "its network is the node's"

        _taint(w, "n1", "down", "NoSchedule")
        _taint(w, "n2", "down", "NoExecute")
        w.cluster.remove_node("full")
        w.cluster.add_node("late", labels={"disk": "ssd"})
        w.respec("DaemonSet", "agent", template=making("img:2", **ssd)["template"])
        await w.settle()
        assert _agents(w) == {"cordoned": "img:1", "n1": "img:1", "late": "img:2"}
        status = w.get("DaemonSet", "agent")["status"]
        assert (status["desiredNumberScheduled"], status["numberMisscheduled"]) == (2, 1)
