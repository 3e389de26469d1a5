"""Capacity as bars, one per resource: used, reserved and free."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.text import Text

from mcad.cli.pages.capacity_amounts import in_order, number
from mcad.cli.pages.colours import printable
from mcad.cli.pages.human_amounts import human_amount
from mcad.cli.pages.tables import amounts

Json = dict[str, Any]

BAR_MIN, BAR_MAX = 10, 40

_BOOKS = ("used", "reserved", "free")
_MARKS = (("#", "green"), ("+", "yellow"), (".", "dim"))


def capacity_bars(capacity: Json | None, width: int, most: int) -> Text:
    """At most ``most`` lines of ``width`` columns, of the sums of the nodes."""
    lines = [*_lines(capacity, width)]
    return Text("\n").join(lines[:most])


def _lines(capacity: Json | None, width: int) -> Iterator[Text]:
    if capacity is None:
        yield Text("The capacity is not known.", "dim")
        return
    total = capacity["total"]
    names = [name for name in in_order(total["allocatable"]) if number(total, name)]
    wide = max(map(len, names), default=0)
    for name in names:
        yield _line(name, wide, total, width)
    if capacity["unplaced"]:
        yield Text(printable(f"unplaced: {amounts(capacity['unplaced'])}"), "yellow")


def _line(name: str, wide: int, total: Json, width: int) -> Text:
    """``cpu [####+++...] used 1, reserved 500m, free 500m of 2``; a narrow one has fewer words."""
    told = {book: human_amount(name, total[book].get(name, "0")) for book in _BOOKS}
    of = human_amount(name, total["allocatable"][name])
    label = f"{printable(name):<{wide}} "
    full = f" used {told['used']}, reserved {told['reserved']}, free {told['free']} of {of}"
    for figures in (full, f" {told['free']} of {of} free"):
        room = min(width - len(label) - len(figures) - 2, BAR_MAX)
        if room >= BAR_MIN:
            bar = ((mark * count, style) for mark, count, style in _marks(total, name, room))
            return Text.assemble(label, "[", *bar, "]", figures)
    return Text(f"{label}{told['free']} of {of} free")


def _marks(total: Json, name: str, room: int) -> Iterator[tuple[str, int, str]]:
    """The characters of a bar; no amount above 0 gets none."""
    whole = number(total, name)
    used = _share(number(total, name, "used"), whole, room)
    reserved = min(_share(number(total, name, "reserved"), whole, room), room - used)
    if reserved == 0 and number(total, name, "reserved") and used:
        used, reserved = used - 1, 1
    counts = (used, reserved, room - used - reserved)
    yield from ((mark, count, style) for (mark, style), count in zip(_MARKS, counts, strict=True))


def _share(part: int, whole: int, room: int) -> int:
    """The part of a bar in characters: rounded up, so that a small amount is visible."""
    return max(0, min(room, -(-part * room // whole)))
