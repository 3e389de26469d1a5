"""v1beta2's annotations of fault tolerance on a real API server, in both dialects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import Dispatcher
from tests.e2e.support import GROUP, appwrapper, create, delete, items, pod, status_of

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]

PREFIX = f"{GROUP}.appwrapper/"
AT_ONCE = {"failureGracePeriodDuration": "0s", "retryPausePeriodDuration": "0s"}


@pytest.fixture(scope="module", autouse=True)
def plane(control_plane: ControlPlane) -> ControlPlane:
    """A control plane with one node."""
    control_plane.add_node("node-1", cpu="4", memory="16Gi", pods=50)
    return control_plane


@pytest.fixture(autouse=True)
def _dispatcher(plane: ControlPlane, dispatcher: Dispatcher) -> Iterator[Dispatcher]:
    yield dispatcher
    delete(plane)


def tolerant(name: str, *templates: Json, v1beta1: bool = False, **annotations: str) -> Json:
    """An AppWrapper with these annotations."""
    obj = appwrapper(name, *templates)
    if v1beta1:
        wrapped = [{"generictemplate": one, "completionstatus": "Succeeded"} for one in templates]
        obj |= {"apiVersion": f"{GROUP}/v1beta1", "spec": {"resources": {"GenericItems": wrapped}}}
    own = {f"{PREFIX}{key}": value for key, value in annotations.items()}
    obj["metadata"]["annotations"] = own
    return obj


def ends(name: str, code: int) -> Json:
    """A pod that ends with this exit code."""
    return pod(name, command=("sh", "-c", f"exit {code}"))


def in_phase(plane: ControlPlane, name: str, phase: str) -> Json:
    """Its status once it is in a phase."""
    status: Json = plane.wait_for(
        lambda: (one := status_of(plane, name)).get("phase") == phase and one,
        60,
        f"{name}: {phase}",
    )
    return status


def pods(plane: ControlPlane, name: str) -> list[Json]:
    """The pods of this name, those that are being deleted, too."""
    found = items(plane, "/api/v1/namespaces/default/pods")
    return [one for one in found if one["metadata"]["name"] == name]


def test_a_terminal_exit_code_is_the_end(plane: ControlPlane) -> None:
    create(plane, tolerant("fatal", ends("fatal", 3), terminalExitCodes="2, 3", **AT_ONCE))
    assert "resettingCount" not in in_phase(plane, "fatal", "Failed")


def test_another_exit_code_is_retried_so_many_times(plane: ControlPlane) -> None:
    again = {"terminalExitCodes": "2, 3", "retryLimit": "1", **AT_ONCE}
    create(plane, tolerant("again", ends("again", 4), **again))
    status = in_phase(plane, "again", "Failed")
    assert status["resettingCount"] == 1
    assert status["dispatch"]["attempt"] == 2


@pytest.mark.parametrize("v1beta1", [False, True])
def test_what_succeeded_goes_after_its_time_to_live(plane: ControlPlane, v1beta1: bool) -> None:
    name = f"brief-{v1beta1:d}"
    brief = tolerant(name, ends(name, 0), v1beta1=v1beta1, successTTLDuration="1s")
    create(plane, brief)
    plane.wait_for(
        lambda: status_of(plane, name).get("state") == "Completed" and not pods(plane, name),
        60,
        "it is kept, and its pod is not",
    )


def test_a_pod_that_does_not_go_is_deleted_by_force(plane: ControlPlane) -> None:
    """No kubelet ends it, as on a node that is gone for good."""
    hangs = pod("hangs")
    hangs["metadata"]["annotations"] = {"controlplane.test/hangs": "true"}
    create(plane, tolerant("hangs", hangs, forcefulDeletionGracePeriodDuration="1s"))
    plane.wait_for(
        lambda: [one["status"]["phase"] for one in pods(plane, "hangs")] == ["Running"], 60, "runs"
    )
    since = plane.audit_mark()
    plane.kubectl("patch", "aw", "hangs", "--type=merge", "-p", '{"spec": {"suspend": true}}')
    in_phase(plane, "hangs", "Suspended")
    assert pods(plane, "hangs") == []
    deletions = [
        one.code
        for one in plane.audit(since)
        if (one.verb, one.resource, one.name) == ("delete", "pods", "hangs")
    ]
    assert deletions == [200, 200]  # asked first, then forced


def test_nonsense_is_told_and_keeps_nothing_from_running(plane: ControlPlane) -> None:
    create(plane, tolerant("odd", pod("odd"), retryLimit="many"))
    in_phase(plane, "odd", "Running")
    notes = [
        one["message"]
        for one in items(plane, "/api/v1/namespaces/default/events")
        if one["involvedObject"]["name"] == "odd" and one["type"] == "Warning"
    ]
    (note,) = [one for one in notes if "retryLimit" in one]
    assert f"metadata.annotations.{PREFIX}retryLimit: is the string 'many', not a whole" in note
    assert note.endswith("the default is used, 3.")
