"""What KWOK plays of kubelets beyond pods that run: init containers, and containers that do not."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.controlplane.controlplane import ControlPlane

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]

PODS = "/api/v1/namespaces/default/pods"
STUCK = "controlplane.test/stuck"


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> ControlPlane:
    """One node."""
    control_plane.add_node("node-1", cpu="16")
    return control_plane


def pod(name: str, stuck: str = "", *inits: list[str]) -> Json:
    """A pod with these init containers, which is kept from running."""
    container = {"name": "main", "image": "busybox:1.36", "command": ["server"]}
    first = [
        {"name": f"init-{number}", "image": "busybox:1.36", "command": command}
        for number, command in enumerate(inits)
    ]
    meta = {"name": name, "annotations": {STUCK: stuck} if stuck else {}}
    spec = {"containers": [container], "initContainers": first}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def get(plane: ControlPlane, name: str) -> Json:
    """One of them."""
    return plane.get(f"{PODS}/{name}")


def waits(plane: ControlPlane, name: str) -> str:
    """What its container waits for, "" if for nothing."""
    told = get(plane, name)["status"].get("containerStatuses", [{}])[0].get("state", {})
    reason: str = told.get("waiting", {}).get("reason", "")
    return reason


def is_ready(plane: ControlPlane, name: str) -> bool:
    """By its condition."""
    conditions = get(plane, name)["status"].get("conditions", [])
    return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)


def test_init_containers_take_as_long_as_they_sleep(plane: ControlPlane) -> None:
    loop = ["sh", "-c", "until nslookup server; do sleep 100; done"]
    plane.apply(pod("init", "", ["sleep", "2"], loop, ["sh", "-c", "sleep 1"]))
    plane.wait_for(lambda: waits(plane, "init") == "PodInitializing", what="it initializes")
    found = get(plane, "init")["status"]
    assert "running" in found["initContainerStatuses"][0]["state"]
    began = time.monotonic()
    plane.kubectl("label", "pod/init", "a=b")  # does not begin the wait anew
    plane.wait_for(lambda: is_ready(plane, "init"), what="it runs")
    assert time.monotonic() - began > 1
    assert all(
        "terminated" in one["state"]
        for one in get(plane, "init")["status"]["initContainerStatuses"]
    )


@pytest.mark.parametrize(
    ("stuck", "phase", "words"),
    [
        ("ImagePullBackOff", "Pending", 'Back-off pulling image "busybox:1.36"'),
        ("CreateContainerConfigError", "Pending", 'configmap "settings" not found'),
        ("CrashLoopBackOff", "Running", "restarting failed container=main"),
    ],
)
def test_a_container_that_does_not_run_is_told_as_kubelet_tells_it(
    plane: ControlPlane, stuck: str, phase: str, words: str
) -> None:
    name = stuck.lower()
    plane.apply(pod(name, stuck))
    plane.wait_for(lambda: waits(plane, name) == stuck, what=stuck)
    found = get(plane, name)["status"]
    assert found["phase"] == phase
    assert words in found["containerStatuses"][0]["state"]["waiting"]["message"]
    assert not is_ready(plane, name)
    plane.kubectl("annotate", "pod", name, f"{STUCK}-")
    plane.wait_for(lambda: is_ready(plane, name), what="it runs")
    assert get(plane, name)["status"]["phase"] == "Running"
    assert waits(plane, name) == ""


def test_what_fails_is_tried_again(plane: ControlPlane) -> None:
    plane.apply([pod("pulls", "ImagePullBackOff"), pod("crashes", "CrashLoopBackOff")])
    seen: set[str] = set()

    def tried() -> bool:
        seen.add(waits(plane, "pulls"))
        statuses = get(plane, "crashes")["status"].get("containerStatuses", [{}])
        return {"ErrImagePull", "ImagePullBackOff"} <= seen and statuses[0].get("restartCount") == 2

    plane.wait_for(tried, what="both are tried again")
