"""StatefulSets: order and names."""

from mcad.sim.controllers.statefulset import StatefulSetController
from tests.sim.workloads import in_a_world, selecting, template


def _set(world, replicas=3, **spec):
    world.add(StatefulSetController(world.registry, world.pods))
    spec = {
        "replicas": replicas,
        "selector": selecting(),
        "serviceName": "db",
        "template": template(),
    } | spec
    return world.create("StatefulSet", "db", spec)


def _names(world):
    return [
        pod["metadata"]["name"]
        for pod in world.all("Pod")
        if not pod["metadata"].get("deletionTimestamp")
    ]


def _images(world):
    return {
        pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in world.all("Pod")
    }


def test_pods_come_one_after_the_other():
    async def scenario(world):
        _set(world)
        for count in range(1, 4):
            await world.settle()
            assert _names(world) == [f"db-{number}" for number in range(count)]
            world.run_all()
        await world.settle()
        pod = world.get("Pod", "db-2")
        assert pod["metadata"]["labels"] == {
            "app": "web",
            "statefulset.kubernetes.io/pod-name": "db-2",
            "apps.kubernetes.io/pod-index": "2",
        }
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-2", "db")
        assert world.get("StatefulSet", "db")["status"] == {
            "observedGeneration": 1,
            "replicas": 3,
            "readyReplicas": 3,
            "availableReplicas": 3,
        }
        assert world.messages("SuccessfulCreate")[0] == "Created pod: db-0"

    in_a_world(scenario)


def test_scaling_down_takes_the_highest_first():
    async def scenario(world):
        _set(world)
        await world.settle(world.kubelets)
        world.change("StatefulSet", "db", replicas=1)
        await world.settle()
        assert _names(world) == ["db-0", "db-1"]
        await world.settle()
        assert _names(world) == ["db-0", "db-1"]  # db-2 is still terminating
        world.reap()
        await world.settle()
        assert _names(world) == ["db-0"]

    in_a_world(scenario)


def test_a_pod_stays_as_it_was_made_until_somebody_deletes_it():
    async def scenario(world):
        _set(world)
        await world.settle(world.kubelets)
        world.change("StatefulSet", "db", template=template(image="img:2"))
        await world.settle(world.kubelets)
        assert set(_images(world).values()) == {"img:1"}
        world.delete("Pod", "db-0")
        await world.settle(world.kubelets)
        assert _images(world) == {"db-0": "img:2", "db-1": "img:1", "db-2": "img:1"}

    in_a_world(scenario)
