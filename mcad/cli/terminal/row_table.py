"""The table of ``mcad top``: only visible rows are formatted, and of those only changes are drawn.

textual's ``DataTable`` keeps every cell of every row: filling it with 10,000 rows takes 1.5 s,
which each letter of a filter would cost again. Here an update costs 16 ms of CPU at that length, a
letter 31 ms, and most of it is the choice of the rows (``benchmarks/top_screen.py``).
"""

from __future__ import annotations

from typing import Any, ClassVar

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from mcad.cli.pages.tables import cut
from mcad.cli.terminal.columns import COLUMNS, GAP, cells, fit

Json = dict[str, Any]
Line = tuple[tuple[str, ...], bool]  # the cells, and whether the cursor is on it

_STATES = {
    "Pending": Style(color="yellow"),
    "Running": Style(color="green"),
    "RunningHoldCompletion": Style(color="green"),
    "Completed": Style(color="cyan"),
    "Failed": Style(color="red"),
}
_PLAIN, _TITLES, _CURSOR = Style(), Style(bold=True, underline=True), Style(reverse=True)


class RowTable(ScrollView, can_focus=True):
    """Rows below a line of titles, and a cursor that stays on its AppWrapper."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup,b", "page(-1)", "Page up", show=False),
        Binding("pagedown,space", "page(1)", "Page down", show=False),
        Binding("home,g", "move(-1000000000)", "First", show=False),
        Binding("end,G", "move(1000000000)", "Last", show=False),
        Binding("enter", "open", "Details", show=True),
    ]
    DEFAULT_CSS = """
    RowTable { height: 1fr; overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1; }
    """

    class Moved(Message):
        """The cursor is on another row, or its row has changed."""

    class Opened(Message):
        """Enter or a click on the row of the cursor."""

    class TitleClicked(Message):
        """A click on the title of a column."""

        def __init__(self, title: str) -> None:
            """``title`` is the column."""
            super().__init__()
            self.title = title

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[Json] = []
        self._now_us = 0
        self._with_namespace = True
        self._cursor = 0
        self._natural = {title: len(title) + 1 for title in COLUMNS}  # with the mark of the order
        self._columns: dict[str, int] = {}
        self._drawn: dict[int, Line | None] = {}
        self._sorted_by = ""

    @property
    def row(self) -> Json | None:
        """The row of the cursor, None in an empty table."""
        return self._rows[self._cursor] if self._cursor < len(self._rows) else None

    def show(
        self, rows: list[Json], now_us: int, *, with_namespace: bool = True, sorted_by: str = ""
    ) -> None:
        """Show these rows. The cursor follows its AppWrapper, except on the first line."""
        before, self._rows, self._now_us = self.row, rows, now_us
        if with_namespace != self._with_namespace:
            self._with_namespace = with_namespace
            self._natural["NAME"] = len("NAME") + 1
        if sorted_by != self._sorted_by:
            self._sorted_by, self._drawn = sorted_by, {}
            self.refresh()
        at = self._cursor
        if before is not None and at > 0:
            uid = before["uid"]
            at = next((n for n, row in enumerate(rows) if row["uid"] == uid), at)
        self.virtual_size = Size(self._width, len(rows) + 1)
        shift = at - self._cursor if self.scroll_offset.y else 0
        self._put_cursor(at, shift)

    def tick(self, now_us: int) -> None:
        """Show ages at this instant."""
        self._now_us = now_us
        self._redraw()

    # -- cursor --------------------------------------------------------------------------------

    def action_move(self, rows: int) -> None:
        """Move the cursor."""
        self._put_cursor(self._cursor + rows)

    def action_page(self, pages: int) -> None:
        """Move the cursor by pages."""
        self._put_cursor(self._cursor + pages * max(self._lines - 1, 1))

    def action_open(self) -> None:
        """Show the AppWrapper of the cursor in full."""
        if self.row is not None:
            self.post_message(self.Opened())

    def on_click(self, event: events.Click) -> None:
        """Sort by a title, put the cursor on a row, or open it if it is there."""
        if event.y == 0:
            title = self._title_at(event.x)
            if title:
                self.post_message(self.TitleClicked(title))
            return
        at = self.scroll_offset.y + event.y - 1
        if at >= len(self._rows):
            return
        if at == self._cursor:
            self.action_open()
        self._put_cursor(at)

    def _title_at(self, x: int) -> str:
        for title, width in self._columns.items():
            if x < width + GAP:
                return title
            x -= width + GAP
        return ""

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    @property
    def _lines(self) -> int:
        """How many rows are visible."""
        return max(self.size.height - 1, 1)

    def _put_cursor(self, at: int, shift: int = 0) -> None:
        """Put the cursor on a row, after ``shift`` lines of scrolling, and make it visible."""
        self._cursor = max(0, min(at, len(self._rows) - 1))
        top = self.scroll_offset.y + shift
        top = min(max(top, self._cursor - self._lines + 1), self._cursor)
        top = max(0, min(top, len(self._rows) - self._lines))
        if top != self.scroll_offset.y:
            self.scroll_to(y=top, animate=False)
        self._redraw()
        self.post_message(self.Moved())

    # -- drawing -------------------------------------------------------------------------------

    def on_resize(self) -> None:
        """Fit the columns."""
        self._columns = {}
        self.virtual_size = Size(self._width, len(self._rows) + 1)
        self._put_cursor(self._cursor)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Other rows may be wider."""
        super().watch_scroll_y(old_value, new_value)
        self._redraw()

    def _redraw(self) -> None:
        """Ask for the lines that differ from what was drawn; for all if columns get wider."""
        made = [self._cells(y) for y in range(1, self.size.height)]
        for one in made:
            for title, text in (one or {}).items():
                self._natural[title] = max(self._natural[title], len(text))
        columns = fit(self._natural, self._width)
        if columns != self._columns:
            self._columns = columns
            self._drawn = {}
            self.refresh()
            return
        for y, one in enumerate(made, start=1):
            if y in self._drawn and self._drawn[y] != self._line(y, one):
                self.refresh(Region(0, y, self._width, 1))

    def _cells(self, y: int) -> dict[str, str] | None:
        at = self.scroll_offset.y + y - 1
        if at >= len(self._rows):
            return None
        return cells(self._rows[at], self._now_us, with_namespace=self._with_namespace)

    def _line(self, y: int, made: dict[str, str] | None) -> Line | None:
        if made is None:
            return None
        is_cursor = self.scroll_offset.y + y - 1 == self._cursor
        texts = tuple(cut(title, made[title], width) for title, width in self._columns.items())
        return texts, is_cursor

    def render_line(self, y: int) -> Strip:
        """One line of what is visible; the first one has the titles."""
        width = self._width
        if y == 0:
            titles = tuple(
                f"{title[: size - 1]}*" if title == self._sorted_by else title[:size]
                for title, size in self._columns.items()
            )
            return self._strip(titles, _TITLES).adjust_cell_length(width, _TITLES)
        line = self._drawn[y] = self._line(y, self._cells(y))
        if line is None:
            return Strip.blank(width, self.rich_style)
        texts, is_cursor = line
        style = _CURSOR if is_cursor else _PLAIN
        return self._strip(texts, style).adjust_cell_length(width, style)

    def _strip(self, texts: tuple[str, ...], style: Style) -> Strip:
        segments = []
        for (title, width), text in zip(self._columns.items(), texts, strict=True):
            own = style + _STATES.get(text, _PLAIN) if title == "STATE" else style
            segments.append(Segment(set_cell_size(text, width), own))
            segments.append(Segment(" " * GAP, style))
        return Strip(segments).crop(0, self._width).apply_style(self.rich_style)
