"""Figures for whoever asks a standby: counted as every command counts them, not for each asker."""

from __future__ import annotations

import asyncio

from mcad.api.config import Config
from mcad.cli.computed_figures import Snapshot
from mcad.cli.config import as_dispatched
from mcad.cli.errors import CliError
from mcad.cli.listed_figures import compute_figures
from mcad.controller.leader_figures import FiguresUnavailable
from mcad.kube.client import Client

FRESH_S = 5.0  # counting reads the whole cluster, so askers share what is no older than this


class StandbyFigures:
    """The figures of now, or of a moment ago."""

    def __init__(self, client: Client, config: Config) -> None:
        """Nothing is read before the first question. Of ``config`` only the Lease counts: figures
        rest on the settings of the process that leads."""
        self._client = client
        self._config = Config(leaderElection=config.leader_election)
        self._turn = asyncio.Lock()
        self._latest: Snapshot | None = None
        self._until = 0.0

    async def figures(self) -> Snapshot:
        """Counted by one asker at a time; ``FiguresUnavailable`` says why they cannot be."""
        clock = self._client.clock
        async with self._turn:
            if self._latest is None or clock.monotonic() >= self._until:
                self._latest = None  # two of them at a time would be twice the memory
                try:
                    config = await as_dispatched(self._client, self._config)
                    self._latest = await compute_figures(self._client, config)
                except CliError as error:
                    raise FiguresUnavailable(error.message) from error
                self._until = clock.monotonic() + FRESH_S
            return self._latest
