"""The same where pods of v1beta1 may be without a node for less time than all of them need to come:
every clock is a third of the one in its thread, so that their order stays (13 < 20 < 39)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.operators import LEADER_WORKER_SET, Operators
from tests.e2e.process import Dispatcher
from tests.e2e.running.case import Case, Json, hasten

pytestmark = pytest.mark.controlplane

LONG = 90
PLACEMENT = ("--set", "placementTimeout=20")
IN_ORDER = ("in-order", "leader-ready")
"""Their init containers take 40 s and 90 s; here a third of that."""


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane, account: Path) -> Iterator[ControlPlane]:
    """With the operator of LeaderWorkerSets, and the dispatcher."""
    with (
        Operators(control_plane, LEADER_WORKER_SET),
        Dispatcher(control_plane, account, *PLACEMENT),
    ):
        yield control_plane


@pytest.fixture(scope="module")
def submitted(plane: ControlPlane) -> dict[str, Case]:
    """All at once."""
    names = (*IN_ORDER, "gated", "lost-node")
    found = {name: Case(plane, name, "v1beta1", ("3",)) for name in names}
    for one in found.values():
        one.add_nodes()
    plane.wait_for_nodes(node for one in found.values() for node in one.nodes)
    for name in IN_ORDER:
        hasten(found[name].template, 3)
    _need_a_volume(found["lost-node"].template)
    for one in found.values():
        one.submit()
        plane.wait_for(one.item, LONG, f"{one.pool}: its object")
        one.remember()
    return found


def _need_a_volume(obj: Json) -> None:
    """One that does not exist: kube-scheduler finds no node, which no dispatcher can foresee."""
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}
    obj["spec"]["template"]["spec"]["volumes"] = [claim]


@pytest.mark.parametrize("name", IN_ORDER)
def test_pods_that_come_in_order_are_no_pods_without_a_node(
    submitted: dict[str, Case], name: str
) -> None:
    one = submitted[name]
    one.wait_for_pods(3, seconds=LONG)
    one.check_is_the_first_attempt()


def test_gated_pods_are_no_pods_that_found_no_node(submitted: dict[str, Case]) -> None:
    """Nor are they when the gate is taken away long after their creation."""
    one = submitted["gated"]
    wait_until_it_is_taken_back(submitted["lost-node"])
    one.check_is_the_first_attempt()
    for pod in one.pods():
        one.patch_pod(pod["metadata"]["name"], {"spec": {"schedulingGates": None}})
    one.wait_for_pods(2)
    one.check_is_the_first_attempt()


def test_a_declared_gang_that_never_finds_nodes_is_still_taken_back(
    submitted: dict[str, Case],
) -> None:
    wait_until_it_is_taken_back(submitted["lost-node"])


def wait_until_it_is_taken_back(case: Case) -> None:
    """Its pods had no nodes for too long."""
    case.plane.wait_for(
        lambda: (
            "PlacementTimeout" in {one.get("reason") for one in case.conditions().values()}
            or case.attempt > 1
        ),
        LONG,
        f"{case.pool}: it is taken back",
    )
