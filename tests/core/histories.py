"""Random histories of a bench, each drawn from a seed. A profile says what may happen in one.

Users, kubelets, nodes and the end of the dispatcher are drawn; requests are answered late, or not
at all. What a profile checks holds at any moment, or whenever everything has come to rest; the
bench checks everything that is kept twice after each pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from random import Random

from msgspec.structs import replace

from mcad.core.cluster import AWAITED
from mcad.core.commands import Command, WriteStatus
from mcad.core.events import AppWrapperSeen, NodeGone, NodeSeen, StatusRefused
from mcad.core.state.answer import Answer
from mcad.core.state.bounds import RUN_TIME_DOUBLED
from mcad.core.state.dispatch_pause import DispatchPause
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import RETAINING, TEARING_DOWN, Phase
from mcad.core.state.model import (
    Constraint,
    Dialect,
    DispatchPhase,
    DispatchRecord,
    Node,
    ObjectRef,
    Persisted,
    PodPhase,
    PodSet,
    Topology,
    Workload,
)
from mcad.core.state.reservation import EVICTIONS
from mcad.core.state.run_policy import FaultTolerance, Growth, Requeuing
from mcad.core.state.settings import Fit, Policy, Settings
from mcad.core.state.timers import Timer
from mcad.core.state.units import SECOND
from mcad.core.status import pod_counts
from tests.core.bench import Bench, Thing, node, workload
from tests.core.quotas import GOLD, SILVER, child, subtree, teams

LEAVES, SIZE = ("red", "blue", "green"), 800  # of three teams; of each of their three nodes
CONFLICT = Answer(409, "Conflict", "the object has been modified")
ENDED = (PodPhase.SUCCEEDED, PodPhase.FAILED)
Act = Callable[[], object]


class History:
    """What all profiles share. ``made`` counts the AppWrappers."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.made = 0
        self.bench = Bench(self.settings(), nodes=self.nodes())
        self.begin()

    def run(self, steps: int) -> None:
        """So many acts; at the end everything settles."""
        for _ in range(steps):
            self.random.choice(self.acts())()
            self.after_each()
        self.end()
        self.check()

    # -- what a profile says -------------------------------------------------------------------

    def settings(self) -> Settings:
        return Settings(placement_timeout=0)

    def nodes(self) -> list[Node]:
        raise NotImplementedError

    def begin(self) -> None:
        """What is there besides nodes."""

    def acts(self) -> list[Act]:
        """What may happen; what happens often is there more than once."""
        raise NotImplementedError

    def after_each(self) -> None:
        """After each act."""

    def end(self) -> None:
        self.bench.settle()

    def check(self) -> None:
        """What has to hold at rest."""

    # -- what may happen -----------------------------------------------------------------------

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def any_work(self) -> str:
        return self.random.choice(sorted(self.bench.works)) if self.bench.works else ""

    def any_object(self, *, running: bool = False) -> ObjectRef | None:
        """One of the objects, or of the bare pods that run."""
        there = self.bench.things.items()
        refs = [ref for ref, one in there if not running or one.phase is PodPhase.RUNNING]
        return self.random.choice(sorted(refs, key=str)) if refs else None

    def one_command(self) -> None:
        """A command is carried out, alone."""
        self.bench.decide()
        if self.bench.pending:
            self.bench.execute(self.bench.pending.pop(0))

    def conflict(self, of: str = "") -> None:
        """Another writer has changed the object before a write of ours."""
        writes = [one for one in self.bench.pending if isinstance(one, WriteStatus)]
        writes = [one for one in writes if of in ("", one.uid)]
        if writes:
            lost = self.random.choice(writes)
            self.bench.pending.remove(lost)
            self.bench.feed(StatusRefused(lost.uid, lost.serial, CONFLICT))

    def delete(self) -> None:
        if uid := self.any_work():
            self.bench.delete(uid)

    def stays(self) -> None:
        """No kubelet ends one of the pods."""
        if ref := self.any_object():
            self.bench.stubborn.add(ref.name)


class Lives(History):
    """Both dialects and all policies: every line of the table of phases."""

    def settings(self) -> Settings:
        draw = self.random
        return Settings(
            placement_timeout=draw.choice((0, 50 * SECOND)),
            protect_after=draw.choice((0, 30 * SECOND)),
            policy=draw.choice((Policy.BEST_EFFORT_FIFO, Policy.BACKFILL)),
            backoff=5 * SECOND,
            preemption=draw.random() < 0.4,
            min_run_time=draw.choice((0, 30 * SECOND)),
            preemption_grace=draw.choice((0, 0, 20 * SECOND)),
        )

    def nodes(self) -> list[Node]:
        return [node("n1", 300), node("n2", 200)]

    def begin(self) -> None:
        if self.chance(0.4):
            self.bench.share(*teams(500, red=250, blue=250))

    def acts(self) -> list[Act]:
        return [
            *[self.submit] * 2,
            self.submit_foreign,
            self.suspend,
            *[self.delete_rarely] * 2,
            *[self.pod_changes] * 3,
            *[self.time_passes] * 3,
            *[self.one_command] * 5,
            *[self.one_decision] * 2,
            *[self.conflict] * 2,
            *[self.interrupted] * 2,
            self.item_vanishes,
            self.crash,
            self.node_changes,
            self.tolerance_changes,
            self.another_leader,
        ]

    def after_each(self) -> None:
        if self.chance(0.25):
            self.bench.settle()
            self.check()

    # Users

    def submit(self) -> None:
        name = self.random.choice("abcd")
        uid = f"uid-{name}"
        if uid not in self.bench.works and uid not in self.bench.dispatcher.cluster.entries:
            self.bench.submit(self._drawn(name))

    def submit_foreign(self) -> None:
        """Another controller dispatched it before we came."""
        if self.chance(0.1) and "uid-theirs" not in self.bench.works:
            saved = Persisted("Running", self.bench.now, foreign=True)
            self.bench.submit(replace(self._drawn("theirs"), persisted=saved))

    def _drawn(self, name: str) -> Workload:
        draw = self.random
        dialect = draw.choice((Dialect.V1BETA1, Dialect.V1BETA2))
        pods = [draw.choice((50, 100, 200)) for _ in range(draw.choice((1, 2)))]
        work = workload(
            name,
            *pods,
            dialect=dialect,
            created=self.bench.now // SECOND * SECOND,
            tolerance=self._tolerance(),
            priority=draw.choice((0, 0, 1, 2)),
            quota=((GOLD, draw.choice(("red", "blue"))),),
            min_available=draw.choice((0, 0, 1, 2)),
            run_limit=draw.choice((0, 0, 40 * SECOND)),
            requeuing=Requeuing(30 * SECOND, draw.choice(list(Growth)), 0, draw.choice((0, 1))),
        )
        word = ("succeeded",) if draw.random() < 0.5 else ()
        return replace(work, items=tuple(replace(i, completion=word) for i in work.items))

    def _tolerance(self) -> FaultTolerance:
        draw = self.random
        return FaultTolerance(
            admission_grace=20 * SECOND,
            warmup_grace=40 * SECOND,
            failure_grace=draw.choice((0, 20)) * SECOND,
            retry_pause=draw.choice((0, 30)) * SECOND,
            retry_limit=draw.choice((0, 1, 3)),
            forceful_deletion_grace=draw.choice((None, 30 * SECOND)),
            deletion_on_failure_grace=draw.choice((0, 50)) * SECOND,
            success_ttl=draw.choice((None, 40 * SECOND)),
            terminal_exit_codes=(),
        )

    def suspend(self) -> None:
        if uid := self.any_work():
            self.bench.edit(uid, suspended=not self.bench.works[uid].suspended)

    def tolerance_changes(self) -> None:
        if uid := self.any_work():
            work = replace(self.bench.works[uid], tolerance=self._tolerance())
            self.bench.works[uid] = work
            self.bench.feed(AppWrapperSeen(work))

    def delete_rarely(self) -> None:
        if self.chance(0.6):
            self.delete()

    # The cluster

    def pod_changes(self) -> None:
        ref = self.any_object()
        if ref is None or (thing := self.bench.things[ref]).phase in ENDED:
            return
        if not thing.node:
            self.bench.bind(ref.name, on=self.random.choice(("n1", "n2")))
        else:
            self.bench.change(ref.name, phase=self.random.choice((ENDED[0], *ENDED)))
        if self.chance(0.2):
            self.bench.stubborn.add(ref.name)

    def item_vanishes(self) -> None:
        if self.bench.things and self.chance(0.3):
            self.bench.remove(self.any_object())

    def node_changes(self) -> None:
        if self.chance(0.4):
            self.bench.feed(NodeSeen(node("n1", self.random.choice((50, 300, 300)))))

    def time_passes(self) -> None:
        self.bench.advance(self.random.choice((1, 15, 25, 45, 120)))
        self.check()

    # Requests

    def one_decision(self) -> None:
        """Time passes, and nothing of what is decided then is carried out yet."""
        self.bench.now += self.random.choice((1, 30, 60)) * SECOND
        self.bench.decide()

    def interrupted(self) -> None:
        """Things go on to one of the writes that are waited for, which are soon over; there the
        object is changed or deleted."""
        for _ in range(30):
            self.bench.decide()
            awaited = self._awaited()
            if awaited and self.chance(0.3):
                uid = self.random.choice(awaited)
                act = self.random.choice((self.bench.delete, self.conflict, self.intent_found))
                act(uid)
                return
            if not self.bench.pending:
                self.bench.now += self.random.choice((1, 30)) * SECOND
            else:
                self.bench.execute(self.bench.pending.pop(0))

    def _awaited(self) -> list[str]:
        """The AppWrappers whose writes move them on."""
        uids = {one.uid for one in self.bench.pending if isinstance(one, WriteStatus)}
        entries_of = self.bench.dispatcher.cluster.entries
        return [u for u in sorted(uids & self.bench.works.keys()) if entries_of[u].phase in AWAITED]

    def crash(self) -> None:
        if self.chance(0.4):
            self.bench.crash()

    def another_leader(self) -> None:
        """Another process believes that it leads, and has recorded an intent (P12)."""
        entries = self.bench.dispatcher.cluster.entries.values()
        waiting = [one for one in entries if one.phase in (Phase.WAITING, Phase.INTENDING)]
        if waiting and not self.chance(0.5):
            self.intent_found(self.random.choice(waiting).uid)

    def intent_found(self, uid: str) -> None:
        """It is another one than ours, if there is one of ours."""
        found, work = self.bench.dispatcher.cluster.entries[uid], self.bench.works[uid]
        if uid not in self.bench.status or found.phase not in (Phase.WAITING, Phase.INTENDING):
            return
        record = DispatchRecord(
            found.attempt + 1 - (found.phase is Phase.INTENDING) + 1,
            0,
            DispatchPhase.CREATING,
            work.payload,
            tuple(item.ref for item in work.items),
            self.bench.now,
        )
        self.bench.status[uid] = replace(self.bench.status[uid], dispatch=record)
        self.bench.feed(AppWrapperSeen(self.bench.observed(uid)))

    def check(self) -> None:
        cluster = self.bench.dispatcher.cluster
        for uid, one in cluster.entries.items():
            assert one.phase is Phase.GONE or uid in self.bench.works
            keeps = one.phase in RETAINING or one.phase in TEARING_DOWN or one.phase is Phase.GONE
            mine = [ref for ref, t in self.bench.things.items() if t.child.workload == uid]
            assert keeps or not mine, f"{one.title} is {one.phase} and has {mine}"
            if one.phase in (Phase.FAILED, Phase.DELETED, Phase.COMPLETED):
                assert not cluster.capacity.gangs.exists(uid), f"{one.title}: room"
            by = one.eviction.by if one.eviction is not None else ""
            assert one.dispatch is None or one.dispatch.preemptor in ("", by)
            if one.phase is Phase.PAUSING:
                assert cluster.capacity.gangs.exists(uid)
            if one.phase in pod_counts.LIVE and not one.workload.deleting:
                told = pod_counts.are_right(one, cluster.capacity)
                later = Timer.COUNTS in one.timers or uid in cluster.agenda.to_judge
                assert told or later, f"{one.title}: pods that are not told of"
            if one.phase in (Phase.KEEPING, Phase.PAUSING) and not one.workload.deleting:
                assert one.timers, f"{one.title} is {one.phase} for ever"


class Teams(History):
    """Three teams on three nodes that evict each other, at any pace."""

    MIN_RUN_TIME = (0, 40 * SECOND)

    def settings(self) -> Settings:
        draw = self.random
        return Settings(
            preemption=draw.random() < 0.7,
            min_run_time=draw.choice(self.MIN_RUN_TIME),
            preemption_grace=draw.choice((0, 0, 15 * SECOND)),
            protect_after=self.protection(),
            placement_timeout=0,
            backoff=6 * SECOND,
        )

    def protection(self) -> int:
        return self.random.choice((0, 60 * SECOND))

    def nodes(self) -> list[Node]:
        return [node(f"n{i}", SIZE) for i in range(3)]

    def begin(self) -> None:
        self.pairs: Counter[tuple[str, str]] = Counter()
        self._known: dict[str, int] = {}
        self.bench.heard = self.heard
        self._has_trees = self.chance(0.8)
        if self._has_trees:
            self.bench.share(*teams(3 * SIZE, red=SIZE, blue=SIZE, green=SIZE))
            if self.chance(0.3):
                other = teams(3 * SIZE, red=2 * SIZE, blue=SIZE, green=0)
                self.bench.share(*(replace(one, tree=SILVER, uid=f"{one.uid}-2") for one in other))

    def acts(self) -> list[Act]:
        return [*self.quiet_acts(), self.delete, self.bench.crash, self.stays, self.shrinks]

    def quiet_acts(self) -> list[Act]:
        return [*[self.submit] * 2, self.pods, *[self.time_passes] * 2, self.commands]

    def end(self) -> None:
        self.pass_by(200)
        self.after_each()

    def pass_by(self, seconds: int) -> None:
        self.bench.advance(seconds)

    def submit(self) -> None:
        if len(self.bench.works) >= 9:
            return
        draw = self.random
        pods = [draw.choice((200, 300, 400, 700)) for _ in range(draw.choice((1, 1, 2, 3)))]
        work = workload(f"w{self.made}", *pods, priority=draw.randint(0, 3))
        leaf, other = draw.choice(LEAVES), draw.choice(LEAVES)
        self.made += 1
        created = self.bench.now // SECOND * SECOND
        self.bench.submit(replace(work, created=created, quota=((GOLD, leaf), (SILVER, other))))

    def pods(self) -> None:
        """Each pod without a node gets one with room, and one that runs may end."""
        for ref, thing in list(self.bench.things.items()):
            if not thing.node and not thing.child.terminating:
                self.place(ref, thing)
            elif thing.phase is PodPhase.RUNNING and self.chance(0.15):
                self.bench.change(ref.name, phase=PodPhase.SUCCEEDED)

    def place(self, ref: ObjectRef, thing: Thing) -> None:
        """kube-scheduler binds a pod to any node that has room and is not excluded."""
        excluded = self.bench.excluded.get(thing.child.workload, ())
        names = [name for name in ("n0", "n1", "n2") if name not in excluded]
        fit = [name for name in names if self._free(name) >= _cpu(thing)]
        if fit:
            self.bench.bind(ref.name, on=self.random.choice(fit))

    def _free(self, name: str) -> int:
        there = [t for t in self.bench.things.values() if t.node == name]
        return SIZE - sum(_cpu(t) for t in there if t.phase is not PodPhase.SUCCEEDED)

    def time_passes(self) -> None:
        self.pass_by(self.random.choice((1, 5, 20, 50)))
        self.check()

    def commands(self) -> None:
        for _ in range(self.random.randint(1, 4)):
            self.one_command()

    def shrinks(self) -> None:
        if self._has_trees:
            red = self.random.choice((SIZE // 2, SIZE))
            self.bench.share(*teams(3 * SIZE, red=red, blue=SIZE, green=SIZE))

    def heard(self, commands: tuple[Command, ...]) -> None:
        """Evictions are counted one by one, each after twice the minimum run time of the one
        before."""
        for command in commands:
            if not isinstance(command, WriteStatus) or command.status.eviction is None:
                continue
            uid, evicted, record = command.uid, command.status.eviction, command.status.dispatch
            if (before := self._known.get(uid, 0)) == evicted.count:
                continue
            assert record is not None
            assert evicted.count == before + 1
            shortest = self.bench.settings.min_run_time
            least = max(shortest, RUN_TIME_DOUBLED) << before if before else shortest
            assert evicted.at - record.since >= least, uid
            self._known[uid] = evicted.count
            self.pairs[uid, evicted.by] += 1

    def check(self) -> None:
        cluster = self.bench.dispatcher.cluster
        for uid in cluster.evictions:
            assert cluster.entries[uid].phase in (Phase.CREATING, Phase.CONFIRMING, Phase.RUNNING)
        evicted_for = [owner for owner in cluster.reservations.values() if _evicts(owner)]
        for owner in evicted_for:
            for uid in owner.waits_for:
                others = [one for one in evicted_for if one is not owner and uid in one.waits_for]
                assert not others or uid not in cluster.evictions, "leaves for one only"


class QuietTeams(Teams):
    """Nothing goes wrong besides."""

    acts = Teams.quiet_acts

    def protection(self) -> int:
        return 0


class RackedTeams(Teams):
    """Some AppWrappers have to be, or should be, in one of two racks; kube-scheduler obeys."""

    RACKS: Mapping[str, str] = {"n0": "r1", "n1": "r1", "n2": "r2"}
    racked = 0

    def settings(self) -> Settings:
        levels = self.random.choice(((), ("block", "rack")))
        return replace(super().settings(), topology_levels=levels)

    def nodes(self) -> list[Node]:
        return [
            replace(one, labels=(("block", "b"), ("rack", self.RACKS[one.name])))
            for one in super().nodes()
        ]

    def place(self, ref: ObjectRef, thing: Thing) -> None:
        """A pod goes nowhere else than to its domain."""
        view = self.bench.status.get(thing.child.workload)
        record = view.dispatch if view is not None else None
        found = record.domains_of(thing.child.item) if record is not None else ()
        excluded = self.bench.excluded.get(thing.child.workload, ())
        labels = {one.name: one.labels for one in self.nodes()}
        fit = [
            name
            for name in self.RACKS
            if name not in excluded
            and self._free(name) >= _cpu(thing)
            and all(one.domain in labels[name] for one in found)
        ]
        self.racked += len(found)
        if fit:
            self.bench.bind(ref.name, on=self.random.choice(fit))

    def submit(self) -> None:
        before = {*self.bench.works}
        super().submit()
        draw = self.random
        asked = draw.choice((None, *[Topology(("rack",), group="g")] * 2, self._prefers()))
        for uid in self.bench.works.keys() - before:
            sets = tuple(replace(one, topology=asked) for one in self.bench.works[uid].sets)
            self.bench.works[uid] = replace(self.bench.works[uid], sets=sets)
            self.bench.feed(AppWrapperSeen(self.bench.works[uid]))

    def _prefers(self) -> Topology:
        return Topology((self.random.choice(("rack", "block")),), required=False)

    def check(self) -> None:
        """The pods of an AppWrapper that has to be in one rack are in one."""
        super().check()
        cluster = self.bench.dispatcher.cluster
        for uid, entry in cluster.entries.items():
            required = [one for one in entry.workload.sets if one.topology is not None]
            if required and required[0].topology is not None and required[0].topology.required:
                nodes = cluster.capacity.gangs.nodes_of(uid)
                assert len({self.RACKS[name] for name in nodes}) <= 1, entry.title


def _evicts(owner: Entry) -> bool:
    return owner.reservation is not None and owner.reservation.reason in EVICTIONS


def _cpu(thing: Thing) -> int:
    return dict(thing.request).get("cpu", 0)


class Places(History):
    """Nodes of two zones come and go, and so do the shares of two teams; classes of pods may go to
    nodes that overlap in part."""

    NAMES = tuple(f"n{number}" for number in range(5))
    TEAMS = ("red", "green")

    def settings(self) -> Settings:
        draw = self.random
        return Settings(
            fit=draw.choice((Fit.NODES, Fit.NODES, Fit.NODES, Fit.AGGREGATE)),
            policy=draw.choice((Policy.BEST_EFFORT_FIFO, Policy.STRICT_FIFO)),
            head_of_line_holding=draw.choice((0, 0, 20 * SECOND)),
        )

    def nodes(self) -> list[Node]:
        return [self._node(name, 3 + at % 3, "ab"[at % 2]) for at, name in enumerate(self.NAMES)]

    def _node(self, name: str, size: int, zone: str) -> Node:
        return replace(node(name, 100 * size), labels=(("zone", zone),))

    def acts(self) -> list[Act]:
        return [
            *[self.submit] * 5,
            self.bench.settle,
            self.bench.decide,
            self.bind,
            self.pod_ends,
            self.delete,
            lambda: self.bench.advance(10 * self.random.randint(0, 9)),
            *[self.node_comes] * 2,
            self.node_goes,
            self.share,
        ]

    def submit(self) -> None:
        draw = self.random
        self.made += 1
        sizes = [draw.choice((100, 150, 200, 300, 600)) for _ in range(draw.randint(1, 4))]
        work = workload(f"w{self.made}", *sizes)
        zone, odd = (
            draw.choice(("", "", "", "a", "b")),
            tuple(draw.sample(("spread", "volumes"), 2)),
        )
        # Only the first pod is bound to the zone: pools that overlap in part are the hardest.
        where = Constraint(selector=(("zone", zone),) if zone else ())
        first = replace(work.sets[0], constraint=where, unmodelled=draw.choice(((), odd)))
        team = self.TEAMS[self.made % len(self.TEAMS)]
        sets = _kept_apart(Random(f"{self.made} {sizes} {zone}"), (first, *work.sets[1:]))
        self.bench.submit(replace(work, sets=sets, quota=((GOLD, team),)))

    def bind(self) -> None:
        waiting = [ref.name for ref, thing in self.bench.things.items() if not thing.node]
        if waiting and self.bench.nodes:
            self.bench.bind(self.random.choice(waiting), self.random.choice(self.bench.nodes).name)

    def pod_ends(self) -> None:
        if ref := self.any_object(running=True):
            self.bench.change(ref.name, phase=PodPhase.SUCCEEDED)

    def node_comes(self) -> None:
        draw = self.random
        one = self._node(draw.choice(self.NAMES), draw.randint(1, 5), draw.choice("ab"))
        self.bench.nodes = [*(n for n in self.bench.nodes if n.name != one.name), one]
        self.bench.feed(NodeSeen(one))

    def node_goes(self) -> None:
        name = self.random.choice(self.NAMES)
        self.bench.nodes = [one for one in self.bench.nodes if one.name != name]
        self.bench.feed(NodeGone(name))

    def share(self) -> None:
        """Two teams share so much, or there are no shares."""
        root, part = self.random.choice((0, 4, 8, 16)), self.random.randint(1, 8)
        hard = self.chance(0.5)
        if not root:
            self.bench.unshare(*list(self.bench.quotas))
            return
        below = (child(team, hard, cpu=100 * part) for team in self.TEAMS)
        self.bench.share(
            subtree("root", child("root", cpu=100 * root)), subtree("teams", *below, parent="root")
        )


class PausedTeams(Teams):
    """Dispatch is paused for one, for some or for all, and resumed."""

    SCOPES = (
        {},
        {"namespace": "default"},
        {"namespace": "elsewhere"},
        {"tree": GOLD, "node": "red"},
        {"tree": GOLD, "node": "root"},
        {"tree": SILVER, "node": "none"},
    )

    def begin(self) -> None:
        super().begin()
        self.paused = 0
        self._attempts: dict[str, int] = {}
        self._held: set[str] = set()

    def acts(self) -> list[Act]:
        return [*super().acts(), *[self.pause] * 2, *[self.resume] * 2]

    def pause(self) -> None:
        number = self.random.randrange(len(self.SCOPES))
        pause = DispatchPause(f"uid-p{number}", f"p{number}", **self.SCOPES[number])
        self.bench.pause(replace(pause, reason=self.random.choice(("", "maintenance"))))

    def resume(self) -> None:
        if self.bench.pauses:
            self.bench.resume(self.random.choice(sorted(self.bench.pauses)))

    def after_each(self) -> None:
        """What a DispatchPause concerned before the act, and concerns now, has not started."""
        super().after_each()
        cluster = self.bench.dispatcher.cluster
        for uid in self._held & {*self.bench.works}:
            entry = cluster.entries.get(uid)
            if entry is not None and self._is_concerned(entry):
                assert entry.attempt == self._attempts[uid], uid
        waiting = [e for e in cluster.entries.values() if e.phase is Phase.WAITING]
        self._held = {one.uid for one in waiting if self._is_concerned(one)}
        self._attempts = {one.uid: one.attempt for one in waiting}
        self.paused += len(self._held)

    def _is_concerned(self, entry: Entry) -> bool:
        """By the rules in plain words, without the code under test."""
        work, leaves = entry.workload, dict(entry.workload.quota)
        trees = self.bench.dispatcher.cluster.forest.trees

        def concerns(one: DispatchPause) -> bool:
            if one.namespace:
                return one.namespace == work.namespace
            if not one.tree:
                return True
            tree = trees.get(one.tree)
            if tree is None:
                return False
            return one.node in ("root", leaves[one.tree]) and one.node in tree.nodes

        return any(map(concerns, self.bench.pauses.values()))


def _kept_apart(rng: Random, sets: tuple[PodSet, ...]) -> tuple[PodSet, ...]:
    """Now and then with a term of anti-affinity that some have, and that selects some."""
    if rng.random() >= 0.3:
        return sets
    made = []
    for one in sets:
        repels, repelled = ((0,) if rng.random() < 0.5 else () for _ in range(2))
        cap = 1 if repels and repelled else 0
        made.append(replace(one, cap=cap, repels=repels, repelled=repelled))
    return tuple(made)
