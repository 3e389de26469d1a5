"""Native gangs of Kubernetes (KEP-4671) that a manifest brings with it (ADR 54)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import controlplane_or_skip
from tests.controlplane.native_gangs import API, NATIVE_GANGS, pod_group
from tests.e2e.lifecycle.objects import PODS, running
from tests.e2e.process import Dispatcher, install, printed
from tests.e2e.support import (
    GROUP,
    appwrapper,
    conditions_of,
    create,
    delete,
    items,
    patch,
    status_of,
)
from tests.manifests import deployment, generic, job, pod

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]
GROUPS = f"/apis/{API}/namespaces/default/podgroups"
CPUS = "4"
PATIENCE_S = 20


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """One that has them, with a dispatcher that has little patience."""
    with controlplane_or_skip(kinds=printed("crd"), extra_args=NATIVE_GANGS) as plane:
        plane.add_node("node-1", cpu=CPUS)
        with Dispatcher(plane, install(plane), "--set", f"placementTimeout={PATIENCE_S}"):
            yield plane


def member(made: Json, gang: str = "gang") -> Json:
    """With pods that name the gang."""
    made["spec"]["template"]["spec"]["schedulingGroup"] = {"podGroupName": gang}
    return made


def groups_named(plane: ControlPlane) -> set[str]:
    """The groups that pods name, "" for a pod that names none."""
    found = (one["spec"].get("schedulingGroup", {}) for one in items(plane, PODS))
    return {one.get("podGroupName", "") for one in found}


def test_a_group_comes_with_its_pods_and_goes_with_them(plane: ControlPlane) -> None:
    """PodGroups have a finalizer of Kubernetes, which holds them until their pods are gone."""
    create(plane, appwrapper("gang", pod_group("gang", 2), member(deployment("gang"))))
    plane.wait_for(lambda: running(plane) == 2, 60, "both run")
    assert groups_named(plane) == {"gang"}
    (made,) = items(plane, GROUPS)
    assert made["spec"]["schedulingPolicy"] == pod_group("gang", 2)["spec"]["schedulingPolicy"]
    assert made["metadata"]["labels"][f"{GROUP}/appwrapper"] == "gang"
    assert [one["podSets"] for one in status_of(plane, "gang")["componentStatus"]] == [
        [],
        [{"path": "template.spec.template", "replicas": 2}],
    ]
    patch(plane, "gang", {"spec": {"suspend": True}})
    plane.wait_for(lambda: not items(plane, GROUPS), 60, "the group is gone")
    assert not items(plane, PODS)
    patch(plane, "gang", {"spec": {"suspend": False}})
    plane.wait_for(lambda: running(plane) == 2, 60, "the next attempt has a group of its own")
    assert [one["metadata"]["uid"] for one in items(plane, GROUPS)] != [made["metadata"]["uid"]]
    delete(plane, "gang")


def test_a_gang_that_can_never_be_whole_is_held_and_its_appwrapper_is_taken_back(
    plane: ControlPlane,
) -> None:
    """There is room for both pods, and no room is missed: the group waits for a third."""
    create(plane, generic("short", pod_group("short", 3), short()))
    plane.wait_for(lambda: len(items(plane, PODS)) == 2, 60, "they are created")
    plane.ask("POST", PODS, pod("later", "100m"))
    plane.wait_for(lambda: running(plane) == 1, 60, "a pod that came later is bound")
    assert [one["metadata"]["name"] for one in items(plane, PODS) if is_bound(one)] == ["later"]
    told = plane.kubectl("get", "events", "-o", "jsonpath={.items[*].message}")
    assert "PodGroup short has minCount 3, but 2 pods of this AppWrapper have" in told
    plane.wait_for(lambda: not items(plane, GROUPS), 60, "the group is taken back")
    why = conditions_of(plane, "short")["Dispatched"]
    assert (why["status"], why["reason"]) == ("False", "PlacementTimeout")
    assert f"Without a node for {PATIENCE_S} s: short-" in why["message"]
    delete(plane, "short")


def short() -> Json:
    """Two pods of a gang of three."""
    return member(job("short", 2, "100m", 600), "short")


def is_bound(one: Json) -> bool:
    """Whether a pod has a node."""
    return "nodeName" in one["spec"]
