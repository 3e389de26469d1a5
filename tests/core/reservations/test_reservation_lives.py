"""Random lives of reservations: nodes, shares, kinds and manifests change while they stand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mcad.core.events import Decide, KindWatched, NodeGone, NodeSeen
from mcad.core.state.model import HostPort, Node, Workload
from mcad.core.state.settings import Policy, Settings
from mcad.core.state.units import SECOND
from tests import budget
from tests.core.bench import node
from tests.core.histories import LEAVES, SIZE, Act, Teams
from tests.core.quotas import GOLD, SILVER, teams

ZONES = ("a", "b")


class Changing(Teams):
    """Everything that a reservation rests on changes: nodes, trees, labels, manifests, leaders."""

    def settings(self) -> Settings:
        draw = self.random
        return replace(
            super().settings(),
            protect_after=draw.choice((0, 1 * SECOND, 30 * SECOND, 60 * SECOND)),
            policy=draw.choice(list(Policy)),
            head_of_line_holding=draw.choice((0, 0, 20 * SECOND)),
            reservation_timeout=draw.choice((0, 60 * SECOND, 300 * SECOND)),
            placement_timeout=draw.choice((0, 0, 100 * SECOND)),
        )

    def nodes(self) -> list[Node]:
        zoned = (node(f"n{i}", SIZE, labels=(("zone", ZONES[i % 2]),)) for i in range(3))
        self.there = {one.name: one for one in zoned}
        return list(self.there.values())

    def acts(self) -> list[Act]:
        changes = [self.nodes_change, self.nodes_change, self.edited, self.edited]
        changes += [self.trees_change, self.follows, self.unwatched, self.lingers]
        return [*super().acts(), *changes]

    def submit(self) -> None:
        super().submit()
        uid = f"uid-w{self.made - 1}"
        if uid not in self.bench.works or uid in self.bench.status:
            return
        work, draw = self.bench.works[uid], self.random
        match draw.choice(("plain", "plain", "zone", "ports", "cap", "daemon")):
            case "zone":
                where = (("zone", draw.choice(ZONES)),)
                work = _with(work, constraint=replace(work.sets[0].constraint, selector=where))
            case "ports":
                work = _with(work, ports=(HostPort("TCP", 80),))
            case "cap":
                work = _with(work, cap=1)
            case "daemon":
                work = _with(work, per_node=True)
        limit = draw.choice((0, 60 * SECOND, 300 * SECOND))
        self.bench.edit(uid, sets=work.sets, run_limit=limit)

    def _free(self, name: str) -> int:
        return super()._free(name) if name in self.there else 0

    def nodes_change(self) -> None:
        draw, name = self.random, self.random.choice(("n0", "n1", "n2"))
        if name not in self.there:
            self.there[name] = node(name, SIZE, labels=(("zone", draw.choice(ZONES)),))
        else:
            old = self.there[name]
            match draw.choice(("gone", "ready", "cordoned", "zone", "size")):
                case "gone":
                    del self.there[name]
                    self.bench.nodes = list(self.there.values())
                    self.bench.feed(NodeGone(name))
                    return
                case "ready":
                    self.there[name] = replace(old, ready=not old.ready)
                case "cordoned":
                    self.there[name] = replace(old, unschedulable=not old.unschedulable)
                case "zone":
                    self.there[name] = replace(old, labels=(("zone", draw.choice(ZONES)),))
                case "size":
                    size = draw.choice((SIZE // 2, SIZE, SIZE))
                    self.there[name] = replace(old, allocatable=node(name, size).allocatable)
        self.bench.nodes = list(self.there.values())
        self.bench.feed(NodeSeen(self.there[name]))

    def trees_change(self) -> None:
        there = list(self.bench.quotas)
        if there and self.random.random() < 0.5:
            self.bench.unshare(*there)
        else:
            self.bench.share(*teams(3 * SIZE, red=SIZE, blue=SIZE, green=SIZE))

    def edited(self) -> None:
        """Of those with a reservation or to be evicted, if there are such."""
        cluster, draw = self.bench.dispatcher.cluster, self.random
        found = [*cluster.reservations, *cluster.evictions] or list(self.bench.works)
        found = [uid for uid in found if uid in self.bench.works]
        if not found:
            return
        uid = draw.choice(sorted(found))
        work = self.bench.works[uid]
        changes: dict[str, object] = draw.choice(
            (
                {"suspended": not work.suspended},
                {"priority": draw.randint(0, 3)},
                {"quota": ((GOLD, draw.choice((*LEAVES, "nowhere"))), (SILVER, "red"))},
                {"sets": work.sets[:1], "items": work.items[:1], "payload": f"sha-{draw.random()}"},
                {"run_limit": draw.choice((0, 50 * SECOND))},
                {"never_preempted": not work.never_preempted},
                {"never_preempts": not work.never_preempts},
            )
        )
        self.bench.edit(uid, **changes)

    def follows(self) -> None:
        """It looks without leading for a while."""
        for _ in range(self.random.randint(1, 3)):
            self.bench.now += 20 * SECOND
            self.bench.feed(Decide(may_dispatch=False))

    def unwatched(self) -> None:
        watched = self.random.random() < 0.7
        self.bench.feed(KindWatched("", "pods", watched=watched, message="no such kind"))

    def lingers(self) -> None:
        if self.bench.works and self.random.random() < 0.3:
            uid = self.random.choice(sorted(self.bench.works))
            self.bench.edit(uid, deleting=True)

    def check(self) -> None:
        super().check()
        cluster = self.bench.dispatcher.cluster
        for name in self.there:
            on = {
                uid for uid in cluster.reservations if name in cluster.capacity.gangs.nodes_of(uid)
            }
            assert len(on) <= 1, f"{name} is in reservations of {on}"

    def take_away(self) -> None:
        """All is taken away: nothing is remembered."""
        bench = self.bench
        bench.feed(KindWatched("", "pods", watched=True))
        bench.stubborn.clear()
        for uid in sorted(bench.works):
            bench.delete(uid)
        for ref in list(bench.things):
            bench.remove(ref)
        bench.advance(2000)
        cluster = bench.dispatcher.cluster
        of_reservations = (
            cluster.reservations,
            cluster.reservations.on_record,
            cluster.reservations.firsts.waited,
        )
        left = (*of_reservations, cluster.evictions, cluster.entries, cluster.waiting.queue.new)
        assert not any(left), left
        assert not list(cluster.capacity.gangs.uids())


def _with(work: Workload, **changes: object) -> Workload:
    return replace(work, sets=tuple(replace(one, **changes) for one in work.sets))


@pytest.mark.parametrize("begin", budget.slow_but_first(range(0, 60, 20)))
def test_whatever_changes_the_books_agree_and_at_last_nothing_is_remembered(begin: int) -> None:
    for seed in range(begin, begin + 20):
        life = Changing(seed)
        try:
            life.run(60)
            life.take_away()
        except AssertionError as error:
            error.add_note(f"{seed=}")
            raise
