"""The dispatcher against brute force on small worlds: order is kept, gangs are whole, none waits
for room that is there.

After every rest of a random history (arrivals, priorities, bindings, ends, deletions, node changes,
crashes) an independent walk over what exists judges what the dispatcher left waiting.
"""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mcad.core.cycle import admit
from mcad.core.events import NodeGone, NodeSeen
from mcad.core.state.bounds import WORK_PER_PASS
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import PodPhase
from mcad.core.state.quota_records import Designation, QuotaSubtree
from mcad.core.state.records import replace
from mcad.core.state.work_bounds import VERDICT_STEPS
from tests import budget
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.quotas import Model, child, subtree

NODES = ("n1", "n2", "n3")


def free_on_nodes(bench: Bench) -> dict[str, int]:
    """Milli-CPU left on each node by what is bound, computed from the cluster alone."""
    free = {one.name: dict(one.allocatable)["cpu"] for one in bench.nodes}
    for thing in bench.things.values():
        if thing.node in free and thing.phase not in (PodPhase.SUCCEEDED, PodPhase.FAILED):
            free[thing.node] -= dict(thing.request)["cpu"]
    return free


def unbound(bench: Bench) -> list[int]:
    """Requests of dispatched pods that hold no node yet."""
    nodes = {one.name for one in bench.nodes}
    ended = (PodPhase.SUCCEEDED, PodPhase.FAILED)
    return [
        dict(thing.request)["cpu"]
        for thing in bench.things.values()
        if thing.node not in nodes and thing.phase not in ended
    ]


def can_place(free: list[int], pods: list[int]) -> bool:
    """Whether there is any assignment of pods to nodes; tries them all."""
    for choice in product(range(len(free)), repeat=len(pods)):
        left = list(free)
        for where, amount in zip(choice, pods, strict=True):
            left[where] -= amount
        if all(amount >= 0 for amount in left):
            return True
    return not pods


AT_ONCE = replace(PATIENT, quota_grace=0)
"""A tree that is felled limits nothing from then on."""


class Histories(RuleBasedStateMachine):
    """Random histories of a small cluster."""

    @initialize(sizes=st.lists(st.integers(2, 6), min_size=1, max_size=3))
    def start(self, sizes: list[int]) -> None:
        nodes = [node(name, 100 * size) for name, size in zip(NODES, sizes, strict=False)]
        self.bench = Bench(AT_ONCE, nodes=nodes)
        self.serial = 0

    @rule(pods=st.lists(st.integers(1, 4), min_size=1, max_size=2), priority=st.integers(0, 1))
    def submit(self, pods: list[int], priority: int) -> None:
        if len(self.bench.works) >= 6:
            return
        self.serial += 1
        amounts = [100 * p for p in pods]
        created = self.bench.now
        name = f"w{self.serial}"
        self.bench.submit(workload(name, *amounts, priority=priority, created=created))

    @rule()
    def settle(self) -> None:
        self.bench.settle()
        self.judge()

    @rule(pick=st.randoms(use_true_random=False))
    def bind_one(self, pick) -> None:
        free = free_on_nodes(self.bench)
        waiting = sorted(r.name for r, t in self.bench.things.items() if not t.node)
        if not waiting or not free:
            return
        name = pick.choice(waiting)
        need = next(dict(t.request)["cpu"] for r, t in self.bench.things.items() if r.name == name)
        fitting = sorted(n for n, amount in free.items() if amount >= need)
        if fitting:
            self.bench.bind(name, pick.choice(fitting))

    @rule(pick=st.randoms(use_true_random=False))
    def end_one(self, pick) -> None:
        running = sorted(
            r.name for r, t in self.bench.things.items() if t.phase is PodPhase.RUNNING
        )
        if running:
            self.bench.change(pick.choice(running), phase=PodPhase.SUCCEEDED)

    @rule(pick=st.randoms(use_true_random=False))
    def delete_one(self, pick) -> None:
        if self.bench.works:
            self.bench.delete(pick.choice(sorted(self.bench.works)))

    @rule(which=st.sampled_from(NODES), size=st.integers(1, 6))
    def change_node(self, which: str, size: int) -> None:
        changed = node(which, 100 * size)
        others = [one for one in self.bench.nodes if one.name != which]
        self.bench.nodes = [*others, changed]
        self.bench.feed(NodeSeen(changed))

    @rule(which=st.sampled_from(NODES))
    def lose_node(self, which: str) -> None:
        self.bench.nodes = [one for one in self.bench.nodes if one.name != which]
        self.bench.feed(NodeGone(which))

    @rule()
    def crash(self) -> None:
        self.bench.crash()

    @invariant()
    def books_balance(self) -> None:
        if hasattr(self, "bench"):
            self.bench.dispatcher.cluster.capacity.check()

    def judge(self) -> None:
        """What the dispatcher left waiting, judged by hand."""
        self.all_or_nothing()
        self.nobody_waits_for_room_that_is_there()
        self.equal_shapes_keep_their_order()

    def all_or_nothing(self) -> None:
        for uid, work in self.bench.works.items():
            made = [t for t in self.bench.things.values() if t.child.workload == uid]
            view = self.bench.status[uid]
            assert len(made) == (len(work.items) if view.state == "Running" else 0)
        assert max(self.bench.created.values(), default=1) == 1

    def nobody_waits_for_room_that_is_there(self) -> None:
        """With no reservation outstanding the verdict must be brute force's; with some, a gang
        that cannot even be placed beside nothing must not run (reservations only take room)."""
        free = [max(0, amount) for amount in free_on_nodes(self.bench).values()]
        promised = unbound(self.bench)
        for entry in self.bench.dispatcher.cluster.entries.values():
            if entry.phase is not Phase.WAITING:
                continue
            pods = [dict(s.request)["cpu"] for s in entry.workload.sets]
            if not promised:
                assert not can_place(free, pods), f"{entry.title} fits and waits"

    def equal_shapes_keep_their_order(self) -> None:
        entries = self.bench.dispatcher.cluster.entries.values()
        waiting = [e for e in entries if e.phase is Phase.WAITING]
        running = [e for e in entries if e.phase is Phase.RUNNING and e.dispatch]
        for one in waiting:
            for other in running:
                same = [s.request for s in one.workload.sets] == [
                    s.request for s in other.workload.sets
                ]
                older = one.first_seen < other.first_seen
                equal = one.workload.priority == other.workload.priority
                arrived = other.dispatch is not None and one.first_seen < other.dispatch.since
                same = same and one.workload.quota == other.workload.quota
                assert not (same and older and equal and arrived), (one.title, other.title)


TEAMS = ("red", "green", "blue")


def tree_of(root: int, shares: list[int], hard: list[bool]) -> list[QuotaSubtree]:
    """Three teams, of which the last two are below another node."""
    made = [child(n, h, cpu=100 * s) for n, s, h in zip(TEAMS, shares, hard, strict=False)]
    inner = child("inner", hard[3], cpu=100 * shares[3])
    return [
        subtree("root", child("root", cpu=100 * root)),
        subtree("teams", made[0], inner, parent="root"),
        subtree("inner", *made[1:], parent="inner"),
    ]


class Shares(Histories):
    """The same with a quota tree that is edited now and then; its model says which may go."""

    @initialize(sizes=st.sampled_from([[], [], [], [3, 4], [2, 6, 3]]))
    def start(self, sizes: list[int]) -> None:
        """Mostly there is room for all on a node that stays."""
        super().start(sizes)
        if not sizes:
            self.bench.nodes.append(node("large", 100_000))
            self.bench.feed(NodeSeen(self.bench.nodes[0]))
        self.edit_tree(8, [3, 3, 3, 6], [False] * 4)

    @rule(
        root=st.integers(1, 12),
        shares=st.lists(st.integers(0, 6), min_size=4, max_size=4),
        hard=st.lists(st.booleans(), min_size=4, max_size=4),
    )
    def edit_tree(self, root: int, shares: list[int], hard: list[bool]) -> None:
        self.bench.share(*tree_of(root, shares, hard))
        self.settle()

    @rule(pick=st.randoms(use_true_random=False))
    def delete_one(self, pick) -> None:
        super().delete_one(pick)
        self.settle()

    @rule()
    def fell_tree(self) -> None:
        self.bench.unshare(*list(self.bench.quotas))

    @rule(
        gangs=st.lists(
            st.tuples(
                st.lists(st.integers(1, 4), min_size=1, max_size=2),
                st.sampled_from([*TEAMS, *TEAMS, "nobody"]),
                st.integers(0, 1),
            ),
            min_size=1,
            max_size=6,
        )
    )
    def submit(self, gangs: list[tuple[list[int], str, int]]) -> None:
        for pods, team, priority in gangs[: 6 - len(self.bench.works)]:
            self.serial += 1
            amounts = [100 * p for p in pods]
            work = workload(f"w{self.serial}", *amounts, priority=priority)
            self.bench.submit(replace(work, created=self.bench.now, quota=(("gold", team),)))
        self.settle()

    @invariant()
    def books_balance(self) -> None:
        if hasattr(self, "bench"):
            self.bench.dispatcher.cluster.admission.check()

    def nobody_waits_for_room_that_is_there(self) -> None:
        free = [max(0, amount) for amount in free_on_nodes(self.bench).values()]
        promised, cluster = unbound(self.bench), self.bench.dispatcher.cluster
        model = Model(dict(self.bench.quotas))
        for entry in cluster.entries.values():
            if cluster.capacity.gangs.exists(entry.uid):
                leaf = dict(entry.record.quota).get("gold", dict(entry.workload.quota).get("gold"))
                designation = Designation((("gold", leaf),) if leaf else ())
                amounts = [dict(one.request) for one in entry.workload.sets]
                total = sum(one["cpu"] for one in amounts)
                model.charges[entry.uid] = (designation, (("cpu", total),))
        for entry in cluster.entries.values():
            if entry.phase is not Phase.WAITING:
                continue
            pods = [dict(s.request)["cpu"] for s in entry.workload.sets]
            if model.fits(Designation(entry.workload.quota), (("cpu", sum(pods)),)):
                assert max(free, default=0) < sum(promised) + sum(pods), f"{entry.title} waits"
                assert promised or not can_place(free, pods), f"{entry.title} fits and waits"


class ShortPasses(Histories):
    """The same, with passes that end after a verdict or two."""

    @initialize(steps=st.sampled_from([1, 2 * VERDICT_STEPS, 4 * VERDICT_STEPS]))
    def shorten(self, steps: int) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(admit, "WORK_PER_PASS", steps)

    def teardown(self) -> None:
        if hasattr(self, "patch"):
            self.patch.undo()


class ShortPassesWithShares(ShortPasses, Shares):
    """Passes that end while one is looked at for all that wait for the same."""


def _histories(count: int) -> profile:
    return profile(max_examples=budget.examples(count), stateful_step_count=30, deadline=None)


TestHistories = Histories.TestCase
TestHistories.settings = _histories(150)
TestShares = Shares.TestCase
TestShares.settings = _histories(100)
TestShortShares = ShortPassesWithShares.TestCase
TestShortShares.settings = _histories(60)
TestShortPasses = ShortPasses.TestCase
TestShortPasses.settings = _histories(100)


@given(
    steps=st.sampled_from([1, 2 * VERDICT_STEPS, 5 * VERDICT_STEPS, WORK_PER_PASS]),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    gangs=st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=3), min_size=1, max_size=6),
)
def test_one_walk_is_in_order_and_each_in_turn_takes_what_fits(
    steps: int, sizes: list[int], gangs: list[list[int]]
) -> None:
    bench = Bench(nodes=[node(f"n{i}", 100 * size) for i, size in enumerate(sizes)])
    bench.submit(*(workload(f"w{i}", *(100 * p for p in g)) for i, g in enumerate(gangs)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(admit, "WORK_PER_PASS", steps)
        bench.decide()
        while bench.now in bench.wishes:  # the pass ended before the line did
            bench.decide()
    begun = [int(command.uid.removeprefix("uid-w")) for command in bench.pending]
    begun = [n for n in begun if bench.entry(f"w{n}").phase is Phase.INTENDING]
    assert begun == sorted(begun)
    taken: list[int] = []
    for number, gang in enumerate(gangs):
        pods = [100 * p for p in gang]
        if number in begun:
            taken += pods
            # All that was promised so far can stand on the nodes at the same time.
            assert can_place([100 * s for s in sizes], taken) or len(taken) > 7
        elif not taken:
            assert not can_place([100 * s for s in sizes], pods)
