"""One control plane for all that is compared with a real API server object by object."""

from collections.abc import Iterator

import pytest

from mcad.api.crd import crds
from mcad.api.labels import GROUP
from mcad.sim.kinds import KindTable
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.fixtures import controlplane_or_skip
from tests.sim.furnished import create_all


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    """With a node, our CRD, and objects of every kind. Tests that need another one start it."""
    with controlplane_or_skip() as plane:
        plane.add_node("n1", cpu="8", memory="32Gi", pods=110)
        create_all(plane)
        yield plane


@pytest.fixture
def kinds() -> KindTable:
    """The built-in kinds, and those of the group of AppWrappers."""
    table = KindTable()
    for crd in crds():
        if crd["spec"]["group"] == GROUP:
            table.set_crd(crd)
    return table
