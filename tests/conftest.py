"""What every test shares: one profile for hypothesis, the same on every machine."""

import gc
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import budget

# In the background of a script the suite ignores SIGINT, and every command that it starts
# would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "mcad",
    deadline=None,  # a shared machine pauses; counts are asserted, never times
    derandomize=True,  # the same examples in every run: a red run can be repeated
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("mcad")


def pytest_report_header() -> str:
    """What this run plays of what can be enumerated."""
    return budget.header()


LONGEST = (
    "e2e/test_lifecycle.py",
    "e2e/test_operations.py",
    "e2e/test_samples.py",
    "e2e/test_kill.py",
    "faults/test_writes.py",
    "e2e/test_leader.py",
    "e2e/test_reservations.py",
    "e2e/test_start.py",
    "e2e/test_quota.py",
    "e2e/test_two_hundred.py",
    "e2e/test_bad_manifests.py",
    "e2e/test_kubectl.py",
    "chart/test_authorization.py",
    "chart/test_tenants.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first: the one begun last is played by one worker while the others rest.
    After these come their neighbours, and then those that take seconds."""
    order = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: _turn(item.path, order))


def _turn(path: Path, order: Mapping[str, int]) -> int:
    folder = path.parent.name
    rest = len(order) + (folder not in ("e2e", "chart", "faults"))
    return order.get(f"{folder}/{path.name}", rest)


def pytest_runtest_setup() -> None:
    """The collector leaves alone what stays: modules, and the tests themselves.

    There are so many of them that whatever makes worlds and throws them away, as the simulated
    clusters do, would spend a fifth of its time on looking at them again.
    """
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
