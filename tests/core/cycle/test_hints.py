"""What may fit by now is judged in the order of the line, however short passes are."""

from __future__ import annotations

import pytest

from mcad.core.capacity import Capacity
from mcad.core.cycle import admit, cycle
from mcad.core.events import NodeSeen
from mcad.core.queue import verdicts
from mcad.core.state import agenda
from mcad.core.state.bounds import WORK_PER_PASS
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Constraint, Node, Taint, Workload
from mcad.core.state.records import replace
from mcad.core.state.settings import Policy, Settings
from mcad.core.state.units import SECOND
from mcad.core.state.waiting_reason import WaitingReason
from mcad.core.state.work_bounds import VERDICT_STEPS
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.cycle.test_admit import begun, counted, refusals
from tests.core.preemption.test_search import EAGER
from tests.core.quotas import GOLD, teams

BUSY = Taint("busy", "yes", "NoSchedule")
SHORT = pytest.mark.parametrize("steps", [1, 2 * VERDICT_STEPS, WORK_PER_PASS])


@SHORT
def test_room_that_rose_goes_to_the_first_in_line(
    monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """Smaller demands have room as well, and one that came later was not refused yet."""
    bench = Bench(nodes=[node("n1", 100), node("n2", 200)])
    low = [workload(f"w{i}", 240 + i) for i in range(5)]
    bench.submit(*low, workload("high", 300, priority=9)).settle()
    monkeypatch.setattr(admit, "WORK_PER_PASS", steps)
    bench.submit(workload("late", 220))
    bench.feed(NodeSeen(node("n2", 350)))
    bench.decide()
    bench.feed(NodeSeen(node("n1", 230)))
    bench.settle()
    assert bench.order == ["high", "late"]


@SHORT
def test_nothing_is_evicted_for_what_fits_by_now(
    monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """``low`` would evict ``a`` and take the new node, on which ``high`` fits."""
    bench = Bench(EAGER, nodes=[node("n1")])
    bench.submit(workload("a", 600)).settle()
    bench.bind("a-0", on="n1")
    bench.advance(1)
    small = [workload(f"w{i}", 500 + i, never_preempts=True) for i in range(8)]
    bench.submit(*small, workload("high", 900, priority=9, never_preempts=True))
    bench.submit(workload("low", 900, 900, priority=5))
    bench.advance(30)
    monkeypatch.setattr(admit, "WORK_PER_PASS", steps)
    bench.now += 30 * SECOND
    bench.feed(NodeSeen(node("n2")))
    bench.settle()
    assert bench.order[:2] == ["a", "high"]


@SHORT
def test_a_walk_goes_on_however_often_nodes_rise(
    monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    bench = Bench(nodes=[node("n0", 200), *(node(f"n{i}", 100) for i in range(1, 4))])
    bench.submit(*(workload(f"w{i}", 150 + i, 150 + i) for i in range(20))).settle()
    assert refusals(bench) == 20
    bench.submit(workload("last", 50))
    monkeypatch.setattr(admit, "WORK_PER_PASS", steps)
    passes = 0
    while not begun(bench) and passes < 50:
        passes += 1
        bench.feed(NodeSeen(node("n0", 200 + passes)))  # which concerns all 20 gangs
        bench.decide()
    assert begun(bench) == ["last"]


def test_room_that_a_look_releases_goes_to_the_first_in_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(nodes=[node(milli=100)])
    bench.submit(workload("high", 900, priority=9)).settle()
    bench.submit(workload("low", 800))
    cluster = bench.dispatcher.cluster
    cluster.walk.gives_way = True
    monkeypatch.setattr(
        cycle, "_LOOKS", (lambda cluster: cluster.capacity.node_seen(node(milli=1000)),)
    )
    bench.decide()
    assert begun(bench) == ["high"]


@SHORT
def test_the_search_for_evictions_comes_however_much_is_judged_in_each_pass(
    monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    bench = Bench(EAGER, nodes=[node("n1"), node("n2", 500), node("n3", 500)])
    bench.submit(workload("a", 950)).settle()
    bench.bind("a-0", on="n1")
    bench.advance(1)
    # Each set has room, and all together have none: any rise of a node may let them in.
    gangs = (workload(f"w{i}", 300 + i, 310 + i, 320 + i, never_preempts=True) for i in range(8))
    bench.submit(*gangs).settle()
    bench.submit(workload("high", 960, priority=9))
    monkeypatch.setattr(admit, "WORK_PER_PASS", steps)
    monkeypatch.setattr(agenda, "WORK_PER_PASS", min(steps, agenda.WORK_PER_PASS))
    for number in range(20):
        bench.now += SECOND
        bench.feed(NodeSeen(node("n2", 501 + number)))
        bench.decide()
    assert bench.entry("a").phase is not Phase.RUNNING


def test_what_is_found_is_news_no_more() -> None:
    bench = Bench(nodes=[node(milli=100)])
    bench.submit(*(workload(f"w{i}", 200 + i) for i in range(9))).settle()
    cluster = bench.dispatcher.cluster
    bench.feed(NodeSeen(node(milli=250)))
    assert cluster.capacity.has_news
    cluster.waiting.requeue_for_nodes()
    assert not cluster.capacity.has_news
    assert len(cluster.waiting.verdicts.active) == 9


def test_a_hint_that_is_missed_costs_half_of_the_backoff_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Old verdicts are tested again, some of them in each pass."""
    monkeypatch.setattr(verdicts, "RETRIED_PER_PASS", 2)
    bench = Bench(nodes=[node(milli=100)])
    bench.submit(*(workload(f"w{i}", 200 + i) for i in range(5))).settle()
    monkeypatch.setattr(Capacity, "take_requeued", lambda _: [])
    bench.feed(NodeSeen(node(milli=5000)))
    bench.settle()
    assert bench.order == []
    bench.now += PATIENT.backoff // 2 + SECOND
    bench.settle()
    assert bench.order == [f"w{i}" for i in range(5)]


def test_old_verdicts_are_all_tested_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "RETRIED_PER_PASS", 2)
    bench = Bench(nodes=[node(milli=100)])
    bench.submit(*(workload(f"w{i}", 200 + i) for i in range(5))).settle()
    bench.now += PATIENT.backoff // 2 + SECOND
    due = bench.now
    bench.settle()
    tested = [one.tested_at for one in bench.dispatcher.cluster.waiting.queue.eqclasses()]
    assert min(tested) >= due


# -- what was impossible -------------------------------------------------------------------------

STRICT = replace(PATIENT, policy=Policy.STRICT_FIFO)


def in_zone(work: Workload, zone: str) -> Workload:
    sets = tuple(
        replace(one, constraint=Constraint(selector=(("zone", zone),))) for one in work.sets
    )
    return replace(work, sets=sets)


def waits_for(bench: Bench, name: str) -> WaitingReason:
    refusal = bench.dispatcher.cluster.waiting.queue.refusal_of(bench.entry(name))
    assert refusal is not None
    return refusal.reason


def too_large(one: Node) -> Bench:
    """``large`` is larger than any node that admits it, and the first node is in use."""
    bench = Bench(STRICT, nodes=[replace(one, taints=()), node("n2", 500)])
    bench.start(workload("first", 900)).bind("first-0", "n1")
    bench.feed(NodeSeen(one))
    bench.start(workload("large", 1900))
    assert waits_for(bench, "large") is WaitingReason.TOO_LARGE
    return bench


def above_quota(settings: Settings = STRICT) -> Bench:
    """``large`` demands more than the share, of which a part is in use."""
    bench = Bench(settings, nodes=[node("n1", 9000)]).share(*teams(1000, red=1000))
    red = {"quota": ((GOLD, "red"),)}
    bench.start(workload("first", 900, **red), workload("large", 1900, **red))
    assert waits_for(bench, "large") is WaitingReason.ABOVE_QUOTA
    return bench


@pytest.mark.parametrize("before", [node("n1"), node("n1", 2000, taints=(BUSY,))])
def test_too_large_ends_when_a_node_grows_or_loses_its_taint(before: Node) -> None:
    """The room is in use, so a latecomer would take what comes free of it."""
    bench = too_large(before)
    bench.feed(NodeSeen(node("n1", 2000)))
    bench.submit(workload("latecomer", 1000)).settle()
    assert bench.order == ["first"]
    assert waits_for(bench, "large") is WaitingReason.INSUFFICIENT
    bench.delete("uid-first").settle()
    assert bench.order == ["first", "large"]


def test_too_large_ends_for_a_daemon_set_when_no_node_is_left_for_it() -> None:
    bench = Bench(nodes=[node("n1", labels=(("zone", "a"),)), node("n2")])
    work = in_zone(workload("agent", 2000), "a")
    bench.start(replace(work, sets=(replace(work.sets[0], replicas=0, per_node=True),)))
    assert waits_for(bench, "agent") is WaitingReason.TOO_LARGE
    bench.feed(NodeSeen(node("n1", labels=(("zone", "b"),))))
    bench.settle()
    assert bench.order == ["agent"]


def test_above_quota_ends_when_the_share_grows() -> None:
    bench = above_quota()
    bench.share(*teams(2000, red=2000))
    bench.submit(workload("latecomer", 1000, quota=((GOLD, "red"),))).settle()
    assert bench.order == ["first"]
    assert waits_for(bench, "large") is WaitingReason.QUOTA
    bench.delete("uid-first").settle()
    assert bench.order == ["first", "large"]


def test_the_reason_follows_a_share_that_is_edited() -> None:
    """Most of the share is in use before and after; ``next`` asks for as much, in another leaf."""
    bench = above_quota(PATIENT)
    bench.share(*teams(1000, red=1000, blue=0))
    bench.start(workload("next", 1900, quota=((GOLD, "blue"),)))
    for share, reason in ((2000, WaitingReason.QUOTA), (1000, WaitingReason.ABOVE_QUOTA)):
        bench.share(*teams(share, red=share, blue=0)).settle()
        assert {waits_for(bench, name) for name in ("large", "next")} == {reason}


def test_an_edited_share_is_no_reason_to_judge_what_waits_for_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(nodes=[node("n1", 500)]).share(*teams(5000, red=5000))
    red = {"quota": ((GOLD, "red"),)}
    bench.start(workload("first", 500, **red), workload("next", 300, **red))
    assert waits_for(bench, "next") is WaitingReason.INSUFFICIENT
    judged = counted(bench, monkeypatch)
    bench.share(*teams(6000, red=6000)).settle()
    assert judged == []


def test_above_quota_begins_when_the_share_shrinks() -> None:
    bench = above_quota()
    bench.share(*teams(2000, red=2000))
    bench.submit(workload("latecomer", 500, quota=((GOLD, "red"),))).settle()
    assert bench.order == ["first"]
    bench.share(*teams(1500, red=1500)).settle()
    assert bench.order == ["first", "latecomer"], "large can never start, and holds up none"


def test_room_that_comes_free_is_no_reason_to_judge_what_is_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(nodes=[node(), node("n2")])
    bench.start(workload("first", 900), *(workload(f"w{i}", 2000 + i) for i in range(9)))
    judged = counted(bench, monkeypatch)
    bench.delete("uid-first").settle()
    assert judged == []
