"""What every test shares: one profile for hypothesis, the same on every machine."""

import gc
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

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


def pytest_configure(config: pytest.Config) -> None:
    """Draw a part of the examples in ``make test``."""
    budget.IS_PART = config.option.markexpr == "not slow"
    count = budget.examples(settings.default.max_examples)
    settings.register_profile("part", settings.get_profile("mcad"), max_examples=count)
    settings.load_profile("part")


def pytest_report_header() -> str:
    """What this run plays of what can be enumerated."""
    return budget.header()


LONGEST = (
    "running/test_left_alone.py",
    "running/test_told.py",
    "e2e/test_quota.py",
    "reservations/test_slow_victims.py",
    "lifecycle/test_nodes.py",
    "chart/test_install.py",
    "faults/test_writes.py",
    "e2e/test_operations.py",
    "e2e/test_two_hundred.py",
    "e2e/test_leader.py",
    "running/test_short_placement.py",
    "lifecycle/test_lifecycle.py",
    "faults/test_edits.py",
    "e2e/test_samples.py",
    "reservations/test_reservations.py",
    "e2e/test_kubectl.py",
    "lifecycle/test_phases.py",
    "lifecycle/test_orphans.py",
    "e2e/test_kill.py",
    "e2e/test_start.py",
    "e2e/test_bad_manifests.py",
    "preemption/test_slow_victims.py",
    "contract/test_workloads.py",
    "chart/test_upgrade.py",
    "chart/test_dockerfile.py",
    "documents/test_clean_home.py",
    "lifecycle/test_others.py",
    "faults/test_histories.py",
    "documents/test_commands.py",
)
AT_ONCE = 4
SPREAD = 0.8

REAL = (
    "contract/test_contract.py",
    "e2e/test_bad_manifests.py",
    "e2e/test_kill.py",
    "e2e/test_kubectl.py",
    "lifecycle/test_lifecycle.py",
)
"""What ``make test`` runs on a real control plane: both dialects and their lives, bad manifests,
kubectl, a killed dispatcher, and that the embedded cluster answers alike."""

SLOW = (
    "attempts/test_edits.py",
    "benchmarks/test_replay.py",
    "chart/test_alerts.py",
    "chart/test_dockerfile.py",
    "core/test_bounded_steps.py",
    "cycle/test_looks_in_parts.py",
    "decisions/test_decisions.py",
    "faults/test_edits.py",
    "faults/test_growth.py",
    "faults/test_histories.py",
    "faults/test_leaders.py",
    "faults/test_raises.py",
    "faults/test_stale_lists.py",
    "fit/test_capacity_properties.py",
    "journal/test_journal.py",
    "preemption/test_crashes.py",
    "preemption/test_slow_victims.py",
    "reservations/test_promises.py",
    "snapshot/test_removal.py",
    "tests/test_budget.py",
    "upgrades/test_upgrades.py",
    "views/test_start_times.py",
)
"""Files without a control plane that take long: ``make test`` leaves them to ``make test-all``."""


@pytest.hookimpl(tryfirst=True)  # before marks are selected by
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark as slow what ``make test`` leaves to ``make test-all``, and order the files. Of what is
    drawn ``make test`` plays a part, so all of it is played by ``make test-all``."""
    is_rest = config.option.markexpr == "slow"
    for item in items:
        is_real = item.get_closest_marker("controlplane") is not None
        if (
            _name(item.path) in SLOW
            or (is_real and _name(item.path) not in REAL)
            or (is_rest and _is_drawn(item))
        ):
            item.add_marker(pytest.mark.slow)
    _put_in_order(items)


def _is_drawn(item: pytest.Item) -> bool:
    test = getattr(item, "obj", None)
    return is_hypothesis_test(test) or item.get_closest_marker("drawn") is not None


def _put_in_order(items: list[pytest.Item]) -> None:
    """Files that wait for servers among those that compute, so that neither the processor nor a
    worker rests: some wait from the beginning, and the others are spread over most of the rest.
    The longest files of both come first, because the one begun last is played by one worker
    alone."""
    order = {name: number for number, name in enumerate(LONGEST)}
    files: dict[Path, bool] = {}
    for item in items:
        files[item.path] = item.get_closest_marker("controlplane") is not None
    in_order = sorted(files, key=lambda path: order.get(_name(path), len(order)))
    turns = _in_turns([p for p in in_order if files[p]], [p for p in in_order if not files[p]])
    items.sort(key=lambda item: turns[item.path])


def _in_turns(waiting: Sequence[Path], computing: Sequence[Path]) -> dict[Path, float]:
    """When the turn of each file is: those that compute are numbered."""
    turns: dict[Path, float] = {path: number for number, path in enumerate(computing)}
    turns |= {path: number - AT_ONCE for number, path in enumerate(waiting[:AT_ONCE])}
    spread = waiting[AT_ONCE:]
    each = SPREAD * len(computing) / max(1, len(spread))
    return turns | {path: number * each for number, path in enumerate(spread)}


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


@pytest.fixture(scope="session", autouse=True)
def _modules_and_tests_stay() -> None:
    """The collector leaves alone what stays: modules, and the tests themselves.

    There are so many of them that whatever makes worlds and throws them away, as the simulated
    clusters do, would spend a fifth of its time on looking at them again. Once, and not asked for
    before each test: to count what is frozen takes ten milliseconds.
    """
    gc.collect()
    gc.freeze()
