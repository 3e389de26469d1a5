"""``--watch``: prints a row again below the others when it has changed, like kubectl.

A row is printed a last time when its AppWrapper leaves the selection: with its new state, or with
``Deleted``.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from mcad.cli.arguments.options import Output
from mcad.cli.errors import warn
from mcad.cli.pages import rows as columns
from mcad.cli.pages.tables import Columns, echo, echo_structured
from mcad.client.figures.row import is_in_line
from mcad.core.state.reasons import State

Json = dict[str, Any]
T = TypeVar("T")

PLACES_REPORTED = 10  # a dispatch changes all positions; those further back are not printed
DELETED = "Deleted"


class Notes:
    """Warnings beside the rows, each once."""

    def __init__(self) -> None:
        """No warning is printed yet."""
        self._trouble = ""
        self._noted: tuple[str, ...] = ()

    def mention(self, trouble: str) -> None:
        """Warn each time the rows begin to be outdated."""
        if trouble and not self._trouble:
            warn(f"{trouble}; the rows may be outdated until this works again")
        self._trouble = trouble

    def note(self, notes: tuple[str, ...]) -> None:
        """Print warnings about all rows that are new."""
        for text in notes:
            if text not in self._noted:
                warn(text)
        self._noted = notes


class Printer(Notes):
    """Prints the differences between successive sets of rows."""

    def __init__(
        self,
        output: Output,
        now_us: Callable[[], int],
        *,
        namespaces: bool,
        places_reported: float = PLACES_REPORTED,
    ) -> None:
        """Changes of the position alone are printed for the first ``places_reported``."""
        super().__init__()
        self._output = output
        self._now_us = now_us
        self._namespaces = namespaces
        self._places_reported = places_reported
        self._printed: dict[str, Json] = {}  # uid -> the row that was printed last
        titles = columns.titles(output, namespaces=namespaces)
        self._columns = Columns(titles, output.palette)
        self._headers = not output.no_headers

    def show(self, shown: list[Json], others: Iterable[Json] = ()) -> None:
        """Print changed rows of ``shown``; a row that left is printed as in ``others``."""
        news = [row for row in shown if self._is_news(row)]
        present = {row["uid"] for row in shown}
        left = {uid: row for uid, row in self._printed.items() if uid not in present}
        moved = {row["uid"]: row for row in others if row["uid"] in left}
        for uid, row in left.items():
            last = moved.get(uid, _deleted(row))
            if last["state"] != State.PENDING:  # objects are being created: wait for the outcome
                news.append(last)
                del self._printed[uid]
        self._printed |= {row["uid"]: row for row in news if row["uid"] in present}
        if news:
            self._print(news)

    def _is_news(self, row: Json) -> bool:
        before = self._printed.get(row["uid"])
        if before is None:
            return True
        near = (row["position"] or 0) <= self._places_reported
        return _facts(before, place=near) != _facts(row, place=near)

    def _print(self, news: list[Json]) -> None:
        match self._output.form:
            case "json":
                for row in news:
                    echo_structured(row, "json")
            case "yaml":
                for row in news:
                    echo(["---"])
                    echo_structured(row, "yaml")
            case "name":
                echo(map(columns.reference, news))
            case _:
                now = self._now_us()
                cells = [
                    columns.cells(row, self._output, now, namespaces=self._namespaces)
                    for row in news
                ]
                echo(self._columns.lines(cells, headers=self._headers))
                self._headers = False


def _facts(row: Json, *, place: bool) -> Json:
    """The part of a row that is compared; figures that follow the free capacity are not."""
    kept = row | {"position": row["position"] if place else is_in_line(row)}
    return {key: value for key, value in kept.items() if key not in ("headOfLine", "why", "starts")}


def _deleted(row: Json) -> Json:
    return row | {"state": DELETED, "position": 0, "waitsFor": "", "why": ""}


async def until_reader_leaves(work: Coroutine[Any, Any, T]) -> T:
    """The outcome of a coroutine; raises BrokenPipeError when the reader of stdout, a pipe, leaves.

    A write would fail as well, but in a quiet cluster there may be none for hours.
    """
    task = asyncio.ensure_future(work)
    pipe, loop = _stdout_pipe(), asyncio.get_running_loop()
    left = False

    def leave() -> None:
        nonlocal left
        left = True
        loop.remove_reader(sys.stdout.fileno())  # or it calls again during cleanup
        task.cancel()

    if pipe is not None:
        loop.add_reader(pipe, leave)  # the writing end becomes readable only by an error
    try:
        return await task
    except asyncio.CancelledError:
        if left:
            raise BrokenPipeError from None
        raise
    finally:
        if pipe is not None:
            loop.remove_reader(pipe)


def _stdout_pipe() -> int | None:
    try:
        number = sys.stdout.fileno()
        return number if stat.S_ISFIFO(os.fstat(number).st_mode) else None
    except (OSError, ValueError):  # no stdout, or not a file
        return None
