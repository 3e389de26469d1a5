"""How far an AppWrapper is, while ``wait()`` of the Python client waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from msgspec import Struct

from mcad.client.errors import McadError
from mcad.client.figures.figures import Figures
from mcad.client.figures.source import figures_in
from mcad.kube.client import Client
from mcad.kube.errors import KubeError

Json = dict[str, Any]
T = TypeVar("T")

PROGRESS_S = 2.0  # between two questions


class Progress(Struct, frozen=True):
    """How far an AppWrapper is, as the dispatcher says; ``str`` of it is a line.

    ``position`` is 0 if it is not in line, and None if that is not known. ``why`` is a sentence,
    empty if it does not wait. ``pods`` counts its pods by ``pending``, ``running``, ``succeeded``
    and ``failed``.
    """

    appwrapper: str
    state: str
    position: int | None
    why: str
    pods: dict[str, int]

    @classmethod
    def of(cls, told: Json) -> Progress:
        """From the JSON of ``mcad.controller.views``."""
        title = f"{told['namespace']}/{told['name']}"
        why = told["why"] or ""
        return cls(title, told["state"], told["position"], why, dict(told["pods"]))

    def __str__(self) -> str:
        """A line."""
        place = f", number {self.position} in line" if self.position else ""
        pods = ", ".join(f"{count} {phase}" for phase, count in self.pods.items() if count)
        tail = f": {self.why}" if self.why else f" (pods: {pods})" if pods else ""
        return f"{self.appwrapper}: {self.state}{place}{tail}"


class Reporter:
    """Calls back with the progress of an AppWrapper each time that it has changed."""

    def __init__(
        self, client: Client, obj: Json, on_progress: Callable[[Progress], object]
    ) -> None:
        self._client = client
        self._name = str(obj["metadata"]["name"])
        self._namespace = str(obj["metadata"]["namespace"])
        self._on_progress = on_progress
        self._figures: Figures | None = None
        self._last: Progress | None = None

    async def during(self, waiting: Awaitable[T]) -> T:
        """The outcome of a wait, reported meanwhile and at its end."""
        work = asyncio.ensure_future(waiting)
        asking = asyncio.ensure_future(self._run())
        try:
            await asyncio.wait((work, asking), return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                await asking  # what was called has failed
            outcome = await work
        finally:
            work.cancel()
            asking.cancel()
            await asyncio.gather(work, asking, return_exceptions=True)
        await self._look()
        return outcome

    async def _run(self) -> None:
        while True:
            await self._look()
            await self._client.clock.sleep(PROGRESS_S)

    async def _look(self) -> None:
        try:
            if self._figures is None or self._figures.is_stored:
                self._figures = await figures_in(self._client, self._namespace)
            told = await self._figures.detail(self._namespace, self._name)
        except (McadError, KubeError):
            self._figures = None
            return  # the wait itself says what is wrong
        now = Progress.of(told) if told is not None else None
        if now is not None and now != self._last:
            self._last = now
            self._on_progress(now)
