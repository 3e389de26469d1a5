"""A gang that asks for no topology, where the cluster's levels are a setting (ADR 53)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.e2e.lifecycle.objects import PODS, running, running_on
from tests.e2e.process import Dispatcher, mcad
from tests.e2e.support import appwrapper, create, delete, items, status_of
from tests.manifests import deployment

pytestmark = pytest.mark.controlplane

BLOCK, RACK = "topology.example.com/block", "topology.example.com/rack"
NODES = {"a-1": ("a", "32"), "b-1": ("b", "4"), "b-2": ("b", "4")}


@pytest.fixture(scope="module", autouse=True)
def dispatcher(control_plane: ControlPlane, account: Path) -> Iterator[Dispatcher]:
    """With nodes in two racks of one block."""
    for name, (rack, cpu) in NODES.items():
        control_plane.add_node(name, cpu=cpu, labels={BLOCK: "one", RACK: rack})
    levels = ("--set", f"topologyLevels=[{BLOCK}, {RACK}]")
    with Dispatcher(control_plane, account, *levels) as running:
        yield running


def test_its_pods_go_to_the_rack_with_the_least_room_that_has_room_for_all(
    control_plane: ControlPlane,
) -> None:
    """By itself kube-scheduler puts one on the node of the other rack, where most is free."""
    create(control_plane, appwrapper("gang", deployment("gang", replicas=2, cpu="3")))
    control_plane.wait_for(lambda: running(control_plane) == 2, 60, "both run")
    assert running_on(control_plane) == ["b-1", "b-2"]
    record = status_of(control_plane, "gang")["dispatch"]
    assert record["preferredDomain"] == {"label": RACK, "value": "b"}
    assert "domains" not in record
    told = mcad("describe", "gang", kubeconfig=control_plane.admin_kubeconfig)
    assert f"Prefers: {RACK}=b" in " ".join(told.split())
    preferred = {"matchExpressions": [{"key": RACK, "operator": "In", "values": ["b"]}]}
    for one in items(control_plane, PODS):
        node_affinity = one["spec"]["affinity"]["nodeAffinity"]
        assert node_affinity == {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 100, "preference": preferred}
            ]
        }
    delete(control_plane, "gang")


def test_one_that_no_rack_has_room_for_prefers_the_block_and_starts(
    control_plane: ControlPlane,
) -> None:
    create(control_plane, appwrapper("wide", deployment("wide", replicas=12, cpu="3")))
    control_plane.wait_for(lambda: running(control_plane) == 12, 60, "all run")
    assert running_on(control_plane) == 10 * ["a-1"] + ["b-1", "b-2"]
    record = status_of(control_plane, "wide")["dispatch"]
    assert record["preferredDomain"] == {"label": BLOCK, "value": "one"}
    delete(control_plane, "wide")
