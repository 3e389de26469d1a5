"""``--state``, ``--reason`` and ``--limit``: which rows of a list are shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import click
from msgspec import Struct

from mcad.cli.arguments.options import record
from mcad.core.state.reasons import State
from mcad.core.state.spelling import did_you_mean
from mcad.core.state.waiting_reason import WaitingReason

Json = dict[str, Any]


CODES = tuple(map(str, WaitingReason))
"""The words of the column WAITS-FOR besides resources."""


class Filters(Struct, frozen=True):
    """--state, --reason and --limit."""

    states: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    limit: int | None = None

    def keep(self, rows: Iterable[Json]) -> list[Json]:
        """The rows with one of the states and one of the reasons; the limit is not applied."""
        return [
            row
            for row in rows
            if (not self.states or row["state"] in self.states)
            and (not self.reasons or any(_has(row, one) for one in self.reasons))
        ]

    def cut(self, rows: Sequence[Json]) -> list[Json]:
        """The first ones; stderr says how many are left out."""
        if self.limit is None or len(rows) <= self.limit:
            return list(rows)
        click.echo(f"{len(rows) - self.limit} more are not shown (--limit).", err=True)
        return list(rows[: self.limit])

    def explain_none(self) -> str:
        """The words for an empty list: a reason that does not exist is probably misspelt."""
        parts = [f"state {' or '.join(self.states)}"] if self.states else []
        parts += [f"reason {' or '.join(self.reasons)}"] if self.reasons else []
        text = f" with {' and '.join(parts)}" if parts else ""
        hints = [
            did_you_mean(one, CODES)
            for one in self.reasons
            if one.casefold() not in map(str.casefold, CODES)
        ]
        return text + "".join(f". {hint}" for hint in hints if hint)


def _has(row: Json, reason: str) -> bool:
    """Whether it waits for this: a code, a resource, or ``insufficient`` for any resource."""
    waits = row["waitsFor"] or ""
    if reason.casefold() == WaitingReason.INSUFFICIENT:
        return bool(waits) and (waits == WaitingReason.INSUFFICIENT or waits not in CODES)
    return bool(waits.casefold() == reason.casefold())


filter_options = record(
    "filters",
    Filters,
    click.option(
        "--state",
        "states",
        type=click.Choice(list(map(str, State)), case_sensitive=False),
        multiple=True,
        help="Only those in this state; may be repeated.",
    ),
    click.option(
        "--reason",
        "reasons",
        metavar="CODE",
        multiple=True,
        help="Only those that wait for this (column WAITS-FOR): cpu, quota, Suspended, or"
        " insufficient for any resource; may be repeated.",
    ),
    click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N."),
)
