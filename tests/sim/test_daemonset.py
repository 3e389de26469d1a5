"""DaemonSets: which nodes, and what the pods bring along."""

from mcad.sim.controllers.daemonset import DaemonSetController
from tests.sim.workloads import in_a_world, selecting, template


def _node(world, name, labels=None, taints=None):
    return world.create("Node", name, {"taints": taints or []}, labels=labels or {})


def _daemonset(world, nodes=3, **spec):
    for number in range(nodes):
        _node(world, f"n{number}", {"disk": "ssd" if number else "hdd"})
    world.add(DaemonSetController(world.registry, world.pods))
    spec = {"selector": selecting(), "template": template()} | spec
    return world.create("DaemonSet", "agent", spec)


def _target(pod):
    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (field,) = term["matchFields"]
    assert (field["key"], field["operator"]) == ("metadata.name", "In")
    return field["values"][0]


def _targets(world):
    return sorted(
        _target(pod) for pod in world.all("Pod") if not pod["metadata"].get("deletionTimestamp")
    )


def _run(world):
    """What scheduler and kubelets would do."""
    world.reap()
    for pod in world.all("Pod"):
        if pod["status"]["phase"] == "Pending":
            world.set_phase(pod["metadata"]["name"], "Running", node=_target(pod))


def _images(world):
    return sorted(pod["spec"]["containers"][0]["image"] for pod in world.all("Pod"))


def test_nodes_that_do_not_fit():
    async def scenario(world):
        _node(world, "gpu", {"disk": "ssd"}, [{"key": "gpu", "effect": "NoSchedule"}])
        _node(
            world,
            "cordoned",
            {"disk": "ssd"},
            [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
        )
        _daemonset(world, template=template(nodeSelector={"disk": "ssd"}))
        await world.settle(lambda: _run(world))
        assert _targets(world) == ["cordoned", "n1", "n2"]
        kind = world.kind("Node")
        for name, effect in (("n1", "NoSchedule"), ("n2", "NoExecute")):
            taint = {"key": "down", "effect": effect}
            world.registry.patch(
                kind, ("", name), lambda node, taint=taint: node | {"spec": {"taints": [taint]}}
            )
        await world.settle(lambda: _run(world))
        assert _targets(world) == ["cordoned", "n1"]
        status = world.get("DaemonSet", "agent")["status"]
        assert (status["desiredNumberScheduled"], status["numberMisscheduled"]) == (1, 1)

    in_a_world(scenario)


def test_a_pod_for_a_node_that_is_gone_is_deleted():
    async def scenario(world):
        _daemonset(world)
        await world.settle()
        world.registry.delete(world.kind("Node"), ("", "n2"))
        await world.settle(world.reap)
        assert _targets(world) == ["n0", "n1"]

    in_a_world(scenario)


def test_a_pod_stays_as_it_was_made_until_it_ends_or_is_deleted():
    async def scenario(world):
        _daemonset(world)
        await world.settle(lambda: _run(world))
        world.change("DaemonSet", "agent", template=template(image="img:2"))
        await world.settle(lambda: _run(world))
        assert _images(world) == ["img:1"] * 3
        one, other, _ = (pod["metadata"]["name"] for pod in world.all("Pod"))
        world.delete("Pod", one)
        world.set_phase(other, "Failed", ready=False)
        await world.settle(lambda: _run(world))
        assert _images(world) == ["img:1", "img:2", "img:2"]

    in_a_world(scenario)
