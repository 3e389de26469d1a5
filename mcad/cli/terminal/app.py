"""The screen of ``mcad top``."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, ClassVar, Protocol

from msgspec.structs import replace
from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer, Input, Static

from mcad.cli.pages.colours import printable
from mcad.cli.pages.state_counts import state_counts
from mcad.cli.terminal.capacity_bars import capacity_bars
from mcad.cli.terminal.chosen_rows import Choice
from mcad.cli.terminal.follower import Follow, Follower, Snapshot
from mcad.cli.terminal.head import state_of_figures, title
from mcad.cli.terminal.pages import HELP, Lines, LivePage, Page
from mcad.cli.terminal.row_table import RowTable
from mcad.client.figures.row import within

Json = dict[str, Any]

TICK_S = 1.0  # ages change every second
LEAST_LINES = 8  # of a screen without bars
BARS_MAX = 8
ONE_LINE = ("title", "counts", "reason")
OF_THE_TABLE = ("filter", "states", "namespace", "sort", "reverse", "clear_filter", "help")
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class Reads(Protocol):
    """What pages about one AppWrapper are made of; each runs on the loop of the figures."""

    async def describe(self, snapshot: Snapshot, namespace: str, name: str) -> Lines:
        """The page of ``mcad describe``."""
        ...

    async def why(self, snapshot: Snapshot, namespace: str, name: str) -> Lines:
        """The page of ``mcad why``."""
        ...


class Top(App[None]):
    """Queue and capacity. ``failure`` is what ended it, None if the user left."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head, #bars, #counts, #reason { height: auto; width: 100%; }
    #head { max-height: 4; }
    #title, #counts, #reason { height: 1; }
    #filter { display: none; border: none; height: 1; padding: 0; }
    #filter.-typing { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", "Quit", show=False, priority=True),
        Binding("question_mark", "help", "Help"),
        Binding("slash", "filter", "Filter"),
        Binding("w", "why", "Why"),
        Binding("s", "states", "States"),
        Binding("n", "namespace", "Namespace"),
        Binding("less_than_sign", "sort(-1)", "Sort", key_display="<"),
        Binding("greater_than_sign", "sort(1)", "Sort", key_display=">"),
        Binding("r", "reverse", "Reverse"),
        Binding("escape", "clear_filter", "Clear", show=False),
        Binding("ctrl+z", "suspend_process", "Suspend", show=False, priority=True),
    ]

    def __init__(
        self,
        follow: Follow,
        now_us: Callable[[], int],
        reads: Reads,
        *,
        where: str,
        namespace: str | None,
    ) -> None:
        """``follow`` opens the figures; ``where`` and ``namespace`` say of what they are."""
        super().__init__(ansi_color=True)  # those of the terminal, so it is light where that is
        self.theme = "ansi-dark"
        self.animation_level = "none"
        self.failure: BaseException | None = None
        self.printed: list[str] = []
        self._now_us, self._reads, self._where = now_us, reads, where
        self._asked_namespace = namespace
        self._choice = Choice()
        self._snapshot: Snapshot | None = None
        self._trouble = ""
        self._is_composed = False
        self._texts: dict[str, Text] = {}
        self.follower = Follower(
            follow,
            now_us,
            on_snapshot=partial(self._pass, self._take),
            on_trouble=partial(self._pass, self._take_trouble),
            on_end=partial(self._pass, self._end),
        )

    def compose(self) -> ComposeResult:
        """The lines above the table, the table, and those below."""
        yield Static(id="title", markup=False)
        yield Static(id="head", markup=False)
        yield Static(id="bars", markup=False)
        yield Static(id="counts", markup=False)
        yield RowTable()
        yield Static(id="reason", markup=False)
        yield Input(id="filter", placeholder="words that each row contains", compact=True)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Begin to follow."""
        self._is_composed = True
        self.begin_capture_print(self)
        self._table.focus()
        self._listen_to_signals()
        self.app_resume_signal.subscribe(self, self._draw_all)
        self.set_interval(TICK_S, self._tick)
        self._draw_head()
        self.follower.start()

    def on_unmount(self) -> None:
        """Stop following."""
        self.follower.stop()

    def on_print(self, event: events.Print) -> None:
        """Keep what is printed, for after the end: it is the same terminal."""
        text: str | bytes = event.text  # click takes the stream for one of bytes
        self.printed.append(text if isinstance(text, str) else text.decode(errors="replace"))

    def on_resize(self) -> None:
        """Fit the lines above the table."""
        self._draw_head()

    def _listen_to_signals(self) -> None:
        if not self.is_headless:
            for number in SIGNALS:
                asyncio.get_running_loop().add_signal_handler(number, self.exit)

    # -- figures -------------------------------------------------------------------------------

    def _pass(self, take: Callable[[Any], None], value: Any) -> None:
        """Hand over to the loop of the screen, from the thread of the figures."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.call_later, take, value)

    def _take(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._draw()

    def _take_trouble(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            self._draw_head()

    def _end(self, error: BaseException) -> None:
        self.failure = error
        self.exit()

    # -- drawing -------------------------------------------------------------------------------

    @property
    def _table(self) -> RowTable:
        return self.screen_stack[0].query_one(RowTable)

    @property
    def _namespace(self) -> str | None:
        """The only namespace that the figures have, None for all."""
        return self._snapshot.namespace if self._snapshot is not None else self._asked_namespace

    def _tick(self) -> None:
        if self.is_running:  # at the end the widgets go before the timer does
            self._draw_head()
            self._table.tick(self._now_us())

    def _draw(self) -> None:
        self._draw_head()
        if self._snapshot is None or not self.is_running:
            return
        choice = self._choice
        only = choice.namespace or self._namespace
        rows = replace(choice, namespace=only).rows(self._snapshot.rows)
        self._table.show(
            rows, self._now_us(), with_namespace=only is None, sorted_by=self._choice.by
        )
        told = Text(state_counts(within(self._snapshot.rows, self._namespace)))
        if differs := str(self._choice):
            told = Text.assemble((printable(differs), "bold"), " | ", told)
        self._put("counts", told)

    def _draw_head(self) -> None:
        if not (self._is_composed and self.is_running):
            return
        width, height = self.size
        now_us = self._now_us()
        self._put("title", title(self._where, self._namespace, now_us, width))
        self._put("head", state_of_figures(self._trouble, self._snapshot, now_us))
        if self._snapshot is None:
            return
        most = max(0, min((height - LEAST_LINES) // 2, BARS_MAX))
        self._put("bars", capacity_bars(self._snapshot.capacity, width, most))

    def _draw_all(self, _: App[Any]) -> None:
        """Draw the whole screen, which a suspension has cleared."""
        self.call_later(self.screen.refresh, layout=True)

    def _put(self, name: str, text: Text) -> None:
        """Change a text, if it is another one; all is laid out again only if its size changes."""
        shown = self._texts.get(name)
        if shown == text:
            return
        self._texts[name] = text
        found = self.screen_stack[0].query_one(f"#{name}", Static)
        text.no_wrap, text.overflow = name != "head", "ellipsis"
        is_other_size = shown is None or _size(shown) != _size(text)
        found.update(text, layout=is_other_size and name not in ONE_LINE)
        found.display = bool(text.plain) or name in ONE_LINE

    def on_row_table_moved(self) -> None:
        """Show the reason of the row at the cursor."""
        row = self._table.row
        name = f"{row['namespace']}/{row['name']}: " if row is not None else ""
        told = row["why"] or row["state"] if row is not None else "No AppWrappers here."
        self._put("reason", Text(printable(f"{name}{told}"), "italic"))

    # -- keys ----------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether a key works: those of the table do not while a page covers it."""
        if len(self.screen_stack) > 1 and action in OF_THE_TABLE:
            return False
        return super().check_action(action, parameters)

    def _choose(self, choice: Choice) -> None:
        self._choice = choice
        self._draw()

    def action_states(self) -> None:
        """Show the next group of states."""
        self._choose(self._choice.next_group())

    def action_namespace(self) -> None:
        """Show the namespace of the cursor only, or all again."""
        row = self._table.row
        chosen = None if self._choice.namespace or row is None else row["namespace"]
        self._choose(replace(self._choice, namespace=chosen))

    def action_sort(self, step: int) -> None:
        """Sort by another column."""
        self._choose(self._choice.sorted_beside(step))

    def action_reverse(self) -> None:
        """Sort the other way round."""
        self._choose(self._choice.sorted_by(self._choice.by))

    def on_row_table_title_clicked(self, event: RowTable.TitleClicked) -> None:
        """Sort by the column of the title."""
        self._choose(self._choice.sorted_by(event.title))

    def action_filter(self) -> None:
        """Type words that rows must contain."""
        typed = self.query_one(Input)
        typed.add_class("-typing")
        typed.focus()

    def action_clear_filter(self) -> None:
        """Show rows with any words."""
        self.query_one(Input).value = ""
        self._leave_filter()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter at each letter."""
        self._choose(replace(self._choice, words=event.value.strip()))

    def on_input_submitted(self) -> None:
        """Keep the filter."""
        self._leave_filter()

    def _leave_filter(self) -> None:
        self.query_one(Input).remove_class("-typing")
        self._table.focus()

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(Page(Text(HELP)))

    def on_row_table_opened(self) -> None:
        """Show the AppWrapper of the cursor in full, as it changes."""
        row = self._table.row
        if row is not None and self._snapshot is not None:
            name = f"{row['namespace']}/{row['name']}"
            read = partial(self._describe, row["namespace"], row["name"])
            self.push_screen(LivePage(name, read, again=True))

    def _describe(self, namespace: str, name: str) -> Awaitable[Lines]:
        assert self._snapshot is not None  # noqa: S101 - a row is of a snapshot
        told = self._reads.describe(self._snapshot, namespace, name)
        return asyncio.wrap_future(self.follower.submit(told))

    def action_why(self) -> None:
        """Show what keeps the AppWrapper of the cursor, and what would start it."""
        row = self._table.row
        if row is not None:
            read = partial(self._explain, row["namespace"], row["name"])
            title = f"why {row['namespace']}/{row['name']} waits"
            self.push_screen(LivePage(title, read, again=False))

    def _explain(self, namespace: str, name: str) -> Awaitable[Lines]:
        assert self._snapshot is not None  # noqa: S101 - a row is of a snapshot
        told = self._reads.why(self._snapshot, namespace, name)
        return asyncio.wrap_future(self.follower.submit(told))


def _size(text: Text) -> list[int]:
    return list(map(len, text.plain.split("\n")))
