"""The journal of a dispatcher on a real control plane: every decision can be made again."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcad.journal.header import files_of
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.fleet import wait_until_quiet
from tests.e2e.process import mcad
from tests.e2e.reservations import PATIENCE_S, SLOTS, dispatching, prepare, submit
from tests.e2e.support import delete, states

pytestmark = pytest.mark.controlplane


def test_what_was_decided_is_decided_again_after_kills(
    control_plane: ControlPlane, account: Path, tmp_path: Path
) -> None:
    """Preemption, a refusal, an end, a deletion, and a kill in the middle of it all."""
    plane, folder = control_plane, tmp_path / "journal"
    prepare(plane)
    submit(plane, "low-1", slots=1)
    submit(plane, "low-2", slots=SLOTS - 1)
    with dispatching(plane, account, "preemption=true", flags=("--journal", str(folder))) as it:
        plane.wait_for(lambda: set(states(plane).values()) == {"Running"}, PATIENCE_S, "both run")
        submit(plane, "large", slots=10 * SLOTS)
        submit(plane, "high", slots=2, priority=5, seconds=3)
        plane.wait_for(lambda: states(plane)["high"] == "Running", PATIENCE_S, "high runs")
        written = files_of(folder)[0].stat().st_size
        plane.wait_for(lambda: files_of(folder)[0].stat().st_size > written, what="another frame")
        it.kill()
        it.start()
        done = {"Completed", "Succeeded"}
        plane.wait_for(lambda: states(plane)["high"] in done, PATIENCE_S, "high ends")
        delete(plane, "large")
        wait_until_quiet(plane)
    out = mcad("replay", str(folder), "--diff")
    assert len(files_of(folder)) == 2, out
    assert out.count("  no difference") == 2, out
    story = mcad("replay", str(folder), "--aw", "high")
    assert "seen, priority 5" in story
    assert "event Dispatched: " in story
    assert "create Pod default/high (attempt 1)" in story
