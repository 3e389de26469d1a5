"""Whoever is first in line for too long starts in spite of a stream of small ones."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from tests.controlplane.controlplane import ControlPlane
from tests.e2e.fleet import Bystander, collection
from tests.e2e.reservations import PATIENCE_S, SLOTS, dispatching, events, prepare, submit
from tests.e2e.support import pods, states

pytestmark = pytest.mark.controlplane


def test_a_gang_starts_in_spite_of_a_stream_of_small_ones(
    control_plane: ControlPlane, account: Path
) -> None:
    plane = control_plane
    prepare(plane)
    bystander = Bystander(plane, collection())
    with dispatching(plane, account, "protectAfter=2"):
        numbers = count()

        def feed() -> None:
            """There are always some that would take whatever becomes free."""
            waiting = [name for name, state in states(plane).items() if state == "Pending"]
            for _ in range(3 - len([name for name in waiting if name != "gang"])):
                submit(plane, f"small-{next(numbers):03}", slots=1, seconds=2)

        for _ in range(4):
            feed()
            plane.wait_for(lambda: len(pods(plane)) >= 2, PATIENCE_S, "some run")
        submit(plane, "gang", slots=SLOTS)

        def starts() -> bool:
            feed()
            return states(plane)["gang"] == "Running"

        plane.wait_for(starts, PATIENCE_S, "the gang runs")
        assert "RoomReserved" in events(plane, "gang")
        waiting = [name for name, state in states(plane).items() if state == "Pending"]
        assert waiting, "the stream has not dried up"
    seen = [one.object for one in bystander.sights()]
    reservations = [
        one["status"]["reservation"] for one in seen if one.get("status", {}).get("reservation")
    ]
    assert {one["reason"] for one in reservations} == {"Starved"}
    intents = {
        one["metadata"]["name"]: one["status"]["dispatch"]["intentTime"]
        for one in seen
        if one.get("status", {}).get("dispatch")
    }
    since = reservations[-1]["since"]
    assert [name for name, at in intents.items() if since < at < intents["gang"]] == []
