"""Fairness: among equals, the group with the smaller dominant share in use goes first (R12)."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st

from mcad.core.cycle import admit
from mcad.core.events import NodeSeen
from mcad.core.state.model import PodSet, Workload
from mcad.core.state.records import replace
from mcad.core.state.settings import Fairness, Policy
from mcad.core.state.units import SECOND
from tests import budget
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.quotas import GOLD, child, subtree, teams

NODE = replace(node(), allocatable=(("cpu", 10_000), ("gpu", 8), ("pods", 110)))
SMALL = replace(NODE, allocatable=(("cpu", 5000), ("gpu", 8), ("pods", 110)))  # soon full
FAIR = replace(PATIENT, fairness=Fairness.NAMESPACE)


def of(team: str, name: str, cpu: int, gpu: int = 0, **changes: object) -> Workload:
    """An AppWrapper of one pod in a namespace, or a leaf, of that name."""
    requests = (("cpu", cpu), ("gpu", gpu), ("pods", 1))
    request = tuple((resource, n) for resource, n in requests if n)
    sets = (PodSet(0, 0, "template", 1, request),)
    return replace(workload(name, cpu), namespace=team, sets=sets, quota=((GOLD, team),), **changes)


def made(fairness: Fairness, cpu: int = 10_000, **settings: int) -> Bench:
    bench = Bench(replace(PATIENT, fairness=fairness, **settings), nodes=[NODE])
    bench.share(*teams(cpu, red=0, blue=0))
    return bench


MANY = [of("red", f"r{n}", 1000) for n in range(4)] + [of("blue", f"b{n}", 2000) for n in range(3)]


@pytest.mark.parametrize(
    ("fairness", "expected"),
    [
        (Fairness.NONE, "r0 r1 r2 r3 b0 b1 b2"),
        (Fairness.NAMESPACE, "r0 b0 r1 r2 b1 r3 b2"),
        (Fairness.LEAF, "r0 b0 r1 r2 b1 r3 b2"),
    ],
)
def test_whose_team_has_less_in_use_goes_first(fairness: Fairness, expected: str) -> None:
    bench = made(fairness)
    bench.submit(*MANY)
    assert [row.name for row in bench.queue()][:2] == ["r0", "r1"]  # so far no team has anything
    bench.settle()
    assert " ".join(bench.order) == expected
    bench.dispatcher.cluster.admission.check()


def test_one_that_asks_for_as_much_as_a_larger_team_has_its_own_turn() -> None:
    """Of all with one shape only the first got a turn, so ``red`` went on before ``blue``."""
    bench = Bench(FAIR, nodes=[node()])
    bench.start(of("blue", "b", 100), of("green", "all", 900))
    bench.submit(of("red", "first", 500, priority=1), of("red", "second", 300))
    bench.submit(of("red", "alike", 310), of("blue", "small-share", 310)).settle()
    bench.delete("uid-all").settle()
    assert bench.order == ["b", "all", "first", "small-share"]


def test_the_share_that_counts_is_that_of_the_scarcest_resource() -> None:
    bench = made(Fairness.NAMESPACE)
    bench.submit(of("red", "gpu", 100, gpu=4), of("blue", "cpu", 4000))  # 50 % and 40 %
    bench.settle()
    bench.submit(of("red", "r", 100), of("blue", "b", 100))
    assert [row.name for row in bench.queue() if row.position] == ["b", "r"]
    bench.settle()
    assert bench.order == ["gpu", "cpu", "b", "r"]


def test_priority_goes_before_fairness() -> None:
    bench = made(Fairness.NAMESPACE)
    bench.start(*(of("red", f"r{n}", 1000, priority=5) for n in range(3)), of("blue", "b", 1000))
    assert bench.order == ["r0", "r1", "r2", "b"]


def test_what_a_team_gives_back_counts_no_more_and_what_runs_counts_after_a_restart() -> None:
    bench = made(Fairness.NAMESPACE)
    bench.start(*(of("red", f"r{n}", 2000) for n in range(3)), of("blue", "b", 4000))
    assert bench.order == ["r0", "b", "r1", "r2"]  # 60 % and 40 %
    bench.restart()
    bench.submit(of("red", "r3", 1000), of("blue", "b1", 1000))
    assert [row.name for row in bench.queue() if row.position] == ["b1", "r3"]
    for name in ("r0", "r1", "r2"):
        bench.delete(f"uid-{name}")
    bench.settle()
    assert bench.order[-2:] == ["r3", "b1"]


def test_of_those_that_wait_for_the_same_the_poorest_team_is_requeued_first() -> None:
    bench = Bench(FAIR, nodes=[NODE]).start(of("red", "small", 1000), of("green", "big", 9000))
    bench.start(of("red", "r", 5000), of("blue", "b", 5000))
    bench.delete("uid-big")
    bench.settle()
    assert bench.order == ["small", "big", "b"]


@pytest.mark.parametrize("at_once", [1, 200])
def test_a_representative_that_is_the_poorest_no_more_makes_way(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something more urgent of the same team goes between, in this pass or in one before."""
    monkeypatch.setattr(admit, "DISPATCHES_PER_PASS", at_once)
    bench = Bench(FAIR, nodes=[SMALL]).start(of("green", "g0", 2500), of("green", "g1", 2500))
    bench.start(of("red", "r0", 2500), of("blue", "b0", 2500))
    bench.submit(of("red", "urgent", 2000, priority=1))
    for name in ("g0", "g1"):
        bench.delete(f"uid-{name}")
    bench.settle()
    assert bench.order[2:] == ["urgent", "b0"]


def test_a_tree_that_is_gone_has_no_shares() -> None:
    bench = made(Fairness.LEAF, quota_grace=0)
    bench.unshare("uid-gold-root", "uid-gold-teams")
    bench.start(*MANY)
    assert " ".join(bench.order) == "r0 r1 r2 r3 b0 b1 b2"


def test_a_leaf_s_part_is_of_the_whole_tree_that_names_it() -> None:
    """Half of the CPU that may be used is more than a third of it."""
    bench = made(Fairness.LEAF, cpu=3000)
    bench.share(subtree("root", child("root", cpu=3000, gpu=2)))
    bench.start(of("red", "r", 1000), of("blue", "b", 100, gpu=1))
    bench.start(of("blue", "b2", 100), of("red", "r2", 100))
    assert bench.order == ["r", "b", "r2", "b2"]


# -- the order against a plain reference ---------------------------------------------------------


@dataclass
class Reference:
    """Goes along the line again after every dispatch."""

    allocatable: dict[str, int]
    strict: bool
    waiting: list[Workload] = field(default_factory=list)
    running: list[Workload] = field(default_factory=list)
    order: list[str] = field(default_factory=list)

    def used(self, team: str = "") -> dict[str, int]:
        found = dict.fromkeys(self.allocatable, 0)
        for work in self.running:
            for resource, n in work.sets[0].request if team in ("", work.namespace) else ():
                found[resource] += n
        return found

    def turn(self, work: Workload) -> tuple[object, ...]:
        used = self.used(work.namespace)
        share = max(Fraction(n, self.allocatable[resource]) for resource, n in used.items())
        parts = share.numerator * 1_000_000 // share.denominator
        return (-work.priority, parts, int(work.name[1:]))

    def fits(self, work: Workload) -> bool:
        used = self.used()
        return all(used[name] + n <= self.allocatable[name] for name, n in work.sets[0].request)

    def settle(self) -> None:
        while found := self.next():
            self.waiting.remove(found)
            self.running.append(found)
            self.order.append(found.name)

    def next(self) -> Workload | None:
        for work in sorted(self.waiting, key=self.turn):
            if self.fits(work):
                return work
            if self.strict:
                return None
        return None


TEAMS = ("red", "blue", "green")
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(TEAMS),
            st.sampled_from([1000, 2500]),  # few shapes, so that several teams wait with one
            st.sampled_from([0, 0, 0, 1]),
            st.sampled_from([0, 0, 0, 3]),
        ),
        st.integers(0, 5),  # one that runs is deleted
        st.sampled_from(["settle", "settle", "crash"]),
    ),
    min_size=10,
    max_size=40,
)


@given(STEPS, st.sampled_from(list(Policy)))
@profile(max_examples=budget.examples(150), deadline=None)
def test_dispatches_are_those_of_a_plain_walk(steps: list[object], policy: Policy) -> None:
    bench = Bench(replace(FAIR, policy=policy), nodes=[SMALL])
    plain = Reference(dict(SMALL.allocatable), policy is Policy.STRICT_FIFO)
    for number, step in enumerate([*steps, "settle"]):
        if isinstance(step, tuple):
            team, cpu, gpu, priority = step
            work = of(team, f"w{number}", cpu, gpu, priority=priority, created=bench.now)
            bench.submit(work)
            plain.waiting.append(work)
        elif isinstance(step, int):
            if step < len(plain.running):
                bench.delete(plain.running.pop(step).uid)
        else:
            bench.settle()
            plain.settle()
            assert bench.order == plain.order
            assert [row.name for row in bench.queue() if row.position] == [
                work.name for work in sorted(plain.waiting, key=plain.turn)
            ]
            if step == "crash":
                bench.restart()
            bench.dispatcher.cluster.admission.check()


def test_the_whole_of_the_nodes_is_what_they_have_now() -> None:
    bench = made(Fairness.NAMESPACE)
    bench.start(of("red", "gpu", 100, gpu=4), of("blue", "cpu", 6000))
    bench.submit(of("blue", "b", 5000), of("red", "r", 5000))
    assert [row.name for row in bench.queue() if row.position] == ["r", "b"]  # 50 and 60 %
    bench.feed(NodeSeen(replace(NODE, name="n2", allocatable=(("cpu", 20_000),))))
    assert [row.name for row in bench.queue() if row.position] == ["b", "r"]  # 50 and 20 %


def test_a_class_that_needs_no_verdict_may_lose_its_turn_in_the_middle_of_a_walk() -> None:
    bench = Bench(replace(FAIR, head_of_line_holding=10 * SECOND), nodes=[NODE])
    bench.start(of("z", "holder", 100, 8), of("y", "runs", 1000))
    bench.submit(of("x", "first", 100, 8), of("y", "second", 100, 8))
    bench.settle()
    bench.advance(20)  # the head blocks no more, and both wait in one list
    bench.submit(of("x", "small", 5000, priority=1))
    bench.settle()  # from now on x has more in use than y
    assert bench.order == ["holder", "runs", "small"]
    assert [row.name for row in bench.queue()][:2] == ["second", "first"]
    bench.dispatcher.cluster.waiting.queue.check()
