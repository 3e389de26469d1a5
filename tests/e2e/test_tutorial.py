"""MCAD's tutorial, line by line, with its own manifests on a node loaded as its document shows."""

import json
from pathlib import Path

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.tutorial import load_tutorial_node
from tests.e2e.embedded import Embedded
from tests.e2e.process import Dispatcher
from tests.e2e.support import QUEUED_LINES, SAMPLES, assert_in_order

pytestmark = pytest.mark.controlplane

FIRST, SECOND = "0001-aw-generic-deployment-1", "0002-aw-generic-deployment-2"

RUNNING_LINES = """\
Canrun: true
State: Running
"""


def pods(plane: ControlPlane | Embedded) -> list[tuple[str, str]]:
    """Name and phase of the pods in the namespace ``default``."""
    answer = plane.request("GET", "/api/v1/namespaces/default/pods")[1]
    return [
        (pod["metadata"]["labels"].get("app", ""), pod["status"]["phase"])
        for pod in answer["items"]
        if "deletionTimestamp" not in pod["metadata"]
    ]


def test_the_tutorial(control_plane: ControlPlane, dispatcher: Dispatcher) -> None:
    load_tutorial_node(control_plane)
    walk(control_plane)
    assert dispatcher.stop() == 0


def test_the_tutorial_on_the_embedded_cluster(tmp_path: Path) -> None:
    with Embedded(tmp_path) as plane:
        walk(plane)


def walk(plane: ControlPlane | Embedded) -> None:
    """The same script against either, on the node that is loaded already."""
    plane.kubectl("create", "-f", str(SAMPLES / "aw-01.yaml"))
    plane.wait_for(
        lambda: pods(plane) == [(FIRST, "Running")] * 2, what="two pods of the first run"
    )
    assert FIRST in plane.kubectl("get", "appwrappers")
    assert_in_order(RUNNING_LINES, plane.kubectl("describe", "appwrapper", FIRST))

    node = plane.kubectl("describe", "node", "minikube")
    assert_in_order("cpu 1950m (97%)\nmemory 1706Mi (21%)", node)

    plane.kubectl("create", "-f", str(SAMPLES / "aw-02.yaml"))
    plane.kubectl("wait", "--for=condition=Backoff", f"appwrapper/{SECOND}", "--timeout=20s")
    described = plane.kubectl("describe", "appwrapper", SECOND)
    assert_in_order(QUEUED_LINES, described)
    assert "cpu: 150m requested, 50m available, 100m missing." in described
    status = json.loads(plane.kubectl("get", "aw", SECOND, "-o", "json"))["status"]
    kinds = ["Init", "Queueing", "HeadOfLine", "Backoff"]
    assert [condition["type"] for condition in status["conditions"]] == kinds
    assert {condition["status"] for condition in status["conditions"]} == {"True"}
    deployments = plane.request("GET", "/apis/apps/v1/namespaces/default/deployments")[1]
    assert [one["metadata"]["name"] for one in deployments["items"]] == [FIRST]
    assert pods(plane) == [(FIRST, "Running")] * 2

    plane.kubectl("delete", "-f", str(SAMPLES / "aw-01.yaml"))
    plane.wait_for(
        lambda: pods(plane) == [(SECOND, "Running")] * 2, what="two pods of the second run"
    )
    assert_in_order(RUNNING_LINES, plane.kubectl("describe", "appwrapper", SECOND))
