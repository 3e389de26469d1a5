"""A control plane with a few slots, and what is seen there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.e2e.fleet import Bystander
from tests.e2e.process import ACCOUNT, NAMESPACE, printed
from tests.e2e.reservations.slots import PODS, QUOTA, SLOT, SLOTS


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane, account: Path) -> ControlPlane:
    """A node with a few slots; the dispatcher's rights are those for quota."""
    assert account
    control_plane.wait_for_crd("quotasubtrees.quota.codeflare.dev")
    control_plane.add_node("node-1", cpu="64", memory="64Gi", extended={SLOT: str(SLOTS)})
    rbac = ("rbac", "-n", NAMESPACE, "--service-account", ACCOUNT, "--set", QUOTA)
    control_plane.apply(printed(*rbac))
    return control_plane


@pytest.fixture(scope="module")
def bystander(plane: ControlPlane) -> Bystander:
    """Sees every pod come and go."""
    return Bystander(plane, PODS)
