"""DaemonSets: which nodes, what the pods bring along, and updates."""

import asyncio

import pytest

from mcad.sim.controllers.daemonpods import tolerations
from mcad.sim.controllers.daemonset import DaemonSetController
from mcad.sim.controllers.index import OwnedIndex
from tests.sim.workloads import in_a_world, selecting, template


def _node(world, name, labels=None, taints=None):
    return world.create("Node", name, {"taints": taints or []}, labels=labels or {})


def _daemonset(world, nodes=3, **spec):
    for number in range(nodes):
        _node(world, f"n{number}", {"disk": "ssd" if number else "hdd"})
    revisions = OwnedIndex(world.registry, world.kind("ControllerRevision"))
    world.add(DaemonSetController(world.registry, world.pods, revisions))
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


def test_one_pod_per_node():
    async def scenario(world):
        _daemonset(world)
        await world.settle()
        assert _targets(world) == ["n0", "n1", "n2"]
        pod = world.all("Pod")[0]
        (revision,) = world.all("ControllerRevision")
        hashed = pod["metadata"]["labels"]["controller-revision-hash"]
        assert revision["metadata"]["name"] == f"agent-{hashed}"
        assert {
            "key": "node.kubernetes.io/unschedulable",
            "operator": "Exists",
            "effect": "NoSchedule",
        } in pod["spec"]["tolerations"]
        await world.settle(lambda: _run(world))
        assert world.get("DaemonSet", "agent")["status"] == {
            "observedGeneration": 1,
            "desiredNumberScheduled": 3,
            "currentNumberScheduled": 3,
            "numberMisscheduled": 0,
            "numberReady": 3,
            "updatedNumberScheduled": 3,
            "numberAvailable": 3,
        }
        _node(world, "n3")
        await world.settle()
        assert _targets(world) == ["n0", "n1", "n2", "n3"]

    in_a_world(scenario)


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


def test_affinity_of_the_template_counts_too():
    async def scenario(world):
        terms = [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["hdd"]}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        _daemonset(world, template=template(affinity={"nodeAffinity": required}))
        await world.settle()
        assert _targets(world) == ["n0"]

    in_a_world(scenario)


@pytest.mark.parametrize(("surge", "most", "least"), [(0, 3, 2), (1, 4, 3)])
def test_a_rolling_update(surge, most, least):
    async def scenario(world):
        rolling = {"maxUnavailable": 0 if surge else 1, "maxSurge": surge}
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
        _daemonset(world, updateStrategy=strategy)
        await world.settle(lambda: _run(world))
        world.change("DaemonSet", "agent", template=template(image="img:2"))
        seen = []

        def step():
            alive = [pod for pod in world.all("Pod") if "deletionTimestamp" not in pod["metadata"]]
            ready = [pod for pod in alive if pod["status"]["phase"] == "Running"]
            seen.append((len(alive), len(ready)))
            _run(world)

        await world.settle(step)
        assert _images(world) == ["img:2"] * 3
        assert max(alive for alive, _ in seen) == most
        assert min(ready for _, ready in seen) == least
        status = world.get("DaemonSet", "agent")["status"]
        assert (status["updatedNumberScheduled"], status["numberAvailable"]) == (3, 3)
        assert len(world.all("ControllerRevision")) == 2

    in_a_world(scenario)


def test_on_delete_waits_for_somebody_to_delete():
    async def scenario(world):
        _daemonset(world, updateStrategy={"type": "OnDelete"})
        await world.settle(lambda: _run(world))
        world.change("DaemonSet", "agent", template=template(image="img:2"))
        await world.settle(lambda: _run(world))
        assert _images(world) == ["img:1"] * 3
        world.delete("Pod", world.all("Pod")[0]["metadata"]["name"])
        await world.settle(lambda: _run(world))
        assert _images(world) == ["img:1", "img:1", "img:2"]

    in_a_world(scenario)


def test_failed_pods_are_replaced_more_and_more_slowly():
    async def scenario(world):
        _daemonset(world, 1)
        made = set()
        for _ in range(120):
            await asyncio.sleep(0.5)
            world.reap()
            for pod in world.all("Pod"):
                made.add(pod["metadata"]["uid"])
                if pod["status"]["phase"] == "Pending":
                    world.set_phase(pod["metadata"]["name"], "Failed", ready=False, node="n0")
        assert 5 <= len(made) <= 8  # 1 s, 2 s, 4 s, 8 s...
        assert "FailedDaemonPod" in world.reasons("agent")

    in_a_world(scenario)


def test_a_pod_for_a_node_that_is_gone_is_deleted():
    async def scenario(world):
        _daemonset(world)
        await world.settle()
        world.registry.delete(world.kind("Node"), ("", "n2"))
        await world.settle(world.reap)
        assert _targets(world) == ["n0", "n1"]

    in_a_world(scenario)


def test_pods_with_the_hosts_network_bear_that_it_is_not_there():
    keys = [one["key"] for one in tolerations({"hostNetwork": True})]
    assert "node.kubernetes.io/network-unavailable" in keys
    given = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    assert tolerations({"tolerations": [given | {"tolerationSeconds": 5}]})[0] == given


def test_templates_are_numbered():
    async def scenario(world):
        number = "deprecated.daemonset.template.generation"
        assert _daemonset(world)["metadata"]["annotations"] == {number: "1"}
        await world.settle()
        pod = world.all("Pod")[0]
        assert pod["metadata"]["labels"]["pod-template-generation"] == "1"
        world.change("DaemonSet", "agent", minReadySeconds=5)
        changed = world.change("DaemonSet", "agent", template=template(image="img:2"))
        assert changed["metadata"]["annotations"] == {number: "2"}

    in_a_world(scenario)
