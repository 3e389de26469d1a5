"""What the configuration adds to pods, and what Autopilot says of nodes, on a real API server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import Dispatcher
from tests.e2e.support import appwrapper, create, delete, items, pod, status_of

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]
Start = Callable[..., Dispatcher]

HEALTH = "autopilot.ibm.com/gpuhealth"
GPU = "nvidia.com/gpu"
NO_PAUSE = "faultTolerance.retryPausePeriod=0"
ATTEMPT = "workload.codeflare.dev/attempt"


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> ControlPlane:
    """A control plane with two nodes of 8 GPUs."""
    for name in ("node-1", "node-2"):
        control_plane.add_node(name, cpu="4", memory="16Gi", pods=50, extended={GPU: "8"})
    return control_plane


@pytest.fixture
def start(plane: ControlPlane, account: Path) -> Iterator[Start]:
    """Starts dispatchers with settings, one at a time."""
    started: list[Dispatcher] = []

    def begin(*sets: str) -> Dispatcher:
        if started:
            started.pop().__exit__(None, None, None)
        args = [word for one in sets for word in ("--set", one)]
        started.append(Dispatcher(plane, account, *args).start())
        return started[-1]

    yield begin
    delete(plane)
    for one in started:
        one.__exit__(None, None, None)


def running(plane: ControlPlane, name: str) -> Json | None:
    """The pod of this name if it runs."""
    found = [
        one
        for one in items(plane, "/api/v1/namespaces/default/pods")
        if (one["metadata"]["name"], one["status"].get("phase")) == (name, "Running")
        and "deletionTimestamp" not in one["metadata"]
    ]
    return found[0] if found else None


def gpu_pod(name: str) -> Json:
    """A pod that asks for a GPU."""
    made = pod(name)
    made["spec"]["containers"][0]["resources"]["limits"] = {GPU: "1"}
    return made


def label(plane: ControlPlane, node: str, value: str) -> None:
    plane.kubectl("label", "node", node, f"{HEALTH}={value}", "--overwrite")


def test_who_runs_on_a_node_that_evicts_is_moved_and_nobody_new_comes(
    plane: ControlPlane, start: Start
) -> None:
    start(NO_PAUSE)
    create(plane, appwrapper("mover", gpu_pod("mover")))
    first = plane.wait_for(lambda: running(plane, "mover"), 60, "mover runs")
    (term,) = first["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    avoided = {"key": HEALTH, "operator": "NotIn", "values": ["TESTING", "EVICT"]}
    assert term == {"matchExpressions": [avoided]}

    left = first["spec"]["nodeName"]
    label(plane, left, "EVICT")

    def moved() -> Json | None:
        live = running(plane, "mover")
        return live if live and live["metadata"]["uid"] != first["metadata"]["uid"] else None

    live = plane.wait_for(moved, 60, "mover runs elsewhere")
    assert live["spec"]["nodeName"] != left
    assert live["metadata"]["labels"][ATTEMPT] == "2"
    status = plane.wait_for(
        lambda: (one := status_of(plane, "mover")).get("phase") == "Running" and one, what="Running"
    )
    assert "resettingCount" not in status, "an evacuation is not counted"
    (told,) = status["componentStatus"]
    assert (told["name"], told["kind"], told["apiVersion"]) == ("mover", "Pod", "v1")
    assert told["podSets"] == [{"path": "template", "replicas": 1}]
    (condition,) = told["conditions"]
    assert (condition["type"], condition["status"]) == ("ResourcesDeployed", "True")

    label(plane, live["spec"]["nodeName"], "TESTING")
    create(plane, appwrapper("newcomer", gpu_pod("newcomer")))
    plane.wait_for(
        lambda: status_of(plane, "newcomer").get("queuejobstate") == "Backoff",
        what="the fit test sees that no node admits it",
    )
    stays = running(plane, "mover")
    assert stays is not None
    assert stays["metadata"]["uid"] == live["metadata"]["uid"], "TESTING moves nobody"
    for node in ("node-1", "node-2"):
        label(plane, node, "PASS")
    plane.wait_for(lambda: running(plane, "newcomer"), 60, "newcomer runs")


def test_a_new_configuration_counts_for_what_is_dispatched_from_then_on(
    plane: ControlPlane, start: Start
) -> None:
    start()
    create(plane, appwrapper("before", pod("before")))
    before = plane.wait_for(lambda: running(plane, "before"), 60, "before runs")
    start(
        "inject={labels: {team: research}, annotations: {example.com/a: b}, nodeSelector: "
        "{kubernetes.io/hostname: node-2}, tolerations: [{key: d, operator: Exists}]}"
    )
    create(plane, appwrapper("after", pod("after")))
    after = plane.wait_for(lambda: running(plane, "after"), 60, "after runs")
    assert after["metadata"]["labels"]["team"] == "research"
    assert after["metadata"]["annotations"]["example.com/a"] == "b"
    assert after["spec"]["nodeName"] == "node-2"
    assert {"key": "d", "operator": "Exists"} in after["spec"]["tolerations"]
    stays = running(plane, "before")
    assert stays is not None
    assert stays["metadata"]["uid"] == before["metadata"]["uid"]
    assert "team" not in stays["metadata"]["labels"]
    assert status_of(plane, "before")["dispatch"]["attempt"] == 1


def test_a_contradiction_is_told_on_the_appwrapper(plane: ControlPlane, start: Start) -> None:
    start("inject.labels={team: research}")
    other = pod("other")
    other["metadata"]["labels"] = {"team": "sales"}
    create(plane, appwrapper("other", other))

    def told() -> str:
        conditions = status_of(plane, "other").get("conditions", [])
        return next(
            (one["message"] for one in conditions if "inject.labels" in one.get("message", "")), ""
        )

    message = plane.wait_for(told, what="the refusal")
    assert "spec.components[0].template.metadata.labels.team: is 'sales'" in message


def test_a_scheduler_that_nobody_runs(plane: ControlPlane, start: Start) -> None:
    start("schedulerName=nobody", "placementTimeout=0")
    create(plane, appwrapper("unplaced", pod("unplaced")))

    def made() -> Json | None:
        found = items(plane, "/api/v1/namespaces/default/pods")
        return next((one for one in found if one["metadata"]["name"] == "unplaced"), None)

    live = plane.wait_for(made, what="the pod")
    assert live["spec"]["schedulerName"] == "nobody"
    assert "nodeName" not in live["spec"]
