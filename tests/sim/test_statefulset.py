"""StatefulSets: order and names."""

from mcad.sim.controllers.statefulset import StatefulSetController
from tests.sim.workloads import in_a_world, selecting, template


def _names(world):
    pods = [pod["metadata"] for pod in world.all("Pod")]
    return [one["name"] for one in pods if not one.get("deletionTimestamp")]


def test_pods_come_one_after_the_other_and_the_highest_goes_first():
    async def scenario(world):
        world.add(StatefulSetController(world.registry, world.pods))
        spec = {"selector": selecting(), "serviceName": "db", "template": template()}
        world.create("StatefulSet", "db", spec | {"replicas": 3})
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
        assert world.get("StatefulSet", "db")["status"]["availableReplicas"] == 3

        world.delete("Pod", "db-0")
        await world.settle(world.kubelets)
        assert _names(world) == ["db-0", "db-1", "db-2"], "who is deleted comes again"
        world.change("StatefulSet", "db", replicas=1)
        await world.settle()
        await world.settle()
        assert _names(world) == ["db-0", "db-1"], "db-2 is still terminating"
        world.reap()
        await world.settle()
        assert _names(world) == ["db-0"]

    in_a_world(scenario)
