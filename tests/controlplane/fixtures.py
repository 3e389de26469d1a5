"""pytest's way to a control plane. A conftest imports the fixtures by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from tests.controlplane import binaries
from tests.controlplane.controlplane import ControlPlane

__all__ = ["built_or_skip", "control_plane", "controlplane_or_skip"]

T = TypeVar("T")


def controlplane_or_skip(**options: Any) -> ControlPlane:
    """A control plane to start by `with`. Skips the test where none can be built: no Go.

    Not in CI: there, a suite that passes because it was skipped is a lie.
    """
    built_or_skip(binaries.ensure)
    return ControlPlane(**options)


def built_or_skip(ensure: Callable[[], T]) -> T:
    """What one of the functions of `binaries` builds; skips, or fails in CI, without Go."""
    try:
        return ensure()
    except binaries.MissingGo as error:
        if os.environ.get("CI", "").lower() in {"1", "true"}:
            pytest.fail(f"CI must run these tests, but {error}", pytrace=False)
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """A fresh control plane for each test module, without nodes and kinds of ours."""
    with controlplane_or_skip() as plane:
        yield plane
