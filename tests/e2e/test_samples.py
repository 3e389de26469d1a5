"""Every file in samples/ does what its comment says, unmodified, on a cluster big enough."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from mcad.api.appwrapper import parse
from mcad.api.catalog import WELL_KNOWN, StaticCatalog
from mcad.api.config import Config
from mcad.api.pods import read_pod
from tests import budget
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.operators import (
    COSCHEDULING,
    JOBSET,
    KUBERAY,
    LEADER_WORKER_SET,
    TRAINING,
    Operator,
    Operators,
)
from tests.e2e.process import Dispatcher
from tests.e2e.support import (
    GROUP,
    SAMPLES,
    appwrapper,
    conditions_of,
    create,
    delete,
    items,
    pods,
    status_of,
)
from tests.samples.dialects import in_other_dialect

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]
Act = Callable[[ControlPlane, str], None]
"""An action on the AppWrapper of this name, and what comes of it."""

CORE, APPS, BATCH = "/api/v1", "/apis/apps/v1", "/apis/batch/v1"
RAY, KUBEFLOW = "/apis/ray.io/v1", "/apis/kubeflow.org/v1"
COSCHEDULED = "/apis/scheduling.x-k8s.io/v1alpha1"
JOBSETS, LWS = "/apis/jobset.x-k8s.io/v1alpha2", "/apis/leaderworkerset.x-k8s.io/v1"
MERGE = "application/merge-patch+json"
HEALTH = "autopilot.ibm.com/gpuhealth"


@dataclass(frozen=True)
class Sample:
    """What a sample makes: collections with names, ``pods`` of them that run at a time, and
    ``left`` when it has ended, if that is another number.
    It needs ``operator``, or more than Kubernetes has if ``before`` it is dispatched or ``after``
    its pods run an action is needed."""

    objects: dict[str, list[str]]
    pods: int
    left: int = 0
    completes: bool = False
    resets: int = 0  # before it fails
    operator: Operator | None = None
    before: Act | None = None
    after: Act | None = None


# -- what people and machines do -------------------------------------------------------------


def is_released(plane: ControlPlane, name: str) -> None:
    """It is on hold, with nothing made; then it is not."""
    plane.wait_for(lambda: status_of(plane, name).get("phase") == "Suspended", 30, f"{name} waits")
    assert conditions_of(plane, name).get("Dispatched") is None
    assert owned_pods(plane, name) == []
    plane.kubectl("patch", "aw", name, "--type=merge", "-p", '{"spec":{"suspend":false}}')


def nodes_are_in_a_rack(plane: ControlPlane, name: str) -> None:
    """There is no rack; then two nodes are in one."""
    plane.wait_for(lambda: status_of(plane, name).get("phase") == "Suspended", 30, f"{name} waits")
    nodes = sorted(one["metadata"]["name"] for one in items(plane, f"{CORE}/nodes"))[:2]
    plane.kubectl("label", "node", *nodes, "topology.kubernetes.io/rack=r1", "--overwrite")
    plane.wait_for(lambda: len(owned_pods(plane, name)) == 2, 60, f"{name} is dispatched")
    assert {pod["spec"].get("nodeName", nodes[0]) for pod in owned_pods(plane, name)} <= {*nodes}
    (domain,) = status_of(plane, name)["dispatch"]["domains"]
    assert domain["value"] == "r1"


def leaves_a_bad_node(plane: ControlPlane, name: str) -> None:
    """Autopilot finds the GPUs of a node broken where some of it runs."""
    bad = min(pod["spec"]["nodeName"] for pod in owned_pods(plane, name))
    for pod in owned_pods(plane, name):
        terms = pod["spec"]["affinity"]["nodeAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]["nodeSelectorTerms"]
        avoided = {"key": HEALTH, "operator": "NotIn", "values": ["TESTING", "EVICT"]}
        assert [one["matchExpressions"] for one in terms] == [[avoided]]
    plane.kubectl("label", "node", bad, f"{HEALTH}=EVICT")

    def runs_elsewhere() -> bool:
        found = [
            (pod["spec"].get("nodeName", bad), pod["status"]["phase"])
            for pod in owned_pods(plane, name)
        ]
        return len(found) == 2 and all(node != bad and at == "Running" for node, at in found)

    plane.wait_for(runs_elsewhere, 120, f"{name} has left {bad}")
    assert "resettingCount" not in status_of(plane, name)
    plane.kubectl("label", "node", bad, f"{HEALTH}-")


def ray_has_done_its_job(plane: ControlPlane, name: str) -> None:
    """What a head that really runs tells KubeRay, and how its submitter ends then."""
    found = [one["metadata"] for one in owned_pods(plane, name)]
    (submitter,) = (one["name"] for one in found if "job-name" in one["labels"])
    succeeds(plane, submitter)
    ended = {
        "jobStatus": "SUCCEEDED",
        "jobDeploymentStatus": "Complete",
        "endTime": datetime.now(tz=UTC).isoformat(timespec="seconds"),
    }
    path = f"{RAY}/namespaces/default/rayjobs/{name}/status"
    assert plane.request("PATCH", path, {"status": ended}, content_type=MERGE)[0] == 200


def mpirun_has_ended(plane: ControlPlane, name: str) -> None:
    """A pod without a known end runs for ever here."""
    succeeds(plane, f"{name}-launcher")


def succeeds(plane: ControlPlane, pod: str) -> None:
    """A pod ends well."""
    done = {"status": {"phase": "Succeeded"}}
    path = f"{CORE}/namespaces/default/pods/{pod}/status"
    assert plane.request("PATCH", path, done, content_type=MERGE)[0] == 200


EXPECTED = {
    "aw-01.yaml": Sample({f"{APPS}/deployments": ["0001-aw-generic-deployment-1"]}, 2),
    "aw-02.yaml": Sample({f"{APPS}/deployments": ["0002-aw-generic-deployment-2"]}, 2),
    "aw-components.yaml": Sample(
        {f"{BATCH}/jobs": ["aw-components-train"], f"{CORE}/pods": ["aw-components-watch"]},
        pods=3,
        completes=True,
    ),
    "aw-gang.yaml": Sample(
        {
            f"{CORE}/configmaps": ["aw-gang"],
            f"{CORE}/services": ["aw-gang-leader"],
            f"{BATCH}/jobs": ["aw-gang-leader", "aw-gang-workers"],
        },
        pods=5,
        completes=True,
    ),
    "aw-job.yaml": Sample({f"{BATCH}/jobs": ["aw-job"]}, pods=4, left=8, completes=True),
    "aw-pod.yaml": Sample({f"{CORE}/pods": ["aw-pod"]}, pods=1, completes=True),
    "aw-retry.yaml": Sample({f"{BATCH}/jobs": ["aw-retry"]}, pods=0, resets=2),
    "aw-service.yaml": Sample(
        {f"{CORE}/services": ["aw-service"], f"{APPS}/deployments": ["aw-service"]}, pods=3
    ),
    "aw-pods.yaml": Sample(
        {
            f"{CORE}/services": ["aw-pods"],
            f"{CORE}/pods": ["aw-pods-client-0", "aw-pods-client-1", "aw-pods-server"],
        },
        pods=3,
        completes=True,
    ),
    "aw-statefulset.yaml": Sample(
        {f"{CORE}/services": ["aw-statefulset"], f"{APPS}/statefulsets": ["aw-statefulset"]}, pods=3
    ),
    "aw-suspended.yaml": Sample(
        {f"{BATCH}/jobs": ["aw-suspended"]}, pods=2, completes=True, before=is_released
    ),
    "aw-rack.yaml": Sample(
        {f"{BATCH}/jobs": ["aw-rack"]}, pods=2, completes=True, before=nodes_are_in_a_rack
    ),
    "aw-autopilot.yaml": Sample(
        {f"{BATCH}/jobs": ["aw-autopilot"]}, pods=2, after=leaves_a_bad_node
    ),
    "aw-raycluster.yaml": Sample(
        {f"{RAY}/rayclusters": ["raycluster-autoscaler"]}, pods=2, operator=KUBERAY
    ),
    "aw-raycluster-1.yaml": Sample(
        {f"{RAY}/rayclusters": ["raycluster-autoscaler-1"]}, pods=2, operator=KUBERAY
    ),
    "aw-rayjob.yaml": Sample(
        {f"{RAY}/rayjobs": ["aw-rayjob"]},
        pods=3,
        left=1,  # KubeRay deletes the cluster
        completes=True,
        operator=KUBERAY,
        after=ray_has_done_its_job,
    ),
    "aw-pytorchjob.yaml": Sample(
        {f"{KUBEFLOW}/pytorchjobs": ["aw-pytorchjob"]}, pods=3, completes=True, operator=TRAINING
    ),
    "aw-pytorchjob-v1beta1.yaml": Sample(
        {f"{KUBEFLOW}/pytorchjobs": ["aw-pytorchjob-v1beta1"]},
        pods=3,
        completes=True,
        operator=TRAINING,
    ),
    "aw-tfjob.yaml": Sample(
        {f"{KUBEFLOW}/tfjobs": ["aw-tfjob"]}, pods=4, completes=True, operator=TRAINING
    ),
    "aw-mpijob.yaml": Sample(
        {f"{KUBEFLOW}/mpijobs": ["aw-mpijob"]},
        pods=3,
        left=1,  # the operator deletes the workers
        completes=True,
        operator=TRAINING,
        after=mpirun_has_ended,
    ),
    "aw-jobset.yaml": Sample(
        {f"{JOBSETS}/jobsets": ["aw-jobset"]}, pods=5, completes=True, operator=JOBSET
    ),
    "aw-jobset-v1beta1.yaml": Sample(
        {f"{JOBSETS}/jobsets": ["aw-jobset-v1beta1"]}, pods=4, completes=True, operator=JOBSET
    ),
    "aw-podgroup.yaml": Sample(
        {f"{COSCHEDULED}/podgroups": ["aw-podgroup"], f"{BATCH}/jobs": ["aw-podgroup"]},
        pods=3,
        completes=True,
        operator=COSCHEDULING,
    ),
    "aw-leaderworkerset.yaml": Sample(
        {f"{LWS}/leaderworkersets": ["aw-leaderworkerset"]}, pods=6, operator=LEADER_WORKER_SET
    ),
}


@pytest.fixture(scope="module")
def samples(control_plane: ControlPlane, account: Any) -> Iterator[tuple[ControlPlane, Dispatcher]]:
    """All samples on one cluster at once: some sleep for half a minute, and do so together."""
    plane = control_plane
    add_nodes(plane)
    needed = dict.fromkeys(one.operator for one in EXPECTED.values() if one.operator)
    with Operators(plane, *needed), Dispatcher(plane, account) as dispatcher:
        submit(plane, EXPECTED)
        yield plane, dispatcher


def add_nodes(plane: ControlPlane) -> None:
    """Room for all samples at once."""
    for name in ("node-1", "node-2"):
        more = {"nvidia.com/gpu": "8", "ephemeral-storage": "100Gi"}
        plane.add_node(name, cpu="24", memory="64Gi", extended=more)


def submit(plane: ControlPlane, files: Iterable[str]) -> None:
    """Create samples as people do."""
    flags = (f"--filename={SAMPLES / file}" for file in files)
    plane.kubectl("create", "--validate=strict", *flags)


def test_every_sample_is_covered() -> None:
    found = {path.name for path in SAMPLES.iterdir() if path.suffix == ".yaml"}
    assert found == set(EXPECTED)


@pytest.mark.parametrize("file", budget.draw(list(EXPECTED), len(EXPECTED) // 2, "samples"))
def test_a_sample(samples: tuple[ControlPlane, Dispatcher], file: str) -> None:
    plane, dispatcher = samples
    live(plane, dispatcher, file)


ONE_DIALECT = (
    "aw-service.yaml",
    "aw-statefulset.yaml",
    "aw-raycluster.yaml",
    "aw-rayjob.yaml",
    "aw-leaderworkerset.yaml",
    "aw-podgroup.yaml",
    "aw-tfjob.yaml",
    "aw-mpijob.yaml",
)
"""What no other sample wraps in the other dialect."""


@pytest.fixture(scope="module")
def translated(samples: tuple[ControlPlane, Dispatcher]) -> Iterator[None]:
    """The same in the other dialect, once the samples themselves are gone."""
    plane, _ = samples
    objs = [in_other_dialect(yaml.safe_load((SAMPLES / file).read_text())) for file in ONE_DIALECT]
    names = [obj["metadata"]["name"] for obj in objs]
    delete(plane, *names)
    text = "\n---\n".join(json.dumps(obj) for obj in objs)
    plane.kubectl("create", "--validate=strict", "-f", "-", stdin=text)
    yield
    delete(plane, *names)


@pytest.mark.usefixtures("translated")
@pytest.mark.parametrize("file", budget.draw(ONE_DIALECT, len(ONE_DIALECT) // 2, "dialects"))
def test_what_a_sample_wraps_runs_in_the_other_dialect(
    samples: tuple[ControlPlane, Dispatcher], file: str
) -> None:
    plane, dispatcher = samples
    obj = yaml.safe_load((SAMPLES / file).read_text())
    name, sample = obj["metadata"]["name"], EXPECTED[file]
    dispatched(plane, name, sample)
    counted(plane, dispatcher, name, sample, demand(in_other_dialect(obj)))
    delete(plane, name)
    plane.wait_for(lambda: gone(plane, name, sample), 60, f"nothing is left of {name}")


WORK = {"image": "busybox:1.36", "resources": {"requests": {"cpu": "200m", "memory": "64Mi"}}}


def pod_template(container: str = "main", *command: str, **spec: Any) -> Json:
    """Pods of one container; without a command they run for ever."""
    work = {"name": container, **WORK, **({"command": list(command)} if command else {})}
    return {"metadata": {"labels": {"app": container}}, "spec": {"containers": [work], **spec}}


def training(place: str, container: str, **roles: int) -> Json:
    """The spec of a job of the training operator that ends after a while: so many pods in each
    role, with a container of the name that the operator looks for."""
    template = pod_template(container, "sleep", "10")
    return {
        place: {
            role: {"replicas": pods, "restartPolicy": "OnFailure", "template": template}
            for role, pods in roles.items()
        }
    }


SELECTOR = {"selector": {"matchLabels": {"app": "main"}}}
NIGHTLY = {"template": pod_template("main", "sleep", "1", restartPolicy="Never")}

NO_SAMPLE = {
    f"{APPS}/replicasets": (
        "ReplicaSet",
        {"replicas": 2, **SELECTOR, "template": pod_template()},
        2,
    ),
    f"{APPS}/daemonsets": ("DaemonSet", {**SELECTOR, "template": pod_template()}, 2),
    f"{BATCH}/cronjobs": (
        "CronJob",
        {"schedule": "0 0 30 2 *", "jobTemplate": {"spec": NIGHTLY}},
        0,
    ),
    f"{KUBEFLOW}/xgboostjobs": (
        "XGBoostJob",
        training("xgbReplicaSpecs", "xgboost", Master=1, Worker=2),
        3,
    ),
    f"{KUBEFLOW}/paddlejobs": (
        "PaddleJob",
        training("paddleReplicaSpecs", "paddle", Master=1, Worker=2),
        3,
    ),
    f"{KUBEFLOW}/jaxjobs": ("JAXJob", training("jaxReplicaSpecs", "jax", Worker=3), 3),
}
"""Kinds that no sample wraps, by their collection: an object of each, and how many pods it has.
There is one pod of a DaemonSet on each of the two nodes, and never a 30th of February."""


def without_sample(path: str) -> list[Json]:
    """An AppWrapper in either dialect."""
    kind, spec, _ = NO_SAMPLE[path]
    made = []
    for dialect in ("older", "later"):
        name = f"{kind.lower()}-{dialect}"
        version = path.removeprefix("/apis/").rpartition("/")[0]
        thing = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        obj = appwrapper(name, thing)
        if dialect == "older":
            obj = in_other_dialect(obj)
            obj["spec"]["resources"]["GenericItems"][0]["completionstatus"] = "Succeeded"
        made.append(obj)
    return made


@pytest.fixture(scope="module")
def others(samples: tuple[ControlPlane, Dispatcher]) -> Iterator[None]:
    """All of them at once."""
    plane, _ = samples
    for path in NO_SAMPLE:
        for obj in without_sample(path):
            create(plane, obj)
    yield
    delete(plane)


@pytest.mark.usefixtures("others")
@pytest.mark.parametrize("path", NO_SAMPLE)
def test_what_no_sample_wraps_runs_in_both_dialects(
    samples: tuple[ControlPlane, Dispatcher], path: str
) -> None:
    plane, dispatcher = samples
    _, _, count = NO_SAMPLE[path]
    for obj in without_sample(path):
        name = obj["metadata"]["name"]
        sample = Sample({path: [name]}, pods=count, completes=path.startswith(KUBEFLOW))
        dispatched(plane, name, sample)
        counted(plane, dispatcher, name, sample, demand(obj))
        ended(plane, name, sample)


def live(plane: ControlPlane, dispatcher: Dispatcher, file: str) -> None:
    """The whole life of a sample that has been created: all that its comment says, and its end."""
    sample = EXPECTED[file]
    obj = yaml.safe_load((SAMPLES / file).read_text())
    name = obj["metadata"]["name"]
    if sample.before:
        sample.before(plane, name)
    if sample.resets:
        plane.wait_for(lambda: has_failed(plane, name, sample), 180, f"{name} fails and goes")
    else:
        dispatched(plane, name, sample)
        counted(plane, dispatcher, name, sample, demand(obj))
        if sample.after:
            sample.after(plane, name)
        ended(plane, name, sample)
    delete(plane, name)
    plane.wait_for(lambda: gone(plane, name, sample), 60, f"nothing is left of {name}")


def gone(plane: ControlPlane, name: str, sample: Sample) -> bool:
    """Whether none of its objects is there any more."""
    return not any(made(plane, path, name) for path in sample.objects)


def dispatched(plane: ControlPlane, name: str, sample: Sample) -> None:
    """Its objects are made, and their pods run."""

    def is_dispatched() -> bool:
        return conditions_of(plane, name).get("Dispatched", {}).get("status") == "True"

    plane.wait_for(is_dispatched, 60, f"{name} is dispatched")
    assert {path: found for path in sample.objects if (found := made(plane, path, name))} == (
        sample.objects
    )
    plane.wait_for(
        lambda: started(plane, name) >= sample.pods, 60, f"{sample.pods} pods of {name} have run"
    )


def counted(
    plane: ControlPlane, dispatcher: Dispatcher, name: str, sample: Sample, asked: Counter[Any]
) -> None:
    """Its pods are those that were reckoned with, and the dispatcher takes them for its own."""
    found = Counter(read_pod(pod).request for pod in owned_pods(plane, name))
    assert found.keys() == asked.keys()
    assert found >= asked  # a Job's further pods come later

    def are_attributed() -> bool:
        code, text = dispatcher.get(f"/api/v1/appwrappers/default/{name}")
        assert code == 200, text
        pods = json.loads(text)["pods"]
        return pods["running"] + pods["succeeded"] >= sample.pods

    plane.wait_for(are_attributed, 30, f"the pods of {name} are attributed to it")


def ended(plane: ControlPlane, name: str, sample: Sample) -> None:
    """It goes on, or it completes."""
    if not sample.completes:
        assert status_of(plane, name)["state"] == "Running"
        assert len(owned_pods(plane, name)) == sample.pods
        return
    plane.wait_for(lambda: status_of(plane, name)["state"] == "Completed", 120, f"{name} completes")
    assert status_of(plane, name).get("phase", "Succeeded") == "Succeeded"  # v1beta2 has one
    phases = [pod["status"]["phase"] for pod in owned_pods(plane, name)]
    assert phases == ["Succeeded"] * (sample.left or sample.pods)


def demand(obj: Json) -> Counter[Any]:
    """Requests of the pods that an AppWrapper is said to make, and how many have them."""
    sets = parse(obj, StaticCatalog.of(WELL_KNOWN, Config().allowed)).workload.sets
    return Counter(one.request for one in sets for _ in range(one.replicas))


def has_failed(plane: ControlPlane, name: str, sample: Sample) -> bool:
    """After all of its retries, and when what is kept for a while is gone."""
    status = status_of(plane, name)
    ends = (status.get("state"), status.get("resettingCount"))
    return ends == ("Failed", sample.resets) and gone(plane, name, sample)


def made(plane: ControlPlane, path: str, appwrapper: str) -> list[str]:
    """The names of the objects of a collection that an AppWrapper owns itself."""
    root, plural = path.rsplit("/", 1)
    return sorted(
        one["metadata"]["name"]
        for one in items(plane, f"{root}/namespaces/default/{plural}")
        for owner in one["metadata"].get("ownerReferences", [])
        if (owner["kind"], owner["name"]) == ("AppWrapper", appwrapper)
    )


def owned_pods(plane: ControlPlane, appwrapper: str) -> list[Json]:
    """Its pods, by our label: also those that an operator made."""
    return [
        pod
        for pod in pods(plane)
        if pod["metadata"].get("labels", {}).get(f"{GROUP}/appwrapper") == appwrapper
    ]


def started(plane: ControlPlane, appwrapper: str) -> int:
    """How many of its pods run or have run."""
    phases = [pod["status"]["phase"] for pod in owned_pods(plane, appwrapper)]
    return sum(phase in ("Running", "Succeeded") for phase in phases)
