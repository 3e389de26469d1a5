"""What the drawer says of the changes that would start an AppWrapper."""

from __future__ import annotations

from typing import Any

import pytest

from mcad.ui.pages import Pages

NONE_HELPS = "No single change that was tried starts it now."
WAITS: dict[str, Any] = {
    "heldBy": None,
    "mayEvict": [],
    "startsNext": False,
    "wouldStart": [],
    "allTried": True,
    "position": 3,
    "waitsFor": "Insufficient cpu",
}


@pytest.mark.parametrize(
    ("told", "is_said"),
    [
        (WAITS, True),
        (WAITS | {"startsNext": True}, False),
        (WAITS | {"wouldStart": [{"text": "If it asks for 2 CPUs less."}]}, False),
        (WAITS | {"position": 0, "waitsFor": "DispatchPaused"}, False),
        (WAITS | {"position": 0, "waitsFor": ""}, False),
    ],
)
def test_that_nothing_helps_is_said_only_of_one_that_waits_in_line(
    told: dict[str, Any], is_said: bool
) -> None:
    assert (NONE_HELPS in Pages().answer(told)) is is_said


def test_that_not_all_was_tried_is_said() -> None:
    assert "Not all was tried" in Pages().answer(WAITS | {"allTried": False})
    assert "Not all was tried" not in Pages().answer(WAITS | {"allTried": False, "position": 0})
