"""The latest Events about an AppWrapper."""

from __future__ import annotations

from typing import Any

from mcad.api.wire import as_map, as_text
from mcad.client.errors import warn
from mcad.kube.client import Client, Selection
from mcad.kube.errors import ApiError
from mcad.kube.resource import Resource

Json = dict[str, Any]

EVENTS = Resource("", "v1", "events", "Event")  # the view that the usual roles may read
EVENTS_SHOWN = 10
SECOND = len("2026-01-01T00:00:00")


def event_time(event: Json) -> str | None:
    """The time of the latest occurrence of an Event, from either Events API."""
    metadata = as_map(event.get("metadata"))
    for value in (event.get("lastTimestamp"), event.get("eventTime")):
        if value:
            return str(value)
    return as_text(metadata.get("creationTimestamp")) or None


async def all_events(client: Client, obj: Json, uids: set[str]) -> tuple[list[Json], str]:
    """The Events about these objects of an AppWrapper, oldest first, and the version of the list.

    They are in the order of seconds, which is all that most Events tell, and then as they were
    written.
    """
    found, version = await client.list_all(EVENTS, Selection(obj["metadata"]["namespace"]))
    found = [event for event in found if subject_of(event).get("uid") in uids]
    return sorted(found, key=_order), version


def subject_of(event: Json) -> Json:
    """The object that an Event is about."""
    return as_map(event.get("involvedObject"))


def _order(event: Json) -> tuple[str, int]:
    version = as_text(as_map(event.get("metadata")).get("resourceVersion"))
    return (event_time(event) or "")[:SECOND], int(version) if version.isdigit() else 0


async def latest_events(client: Client, namespace: str, uid: str) -> list[Json]:
    """The latest Events about an object, oldest first; none if the caller may not list them."""
    try:
        return await list_events(client, namespace, uid)
    except ApiError as error:
        if not error.forbidden:
            raise
        warn(f"you may not list events in namespace {namespace}")
        return []


async def list_events(client: Client, namespace: str, uid: str) -> list[Json]:
    """The latest Events about an object, oldest first."""
    selection = Selection(namespace, field_selector=f"involvedObject.uid={uid}")
    found, _ = await client.list_all(EVENTS, selection)
    found.sort(key=lambda event: event_time(event) or "")
    return found[-EVENTS_SHOWN:]
