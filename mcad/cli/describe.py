"""``mcad describe``: everything about one AppWrapper, and why it waits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import click

from mcad.api.wire import as_list, as_map, as_text
from mcad.cli.complete import complete_appwrappers
from mcad.cli.errors import CliError, NotFoundError, warn
from mcad.cli.figures import Source, figures_of, source_options
from mcad.cli.options import namespace_option
from mcad.cli.session import Session, environment
from mcad.cli.snapshot import NOT_INSTALLED
from mcad.cli.tables import NONE, Row, age, amounts, echo, echo_structured, table
from mcad.controller.kinds import APPWRAPPERS
from mcad.kube.client import Client, Selection
from mcad.kube.errors import ApiError
from mcad.kube.resource import Resource

Json = dict[str, Any]

EVENTS = Resource("", "v1", "events", "Event")  # the view that the usual roles may read
EVENTS_SHOWN = 10
NAME_WIDTH = 14


@dataclass(frozen=True, slots=True)
class Story:
    """What is told: the live object, the dispatcher's figures (None if it knows none), Events."""

    obj: Json
    detail: Json | None
    events: list[Json]

    @property
    def status(self) -> Json:
        """What the dispatcher has written."""
        return as_map(self.obj.get("status"))


@click.command()
@click.argument("name", shell_complete=complete_appwrappers)
@namespace_option
@source_options
@click.option("-o", "--output", "form", type=click.Choice(["json", "yaml"]), help="Another form.")
def describe(name: str, namespace: str | None, source: Source, form: str | None) -> None:
    """One AppWrapper in full: demand, reasons, items, events.

    Positions, reasons and figures are of this moment; conditions and the dispatch record are what
    the dispatcher has written.
    """
    story = asyncio.run(_look(name, namespace, source))
    if form:
        echo_structured(_structured(story), form)
    else:
        echo(_lines(story, environment().clock.now_us()))


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
    found.sort(key=lambda event: _event_time(event) or "")
    return found[-EVENTS_SHOWN:]


def _event_time(event: Json) -> str | None:
    metadata = as_map(event.get("metadata"))
    for value in (event.get("lastTimestamp"), event.get("eventTime")):
        if value:
            return str(value)
    return as_text(metadata.get("creationTimestamp")) or None


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
                "time": _event_time(event),
                "message": event.get("message"),
            }
            for event in story.events
        ],
    }


# -- for people ------------------------------------------------------------------------------


def _lines(story: Story, now_us: int) -> Iterator[str]:
    metadata, spec = as_map(story.obj["metadata"]), as_map(story.obj.get("spec"))
    yield _pair("Name", metadata["name"])
    yield _pair("Namespace", metadata["namespace"])
    yield _pair("UID", metadata["uid"])
    if story.detail is not None:
        yield from _figures(story.detail, now_us)
    else:
        yield from _unknown(spec)
    yield from _dispatch(as_map(story.status.get("dispatch")), now_us)
    yield from _conditions(story, now_us)
    yield from _told(story.events, now_us)


def _pair(title: str, value: object) -> str:
    return f"{title + ':':<{NAME_WIDTH}}{value}"


def _unknown(spec: Json) -> Iterator[str]:
    """Why the dispatcher has no figures for it."""
    manager = as_text(spec.get("managedBy"))
    if manager:
        yield _pair("Managed by", f"{manager}; this dispatcher leaves it alone")
    else:
        yield _pair(
            "State", "<unknown>: the dispatcher has not seen it, or it is just being deleted"
        )


def _figures(detail: Json, now_us: int) -> Iterator[str]:
    yield _pair("Dialect", detail["dialect"])
    yield _pair("Priority", detail["priority"])
    yield _pair("First seen", f"{detail['firstSeen']} ({age(detail['firstSeen'], now_us)} ago)")
    yield _pair("State", f"{detail['state']} ({detail['queuejobstate']})")
    yield from _place(detail)
    yield from _reason(detail)
    yield _pair("Demand", amounts(detail["demand"]))
    yield _pair("Pods", ", ".join(f"{count} {phase}" for phase, count in detail["pods"].items()))
    yield from _section("Items", ("ITEM", "KIND", "NAME", "EXISTS", "CONDITIONS"), _items(detail))
    yield from _section("Pod sets", ("ITEM", "PATH", "PODS", "REQUEST", "RESERVED"), _sets(detail))


def _place(detail: Json) -> Iterator[str]:
    if not detail["position"]:
        yield _pair("Position", NONE)
        return
    head = ", head of line" if detail["headOfLine"] else ""
    yield _pair("Position", f"{detail['position']} of {detail['inLine']}{head}")
    ahead = [f"{one['namespace']}/{one['name']}" for one in detail["ahead"]]
    more = detail["position"] - 1 - len(ahead)
    told = ", ".join(ahead) + (f" and {more} more" if more > 0 else "")
    yield _pair("Ahead", told or NONE)


def _reason(detail: Json) -> Iterator[str]:
    if not detail["why"]:
        return
    yield _pair("Waits for", detail["waitsFor"] or NONE)
    yield _pair("Why", detail["why"])
    titles = ("RESOURCE", "REQUESTED", "AVAILABLE", "MISSING")
    rows = [tuple(one[title.lower()] for title in titles) for one in detail["figures"]]
    if rows:
        yield from _indented(table(titles, rows))


def _items(detail: Json) -> Iterator[tuple[str, ...]]:
    for item in detail["items"]:
        yield (
            str(item["item"]),
            item["kind"],
            item["name"],
            _exists(item),
            ",".join(item["conditions"]) or NONE,
        )


def _exists(item: Json) -> str:
    if item["exists"] is None:
        return "<unknown>"
    return "deleting" if item["terminating"] else "yes" if item["exists"] else "no"


def _sets(detail: Json) -> Iterator[tuple[str, ...]]:
    """A guessed number of pods is marked, because it may be wrong."""
    guessed = {item["item"] for item in detail["items"] if item["guessed"]}
    for one in detail["podSets"]:
        pods = "1/node" if one["perNode"] else str(one["replicas"])
        yield (
            str(one["item"]),
            one["path"] or "<declared>",
            pods + " (guessed)" * (one["item"] in guessed),
            amounts(one["request"]),
            str(one["reserved"]),
        )


def _dispatch(record: Json, now_us: int) -> Iterator[str]:
    if not record:
        yield _pair("Dispatch", NONE)
        return
    yield "Dispatch:"
    facts = [
        ("Attempt", record.get("attempt")),
        ("Phase", record.get("phase")),
        ("Begun", _ago(record.get("intentTime"), now_us)),
        ("Confirmed", _ago(record.get("confirmTime"), now_us)),
        ("Reason", record.get("reason")),
        ("Message", record.get("message")),
    ]
    yield from _indented(_pair(title, value) for title, value in facts if value)


def _ago(instant: Any, now_us: int) -> str:
    return f"{instant} ({age(instant, now_us)} ago)" if instant else ""


def _conditions(story: Story, now_us: int) -> Iterator[str]:
    conditions = [as_map(one) for one in as_list(story.status.get("conditions"))]
    if not conditions and story.detail is not None:
        yield _pair("Conditions", f"{NONE}: no dispatcher has written any yet; is one running?")
        return
    rows = [
        (
            as_text(one.get("type")),
            as_text(one.get("status")),
            as_text(one.get("reason")) or NONE,
            age(one.get("lastTransitionMicroTime") or one.get("lastTransitionTime"), now_us),
            as_text(one.get("message")) or NONE,
        )
        for one in conditions
    ]
    yield from _section("Conditions", ("TYPE", "STATUS", "REASON", "AGE", "MESSAGE"), rows)


def _told(events: list[Json], now_us: int) -> Iterator[str]:
    rows = [
        (
            as_text(event.get("type")),
            as_text(event.get("reason")),
            age(_event_time(event), now_us),
            as_text(event.get("message")),
        )
        for event in events
    ]
    yield from _section("Events", ("TYPE", "REASON", "AGE", "MESSAGE"), rows)


def _section(title: str, columns: Row, rows: Iterable[Row]) -> Iterator[str]:
    lines = list(rows)
    if not lines:
        yield _pair(title, NONE)
        return
    yield f"{title}:"
    yield from _indented(table(columns, lines))


def _indented(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"  {line}"
