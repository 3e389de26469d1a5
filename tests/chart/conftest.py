"""Helm, and a control plane per module."""

from __future__ import annotations

import pytest

from tests.chart.helm import Helm
from tests.controlplane import binaries
from tests.controlplane.fixtures import built_or_skip, control_plane

__all__ = ["control_plane"]


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm, built from its Go module."""
    return Helm(built_or_skip(binaries.ensure_helm), tmp_path_factory.mktemp("helm"))
