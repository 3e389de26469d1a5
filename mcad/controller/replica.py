"""One process of the dispatcher: it stands by until it holds the Lease, then it leads.

The core of a standby knows nothing: a core cannot follow another dispatcher, because it expects the
outcome of its own commands. A standby holds a copy of what its watches tell (ADR 55). A new leader
starts as after a restart, with fresh lists or a copy that has caught up with them (P11), and with a
higher epoch than all before (P12).

Nothing is written without the Lease: every request of the controller is fenced by it. A process
that loses the Lease ends; a restarted one stands by.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcad.controller.metrics.replica import ReplicaMetrics
from mcad.controller.runtime import Controller
from mcad.kube.lease import Lease, Terms

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcad.api.config import Config
    from mcad.controller.preflight import Preflight
    from mcad.core.cluster import Cluster
    from mcad.journal.writer import Journal
    from mcad.kube.client import Client

    KeepJournal = Callable[[Cluster, int], Journal | None]
    """Begins the journal of a core that leads with this epoch."""
    Companion = Callable[[Client], Awaitable[None]]
    """Works beside a controller that leads, with its fenced client, until it is cancelled."""

_log = logging.getLogger(__name__)

FRESH_S = 5.0  # for so long the preflight of the start holds
LOOK_S = 1.0  # how often it is looked whether another process leads


class Replica:
    """Runs a controller while it holds the Lease."""

    def __init__(
        self,
        client: Client,
        config: Config,
        *,
        identity: str,
        preflight: Preflight | None = None,
        keep_journal: KeepJournal | None = None,
    ) -> None:
        """``identity`` is unique; ``preflight`` has just been checked.

        ``keep_journal`` begins a journal when this process leads.
        """
        self.controller: Controller | None = None  # while, and after, it leads
        self.standby: Controller | None = None  # the same one from the beginning on
        self.companion: Companion | None = None
        self.metrics = ReplicaMetrics()
        client = client.measured(self.metrics.count_request)
        self.lease = Lease(client, terms_of(config), identity)
        self.metrics.watch_lease(self.lease)
        self._clock = client.clock
        self._client = client.fenced(self.lease.left)
        self.config = config
        self._preflight = preflight
        self._keep_journal = keep_journal

    async def run(self, stop: asyncio.Event) -> None:
        """Run until ``stop`` is set; raises ``LeaseLost`` or the failure of the controller. After
        a lost Lease it may be run again, and leads as a new process would.

        The Lease is released if no request can be running any more, but not by a cancelled run.
        """
        begun = self._clock.monotonic()
        self.controller = None
        controller = self.standby = Controller(
            self._client, self.config, identity=self.lease.identity, preflight=self._preflight
        )
        try:
            if not await self._acquire(controller, stop):
                return
            if self._preflight is not None and self._clock.monotonic() - begun > FRESH_S:
                is_copied = bool(controller.watches.streams)
                checking = asyncio.ensure_future(
                    self._check_again(self._preflight, is_copied=is_copied)
                )
                await self._while_held(checking, asyncio.ensure_future(stop.wait()))
                if checking.cancelled():
                    await self.lease.release()
                    return
                checking.result()
            self.controller = controller
        finally:
            if self.controller is None:
                await controller.close()
        controller.epoch = self.lease.epoch
        if self._keep_journal is not None:
            controller.journal = self._keep_journal(controller.dispatcher.cluster, self.lease.epoch)
        controller.metrics.show_also(self.metrics.registry)
        await self._lead(controller, stop)

    async def _acquire(self, controller: Controller, stop: asyncio.Event) -> bool:
        """Wait for the Lease; False if stopped before."""
        acquiring = asyncio.ensure_future(self.lease.acquire())
        copying = asyncio.ensure_future(self._stand_by(controller))
        await _until_one_ends(acquiring, copying, asyncio.ensure_future(stop.wait()))
        if not copying.cancelled():
            copying.result()  # raises what went wrong
        if acquiring.cancelled():
            return False
        acquiring.result()
        return True

    async def _while_held(self, *tasks: asyncio.Future[Any]) -> None:
        """Renew the Lease until one of these ends, then cancel the others. Raises ``LeaseLost``,
        whatever they made of their end."""
        holding = asyncio.ensure_future(self.lease.hold())
        await _until_one_ends(holding, *tasks)
        if not holding.cancelled():
            holding.result()

    @staticmethod
    async def _check_again(preflight: Preflight, *, is_copied: bool) -> None:
        """The checks of the start. The first list does not ask for their result where there is a
        copy: a later one, of a CRD that was installed anew, must not take it for its own."""
        await preflight.check()
        if is_copied:
            await preflight.installed()

    async def _stand_by(self, controller: Controller) -> None:
        """Copy what a leader knows while another process leads. A process that finds the Lease free
        leads before that would be of use."""
        while not self.lease.leader:
            await self._clock.sleep(LOOK_S)
        await controller.stand_by()

    async def _lead(self, controller: Controller, stop: asyncio.Event) -> None:
        working = asyncio.ensure_future(controller.run(stop))
        async with self._accompanied():
            await self._while_held(working)
        if controller.is_drained:
            await self.lease.release()
        working.result()

    @asynccontextmanager
    async def _accompanied(self) -> AsyncIterator[None]:
        """Run the companion; its failure is logged, and the dispatcher goes on."""
        if self.companion is None:
            yield
            return
        task = asyncio.ensure_future(self.companion(self._client))
        task.add_done_callback(_log_failure)
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _log_failure(companion: asyncio.Future[None]) -> None:
    if not companion.cancelled() and (error := companion.exception()) is not None:
        _log.error("broken companion error=%s", error, exc_info=error)


async def _until_one_ends(*tasks: asyncio.Future[Any]) -> None:
    """Wait until one of these ends, then cancel the others."""
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def terms_of(config: Config) -> Terms:
    """The Lease parameters of a configuration."""
    own = config.leader_election
    return Terms(own.namespace, own.name, own.lease_duration, own.renew_deadline, own.retry_period)
