"""The screen of ``mcad top``: keys, sizes, and what stays where it is as figures change."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from mcad.cli.terminal.app import Top
from mcad.cli.terminal.chosen_rows import GROUPS, Choice
from mcad.cli.terminal.columns import COLUMNS, GAP, fit
from mcad.cli.terminal.follower import Snapshot
from mcad.cli.terminal.pages import LivePage, Page
from mcad.cli.terminal.row_table import RowTable
from mcad.client.errors import McadError
from mcad.client.figures.source import open_figures
from mcad.client.scope import Scope, Source
from tests.cli.cluster import tutorial
from tests.cli.conftest import FakeEnvironment
from tests.cli.test_server_figures import ROW

Json = dict[str, Any]

NOW_US = 1_800_000_000_000_000
PATIENCE = 400
PAGE = Path(__file__).parents[2] / "docs" / "use" / "command-line.md"
BOOKS = ("allocatable", "used", "reserved", "free")


def waiting(number: int, name: str = "", **more: Any) -> Json:
    name = name or f"waiting-{number}"
    return ROW | {"name": name, "uid": name, "position": number, "state": "Pending"} | more


def running(name: str, **more: Any) -> Json:
    quiet = {"position": 0, "state": "Running", "waitsFor": "", "why": ""}
    return ROW | {"name": name, "uid": name} | quiet | more


def capacity(**resources: tuple[str, str, str, str]) -> Json:
    total = {
        book: {name: amounts[number] for name, amounts in resources.items()}
        for number, book in enumerate(BOOKS)
    }
    return {"nodes": [{}], "total": total, "unplaced": {}}


ROOM = capacity(cpu=("8", "4", "2", "2"), memory=("8Gi", "1Gi", "0", "7Gi"))


class Told:
    """Figures of these rows."""

    notes: tuple[str, ...] = ()
    only: str | None = None
    is_stored = False

    def __init__(self, rows: Iterable[Json], room: Json | None = ROOM) -> None:
        self._rows, self._room = list(rows), room

    async def rows(self, *, waiting_only: bool, with_starts: bool = False) -> list[Json]:
        return self._rows

    async def capacity(self) -> Json | None:
        return self._room


class Feeding:
    """A feed whose next figures are those that a test puts into ``coming``."""

    def __init__(self, *rows: Json) -> None:
        self.trouble = ""
        self.coming: list[Told | Exception] = [Told(rows)]

    async def next(self) -> Any:
        while not self.coming:
            await asyncio.sleep(0.005)
        told = self.coming.pop(0)
        if isinstance(told, Exception):
            raise told
        return told

    @asynccontextmanager
    async def follow(self) -> AsyncIterator[tuple[Any, str | None]]:
        yield self, None


class Reads:
    """Pages of one line; ``fault`` instead, if it is set."""

    fault = ""
    reads = 0

    async def describe(self, snapshot: Snapshot, namespace: str, name: str) -> list[str]:
        return self._lines(f"\x1b[32mall about\x1b[0m {namespace}/{name}")

    async def why(self, snapshot: Snapshot, namespace: str, name: str) -> list[str]:
        return self._lines(f"why {namespace}/{name}")

    def _lines(self, line: str) -> list[str]:
        self.reads += 1
        if self.fault:
            raise McadError(self.fault)
        return [line]


class Screen:
    """What is seen and typed."""

    def __init__(self, app: Top, pilot: Pilot[None], source: Feeding) -> None:
        self.app, self.pilot, self.source = app, pilot, source

    @property
    def lines(self) -> list[str]:
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def table(self) -> RowTable:
        return self.app.screen_stack[0].query_one(RowTable)

    @property
    def names(self) -> list[str]:
        """The names of the rows that are seen."""
        lines = (self.lines[self.table.region.y + y] for y in range(1, self.table.size.height))
        return [word for line in lines for word in line.split() if word.startswith("default/")]

    @property
    def at(self) -> str:
        """The name of the row of the cursor."""
        row = self.table.row
        return row["name"] if row is not None else ""

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def see(self, text: str) -> None:
        for _ in range(PATIENCE):
            if text in self.text:
                return
            await self.pilot.pause(0.01)
        raise AssertionError(f"{text!r} is not in\n{self.text}")

    async def update(self, *rows: Json) -> None:
        """Show other rows."""
        before = self.app._snapshot
        self.source.coming.append(Told(rows))
        for _ in range(PATIENCE):
            await self.pilot.pause(0.01)
            if self.app._snapshot is not before:
                await self.pilot.pause()
                return
        raise AssertionError("no figures came")


@asynccontextmanager
async def screen(
    *rows: Json, size: tuple[int, int] = (120, 30), reads: Reads | None = None
) -> AsyncIterator[Screen]:
    source = Feeding(*rows)
    app = Top(
        source.follow, lambda: NOW_US, reads or Reads(), where="current context", namespace=None
    )
    async with app.run_test(size=size) as pilot:
        seen = Screen(app, pilot, source)
        await seen.see("in line")
        await pilot.pause()
        yield seen


CROWD = [
    *(waiting(number) for number in range(1, 41)),
    waiting(0, "held", waitsFor="Suspended", why="spec.suspend is true; set it to false."),
    *(running(f"running-{number}") for number in range(3)),
    running("done", state="Completed"),
    running("broken", state="Failed"),
]


async def test_what_comes_while_the_screen_closes_draws_nothing() -> None:
    async with screen(*CROWD) as seen:
        snapshot = seen.app._snapshot
        assert snapshot is not None
    seen.app._tick()
    seen.app._take(snapshot)


async def test_it_shows_queue_capacity_and_where_the_figures_come_from() -> None:
    async with screen(*CROWD) as seen:
        assert "current context  all namespaces" in seen.lines[0]
        assert seen.lines[0].endswith("08:00:00 UTC")
        assert seen.lines[1] == "figures of the dispatcher; updated 0s ago"
        assert (
            "[####################++++++++++..........] used 4, reserved 2, free 2 of 8"
            in seen.text
        )
        assert "40 in line, 1 on hold, 3 running, 1 completed, 1 failed" in seen.text
        assert seen.names[:2] == ["default/waiting-1", "default/waiting-2"]
        assert f"default/waiting-1: {ROW['why']}" in seen.text


async def test_keys_move_the_cursor_and_scroll() -> None:
    async with screen(*CROWD, size=(100, 20)) as seen:
        assert seen.at == "waiting-1"
        for key, name in (
            ("down", "waiting-2"), ("j", "waiting-3"), ("up", "waiting-2"), ("k", "waiting-1"),
            ("up", "waiting-1"), ("end", "running-2"), ("home", "waiting-1"), ("G", "running-2"),
            ("g", "waiting-1"),
        ):  # fmt: skip
            await seen.press(key)
            assert seen.at == name, key
            assert f"default/{name}" in seen.names
        page = seen.table.size.height - 2
        for key, number in (("pagedown", 1), ("space", 2), ("b", 1), ("pageup", 0)):
            await seen.press(key)
            assert seen.at == f"waiting-{1 + page * number}", key


async def test_enter_shows_the_appwrapper_as_it_changes_and_escape_leads_back() -> None:
    reads = Reads()
    async with screen(*CROWD, reads=reads) as seen:
        await seen.press("down", "enter")
        await seen.see("all about default/waiting-2")
        assert isinstance(seen.app.screen, LivePage)
        await seen.press("slash", "s", "n", "r")  # keys of the table
        assert isinstance(seen.app.screen, LivePage)
        reads.fault = "default/waiting-2 does not exist any more"
        seen.app.screen._load()  # type: ignore[attr-defined]
        await seen.see("error: default/waiting-2 does not exist any more")
        await seen.press("escape")
        await seen.see("40 in line")
        assert seen.at == "waiting-2"


async def test_w_shows_why_it_waits_from_the_table_and_from_its_page() -> None:
    async with screen(*CROWD) as seen:
        await seen.press("w")
        await seen.see("why default/waiting-1")
        await seen.press("escape", "enter")
        await seen.see("all about default/waiting-1")
        await seen.press("w")
        await seen.see("why default/waiting-1")
        await seen.press("escape")
        await seen.see("all about default/waiting-1")


async def test_a_filter_applies_at_each_letter_and_escape_clears_it() -> None:
    async with screen(*CROWD) as seen:
        await seen.press("slash", "q", "u", "x")  # q is a letter here
        await seen.see("No AppWrappers here.")
        await seen.press("escape")
        await seen.see("default/waiting-1 ")
        await seen.press("slash", *"ING-1")
        assert seen.names == [f"default/waiting-{n}" for n in (1, *range(10, 20))] + [
            "default/running-1"
        ]
        await seen.press(*" runn")
        assert seen.names == ["default/running-1"]
        await seen.press("enter")
        assert seen.app.focused is seen.table
        assert 'containing "ING-1 runn"' in seen.text
        await seen.press("escape")
        assert len(seen.names) > 10
        assert seen.app.query_one(Input).value == ""


async def test_s_goes_through_the_groups_of_states() -> None:
    async with screen(*CROWD, size=(120, 60)) as seen:
        counts = {"not ended": 44, "waiting": 41, "on hold": 1, "dispatched": 3, "ended": 2}
        for group in [*GROUPS, "not ended"]:
            told = counts.get(group, 46)
            await seen.pilot.pause()
            assert len(seen.names) == min(told, seen.table.size.height - 1), group
            assert (f"showing {group}" in seen.text) is (group != "not ended")
            await seen.press("s")


async def test_n_keeps_the_namespace_of_the_cursor_and_lets_go_of_it() -> None:
    rows = [waiting(1), waiting(2, "other", namespace="team-a")]
    async with screen(*rows) as seen:
        await seen.press("down", "n")
        assert "namespace team-a" in seen.text
        assert seen.at == "other"
        assert "waiting-1" not in seen.text
        await seen.press("n")
        assert "default/waiting-1" in seen.text


async def test_columns_sort_by_keys_and_clicks() -> None:
    rows = [
        waiting(1, "b", priority=1, firstSeen="2027-01-15T07:00:00Z"),
        waiting(2, "c", priority=9, firstSeen="2027-01-15T06:00:00Z"),
        waiting(3, "a", priority=5, firstSeen="2027-01-15T05:00:00Z"),
    ]
    async with screen(*rows) as seen:
        assert seen.names == ["default/b", "default/c", "default/a"]
        await seen.press("greater_than_sign")
        assert seen.names == ["default/a", "default/b", "default/c"]
        assert "NAME*" in seen.text
        await seen.press("r")
        assert seen.names == ["default/c", "default/b", "default/a"]
        assert "by name, reversed" in seen.text
        await seen.press("less_than_sign")
        assert seen.names == ["default/a", "default/c", "default/b"], "it stays reversed"
        await seen.press("r")
        titles = seen.lines[seen.table.region.y]
        await seen.pilot.click(RowTable, offset=(titles.index("PRIORITY"), 0))
        assert seen.names == ["default/c", "default/a", "default/b"]
        await seen.pilot.click(RowTable, offset=(titles.index("AGE"), 0))
        assert seen.names == ["default/a", "default/c", "default/b"]


async def test_a_click_puts_the_cursor_on_a_row_and_opens_it_there() -> None:
    async with screen(*CROWD) as seen:
        await seen.pilot.click(RowTable, offset=(3, 4))
        assert seen.at == "waiting-4"
        await seen.pilot.click(RowTable, offset=(3, 4))
        await seen.see("all about default/waiting-4")


async def test_the_help_names_every_key() -> None:
    async with screen(*CROWD) as seen:
        await seen.press("question_mark")
        assert isinstance(seen.app.screen, Page)
        for key in ("Enter", "w ", "/ ", "s ", "n ", "< and >", "q, Ctrl-C", "Esc"):
            assert key in seen.text
        await seen.press("escape")
        assert "40 in line" in seen.text


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_a_key_leaves_from_the_table_and_from_a_page(key: str) -> None:
    for way in ((), ("enter",), ("question_mark",)):
        async with screen(*CROWD) as seen:
            await seen.press(*way)
            await seen.press(key)
            assert seen.app._exit
            assert seen.app.failure is None


@pytest.mark.parametrize("size", [(40, 12), (30, 8), (20, 5), (80, 24), (200, 50)])
async def test_every_size_shows_whole_columns(size: tuple[int, int]) -> None:
    async with screen(*CROWD, size=size) as seen:
        assert len(seen.lines) == size[1]
        assert max(map(len, seen.lines)) <= size[0]
        if size[1] >= 12:
            titles = seen.lines[seen.table.region.y].replace("*", "").split()
            assert titles == [one for one in COLUMNS if one in titles]
            assert {"POS", "NAME", "STATE"} <= set(titles)
            assert "Pending" in seen.text
        assert ("WHY" in seen.text) is (size[0] == 200)


async def test_a_resize_fits_the_columns_again() -> None:
    async with screen(*CROWD, size=(200, 30)) as seen:
        assert "DEMAND" in seen.text
        await seen.pilot.resize_terminal(40, 12)
        await seen.see("default/waiting-1 ")
        assert "DEMAND" not in seen.text
        await seen.pilot.resize_terminal(200, 30)
        await seen.see("DEMAND")


def test_columns_fit_or_only_the_name_is_left() -> None:
    natural = dict.fromkeys(COLUMNS, 10) | {"NAME": 40, "DEMAND": 30, "WHY": 80}
    before: set[str] = set()
    for width in range(1, 260):
        widths = fit(natural, width)
        assert sum(widths.values()) + GAP * (len(widths) - 1) <= width
        assert "NAME" in widths
        assert before <= set(widths), "a wider screen shows no less"
        before = set(widths)
    assert before == set(COLUMNS)


async def test_an_update_keeps_the_cursor_on_its_appwrapper_and_where_it_is_seen() -> None:
    async with screen(*CROWD, size=(100, 20)) as seen:
        await seen.press(*["down"] * 20)
        line = seen.names.index("default/waiting-21")
        await seen.update(*(waiting(n - 5, f"waiting-{n}") for n in range(6, 41)))
        assert seen.at == "waiting-21"
        assert seen.names.index("default/waiting-21") == line
        await seen.update(*(waiting(n) for n in range(1, 15)))  # it is gone
        assert seen.at == "waiting-14"
        assert seen.names[-1] == "default/waiting-14"
        await seen.update()
        assert (seen.at, seen.names) == ("", [])
        assert "No AppWrappers here." in seen.text
        await seen.press("enter", "w", "n", "down", "end", "r", "s")  # nothing to show
        await seen.update(*CROWD)
        assert seen.table.row is not None


async def test_at_the_head_of_the_queue_the_cursor_stays_at_the_head() -> None:
    async with screen(waiting(1), waiting(2)) as seen:
        await seen.update(waiting(1, "waiting-2"), running("waiting-1"))
        assert seen.at == "waiting-2"


async def test_only_rows_that_change_are_drawn(monkeypatch: Any) -> None:
    async with screen(*CROWD) as seen:
        drawn: list[int] = []
        draw = RowTable.render_line
        monkeypatch.setattr(
            RowTable, "render_line", lambda table, y: drawn.append(y) or draw(table, y)
        )
        await seen.update(*CROWD)
        assert drawn == []
        others = [row | {"priority": 7} if row["name"] == "waiting-3" else row for row in CROWD]
        await seen.update(*others)
        assert drawn == [3]
        await seen.press("down")
        assert sorted(drawn) == [1, 2, 3], "the cursor left a row and came to one"


async def test_a_feed_that_fails_is_told_of_until_it_works_again() -> None:
    async with screen(*CROWD) as seen:
        seen.source.trouble = "no news from the API server: 503"
        await seen.see("no news from the API server: 503")
        assert "default/waiting-1" in seen.text, "the last figures stay"
        seen.source.trouble = ""
        for _ in range(PATIENCE):
            await seen.pilot.pause(0.01)
            if "no news" not in seen.text:
                return
        raise AssertionError(seen.text)


async def test_figures_that_cannot_be_read_once_are_told_of() -> None:
    class Broken(Told):
        async def rows(self, *, waiting_only: bool, with_starts: bool = False) -> list[Json]:
            raise McadError("the dispatcher ended")

    async with screen(*CROWD) as seen:
        seen.source.coming.append(Broken(()))
        await seen.see("the dispatcher ended")
        seen.source.coming.append(Told([waiting(1, "back")]))
        await seen.see("default/back")
        assert "the dispatcher ended" not in seen.text


async def test_a_feed_that_ends_ends_the_screen_with_its_error() -> None:
    error = McadError("you may not list nodes")
    async with screen(*CROWD) as seen:
        seen.source.coming.append(error)
        for _ in range(PATIENCE):
            await seen.pilot.pause(0.01)
            if seen.app._exit:
                break
        assert seen.app.failure is error


async def test_that_figures_are_stored_ones_is_told() -> None:
    stored = Told(CROWD)
    stored.is_stored = True
    async with screen(*CROWD) as seen:
        await seen.see("figures of the dispatcher; updated")
        seen.source.coming.append(stored)
        await seen.see("figures stored; updated")


async def test_notes_and_an_unknown_capacity_are_shown() -> None:
    async with screen(*CROWD) as seen:
        figures = Told([waiting(1)], None)
        figures.notes = ("no dispatcher is running: nothing is dispatched until one is started",)
        seen.source.coming.append(figures)
        await seen.see("no dispatcher is running")
        assert "The capacity is not known." in seen.text


async def test_names_cannot_control_the_terminal() -> None:
    evil = waiting(
        1, "\x1b]0;title\x07[red]x[/red]", why="\x1b[2J 日本語 \n two lines", namespace="a\tb"
    )
    wide = waiting(2, "名前" * 30, why=None)
    async with screen(evil, wide, size=(80, 20)) as seen:
        assert "\x1b" not in seen.text
        assert "[red]x[/red]" in seen.text, "no markup is read"
        await seen.press("down", "slash", "[", "b")
        assert seen.at == ""


def test_queue_order_has_the_queue_first_and_then_the_latest() -> None:
    rows = [
        waiting(1, "first"),
        running("ended", state="Completed", firstSeen="2027-01-15T09:00:00Z"),
        running("old", firstSeen="2027-01-15T07:00:00Z"),
        running("late", firstSeen="2027-01-15T08:00:00Z"),
    ]
    shown = [row["name"] for row in Choice(group="all").rows(rows)]
    assert shown == ["first", "late", "old", "ended"]
    for title in COLUMNS:
        for is_reversed in (False, True):
            chosen = Choice(group="all", by=title, is_reversed=is_reversed).rows(
                [
                    *rows,
                    waiting(0, "odd", position=None, demand=None, firstSeen=None, waitsFor=None),
                ]
            )
            assert len(chosen) == 5


async def test_the_documentation_shows_this_screen() -> None:
    """Of the tutorial; its ages and the time are those of a stopped clock."""
    world = FakeEnvironment(tutorial())
    async with open_figures(world, Source(), Scope(all_namespaces=True)) as (figures, _):
        rows, room = await figures.rows(waiting_only=False), await figures.capacity()
    async with screen(size=(117, 12)) as seen:
        seen.source.coming.append(Told(rows, room))
        await seen.see("100m missing")  # The line of the selected row is drawn last.
        shown = "\n".join(seen.lines)
    (block,) = re.findall(
        r"^```text\n(mcad top .*?)\n```$", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    assert shown == block
