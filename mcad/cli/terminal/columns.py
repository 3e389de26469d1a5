"""The columns of the table: their cells, their order, and which of them fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from mcad.cli.pages.colours import printable
from mcad.cli.pages.rows import place, state
from mcad.cli.pages.tables import NONE, age, amounts
from mcad.core.state.quantity import MILLIS, QuantityError, parse_quantity

Json = dict[str, Any]

GAP = 2
WHY_MIN = 24


class Column(Struct, frozen=True):
    """A column: the text of a cell at an instant, and what rows are sorted by."""

    text: Callable[[Json, int], str]
    order: Callable[[Json], Any]


def _cpu(row: Json) -> int:
    try:
        return -parse_quantity((row["demand"] or {}).get("cpu", "0"), MILLIS)
    except QuantityError:
        return 0


def _full_name(row: Json) -> tuple[str, str]:
    return row["namespace"], row["name"]


COLUMNS: dict[str, Column] = {
    "POS": Column(lambda row, _: place(row), lambda row: row["position"] or float("inf")),
    "NAME": Column(lambda row, _: "/".join(_full_name(row)), _full_name),
    "STATE": Column(lambda row, _: state(row), lambda row: row["state"]),
    "PRIORITY": Column(lambda row, _: str(row["priority"]), lambda row: -row["priority"]),
    "DEMAND": Column(lambda row, _: amounts(row["demand"]), _cpu),
    "AGE": Column(
        lambda row, now_us: age(row["firstSeen"], now_us), lambda row: row["firstSeen"] or "~"
    ),
    "WAITS-FOR": Column(lambda row, _: row["waitsFor"] or NONE, lambda row: row["waitsFor"] or "~"),
    "WHY": Column(lambda row, _: row["why"] or NONE, lambda row: row["why"] or "~"),
}
"""By title. Highest priority, largest demand of CPU and oldest come first."""

_LEAST = {"NAME": 20, "DEMAND": 12}
_LEFT_OUT = ("WHY", "PRIORITY", "DEMAND", "AGE", "WAITS-FOR", "POS", "STATE")


def cells(row: Json, now_us: int, *, with_namespace: bool) -> dict[str, str]:
    """The cells of a row, by title."""
    made = {title: printable(column.text(row, now_us)) for title, column in COLUMNS.items()}
    if not with_namespace:
        made["NAME"] = printable(row["name"])
    return made


def fit(natural: Mapping[str, int], width: int) -> dict[str, int]:
    """The columns that fit in ``width``, with their widths.

    ``natural`` are the widths that the cells have. WHY is shown where all others fit in full, and
    takes the rest. Then demand and name are shortened; then columns are left out.
    """
    widths = dict(natural)
    others = _total({title: size for title, size in widths.items() if title != "WHY"})
    if "WHY" in widths and others + GAP + WHY_MIN <= width:
        return widths | {"WHY": width - others - GAP}
    for gone in _LEFT_OUT:
        widths.pop(gone, None)
        shrunk = _shrunk(widths, width)
        if _total(shrunk) <= width:
            return shrunk
    return {"NAME": max(width, 1)}


def _shrunk(widths: Mapping[str, int], width: int) -> dict[str, int]:
    shrunk = dict(widths)
    for title in ("DEMAND", "NAME"):
        over = _total(shrunk) - width
        if over > 0 and title in shrunk:
            least = min(shrunk[title], _LEAST[title])
            shrunk[title] = max(shrunk[title] - over, least)
    return shrunk


def _total(widths: Mapping[str, int]) -> int:
    return sum(widths.values()) + GAP * max(len(widths) - 1, 0)
