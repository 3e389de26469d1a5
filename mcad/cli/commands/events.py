"""``mcad events``: the Events of an AppWrapper, of its items and of its pods, oldest first."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from mcad.api.wire import as_int, as_text
from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.global_options import namespace_option
from mcad.cli.arguments.one_appwrapper import one_option, read_one
from mcad.cli.arguments.options import Output, output_options, target_options
from mcad.cli.errors import INTERRUPTED
from mcad.cli.live.event_follower import follow
from mcad.cli.live.watch_printer import until_reader_leaves
from mcad.cli.pages.output_forms import echo_form
from mcad.cli.pages.tables import Columns, age, echo
from mcad.client.appwrappers.latest_events import all_events, event_time, subject_of
from mcad.client.appwrappers.owned_objects import owned_objects
from mcad.client.errors import one_line
from mcad.client.scope import Target

Json = dict[str, Any]

TITLES = ("LAST-SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")


@click.command()
@one_option
@click.option("-w", "--watch", is_flag=True, help="Print further ones as they come, until Ctrl-C.")
@namespace_option
@target_options
@output_options("json", "yaml")
def events(
    *, name: str, watch: bool, namespace: str | None, target: Target, output: Output
) -> None:
    """Show the Events of an AppWrapper, its items and its pods.

    The oldest come first. Objects between an item and its pods, such as ReplicaSets, count as well.
    The API server keeps Events for an hour, and those of deleted pods are not found any more.
    """
    if watch and output.form:
        raise click.UsageError("-w and -o exclude each other")
    try:
        asyncio.run(until_reader_leaves(_show(name, namespace, target, output, watch=watch)))
    except KeyboardInterrupt:
        if not watch:
            raise
        raise click.exceptions.Exit(INTERRUPTED) from None


async def _show(
    name: str, namespace: str | None, target: Target, output: Output, *, watch: bool
) -> None:
    async with environment().connect(target, watches=watch) as session:
        obj = await read_one(session, name, namespace)
        owned = await owned_objects(session.client, obj)
        uids = {obj["metadata"]["uid"], *owned.uids}
        found, version = await all_events(session.client, obj, uids)
        if output.form:
            echo_form({"items": found}, output.form, found, headers=not output.no_headers)
            return
        printer = _Printer(output)
        if found:
            printer.show(found)
        elif not watch:
            click.echo(f"No Events about {name} are kept.", err=True)
        if watch:
            await follow(session.client, obj, uids, version, printer.show)


class _Printer:
    """Prints rows below those before."""

    def __init__(self, output: Output) -> None:
        self._columns = Columns(TITLES, output.palette)
        self._headers = not output.no_headers

    def show(self, found: list[Json]) -> None:
        now = environment().clock.now_us()
        echo(self._columns.lines([_cells(one, now) for one in found], headers=self._headers))
        self._headers = False


def _cells(event: Json, now_us: int) -> tuple[str, ...]:
    subject, times = subject_of(event), as_int(event.get("count"))
    often = f" (x{times})" if times > 1 else ""
    return (
        age(event_time(event), now_us) + often,
        as_text(event.get("type")),
        as_text(event.get("reason")),
        f"{as_text(subject.get('kind'))}/{as_text(subject.get('name'))}",
        one_line(as_text(event.get("message"))),
    )
