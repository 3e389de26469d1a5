"""AppWrappers as table rows: columns, order and selection, the same for one look and for many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from mcad.api.labels import GROUP
from mcad.cli.errors import NotFoundError
from mcad.cli.options import Output
from mcad.cli.tables import NONE, age, amounts

Json = dict[str, Any]

TITLES = ("NAME", "POSITION", "STATE", "PRIORITY", "DEMAND", "WAITS-FOR", "AGE")
WIDE_TITLES = ("ATTEMPT", "UID", "FIRST-SEEN", "WHY")

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
    help="Highest priority, most attempts and oldest come first; ties stay in line order.",
)


def titles(output: Output, *, namespaces: bool) -> tuple[str, ...]:
    """The columns: NAMESPACE first if there are several, the wide ones last."""
    return ("NAMESPACE",) * namespaces + TITLES + WIDE_TITLES * (output.form == "wide")


def cells(row: Json, output: Output, now_us: int, *, namespaces: bool) -> tuple[str, ...]:
    """What stands in these columns at this moment."""
    plain = (
        row["name"],
        str(row["position"] or NONE),
        row["state"],
        str(row["priority"]),
        amounts(row["demand"]),
        row["waitsFor"] or NONE,
        age(row["firstSeen"], now_us),
    )
    more = (str(row["attempt"]), row["uid"], row["firstSeen"] or NONE, row["why"] or NONE)
    return (row["namespace"],) * namespaces + plain + more * (output.form == "wide")


def reference(row: Json) -> str:
    """``-o name``."""
    return f"appwrapper.{GROUP}/{row['name']}"


def in_order(rows: list[Json], sort_by: str) -> list[Json]:
    """The rows in the order of --sort-by; ``position`` is that in which they came."""
    order = _ORDERS.get(sort_by)
    return sorted(rows, key=order) if order is not None else rows


def within(rows: list[Json], namespace: str | None) -> list[Json]:
    """The rows of one namespace, or all of them."""
    return [row for row in rows if namespace in (None, row["namespace"])]


def where(namespace: str | None) -> str:
    """`` in namespace x``, for messages."""
    return f" in namespace {namespace}" if namespace else ""


def named(rows: list[Json], name: str, namespace: str | None) -> Json:
    """The row of this name; raises ``NotFoundError``."""
    for row in rows:
        if row["name"] == name:
            return row
    raise NotFoundError(
        f'no AppWrapper "{name}"{where(namespace)} that this dispatcher manages; see `mcad get -A`'
    )
