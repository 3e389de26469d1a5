"""Refused shapes, and the changes that may let them in (core rule R4).

A refused shape costs nothing until such a change. It waits until the sum that was short suffices,
until the pods that found too few slots may find enough, or, where no such obstacle is known, until
any node of its pools gains room.

A node may concern thousands of shapes, so they are looked for in rounds, of which one call does a
part. A round is about all that happened before it began, so it ends however often nodes rise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from sortedcontainers import SortedList

from mcad.core.fit.feasible import (
    InsufficientSlots,
    InsufficientSum,
    NoNodes,
    Obstacle,
    Prospect,
    TooLarge,
)
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.pod_signature import UNBOUNDED, PodClass
from mcad.core.nodes.pools import KeptPool, Pool, sum_of, widest
from mcad.core.state.work_bounds import (
    CHECKS_MAX,
    POOLS_TESTED_PER_STEP,
    REQUEUE_STEPS,
    SUMS_PER_STEP,
    VERDICT_STEPS,
)

_Sum = tuple[tuple[Pool, ...], str]
_Line: TypeAlias = "SortedList[tuple[int, int, Prospect]]"
"""(what is needed, serial, prospect); no two have one serial."""


class _Registration(NamedTuple):
    """What a prospect waits for, since it was refused ``at`` a change; ``serial`` orders those that
    wait for the same."""

    obstacle: Obstacle | None
    serial: int
    at: int


@dataclass(slots=True)
class _Watch:
    """The prospects that are concerned when a node of one pool rises, or of one that is this pool
    without a few nodes: those that wait for a sum that the pool is part of, the least demand first;
    those that wait for slots; those with a pod that is larger than any node, as of the change
    ``sized_at``; and the ``any_rise``, always."""

    sums: dict[_Sum, _Line] = field(default_factory=dict)
    few: dict[PodClass, dict[Prospect, int]] = field(default_factory=dict)
    large: dict[Prospect, None] = field(default_factory=dict)
    sized_at: int = 0
    any_rise: dict[Prospect, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Round:
    """What is left to do about the changes before it began: the ``pools``, of which the last one is
    looked at, and the ``candidates`` of that one, None as long as its news are not all reported."""

    pools: list[KeptPool]
    candidates: list[Prospect] | None = None


class QueueingHints:
    """The refused prospects of a capacity, and those that may fit by now and were not taken yet.

    ``is_behind`` as long as the round that the last call went on with is not over: some may fit
    that are yet to be found. ``steps`` is the work so far, about a microsecond each.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._seen = 0
        self._joins = 0
        self._serial = 0
        self._checks = 0
        self.steps = 0
        self.is_behind = False
        self._round: _Round | None = None
        self._watches: dict[KeptPool, _Watch] = {}
        self._registered: dict[Prospect, _Registration] = {}
        self._standing_in: dict[Prospect, tuple[Pool, ...]] = {}
        self._requeued: dict[Prospect, None] = {}

    def take_requeued(self, most: int = UNBOUNDED) -> list[Prospect]:
        """Those that may fit after what happened, as far as they are found in about ``most`` steps;
        they are not registered any more."""
        self._look(self.steps + most)
        requeued, self._requeued = self._requeued, {}
        return list(requeued)

    @property
    def has_news(self) -> bool:
        """Whether anything rose or shifted that was not looked at, or is looked at now."""
        return self._round is not None or self._ledger.log.gained > self._seen

    # -- going to sleep ------------------------------------------------------------------------

    def register(self, prospect: Prospect) -> None:
        """The prospect was refused just now, by its ``obstacle`` or by anything else."""
        self.forget(prospect)
        self._serial += 1
        refused_at = self._ledger.log.now
        self._registered[prospect] = _Registration(prospect.obstacle, self._serial, refused_at)
        match prospect.obstacle:
            case NoNodes(pool):
                self._watch(pool).any_rise[prospect] = None
            case TooLarge(pods):
                self._watch(pods.pool).large[prospect] = None
            case InsufficientSum(pools, resource, needed, standing_in):
                self._line((pools, resource)).add((needed, self._serial, prospect))
                if standing_in:
                    self._standing_in[prospect] = pools
            case InsufficientSlots(pods, replicas):
                self._watch(pods.pool).few.setdefault(pods, {})[prospect] = replicas
                pods.alarm = min(pods.alarm, replicas)
            case _:
                for pool in prospect.pools:
                    self._watch(pool).any_rise[prospect] = None

    def register_for_any_rise(self, prospect: Prospect | None) -> None:
        """The prospect was refused for pods that it shares with others: any rise may let it in."""
        if prospect is not None:
            prospect.obstacle = None
            self.register(prospect)

    def requeue(self, prospect: Prospect) -> None:
        """The prospect fits, or something happened that may let it in."""
        if prospect in self._registered:
            self._unregister(prospect)
            self._requeued[prospect] = None
            self.steps += REQUEUE_STEPS

    def forget(self, prospect: Prospect) -> None:
        """No AppWrapper waits with the prospect any more."""
        self._requeued.pop(prospect, None)
        if prospect in self._registered:
            self._unregister(prospect)

    def _watch(self, pool: Pool) -> _Watch:
        watch = self._watches.get(pool.base)
        if watch is None:
            watch = self._watches[pool.base] = _Watch()
        return watch

    def _line(self, key: _Sum) -> _Line:
        line = self._watch(key[0][0]).sums.get(key)
        if line is None:
            line = SortedList()
            for pool in key[0]:
                self._watch(pool).sums[key] = line
        return line

    def _unregister(self, prospect: Prospect) -> None:
        obstacle, serial, _ = self._registered.pop(prospect)
        match obstacle:
            case NoNodes(pool):
                del self._watches[pool.base].any_rise[prospect]
                self._tidy(pool.base)
            case TooLarge(pods):
                del self._watches[pods.pool.base].large[prospect]
                self._tidy(pods.pool.base)
            case InsufficientSum(pools, resource, needed):
                self._standing_in.pop(prospect, None)
                line = self._line((pools, resource))
                line.remove((needed, serial, prospect))
                for base in () if line else _bases(pools):
                    del self._watches[base].sums[pools, resource]
                    self._tidy(base)
            case InsufficientSlots(pods):
                few = self._watches[pods.pool.base].few
                del few[pods][prospect]
                pods.alarm = min(few[pods].values(), default=UNBOUNDED)
                if not few[pods]:
                    del few[pods]
                    self._tidy(pods.pool.base)
            case _:
                for base in _bases(prospect.pools):
                    del self._watches[base].any_rise[prospect]
                    self._tidy(base)

    def _tidy(self, pool: KeptPool) -> None:
        watch = self._watches[pool]
        if not (watch.sums or watch.few or watch.large or watch.any_rise):
            del self._watches[pool]

    # -- waking --------------------------------------------------------------------------------

    def _look(self, until: int) -> None:
        """Go on with the round until so much work is done. If it ends before, what happened
        meanwhile is looked at too, as far as that work goes."""
        if self._round is None:
            self._begin()
        self.is_behind = not self._go_on(until)
        if not self.is_behind and self.steps < until:
            self._begin()
            self._go_on(until)

    def _begin(self) -> None:
        since, log = self._seen, self._ledger.log
        self._seen = log.now
        if log.gained <= since:
            return
        self._checks = CHECKS_MAX
        if self._joins != self._ledger.joins:
            self._joins = self._ledger.joins
            for prospect, pools in list(self._standing_in.items()):
                self.steps += len(prospect.pools) ** 2
                if widest(prospect.pools) != pools:
                    self.requeue(prospect)
        due = [pool for pool in self._watches if max(pool.risen, pool.shifted) > since]
        due.reverse()
        self._round = _Round(due)

    def _go_on(self, until: int) -> bool:
        """Go on with the round; returns whether none is under way any more."""
        while self._round is not None and self._round.pools:
            if not self._look_at(self._round.pools[-1], self._round, until):
                return False
            self._round.pools.pop()
            self._round.candidates = None
            if self.steps >= until and self._round.pools:
                return False
        self._round = None
        return True

    def _look_at(self, pool: KeptPool, round_: _Round, until: int) -> bool:
        """What happened in one pool; returns whether that is all done."""
        watch = self._watches.get(pool)
        if watch is None:
            pool.news.end_report()  # or it would stand for that of a later round
            return True
        if round_.candidates is None:
            self.steps += pool.news.report(until - self.steps)
            if not pool.news.is_reported:
                return False
            if len(round_.pools) % POOLS_TESTED_PER_STEP == 0:
                self.steps += 1
            self.steps += len(watch.sums) // SUMS_PER_STEP
            round_.candidates = [*_candidates(pool, watch)]
            round_.candidates.reverse()
        while round_.candidates:
            if self.steps >= until:
                return False
            prospect = round_.candidates.pop()
            if self._may_fit(prospect, pool):
                self.requeue(prospect)
        return True

    def _may_fit(self, prospect: Prospect, pool: KeptPool) -> bool:
        """Whether what it waits for in the pool may be there, if it still waits."""
        match self._registered.get(prospect):
            case None:
                return False
            case _Registration(TooLarge(pods)):
                return not (pods.pool.rows and pods.too_large())
            case _Registration(InsufficientSum(pools, resource, needed)):
                return sum_of(pools).get(resource, 0) >= needed
            case _Registration(InsufficientSlots(pods, replicas)):
                return not self._still_few(pods, replicas)
            case _Registration(at=refused_at):  # a node less is a pod less of a DaemonSet
                return refused_at < max(pool.risen, pool.shifted * prospect.shape.per_node)

    def _still_few(self, pods: PodClass, replicas: int) -> bool:
        """Whether there are surely too few slots, and the class will report when there may be
        more; it is not asked when the work of the round is done."""
        if self._checks <= 0:
            return False
        looked = pods.looked
        pods.missing(replicas)
        is_few = pods.at_most() < replicas
        took = VERDICT_STEPS + pods.looked - looked
        self._checks -= took
        self.steps += took
        return is_few


def _candidates(pool: KeptPool, watch: _Watch) -> Iterator[Prospect]:
    """The prospects for which what happened in the pool may suffice."""
    for (pools, resource), line in watch.sums.items():
        there = sum_of(pools).get(resource, 0)
        for needed, _, prospect in line:
            if needed > there:
                break
            yield prospect
    for pods in pool.take_rung():
        yield from watch.few.get(pods, ())
    if watch.sized_at < pool.shifted:
        watch.sized_at = pool.shifted
        yield from watch.large
    yield from watch.any_rise


def _bases(pools: Iterable[Pool]) -> dict[KeptPool, None]:
    """The pools that report what rises in these."""
    return dict.fromkeys(pool.base for pool in pools)
