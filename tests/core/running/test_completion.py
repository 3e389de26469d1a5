"""When an AppWrapper is finished: its items say so, and no pod is wanted or runs any more."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from mcad.core.events import ChildGone, ChildSeen, PodGone, PodSeen
from mcad.core.state.model import (
    Child,
    Dialect,
    Item,
    ItemState,
    ObjectRef,
    Pod,
    PodCounts,
    PodPhase,
    PodSet,
    Wanted,
    Workload,
)
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from tests.core.bench import Bench, Thing, cpu, node, workload

JOB = ObjectRef("batch", "v1", "jobs", "Job", "default", "it")
DEPLOYMENT = ObjectRef("apps", "v1", "deployments", "Deployment", "default", "it")
WIDGET = ObjectRef("example.com", "v1", "widgets", "Widget", "default", "it")

V1BETA2 = {"dialect": Dialect.V1BETA2}
TIMEOUT = Settings(reservation_timeout=60 * SECOND)


def wrapper(ref: ObjectRef, pods: int, *words: str, **changes: Any) -> Workload:
    """``a``, around one object that makes pods of 100m."""
    item = Item(ref, completion=words, tells_end=ref is JOB)
    one = PodSet(0, 0, "spec.template", pods, cpu(100, 1), counts_pods=ref is WIDGET)
    return replace(workload("a"), items=(item,), sets=(one,), **changes)


def _state(words: Sequence[str]) -> ItemState:
    """What an object with these conditions says of itself."""
    if {"complete", "completed", "succeeded"}.intersection(words):
        return ItemState.SUCCEEDED
    return ItemState.FAILED if "failed" in words else ItemState.PROGRESSING


def _completed(child: Child) -> Child:
    said = {"met": frozenset({"complete"}), "state": ItemState.SUCCEEDED}
    return replace(child, wants=(Wanted(0),), **said)


class Stage:
    """``a`` runs on a node that has room for its pods and no more; ``b`` waits for the room."""

    def __init__(self, work: Workload, settings: Settings = Settings()) -> None:
        pods = work.sets[0].replicas
        self.bench = Bench(settings, nodes=[node(milli=100 * pods)])
        self.ref = work.items[0].ref
        self.bench.start(work)
        self.root = self.bench.things[self.ref].child.uid
        self.bench.feed(PodGone(self.root))  # it is no pod itself
        self.says(want=pods)
        self.bench.start(workload("b", 100 * pods))

    def says(self, *words: str, want: int | None = None) -> None:
        """The object says so, and wants so many pods."""
        uid = self.bench.things[self.ref].child.uid
        wants = (None if want is None else Wanted(want),)
        said = {"wants": wants, "met": frozenset(words), "state": _state(words)}
        self.bench.feed(ChildSeen(Child(uid, self.ref, "uid-a", 1, 0, **said)))

    def pods(self, phase: PodPhase, *names: str) -> None:
        """Pods of it are in this phase."""
        for name in names:
            pod = Pod(f"pod-{name}", "default", name, "n1", phase, cpu(100, 1), workload="uid-a")
            self.bench.feed(PodSeen(replace(pod, item=0, index=0, attempt=1, root=self.root)))

    def gone(self) -> None:
        """The object is deleted."""
        self.bench.feed(ChildGone(self.bench.things.pop(self.ref).child.uid))

    @property
    def state(self) -> str:
        self.bench.settle()
        return self.bench.state("a")

    @property
    def order(self) -> list[str]:
        self.bench.settle()
        return self.bench.order


@pytest.mark.parametrize("changes", [{}, V1BETA2], ids=["v1beta1", "v1beta2"])
def test_between_two_waves_of_a_job_nothing_is_finished(changes: dict[str, Any]) -> None:
    stage = Stage(wrapper(JOB, 2, "complete", **changes))
    stage.pods(PodPhase.RUNNING, "1", "2")
    stage.pods(PodPhase.SUCCEEDED, "1", "2")
    assert (stage.state, stage.order) == ("Running", ["a"])

    stage.says(want=1)
    stage.pods(PodPhase.RUNNING, "3")
    stage.pods(PodPhase.SUCCEEDED, "3")
    assert (stage.state, stage.order) == ("Running", ["a"])

    stage.says("complete", want=0)
    assert (stage.state, stage.order) == ("Completed", ["a", "b"])


def test_a_word_that_is_said_before_the_pods_exist_holds_until_none_is_wanted() -> None:
    stage = Stage(wrapper(DEPLOYMENT, 2, "progressing"))
    stage.says("progressing", want=2)
    assert (stage.state, stage.order) == ("RunningHoldCompletion", ["a"])

    stage.pods(PodPhase.RUNNING, "1", "2")
    for pod in ("pod-1", "pod-2"):  # replaced, as in a rollout
        stage.bench.feed(PodGone(pod))
    assert (stage.state, stage.order) == ("RunningHoldCompletion", ["a"])

    stage.says("progressing", "available", want=0)
    assert (stage.state, stage.order) == ("Completed", ["a", "b"])


def test_pods_that_a_user_adds_later_are_wanted_too() -> None:
    stage = Stage(wrapper(DEPLOYMENT, 0, "progressing"))
    stage.says("progressing", want=3)
    assert stage.state == "RunningHoldCompletion"


def test_an_item_that_said_so_and_is_deleted_has_said_so() -> None:
    stage = Stage(wrapper(DEPLOYMENT, 2, "progressing"))
    stage.says("progressing", want=2)
    stage.pods(PodPhase.RUNNING, "1")
    stage.gone()
    assert stage.state == "RunningHoldCompletion"

    stage.bench.feed(PodGone("pod-1"))
    assert (stage.state, stage.order) == ("Completed", ["a", "b"])


def test_an_item_that_is_deleted_before_it_said_so_never_did() -> None:
    stage = Stage(wrapper(DEPLOYMENT, 2, "progressing"))
    stage.gone()
    assert stage.state == "Failed"


def test_an_item_that_finished_and_went_without_a_dispatcher_is_on_record() -> None:
    stage = Stage(wrapper(DEPLOYMENT, 2, "progressing"))
    stage.says("progressing", want=2)
    assert stage.state == "RunningHoldCompletion"
    stage.bench.pending.clear()
    del stage.bench.things[stage.ref]
    stage.bench.crash()
    assert (stage.state, stage.order) == ("Completed", ["a", "b"])


def test_of_a_kind_that_does_not_tell_its_pods_are_awaited_until_their_reservation_ends() -> None:
    stage = Stage(wrapper(WIDGET, 2, "ready"), TIMEOUT)
    stage.says("ready")
    stage.pods(PodPhase.SUCCEEDED, "1")
    assert (stage.state, stage.order) == ("RunningHoldCompletion", ["a"])

    stage.bench.advance(61)
    assert (stage.state, stage.order) == ("Completed", ["a", "b"])


def test_in_the_later_dialect_all_pods_of_a_kind_that_does_not_tell_have_to_succeed() -> None:
    stage = Stage(wrapper(WIDGET, 2, **V1BETA2), TIMEOUT)
    stage.says()
    stage.pods(PodPhase.SUCCEEDED, "1")
    assert stage.state == "Running"
    stage.pods(PodPhase.FAILED, "2")
    stage.bench.advance(59)
    assert stage.state == "Running"

    stage.pods(PodPhase.SUCCEEDED, "3")  # in place of the one that failed
    assert stage.state == "Completed"


def test_in_the_later_dialect_what_said_so_and_was_cleaned_up_has_said_so() -> None:
    """``ttlSecondsAfterFinished``."""
    work = wrapper(JOB, 1, **V1BETA2)
    other = replace(JOB, name="other")
    items = (*work.items, replace(work.items[0], ref=other))
    sets = (*work.sets, replace(work.sets[0], item=1))
    bench = Bench(nodes=[node()]).start(replace(work, items=items, sets=sets))
    for ref in (JOB, other):
        child = bench.things[ref].child
        bench.feed(ChildSeen(_completed(child)))
        bench.feed(ChildGone(child.uid))
        bench.feed(PodGone(child.uid))
        bench.settle()
    assert bench.state("a") == "Completed"


def test_the_last_pod_may_vanish_rather_than_end() -> None:
    stage = Stage(wrapper(JOB, 2, "complete"))
    stage.pods(PodPhase.RUNNING, "1", "2")
    stage.says("complete", want=0)
    assert stage.state == "RunningHoldCompletion"
    stage.bench.feed(PodGone("pod-1"))
    assert stage.state == "RunningHoldCompletion"
    stage.bench.feed(PodGone("pod-2"))
    assert stage.state == "Completed"


def test_the_last_pod_may_be_nobodys_when_it_goes() -> None:
    """What stood between it and its item went first, so its chain of owners leads nowhere."""
    stage = Stage(wrapper(JOB, 1, "complete"))
    stage.pods(PodPhase.RUNNING, "1")
    stage.says("complete", want=0)
    assert stage.state == "RunningHoldCompletion"
    going = Pod("pod-1", "default", "1", "n1", PodPhase.RUNNING, cpu(100, 1), terminating=True)
    stage.bench.feed(PodSeen(going))
    stage.bench.feed(PodGone("pod-1"))
    assert stage.state == "Completed"


def test_what_is_taken_back_while_it_holds_runs_without_holding_the_next_time() -> None:
    stage = Stage(wrapper(DEPLOYMENT, 2, "progressing"))
    stage.says("progressing", want=2)
    assert stage.state == "RunningHoldCompletion"
    stage.bench.edit("uid-a", suspended=True)
    stage.bench.settle()
    assert stage.bench.condition("a", "RunningHoldCompletion") == (False, "Suspended", "")
    stage.bench.delete("uid-b")
    stage.bench.edit("uid-a", suspended=False)
    assert stage.state == "Running"


def test_a_pod_on_a_silent_node_counts_as_running() -> None:
    stage = Stage(wrapper(JOB, 1, "complete"))
    stage.pods(PodPhase.UNKNOWN, "1")
    stage.says("complete", want=0)
    assert stage.state == "RunningHoldCompletion"


def test_the_last_pod_to_vanish_ends_a_teardown_at_once() -> None:
    stage = Stage(wrapper(JOB, 1))
    stage.pods(PodPhase.RUNNING, "1")
    stage.bench.edit("uid-a", suspended=True)
    left = Thing(stage.bench.things[JOB].child, cpu(100, 1))
    pod = replace(JOB, group="", resource="pods", kind="Pod", name="1")
    stage.bench.things[pod] = dataclasses.replace(
        left, child=replace(left.child, uid="pod-1", ref=pod)
    )
    stage.bench.settle()
    assert stage.order == ["a"]
    del stage.bench.things[pod]
    stage.bench.feed(PodGone("pod-1"))
    assert stage.order == ["a", "b"]


@pytest.mark.parametrize("crash", [False, True])
def test_how_many_pods_succeeded_is_told_for_good_though_they_are_deleted(crash: bool) -> None:
    stage = Stage(wrapper(JOB, 2, "complete"))
    stage.pods(PodPhase.SUCCEEDED, "1", "2")
    stage.says("complete", want=0)
    assert stage.state == "Completed"
    for name in "12":
        stage.bench.feed(PodGone(f"pod-{name}"))
    if crash:
        stage.bench.crash()
    stage.bench.edit("uid-a", min_available=1)  # a reason to write the status again
    stage.bench.settle()
    view = stage.bench.status["uid-a"]
    assert view.observed_generation == 2
    assert view.pods == PodCounts(succeeded=2, totals=(("cpu", 200),))


def test_in_the_later_dialect_what_has_no_pods_does_not_succeed_by_itself() -> None:
    """A ConfigMap is no work that could be finished; upstream calls it an instant success."""
    config = ObjectRef("", "v1", "configmaps", "ConfigMap", "default", "it")
    bench = Bench(nodes=[node()]).start(replace(workload("a"), items=(Item(config),), **V1BETA2))
    bench.feed(PodGone(bench.things[config].child.uid))  # it is no pod itself
    bench.settle()
    assert bench.state("a") == "Running"
