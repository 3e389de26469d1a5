"""The history of every AppWrapper, and the use of the cluster meanwhile.

Built from the events and commands of a core, so that histories under different settings can be
compared.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from mcad.core.commands import Command, WriteStatus
from mcad.core.events import AppWrapperGone, AppWrapperSeen, Event, NodeGone, NodeSeen
from mcad.core.state.model import DispatchPhase, Node, Persisted, Workload
from mcad.core.state.reasons import State
from mcad.core.state.status_view import StatusView
from mcad.core.state.units import Duration, Instant

ENDED = frozenset({State.COMPLETED, State.FAILED, State.DELETED})


@dataclass(slots=True)
class Life:
    """One AppWrapper. Unknown instants are 0; ``first`` and ``last`` are dispatches.

    ``runs`` is whether it uses capacity at present.
    """

    workload: Workload
    submitted: Instant
    first: Instant = 0
    last: Instant = 0
    attempt: int = 0
    runs: bool = False
    evictions: int = 0
    ended: Instant = 0
    failed: bool = False
    deleted: Instant = 0

    @property
    def is_over(self) -> bool:
        """Whether it has ended or is deleted."""
        return bool(self.ended or self.deleted)

    def wait(self, now: Instant) -> Duration | None:
        """From submission to first dispatch, or until now if it waits; None if it ended before."""
        if self.first:
            return max(0, self.first - self.submitted)
        return None if self.is_over else max(0, now - self.submitted)


@dataclass
class Lives:
    """All AppWrappers by uid.

    ``used`` and ``offered`` are resource-microseconds: the demand of dispatched AppWrappers, and
    the capacity of ready nodes.
    """

    by_uid: dict[str, Life] = field(default_factory=dict)
    used: Counter[str] = field(default_factory=Counter)
    offered: Counter[str] = field(default_factory=Counter)
    now: Instant = 0
    _using: Counter[str] = field(default_factory=Counter)
    _has: Counter[str] = field(default_factory=Counter)
    _nodes: dict[str, Node] = field(default_factory=dict)

    def observe(self, event: Event, now: Instant) -> None:
        """Take an event of the core."""
        self.advance(now)
        match event:
            case AppWrapperSeen():
                self._seen(event.workload)
            case AppWrapperGone():
                self._gone(event.uid)
            case NodeSeen():
                self._node(event.node.name, event.node)
            case NodeGone():
                self._node(event.name, None)
            case _:
                pass

    def command(self, command: Command, now: Instant) -> None:
        """Take a command of the core."""
        self.advance(now)
        if isinstance(command, WriteStatus) and command.uid in self.by_uid:
            self._written(self.by_uid[command.uid], command.status)

    def advance(self, now: Instant) -> None:
        """Time passes without a change."""
        if self.now and now > self.now:
            for sums, rates in ((self.used, self._using), (self.offered, self._has)):
                for name, amount in rates.items():
                    sums[name] += amount * (now - self.now)
        self.now = max(self.now, now)

    def measure_from(self, now: Instant) -> None:
        """Ignore the use of the cluster before this instant."""
        self.advance(now)
        self.used.clear()
        self.offered.clear()

    def waits(self) -> list[Duration]:
        """The waiting times until the first dispatch, or until now; sorted."""
        found = (life.wait(self.now) for life in self.by_uid.values())
        return sorted(wait for wait in found if wait is not None)

    def _seen(self, work: Workload) -> None:
        life = self.by_uid.get(work.uid)
        if life is not None:
            if not life.runs:
                life.workload = work
            return
        if not work.managed or (work.persisted is not None and work.persisted.foreign):
            return
        life = self.by_uid[work.uid] = Life(work, self.now)
        if work.persisted is not None:
            self._restore(life, work.persisted)

    def _restore(self, life: Life, saved: Persisted) -> None:
        """An AppWrapper that was submitted, and perhaps dispatched, before the journal began."""
        life.submitted = saved.first_seen or life.submitted
        record = saved.dispatch
        if record is not None and record.phase is DispatchPhase.DISPATCHED:
            life.first = saved.first_dispatch or record.confirmed
            life.last, life.attempt = record.confirmed or record.since, record.attempt
            self._set_running(life, runs=saved.state not in ENDED)
        if saved.state in ENDED:
            life.ended, life.failed = self.now, saved.state == State.FAILED

    def _gone(self, uid: str) -> None:
        life = self.by_uid.get(uid)
        if life is not None and not life.deleted:
            life.deleted = self.now
            self._set_running(life, runs=False)

    def _node(self, name: str, node: Node | None) -> None:
        before = self._nodes.pop(name, None)
        if before is not None:
            self._has.subtract(_offer(before))
        if node is not None:
            self._nodes[name] = node
            self._has.update(_offer(node))

    def _written(self, life: Life, status: StatusView) -> None:
        record = status.dispatch
        if life.deleted or record is None:
            self._end(life, status)
            return
        if record.phase is DispatchPhase.DISPATCHED:
            if record.attempt > life.attempt:
                life.attempt, life.last = record.attempt, record.confirmed or self.now
                life.first = life.first or life.last
                self._set_running(life, runs=True)
        elif life.runs and record.phase is not DispatchPhase.CREATING:
            life.evictions += bool(record.preemptor)
            self._set_running(life, runs=False)
        self._end(life, status)

    def _end(self, life: Life, status: StatusView) -> None:
        if status.state not in ENDED:
            life.ended = 0  # it was requeued by hand
        elif not life.ended:
            life.ended, life.failed = self.now, status.state == State.FAILED
            self._set_running(life, runs=False)

    def _set_running(self, life: Life, *, runs: bool) -> None:
        if life.runs != runs:
            life.runs = runs
            count = self._using.update if runs else self._using.subtract
            count(demand(life.workload))


def demand(work: Workload) -> dict[str, int]:
    """The demand of all pods, without DaemonSets, which have a pod on each node."""
    sums: Counter[str] = Counter()
    for one in work.sets:
        for name, amount in one.request:
            sums[name] += amount * one.replicas * (not one.per_node)
    return dict(sums)


def _offer(node: Node) -> dict[str, int]:
    return dict(node.allocatable) if node.ready else {}
