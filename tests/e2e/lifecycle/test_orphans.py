"""Objects that stay when their AppWrapper is deleted without them."""

from __future__ import annotations

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.e2e import fleet
from tests.e2e.lifecycle.objects import (
    CONFIGMAPS,
    DEPLOYMENTS,
    JOBS,
    PODS,
    generic,
    owned,
    owned_or_all,
    running_on,
)
from tests.e2e.lifecycle.phases import PAUSING, PHASES, brought_to, released
from tests.e2e.support import (
    GROUP,
    appwrapper,
    appwrappers_path,
    create,
    delete,
    deployment,
    items,
    status_of,
)

pytestmark = pytest.mark.controlplane


ORPHANED = {
    "Suspended": [],
    "Resuming": [DEPLOYMENTS],
    "Running": [CONFIGMAPS, DEPLOYMENTS],
    "Suspending": [],
    PAUSING: [],
    "Failed": [JOBS],
    "Succeeded": [JOBS],
}
"""Where something stays of an AppWrapper that is deleted without its objects, by its phase."""


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize("phase", ORPHANED)
def test_what_is_orphaned_stays(plane: ControlPlane, phase: str) -> None:
    name = f"to-orphan-{PHASES.index(phase)}"
    brought_to(plane, phase, name)
    plane.wait_for(lambda: sorted(kept(plane)) == ORPHANED[phase], what=f"{ORPHANED[phase]}")
    before = kept(plane)
    plane.kubectl("delete", "appwrapper", name, "--cascade=orphan")
    released(plane, phase, name)
    assert owned_or_all(plane, appwrappers_path()) == []
    fleet.wait_until_quiet(plane, 5)
    assert kept(plane) == before
    for path in before:
        (found,) = (one for one in items(plane, path) if one["metadata"]["name"] == name)
        assert found["metadata"].get("ownerReferences", []) == []
        plane.request("DELETE", f"{path}/{name}", {"propagationPolicy": "Background"})
    for path in (JOBS, PODS, DEPLOYMENTS, CONFIGMAPS):
        plane.wait_for(lambda path=path: owned(plane, path) == [], 60, f"no {path} is left")


def kept(plane: ControlPlane) -> dict[str, list[str]]:
    """The uids of wrapped objects that are not being deleted, by their collection, if it has
    any."""
    found = {
        path: [
            one["metadata"]["uid"]
            for one in items(plane, path)
            if f"{GROUP}/appwrapper" in one["metadata"].get("labels", {})
            and "deletionTimestamp" not in one["metadata"]
        ]
        for path in (JOBS, DEPLOYMENTS, CONFIGMAPS)
    }
    return {path: uids for path, uids in found.items() if uids}


@pytest.mark.parametrize("dialect", ["v1beta1", "v1beta2"])
def test_what_is_orphaned_keeps_its_room(plane: ControlPlane, dialect: str) -> None:
    here = {"nodeSelector": {"pool": "home"}}
    plane.add_node("home-1", cpu="2", labels={"pool": "home"})
    first = deployment("first", 1, "1500m", **here)
    create(plane, generic("first", first) if dialect == "v1beta1" else appwrapper("first", first))
    plane.wait_for(lambda: running_on(plane) == ["home-1"], 60, "the first runs")
    plane.kubectl("delete", "appwrapper", "first", "--cascade=orphan")
    create(plane, appwrapper("second", deployment("second", 1, "1500m", **here)))
    plane.wait_for(
        lambda: status_of(plane, "second").get("queuejobstate") == "Backoff", 60, "second waits"
    )
    fleet.wait_until_quiet(plane, 5)
    assert [one["metadata"]["labels"]["app"] for one in items(plane, PODS)] == ["first"]
    plane.kubectl("delete", "deployment", "first")
    plane.wait_for(
        lambda: status_of(plane, "second").get("running") == 1, 60, "the second has its room"
    )
    delete(plane)
    plane.remove_node("home-1")
