"""One process of the dispatcher: it stands by until the Lease is its own, then it leads.

A standby holds no core and watches nothing: a core cannot follow another dispatcher, because it
expects the outcome of its own commands. So a new leader begins as after a restart, with fresh lists
(P11) and an epoch above all before it (P12): there is one way to begin.

Nothing is written without the lease: every request of the controller goes through a fence that asks
it. A process that lost it ends; one that begins again stands by.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from prometheus_client.core import GaugeMetricFamily

from mcad.api.published import ANNOTATION, publish
from mcad.controller.runtime import Controller
from mcad.kube.lease import Lease, Terms

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from prometheus_client.core import Metric

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


class Replica:
    """Runs a controller while it holds the Lease, and at no other time."""

    def __init__(
        self,
        client: Client,
        config: Config,
        *,
        identity: str,
        preflight: Preflight | None = None,
        keep_journal: KeepJournal | None = None,
    ) -> None:
        """``identity`` must be of this process alone; ``preflight`` has been checked just now;
        ``keep_journal`` begins a journal when it leads."""
        self.controller: Controller | None = None  # while, and after, it leads
        self.companion: Companion | None = None
        settings = {ANNOTATION: publish(config, identity)}
        self.lease = Lease(client, terms_of(config), identity, settings)
        self._clock = client.clock
        self._client = client.fenced(self.lease.left)
        self._config = config
        self._preflight = preflight
        self._keep_journal = keep_journal

    async def run(self, stop: asyncio.Event) -> None:
        """Until ``stop`` is set; raises ``LeaseLost``, or what it died of.

        The lease is given back if nothing of ours can be under way any more. Cancelled, it drops
        everything as it is.
        """
        begun = self._clock.monotonic()
        if not await self._acquire(stop):
            return
        if self._preflight is not None and self._clock.monotonic() - begun > FRESH_S:
            await self._preflight.check()
        self.controller = controller = Controller(
            self._client,
            self._config,
            identity=self.lease.identity,
            preflight=self._preflight,
            epoch=self.lease.epoch,
        )
        if self._keep_journal is not None:
            controller.journal = self._keep_journal(controller.dispatcher.cluster, self.lease.epoch)
        controller.metrics.registry.register(LeaseGauges(self.lease))
        await self._lead(controller, stop)

    async def _acquire(self, stop: asyncio.Event) -> bool:
        """Whether it leads now, rather than having been stopped before."""
        acquiring = asyncio.ensure_future(self.lease.acquire())
        await _until_one_ends(acquiring, asyncio.ensure_future(stop.wait()))
        if acquiring.cancelled():
            return False
        acquiring.result()
        return True

    async def _lead(self, controller: Controller, stop: asyncio.Event) -> None:
        holding = asyncio.ensure_future(self.lease.hold())
        working = asyncio.ensure_future(controller.run(stop))
        async with self._accompanied():
            await _until_one_ends(holding, working)
        if not holding.cancelled():
            holding.result()  # raises LeaseLost, whatever the controller made of its end
        if controller.is_drained:
            await self.lease.release()
        working.result()

    @asynccontextmanager
    async def _accompanied(self) -> AsyncIterator[None]:
        """Whatever becomes of the companion: the dispatcher goes on without it."""
        if self.companion is None:
            yield
            return
        task = asyncio.ensure_future(self.companion(self._client))
        task.add_done_callback(_tell_failure)
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _tell_failure(companion: asyncio.Future[None]) -> None:
    if not companion.cancelled() and (error := companion.exception()) is not None:
        _log.error("broken companion error=%s", error, exc_info=error)


async def _until_one_ends(*tasks: asyncio.Future[Any]) -> None:
    """Then the others are cancelled, and waited for."""
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class LeaseGauges:
    """What Prometheus is told of the Lease, by the leader and by a standby."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease

    def collect(self) -> Iterator[Metric]:
        """Both gauges."""
        leads = GaugeMetricFamily("mcad_leader", "1 while this process leads, 0 while it stands by")
        leads.add_metric([], int(self._lease.is_held))
        yield leads
        changes = GaugeMetricFamily("mcad_lease_transitions", "How often the leader has changed")
        changes.add_metric([], self._lease.transitions)
        yield changes


def terms_of(config: Config) -> Terms:
    """The Lease of a configuration."""
    own = config.leader_election
    return Terms(own.namespace, own.name, own.lease_duration, own.renew_deadline, own.retry_period)
