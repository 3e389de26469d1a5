"""Pages that cover the screen of ``mcad top``: one AppWrapper in full, and the help."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static

from mcad.client.errors import McadError

RELOAD_S = 2.0

Lines = Iterable[str]

HELP = """\
Arrows, PgUp, PgDn, Home, End   move the cursor (also k j b Space g G)
Enter                           the AppWrapper in full, as `mcad describe`
w                               why it waits and what would start it, as `mcad why`
/                               filter as you type; Enter keeps it, Esc clears it
s                               which states: not ended, waiting, on hold, dispatched, ended, all
n                               only the namespace of the cursor; again: all
< and >                         sort by the column to the left or right; r reverses
                                (or click on a title; * marks the column)
?                               this page
Esc                             back
q, Ctrl-C                       leave

Bars: # used by bound pods, + reserved for dispatched AppWrappers, . free.
Columns that do not fit are left out; the reason of the AppWrapper at the
cursor is below the table."""


class Page(Screen[None]):
    """Text that scrolls; Esc goes back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,backspace", "dismiss", "Back"),
        Binding("down,j", "scroll(1)", "Down", show=False),
        Binding("up,k", "scroll(-1)", "Up", show=False),
    ]
    DEFAULT_CSS = """
    Page VerticalScroll { scrollbar-size-vertical: 1; }
    Page Static { width: 100%; height: auto; }
    """

    def __init__(self, text: Text) -> None:
        """``text`` is what is shown first."""
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """The text above the keys."""
        with VerticalScroll():
            yield Static(self._text)
        yield Footer(compact=True, show_command_palette=False)

    def action_scroll(self, lines: int) -> None:
        """Scroll by lines."""
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def put(self, text: Text) -> None:
        """Show another text at the same place."""
        if text != self._text:
            self._text = text
            self.query_one(Static).update(text)


class LivePage(Page):
    """Lines that are read when the page opens, and again while it is open if ``again``."""

    def __init__(self, title: str, read: Callable[[], Awaitable[Lines]], *, again: bool) -> None:
        """``read`` returns the lines, with SGR codes."""
        super().__init__(Text(f"reading {title}..."))
        self._read, self._again = read, again

    def on_mount(self) -> None:
        """Read the lines."""
        self._load()
        if self._again:
            self.set_interval(RELOAD_S, self._load)

    @work(exclusive=True)
    async def _load(self) -> None:
        try:
            text = Text.from_ansi("\n".join(await self._read()))
        except McadError as error:
            text = Text(f"error: {error.message}", "red")
        self.put(text)
