"""Evictions as they go: announced and carried out, what gets the room, what a restart does."""

from __future__ import annotations

import pytest

from mcad.core.cluster import Cluster
from mcad.core.commands import CreateItem, WriteStatus
from mcad.core.events import Decide, NodeGone, NodeSeen, PodGone, PodSeen
from mcad.core.preemption import search
from mcad.core.state.answer import Answer
from mcad.core.state.bounds import HEADS_TRIED, RUN_TIME_DOUBLED, WORK_PER_PASS
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Dialect, Next, PodPhase, Workload
from mcad.core.state.reasons import ConditionType, EventReason
from mcad.core.state.records import replace
from mcad.core.state.reservation import ReservationReason
from mcad.core.state.run_policy import FaultTolerance, Growth, Requeuing
from mcad.core.state.settings import Fit, Settings
from mcad.core.state.units import SECOND
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.builders import pod
from tests.core.quotas import GOLD, SILVER, child, subtree

EAGER = replace(PATIENT, preemption=True, min_run_time=0, protect_after=0)
GRACE = replace(EAGER, preemption_grace=30 * SECOND)
TEAMS = (
    subtree("root", child("root", cpu=2000)),
    subtree("teams", child("red", cpu=1000), child("blue", cpu=1000), parent="root"),
)


def of(leaf: str, work: Workload) -> Workload:
    """It counts there."""
    return replace(work, quota=((GOLD, leaf),))


def crowded(settings: Settings = EAGER, **changes: object) -> Bench:
    """Two nodes, each with a small one of priority 0; then one comes that needs a whole node."""
    bench = Bench(settings, nodes=[node("n1"), node("n2")])
    for name in "ab":
        bench.submit(workload(name, 600, **changes))
        bench.advance(1)
    return bench


def half_protected(settings: Settings) -> Bench:
    """One of them has a high priority, so none gets both nodes."""
    bench = crowded(settings)
    bench.edit("uid-a", priority=9)
    return bench


def conditions(bench: Bench, name: str) -> dict[str, tuple[bool, str]]:
    """What its status says of evictions."""
    shown = bench.status[f"uid-{name}"].conditions
    kinds = (ConditionType.PREEMPT_CANDIDATE, ConditionType.PREEMPTED)
    return {one.type: (one.status, one.reason) for one in shown if one.type in kinds}


def phase(bench: Bench, name: str) -> Phase:
    return bench.dispatcher.cluster.entries[f"uid-{name}"].phase


def told(bench: Bench, reason: EventReason) -> list[tuple[str, str]]:
    return [(one.uid, one.note) for one in bench.events if one.reason is reason]


def test_none_is_evicted_while_one_of_its_items_is_being_created() -> None:
    bench = Bench(EAGER, nodes=[node("n1")])
    bench.submit(workload("a", 900))
    bench.decide()
    while not isinstance(bench.pending[0], CreateItem):
        bench.execute(bench.pending.pop(0))
    create = bench.pending.pop(0)
    bench.submit(workload("w", 900, priority=5))
    bench.advance(5)
    assert phase(bench, "a") is Phase.CREATING

    bench.execute(create)
    bench.advance(5)
    assert (phase(bench, "a"), phase(bench, "w")) == (Phase.WAITING, Phase.RUNNING)


def test_a_search_that_a_pass_has_no_work_for_comes_first_in_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = crowded()
    bench.now += 5 * SECOND  # so that a search is due
    cluster, spent = bench.dispatcher.cluster, iter([WORK_PER_PASS * 6 // 10])

    def work(cluster: Cluster) -> None:
        cluster.agenda.spent += next(spent, 0)

    monkeypatch.setattr("mcad.core.cycle.cycle.orphans.sweep", work)
    bench.submit(*(workload(f"w{n}", 900 + n, priority=5) for n in range(4)))
    bench.decide()
    assert cluster.walk.gives_way
    assert phase(bench, "b") is Phase.RUNNING
    bench.decide()
    assert phase(bench, "b") is Phase.UNDEPLOYING
    assert cluster.entries["uid-w0"].reserved  # the first in line


def test_the_latest_of_the_lowest_priority_makes_room_and_queues_again() -> None:
    bench = crowded()
    bench.submit(workload("w", 900, priority=5))
    bench.advance(3)

    assert phase(bench, "a") is Phase.RUNNING
    assert phase(bench, "b") is Phase.WAITING
    assert phase(bench, "w") is Phase.RUNNING
    assert conditions(bench, "b") == {
        "PreemptCandidate": (False, "Preempted"),
        "Preempted": (True, "Preempted"),
    }
    shown = bench.status["uid-b"]
    assert shown.eviction is not None
    assert (shown.eviction.count, shown.eviction.by, shown.eviction.title) == (
        1,
        "uid-w",
        "default/w",
    )
    [(uid, note)] = told(bench, EventReason.PREEMPT_CANDIDATE)
    assert uid == "uid-b"
    assert "default/w, which has a higher priority" in note
    assert [uid for uid, _ in told(bench, EventReason.ROOM_RESERVED)] == ["uid-w"]

    bench.delete("uid-w")
    bench.advance(3)
    assert phase(bench, "b") is Phase.RUNNING
    assert conditions(bench, "b")["Preempted"] == (False, "AppWrapperRunnable")


@pytest.mark.parametrize("restarted", [False, True])
def test_the_limit_counts_anew_after_an_eviction(restarted: bool) -> None:
    """What it had done is lost, and it could not help the time that it waited."""
    bench = crowded(run_limit=300 * SECOND)
    bench.bind("a-0", on="n1")
    bench.submit(workload("w", 900, priority=5))
    bench.advance(200)
    assert phase(bench, "b") is Phase.WAITING
    bench.delete("uid-w")
    bench.advance(3)
    assert phase(bench, "b") is Phase.RUNNING
    bench.bind("b-0", on="n2")
    if restarted:
        bench.crash()
    bench.advance(280)
    assert phase(bench, "a") is Phase.FAILED
    assert phase(bench, "b") is Phase.RUNNING
    bench.advance(30)
    assert phase(bench, "b") is Phase.FAILED


def test_by_default_none_is_evicted_for_a_priority() -> None:
    bench = crowded(replace(EAGER, preemption=False))
    bench.submit(workload("w", 900, priority=5))
    bench.advance(60)
    assert phase(bench, "w") is Phase.WAITING
    assert not told(bench, EventReason.PREEMPT_CANDIDATE)


def test_an_announced_victim_has_the_grace() -> None:
    bench = crowded(GRACE)
    bench.submit(workload("w", 900, priority=5))
    bench.advance(3)
    assert conditions(bench, "b") == {"PreemptCandidate": (True, "Preempted")}
    assert phase(bench, "b") is Phase.RUNNING
    bench.advance(20)
    assert phase(bench, "b") is Phase.RUNNING
    bench.advance(10)
    assert phase(bench, "b") is Phase.WAITING
    assert phase(bench, "w") is Phase.RUNNING


@pytest.mark.parametrize("what", ["the winner is deleted", "room is found elsewhere"])
def test_it_is_called_off_within_the_grace(what: str) -> None:
    bench = crowded(GRACE)
    bench.submit(workload("w", 900, priority=5))
    bench.advance(3)
    bench.delete("uid-w" if what == "the winner is deleted" else "uid-a")
    bench.advance(40)

    assert phase(bench, "b") is Phase.RUNNING
    assert conditions(bench, "b") == {"PreemptCandidate": (False, "EvictionCalledOff")}
    assert not bench.dispatcher.cluster.evictions


def test_none_is_evicted_within_its_minimum_run_time() -> None:
    bench = crowded(replace(EAGER, min_run_time=60 * SECOND))
    bench.submit(workload("w", 900, priority=5))
    bench.advance(30)
    assert phase(bench, "w") is Phase.WAITING
    bench.advance(45)
    assert phase(bench, "w") is Phase.RUNNING


def test_a_preemptor_suspended_before_it_got_the_room_may_ask_for_it_again() -> None:
    bench = crowded()
    bench.stubborn.add("b-0")  # its pod takes its time
    bench.bind("b-0", "n2")
    bench.submit(workload("w", 900, priority=5))
    bench.advance(3)
    bench.edit("uid-w", suspended=True)
    bench.advance(3)
    bench.stubborn.clear()
    bench.advance(60)
    bench.edit("uid-w", suspended=False)
    bench.advance(60)
    assert phase(bench, "w") is Phase.RUNNING


def test_a_victim_runs_twice_as_long_before_it_is_evicted_again() -> None:
    bench = Bench(replace(EAGER, min_run_time=100 * SECOND), nodes=[node("n1")])
    bench.submit(workload("v", 600))
    waited = []
    for number in range(4):
        bench.advance(1)
        began = bench.now
        bench.submit(workload(f"w{number}", 900, priority=5, created=bench.now))
        while f"w{number}" not in bench.order:
            bench.advance(5)
        waited.append((bench.now - began) // SECOND)
        bench.delete(f"uid-w{number}")
        bench.settle()
    assert [100 * 2**n <= seconds <= 100 * 2**n + 20 for n, seconds in enumerate(waited)] == [
        True
    ] * 4, waited


@pytest.mark.parametrize("lost", ["held", "its node"])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_preemptor_that_waits_again_evicts_the_same_again(lost: str, restarted: bool) -> None:
    """Its right is as it was; only the minimum run time of the victim is twice as long."""
    bench = half_protected(replace(EAGER, min_run_time=100 * SECOND))
    bench.advance(100)
    rule = Requeuing(10 * SECOND, Growth.NONE)
    bench.submit(workload("w", 900, priority=5, min_available=1, requeuing=rule))
    bench.advance(3)
    assert phase(bench, "w") is Phase.RUNNING
    bench.bind("w-0", on="n2")
    if lost == "held":
        bench.edit("uid-w", suspended=True)
    else:
        bench.feed(NodeGone("n2"))
        bench.remove(next(ref for ref in bench.things if ref.name == "w-0"))
        bench.advance(12)
        assert phase(bench, "w") is Phase.WAITING
        bench.feed(NodeSeen(node("n2")))
    bench.advance(3)
    assert phase(bench, "b") is Phase.RUNNING
    bench.edit("uid-w", suspended=False)
    if restarted:
        bench.restart()
    bench.advance(180)
    assert (phase(bench, "w"), phase(bench, "b")) == (Phase.WAITING, Phase.RUNNING)
    bench.advance(30)
    assert (phase(bench, "w"), phase(bench, "b")) == (Phase.RUNNING, Phase.WAITING)


def test_an_owner_that_was_held_reclaims_its_share_again() -> None:
    bench = Bench(replace(EAGER, preemption=False), nodes=[node("n1", 2000)])
    bench.share(*TEAMS)
    bench.start(of("blue", workload("b", 1500, priority=9)))
    bench.submit(of("red", workload("w", 1000)))
    bench.advance(3)
    bench.edit("uid-w", suspended=True)
    bench.advance(3)
    assert phase(bench, "b") is Phase.RUNNING
    bench.edit("uid-w", suspended=False)
    bench.advance(2 * RUN_TIME_DOUBLED // SECOND + 15)
    assert (phase(bench, "w"), phase(bench, "b")) == (Phase.RUNNING, Phase.WAITING)


def test_an_eviction_that_came_to_nothing_is_repeated_after_a_pause() -> None:
    """What was left for the winner was taken by a foreign pod, and then there was room
    for the other one alone."""
    bench = half_protected(EAGER)
    bench.stubborn.add("b-0")
    bench.bind("b-0", "n2")
    bench.submit(workload("w", 900, priority=5))
    bench.advance(3)
    assert [uid for uid, _ in told(bench, EventReason.PREEMPT_CANDIDATE)] == ["uid-b"]
    bench.feed(PodSeen(pod("stray", "n2", "0.2")))
    bench.stubborn.clear()
    bench.remove(next(ref for ref in bench.things if ref.name == "b-0"))
    bench.advance(400)
    assert (phase(bench, "w"), phase(bench, "b")) == (Phase.WAITING, Phase.RUNNING)
    bench.feed(PodGone("stray"))
    bench.advance(60)
    assert (phase(bench, "w"), phase(bench, "b")) == (Phase.RUNNING, Phase.WAITING)


def test_a_victim_evicts_its_preemptor_once_its_priority_is_higher() -> None:
    bench = Bench(replace(EAGER, min_run_time=100 * SECOND), nodes=[node("n1")])
    bench.submit(workload("a", 900))
    bench.advance(101)
    bench.submit(workload("w", 900, priority=5))
    bench.advance(3)
    assert bench.order == ["a", "w"]
    bench.edit("uid-a", priority=9)
    bench.advance(90)
    assert bench.order == ["a", "w"]
    bench.advance(20)
    assert bench.order == ["a", "w", "a"]


@pytest.mark.parametrize("bar", ["never preempts", "a name that is taken", "a given up room"])
def test_a_head_that_may_not_evict_bars_no_other_of_its_class(bar: str) -> None:
    bench = half_protected(EAGER)
    heads = [workload(f"h{n}", 900, priority=5) for n in range(3 * HEADS_TRIED)]
    if bar == "never preempts":
        heads = [replace(one, never_preempts=True) for one in heads]
    elif bar == "a name that is taken":
        heads = [replace(one, items=bench.works["uid-a"].items) for one in heads]
    else:
        heads = heads[:1]
    bench.submit(*heads)
    if bar == "a given up room":
        bench.entry("h0").eviction_patience.until = bench.now + 10**12
    bench.submit(workload("w", 900, priority=5, created=bench.now))
    bench.advance(20)
    assert (phase(bench, "w"), phase(bench, "b")) == (Phase.RUNNING, Phase.WAITING)
    assert all(phase(bench, one.name) is Phase.WAITING for one in heads)


@pytest.mark.parametrize("side", ["never_preempts", "never_preempted"])
def test_both_sides_may_be_kept_out_of_it(side: str) -> None:
    bench = crowded(never_preempted=side == "never_preempted")
    bench.submit(workload("w", 900, priority=5, never_preempts=side == "never_preempts"))
    bench.advance(30)
    assert phase(bench, "w") is Phase.WAITING
    assert not told(bench, EventReason.PREEMPT_CANDIDATE)


def test_none_is_evicted_for_one_that_something_else_keeps() -> None:
    bench = crowded()
    holder = workload("other", 100)
    bench.submit(holder)
    bench.advance(1)
    named_alike = replace(workload("w", 900, priority=5), items=holder.items)
    bench.submit(named_alike)
    bench.advance(10)
    assert not told(bench, EventReason.PREEMPT_CANDIDATE)


def test_where_one_leaves_anyway_none_is_evicted() -> None:
    bench = crowded()
    bench.stubborn.add("b-0")
    bench.edit("uid-b", suspended=True)
    bench.submit(workload("w", 900, priority=5))
    bench.advance(5)
    assert not told(bench, EventReason.PREEMPT_CANDIDATE)


def test_a_share_is_taken_back_whatever_the_priorities() -> None:
    settings = replace(EAGER, preemption=False)
    bench = Bench(settings, nodes=[node("n1", 2000)])
    bench.share(*TEAMS)
    bench.submit(of("blue", workload("a", 900, priority=9)))
    bench.advance(1)
    bench.submit(of("blue", workload("b", 900, priority=9)))
    bench.advance(1)
    bench.submit(of("red", workload("w", 1000)))
    bench.advance(3)

    assert (phase(bench, "a"), phase(bench, "b")) == (Phase.RUNNING, Phase.WAITING)
    assert phase(bench, "w") is Phase.RUNNING
    assert conditions(bench, "b")["Preempted"] == (True, "Reclaimed")
    shown = bench.status["uid-b"].eviction
    assert shown is not None
    assert shown.reason is ReservationReason.RECLAIMING
    bench.advance(60)
    assert phase(bench, "w") is Phase.RUNNING


def test_pods_that_ignore_their_deletion_are_told_of_and_not_waited_for_for_ever() -> None:
    bench = crowded(replace(EAGER, reservation_timeout=60 * SECOND))
    for name in ("a-0", "b-0"):
        bench.stubborn.add(name)
    bench.submit(workload("w", 900, priority=5))
    bench.advance(20)
    reservation = bench.status["uid-w"].reservation
    assert reservation is not None
    assert reservation.reason is ReservationReason.PREEMPTING
    assert reservation.waits_for == ("default/b",)
    bench.advance(90)
    assert bench.status["uid-w"].reservation is None
    [(_, note)] = told(bench, EventReason.RESERVATION_ENDED)
    assert "default/b" in note
    assert phase(bench, "a") is Phase.RUNNING, "not at once again"


def test_a_restart_in_the_grace_asks_anew() -> None:
    bench = crowded(GRACE)
    bench.submit(workload("w", 900, priority=5))
    bench.advance(10)
    bench.crash()
    bench.advance(3)
    assert conditions(bench, "b") == {"PreemptCandidate": (True, "Preempted")}
    assert phase(bench, "b") is Phase.RUNNING
    bench.advance(40)
    assert phase(bench, "b") is Phase.WAITING
    assert phase(bench, "w") is Phase.RUNNING


def test_a_restart_after_the_winner_has_gone_calls_it_off() -> None:
    bench = crowded(GRACE)
    bench.submit(workload("w", 900, priority=5))
    bench.advance(10)
    bench.delete("uid-w")
    bench.crash()
    bench.advance(3)
    assert conditions(bench, "b") == {"PreemptCandidate": (False, "EvictionCalledOff")}


def test_a_restart_while_the_pods_leave_keeps_the_claim() -> None:
    bench = crowded()
    bench.stubborn.add("b-0")
    bench.submit(workload("w", 900, priority=5))
    bench.advance(3)
    record = bench.status["uid-b"].dispatch
    assert record is not None
    assert (record.preemptor, record.next) == ("uid-w", Next.QUEUED)
    bench.crash()
    bench.advance(3)
    assert "uid-w" in bench.dispatcher.cluster.reservations
    [ref] = [ref for ref in bench.things if ref.name == "b-0"]
    bench.remove(ref)
    bench.advance(10)
    assert phase(bench, "w") is Phase.RUNNING
    assert phase(bench, "a") is Phase.RUNNING


@pytest.mark.parametrize("pods", [1, 2])
def test_a_restart_while_bound_pods_terminate_keeps_the_claim(pods: int) -> None:
    """What terminates has its room once: were it held twice, nothing would fit and all be lost."""
    bench = Bench(EAGER, nodes=[node(f"n{number + 1}") for number in range(pods)])
    bench.submit(workload("b", *[900] * pods))
    bench.settle()
    for number in range(pods):
        bench.bind(f"b-{number}", on=f"n{number + 1}")
        bench.stubborn.add(f"b-{number}")
    bench.submit(workload("w", *[800] * pods, priority=5))
    bench.advance(3)
    before = bench.status["uid-w"].reservation
    assert before is not None
    bench.crash()
    bench.advance(3)
    assert bench.status["uid-w"].reservation == before
    for ref in list(bench.things):
        bench.remove(ref)
    bench.advance(10)
    assert phase(bench, "w") is Phase.RUNNING


def test_a_plan_that_failed_is_not_made_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    real = search.evictions

    def counted(preemptor: Workload, *rest: object) -> object:
        made.append(preemptor.uid)
        return real(preemptor, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(search, "evictions", counted)
    bench = half_protected(replace(EAGER, backoff=20 * SECOND))
    bench.submit(*(workload(f"w{i}", 900 + i, 900 + i, priority=5) for i in range(3)))
    bench.submit(*(workload(f"v{i}", 900 + i) for i in range(3)))  # below none: no plan is made
    bench.advance(9)
    assert made == ["uid-w0", "uid-w1", "uid-w2"]
    bench.advance(8)
    assert made == 2 * ["uid-w0", "uid-w1", "uid-w2"]


def test_a_look_is_bounded_and_the_next_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "EVICTION_STEPS", 1)
    bench = crowded()
    cluster = bench.dispatcher.cluster
    bench.submit(*(workload(f"w{i}", 900 + i) for i in range(3)), workload("v", 899, priority=1))
    bench.feed(Decide())
    planned = [
        eqclass.first().uid for eqclass in cluster.waiting.queue.eqclasses() if eqclass.planned_at
    ]
    assert len(planned) <= 1
    bench.advance(10)
    assert phase(bench, "v") is Phase.RUNNING


def test_a_plan_that_takes_a_whole_look_keeps_none_behind_it_waiting_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first needs both nodes and never gets them; the second could evict one."""
    monkeypatch.setattr(search, "EVICTION_STEPS", 1)
    bench = half_protected(EAGER)
    bench.submit(
        workload("first", 900, 900, priority=6),
        workload("second", 900, priority=5),
    )
    bench.advance(60)
    assert phase(bench, "second") is Phase.RUNNING


def test_a_look_that_ends_with_its_work_asks_for_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "EVICTION_STEPS", 1)
    bench = half_protected(replace(EAGER, backoff=600 * SECOND))
    bench.now += SECOND
    bench.submit(workload("first", 900, 900, priority=6), workload("second", 900, priority=5))
    bench.decide()
    queue = bench.dispatcher.cluster.waiting.queue
    assert [one.planned_at > 0 for one in queue.eqclasses()] == [True, False]
    assert bench.now + SECOND in bench.wishes


def test_where_many_run_a_pass_plans_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 10,000 that run, a list takes 17 ms, and a plan 25."""
    done: list[str] = []

    def watched(name: str) -> None:
        real = getattr(search, name)

        def call(*args: object) -> object:
            done.append(name)
            return real(*args)

        monkeypatch.setattr(search, name, call)

    watched("survey")
    watched("plan")
    monkeypatch.setattr(search, "_survey_steps", lambda _: WORK_PER_PASS * 6 // 10)
    bench = crowded()
    bench.submit(*(workload(f"w{i}", 900 + i, priority=5) for i in range(2)))
    bench.now += 5 * SECOND
    passes: list[str] = []
    for _ in range(6):
        bench.decide()
        passes.append(" ".join(done))
        done.clear()
    assert passes == ["survey plan", "survey plan", "", "", "", ""]
    bench.advance(10)
    assert [phase(bench, name) for name in ("w0", "w1")] == [Phase.RUNNING] * 2


def test_at_rest_nothing_wakes_because_of_plans_that_fail() -> None:
    bench = half_protected(replace(EAGER, backoff=20 * SECOND))
    bench.submit(workload("w", 900, 900, priority=5))
    bench.advance(100)
    before = len(bench.wishes)
    bench.advance(100)
    assert len(bench.wishes) - before <= 2 * 11


def test_a_shape_that_only_a_reservation_knows_requeues_none() -> None:
    bench = crowded(GRACE)
    bench.submit(workload("w", 900, priority=5))
    bench.submit(workload("like-it", 900, priority=4, never_preempts=True))
    bench.advance(3)
    assert "uid-w" in bench.dispatcher.cluster.reservations
    bench.delete("uid-like-it")
    bench.delete("uid-a")
    bench.advance(40)
    assert phase(bench, "w") is Phase.RUNNING


class Counted(str):
    """A uid that counts how often any is compared with another one."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)


def counted(work: Workload) -> Workload:
    return replace(work, uid=Counted(work.uid))


@pytest.mark.parametrize("winners", [1, 40])
def test_a_pass_in_the_grace_looks_once_at_each_victim(winners: int) -> None:
    count = 40
    settings = replace(GRACE, max_evictions_per_minute=0)
    bench = Bench(settings, nodes=[node(f"n{number}") for number in range(count)])
    for number in range(count):
        bench.submit(counted(workload(f"v{number}", 600)))
    bench.advance(1)
    for number in range(winners):
        sizes = [900 + number] * (count // winners)  # of equal ones only the first has a turn
        bench.submit(counted(workload(f"w{number}", *sizes, priority=5)))
    bench.advance(3)
    assert len(bench.dispatcher.cluster.evictions) == count

    Counted.compared = 0
    bench.feed(Decide())

    assert Counted.compared <= 2 * count


# -- when it is looked ---------------------------------------------------------------------------


def test_a_newcomer_need_not_wait_until_others_of_its_shape_are_asked_again() -> None:
    bench = crowded()
    bench.submit(workload("lower", 1000, priority=-1))
    bench.advance(3)
    bench.submit(workload("urgent", 1000, priority=5))
    bench.advance(2)
    assert bench.order[-1] == "urgent"


def test_a_preemptor_that_was_suspended_before_it_had_its_room_may_evict_the_same_again() -> None:
    bench = half_protected(EAGER)
    bench.stubborn.add("b-0")
    bench.submit(workload("w", 900, priority=5))
    bench.advance(3)
    assert phase(bench, "b") is not Phase.RUNNING
    bench.edit("uid-w", suspended=True)
    bench.stubborn.clear()
    bench.remove(next(ref for ref in bench.things if ref.name == "b-0"))
    bench.advance(60)
    assert phase(bench, "b") is Phase.RUNNING
    bench.edit("uid-w", suspended=False)
    bench.advance(60)
    assert phase(bench, "w") is Phase.RUNNING


def test_room_that_others_left_stays_reserved_if_the_intent_meets_a_conflict() -> None:
    bench = half_protected(EAGER)
    bench.submit(workload("w", 900, priority=5))
    for _ in range(50):
        bench.decide()
        command = bench.pending.pop(0)
        if isinstance(command, WriteStatus) and command.uid == "uid-w" and command.status.dispatch:
            bench.refuse("WriteStatus", Answer(409, "Conflict", "changed"))
            bench.execute(command)
            break
        bench.execute(command)
    bench.submit(workload("urgent", 900, priority=7))  # what was left is not for it
    bench.settle()
    assert phase(bench, "w") is Phase.RUNNING
    assert phase(bench, "urgent") is Phase.WAITING


PROJECTS = (
    subtree("root", child("root", cpu=2000), tree=SILVER),
    subtree("projects", child("p", cpu=1500), child("q", cpu=500), parent="root", tree=SILVER),
)


def in_both(team: str, work: Workload, project: str = "p") -> Workload:
    return replace(work, quota=((GOLD, team), (SILVER, project)))


@pytest.mark.parametrize("bystander", [False, True])
@pytest.mark.parametrize("preemption", [False, True])
def test_a_share_of_one_tree_is_not_lost_to_what_its_borrower_holds_in_another(
    preemption: bool, bystander: bool
) -> None:
    """Both are of one project, whose share is too small for both; their teams are different."""
    settings = replace(EAGER, preemption=preemption, reclaim=True)
    bench = Bench(settings, nodes=[node("n1", 2200)])
    bench.share(*TEAMS, *PROJECTS)
    bench.submit(in_both("blue", workload("borrower", 1500, priority=9)))
    bench.settle()
    if bystander:
        bench.submit(in_both("blue", workload("bystander", 100, priority=-5), "q"))
        bench.settle()
    bench.advance(5)
    bench.submit(in_both("red", workload("owner", 900)))
    bench.advance(10)
    assert phase(bench, "owner") is Phase.RUNNING
    assert phase(bench, "borrower") is Phase.WAITING
    assert conditions(bench, "borrower")["Preempted"] == (True, "Reclaimed")


def test_what_is_reset_keeps_its_room_and_does_not_count_as_leaving() -> None:
    """Another one has to be evicted; without a node the small one could wait for the reset."""
    bench = Bench(EAGER, nodes=[node("n1"), node("n2")])
    quick = FaultTolerance(
        warmup_grace=300 * SECOND, failure_grace=SECOND, retry_pause=SECOND, retry_limit=3
    )
    bench.submit(
        workload("reset", 1000, priority=9, dialect=Dialect.V1BETA2, tolerance=quick),
        workload("low", 1000),
    )
    bench.settle()
    [kept] = [thing for ref, thing in bench.things.items() if ref.name == "reset-0"]
    kept.finalizers = ("example.com/keep",)
    bench.change("reset-0", phase=PodPhase.FAILED)
    bench.advance(3)
    assert bench.status["uid-reset"].dispatch.next is Next.RESET
    assert bench.dispatcher.cluster.entries["uid-reset"].keeps_room
    bench.submit(workload("w", 600, priority=5))
    bench.advance(5)
    assert phase(bench, "low") is Phase.WAITING
    assert phase(bench, "w") is Phase.RUNNING


def test_a_share_is_free_only_when_its_borrower_has_left() -> None:
    """There are nodes enough for both; the share is what is lent."""
    bench = Bench(replace(EAGER, reclaim=True), nodes=[node("n1"), node("n2"), node("n3")])
    bench.graceful = True
    bench.share(*TEAMS)
    for name in ("one", "two"):
        bench.submit(of("blue", workload(name, 1000, grace=60 * SECOND)))
        bench.settle()
    bench.bind("one-0", on="n1")
    bench.bind("two-0", on="n2")
    bench.submit(of("red", workload("owner", 1000)))
    bench.advance(30)
    assert phase(bench, "two") is not Phase.WAITING
    assert phase(bench, "owner") is Phase.WAITING
    bench.advance(60)
    assert phase(bench, "owner") is Phase.RUNNING


# -- where only sums count -----------------------------------------------------------------------

SUMS = replace(EAGER, fit=Fit.AGGREGATE)


def test_in_sums_a_higher_priority_evicts_and_gets_what_is_left() -> None:
    """It needs 900 of two nodes with 400 free each: MCAD's rule says that one has to leave."""
    bench = crowded(SUMS)
    bench.submit(workload("w", 900, priority=5))
    bench.submit(workload("small", 100, priority=4))
    bench.advance(3)
    assert phase(bench, "a") is Phase.RUNNING
    assert phase(bench, "b") is Phase.WAITING
    assert phase(bench, "w") is Phase.RUNNING
    assert conditions(bench, "b")["Preempted"] == (True, "Preempted")
    bench.dispatcher.cluster.admission.check()


@pytest.mark.parametrize("restarts", [False, True])
def test_in_sums_no_other_gets_what_victims_leave_behind(restarts: bool) -> None:
    bench = crowded(SUMS)
    bench.stubborn.add("b-0")
    bench.submit(workload("w", 1300, priority=5))
    bench.advance(3)
    if restarts:
        bench.crash()
        bench.advance(3)
    bench.submit(workload("small", 300))
    bench.advance(30)
    assert [phase(bench, name) for name in ("w", "small")] == [Phase.WAITING] * 2
    assert bench.dispatcher.cluster.reservations.keys() == {"uid-w"}
    bench.remove(next(ref for ref in bench.things if ref.name == "b-0"))
    bench.advance(3)
    assert phase(bench, "w") is Phase.RUNNING
    bench.dispatcher.cluster.admission.check()


def test_in_sums_a_share_comes_back() -> None:
    bench = Bench(replace(SUMS, preemption=False), nodes=[node("n1"), node("n2")])
    bench.share(*TEAMS)
    for name in "ab":
        bench.submit(of("blue", workload(name, 900)))
        bench.advance(1)
    bench.submit(of("red", workload("w", 600)))
    bench.advance(3)
    assert [phase(bench, name) for name in "abw"] == [Phase.RUNNING, Phase.WAITING, Phase.RUNNING]
    assert conditions(bench, "b")["Preempted"] == (True, "Reclaimed")


def test_in_sums_the_older_reservation_gets_what_comes_free_first() -> None:
    bench = crowded(SUMS)
    bench.stubborn |= {"a-0", "b-0"}
    bench.submit(workload("first", 1300, priority=5))
    bench.advance(3)
    bench.submit(workload("second", 500, priority=5))
    bench.advance(3)
    assert list(bench.dispatcher.cluster.reservations) == ["uid-first", "uid-second"]
    for name, started in (("b-0", "first"), ("a-0", "second")):
        bench.remove(next(ref for ref in bench.things if ref.name == name))
        bench.advance(3)
        assert phase(bench, started) is Phase.RUNNING


def test_in_sums_room_that_other_pods_take_ends_the_reservation() -> None:
    bench = crowded(replace(SUMS, min_run_time=60 * SECOND))
    bench.stubborn.add("b-0")
    bench.advance(60)
    bench.submit(workload("w", 1300, priority=5))
    bench.advance(3)
    bench.feed(PodSeen(pod("stray", "n1", "0.6")))
    bench.remove(next(ref for ref in bench.things if ref.name == "b-0"))
    bench.advance(3)
    assert not bench.dispatcher.cluster.reservations
    assert phase(bench, "w") is Phase.WAITING


def test_a_victim_that_is_not_needed_any_more_when_the_grace_ends_stays() -> None:
    bench = crowded(GRACE)
    bench.submit(workload("gang", 900, 900, priority=5))
    bench.advance(5)
    told = sorted(bench.dispatcher.cluster.evictions)
    assert told == ["uid-a", "uid-b"]
    bench.feed(NodeSeen(node("n3")))
    bench.advance(40)
    assert bench.state("gang") == "Running"
    evicted = [name for name in "ab" if bench.entry(name).eviction is not None]
    assert len(evicted) == 1, "one of the two is enough"
