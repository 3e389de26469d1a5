"""Refused shapes, and the changes that may let them in (core rule R4).

A refused shape costs nothing until such a change. It waits until the sum that was short suffices,
until the pods that found too few slots may find enough, or, where no such obstacle is known, until
any node of its pools gains room.

A node may concern thousands of shapes, so they are looked for in rounds, of which one call does a
part. A round is about all that happened before it began; what happens meanwhile is the next one's,
or a round had no end while nodes rise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from sortedcontainers import SortedList

from mcad.core.fit.feasible import InsufficientSlots, InsufficientSum, NoNodes, Obstacle, Prospect
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.pod_signature import UNBOUNDED, PodClass
from mcad.core.nodes.pools import KeptPool, Pool, sum_of, widest
from mcad.core.state.work_bounds import CHECKS_MAX, REQUEUE_STEPS, TESTED_PER_STEP, VERDICT_STEPS

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
    those that wait for slots; and the ``any_rise``, always."""

    sums: dict[_Sum, _Line] = field(default_factory=dict)
    few: dict[PodClass, dict[Prospect, int]] = field(default_factory=dict)
    any_rise: dict[Prospect, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Look:
    """What is left to look at of one pool, the next one last: sums, prospects that wait for slots
    of pods, and prospects without a known obstacle. The last two are None as long as the news of
    the pool are not all reported."""

    sums: list[_Sum]
    few: list[tuple[PodClass, Prospect]] | None = None
    rest: list[Prospect] | None = None


@dataclass(slots=True)
class _Round:
    """What is left to do about the changes before it began: the ``pools``, of which the last one is
    looked at."""

    pools: list[KeptPool]
    look: _Look | None = None


class QueueingHints:
    """The refused prospects of a capacity, and those that may fit by now and were not taken yet.
    ``steps`` is the work so far, about a microsecond each."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._seen = 0
        self._joins = 0
        self._serial = 0
        self._checks = 0
        self.steps = 0
        self._round: _Round | None = None
        self._watches: dict[KeptPool, _Watch] = {}
        self._registered: dict[Prospect, _Registration] = {}
        self._standing_in: dict[Prospect, tuple[Pool, ...]] = {}
        self._requeued: dict[Prospect, None] = {}

    def take_requeued(self, most: int = UNBOUNDED) -> list[Prospect]:
        """Those that may fit after what happened, as far as they are found in about ``most`` steps;
        they are not registered any more."""
        self._go_on(self.steps + most)
        requeued, self._requeued = self._requeued, {}
        return list(requeued)

    @property
    def is_behind(self) -> bool:
        """Whether a round is under way: some may fit that were not requeued yet."""
        return self._round is not None

    @property
    def has_news(self) -> bool:
        """Whether anything rose or shifted that was not looked at, or is looked at now."""
        return self.is_behind or self._ledger.log.gained > self._seen

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
        if not (watch.sums or watch.few or watch.any_rise):
            del self._watches[pool]

    # -- waking --------------------------------------------------------------------------------

    def _go_on(self, until: int) -> None:
        """Go on with the round, or begin one if anything happened since, until so much work is
        done."""
        if self._round is None:
            self._begin()
        while self._round is not None:
            if not self._round.pools:
                self._round = None
            elif self._look_at(self._round.pools[-1], self._round, until):
                self._round.pools.pop()
                self._round.look = None
                if self.steps >= until and self._round.pools:
                    return
            else:
                return

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

    def _look_at(self, pool: KeptPool, round_: _Round, until: int) -> bool:
        """What happened in one pool; returns whether that is all done."""
        watch = self._watches.get(pool)
        if watch is None:
            pool.news.end_report()  # or it would stand for that of a later round
            return True
        look = round_.look
        if look is None:
            self.steps += not len(round_.pools) % TESTED_PER_STEP
            if not _may_let_in(pool, watch):
                return True
            look = round_.look = _Look([*reversed(watch.sums)])
        if not self._requeue_by_sums(watch, look.sums, until):
            return False
        if look.few is None:
            self.steps += pool.news.report(until - self.steps)
            if not pool.news.is_reported:
                return False
            rung = pool.take_rung()
            look.few = [(pods, one) for pods in rung for one in watch.few.get(pods, ())]
            look.few.reverse()
        if not self._test(watch, look.few, until):
            return False
        if look.rest is None:
            look.rest = [*reversed(watch.any_rise)]
        return self._requeue_rest(watch, pool, look.rest, until)

    def _requeue_by_sums(self, watch: _Watch, sums: list[_Sum], until: int) -> bool:
        while sums:
            pools, resource = sums[-1]
            line, there = watch.sums.get(sums[-1]), sum_of(pools).get(resource, 0)
            while line and line[0][0] <= there:
                self.requeue(line[0][2])
                if self.steps >= until:
                    return False
            sums.pop()
            self.steps += 1
        return True

    def _test(self, watch: _Watch, few: list[tuple[PodClass, Prospect]], until: int) -> bool:
        """Requeue those whose pods may find slots enough."""
        while few:
            pods, prospect = few.pop()
            replicas = watch.few.get(pods, {}).get(prospect)
            if replicas is not None and not self._still_few(pods, replicas):
                self.requeue(prospect)
            if self.steps >= until:
                return False
        return True

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

    def _requeue_rest(
        self, watch: _Watch, pool: KeptPool, rest: list[Prospect], until: int
    ) -> bool:
        """Requeue those that were refused before the pool changed: a node less is a pod less of a
        DaemonSet."""
        while rest:
            prospect = rest.pop()
            if prospect not in watch.any_rise:
                continue
            changed = max(pool.risen, pool.shifted if prospect.shape.per_node else 0)
            if self._registered[prospect].at < changed:
                self.requeue(prospect)
                if self.steps >= until:
                    return False
        return True


def _may_let_in(pool: KeptPool, watch: _Watch) -> bool:
    """A quick test of what happened in the pool: thousands of pools may share a node."""
    if pool.rung or watch.any_rise or pool.news.has_risen:
        return True
    return any(
        line[0][0] <= sum_of(pools).get(resource, 0)
        for (pools, resource), line in watch.sums.items()
    )


def _bases(pools: Iterable[Pool]) -> dict[KeptPool, None]:
    """The pools that report what rises in these."""
    return dict.fromkeys(pool.base for pool in pools)
