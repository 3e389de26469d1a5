"""Reads what pages about one AppWrapper show: the pages of ``mcad describe`` and ``mcad why``."""

from __future__ import annotations

from collections.abc import Iterator

from mcad.cli.pages.colours import Palette
from mcad.cli.pages.describe import Description, Page
from mcad.cli.pages.why import page
from mcad.cli.terminal.follower import Snapshot
from mcad.client.appwrappers.latest_events import latest_events
from mcad.client.appwrappers.read import read_appwrapper
from mcad.client.errors import McadError
from mcad.client.scope import Source
from mcad.client.session import Environment

GONE = "does not exist any more"
COLOURS = Palette(enabled=True)  # the screen drops them where they are not wanted


class ClusterReads:
    """Asks the cluster of ``source``; with --server the dispatcher only."""

    def __init__(self, world: Environment, source: Source) -> None:
        """A session is opened for each page."""
        self._world, self._source = world, source

    async def describe(self, snapshot: Snapshot, namespace: str, name: str) -> Iterator[str]:
        """The page of ``mcad describe``."""
        described = await self._description(snapshot, namespace, name)
        if described.obj is None and described.detail is None:
            raise McadError(f"{namespace}/{name} {GONE}")
        return Page(self._world.clock.now_us(), COLOURS).lines(described)

    async def _description(self, snapshot: Snapshot, namespace: str, name: str) -> Description:
        detail = await snapshot.figures.detail(namespace, name)
        if self._source.server:
            return Description(None, detail)
        async with self._world.connect(self._source.target, watches=False) as session:
            obj = await read_appwrapper(session.client, namespace, name)
            if obj is None:
                return Description(None, None)
            events = await latest_events(session.client, namespace, obj["metadata"]["uid"])
            return Description(obj, detail, events)

    async def why(self, snapshot: Snapshot, namespace: str, name: str) -> Iterator[str]:
        """The page of ``mcad why``."""
        told = await snapshot.figures.why(namespace, name)
        if told is None:
            raise McadError(f"{namespace}/{name} {GONE}")
        return page(told, COLOURS)
