"""samples/quota does what its comments say, unmodified, on a real control plane."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import ACCOUNT, NAMESPACE, Dispatcher, mcad
from tests.e2e.support import SAMPLES, conditions_of, delete, pods, states, status_of

pytestmark = pytest.mark.controlplane

FOLDER = SAMPLES / "quota"
TOLD = {"teams.yaml", "aw-research.yaml", "aw-borrower.yaml", "aw-ops.yaml", "aw-product.yaml"}
TOLD |= {"aw-unknown-leaf.yaml"}
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def teams(control_plane: ControlPlane, account: Any) -> Iterator[tuple[ControlPlane, Dispatcher]]:
    """A node with more room than the tree, the tree, and a dispatcher with quota on."""
    plane = control_plane
    plane.add_node("node-1", cpu="16", memory="64Gi")
    with_quota = ("--set", "quotaEnabled=true")
    plane.apply(mcad("rbac", "-n", NAMESPACE, "--service-account", ACCOUNT, *with_quota))
    create(plane, "teams")
    with Dispatcher(plane, account, *with_quota) as dispatcher:
        yield plane, dispatcher


def create(plane: ControlPlane, name: str) -> None:
    plane.kubectl("create", "--validate=strict", "-f", str(FOLDER / f"{name}.yaml"))


def runs(plane: ControlPlane, name: str) -> None:
    plane.wait_for(lambda: states(plane).get(name) == "Running", PATIENCE_S, f"{name} runs")


def waits(plane: ControlPlane, name: str, words: str) -> None:
    def refused() -> bool:
        told = conditions_of(plane, name).get("Backoff")
        return told is not None and words in told.get("message", "")

    plane.wait_for(refused, PATIENCE_S, f"{name} waits: {words}")


def test_every_file_is_in_the_story() -> None:
    assert {path.name for path in FOLDER.iterdir()} == TOLD


def test_three_teams_a_borrower_and_an_unknown_leaf(
    teams: tuple[ControlPlane, Dispatcher],
) -> None:
    plane, dispatcher = teams
    for name, leaf in (("aw-research", "research"), ("aw-borrower", "research"), ("aw-ops", "ops")):
        create(plane, name)
        runs(plane, name)
        quota = status_of(plane, name)["dispatch"]["quota"]
        assert quota == [{"tree": "teams", "leaf": leaf}]

    create(plane, "aw-product")
    waits(
        plane,
        "aw-product",
        'Quota tree "teams", node "cluster": cpu: 3 requested, 7 of 8 used. Borrowing there: '
        "research (2).",
    )
    create(plane, "aw-unknown-leaf")
    waits(
        plane,
        "aw-unknown-leaf",
        'it waits until there is one. Did you mean "research"?',
    )
    assert len(pods(plane)) == 7
    where = (("--kubeconfig", str(plane.admin_kubeconfig)), ("--server", dispatcher.url))
    for told in (json.loads(mcad("quota", "research", "-o", "json", *each)) for each in where):
        assert told["borrowed"] == {"cpu": "2"}
        assert [one["name"] for one in told["holders"]] == ["aw-borrower", "aw-research"]

    delete(plane, "aw-borrower")
    runs(plane, "aw-product")
    assert states(plane)["aw-unknown-leaf"] == "Pending"
    delete(plane, "aw-research", "aw-ops", "aw-product", "aw-unknown-leaf")
