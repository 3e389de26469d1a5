"""``mcad describe``: everything about one AppWrapper, and why it waits."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from mcad.api.wire import as_list
from mcad.cli.colours import palette
from mcad.cli.complete import complete_appwrappers
from mcad.cli.errors import CliError, NotFoundError, warn
from mcad.cli.figures import Source, figures_of, source_options
from mcad.cli.options import color_option, namespace_option
from mcad.cli.session import Session, environment
from mcad.cli.snapshot import NOT_INSTALLED
from mcad.cli.story import Page, Story, event_time
from mcad.cli.tables import echo, echo_structured
from mcad.controller.kinds import APPWRAPPERS
from mcad.kube.client import Client, Selection
from mcad.kube.errors import ApiError
from mcad.kube.resource import Resource

Json = dict[str, Any]

EVENTS = Resource("", "v1", "events", "Event")  # the view that the usual roles may read
EVENTS_SHOWN = 10


@click.command()
@click.argument("name", shell_complete=complete_appwrappers)
@namespace_option
@source_options
@click.option("-o", "--output", "form", type=click.Choice(["json", "yaml"]), help="Another form.")
@color_option
def describe(
    name: str, namespace: str | None, source: Source, form: str | None, color: str
) -> None:
    """One AppWrapper in full: demand, reasons, items, events.

    Positions, reasons and figures are of this moment; conditions and the dispatch record are what
    the dispatcher has written.
    """
    story = asyncio.run(_look(name, namespace, source))
    if form:
        echo_structured(_structured(story), form)
    else:
        echo(Page(environment().clock.now_us(), palette(color)).lines(story))


async def _look(name: str, namespace: str | None, source: Source) -> Story:
    async with environment().connect(source.target) as session:
        where = namespace or session.namespace
        obj = await _read(session, where, name)
        figures = await figures_of(source, session)
        detail, events = await asyncio.gather(
            figures.detail(where, name),
            _events(session.client, where, obj["metadata"]["uid"]),
        )
    return Story(obj, detail, events)


async def _read(session: Session, namespace: str, name: str) -> Json:
    try:
        return await session.client.get(APPWRAPPERS, namespace, name)
    except ApiError as error:
        if not error.not_found:
            raise
        if not error.details.get("name"):
            raise CliError(NOT_INSTALLED) from error
        raise NotFoundError(
            f'no AppWrapper "{name}" in namespace {namespace}; see `mcad get -A`'
        ) from error


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


def _structured(story: Story) -> Json:
    return {
        "appwrapper": story.detail,
        "conditions": as_list(story.status.get("conditions")),
        "dispatch": story.status.get("dispatch"),
        "events": [
            {
                "type": event.get("type"),
                "reason": event.get("reason"),
                "time": event_time(event),
                "message": event.get("message"),
            }
            for event in story.events
        ],
    }
