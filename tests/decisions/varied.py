"""Random histories with all that a verdict depends on: constraints, host ports, anti-affinity,
GPUs, topology domains, taints, pods of others, shares and pauses, under every policy."""

from __future__ import annotations

from mcad.core.events import NodeGone, NodeSeen, PodGone, PodSeen
from mcad.core.nodes.filters import admits
from mcad.core.state.dispatch_pause import DispatchPause
from mcad.core.state.model import (
    Dialect,
    HostPort,
    Node,
    ObjectRef,
    PodPhase,
    PodSet,
    Topology,
    Workload,
)
from mcad.core.state.records import replace
from mcad.core.state.settings import Fairness, Fit, Policy, Settings
from mcad.core.state.units import SECOND
from tests.core.bench import Thing, node, workload
from tests.core.builders import GPU, needs, on, pod, port, ports_conflict, taint, tolerates
from tests.core.histories import ENDED, LEAVES, Act, History
from tests.core.quotas import GOLD, child, subtree

LEVELS = ("zone", "rack")
MOST = 12
"""AppWrappers at one time."""


class Varied(History):
    """Up to six nodes in two zones and three racks."""

    def settings(self) -> Settings:
        draw = self.random
        return Settings(
            fit=draw.choice((*[Fit.NODES] * 4, Fit.AGGREGATE)),
            policy=draw.choice(
                (*[Policy.BEST_EFFORT_FIFO] * 2, Policy.STRICT_FIFO, Policy.BACKFILL)
            ),
            fairness=draw.choice((Fairness.NONE, Fairness.NONE, Fairness.NAMESPACE, Fairness.LEAF)),
            backoff=5 * SECOND,
            head_of_line_holding=draw.choice((0, 0, 20 * SECOND)),
            placement_timeout=draw.choice((0, 0, 50 * SECOND)),
            binding_wait=draw.choice((0, 5 * SECOND)),
            protect_after=draw.choice((0, 20 * SECOND, 60 * SECOND)),
            preemption=draw.random() < 0.5,
            reclaim=draw.random() < 0.8,
            min_run_time=draw.choice((0, 30 * SECOND)),
            preemption_grace=draw.choice((0, 0, 15 * SECOND)),
            quota_grace=draw.choice((0, 30 * SECOND)),
            topology_levels=draw.choice(((), LEVELS)),
        )

    def nodes(self) -> list[Node]:
        return [self._node(number) for number in range(self.random.randint(2, 6))]

    def _node(self, number: int) -> Node:
        draw = self.random
        labels = {"zone": "ab"[number % 2], "rack": f"r{number % 3}"}
        has = {"cpu": draw.choice((300, 400, 800)), "pods": draw.choice((110, 110, 3))}
        if self.chance(0.5):
            has[GPU] = draw.choice((2, 4))
        return replace(
            node(f"n{number}"),
            allocatable=tuple(sorted(has.items())),
            labels=tuple(sorted(labels.items())),
            taints=(taint("team"),) if self.chance(0.1) else (),
            unschedulable=self.chance(0.05),
            ready=not self.chance(0.05),
        )

    def begin(self) -> None:
        self._others = 0
        self._topology: Topology | None = None
        if self.chance(0.6):
            self.share()

    def acts(self) -> list[Act]:
        return [
            *[self.submit] * 8,
            *[self.bind] * 4,
            *[self.pod_ends] * 2,
            *[self.delete] * 2,
            self.bench.settle,
            *[self.time_passes] * 4,
            *[self.one_command] * 3,
            self.conflict,
            self.bench.crash,
            *[self.node_changes] * 2,
            self.node_goes,
            self.share,
            self.suspend,
            self.pause,
            self.stays,
            self.other_pod,
        ]

    # Users

    def submit(self) -> None:
        if len(self.bench.works) >= MOST:
            return
        draw = self.random
        self.made += 1
        work = workload(
            f"w{self.made}",
            *[100] * draw.choice((1, 1, 2, 3, 5)),
            priority=draw.choice((0, 0, 0, 1, 5)),
            dialect=draw.choice(list(Dialect)),
            created=self.bench.now // SECOND * SECOND,
            namespace="default",
            quota=((GOLD, draw.choice(LEAVES)),) if self.chance(0.97) else (),
            run_limit=draw.choice((0, 0, 60 * SECOND)),
        )
        self.bench.submit(replace(work, sets=self._sets(work)))

    def _sets(self, work: Workload) -> tuple[PodSet, ...]:
        """Two kinds of pods at most, so that some of the sets are equal but for their items."""
        asked = Topology((self.random.choice(LEVELS),), self.chance(0.7), "g")
        self._topology = asked if self.chance(0.5) else None
        kinds = [self._kind(work.sets[0]) for _ in range(self.random.choice((1, 1, 2)))]
        made = (self.random.choice(kinds) for _ in work.sets)
        return tuple(replace(one, item=number) for number, one in enumerate(made))

    def _kind(self, one: PodSet) -> PodSet:
        draw = self.random
        where = draw.choice(
            (
                *[on()] * 4,
                on(zone="a"),
                on(zone="b"),
                on((needs("rack", "NotIn", "r1"),)),
                on(tolerating=[tolerates("team")]),
            )
        )
        request = {"cpu": draw.choice((50, 100, 200, 350)), "pods": 1}
        if self.chance(0.2):
            request[GPU] = draw.choice((1, 2))
        repels = (0,) if self.chance(0.15) else ()
        repelled = (0,) if self.chance(0.15) else ()
        return replace(
            one,
            request=tuple(sorted(request.items())),
            constraint=where,
            topology=self._topology if self.chance(0.4) else None,
            ports=draw.choice((*[()] * 6, (port(80),), (port(80), port(81)))),
            cap=1 if repels and repelled else draw.choice((0, 0, 0, 0, 1)),
            repels=repels,
            repelled=repelled,
        )

    def suspend(self) -> None:
        if (uid := self.any_work()) and (self.bench.works[uid].suspended or self.chance(0.3)):
            self.bench.edit(uid, suspended=not self.bench.works[uid].suspended)

    def pause(self) -> None:
        if self.bench.pauses:
            self.bench.resume()
        elif self.chance(0.2):
            scope = self.random.choice(({"namespace": "default"}, {"tree": GOLD, "node": "red"}))
            self.bench.pause(DispatchPause("uid-p", "p", **scope))

    def share(self) -> None:
        """Three teams get other shares, or the trees are deleted."""
        draw = self.random
        if self.bench.quotas and self.chance(0.2):
            self.bench.unshare(*list(self.bench.quotas))
            return
        below = [
            child(name, self.chance(0.3), cpu=draw.choice((200, 400, 800)), **self._gpus())
            for name in LEAVES
        ]
        root = child("root", cpu=draw.choice((1200, 2400)))
        self.bench.share(subtree("root", root), subtree("teams", *below, parent="root"))

    def _gpus(self) -> dict[str, int]:
        return {GPU: self.random.choice((1, 2, 4))} if self.chance(0.3) else {}

    # The cluster

    def bind(self) -> None:
        """kube-scheduler binds pods to nodes that admit them and have room."""
        for ref, thing in list(self.bench.things.items()):
            if thing.node or thing.child.terminating or self.chance(0.3):
                continue
            open_to = [one.name for one in self.bench.nodes if self._has_place(one, ref, thing)]
            if open_to:
                self.bench.bind(ref.name, on=self.random.choice(open_to))

    def _has_place(self, there: Node, ref: ObjectRef, thing: Thing) -> bool:
        work = self.bench.works.get(thing.child.workload)
        if work is None or not admits(there, work.sets[thing.child.item].constraint):
            return False
        on_it = [r for r, t in self.bench.things.items() if t.node == there.name and _runs(t)]
        free = dict(there.allocatable)
        for other in on_it:
            for name, amount in self.bench.things[other].request:
                free[name] = free.get(name, 0) - amount
        ports = [one for other in on_it for one in self._ports(other)]
        conflicts = any(ports_conflict(one, other) for one in self._ports(ref) for other in ports)
        return not conflicts and all(free.get(name, 0) >= n for name, n in thing.request)

    def _ports(self, ref: ObjectRef) -> tuple[HostPort, ...]:
        child_of = self.bench.things[ref].child
        work = self.bench.works.get(child_of.workload)
        return work.sets[child_of.item].ports if work is not None else ()

    def pod_ends(self) -> None:
        ref = self.any_object(running=True)
        if ref is not None:
            self.bench.change(ref.name, phase=self.random.choice((*[ENDED[0]] * 4, ENDED[1])))

    def other_pod(self) -> None:
        """A pod of no AppWrapper comes, or goes again."""
        if self._others and self.chance(0.5):
            self.bench.feed(PodGone(f"other-{self._others}"))
            self._others = 0
        elif self.bench.nodes:
            self.bench.feed(PodGone(f"other-{self._others}"))
            self._others += 1
            where = self.random.choice(self.bench.nodes).name
            self.bench.feed(PodSeen(pod(f"other-{self._others}", where, "100m")))

    def node_changes(self) -> None:
        one = self._node(self.random.randrange(6))
        self.bench.nodes = [*(n for n in self.bench.nodes if n.name != one.name), one]
        self.bench.feed(NodeSeen(one))

    def node_goes(self) -> None:
        if not self.bench.nodes:
            return
        name = self.random.choice(self.bench.nodes).name
        self.bench.nodes = [one for one in self.bench.nodes if one.name != name]
        self.bench.feed(NodeGone(name))
        for ref in [r for r, t in self.bench.things.items() if t.node == name]:
            self.bench.remove(ref)

    def time_passes(self) -> None:
        self.bench.advance(self.random.choice((1, 5, 20, 40, 90)))


def _runs(thing: Thing) -> bool:
    return thing.phase not in (PodPhase.SUCCEEDED, PodPhase.FAILED)
