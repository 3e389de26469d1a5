"""KubeRay's document "KubeRay integration with MCAD", with KubeRay's own operator.

Only one of the two Ray clusters fits. What the operator adds to the pods (the autoscaler beside the
head, the init container of the workers) is in no template of the manifest, and has to be counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.operators import KUBERAY, Operators
from tests.e2e.process import Dispatcher, mcad
from tests.e2e.support import (
    GROUP,
    QUEUED_LINES,
    SAMPLES,
    assert_in_order,
    conditions_of,
    create,
    delete,
    items,
    pods,
    status_of,
)

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]

FIRST, SECOND = "raycluster-autoscaler", "raycluster-autoscaler-1"
FILES = {FIRST: SAMPLES / "aw-raycluster.yaml", SECOND: SAMPLES / "aw-raycluster-1.yaml"}
RAY_CLUSTERS = "/apis/ray.io/v1/namespaces/default/rayclusters"

# The head with its autoscaler (1 + 0.5 cpu, 2 + 0.5 Gi) and one worker (1 cpu, 1 Gi).
CLUSTER = {"cpu": "2500m", "memory": "3584Mi", "pods": "2"}

DISPATCHED_LINES = f"""\
Conditions:
{QUEUED_LINES.partition("Message: ")[0]}Reason: AppWrapperRunnable
Status: True
Type: Dispatched
Controllerfirsttimestamp: <time>
Filterignore: true
Queuejobstate: Dispatched
Sender: before manageQueueJob - afterEtcdDispatching
State: Running
"""


@pytest.fixture(scope="module")
def ray(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane with KubeRay's operator and one node that has room for one Ray cluster."""
    control_plane.add_node("ray-node", cpu="4", memory="8Gi")
    with Operators(control_plane, KUBERAY):
        yield control_plane


def ready(plane: ControlPlane) -> list[tuple[str, str, str]]:
    """Ray cluster, node type and READY column of the pods that run, as ``kubectl get pods``."""
    found = []
    for pod in pods(plane):
        labels = pod["metadata"]["labels"]
        if "ray.io/cluster" not in labels or pod["status"]["phase"] != "Running":
            continue
        containers = pod["status"]["containerStatuses"]
        column = f"{sum(one['ready'] for one in containers)}/{len(containers)}"
        found.append((labels["ray.io/cluster"], labels["ray.io/node-type"], column))
    return sorted(found)


def both_ready(name: str) -> list[tuple[str, str, str]]:
    """The pods of one Ray cluster as the document shows them."""
    return [(name, "head", "2/2"), (name, "worker", "1/1")]


def ray_clusters(plane: ControlPlane) -> list[str]:
    """The names of the RayClusters."""
    return [one["metadata"]["name"] for one in items(plane, RAY_CLUSTERS)]


def total(dispatcher: Dispatcher) -> Json:
    """The sums that ``mcad capacity`` shows."""
    answer: Json = json.loads(mcad("capacity", "-o", "json", "--server", dispatcher.url))
    return answer["total"] | {"unplaced": answer["unplaced"]}


def detail(plane: ControlPlane, dispatcher: Dispatcher, name: str) -> Json:
    """The figures that ``mcad describe`` shows."""
    args = ("describe", name, "-o", "json", "--server", dispatcher.url)
    found: Json = json.loads(mcad(*args, kubeconfig=plane.admin_kubeconfig))["appwrapper"]
    return found


def run_first(plane: ControlPlane) -> None:
    plane.kubectl("create", "-f", str(FILES[FIRST]))
    plane.wait_for(lambda: ready(plane) == both_ready(FIRST), 60, "head and worker run")


def test_two_ray_clusters_where_one_fits(ray: ControlPlane, dispatcher: Dispatcher) -> None:
    plane = ray
    run_first(plane)
    assert_in_order(DISPATCHED_LINES, plane.kubectl("describe", "appwrapper", FIRST))
    assert ray_clusters(plane) == [FIRST]

    books = plane.wait_for(
        lambda: (found := total(dispatcher))["reserved"] == {} and found, what="nothing reserved"
    )
    assert books["used"] == CLUSTER
    assert books["free"] == {"cpu": "1500m", "memory": "4608Mi", "pods": "108"}
    assert books["unplaced"] == {}

    plane.kubectl("create", "-f", str(FILES[SECOND]))
    plane.kubectl("wait", "--for=condition=Backoff", f"appwrapper/{SECOND}", "--timeout=60s")
    described = plane.kubectl("describe", "appwrapper", SECOND)
    assert_in_order(QUEUED_LINES, described)
    assert "cpu: 2500m requested, 1500m available, 1 missing." in described
    conditions = conditions_of(plane, SECOND)
    assert list(conditions) == ["Init", "Queueing", "HeadOfLine", "Backoff"]
    assert {one["status"] for one in conditions.values()} == {"True"}
    assert "dispatch" not in status_of(plane, SECOND)
    assert ray_clusters(plane) == [FIRST]
    assert ready(plane) == both_ready(FIRST)
    assert len(pods(plane)) == 2

    plane.kubectl("delete", "-f", str(FILES[FIRST]))
    plane.wait_for(lambda: ready(plane) == both_ready(SECOND), 60, "the second cluster runs")
    assert_in_order(DISPATCHED_LINES, plane.kubectl("describe", "appwrapper", SECOND))
    assert ray_clusters(plane) == [SECOND]
    assert len(pods(plane)) == 2
    delete(plane)


def test_pods_belong_to_the_appwrapper_at_the_end_of_their_owners(
    ray: ControlPlane, dispatcher: Dispatcher
) -> None:
    plane = ray
    run_first(plane)
    uid = plane.kubectl("get", "aw", FIRST, "-o", "jsonpath={.metadata.uid}")
    impostor = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "impostor",
            "labels": {f"{GROUP}/appwrapper-uid": uid, f"{GROUP}/attempt": "1"},
        },
        "spec": {"containers": [{"name": "main", "image": "busybox:1.36"}]},
    }
    plane.apply(impostor)
    plane.wait_for(
        lambda: [one["status"]["phase"] for one in pods(plane)] == ["Running"] * 3, what="it runs"
    )
    plane.wait_for(lambda: total(dispatcher)["used"]["pods"] == "3", what="it is counted")

    found = detail(plane, dispatcher, FIRST)
    assert found["pods"] == {"pending": 0, "running": 2, "succeeded": 0, "failed": 0}
    assert [one["reserved"] for one in found["podSets"]] == [0, 0]
    assert [(one["kind"], one["name"], one["exists"]) for one in found["items"]] == [
        ("RayCluster", FIRST, True)
    ]
    table = mcad("describe", FIRST, "--server", dispatcher.url)
    assert_in_order("Pods: 0 pending, 2 running, 0 succeeded, 0 failed", table)

    # The autoscaler's doing: growth above what was declared is used once it is bound.
    grown = [{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 2}]
    plane.kubectl("patch", "raycluster", FIRST, "--type=json", "-p", json.dumps(grown))
    plane.wait_for(lambda: total(dispatcher)["used"]["cpu"] == "3500m", 60, "one more worker")
    assert total(dispatcher)["reserved"] == {}
    plane.wait_for(
        lambda: detail(plane, dispatcher, FIRST)["pods"]["running"] == 3, what="it is counted"
    )

    plane.kubectl("delete", "pod", "impostor")
    delete(plane)
    assert ray_clusters(plane) == []


def test_the_same_demand_is_found_without_custompodresources(
    ray: ControlPlane, dispatcher: Dispatcher
) -> None:
    """The autoscaler is in the table of kinds; declared and inferred demand are the same."""
    plane = ray
    plain = yaml.safe_load(FILES[FIRST].read_text())
    plain["metadata"]["namespace"] = "default"
    for item in plain["spec"]["resources"]["GenericItems"]:
        del item["custompodresources"]
    create(plane, plain)
    plane.wait_for(lambda: ready(plane) == both_ready(FIRST), 60, "head and worker run")

    assert detail(plane, dispatcher, FIRST)["demand"] == CLUSTER
    plane.wait_for(lambda: total(dispatcher)["reserved"] == {}, what="nothing reserved")
    assert total(dispatcher)["used"] == CLUSTER
    reasons = {one["reason"] for one in items(plane, "/api/v1/namespaces/default/events")}
    assert "ManifestWarning" not in reasons
    delete(plane)
