"""The fixtures, for the tests of the control plane itself."""

from tests.controlplane.fixtures import control_plane

__all__ = ["control_plane"]
