"""AppWrappers as table rows: columns, order and selection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from mcad.api.labels import PREFIX
from mcad.cli.arguments.names import ObjectName, qualified
from mcad.cli.arguments.options import Output
from mcad.cli.pages.start_times import start_column
from mcad.cli.pages.tables import NONE, UNKNOWN, age, amounts

Json = dict[str, Any]

TITLES = ("NAME", "POSITION", "STATE", "PRIORITY", "DEMAND", "WAITS-FOR", "AGE")
WIDE_TITLES = ("ATTEMPT", "UID", "FIRST-SEEN", "STARTS", "WHY")
FORMS_WITH_STARTS = ("wide", "json", "yaml")

_ORDERS: dict[str, Callable[[Json], Any]] = {
    "name": lambda row: (row["name"], row["namespace"]),
    "namespace": lambda row: (row["namespace"], row["name"]),
    "state": lambda row: row["state"],
    "priority": lambda row: -row["priority"],
    "waits-for": lambda row: (not row["waitsFor"], row["waitsFor"]),
    "age": lambda row: row["firstSeen"] or "",
    "attempt": lambda row: -row["attempt"],
}

sort_option = click.option(
    "--sort-by",
    type=click.Choice(["position", *_ORDERS]),
    default="position",
    show_default=True,
    help="Highest priority, most attempts and oldest first; ties in queue order.",
)


def titles(output: Output, *, namespaces: bool) -> tuple[str, ...]:
    """The column titles: NAMESPACE first if several are shown, wide ones last."""
    return ("NAMESPACE",) * namespaces + TITLES + WIDE_TITLES * (output.form == "wide")


def cells(row: Json, output: Output, now_us: int, *, namespaces: bool) -> tuple[str, ...]:
    """The cells of a row."""
    plain = (
        row["name"],
        place(row),
        state(row),
        str(row["priority"]),
        amounts(row["demand"]),
        row["waitsFor"] or NONE,
        age(row["firstSeen"], now_us),
    )
    more = (
        str(row["attempt"]),
        row["uid"],
        row["firstSeen"] or NONE,
        start_column(row.get("starts"), now_us),
        row["why"] or NONE,
    )
    return (row["namespace"],) * namespaces + plain + more * (output.form == "wide")


def reference(row: Json, *, namespaces: bool = False) -> str:
    """The name for ``-o name``; with its namespace if several are shown."""
    return qualified(row["namespace"], row["name"]) if namespaces else f"{PREFIX}{row['name']}"


def state(row: Json) -> str:
    """The state as text, with the reason why pods do not run."""
    stalled = row.get("stalled")  # absent from older dispatchers
    return f"{row['state']} ({stalled})" if stalled else str(row["state"])


def place(row: Json) -> str:
    """The position as text."""
    return UNKNOWN if row["position"] is None else str(row["position"] or NONE)


def in_order(rows: list[Json], sort_by: str) -> list[Json]:
    """The rows in the order of --sort-by; ``position`` is the given order."""
    order = _ORDERS.get(sort_by)
    return sorted(rows, key=order) if order is not None else rows


def named(rows: list[Json], names: tuple[ObjectName, ...]) -> tuple[list[Json], list[ObjectName]]:
    """The rows with these names, in the order of the names, and the missing names.

    A name without a namespace is one of the rows, which are of one namespace then.
    """
    known = {(row["namespace"], row["name"]): row for row in rows}
    known |= {(None, row["name"]): row for row in rows}
    found = [(one, known.get((one.namespace, one.name))) for one in names]
    return [row for _, row in found if row is not None], [one for one, row in found if row is None]
