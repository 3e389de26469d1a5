"""Start time estimates: the column of -o wide, and the lines of `mcad describe`."""

from __future__ import annotations

from typing import Any

import pytest

from mcad.cli.pages.start_times import start_column
from tests.cli.dispatcher import NOW_US
from tests.cli.test_reservations import page

Json = dict[str, Any]

AT = {5: "2027-01-15T08:05:00.000000Z", 30: "2027-01-15T08:30:00.000000Z"}
WHY = "By declared limits, unless others go before it: it waits for 1 to end, with 0 ahead of it."


def starts(earliest: int = 0, latest: int = 0, rests_on: str = "Limits") -> Json:
    """Minutes from now."""
    told = {"earliest": AT.get(earliest), "latest": AT.get(latest)}
    return {**told, "restsOn": rests_on if latest else "", "why": WHY}


@pytest.mark.parametrize(
    ("given", "cell"),
    [
        (None, "<none>"),
        (starts(), "<none>"),
        (starts(5, 30), "5m-30m"),
        (starts(0, 30), "<30m"),
        (starts(5), ">5m"),
        (starts(5, 30, "Reservation"), "5m-30m"),
        (starts(5, 30, "Expectations"), "5m-30m?"),
        (starts(0, 30, "Expectations"), "<30m?"),
        (starts(0, 30, "ScaleUp"), "<30m?"),
    ],
)
def test_the_column_says_in_what_time(given: Json | None, cell: str) -> None:
    assert start_column(given, NOW_US) == cell


def test_what_is_over_is_no_time_away() -> None:
    assert start_column(starts(5, 30), NOW_US + 600_000_000) == "0s-20m"
    assert start_column(starts(0, 5), NOW_US + 600_000_000) == "now"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (starts(5, 30), f"between {AT[5]} (in 5m) and {AT[30]} (in 30m)"),
        (starts(0, 30), f"at {AT[30]} (in 30m) at the latest"),
        (starts(0, 30, "ScaleUp"), f"about {AT[30]} (in 30m), on new nodes"),
        (starts(5), f"at {AT[5]} (in 5m) at the earliest"),
        (starts(), "<unknown>"),
    ],
)
def test_the_page_says_when_and_what_that_rests_on(given: Json, said: str) -> None:
    lines = page(starts=given)
    at = next(n for n, line in enumerate(lines) if line.startswith("Starts:"))
    assert lines[at : at + 2] == [f"Starts:       {said}", f"Estimate:     {WHY}"]


@pytest.mark.parametrize("more", [{}, {"starts": None}])
def test_an_appwrapper_that_does_not_wait_has_no_estimate(more: Json) -> None:
    """Nor does an older dispatcher."""
    lines = page(**more)
    assert not [line for line in lines if line.startswith(("Starts:", "Estimate:"))]
