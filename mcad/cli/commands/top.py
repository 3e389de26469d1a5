"""``mcad top``: shows queue and capacity live on the whole terminal."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from contextlib import redirect_stderr, suppress
from io import StringIO
from urllib.parse import urlsplit

import click
from msgspec.structs import replace

from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.options import color_option, scope_options, source_options
from mcad.cli.live.screen import full_screen, size
from mcad.cli.pages.colours import Palette, palette
from mcad.cli.pages.tables import echo
from mcad.cli.pages.top import Moment, frame
from mcad.client.errors import McadError
from mcad.client.figures.figures import Feed, Figures, warn_of_notes
from mcad.client.figures.source import follow_figures, open_figures
from mcad.client.scope import Scope, Source
from mcad.client.session import Environment

TICK_S = 1.0  # ages change every second
PAGE_ROWS = 10  # of PgDn, less than a screen
PAGE_LINES = 10_000  # without a terminal all lines are printed


@click.command()
@click.option("--once", is_flag=True, help="Print once, and end.")
@source_options
@scope_options
@color_option
def top(once: bool, source: Source, scope: Scope, color: str) -> None:  # noqa: FBT001 - click passes it by name
    """Show queue and capacity live on the whole terminal.

    It shows the queue with reasons, running AppWrappers and free capacity, in all namespaces or in
    that of -n. Arrow keys, PgUp, PgDn and Home scroll; q or Ctrl-C leaves. Without a
    terminal it is printed once. Bars: # used by bound pods, + reserved for dispatched AppWrappers,
    . free.
    """
    if scope.namespace and scope.all_namespaces:
        raise click.UsageError("give either -n or -A")
    may_narrow = not scope.all_namespaces  # -A asks for all, without a fallback
    scope = Scope(scope.namespace, all_namespaces=not scope.namespace)
    if once or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        asyncio.run(_print_once(source, scope, palette(color), may_narrow=may_narrow))
    else:
        with suppress(KeyboardInterrupt):  # before the screen takes the signal
            live = _Top(environment(), source, scope, palette(color), may_narrow=may_narrow)
            asyncio.run(live.run())


async def _print_once(source: Source, scope: Scope, colours: Palette, *, may_narrow: bool) -> None:
    world = environment()
    async with open_figures(world, source, scope, may_narrow=may_narrow) as (figures, namespace):
        moment = await _moment(world, source, namespace, figures)
    warn_of_notes(figures)
    moment = replace(moment, notes=())
    # A pipe has no width: COLUMNS, or else a wide line that shows reasons in full.
    columns = size()[0] if sys.stdout.isatty() else shutil.get_terminal_size((200, 0)).columns
    echo(frame(moment, columns, PAGE_LINES, colours))


async def _moment(
    world: Environment, source: Source, namespace: str | None, figures: Figures
) -> Moment:
    rows = await figures.rows(waiting_only=False)
    capacity = await figures.capacity()
    now_us, place = world.clock.now_us(), _place(source)
    return Moment(now_us, place, rows, capacity, namespace, notes=figures.notes)


def _place(source: Source) -> str:
    """The source of the figures, for the title."""
    if source.server:
        return f"dispatcher {urlsplit(source.server).netloc or source.server}"
    return f"context {source.context}" if source.context else "current context"


_MOVES = {
    **dict.fromkeys((b"\x1b[A", b"\x1bOA", b"k"), -1),
    **dict.fromkeys((b"\x1b[B", b"\x1bOB", b"j"), 1),
    **dict.fromkeys((b"\x1b[5~", b"b"), -PAGE_ROWS),
    **dict.fromkeys((b"\x1b[6~", b" "), PAGE_ROWS),
    **dict.fromkeys((b"\x1b[H", b"\x1bOH", b"\x1b[1~", b"g"), -sys.maxsize),
}
"""Rows that a key scrolls by: arrows, PgUp, PgDn, Home, and their keys in pagers."""


class _Top:
    """One task follows the figures and sets an event, on which the other one draws."""

    def __init__(
        self,
        world: Environment,
        source: Source,
        scope: Scope,
        colours: Palette,
        *,
        may_narrow: bool,
    ) -> None:
        self._world = world
        self._source = source
        self._scope = scope
        self._colours = colours
        self._dirty = asyncio.Event()
        self._may_narrow = may_narrow
        self._leaving = False
        self._skip = 0
        self._feed: Feed | None = None
        self._failure = ""
        self._latest = Moment(world.clock.now_us(), _place(source), namespace=scope.namespace)

    async def run(self) -> None:
        """Run until the user leaves or the figures fail; warnings are printed afterwards."""
        warnings = StringIO()
        try:
            with redirect_stderr(warnings):  # it is the same terminal
                await self._run()
        finally:
            click.echo(warnings.getvalue(), err=True, nl=False)

    async def _run(self) -> None:
        following = asyncio.ensure_future(self._follow())
        following.add_done_callback(lambda _: self._dirty.set())
        try:
            with full_screen(self._dirty.set, self._leave, self._press) as screen:
                while not self._leaving and not following.done():
                    self._dirty.clear()
                    screen.draw(frame(self._now(), *size(), self._colours))
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._dirty.wait(), TICK_S)
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following  # raises its failure after the terminal is restored

    def _leave(self) -> None:
        self._leaving = True
        self._dirty.set()

    def _press(self, key: bytes) -> None:
        rows = len(self._latest.rows or ())
        self._skip = min(max(self._skip + _MOVES.get(key, 0), 0), max(rows - 1, 0))
        self._dirty.set()

    async def _follow(self) -> None:
        following = follow_figures(
            self._world, self._source, self._scope, may_narrow=self._may_narrow
        )
        async with following as (feed, namespace):
            self._feed = feed
            while True:
                figures = await feed.next()
                await self._update(figures, figures.only or namespace)
                self._dirty.set()

    async def _update(self, figures: Figures, namespace: str | None) -> None:
        try:
            self._latest = await _moment(self._world, self._source, namespace, figures)
            self._failure = ""
        except McadError as error:  # the dispatcher ended between the two requests
            self._failure = error.message

    def _now(self) -> Moment:
        """The latest figures with the present time, and why they may be outdated."""
        trouble = self._feed.trouble if self._feed is not None else ""
        now_us = self._world.clock.now_us()
        trouble = trouble or self._failure
        return replace(self._latest, now_us=now_us, trouble=trouble, skip=self._skip)
