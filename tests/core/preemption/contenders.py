"""Random histories in which AppWrappers that may evict are held, requeued, deleted, and lose nodes.

When all has been quiet for a while, none of them waits behind a victim that it may evict by the
documents (rights.py). Owners and borrowers have shares in several resources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import count

from mcad.core.events import NodeGone, NodeSeen
from mcad.core.state.bounds import RUN_TIME_DOUBLED, RUN_TIME_DOUBLES_MAX
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Node, PodPhase, PodSet, Resources, Workload
from mcad.core.state.quota_records import Designation, QuotaChild
from mcad.core.state.records import replace
from mcad.core.state.run_policy import Growth, Requeuing
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND, Duration, Instant
from tests.core.bench import workload
from tests.core.builders import Host, fits_by_brute_force
from tests.core.histories import LEAVES, Act, History
from tests.core.preemption.rights import Rights
from tests.core.quotas import GOLD, Model, child, subtree

BACKOFF: Duration = 40 * SECOND
SLACK: Duration = BACKOFF // 2 + 10 * SECOND
"""A plan is made once in half of ``backoffTime``, and takes its seconds."""

QUIET_MAX = 12
"""How often a quiet time is made longer, as long as AppWrappers are still started or evicted."""


class Contenders(History):
    """Three teams that lend each other CPUs and GPUs, on three nodes."""

    def settings(self) -> Settings:
        draw = self.random
        return Settings(
            preemption=draw.random() < 0.6,
            min_run_time=draw.choice((0, 20 * SECOND)),
            preemption_grace=draw.choice((0, 0, 5 * SECOND)),
            protect_after=0,
            placement_timeout=0,
            binding_wait=0,
            backoff=BACKOFF,
            max_evictions_per_minute=0,
        )

    def nodes(self) -> list[Node]:
        return [self._node(name, gpu) for name, gpu in (("n0", 2), ("n1", 2), ("n2", 0))]

    def _node(self, name: str, gpu: int) -> Node:
        return Node(name, (("cpu", 8), *((("gpu", gpu),) if gpu else ()), ("pods", 110)))

    def begin(self) -> None:
        draw = self.random
        self.cases: Counter[str] = Counter()
        self._numbers = count()
        below = []
        for leaf in LEAVES:
            nominal = [("cpu", draw.choice((2, 6, 8)))] if draw.random() < 0.9 else []
            if draw.random() < 0.7:
                nominal.append(("gpu", draw.choice((0, 1, 2))))
            below.append(QuotaChild(leaf, tuple(nominal)))
        root = child("root", cpu=24, gpu=4)
        trees = [subtree("root", root), subtree("teams", *below, parent="root")]
        self._model = Model({one.uid: one for one in trees})
        if self.chance(0.8):
            self.bench.share(*trees)
        else:
            self._model = Model()

    def acts(self) -> list[Act]:
        return [
            *[self.submit] * 6,
            *[self.time_passes] * 4,
            *[self.hold_or_release] * 3,
            self.node_is_lost,
            self.node_returns,
            self.ends,
            self.delete,
            self.crash,
        ]

    def after_each(self) -> None:
        self.pass_by(0)
        if self.chance(0.3):
            self.pass_by(self.random.choice((1, 20)))

    def submit(self) -> None:
        if len(self.bench.works) >= 8:
            return
        draw = self.random
        sizes = [draw.choice((1, 2, 4, 7)) for _ in range(draw.choice((1, 1, 2)))]
        gpu = draw.choice((0, 0, 1, 2))
        sets = tuple(PodSet(i, 0, "t", 1, self._request(n, gpu)) for i, n in enumerate(sizes))
        work = workload(f"w{next(self._numbers)}", *sizes, priority=draw.choice((0, 0, 1, 5)))
        self.bench.submit(
            replace(
                work,
                sets=sets,
                created=self.bench.now // SECOND * SECOND,
                quota=((GOLD, draw.choice(LEAVES)),),
                min_available=len(sizes),
                requeuing=Requeuing(2 * SECOND, Growth.NONE),
                never_preempts=draw.random() < 0.1,
            )
        )

    def _request(self, cpu: int, gpu: int) -> Resources:
        return (("cpu", cpu), *((("gpu", gpu),) if gpu else ()), ("pods", 1))

    def time_passes(self) -> None:
        self.pass_by(self.random.choice((1, 15, 60)))

    def hold_or_release(self) -> None:
        if uid := self.any_work():
            self.bench.edit(uid, suspended=not self.bench.works[uid].suspended)

    def node_is_lost(self) -> None:
        """Its pods are gone, and their AppWrappers are requeued."""
        names = [one.name for one in self.bench.nodes]
        if len(names) < 2:
            return
        lost = self.random.choice(names)
        self.bench.nodes = [one for one in self.bench.nodes if one.name != lost]
        self.bench.feed(NodeGone(lost))
        for ref in [ref for ref, one in self.bench.things.items() if one.node == lost]:
            self.bench.remove(ref)

    def node_returns(self) -> None:
        there = {one.name for one in self.bench.nodes}
        for one in self.nodes():
            if one.name not in there:
                self.bench.nodes = [*self.bench.nodes, one]
                self.bench.feed(NodeSeen(one))

    def ends(self) -> None:
        """All of its pods end."""
        uid = self.any_work()
        for ref, one in list(self.bench.things.items()):
            if one.child.workload == uid and one.node:
                self.bench.change(ref.name, phase=PodPhase.SUCCEEDED)

    def crash(self) -> None:
        self.bench.crash()

    def pass_by(self, seconds: int) -> None:
        """kube-scheduler binds each pod to a node with room."""
        for _ in range(1 + seconds // 10):
            self.bench.advance(min(seconds, 10))
            for ref, thing in list(self.bench.things.items()):
                if not thing.node and not thing.child.terminating:
                    self._place(ref.name, thing.child.workload, dict(thing.request))

    def _place(self, name: str, uid: str, asked: dict[str, int]) -> None:
        excluded = self.bench.excluded.get(uid, ())
        fit = [
            one.node.name
            for one in self._hosts(frozenset())
            if one.node.name not in excluded
            and all(one.free.get(resource, 0) >= n for resource, n in asked.items())
        ]
        if fit:
            self.bench.bind(name, on=self.random.choice(fit))

    def _hosts(self, gone: frozenset[str]) -> list[Host]:
        hosts = {one.name: Host(one, dict(one.allocatable)) for one in self.bench.nodes}
        for thing in self.bench.things.values():
            ended = thing.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED)
            if thing.node in hosts and not ended and thing.child.workload not in gone:
                for name, n in thing.request:
                    hosts[thing.node].free[name] -= n
        return list(hosts.values())

    # -- what has to be true when all is quiet -----------------------------------------------

    def end(self) -> None:
        for _ in range(QUIET_MAX):
            self.pass_by(60)
            if self._changed_at() + SLACK <= self.bench.now:
                break

    def _entries(self) -> list[Entry]:
        return list(self.bench.dispatcher.cluster.entries.values())

    def _changed_at(self) -> Instant:
        """When an AppWrapper was started or evicted for the last time."""
        found = [0]
        for view in self.bench.status.values():
            found.append(view.dispatch.since if view.dispatch is not None else 0)
            found.append(view.eviction.at if view.eviction is not None else 0)
        return max(found)

    def check(self) -> None:
        cluster = self.bench.dispatcher.cluster
        phases = {one.phase for one in self._entries()}
        is_bound = all(one.node for one in self.bench.things.values())
        over = {Phase.WAITING, Phase.RUNNING, Phase.COMPLETED, Phase.GONE}
        if phases - over or cluster.reservations or not is_bound:
            self.cases["not quiet"] += 1
            return
        if self._changed_at() + SLACK > self.bench.now:
            self.cases["still changing"] += 1
            return
        for entry in self._entries():
            work = self.bench.works.get(entry.uid)
            if work is None or entry not in cluster.waiting.queue or work.never_preempts:
                continue
            if entry.eviction_patience.until + SLACK > self.bench.now:
                self.cases["pauses"] += 1
                continue
            self._waits_rightly(work)

    def _waits_rightly(self, work: Workload) -> None:
        holders = [one.uid for one in self._entries() if one.phase is Phase.RUNNING]
        demand = tuple(self._sum(work).items())
        self._model.charges = {
            uid: (Designation(self.bench.works[uid].quota), self._charge(uid)) for uid in holders
        }
        where = Designation(work.quota)

        def fits(gone: frozenset[str]) -> bool:
            charges = self._model.charges
            left = Model(self._model.subtrees, {u: c for u, c in charges.items() if u not in gone})
            if not left.fits(where, demand):
                return False
            return fits_by_brute_force(self._hosts(gone), work.sets)

        rights = Rights(
            self._model,
            where,
            demand,
            work.priority,
            {uid: self.bench.works[uid].priority for uid in holders},
            self._free_for(work),
            fits,
            self.bench.settings.reclaim and bool(self._model.subtrees),
            self.bench.settings.preemption,
        )
        if fits(frozenset()):
            self.cases["lets others go first"] += 1
            return
        victims = rights.victims([uid for uid in holders if self._may_leave(uid)])
        self.cases["waits"] += 1
        self.cases["waits for minRunTime"] += rights.victims(holders) is not None
        assert victims is None, f"{work.uid} waits behind {victims}"

    def _sum(self, work: Workload) -> Counter[str]:
        found: Counter[str] = Counter()
        for one in work.sets:
            found.update(dict(one.request))
        return found

    def _charge(self, uid: str) -> Resources:
        return tuple(self._sum(self.bench.works[uid]).items())

    def _free_for(self, work: Workload) -> Callable[[str], int]:
        def free(resource: str) -> int:
            may = [
                host
                for host in self._hosts(frozenset())
                if any(
                    all(dict(host.node.allocatable).get(r, 0) >= n for r, n in one.request)
                    for one in work.sets
                )
            ]
            return sum(max(0, host.free.get(resource, 0)) for host in may)

        return free

    def _may_leave(self, uid: str) -> bool:
        """Whether it has run for its minimum run time, for a while."""
        view, shortest = self.bench.status[uid], self.bench.settings.min_run_time
        assert view.dispatch is not None
        least = shortest
        if view.eviction is not None:
            times = min(view.eviction.count, RUN_TIME_DOUBLES_MAX)
            least = max(shortest, RUN_TIME_DOUBLED) << times
        return view.dispatch.since + least + SLACK <= self.bench.now
