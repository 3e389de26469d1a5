"""The running controller: the loop around the core, and its orderly end.

It makes no decision. Every event enters the core through ``feed``, one after the other; ``Decide``
is sent when no more events come for a moment (core rule R5), and never before every kind is synced
(protocol P11).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any, NoReturn

from mcad.api import labels
from mcad.api.appwrapper import Parsed, parse
from mcad.api.config import Config, to_settings
from mcad.api.owner import Owner
from mcad.controller.adoption import Adoption
from mcad.controller.appwrapper_intake import AppWrapperIntake
from mcad.controller.defaults import Defaults
from mcad.controller.dispatch_pauses import Pauses
from mcad.controller.event_translation import EventTranslator, Readers
from mcad.controller.execute import Executor
from mcad.controller.extra_reads import Lookups
from mcad.controller.held_log import HoldLog
from mcad.controller.installed_kinds import CrdWatch
from mcad.controller.internal_errors import ErrorLog
from mcad.controller.invariant_audit import InvariantAudit
from mcad.controller.log_lines import LogLines
from mcad.controller.metrics.leader import Metrics
from mcad.controller.mirror import Mirror
from mcad.controller.overcommitment_log import OvercommitmentLog
from mcad.controller.preflight import Gate, Preflight
from mcad.controller.quota_subtrees import Quotas
from mcad.controller.scale_ups import ScaleUps
from mcad.controller.served_kinds import Kinds
from mcad.controller.wakeup import Alarm
from mcad.controller.watches import Watches
from mcad.core.commands import Command
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import AppWrapperGone, Decide, Errored, Event, Leading
from mcad.core.state.model import Pod
from mcad.core.state.units import Instant
from mcad.kube.client import Client
from mcad.kube.discovery import Discovery
from mcad.kube.errors import KubeError
from mcad.kube.recorder import Recorder, Reporter

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from mcad.journal.writer import Journal


Json = dict[str, Any]
_log = logging.getLogger(__name__)

QUIET_S = 0.003  # the inbox counts as drained after this long without a change
COALESCE_S = 0.020  # and is decided on after this long at the latest (core rule R5)
SILENT_RETRY_S = 1.0  # how often a silent stream is looked at again (P14)
PULSE_S = 20.0  # without any event, so that a quiet cluster does not look like a stalled loop
DRAIN_S = 2.0  # SIGTERM ends the process within 5 s
EVENT_WRITERS = 8  # with fewer, the Events of a burst are written when it is over, and alone
FLUSH_S = 1.0  # so much of the journal a kill may cost


class Controller:
    """Runs one core on one cluster."""

    def __init__(
        self,
        client: Client,
        config: Config,
        *,
        identity: str,
        preflight: Preflight | None = None,
        epoch: int = 1,
    ) -> None:
        """``identity`` names this process in Events; it should be unique.

        ``epoch`` is that of the Lease; intents are recorded with it or a higher one (P12).

        ``preflight`` checks the CRD before AppWrappers are listed, and their first list before the
        first decision; its ``Unfit`` ends ``run``. Without one nothing is checked.
        """
        self.config = config
        self.clock = client.clock
        self.dispatcher = Dispatcher(to_settings(config))
        self.journal: Journal | None = None  # of every step, from the first one on
        self.errors = ErrorLog(self.dispatcher.cluster)
        self._mirror = Mirror()
        self._kinds = Kinds(Discovery(client), config)
        self._recorder = Recorder(client, Reporter(f"{labels.GROUP}/mcad", identity))
        self.epoch = epoch
        own = config.impersonate
        creator = own.user if own is not None else (lambda _: "")
        writer = client.fenced(self._time_to_write)
        self.quotas = Quotas(writer, self.feed) if config.quota_enabled else None
        self.pauses = Pauses(self.feed)
        self.scale_ups = self._scale_ups(writer) if config.scale_up.is_on else None
        self.executor = Executor(writer, self._mirror, self._recorder, self, creator=creator)
        self._defaults = Defaults(
            client, self._mirror, self, config.watch_namespaces, self._kinds.served
        )
        self._sightings = EventTranslator(
            self._mirror,
            Readers.of(config, self._parse, self._defaults.completed),
            self.feed,
            self._ask_owner,
            self.dispatcher.cluster.judged,
        )
        self._sightings.errored = self.errored
        if self.scale_ups is not None and self.scale_ups.has_placeholders:
            self._sightings.placeholders = self.scale_ups
        gate = Gate(preflight.installed, self.clock, self.spawn) if preflight else None
        alone = preflight is None or not preflight.coexist
        adoption = Adoption(client, self._recorder, self.spawn) if alone else None
        self.arrivals = AppWrapperIntake(self._mirror, self._sightings, preflight, gate, adoption)
        self.watches = Watches(client, self._kinds, self._sightings, self, config.watch_namespaces)
        self._lookups = Lookups(client, self._kinds, self._sightings)
        self._installs = CrdWatch(client, self._kinds, self._lookups, self.watches.kinds_changed)
        self._holds = HoldLog()
        self._log_lines = LogLines(self.dispatcher.cluster)
        self._overcommitments = OvercommitmentLog(self.dispatcher.cluster)
        self._audit = InvariantAudit(self.dispatcher.cluster, self.errored)
        self._alarm = Alarm(self.clock, self._wake)
        self._inbox: deque[Event] = deque()
        self._stopped = False
        self.is_drained = True  # after the end: whether every write of the executor was answered
        self._stepping = False
        self._changed = asyncio.Event()
        self._failure: BaseException | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self.metrics = Metrics(
            self.dispatcher.cluster,
            self.watches.streams,
            self.executor.lanes,
            self.clock,
            self._recorder.counts,
        )
        self.stepped_at = self.clock.monotonic()
        self._is_held = False  # nothing is dispatched, and that was said
        self._look_again_at: Instant = 0

    def _scale_ups(self, writer: Client) -> ScaleUps:
        config = self.config
        return ScaleUps(
            writer,
            self._mirror,
            config.scale_up,
            self._kinds.served,
            feed=self.feed,
            spawn=self.spawn,
            namespaces=config.watch_namespaces,
            judged=self.dispatcher.cluster.judged,
        )

    # -- life --------------------------------------------------------------------------------

    async def stand_by(self) -> NoReturn:
        """Hold what the watches tell, for a later ``run``, until cancelled (ADR 55). Raises the
        failure of a task."""
        await self._find_kinds()
        self.watches.stand_by()
        self.spawn(self._installs.run())
        while True:
            await self._changed.wait()
            self._changed.clear()
            self.raise_failure()

    async def close(self) -> None:
        """End what ``stand_by`` began, where ``run`` does not follow."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def run(self, stop: asyncio.Event) -> None:
        """Run until ``stop`` is set; raises its failure. A cancelled run waits for nothing."""
        patience = DRAIN_S
        self.is_drained = False
        try:
            self.feed(Leading(self.epoch))
            self.spawn(self._start())
            if self.journal is not None:
                self.spawn(self._flush(self.journal))
            await self._decide_until(stop)
        except asyncio.CancelledError:
            patience = 0.0
            raise
        finally:
            await self._shut_down(patience)
            if self.journal is not None:
                self.journal.close()

    async def _start(self) -> None:
        was_standby = bool(self.watches.streams)
        is_changed = await self._find_kinds()
        self._defaults.watch()
        if was_standby:
            if is_changed:
                self.watches.kinds_changed()
            self.watches.lead()
        else:
            await self.readable()
            self.watches.watch_all()
            self.spawn(self._installs.run())
        for _ in range(EVENT_WRITERS):
            self.spawn(self._recorder.run())
        self.spawn(self._pulse())

    async def _pulse(self) -> None:
        """Decide regularly, so that `/healthz` shows that this still works."""
        while True:
            await self.clock.sleep(PULSE_S)
            self._wake()

    async def _flush(self, journal: Journal) -> None:
        while True:
            await self.clock.sleep(FLUSH_S)
            journal.flush()

    async def _find_kinds(self) -> bool:
        """Discover kinds, for without them no AppWrapper can be parsed. Whether they changed."""
        pause = 0.5
        while True:
            try:
                return await self._kinds.refresh()
            except KubeError:
                _log.warning("discovery failed error=%s", self._kinds.trouble)
                await self.clock.sleep(pause)
                pause = min(pause * 2, 10.0)

    async def _decide_until(self, stop: asyncio.Event) -> None:
        stopping = self.spawn(stop.wait())
        while not stop.is_set():
            changing = asyncio.ensure_future(self._changed.wait())
            await asyncio.wait((changing, stopping), return_when=asyncio.FIRST_COMPLETED)
            changing.cancel()
            if stop.is_set():
                return
            await self._drain()
            self.raise_failure()
            if self.watches.is_synced:
                self._decide()

    async def _drain(self) -> None:
        """Wait until no more events come, for a bounded time."""
        until = self.clock.monotonic() + COALESCE_S
        while self._changed.is_set() and self.clock.monotonic() < until:
            self._changed.clear()
            asleep = self.clock.monotonic()
            await self.clock.sleep(QUIET_S)
            self.metrics.observe_lag(self.clock.monotonic() - asleep - QUIET_S)

    async def _shut_down(self, patience: float) -> None:
        """Start nothing, and wait for running requests; the protocol allows to cancel them.

        The core gets no more outcomes: each would lead to the next command.
        """
        self._stopped = True
        self._alarm.close()
        for task in self._tasks:
            task.cancel()
        lanes = self.executor.lanes.values()
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await asyncio.gather(*self._tasks, return_exceptions=True)
                await asyncio.gather(*(lane.drain() for lane in lanes))
                self.is_drained = True
                await self._recorder.drain()
        for lane in lanes:
            lane.cancel()

    def _time_to_write(self) -> float:
        """The fence of the executor: a job of several requests starts none after the stop."""
        return 0.0 if self._stopped else inf

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a task that ends with the controller; its failure ends the controller."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()
            self._wake()

    def raise_failure(self) -> None:
        """Raise the failure of a background task: it is a bug that must not be hidden."""
        if self._failure is not None:
            raise self._failure
        for lane in self.executor.lanes.values():
            lane.raise_failure()

    # -- the loop around the core --------------------------------------------------------------

    def feed(self, event: Event) -> None:
        """Feed an event to the core and execute its commands; never re-entrant."""
        if self._stopped or self._failure is not None:
            return
        self._inbox.append(event)
        if self._stepping:
            return
        self._stepping = True
        try:
            while self._inbox:
                self._step(self._inbox.popleft())
        except Exception as error:
            self._failure = error  # about the whole: no caller may take it for its own
            self._wake()
            raise
        finally:
            self._stepping = False

    def _step(self, event: Event) -> None:
        self.stepped_at = self.clock.monotonic()
        if isinstance(event, AppWrapperGone):
            self._log_lines.gone(event.uid)
        now = self.clock.now_us()
        commands = self.dispatcher.step(event, now)
        if self.journal is not None:
            self.journal.note(now, event, commands)
        self.metrics.count_step(commands)
        self.errors.log_raised()
        for command in commands:
            self._submit(command)
        self._holds.log_changes(self.dispatcher.cluster.held_resources(), now)
        if isinstance(event, Decide):
            self.metrics.observe_decision(self.clock.monotonic() - self.stepped_at)
            self.metrics.count_overcommitments(self._overcommitments.log_changes())
            self.metrics.count_checks(self._audit.check_some(self.stepped_at))
        else:
            self._wake()

    def _submit(self, command: Command) -> None:
        """Execute a command. An error of ours about one AppWrapper holds that one."""
        try:
            self._log_lines.log(command)
            self.executor.submit(command)
        except Exception as error:
            uid = getattr(command, "uid", "")
            if not uid:
                raise
            self.errored(uid, error)

    def errored(self, uid: str, error: Exception) -> None:
        """Log an error about one AppWrapper, and have the core hold that one."""
        self.feed(Errored(uid, self.errors.log(uid, error)))

    def wake_at(self, at: Instant) -> None:
        """Send Decide at this instant."""
        self._alarm.wake_at(at)

    def _wake(self) -> None:
        self._changed.set()

    def synced(self) -> None:
        """Every kind is listed: decide from now on (P11)."""
        _log.info("synced appwrappers=%d", len(self._mirror))
        if self.scale_ups is not None and self.watches.has_requests:
            self.spawn(self.scale_ups.sweep())
        self._wake()

    def _decide(self) -> None:
        """Decide if enough is known; logs when that changes (P11, P14)."""
        obstacles = self.watches.obstacles()
        if bool(obstacles) != self._is_held:
            self._is_held = bool(obstacles)
            if obstacles:
                _log.warning("nothing is dispatched why=%s", "; ".join(obstacles))
            else:
                _log.info("dispatching again")
        now = self.clock.now_us()
        if obstacles and self._look_again_at <= now:
            self._look_again_at = now + int(SILENT_RETRY_S * 1e6)
            self._alarm.wake_at(self._look_again_at)
        if self.watches.absence:
            self.stepped_at = self.clock.monotonic()  # on purpose, so it is no stall
        else:
            self.feed(Decide(may_dispatch=not obstacles and not self.executor.is_behind))

    def _parse(self, obj: Json) -> Parsed:
        return parse(obj, self._kinds.catalog, from_json=True)

    def read_appwrapper(self, obj: Json) -> Parsed:
        """An AppWrapper as it would be read if it was created now."""
        return self._defaults.pod_defaults.completed(parse(obj, self._kinds.catalog))

    async def readable(self) -> None:
        """Return when the defaults of pods are known, or AppWrappers would be judged without."""
        await self._defaults.known()

    # -- reads outside of the watches ------------------------------------------------------------

    def observe_appwrapper(self, obj: Json) -> None:
        """Take an AppWrapper that was read after a conflict."""
        self._sightings.appwrapper_seen(obj)

    def kind_denied(self) -> None:
        """A watched kind is no longer served in the known version."""
        self._installs.discover_soon()

    def _ask_owner(self, pod: Pod, owner: Owner) -> None:
        self.spawn(self._lookups.find_owner(pod.namespace, owner))
