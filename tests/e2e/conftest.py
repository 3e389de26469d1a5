"""A control plane per module, and the dispatcher installed on it as users install it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import controlplane_or_skip
from tests.e2e.process import Dispatcher, install, printed


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """A fresh control plane for each test module, without nodes."""
    with controlplane_or_skip(kinds=printed("crd")) as plane:
        yield plane


@pytest.fixture(scope="module")
def account(control_plane: ControlPlane) -> Path:
    """The kubeconfig of the dispatcher's ServiceAccount; CRD and RBAC are installed."""
    return install(control_plane)


@pytest.fixture
def dispatcher(control_plane: ControlPlane, account: Path) -> Iterator[Dispatcher]:
    """A running dispatcher."""
    with Dispatcher(control_plane, account) as running:
        yield running
