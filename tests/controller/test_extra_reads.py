"""An intermediate owner that no watch tells of is read once, and believed by its uid alone."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from mcad.api.config import Config
from mcad.api.owner import Owner
from mcad.controller.extra_reads import LINK_GRACE_S, Lookups
from mcad.controller.served_kinds import Kinds
from mcad.kube.client import Client
from mcad.kube.discovery import Discovery
from mcad.kube.resource import Resource
from tests.controller.clock import LoopClock
from tests.fakeapi import FakeApi

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
OWNER = Owner("uid-w", "example.com", "v1", "Widget", "w")


class Awaiting:
    """EventTranslator of which a pod waits for the owner."""

    def __init__(self, *, awaited: bool = True) -> None:
        self.awaited = awaited
        self.found: list[tuple[str, Owner | None]] = []

    def is_owner_awaited(self, uid: str) -> bool:
        return self.awaited and uid == OWNER.uid

    def owner_found(self, uid: str, controller: Owner | None, *, watched: bool) -> None:
        assert not watched
        self.found.append((uid, controller))


async def look_up(sightings: Awaiting, *widgets: dict[str, Any]) -> FakeApi:
    """Ask for the owner on a server that has these objects."""
    server, clock = FakeApi(served=(WIDGETS,)), LoopClock()
    for metadata in widgets:
        server.put("widgets", {"metadata": {"name": "w", "namespace": "default", **metadata}})
    client = Client(server, clock, Random(1))
    kinds = Kinds(Discovery(client), Config())
    await kinds.refresh()
    server.requests.clear()
    lookups = Lookups(client, kinds, sightings)  # type: ignore[arg-type]  # what is told of owners
    looking = asyncio.ensure_future(lookups.find_owner("default", OWNER))
    await clock.advance(LINK_GRACE_S + 1)
    await looking
    return server


async def test_an_owner_is_told_with_its_own_controller() -> None:
    above = {
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "name": "a",
        "uid": "uid-a",
        "controller": True,
    }
    sightings = Awaiting()
    await look_up(sightings, {"uid": OWNER.uid, "ownerReferences": [above]})
    ((uid, controller),) = sightings.found
    assert (uid, controller and controller.uid) == (OWNER.uid, "uid-a")


@pytest.mark.parametrize("widgets", [[{"uid": "another"}], []], ids=["replaced", "deleted"])
async def test_an_object_of_the_same_name_is_not_believed(widgets: list[dict[str, Any]]) -> None:
    sightings = Awaiting()
    await look_up(sightings, *widgets)
    assert sightings.found == []


async def test_what_the_watch_has_told_meanwhile_is_not_asked_for() -> None:
    server = await look_up(Awaiting(awaited=False), {"uid": OWNER.uid})
    assert server.requests == []
