"""A node for all, and a dispatcher that looks often."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.e2e.lifecycle.phases import full
from tests.e2e.process import Dispatcher, counts_every
from tests.e2e.support import delete

__all__ = ["full"]


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> ControlPlane:
    """A node for all."""
    control_plane.add_node("node-1", cpu="16", memory="64Gi", pods=500)
    return control_plane


@pytest.fixture(scope="module", autouse=True)
def dispatcher(plane: ControlPlane, account: Path) -> Iterator[Dispatcher]:
    with Dispatcher(plane, account, "--set", "backoffTime=1", **counts_every(1)) as running:
        yield running


@pytest.fixture(autouse=True)
def _emptied(plane: ControlPlane) -> Iterator[None]:
    yield
    delete(plane)
