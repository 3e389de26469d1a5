"""DaemonSets: a pod for each node that fits."""

from mcad.sim.controllers.daemonset import DaemonSetController
from tests.sim.workloads import in_a_world, selecting, template


def _target(pod):
    required = pod["spec"]["affinity"]["nodeAffinity"]
    (term,) = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [one["key"] for one in term["matchFields"]] == ["metadata.name"]
    return term["matchFields"][0]["values"][0]


def _taint(world, node, key, effect):
    taints = {"taints": [{"key": key, "effect": effect}]}
    world.registry.patch(world.kind("Node"), ("", node), lambda live: live | {"spec": taints})


def test_each_node_that_fits_has_one_that_bears_what_kubernetes_says_of_nodes():
    async def scenario(world):
        def step():
            """What scheduler and kubelets would do."""
            world.reap()
            for pod in world.all("Pod"):
                if pod["status"]["phase"] == "Pending" and _target(pod) != "n3":
                    world.set_phase(pod["metadata"]["name"], "Running", node=_target(pod))

        for name in ("gpu", "cordoned", "n1", "n2", "n3"):
            world.create("Node", name, {}, labels={"disk": "ssd"})
        world.create("Node", "hdd", {}, labels={"disk": "hdd"})
        _taint(world, "gpu", "gpu", "NoSchedule")
        _taint(world, "cordoned", "node.kubernetes.io/unschedulable", "NoSchedule")
        world.add(DaemonSetController(world.registry, world.pods))
        made = template(nodeSelector={"disk": "ssd"}, hostNetwork=True)
        world.create("DaemonSet", "agent", {"selector": selecting(), "template": made})
        await world.settle(step)
        assert sorted(map(_target, world.all("Pod"))) == ["cordoned", "n1", "n2", "n3"]
        keys = {one["key"] for one in world.all("Pod")[0]["spec"]["tolerations"]}
        assert "node.kubernetes.io/network-unavailable" in keys, "its network is the node's"

        _taint(world, "n1", "down", "NoSchedule")
        _taint(world, "n2", "down", "NoExecute")
        world.registry.delete(world.kind("Node"), ("", "n3"))
        world.create("Node", "late", {}, labels={"disk": "ssd"})
        world.change(
            "DaemonSet", "agent", template=template(image="img:2", nodeSelector={"disk": "ssd"})
        )
        await world.settle(step)
        images = {_target(pod): pod["spec"]["containers"][0]["image"] for pod in world.all("Pod")}
        assert images == {"cordoned": "img:1", "n1": "img:1", "late": "img:2"}
        status = world.get("DaemonSet", "agent")["status"]
        assert (status["desiredNumberScheduled"], status["numberMisscheduled"]) == (2, 1)

    in_a_world(scenario)
