"""Gangs of several pod sets that share nodes, domains and labels, from verdict to kube-scheduler.

Each was refused for ever, split over domains, or ended the dispatcher before plans named pod sets
and anti-affinity was a relation between them (rule R1, ADR 49)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.e2e.lifecycle.objects import PODS, running
from tests.e2e.process import Dispatcher
from tests.e2e.support import appwrapper, create, delete, items, status_of
from tests.manifests import deployment

pytestmark = pytest.mark.controlplane

Json = dict[str, Any]

ZONE, RACK, GPU = "topology.kubernetes.io/zone", "rack", "nvidia.com/gpu"


@pytest.fixture(scope="module", autouse=True)
def dispatcher(control_plane: ControlPlane, account: Path) -> Iterator[Dispatcher]:
    """With two nodes of 4 CPUs in two zones."""
    for name, zone in (("n1", "a"), ("n2", "b")):
        control_plane.add_node(name, labels={ZONE: zone})
    with Dispatcher(control_plane, account, "--set", f"topologyLevels=[{ZONE}]") as running:
        yield running


def _with(made: Json, notes: dict[str, str] | None = None, **spec: Any) -> Json:
    template = made["spec"]["template"]
    template["metadata"]["annotations"] = notes or {}
    template["spec"].update(spec)
    return made


def _placed(plane: ControlPlane, pods: int) -> list[tuple[str, str]]:
    """(value of the label ``app``, node) of each pod, once so many run."""
    plane.wait_for(lambda: running(plane) == pods, 90, f"{pods} pods run")
    return sorted(
        (one["metadata"]["labels"]["app"], one["spec"]["nodeName"]) for one in items(plane, PODS)
    )


def test_equal_sets_of_which_one_selects_a_zone_start_where_levels_are_set(
    control_plane: ControlPlane,
) -> None:
    leader = _with(deployment("leader", 1, "2"), nodeSelector={ZONE: "a"})
    create(control_plane, appwrapper("gang", leader, deployment("worker", 1, "2")))
    assert _placed(control_plane, 2) == [("leader", "n1"), ("worker", "n1")]
    record = status_of(control_plane, "gang")["dispatch"]
    assert record["preferredDomain"] == {"label": ZONE, "value": "a"}
    delete(control_plane, "gang")


def test_equal_sets_that_exclude_themselves_share_nodes(control_plane: ControlPlane) -> None:
    """Four nodes were thought to be needed."""
    made = []
    for name in ("left", "right"):
        term = {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"app": name}},
        }
        rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        made.append(_with(deployment(name, 2, "1"), affinity={"podAntiAffinity": rule}))
    create(control_plane, appwrapper("pair", *made))
    assert _placed(control_plane, 4) == [
        (name, node) for name in ("left", "right") for node in ("n1", "n2")
    ]
    delete(control_plane, "pair")


def test_sets_of_a_group_that_are_equal_in_its_rack_only_are_both_there(
    control_plane: ControlPlane,
) -> None:
    for name, cpu, gpus in (("a1", "4", 0), ("a2", "2", 0), ("b1", "8", 0), ("c1", "4", 4)):
        extended = {GPU: str(gpus)} if gpus else None
        control_plane.add_node(name, cpu, labels={RACK: name[0]}, extended=extended)
    prefix = "kueue.x-k8s.io/podset"
    notes = {f"{prefix}-required-topology": RACK, f"{prefix}-group-name": "g"}
    leader = _with(deployment("leader", 2, "2"), notes, nodeSelector={RACK: "a"})
    worker = _with(deployment("worker", 1, "2"), notes)
    gpu = deployment("gpu", 3, "1")
    gpu["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {GPU: "1"}
    create(control_plane, appwrapper("group", leader, worker, gpu))
    placed = _placed(control_plane, 6)
    assert placed[:3] == 3 * [("gpu", "c1")]
    assert [app for app, _ in placed[3:]] == ["leader", "leader", "worker"]
    assert {node for _, node in placed[3:]} == {"a1", "a2"}
    domains = status_of(control_plane, "group")["dispatch"]["domains"]
    assert [(one["item"], one["label"], one["value"]) for one in domains] == [
        (0, RACK, "a"),
        (1, RACK, "a"),
    ]
