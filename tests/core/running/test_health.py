"""v1beta2's fault tolerance: what is borne and for how long, what is reset, what fails.

Every clock is looked at just before and just after its end, and with a restart in between.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from mcad.core.attempts.teardown import stuck_teardowns
from mcad.core.events import AppWrapperSeen, ChildSeen, Decide, NodeSeen, PodGone, PodSeen
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import (
    Cascade,
    Dialect,
    Item,
    Next,
    ObjectRef,
    Pod,
    PodPhase,
    PodSet,
    Wanted,
    Workload,
)
from mcad.core.state.reasons import ConditionType
from mcad.core.state.run_policy import FaultTolerance
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from tests.core.bench import PATIENT, Bench, cpu, node, workload

QUICK = FaultTolerance(
    admission_grace=60 * SECOND,
    warmup_grace=300 * SECOND,
    failure_grace=40 * SECOND,
    retry_pause=90 * SECOND,
    retry_limit=2,
    forceful_deletion_grace=None,
    success_ttl=None,
)
Restart = Callable[[Bench], None]


def _no(_: Bench) -> None:
    pass


RESTARTS = pytest.mark.parametrize("restart", [_no, Bench.crash], ids=["alive", "restarted"])


def wrapper(name: str, *milli: int, tolerance: FaultTolerance = QUICK) -> Workload:
    """An AppWrapper of bare pods in the later dialect."""
    return workload(name, *milli, dialect=Dialect.V1BETA2, tolerance=tolerance)


def running(*works: Workload, milli: int = 1000, settings: Settings = PATIENT) -> Bench:
    """The first of them is dispatched, and its pods have nodes."""
    bench = Bench(settings, nodes=[node(milli=milli)]).start(works[0])
    for item in works[0].items:
        bench.bind(item.ref.name)
    bench.start(*works[1:])
    return bench


def phase(bench: Bench, name: str = "a") -> str:
    return bench.status[f"uid-{name}"].phase


def shown(bench: Bench, kind: str, name: str = "a") -> tuple[bool, str] | None:
    found = bench.condition(name, kind)
    return None if found is None else found[:2]


# -- the documented conditions -------------------------------------------------------------------


def test_what_is_shown_from_the_queue_to_ready_pods() -> None:
    bench = Bench(PATIENT, nodes=[node(milli=100)]).start(wrapper("a", 200))
    assert phase(bench) == "Suspended"
    assert shown(bench, "QuotaReserved") is None

    bench.feed(NodeSeen(node(milli=200)))
    bench.settle()
    assert phase(bench) == "Running"
    assert shown(bench, "QuotaReserved") == (True, "Resuming")
    assert shown(bench, "ResourcesDeployed") == (True, "Resuming")
    assert shown(bench, "PodsReady") == (False, "Resuming")
    assert shown(bench, "Unhealthy") == (False, "Resuming")
    assert bench.writes == {"status": 3, "create": 1}  # queued, intent, confirmation

    bench.bind("a-0")
    bench.settle()
    assert shown(bench, "PodsReady") == (True, "SufficientPodsReady")
    assert bench.writes["status"] == 4
    bench.change("a-0", phase=PodPhase.SUCCEEDED)
    bench.settle()
    assert phase(bench) == "Succeeded"
    assert shown(bench, "QuotaReserved") == (False, "Succeeded")
    assert shown(bench, "ResourcesDeployed") == (True, "Succeeded")


def test_what_does_not_change_is_not_written() -> None:
    bench = running(wrapper("a", 100, 100))
    writes = bench.writes.total()
    bench.advance(100_000)
    bench.bind("a-1")
    bench.settle()
    assert bench.writes.total() == writes


# -- failed pods ---------------------------------------------------------------------------------


@RESTARTS
def test_failed_pods_are_borne_for_the_failure_grace(restart: Restart) -> None:
    bench = running(wrapper("a", 100, 100))
    bench.change("a-0", phase=PodPhase.FAILED)
    bench.settle()
    assert shown(bench, "Unhealthy") == (True, "FoundFailedPods")
    bench.advance(20)
    restart(bench)
    bench.advance(40 - 20 - 2)
    assert (phase(bench), bench.status["uid-a"].resets) == ("Running", 0)

    bench.advance(3)
    assert (phase(bench), bench.status["uid-a"].resets) == ("Resetting", 1)
    assert bench.names() == []


@RESTARTS
def test_the_next_attempt_follows_the_pause_and_does_not_queue(restart: Restart) -> None:
    """It keeps its room: those that wait for it go on waiting."""
    bench = running(wrapper("a", 1000), workload("b", 500))
    bench.change("a-0", phase=PodPhase.FAILED)
    bench.advance(45)
    assert phase(bench) == "Resetting"
    assert (shown(bench, "QuotaReserved"), shown(bench, "ResourcesDeployed")) == (
        (True, "Resuming"),
        (False, "Resetting"),
    )
    bench.advance(40)
    restart(bench)
    bench.advance(40)
    assert (phase(bench), bench.state("b")) == ("Resetting", "Pending")

    bench.advance(10)
    assert (phase(bench), bench.state("b")) == ("Running", "Pending")
    assert bench.status["uid-a"].dispatch.attempt == 2
    assert shown(bench, "Unhealthy") == (False, "Resuming")
    assert bench.names() == ["a-0"]


def test_every_attempt_has_clocks_of_its_own() -> None:
    """Upstream's second failure has used up its grace and its pause already."""
    bench = running(wrapper("a", 100))
    for attempt in (1, 2):
        assert bench.status["uid-a"].dispatch.attempt == attempt
        bench.change("a-0", phase=PodPhase.FAILED)
        bench.advance(39)
        assert phase(bench) == "Running"
        bench.advance(2)
        assert phase(bench) == "Resetting"
        bench.advance(88)
        assert phase(bench) == "Resetting"
        bench.advance(3)
        assert phase(bench) == "Running"
        bench.bind("a-0")


def test_it_fails_when_its_retries_are_used_up() -> None:
    bench = running(wrapper("a", 1000), workload("b", 500))
    for _ in range(3):
        bench.change("a-0", phase=PodPhase.FAILED)
        bench.advance(45)
        bench.advance(95)
        if "a-0" in bench.names():
            bench.bind("a-0")
    assert (phase(bench), bench.state("a"), bench.status["uid-a"].resets) == (
        "Failed",
        "Failed",
        2,
    )
    assert bench.state("b") == "Running"
    assert shown(bench, "QuotaReserved") == (False, "Failed")
    bench.advance(10_000)
    assert bench.status["uid-a"].dispatch.attempt == 3


@pytest.mark.parametrize(
    ("terminal", "retryable", "code", "final"),
    [
        ((3,), (), 3, True),
        ((3,), (), 4, False),
        ((), (7, 8), 7, False),
        ((), (7, 8), 9, True),
        ((7,), (7,), 7, True),
        ((), (), 1, False),
    ],
)
def test_exit_codes_say_whether_another_try_is_of_use(
    terminal: tuple[int, ...], retryable: tuple[int, ...], code: int, *, final: bool
) -> None:
    codes = replace(QUICK, terminal_exit_codes=terminal, retryable_exit_codes=retryable)
    bench = running(wrapper("a", 100, tolerance=codes))
    _fails(bench, "a-0", code)
    bench.advance(45)
    assert phase(bench) == ("Failed" if final else "Resetting")
    assert str(code) in bench.status["uid-a"].dispatch.message


def _fails(bench: Bench, name: str, code: int) -> None:
    """The bare pod fails with this exit code."""
    bench.change(name, phase=PodPhase.FAILED)
    thing = next(thing for ref, thing in bench.things.items() if ref.name == name)
    child = thing.child
    bench.feed(
        PodSeen(
            Pod(
                child.uid,
                "default",
                name,
                "n1",
                PodPhase.FAILED,
                thing.request,
                workload=child.workload,
                item=child.item,
                index=0,
                attempt=child.attempt,
                exit_codes=(code,),
                root=child.uid,
            )
        )
    )


# -- pods that do not come -----------------------------------------------------------------------


@RESTARTS
def test_pods_that_do_not_run_are_borne_for_the_warmup_grace(restart: Restart) -> None:
    bench = Bench(PATIENT, nodes=[node()]).start(wrapper("a", 100))
    bench.advance(150)
    restart(bench)
    bench.advance(300 - 150 - 3)
    assert phase(bench) == "Running"
    bench.advance(4)
    assert phase(bench) == "Resetting"
    assert bench.condition("a", "Unhealthy")[1] == "InsufficientPodsReady"


def _lose(bench: Bench, name: str) -> None:
    """The item is there, its pod is not."""
    bench.feed(PodGone(next(t.child.uid for r, t in bench.things.items() if r.name == name)))


@RESTARTS
def test_pods_that_do_not_even_exist_are_borne_for_the_admission_grace(restart: Restart) -> None:
    """Since when is not on record: after a restart they are borne for as long again."""
    bench = running(wrapper("a", 100, 100))
    _lose(bench, "a-1")
    bench.advance(30)
    restart(bench)
    _lose(bench, "a-1")
    bench.advance(28 if restart is _no else 58)
    assert phase(bench) == "Running"
    bench.advance(4)
    assert phase(bench) == "Resetting"
    assert bench.condition("a", "Unhealthy")[1] == "InsufficientPodsReady"


def test_pods_that_come_in_time_are_borne_no_more() -> None:
    bench = running(wrapper("a", 100, 100))
    for _ in range(3):
        _lose(bench, "a-1")
        bench.advance(50)
        bench.change("a-1", phase=PodPhase.RUNNING)
        bench.advance(20)
    assert (phase(bench), bench.status["uid-a"].dispatch.attempt) == ("Running", 1)


@RESTARTS
def test_what_was_ready_has_the_same_grace_from_when_it_is_not(restart: Restart) -> None:
    bench = running(wrapper("a", 100, 100))
    bench.advance(1000)
    bench.change("a-1", phase=PodPhase.PENDING)
    bench.settle()
    assert shown(bench, "PodsReady") == (False, "InsufficientPodsReady")
    bench.advance(200)
    restart(bench)
    bench.advance(95)
    assert phase(bench) == "Running"
    bench.advance(10)
    assert phase(bench) == "Resetting"


# -- items ---------------------------------------------------------------------------------------


@RESTARTS
def test_a_deleted_item_fails_its_appwrapper(restart: Restart) -> None:
    bench = running(wrapper("a", 100, 100))
    bench.remove(bench.works["uid-a"].items[1].ref)
    restart(bench)
    bench.settle()
    assert (phase(bench), bench.status["uid-a"].resets) == ("Failed", 0)
    assert bench.condition("a", "Unhealthy")[1:] == (
        "MissingComponent",
        "Found 1 of 2 items; missing: Pod default/a-1 was deleted.",
    )
    assert bench.names() == []


# -- what is kept --------------------------------------------------------------------------------


@RESTARTS
def test_what_failed_is_kept_for_people_to_look_at(restart: Restart) -> None:
    keeping = replace(QUICK, retry_limit=0, deletion_on_failure_grace=600 * SECOND)
    bench = running(wrapper("a", 1000, tolerance=keeping), workload("b", 500))
    bench.change("a-0", phase=PodPhase.FAILED)
    bench.advance(45)
    assert (phase(bench), bench.state("a"), bench.names()) == ("Failed", "Failed", ["a-0"])
    assert shown(bench, "DeletingResources") == (False, "DeletionPaused")
    bench.advance(300)
    restart(bench)
    bench.advance(290)
    assert bench.names() == ["a-0"]
    bench.advance(20)
    assert bench.names() == ["b-0"]
    assert phase(bench) == "Failed"


def test_to_suspend_it_ends_that() -> None:
    keeping = replace(QUICK, retry_limit=0, deletion_on_failure_grace=600 * SECOND)
    bench = running(wrapper("a", 100, tolerance=keeping))
    bench.change("a-0", phase=PodPhase.FAILED)
    bench.advance(45)
    bench.edit("uid-a", suspended=True)
    bench.settle()
    assert (phase(bench), bench.names()) == ("Failed", [])


@RESTARTS
def test_what_succeeded_is_kept_until_its_time_is_over(restart: Restart) -> None:
    bench = running(wrapper("a", 100, tolerance=replace(QUICK, success_ttl=3600 * SECOND)))
    bench.change("a-0", phase=PodPhase.SUCCEEDED)
    bench.advance(1800)
    restart(bench)
    bench.advance(1795)
    assert (phase(bench), bench.names()) == ("Succeeded", ["a-0"])
    bench.advance(10)
    assert (phase(bench), bench.state("a"), bench.names()) == ("Succeeded", "Completed", [])
    assert shown(bench, "ResourcesDeployed") == (False, "Succeeded")
    assert bench.entry("a").phase is Phase.COMPLETED
    writes = bench.writes.total()
    bench.crash()
    bench.advance(100_000)
    assert bench.writes.total() == writes


def test_times_may_be_changed_while_they_run() -> None:
    """Annotations are no part of the spec, and count all the same."""
    bench = running(wrapper("a", 100, tolerance=replace(QUICK, success_ttl=3600 * SECOND)))
    bench.change("a-0", phase=PodPhase.SUCCEEDED)
    bench.settle()
    work = replace(bench.works["uid-a"], tolerance=replace(QUICK, success_ttl=60 * SECOND))
    bench.works["uid-a"] = work
    bench.feed(AppWrapperSeen(work))
    bench.advance(55)
    assert bench.names() == ["a-0"]
    bench.advance(10)
    assert bench.names() == []


# -- the pause -----------------------------------------------------------------------------------


def paused(*others: Workload) -> Bench:
    """``a`` has been reset, and nothing of it is left."""
    bench = running(wrapper("a", 1000), *others)
    bench.change("a-0", phase=PodPhase.FAILED)
    bench.advance(45)
    assert phase(bench) == "Resetting"
    return bench


def test_after_the_pause_nothing_begins_while_a_stream_is_silent() -> None:
    bench = paused()
    bench.now += 300 * SECOND
    bench.feed(Decide(may_dispatch=False))
    assert bench.entry("a").phase is Phase.PAUSING
    bench.feed(Decide())
    assert bench.entry("a").phase is Phase.INTENDING


@pytest.mark.parametrize("crash", [False, True])
def test_an_appwrapper_suspended_in_the_pause_gives_up_its_room(*, crash: bool) -> None:
    bench = paused(workload("b", 500))
    bench.edit("uid-a", suspended=True)
    if crash:
        bench.crash()
    bench.settle()
    assert (phase(bench), bench.state("b")) == ("Suspended", "Running")
    bench.edit("uid-a", suspended=False)
    bench.advance(1000)
    assert phase(bench) == "Suspended"  # there is no room
    bench.delete("uid-b")
    bench.advance(1)
    assert phase(bench) == "Running"


def test_an_appwrapper_deleted_in_the_pause_is_gone() -> None:
    bench = paused(workload("b", 500))
    bench.delete("uid-a")
    bench.advance(100)
    assert bench.state("b") == "Running"
    assert "uid-a" not in bench.dispatcher.cluster.entries


def test_an_appwrapper_that_loses_its_node_in_the_pause_is_requeued() -> None:
    bench = paused()
    bench.feed(NodeSeen(node(milli=100)))
    bench.advance(100)
    assert phase(bench) == "Suspended"
    bench.feed(NodeSeen(node(milli=1000)))
    bench.advance(1)
    assert (phase(bench), bench.status["uid-a"].dispatch.attempt) == ("Running", 2)


def test_an_appwrapper_suspended_during_a_reset_is_not_tried_again() -> None:
    bench = running(wrapper("a", 1000))
    thing = next(iter(bench.things.values()))
    thing.finalizers = ("example.com/keep",)
    bench.change("a-0", phase=PodPhase.FAILED)
    bench.advance(45)
    assert bench.status["uid-a"].dispatch.next is Next.RESET
    assert phase(bench) == "Resetting"
    bench.edit("uid-a", suspended=True)
    bench.settle()
    assert phase(bench) == "Suspending"
    bench.change("a-0", finalizers=())
    bench.remove(next(iter(bench.things)))
    bench.advance(1000)
    assert (phase(bench), bench.names()) == ("Suspended", [])


# -- nodes that have to be left ------------------------------------------------------------------

GPU = "nvidia.com/gpu"


def on_gpus(name: str, limit: int = 0) -> Workload:
    work = wrapper(name, 100, tolerance=replace(QUICK, retry_limit=limit))
    sets = tuple(replace(one, request=(("cpu", 100), (GPU, 1), ("pods", 1))) for one in work.sets)
    return replace(work, sets=sets)


def test_an_appwrapper_on_a_broken_gpu_moves_and_that_is_not_counted() -> None:
    """Also without any retry left, where upstream lets it fail."""
    good = replace(node("n1"), allocatable=(("cpu", 1000), (GPU, 1), ("pods", 9)))
    bench = Bench(PATIENT, nodes=[good, replace(good, name="n2")])
    bench.start(on_gpus("a"), wrapper("c", 100))
    bench.bind("a-0", on="n1")
    bench.bind("c-0", on="n1")
    bench.settle()
    bench.feed(NodeSeen(replace(good, evicts=(GPU,))))
    bench.settle()
    assert (phase(bench), bench.status["uid-a"].resets) == ("Resetting", 0)
    assert bench.condition("a", "Unhealthy")[1:] == (
        "AutopilotNoExecute",
        "Its pods have to leave: n1.",
    )
    assert phase(bench, "c") == "Running"  # it asks for no GPU


# -- force ---------------------------------------------------------------------------------------


@RESTARTS
def test_pods_that_do_not_go_are_deleted_by_force(restart: Restart) -> None:
    forced = replace(QUICK, forceful_deletion_grace=600 * SECOND)
    bench = running(wrapper("a", 100, tolerance=forced))
    bench.stubborn.add("a-0")
    bench.edit("uid-a", suspended=True)
    bench.advance(300)
    restart(bench)
    bench.advance(290)
    assert bench.writes["force"] == 0
    bench.advance(20)
    assert (bench.writes["force"], bench.names(), phase(bench)) == (1, [], "Suspended")


@RESTARTS
@pytest.mark.parametrize("dialect", Dialect)
def test_pods_that_keep_a_foreground_deletion_waiting_are_deleted_by_force(
    restart: Restart, dialect: Dialect
) -> None:
    """Its AppWrapper is there for as long as they are, and its user has to know why."""
    forced = replace(QUICK, forceful_deletion_grace=600 * SECOND)
    bench = running(replace(wrapper("a", 100, tolerance=forced), dialect=dialect))
    bench.stubborn.add("a-0")
    bench.edit("uid-a", deleting=True, cascade=Cascade.FOREGROUND)
    bench.settle()
    assert shown(bench, "DeletingResources") == (True, "DeletionInitiated")
    assert phase(bench) == ("Terminating" if dialect is Dialect.V1BETA2 else "")
    bench.advance(300)
    assert shown(bench, "DeletingResources") == (True, "WaitingForRemains")
    assert stuck_teardowns(bench.dispatcher.cluster) == {"Pod": 1}
    restart(bench)
    bench.advance(290)
    assert bench.writes["force"] == 0
    bench.advance(20)
    assert (bench.writes["force"], bench.names()) == (1, [])
    assert bench.looks < 10


def test_without_a_limit_a_foreground_deletion_waits_and_says_for_what() -> None:
    bench = running(wrapper("a", 100))
    bench.stubborn.add("a-0")
    bench.edit("uid-a", deleting=True, cascade=Cascade.FOREGROUND)
    bench.advance(100_000)
    assert (bench.writes["force"], bench.names()) == (0, ["a-0"])
    _, reason, message = bench.condition("a", "DeletingResources") or ("", "", "")
    assert reason == "WaitingForRemains"
    assert message.startswith("Pod default/a-0 is terminating")
    assert len([one for one in bench.events if one.reason == "WaitingForRemains"]) == 1


def test_a_finalizer_of_others_is_left_alone() -> None:
    forced = replace(QUICK, forceful_deletion_grace=60 * SECOND)
    bench = running(wrapper("a", 100, tolerance=forced))
    next(iter(bench.things.values())).finalizers = ("example.com/keep",)
    bench.edit("uid-a", suspended=True)
    bench.advance(10_000)
    assert bench.names() == ["a-0"]
    assert phase(bench) == "Suspending"
    assert bench.writes["force"] < 50


# -- pods of a controller ------------------------------------------------------------------------


def test_a_failed_pod_that_its_job_has_replaced_is_borne_for_good() -> None:
    job = ObjectRef("batch", "v1", "jobs", "Job", "default", "it")
    pods = PodSet(0, 0, "spec.template", 1, cpu(100, 1))
    bench = Bench(PATIENT, nodes=[node()])
    bench.start(replace(wrapper("a"), items=(Item(job, tells_end=True),), sets=(pods,)))
    [thing] = bench.things.values()
    root = thing.child.uid
    bench.feed(PodGone(root))  # it is no pod itself
    bench.feed(ChildSeen(replace(thing.child, wants=(Wanted(1),), met=frozenset())))
    for uid, state in (("lost", PodPhase.FAILED), ("new", PodPhase.RUNNING)):
        one = Pod(uid, "default", uid, "n1", state, cpu(100, 1), workload="uid-a")
        bench.feed(PodSeen(replace(one, item=0, index=0, attempt=1, root=root)))
    bench.advance(100)
    assert bench.state("a") == "Running"
    assert not bench.entry("a").shows(ConditionType.UNHEALTHY)
    assert bench.entry("a").attempt == 1
