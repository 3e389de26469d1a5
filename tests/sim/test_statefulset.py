"""StatefulSets: order, names, claims and updates."""

import pytest

from mcad.sim.controllers.index import OwnedIndex
from mcad.sim.controllers.statefulset import StatefulSetController
from mcad.sim.controllers.volumes import ClaimBinder
from tests.sim.workloads import in_a_world, selecting, template


def _set(world, replicas=3, **spec):
    revisions = OwnedIndex(world.registry, world.kind("ControllerRevision"))
    world.add(
        StatefulSetController(world.registry, world.pods, revisions),
        ClaimBinder(world.registry),
    )
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
        (revision,) = world.all("ControllerRevision")
        assert pod["metadata"]["labels"] == {
            "app": "web",
            "statefulset.kubernetes.io/pod-name": "db-2",
            "apps.kubernetes.io/pod-index": "2",
            "controller-revision-hash": revision["metadata"]["name"],
        }
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-2", "db")
        assert world.get("StatefulSet", "db")["status"] == {
            "observedGeneration": 1,
            "replicas": 3,
            "readyReplicas": 3,
            "availableReplicas": 3,
            "currentReplicas": 3,
            "updatedReplicas": 3,
            "currentRevision": revision["metadata"]["name"],
            "updateRevision": revision["metadata"]["name"],
            "collisionCount": 0,
        }
        assert world.messages("SuccessfulCreate")[0] == (
            "Create Pod db-0 in StatefulSet db successful"
        )

    in_a_world(scenario)


def test_parallel_pods_come_and_go_at_once():
    async def scenario(world):
        _set(world, podManagementPolicy="Parallel", ordinals={"start": 5})
        await world.settle()
        assert _names(world) == ["db-5", "db-6", "db-7"]
        world.change("StatefulSet", "db", replicas=1)
        await world.settle()
        assert _names(world) == ["db-5"]

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


def test_a_failed_pod_is_made_anew_under_its_name():
    async def scenario(world):
        _set(world)
        await world.settle(world.kubelets)
        uid = world.get("Pod", "db-1")["metadata"]["uid"]
        world.set_phase("db-1", "Failed", ready=False)
        await world.settle(world.kubelets)
        assert world.get("Pod", "db-1")["metadata"]["uid"] != uid
        assert world.get("StatefulSet", "db")["status"]["readyReplicas"] == 3

    in_a_world(scenario)


def test_an_update_goes_from_the_highest_down():
    async def scenario(world):
        _set(world)
        await world.settle(world.kubelets)
        world.change("StatefulSet", "db", template=template(image="img:2"))
        seen = []

        def step():
            seen.append(sum(image == "img:2" for image in _images(world).values()))
            assert len(_names(world)) >= 2
            world.kubelets()

        await world.settle(step)
        assert sorted(seen) == seen
        status = world.get("StatefulSet", "db")["status"]
        assert set(_images(world).values()) == {"img:2"}
        assert status["currentRevision"] == status["updateRevision"]
        assert len(world.all("ControllerRevision")) == 2
        world.change("StatefulSet", "db", template=template())
        await world.settle(world.kubelets)
        assert set(_images(world).values()) == {"img:1"}
        numbers = sorted(one["revision"] for one in world.all("ControllerRevision"))
        assert numbers == [2, 3]

    in_a_world(scenario)


@pytest.mark.parametrize(
    ("strategy", "updated"),
    [
        ({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}, {"db-2"}),
        ({"type": "OnDelete"}, set()),
    ],
)
def test_what_an_update_leaves_alone(strategy, updated):
    async def scenario(world):
        _set(world, updateStrategy=strategy)
        await world.settle(world.kubelets)
        world.change("StatefulSet", "db", template=template(image="img:2"))
        await world.settle(world.kubelets)
        assert {name for name, image in _images(world).items() if image == "img:2"} == updated
        world.delete("Pod", "db-0")
        await world.settle(world.kubelets)
        again = "img:2" if strategy["type"] == "OnDelete" else "img:1"
        assert _images(world)["db-0"] == again

    in_a_world(scenario)


CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def test_every_pod_has_claims_of_its_own_that_stay():
    async def scenario(world):
        _set(world, 2, volumeClaimTemplates=[CLAIM])
        await world.settle(world.kubelets)
        claims = world.all("PersistentVolumeClaim")
        assert [one["metadata"]["name"] for one in claims] == ["data-db-0", "data-db-1"]
        assert claims[0]["status"] == {
            "phase": "Bound",
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
        }
        assert claims[0]["metadata"]["labels"] == {"app": "web"}
        (volume,) = world.get("Pod", "db-1")["spec"]["volumes"]
        assert volume["persistentVolumeClaim"] == {"claimName": "data-db-1"}
        world.change("StatefulSet", "db", replicas=1)
        await world.settle(world.kubelets)
        claims = world.all("PersistentVolumeClaim")
        assert not any(one["metadata"].get("ownerReferences") for one in claims)

    in_a_world(scenario)


def test_claims_may_go_with_their_owners():
    async def scenario(world):
        policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
        spec = {"volumeClaimTemplates": [CLAIM], "persistentVolumeClaimRetentionPolicy": policy}
        _set(world, 2, **spec)
        await world.settle(world.kubelets)
        owners = [one["metadata"]["ownerReferences"] for one in world.all("PersistentVolumeClaim")]
        assert [(one["kind"], one["name"]) for (one,) in owners] == [("StatefulSet", "db")] * 2
        world.change("StatefulSet", "db", replicas=1)
        await world.settle()
        owners = [one["metadata"]["ownerReferences"] for one in world.all("PersistentVolumeClaim")]
        kinds = [(one["kind"], one["name"]) for (one,) in owners]
        assert kinds == [("StatefulSet", "db"), ("Pod", "db-1")]

    in_a_world(scenario)
