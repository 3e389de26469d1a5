"""``mcad queue`` and ``mcad get``: AppWrappers as rows."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from mcad.api.labels import GROUP
from mcad.cli.complete import complete_appwrappers
from mcad.cli.errors import NotFoundError
from mcad.cli.figures import Source, look, source_options
from mcad.cli.options import Output, Scope, output_options, scope_options
from mcad.cli.session import environment
from mcad.cli.tables import NONE, age, amounts, echo, echo_structured, table

Json = dict[str, Any]

TITLES = ("NAME", "POSITION", "STATE", "PRIORITY", "DEMAND", "WAITS-FOR", "AGE")
WIDE_TITLES = ("ATTEMPT", "UID", "FIRST-SEEN", "WHY")


@click.command()
@source_options
@scope_options
@output_options("json", "yaml", "wide", "name")
def queue(source: Source, scope: Scope, output: Output) -> None:
    """Who waits, in which order, and for what.

    Positions count in the whole cluster, whichever namespaces are shown. An AppWrapper without a
    position is kept out of the line by something other than capacity. AGE is the time since the
    dispatcher first saw it.
    """
    rows, namespace = asyncio.run(_rows(source, scope, waiting_only=True))
    shown = _within(rows, namespace)
    if not shown:
        elsewhere = f" ({len(rows)} in others: -A shows them)" if rows else ""
        click.echo(f"Nobody waits{_where(namespace)}{elsewhere}.", err=True)
    _print(shown, output, namespaces=scope.all_namespaces)


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_appwrappers)
@source_options
@scope_options
@output_options("json", "yaml", "wide", "name")
def get(names: tuple[str, ...], source: Source, scope: Scope, output: Output) -> None:
    """All AppWrappers with their state and place in line.

    With names, only those. The rows are the dispatcher's figures; `kubectl get appwrapper NAME -o
    yaml` has the manifest.
    """
    if names and scope.all_namespaces:
        raise click.UsageError("a name belongs to one namespace: use -n instead of -A")
    rows, namespace = asyncio.run(_rows(source, scope, waiting_only=False))
    shown = _within(rows, namespace)
    if names:
        shown = [_named(shown, name, namespace) for name in names]
    elif not shown:
        click.echo(f"No AppWrappers found{_where(namespace)}.", err=True)
    _print(shown, output, namespaces=scope.all_namespaces)


async def _rows(
    source: Source, scope: Scope, *, waiting_only: bool
) -> tuple[list[Json], str | None]:
    """The rows of all namespaces, and the namespace that is meant (None: all)."""
    async with look(environment(), source, scope) as (figures, namespace):
        return await figures.rows(waiting_only=waiting_only), namespace


def _within(rows: list[Json], namespace: str | None) -> list[Json]:
    return [row for row in rows if namespace in (None, row["namespace"])]


def _where(namespace: str | None) -> str:
    return f" in namespace {namespace}" if namespace else ""


def _named(rows: list[Json], name: str, namespace: str | None) -> Json:
    for row in rows:
        if row["name"] == name:
            return row
    raise NotFoundError(
        f'no AppWrapper "{name}"{_where(namespace)} that this dispatcher manages; see `mcad get -A`'
    )


def _print(rows: list[Json], output: Output, *, namespaces: bool) -> None:
    match output.form:
        case "json" | "yaml":
            echo_structured({"items": rows}, output.form)
        case "name":
            echo(f"appwrapper.{GROUP}/{row['name']}" for row in rows)
        case _ if rows:
            wide, now = output.form == "wide", environment().clock.now_us()
            titles = ("NAMESPACE",) * namespaces + TITLES + WIDE_TITLES * wide
            lines = [_cells(row, now, namespaces=namespaces, wide=wide) for row in rows]
            echo(table(titles, lines, headers=not output.no_headers))


def _cells(row: Json, now_us: int, *, namespaces: bool, wide: bool) -> tuple[str, ...]:
    cells = (
        row["name"],
        str(row["position"] or NONE),
        row["state"],
        str(row["priority"]),
        amounts(row["demand"]),
        row["waitsFor"] or NONE,
        age(row["firstSeen"], now_us),
    )
    more = (str(row["attempt"]), row["uid"], row["firstSeen"] or NONE, row["why"] or NONE)
    return (row["namespace"],) * namespaces + cells + more * wide
