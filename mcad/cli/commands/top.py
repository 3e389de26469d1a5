"""``mcad top``: shows queue and capacity live on the whole terminal, or once."""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from urllib.parse import urlsplit

import click

from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.options import Output, color_option, scope_options, source_options
from mcad.cli.commands.capacity import TITLES, total_rows
from mcad.cli.extras import extras_named
from mcad.cli.pages import rows as columns
from mcad.cli.pages.colours import Palette, palette
from mcad.cli.pages.state_counts import state_counts
from mcad.cli.pages.tables import NONE, echo, table
from mcad.cli.terminal.chosen_rows import Choice
from mcad.client.figures.figures import warn_of_notes
from mcad.client.figures.row import within
from mcad.client.figures.source import follow_figures, open_figures
from mcad.client.scope import Scope, Source


@click.command()
@click.option("--once", is_flag=True, help="Print once, and end.")
@source_options
@scope_options
@color_option
def top(once: bool, source: Source, scope: Scope, color: str) -> None:  # noqa: FBT001 - click passes it by name
    """Show queue and capacity live on the whole terminal.

    It shows the queue with reasons, dispatched AppWrappers and capacity, in all namespaces or in
    that of -n. Enter shows the AppWrapper at the cursor in full, / filters, < and > sort, ? lists
    all keys, q or Ctrl-C leaves. Without a terminal, and with --once, capacity and queue are
    printed once; `mcad queue --watch` prints rows as they change.
    """
    if scope.namespace and scope.all_namespaces:
        raise click.UsageError("give either -n or -A")
    may_narrow = not scope.all_namespaces  # -A asks for all, without a fallback
    scope = Scope(scope.namespace, all_namespaces=not scope.namespace)
    if once or not _has_terminal():
        asyncio.run(_print_once(source, scope, palette(color), may_narrow=may_narrow))
    else:
        _show(source, scope, palette(color), may_narrow=may_narrow)


def _has_terminal() -> bool:
    """Whether keys, screen and errors are those of a terminal that can be drawn on."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    is_dumb = os.environ.get("TERM") == "dumb"
    return not is_dumb and all(one is not None and one.isatty() for one in streams)


async def _print_once(source: Source, scope: Scope, colours: Palette, *, may_narrow: bool) -> None:
    world = environment()
    async with open_figures(world, source, scope, may_narrow=may_narrow) as (figures, namespace):
        rows = within(await figures.rows(waiting_only=False), figures.only or namespace)
        capacity = await figures.capacity()
    warn_of_notes(figures)
    echo([f"AppWrappers: {state_counts(rows)}", ""])
    if capacity is None:
        echo(["Capacity is not known.", ""])
    else:
        echo([*table(TITLES, total_rows(capacity), palette=colours), ""])
    now_us, is_one = world.clock.now_us(), namespace is not None
    lines = [
        (*columns.cells(row, Output(), now_us, namespaces=not is_one), row["why"] or NONE)
        for row in Choice().rows(rows)
    ]
    titles = (*columns.titles(Output(), namespaces=not is_one), "WHY")
    echo(table(titles, lines, palette=colours) if lines else [])


def _show(source: Source, scope: Scope, colours: Palette, *, may_narrow: bool) -> None:
    """Show it until the user leaves or the figures fail; warnings are printed afterwards."""
    with extras_named("top"):
        from mcad.cli.terminal.app import Top  # noqa: PLC0415 - an extra, and slow to import
        from mcad.cli.terminal.reads import ClusterReads  # noqa: PLC0415
    world = environment()
    os.environ.pop("NO_COLOR", None)
    if not colours.enabled:
        os.environ["NO_COLOR"] = "1"  # the variable that textual reads
    app = Top(
        partial(follow_figures, world, source, scope, may_narrow=may_narrow),
        world.clock.now_us,
        ClusterReads(world, source),
        where=_place(source),
        namespace=scope.namespace,
    )
    app.run()
    click.echo("".join(app.printed), err=True, nl=False)
    if app.failure is not None:
        raise app.failure


def _place(source: Source) -> str:
    """The source of the figures, for the title."""
    if source.server:
        return f"dispatcher {urlsplit(source.server).netloc or source.server}"
    return f"context {source.context}" if source.context else "current context"
