"""Capacity as bars, one per resource: used, reserved and free."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcad.cli.pages.colours import BOLD, DIM, GREEN, YELLOW, Palette
from mcad.cli.pages.human_amounts import human_amount
from mcad.cli.pages.tables import amounts, shortened
from mcad.core.state.quantity import CPU, MILLIS, UNITS, parse_quantity

Json = dict[str, Any]

BAR_MIN, BAR_MAX = 10, 40
RESOURCES_SHOWN = 8

_BOOKS = ("allocatable", "used", "reserved", "free")
_MARKS = (("#", GREEN), ("+", YELLOW), (".", DIM))
_FIRST = ("cpu", "memory", "pods", "ephemeral-storage")


def capacity_lines(capacity: Json | None, width: int, palette: Palette) -> Iterator[str]:
    """The sums of ``mcad.controller.views.capacity_view``, in at most ``width`` columns."""
    if capacity is None:
        yield palette.paint(shortened("Capacity is not known.", width), DIM)
        return
    total, nodes = capacity["total"], len(capacity["nodes"])
    names = [name for name in in_order(total["allocatable"]) if number(total, name)]
    hidden = len(names) - RESOURCES_SHOWN
    names = names[:RESOURCES_SHOWN]
    more = f"; mcad capacity has {hidden} more resources" if hidden > 0 else ""
    title = f"Capacity of {nodes} node{'s' * (nodes != 1)}{more}"
    yield palette.paint(shortened(title, width), BOLD)
    cells = [
        (name, *(human_amount(name, total[book].get(name, "0")) for book in _BOOKS))
        for name in names
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for cell in cells:
        yield _bar(cell, widths, total, width, palette)
    if capacity["unplaced"]:
        line = f"  unplaced: {amounts(capacity['unplaced'])}"
        yield palette.paint(shortened(line, width), YELLOW)


def _bar(
    cell: tuple[str, ...], widths: list[int], total: Json, width: int, palette: Palette
) -> str:
    """``  cpu  [####+++...]  used 1  reserved 500m  free 500m  of 2``."""
    name, of, used, reserved, free = (
        text.ljust(size) for text, size in zip(cell, widths, strict=True)
    )
    figures = f"  used {used}  reserved {reserved}  free {free}  of {of}"
    label = f"  {name}  "
    room = min(width - len(label) - len(figures) - 2, BAR_MAX)
    if room < BAR_MIN:
        return shortened((label + figures.lstrip()).rstrip(), width)
    bar = "".join(
        palette.paint(mark * count, color)
        for (mark, color), count in zip(_MARKS, _marks(total, cell[0], room), strict=True)
    )
    return f"{label}[{bar}]{figures.rstrip()}"


def _marks(total: Json, name: str, room: int) -> tuple[int, int, int]:
    """How many characters of a bar are used, reserved and free; no amount above 0 gets none."""
    whole = number(total, name)
    used = _share(number(total, name, "used"), whole, room)
    reserved = min(_share(number(total, name, "reserved"), whole, room), room - used)
    if reserved == 0 and number(total, name, "reserved") and used:
        used, reserved = used - 1, 1
    return used, reserved, room - used - reserved


def _share(part: int, whole: int, room: int) -> int:
    """The part of a bar in characters: rounded up, so that a small amount is visible."""
    return max(0, min(room, -(-part * room // whole)))


def number(total: Mapping[str, Any], name: str, book: str = "allocatable") -> int:
    """An amount of a capacity view, CPUs in thousandths."""
    scale = MILLIS if name == CPU else UNITS
    return parse_quantity(total[book].get(name, "0"), scale, negative=True)


def in_order(allocatable: Mapping[str, str]) -> list[str]:
    """CPU, memory and pods first, then others (GPUs) by name, ephemeral storage last."""
    known = [name for name in _FIRST if name in allocatable]
    extended = sorted(name for name in allocatable if name not in _FIRST)
    return known[:3] + extended + known[3:]
