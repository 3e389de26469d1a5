"""DispatchPauses: nothing new is dispatched in their scope, and what runs runs."""

from __future__ import annotations

import pytest

from mcad.core.events import Decide
from mcad.core.state.bounds import PAUSED_PER_PASS
from mcad.core.state.dispatch_pause import DispatchPause
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Workload
from mcad.core.state.reasons import ConditionType
from mcad.core.state.records import replace
from mcad.core.state.settings import Settings
from mcad.core.state.waiting_reason import WaitingReason
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.quotas import GOLD, child, subtree

ALL = DispatchPause("uid-all", "all", reason="the storage is moved")


def red(name: str, *pods: int) -> Workload:
    """One of the leaf red."""
    return workload(name, *pods, quota=((GOLD, "red"),))


def reason(made: Bench, uid: str) -> str:
    """What it waits for, as its status says."""
    shown = made.dispatcher.cluster.entries[uid].conditions[ConditionType.BACKOFF]
    return shown.message if shown.status else ""


def phase(made: Bench, uid: str) -> Phase:
    return made.dispatcher.cluster.entries[uid].phase


def test_nothing_is_dispatched_and_what_runs_runs() -> None:
    made = Bench(nodes=[node("n1", 1000)]).start(workload("a", 100))
    made.pause(ALL)
    made.start(workload("b", 100))
    assert phase(made, "uid-a") in (Phase.CREATING, Phase.RUNNING)
    assert phase(made, "uid-b") is Phase.WAITING
    assert reason(made, "uid-b") == (
        "Dispatch is paused for the whole cluster (DispatchPause all): the storage is moved"
    )
    made.resume()
    made.settle()
    assert phase(made, "uid-b") is not Phase.WAITING
    assert reason(made, "uid-b") == ""


def test_those_in_line_are_put_on_hold_and_keep_their_position() -> None:
    made = Bench(nodes=[node("n1", 100)]).start(workload("a", 100))
    made.start(workload("b", 100), workload("c", 100))
    made.pause(ALL)
    made.settle()
    assert [reason(made, uid)[:18] for uid in ("uid-b", "uid-c")] == ["Dispatch is paused"] * 2
    made.resume()
    made.settle()
    line = [entry.uid for entry in made.dispatcher.cluster.waiting.queue.entries()]
    assert sorted(line) == ["uid-b", "uid-c"]
    made.delete("uid-a")
    made.settle()
    assert phase(made, "uid-b") is not Phase.WAITING
    assert phase(made, "uid-c") is Phase.WAITING


def test_a_namespace() -> None:
    made = Bench(nodes=[node("n1", 1000)])
    made.pause(DispatchPause("uid-p", "p", namespace="elsewhere"))
    made.start(workload("a", 100), replace(workload("b", 100), namespace="elsewhere"))
    assert phase(made, "uid-a") is not Phase.WAITING
    assert phase(made, "uid-b") is Phase.WAITING
    assert reason(made, "uid-b") == ("Dispatch is paused for namespace elsewhere (DispatchPause p)")


@pytest.mark.parametrize(("at", "waits"), [("red", True), ("root", True), ("blue", False)])
def test_a_quota_node_and_those_below(at: str, waits: bool) -> None:
    made = Bench(nodes=[node("n1", 1000)])
    made.share(
        subtree("root", child("root", cpu=1000)),
        subtree("teams", child("red", cpu=500), child("blue", cpu=500), parent="root"),
    )
    made.pause(DispatchPause("uid-p", "p", tree=GOLD, node=at))
    made.start(red("a", 100))
    assert (phase(made, "uid-a") is Phase.WAITING) == waits


def test_a_leaf_that_comes_below_a_paused_node_is_paused() -> None:
    made = Bench(nodes=[node("n1", 1000)])
    made.share(subtree("root", child("root", cpu=1000)))
    made.share(subtree("teams", child("red", cpu=0), child("other", cpu=900), parent="root"))
    made.pause(DispatchPause("uid-p", "p", tree=GOLD, node="other"))
    made.start(red("a", 1100))
    assert phase(made, "uid-a") is Phase.WAITING
    assert "paused" not in reason(made, "uid-a")
    made.share(
        subtree("teams", child("other", cpu=900), parent="root"),
        subtree("below", child("red", cpu=0), parent="other"),
    )
    made.settle()
    assert "paused" in reason(made, "uid-a")


def test_the_widest_is_named() -> None:
    made = Bench(nodes=[node("n1", 1000)])
    made.pause(DispatchPause("uid-p", "p", namespace="default"), ALL)
    made.start(workload("a", 100))
    assert "(DispatchPause all)" in reason(made, "uid-a")
    made.resume("uid-all")
    made.settle()
    assert "(DispatchPause p)" in reason(made, "uid-a")


def test_another_reason_is_told() -> None:
    made = Bench(nodes=[node("n1", 1000)])
    made.pause(ALL)
    made.start(workload("a", 100))
    made.pause(replace(ALL, reason="almost done"))
    made.settle()
    assert reason(made, "uid-a").endswith(": almost done")


def test_no_victim_is_evicted_for_a_paused_one() -> None:
    made = Bench(Settings(preemption=True, min_run_time=0), nodes=[node("n1", 100)]).start(
        workload("low", 100)
    )
    for ref in list(made.things):
        made.bind(ref.name, on="n1")
    made.settle()
    made.pause(ALL)
    made.start(workload("high", 100, priority=5))
    made.advance(60)
    assert phase(made, "uid-low") is Phase.RUNNING
    made.resume()
    made.advance(60)
    assert phase(made, "uid-low") is Phase.WAITING


def test_a_restart_keeps_it_paused() -> None:
    made = Bench(nodes=[node("n1", 1000)])
    made.pause(ALL)
    made.start(workload("a", 100))
    made.crash()
    made.settle()
    assert phase(made, "uid-a") is Phase.WAITING
    assert "paused" in reason(made, "uid-a")


def test_a_suspended_one_is_paused_when_it_is_released() -> None:
    made = Bench(nodes=[node("n1", 1000)])
    made.start(workload("a", 100, suspended=True))
    made.pause(ALL)
    made.settle()
    hold = made.dispatcher.cluster.entries["uid-a"].wait.hold
    assert hold is not None
    assert hold.reason is WaitingReason.SUSPENDED
    made.edit("uid-a", suspended=False)
    made.settle()
    assert "paused" in reason(made, "uid-a")


def test_many_take_several_cycles_and_nothing_starts_meanwhile() -> None:
    made = Bench(replace(PATIENT, backoff=0), nodes=[node("n1", 100)])
    made.start(workload("first", 100))
    many = 2 * PAUSED_PER_PASS + 1
    made.submit(*(workload(f"w{number}", 100) for number in range(many)))
    made.dispatcher.step(Decide(), made.now)
    made.pause(ALL)
    pauses = made.dispatcher.cluster.waiting.dispatch_pauses
    for expected in (True, True, False):
        made.dispatcher.step(Decide(), made.now)
        assert pauses.pending is expected
    assert not len(made.dispatcher.cluster.waiting.queue)
    made.resume()
    made.dispatcher.step(Decide(), made.now)
    assert pauses.pending
    assert len(made.dispatcher.cluster.waiting.queue) == PAUSED_PER_PASS
