"""The order of the first list after a crash that lost the first status of some AppWrappers."""

from __future__ import annotations

from typing import Any

from mcad.api.appwrapper import parse
from mcad.api.catalog import StaticCatalog
from mcad.controller.mirror import Mirror
from mcad.controller.sightings import Sightings
from mcad.core.events import AppWrapperSeen, Event

Json = dict[str, Any]


def appwrapper(name: str, second: int, version: int, first_seen: str = "") -> Json:
    """An AppWrapper created in this second of a minute."""
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
            "creationTimestamp": f"2026-01-01T00:00:{second:02}Z",
        },
        "spec": {},
        "status": {"state": "Pending", "controllerfirsttimestamp": first_seen}
        if first_seen
        else {},
    }


def test_what_is_not_on_record_is_new_within_its_second_only() -> None:
    """A status write raises the version, so within a second those on record go first; but an older
    second stays older, on record or not.
    """
    told: list[Event] = []
    sightings = Sightings(
        Mirror(),
        lambda obj: parse(obj, StaticCatalog({}, frozenset())),
        told.append,
        lambda pod, owner: None,
        lambda uid: None,
    )
    sightings.appwrappers_listed(
        [
            appwrapper("third", 5, 12),
            appwrapper("second", 5, 30, "2026-01-01T00:00:05.000007Z"),
            appwrapper("fourth", 5, 13),
            appwrapper("first", 1, 10),
        ]
    )
    names = [event.workload.name for event in told if isinstance(event, AppWrapperSeen)]
    assert names == ["first", "second", "third", "fourth"]
