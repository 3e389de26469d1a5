"""Start time estimates in words (JSON of ``mcad.controller.start_time_views``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcad.cli.pages.tables import NONE, UNKNOWN, until

Json = dict[str, Any]

SCALE_UP = "ScaleUp"
DOUBTFUL = frozenset({"Expectations", SCALE_UP})
"""``restsOn`` of an estimate that depends on expected run times, or on new nodes
(``mcad.core.views``)."""


def start_column(starts: Json | None, now_us: int) -> str:
    """A table cell: ``5m-30m``, ``<30m`` at the latest, ``>5m`` at the earliest.

    ``?`` marks a latest start that depends on expectations.
    """
    if not starts or not (starts["earliest"] or starts["latest"]):
        return NONE
    doubt = "?" * (starts["restsOn"] in DOUBTFUL)
    early = until(starts["earliest"], now_us) if starts["earliest"] else ""
    late = until(starts["latest"], now_us) + doubt if starts["latest"] else ""
    if early and late:
        return f"{early}-{late}"
    if early:
        return f">{early}"
    return f"<{late}" if late != "0s" else "now"


def start_lines(starts: Json, now_us: int) -> Iterator[tuple[str, str]]:
    """Lines of a page: the estimated start, and what the estimate is based on."""
    early, late = (_instant(starts[key], now_us) for key in ("earliest", "latest"))
    if late and starts["restsOn"] == SCALE_UP:
        yield "Starts", f"about {late}, on new nodes"
    elif early and late:
        yield "Starts", f"between {early} and {late}"
    elif late:
        yield "Starts", f"at {late} at the latest"
    elif early:
        yield "Starts", f"at {early} at the earliest"
    else:
        yield "Starts", UNKNOWN
    yield "Estimate", starts["why"]


def _instant(at: str | None, now_us: int) -> str:
    return f"{at} (in {until(at, now_us)})" if at else ""
