"""The leader as its Lease names it, which tells of a failover before any figures do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from mcad.client.config import load_config
from mcad.client.errors import McadError
from mcad.client.figures.presence import UNKNOWN, Heartbeat, read_presence
from mcad.client.scope import Settings, Target
from mcad.client.session import Environment

LEASE_POLL_S = 2.0
RECONNECT_S = 5.0


class LeaderWatch:
    """Reads the Lease while a page is open. ``latest`` is UNKNOWN where it may not be read."""

    def __init__(
        self,
        environment: Environment,
        target: Target,
        attended: Callable[[], Awaitable[None]],
        on_change: Callable[[], None],
    ) -> None:
        """``attended`` returns once a page is open; ``on_change`` is called with a new ``latest``.
        MCAD_... settings name another Lease than the usual one."""
        self.latest = UNKNOWN
        self._environment = environment
        self._target = target
        self._attended = attended
        self._on_change = on_change
        self._config = load_config(Settings())

    async def follow(self) -> None:
        """Follow for ever."""
        while True:
            with suppress(McadError):  # the figures say what is wrong with the connection
                await self._follow_once()
            await self._environment.clock.sleep(RECONNECT_S)

    async def _follow_once(self) -> None:
        async with self._environment.connect(self._target, watches=False) as session:
            while True:
                await self._attended()
                self._note(await read_presence(session.client, self._config))
                await self._environment.clock.sleep(LEASE_POLL_S)

    def _note(self, found: Heartbeat) -> None:
        before, self.latest = self.latest, found
        if (found.presence, found.holder) != (before.presence, before.holder):
            self._on_change()
