"""Figures that a standby serves: computed like those of the CLI, and shared by requests."""

from __future__ import annotations

import asyncio

from mcad.api.config import Config
from mcad.client.config import as_dispatched
from mcad.client.errors import McadError
from mcad.client.figures.computed import ComputedFigures
from mcad.client.figures.listed import compute_figures
from mcad.controller.leader_figures import FiguresUnavailable
from mcad.kube.client import Client

FRESH_S = 5.0  # requests share figures of this age, because computing reads the whole cluster


class StandbyFigures:
    """Figures that are at most ``FRESH_S`` old."""

    def __init__(self, client: Client, config: Config) -> None:
        """Of ``config`` only the Lease is used: the leader publishes its settings."""
        self._client = client
        self._config = Config(leaderElection=config.leader_election)
        self._turn = asyncio.Lock()
        self._latest: ComputedFigures | None = None
        self._until = 0.0

    async def figures(self) -> ComputedFigures:
        """Compute figures for one request at a time; raises ``FiguresUnavailable``."""
        clock = self._client.clock
        async with self._turn:
            if self._latest is None or clock.monotonic() >= self._until:
                self._latest = None  # free the memory first
                try:
                    config = await as_dispatched(self._client, self._config)
                    self._latest = await compute_figures(self._client, config)
                except McadError as error:
                    raise FiguresUnavailable(error.message) from error
                self._until = clock.monotonic() + FRESH_S
            return self._latest
