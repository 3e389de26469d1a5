"""``mcad describe``: everything about an AppWrapper, and why it waits."""

from __future__ import annotations

import asyncio
from typing import Any

import click
from msgspec import Struct

from mcad.api.wire import as_list
from mcad.cli import rows as columns
from mcad.cli.colours import palette
from mcad.cli.completion_candidates import complete_appwrappers
from mcad.cli.describe_page import Description, Page, event_time
from mcad.cli.errors import NOT_INSTALLED, CliError, fail_for_missing, warn
from mcad.cli.figures import warn_of_notes
from mcad.cli.figures_source import Source, asked_namespace, figures_in, source_options
from mcad.cli.names import APPWRAPPER, names_of
from mcad.cli.options import Scope, color_option, namespace_option
from mcad.cli.server_figures import server_at
from mcad.cli.session import Session, environment
from mcad.cli.tables import echo, echo_structured
from mcad.kube.client import Client, Selection
from mcad.kube.errors import ApiError
from mcad.kube.kinds import APPWRAPPERS
from mcad.kube.resource import Resource

Json = dict[str, Any]

EVENTS = Resource("", "v1", "events", "Event")  # the view that the usual roles may read
EVENTS_SHOWN = 10
BETWEEN = ("", "")  # two blank lines between pages, like kubectl


class Found(Struct, frozen=True):
    """The AppWrappers that were found, and the names that were not."""

    namespace: str
    descriptions: list[Description]
    missing: list[str]


@click.command()
@click.argument(
    "names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete_appwrappers
)
@namespace_option
@source_options
@click.option("-o", "--output", "form", type=click.Choice(["json", "yaml"]), help="Another form.")
@color_option
def describe(
    names: tuple[str, ...], namespace: str | None, source: Source, form: str | None, color: str
) -> None:
    """Show one AppWrapper in full: demand, reasons, items, events.

    Several names are possible: NAME, aw/NAME, or as `mcad queue -o name` prints them. Positions,
    reasons and figures are current; conditions and the dispatch record are from the status. With
    --server only the dispatcher is asked: no conditions, no Events.
    """
    names = names_of(APPWRAPPER, names)
    if not names:
        raise click.UsageError("name an AppWrapper: `mcad get` lists them")
    found = asyncio.run(_find(names, Scope(namespace), source))
    if form:
        _print_structured(found.descriptions, form, alone=len(names) == 1)
    else:
        page = Page(environment().clock.now_us(), palette(color))
        for number, described in enumerate(found.descriptions):
            echo([*BETWEEN * (number > 0), *page.lines(described)])
    where = columns.where(found.namespace)
    fail_for_missing(found.missing, f'no AppWrapper "{{}}"{where}; see `mcad get -A`')


async def _find(names: tuple[str, ...], scope: Scope, source: Source) -> Found:
    if source.server:
        where = asked_namespace(environment(), source, scope) or ""
        server = server_at(source.server)
        details = {name: await server.detail(where, name) for name in names}
        descriptions = [
            Description(None, detail) for detail in details.values() if detail is not None
        ]
        return Found(where, descriptions, [name for name in names if details[name] is None])
    async with environment().connect(source.target) as session:
        where = scope.choose(session.namespace) or ""
        return await _read_all(session, names, where, source)


async def _read_all(session: Session, names: tuple[str, ...], where: str, source: Source) -> Found:
    objects = {name: await _read(session, where, name) for name in names}
    found = {name: obj for name, obj in objects.items() if obj is not None}
    missing = [name for name in names if name not in found]
    if not found:
        return Found(where, [], missing)
    figures = await figures_in(session, source, where)
    warn_of_notes(figures)
    descriptions = []
    for name, obj in found.items():
        events = await _events(session.client, where, obj["metadata"]["uid"])
        descriptions.append(Description(obj, await figures.detail(where, name), events))
    return Found(where, descriptions, missing)


async def _read(session: Session, namespace: str, name: str) -> Json | None:
    """The live object, None if there is none of this name."""
    try:
        return await session.client.get(APPWRAPPERS, namespace, name)
    except ApiError as error:
        if not error.not_found:
            raise
        if not error.details.get("name"):
            raise CliError(NOT_INSTALLED) from error
        return None


async def _events(client: Client, namespace: str, uid: str) -> list[Json]:
    """The latest Events about it, oldest first."""
    selection = Selection(namespace, field_selector=f"involvedObject.uid={uid}")
    try:
        found, _ = await client.list_all(EVENTS, selection)
    except ApiError as error:
        if not error.forbidden:
            raise
        warn(f"you may not list events in namespace {namespace}")
        return []
    found.sort(key=lambda event: event_time(event) or "")
    return found[-EVENTS_SHOWN:]


# -- for scripts -----------------------------------------------------------------------------


def _print_structured(descriptions: list[Description], form: str, *, alone: bool) -> None:
    """Print one AppWrapper as an object, several as a list."""
    views = [_structured(described) for described in descriptions]
    if not alone:
        echo_structured({"items": views}, form)
    elif views:
        echo_structured(views[0], form)


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
