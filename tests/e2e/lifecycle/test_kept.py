"""AppWrappers that a finalizer keeps after their deletion, and copies without a grant."""

from __future__ import annotations

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.e2e import fleet
from tests.e2e.lifecycle.objects import CONFIGMAPS, DEPLOYMENTS, PODS, await_phase, owned
from tests.e2e.support import (
    GROUP,
    appwrapper,
    appwrappers,
    configmap,
    create,
    delete,
    deployment,
    get,
    patch,
    status_of,
)

pytestmark = pytest.mark.controlplane

KEEPER = "example.com/keep"


def _is_taken_back(plane: ControlPlane, name: str) -> bool:
    left = [one for path in (DEPLOYMENTS, CONFIGMAPS, PODS) for one in owned(plane, path)]
    record = status_of(plane, name).get("dispatch", {})
    return not left and record.get("phase") == "released" and record["reason"] == "Terminating"


@pytest.mark.parametrize("cascade", ["background", "foreground"])
def test_what_a_finalizer_keeps_is_taken_back(plane: ControlPlane, cascade: str) -> None:
    name = f"kept-{cascade}"
    create(plane, appwrapper(name, deployment(name, 1), configmap(name)))
    await_phase(plane, name, "Running")
    patch(plane, name, {"metadata": {"finalizers": [KEEPER]}})
    plane.kubectl("delete", "appwrapper", name, f"--cascade={cascade}", "--wait=false")
    plane.wait_for(lambda: _is_taken_back(plane, name), 60, "its attempt is taken back")
    fleet.wait_until_quiet(plane, 5)
    assert _is_taken_back(plane, name)
    patch(plane, name, {"metadata": {"finalizers": None}})
    plane.wait_for(lambda: name not in appwrappers(plane), 60, "it is gone")


def test_a_copy_starts_when_it_is_granted_and_what_is_created_from_it_does_not(
    plane: ControlPlane,
) -> None:
    copy = appwrapper("copy", deployment("copy", 1))
    copy["metadata"]["labels"] = {f"{GROUP}/hub": "east"}
    create(plane, copy)
    fleet.wait_until_quiet(plane, 3)
    assert owned(plane, DEPLOYMENTS) == []
    uid = get(plane, "copy")["metadata"]["uid"]
    granted = {"annotations": {f"{GROUP}/granted": uid}}
    patch(plane, "copy", {"metadata": granted})
    await_phase(plane, "copy", "Running")
    delete(plane, "copy")

    copy["metadata"] |= granted
    create(plane, copy)
    fleet.wait_until_quiet(plane, 3)
    assert owned(plane, DEPLOYMENTS) == []
    delete(plane)
