"""``mcad describe``: everything about an AppWrapper, and why it waits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import click
from msgspec import Struct

from mcad.api.wire import as_list
from mcad.cli.arguments.completion_candidates import complete_appwrappers
from mcad.cli.arguments.environment import environment
from mcad.cli.arguments.global_options import form_option, namespace_option
from mcad.cli.arguments.names import ObjectName, in_full, qualified_names
from mcad.cli.arguments.options import color_option, source_options
from mcad.cli.errors import fail_for_missing, warn
from mcad.cli.pages.colours import palette
from mcad.cli.pages.describe import Description, Page
from mcad.cli.pages.output_forms import FormType, echo_form
from mcad.cli.pages.tables import echo
from mcad.client.appwrappers.latest_events import event_time, latest_events
from mcad.client.appwrappers.read import read_appwrapper
from mcad.client.figures.figures import Figures
from mcad.client.figures.row import in_namespace
from mcad.client.figures.source import asked_namespace, at_server, figures_in
from mcad.client.scope import Scope, Source
from mcad.client.session import Session

Json = dict[str, Any]

BETWEEN = ("", "")  # two blank lines between pages, like kubectl


class Found(Struct, frozen=True):
    """The AppWrappers that were found, and the names that were not."""

    descriptions: list[Description]
    missing: list[ObjectName]


@click.command()
@click.argument(
    "names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete_appwrappers
)
@namespace_option
@source_options
@form_option(FormType("json", "yaml"))
@color_option
def describe(
    names: tuple[str, ...], namespace: str | None, source: Source, form: str | None, color: str
) -> None:
    """Show one AppWrapper in full: demand, reasons, items, events.

    Several names are possible: NAME, aw/NAME, NS/NAME, or as `mcad queue -o name` prints them.
    Positions, reasons and figures are the dispatcher's; conditions and the dispatch record are from
    the status. With --server only the dispatcher is asked: no conditions, no Events.
    """
    chosen = qualified_names(names)
    if not chosen:
        raise click.UsageError("name an AppWrapper: `mcad get` lists them")
    found = asyncio.run(_find(chosen, Scope(namespace), source))
    if form:
        _print_structured(found.descriptions, form, alone=len(chosen) == 1)
    else:
        page = Page(environment().clock.now_us(), palette(color))
        for number, described in enumerate(found.descriptions):
            echo([*BETWEEN * (number > 0), *page.lines(described)])
    missing = [f'"{one.name}"{in_namespace(one.namespace)}' for one in found.missing]
    fail_for_missing(missing, "no AppWrapper {}; see `mcad get -A`")


async def _find(names: Sequence[ObjectName], scope: Scope, source: Source) -> Found:
    if source.server:
        own = asked_namespace(environment(), source, scope) or ""
        return await _ask_server(at_server(source), in_full(names, own))
    async with environment().connect(source, watches=False) as session:
        own = scope.choose(session.namespace) or ""
        return await _read_all(session, in_full(names, own))


async def _ask_server(server: Figures, names: Sequence[ObjectName]) -> Found:
    details = [await server.detail(one.namespace or "", one.name) for one in names]
    described = [Description(None, detail) for detail in details if detail is not None]
    pairs = zip(names, details, strict=True)
    return Found(described, [one for one, detail in pairs if detail is None])


async def _read_all(session: Session, names: Sequence[ObjectName]) -> Found:
    objects = {
        one: await read_appwrapper(session.client, one.namespace or "", one.name) for one in names
    }
    found = {one: obj for one, obj in objects.items() if obj is not None}
    spaces = dict.fromkeys(one.namespace or "" for one in found)
    figures = {where: await figures_in(session.client, where) for where in spaces}
    for note in dict.fromkeys(note for one in figures.values() for note in one.notes):
        warn(note)
    descriptions = []
    for title, obj in found.items():
        where = title.namespace or ""
        events = await latest_events(session.client, where, obj["metadata"]["uid"])
        detail = await figures[where].detail(where, title.name)
        descriptions.append(Description(obj, detail, events))
    return Found(descriptions, [one for one in names if one not in found])


# -- for scripts -----------------------------------------------------------------------------


def _print_structured(descriptions: list[Description], form: str, *, alone: bool) -> None:
    """Print one AppWrapper as an object, several as a list."""
    views = [_structured(described) for described in descriptions]
    if not alone:
        echo_form({"items": views}, form, views)
    elif views:
        echo_form(views[0], form)


def _structured(described: Description) -> Json:
    if described.obj is None:
        return {"appwrapper": described.detail}
    return {
        "appwrapper": described.detail,
        "conditions": as_list(described.status.get("conditions")),
        "dispatch": described.status.get("dispatch"),
        "events": [
            {
                "type": event.get("type"),
                "reason": event.get("reason"),
                "time": event_time(event),
                "message": event.get("message"),
            }
            for event in described.events
        ],
    }
