"""The screen of ``mcad top``: a pure function from figures and a size to lines.

The lines fit the terminal. In a wide table, demands and names are shortened first, then columns are
left out; the queue and the dispatched AppWrappers share the lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from textwrap import wrap
from typing import Any

from msgspec import Struct

from mcad.cli.pages.capacity_bars import capacity_lines
from mcad.cli.pages.colours import (
    BOLD,
    DIM,
    GREEN,
    PLAIN,
    RED,
    REVERSE,
    YELLOW,
    Palette,
    printable,
)
from mcad.cli.pages.rows import place
from mcad.cli.pages.tables import GAP, NONE, age, amounts, fitted, shortened
from mcad.client.figures.row import is_in_line, is_waiting

Json = dict[str, Any]
Block = list[str]  # lines that are shown together or not at all

WHY_MIN = 60  # the minimum width of the column WHY
WHYS_SHOWN = 3

_QUEUE = ("POS", "NAME", "PRIORITY", "DEMAND", "AGE", "WAITS-FOR", "WHY")
_RUNNING = ("NAME", "STATE", "PRIORITY", "DEMAND", "AGE")


class Moment(Struct, frozen=True):
    """What is shown: rows and capacity, the JSON of ``mcad.controller.views``.

    ``rows`` is None before the first figures; ``trouble`` is why they may be outdated. ``place`` is
    the cluster or the server, ``namespace`` the only one to show. ``notes`` are warnings. ``skip``
    rows are scrolled past; None without scrolling.
    """

    now_us: int
    place: str
    rows: list[Json] | None = None
    capacity: Json | None = None
    namespace: str | None = None
    trouble: str = ""
    notes: tuple[str, ...] = ()
    skip: int | None = None


def frame(moment: Moment, width: int, height: int, palette: Palette = PLAIN) -> list[str]:
    """At most ``height`` lines, each at most ``width`` characters."""
    page = _Frame(moment, max(width, 1), palette)
    return page.lines(max(height, 1))


class _Frame:
    def __init__(self, moment: Moment, width: int, palette: Palette) -> None:
        self._moment = moment
        self._width = width
        self._palette = palette
        shown = moment.rows or []
        if moment.namespace is not None:
            shown = [row for row in shown if row["namespace"] == moment.namespace]
        self._rows = shown
        self._waiting = [row for row in shown if is_waiting(row)]
        self._active = [row for row in shown if not is_waiting(row) and row["state"] not in _ENDED]

    def lines(self, height: int) -> list[str]:
        top = list(self._head())
        if self._moment.rows is None:
            return [*top, "", self._cut("reading the cluster...")][:height]
        top += ["", *capacity_lines(self._moment.capacity, self._width, self._palette)]
        room = max(height - len(top), 0)
        if self._moment.skip:
            return [*top, *self._scrolled(self._moment.skip, room)][:height]
        queue, dispatched = self._queue(room), self._dispatched(room)
        first, second = _shares(_height(queue), _height(dispatched), room)
        lower = self._clipped(queue, len(self._waiting), first)
        lower += self._clipped(dispatched, len(self._active), second)
        return [*top, *lower][:height]

    def _scrolled(self, skip: int, room: int) -> list[str]:
        """Both lists as one, without rows that are scrolled past."""
        most = skip + room
        lines: Block = []
        starts: list[int] = []  # the first line of each row
        for head, *rows in (self._queue(most), self._dispatched(most)):
            lines += head
            for block in rows:
                starts.append(len(lines))
                lines += block
        first = min(skip, max(len(lines) - room + 2, 0))
        above = sum(start < first for start in starts)
        shown = sum(first <= start < first + room - 2 for start in starts)
        left = len(self._waiting) + len(self._active) - above - shown
        told = self._cut(f"... {above} above, {left} more", DIM)
        return ["", told, *lines[first:]]

    # -- the head ------------------------------------------------------------------------------

    def _head(self) -> Iterator[str]:
        moment = self._moment
        where = f"namespace {moment.namespace}" if moment.namespace else "all namespaces"
        clock = datetime.fromtimestamp(moment.now_us / 1e6, UTC).strftime("%H:%M:%S")
        left = f"mcad top   {moment.place}   {where}"
        right = f"{clock} UTC"
        blanks = max(self._width - len(printable(left)) - len(right), 3)
        yield self._cut(left + " " * blanks + right, BOLD)
        if moment.trouble:
            yield self._cut(moment.trouble, RED)
        for note in moment.notes:
            for line in wrap(printable(note), self._width):
                yield self._palette.paint(line, YELLOW)
        if moment.rows is not None:
            yield self._counts()

    def _counts(self) -> str:
        in_line = sum(map(is_in_line, self._waiting))
        held = len(self._waiting) - in_line
        states = Counter(row["state"] for row in self._rows if not is_waiting(row))
        told = [("in line", in_line, YELLOW), ("on hold", held, YELLOW)]
        told += [(word, states[s], color) for s, (word, color) in _STATES.items() if states[s]]
        told += [(s, count, "") for s, count in sorted(states.items()) if s not in _STATES]
        plain = ", ".join(f"{count} {word}" for word, count, _ in told)
        if len(plain) + len("AppWrappers: ") > self._width:
            return self._cut(f"AppWrappers: {plain}")
        painted = (
            self._palette.paint(f"{count} {word}", color if count else DIM)
            for word, count, color in told
        )
        return "AppWrappers: " + ", ".join(painted)

    # -- tables --------------------------------------------------------------------------------

    def _queue(self, most: int) -> list[Block]:
        """Waiting AppWrappers; without a column WHY, the first ones get a line for it."""
        in_line = sum(map(is_in_line, self._waiting))
        told = f"{in_line} in line, {len(self._waiting) - in_line} on hold"
        rows = [self._queue_row(row) for row in self._waiting[:most]]
        short = [row[:-1] for row in rows]
        widths = _widths([_QUEUE[:-1], *short])
        if self._width - sum(widths) - len(GAP) * len(widths) >= WHY_MIN:
            return self._section("Queue", told, rows, _QUEUE)
        plain = self._section("Queue", told, short, _QUEUE[:-1])
        for block, row in zip(plain[1 : WHYS_SHOWN + 1], self._waiting, strict=False):
            block.append(self._cut(f"      {row['why']}", DIM))
        return plain

    def _queue_row(self, row: Json) -> tuple[str, ...]:
        return (
            place(row),
            self._name(row),
            str(row["priority"]),
            amounts(row["demand"]),
            age(row["firstSeen"], self._moment.now_us),
            row["waitsFor"] or NONE,
            row["why"] or NONE,
        )

    def _dispatched(self, most: int) -> list[Block]:
        """Dispatched AppWrappers, the latest first."""
        latest = sorted(self._active, key=lambda row: row["firstSeen"] or "", reverse=True)
        rows = [
            (
                self._name(row),
                row["state"],
                str(row["priority"]),
                amounts(row["demand"]),
                age(row["firstSeen"], self._moment.now_us),
            )
            for row in latest[:most]
        ]
        return self._section("Dispatched", str(len(self._active)), rows, _RUNNING)

    def _name(self, row: Json) -> str:
        return row["name"] if self._moment.namespace else f"{row['namespace']}/{row['name']}"

    def _section(
        self, title: str, told: str, rows: Sequence[tuple[str, ...]], titles: tuple[str, ...]
    ) -> list[Block]:
        """The head of a section, and a block for each row."""
        head = ["", self._cut(f"{title}: {told}", BOLD)]
        if not rows:
            return [head]
        titles, cells = fitted(titles, [tuple(map(printable, row)) for row in rows], self._width)
        widths = _widths([titles, *cells])
        head.append(self._cut(_aligned(titles, widths), REVERSE))
        return [head, *([self._row(titles, row, widths)] for row in cells)]

    def _row(self, titles: tuple[str, ...], cells: tuple[str, ...], widths: list[int]) -> str:
        text = _aligned(cells, widths)
        row = dict(zip(titles, cells, strict=True))
        if "STATE" not in row or len(text) > self._width:
            return shortened(text, self._width)
        # Names are lower case, so the first match is the state.
        return text.replace(row["STATE"], self._palette.state(row["STATE"]), 1)

    def _clipped(self, blocks: list[Block], total: int, room: int) -> list[str]:
        """The blocks that fit; a last line shows how many rows are left out."""
        head, *rows = blocks
        lines = list(head)
        for shown, block in enumerate(rows):
            is_last = shown + 1 == total
            if len(lines) + len(block) + (not is_last) > room:
                lines.append(self._cut(f"... {total - shown} more", DIM))
                break
            lines += block
        return lines[:room]

    # -- width ---------------------------------------------------------------------------------

    def _cut(self, text: str, *codes: str) -> str:
        return self._palette.paint(shortened(printable(text).rstrip(), self._width), *codes)


_ENDED = ("Completed", "Failed")
_STATES = {  # of AppWrappers that do not wait, in this order
    "Running": ("running", GREEN),
    "RunningHoldCompletion": ("half completed", GREEN),
    "Completed": ("completed", ""),
    "Failed": ("failed", RED),
    "Pending": ("being created or deleted", ""),
}


def _widths(rows: Sequence[tuple[str, ...]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _aligned(cells: tuple[str, ...], widths: list[int]) -> str:
    return GAP.join(c.ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip()


def _height(blocks: list[Block]) -> int:
    return sum(map(len, blocks))


def _shares(first: int, second: int, room: int) -> tuple[int, int]:
    """The lines of each of two lists: what it needs, or half if that is too much."""
    if first + second <= room:
        return first, second
    half = room // 2
    if second <= half:
        return room - second, second
    if first <= room - half:
        return first, room - first
    return room - half, half
