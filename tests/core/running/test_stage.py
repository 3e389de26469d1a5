"""Running work is left alone: placement is judged once, and what comes later is not missing."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from mcad.core.events import (
    ChildGone,
    ChildSeen,
    KindWatched,
    NodeGone,
    NodeSeen,
    PodGone,
    PodSeen,
)
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import (
    Child,
    Dialect,
    Item,
    ItemState,
    ObjectRef,
    Pod,
    PodPhase,
    PodSet,
    Stuck,
    StuckReason,
    Unscheduled,
    Wanted,
)
from mcad.core.state.reasons import ConditionType
from mcad.core.state.run_policy import FaultTolerance
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from tests.core.bench import START, Bench, cpu, node, workload

DIALECTS = pytest.mark.parametrize("dialect", Dialect)
JOB = ObjectRef("batch", "v1", "jobs", "Job", "default", "it")
PLACEMENT_S, WARMUP_S, ADMISSION_S, ROOM_S = 300, 300, 60, 300
WORDS = "0/2 nodes are available: 2 Insufficient cpu."


class World:
    """``a`` wraps one object with sets of pods of 100m, on a node with room for ``nodes`` pods;
    ``b`` waits for room of one pod."""

    def __init__(self, dialect: Dialect, *replicas: int, nodes: int | None = None) -> None:
        room = sum(replicas) if nodes is None else nodes
        self.bench = Bench(Settings(), nodes=[node(milli=100 * room)])
        sets = tuple(
            PodSet(0, index, f"template.{index}", count, cpu(100, 1))
            for index, count in enumerate(replicas)
        )
        one = replace(workload("a"), items=(Item(JOB, tells_end=True),), sets=sets)
        self.bench.start(replace(one, dialect=dialect))
        self.child = self.bench.things[JOB].child
        self.bench.feed(PodGone(self.child.uid))  # it is no pod itself
        self.known: dict[str, Pod] = {}
        self.says(*(Wanted(count) for count in replicas))
        self.bench.start(workload("b", 100))

    def says(self, *wants: Wanted | None, **changes: Any) -> None:
        """The live object wants these pods of its sets."""
        changes.setdefault("state", ItemState.PROGRESSING)
        self.child = replace(self.child, wants=wants, **changes)
        self.bench.feed(ChildSeen(self.child))
        self.bench.settle()

    def pod(self, name: str, index: int = 0, on: str = "n1", **changes: Any) -> None:
        """A pod of a set appears or changes; it runs and is ready if it has a node."""
        phase = PodPhase.RUNNING if on else PodPhase.PENDING
        made = Pod(name, "default", name, on, phase, cpu(100, 1), created=self.bench.now)
        made = replace(made, workload="uid-a", item=0, index=index, attempt=1)
        made = self.known.get(name, replace(made, root=self.child.uid))
        changes = {"node": on, "phase": phase, "ready": bool(on), **changes}
        if not on:
            changes.setdefault("unscheduled", Unscheduled(WORDS, START))
        self.known[name] = replace(made, **changes)
        self.bench.feed(PodSeen(self.known[name]))
        self.bench.settle()

    def gone(self, *names: str) -> None:
        for name in names:
            del self.known[name]
            self.bench.feed(PodGone(name))
        self.bench.settle()

    def crash(self) -> None:
        """A new leader; it sees the same."""
        self.bench.crash()
        self.bench.feed(ChildSeen(self.child))
        self.bench.feed(PodGone(self.child.uid))
        for pod in self.known.values():
            self.bench.feed(PodSeen(pod))
        self.bench.settle()

    @property
    def runs(self) -> bool:
        """Whether the first attempt goes on."""
        entry = self.bench.entry("a")
        return entry.phase is Phase.RUNNING and (entry.attempt, entry.past.resets) == (1, 0)

    @property
    def started(self) -> list[str]:
        """The AppWrappers that were dispatched, each once."""
        return list(dict.fromkeys(self.bench.order))

    @property
    def room(self) -> int:
        """Pods for which room is assumed."""
        return sum(self.bench.dispatcher.cluster.capacity.gangs.outstanding("uid-a"))

    @property
    def stall(self) -> tuple[str, str]:
        """(reason, message) of the condition, ("", "") if it is not True."""
        status, reason, message = self.bench.condition("a", "Stalled") or (False, "", "")
        return (reason, message) if status else ("", "")


# -- placement is judged once --------------------------------------------------------------------


@DIALECTS
@pytest.mark.parametrize("restart", [False, True])
def test_a_surplus_pod_without_a_node_ends_nothing(dialect: Dialect, *, restart: bool) -> None:
    world = World(dialect, 2)
    world.pod("x")
    world.pod("y")
    world.bench.advance(60)
    world.says(Wanted(4))
    world.pod("z", on="")
    world.pod("zz", on="")
    if restart:
        world.crash()
    world.bench.advance(10 * PLACEMENT_S)
    assert world.runs
    assert world.stall[0] == "PodsUnschedulable"
    assert world.room == 0


@DIALECTS
def test_a_surplus_pod_does_not_count_before_all_have_nodes_either(dialect: Dialect) -> None:
    world = World(dialect, 1)
    world.says(Wanted(2))
    world.pod("x")
    world.pod("y", on="")
    world.bench.advance(10 * PLACEMENT_S)
    assert world.runs


@DIALECTS
def test_a_surplus_pod_of_one_set_does_not_stand_for_a_pod_of_another(dialect: Dialect) -> None:
    world = World(dialect, 1, 1)
    world.says(Wanted(2), Wanted(1))
    world.pod("x")
    world.pod("xx", on="")
    world.pod("y", index=1, on="", gated=True, unscheduled=None)
    world.bench.advance(10 * PLACEMENT_S)
    assert world.runs


@DIALECTS
@pytest.mark.parametrize("restart", [False, True])
def test_a_successor_without_a_node_ends_nothing(dialect: Dialect, *, restart: bool) -> None:
    world = World(dialect, 3)
    for name in "xyz":
        world.pod(name)
    world.bench.advance(60)
    world.bench.feed(NodeGone("n1"))
    world.gone("z")
    world.pod("w", on="")
    if restart:
        world.bench.nodes.clear()
        world.crash()
    world.bench.advance(10 * PLACEMENT_S)
    assert world.runs
    assert world.stall[1].startswith("1 pod without a node since ")
    assert WORDS.rstrip(".") in world.stall[1]


@DIALECTS
def test_a_successor_in_an_early_stage_ends_nothing(dialect: Dialect) -> None:
    """The pods of the stages that follow have had no nodes yet, and are not waited for."""
    world = World(dialect, 3)
    world.says(Wanted(1, 2))
    world.pod("x")
    world.bench.advance(1)
    world.bench.feed(NodeGone("n1"))
    world.gone("x")
    world.pod("w", on="")
    world.bench.advance(10 * PLACEMENT_S)
    assert world.runs
    assert world.stall[0] == "PodsUnschedulable"


@DIALECTS
def test_declared_pods_that_never_find_nodes_end_the_attempt(dialect: Dialect) -> None:
    world = World(dialect, 2)
    world.pod("x")
    world.pod("y", on="")
    world.bench.advance(PLACEMENT_S - 1)
    assert world.runs
    world.bench.advance(3)
    assert not world.runs
    told = world.bench.status["uid-a"].dispatch.message
    assert "y" in told
    assert WORDS.rstrip(".") in told


@DIALECTS
def test_gated_pods_have_no_turn_yet(dialect: Dialect) -> None:
    world = World(dialect, 2)
    for name in "xy":
        world.pod(name, on="", gated=True, unscheduled=None)
    world.bench.advance(10 * PLACEMENT_S)
    assert world.runs
    assert world.stall[0] == "SchedulingGated"
    assert world.room == 2
    for name in "xy":
        world.pod(name, on="", gated=False)
    world.bench.advance(PLACEMENT_S - 2)
    assert world.runs
    assert world.stall[0] == "PodsUnschedulable"
    world.bench.advance(4)
    assert not world.runs, "now its turn has come"


@DIALECTS
def test_pods_that_lost_their_gates_between_two_dispatchers_have_all_their_time(
    dialect: Dialect,
) -> None:
    world = World(dialect, 2)
    for name in "xy":
        world.pod(name, on="", gated=True, unscheduled=None)
    world.bench.advance(10 * PLACEMENT_S)
    told = Unscheduled(WORDS, START)
    for name, pod in world.known.items():
        world.known[name] = replace(pod, gated=False, amended=True, unscheduled=told)
    world.crash()
    world.bench.advance(PLACEMENT_S - 2)
    assert world.runs
    world.bench.advance(4)
    assert not world.runs, "now its turn has come"


@pytest.mark.parametrize("restart", [False, True])
def test_a_pod_that_waited_long_for_its_node_has_time_to_start(*, restart: bool) -> None:
    world = World(Dialect.V1BETA2, 2)
    world.pod("x")
    world.pod("y")
    world.bench.advance(60)
    world.gone("y")
    world.pod("z", on="")
    world.bench.advance(10 * WARMUP_S)
    assert world.runs
    world.pod("z", phase=PodPhase.PENDING, ready=False, unscheduled=None, bound=world.bench.now)
    if restart:
        world.bench.advance(10)
        world.crash()
    world.bench.advance(WARMUP_S - 20)
    assert world.runs
    world.bench.advance(30)
    assert not world.runs


def test_a_pod_of_a_later_stage_counts_from_its_own_creation() -> None:
    world = World(Dialect.V1BETA1, 1, 1)
    world.says(Wanted(1), Wanted(0, 1))
    world.pod("x")
    world.bench.advance(10 * PLACEMENT_S)
    assert world.runs
    assert world.room == 1, "the room of a stage is kept for the whole run"
    world.says(Wanted(1), Wanted(1))
    world.pod("y", index=1, on="")
    world.bench.advance(PLACEMENT_S - 1)
    assert world.runs
    world.bench.advance(2)
    assert not world.runs, "the gang was never complete"


def test_a_successor_in_the_first_stage_ends_nothing_while_the_second_is_to_come() -> None:
    world = World(Dialect.V1BETA1, 2, 1)
    world.says(Wanted(2), Wanted(0, 1))
    world.pod("x")
    world.pod("y")
    world.gone("y")
    world.pod("z", on="")
    world.bench.advance(10 * PLACEMENT_S)
    assert world.runs


# -- what comes later is not missing -------------------------------------------------------------


@DIALECTS
@pytest.mark.parametrize("restart", [False, True])
def test_pods_of_a_later_stage_are_not_missing(dialect: Dialect, *, restart: bool) -> None:
    world = World(dialect, 1, 2)
    world.says(Wanted(1), Wanted(0, 2))
    world.pod("x")
    if restart:
        world.crash()
    world.bench.advance(100 * ROOM_S)
    assert (world.runs, world.room) == (True, 2)
    assert world.started == ["a"]


def test_a_pod_that_has_succeeded_is_not_missing() -> None:
    """A JobSet tells of its Jobs, not of their pods."""
    world = World(Dialect.V1BETA2, 3)
    for name in "xyz":
        world.pod(name)
    world.pod("z", phase=PodPhase.SUCCEEDED, ready=False)
    world.bench.advance(10 * ADMISSION_S)
    assert world.runs


def test_pods_of_a_set_without_declared_ones_are_not_late() -> None:
    """Runs of a CronJob."""
    world = World(Dialect.V1BETA2, 1, 0)
    world.says(Wanted(1), Wanted(0))
    world.pod("x", phase=PodPhase.PENDING, ready=False)
    world.pod("y", index=1, phase=PodPhase.PENDING, ready=False)
    world.bench.advance(100)
    world.pod("x")
    world.bench.advance(10 * WARMUP_S)
    assert world.runs


def test_a_pod_that_is_seen_before_its_owners_appears_when_they_are_known() -> None:
    world = World(Dialect.V1BETA2, 2)
    world.bench.advance(ADMISSION_S - 10)
    world.bench.feed(PodSeen(replace(pod_of(world, "x"), workload="")))
    world.bench.advance(5)
    world.pod("x")
    world.bench.advance(ADMISSION_S - 2)
    assert world.runs


def pod_of(world: World, name: str) -> Pod:
    """A pod of the first set, as it is seen first."""
    made = Pod(name, "default", name, "", PodPhase.PENDING, cpu(100, 1), created=world.bench.now)
    return replace(made, workload="uid-a", item=0, index=0, attempt=1, root=world.child.uid)


def test_nothing_is_missing_while_pods_warm_up() -> None:
    """Whatever the kind: a pod that is not ready yet may be what the others wait for."""
    world = World(Dialect.V1BETA2, 3)
    world.pod("x", phase=PodPhase.PENDING, ready=False)
    world.bench.advance(200)
    assert world.runs
    world.pod("x")
    world.bench.advance(ADMISSION_S - 1)
    assert world.runs
    world.pod("y")
    world.bench.advance(ADMISSION_S - 1)
    assert world.runs, "each pod that appears begins the clock anew"
    world.bench.advance(2)
    assert not world.runs


def test_a_pod_that_is_never_ready_holds_the_clock_for_its_warmup_grace_only() -> None:
    world = World(Dialect.V1BETA2, 2)
    world.pod("x", ready=False)
    world.bench.advance(WARMUP_S - 2)
    assert world.runs
    world.bench.advance(ADMISSION_S + 4)
    assert not world.runs


@DIALECTS
def test_what_no_object_tells_of_is_never_ended_by_a_count(dialect: Dialect) -> None:
    world = World(dialect, 3)
    world.says(None, state=ItemState.UNKNOWN)
    world.pod("x")
    world.bench.advance(100 * ROOM_S)
    assert world.runs
    assert world.room == 0, "its room is given up (C4)"


@DIALECTS
def test_pods_that_are_lost_and_not_replaced_end_the_attempt_in_the_later_dialect(
    dialect: Dialect,
) -> None:
    world = World(dialect, 2)
    world.pod("x")
    world.pod("y")
    world.bench.advance(1000)
    world.gone("y")
    world.bench.advance(ADMISSION_S - 1)
    assert world.runs
    world.bench.advance(2)
    assert world.runs is (dialect is Dialect.V1BETA1)


def test_one_more_lost_pod_has_its_own_grace() -> None:
    world = World(Dialect.V1BETA2, 3)
    for name in "xyz":
        world.pod(name)
    world.bench.advance(1000)
    world.gone("z")
    world.bench.advance(ADMISSION_S - 10)
    world.gone("y")
    world.bench.advance(ADMISSION_S - 1)
    assert world.runs
    world.bench.advance(2)
    assert not world.runs


@DIALECTS
def test_pods_that_never_come_again_give_their_room_back(dialect: Dialect) -> None:
    """A failed index of an Indexed Job."""
    world = World(dialect, 3)
    for name in "xyz":
        world.pod(name)
    world.pod("z", phase=PodPhase.FAILED)
    world.says(Wanted(2))
    world.bench.advance(1000)
    assert world.runs
    assert world.started == ["a", "b"]


# -- retries and suspension ----------------------------------------------------------------------


@DIALECTS
def test_a_retry_is_no_end(dialect: Dialect) -> None:
    world = World(dialect, 2)
    world.pod("x")
    world.pod("y")
    world.pod("x", phase=PodPhase.FAILED)
    world.gone("y")
    world.says(Wanted(2), state=ItemState.RETRYING, met=frozenset())
    world.bench.advance(10 * ROOM_S)
    assert (world.runs, world.room) == (True, 2)
    assert world.stall[0] == "Retrying"
    assert world.started == ["a"]


@pytest.mark.parametrize("codes", [(3,), ()])
def test_an_exit_code_can_say_that_a_retry_is_of_no_use(codes: tuple[int, ...]) -> None:
    world = World(Dialect.V1BETA2, 1)
    patient = replace(FaultTolerance(), terminal_exit_codes=codes)
    work = replace(world.bench.works["uid-a"], tolerance=patient)
    world.bench.works["uid-a"] = work
    world.bench.edit("uid-a", tolerance=patient)
    world.pod("x")
    world.pod("x", phase=PodPhase.FAILED, exit_codes=(3,))
    world.says(Wanted(1), state=ItemState.RETRYING)
    world.bench.advance(100)
    assert world.bench.state("a") == ("Failed" if codes else "Running")


@DIALECTS
@pytest.mark.parametrize("restart", [False, True])
def test_what_a_client_suspends_stays_suspended(dialect: Dialect, *, restart: bool) -> None:
    world = World(dialect, 2)
    world.pod("x")
    world.pod("y")
    world.bench.advance(60)
    why = "spec.suspend is true, set by kubectl-patch"
    world.says(Wanted(0), state=ItemState.SUSPENDED, suspended=why)
    assert world.started == ["a"], "its pods still run"
    world.gone("x", "y")
    world.bench.advance(10 * ROOM_S)
    if restart:
        world.crash()
    assert world.runs
    assert world.started == ["a", "b"], "its room is free"
    assert world.stall == ("ItemSuspended", f"{JOB} is suspended ({why}).")
    ready = world.bench.condition("a", "PodsReady")
    assert ready is None or not ready[0]

    world.says(Wanted(2), suspended="")
    if restart:
        world.crash()
    assert world.room == 0, "pods that come now are surplus"
    world.pod("z", on="")
    world.bench.advance(10 * PLACEMENT_S)
    assert world.runs


# -- what became of items ------------------------------------------------------------------------


def bare(dialect: Dialect) -> Bench:
    """``a`` is a bare Pod of its node."""
    bench = Bench(Settings(), nodes=[node(milli=100)])
    return bench.start(workload("a", 100, dialect=dialect)).bind("a-0")


@DIALECTS
@pytest.mark.parametrize("why", ["PreemptionByScheduler", "DeletionByTaintManager", "Unheard"])
def test_a_bare_pod_that_the_cluster_took_away_is_tried_again(dialect: Dialect, why: str) -> None:
    bench = bare(dialect)
    bench.settle()
    bench.change("a-0", disruption=why)
    bench.remove(bench.works["uid-a"].items[0].ref)
    bench.settle()
    assert bench.entry("a").past.resets == 1
    assert bench.condition("a", "Unhealthy")[1] == "LostComponent"
    bench.advance(100)
    assert (bench.state("a"), bench.status["uid-a"].dispatch.attempt) == ("Running", 2)


@DIALECTS
def test_a_bare_pod_on_a_lost_node_was_not_deleted_by_a_client(dialect: Dialect) -> None:
    bench = bare(dialect)
    bench.settle()
    bench.feed(NodeGone("n1"))
    bench.remove(bench.works["uid-a"].items[0].ref)
    bench.settle()
    assert bench.entry("a").past.resets == 1
    assert "was lost with node n1" in bench.condition("a", "Unhealthy")[2]


@DIALECTS
def test_a_bare_pod_that_a_client_deleted_just_before_its_node_failed_was_deleted(
    dialect: Dialect,
) -> None:
    bench = bare(dialect)
    bench.settle()
    (item,) = bench.works["uid-a"].items
    bench.stubborn.add("a-0")
    bench.delete_object(item.ref)
    bench.feed(NodeSeen(node(milli=100, ready=False)))
    bench.remove(item.ref)
    bench.settle()
    assert bench.condition("a", "Unhealthy")[1] == "MissingComponent"
    assert "was deleted" in bench.condition("a", "Unhealthy")[2]


@DIALECTS
@pytest.mark.parametrize("words", ["", "Preempted by pod x on node n1"])
def test_events_say_what_became_of_a_bare_pod_that_went_unseen(
    dialect: Dialect, words: str
) -> None:
    bench = bare(dialect)
    bench.settle()
    bench.refused_words["a-0"] = words
    del bench.things[bench.works["uid-a"].items[0].ref]
    bench.restart()
    assert bench.state("a") == ("Pending" if words else "Failed")
    assert (words or "was deleted") in bench.condition("a", "Unhealthy")[2]


def test_an_item_lives_until_its_end_is_on_record_and_its_time_is_over() -> None:
    bench = Bench(Settings(), nodes=[node(milli=100)])
    work = workload("a", 100, dialect=Dialect.V1BETA2)
    bench.start(replace(work, items=(replace(work.items[0], ttl=50 * SECOND),))).bind("a-0")
    bench.change("a-0", phase=PodPhase.SUCCEEDED)
    child: Child = bench.things[work.items[0].ref].child
    ended = replace(child, state=ItemState.SUCCEEDED, ended=bench.now, wants=(Wanted(0),))
    bench.feed(ChildSeen(ended))
    bench.advance(48)
    assert (bench.state("a"), bench.names()) == ("Completed", ["a-0"])
    bench.advance(4)
    assert (bench.state("a"), bench.names()) == ("Completed", [])
    bench.feed(ChildGone(child.uid))
    bench.advance(1000)
    assert (bench.state("a"), bench.created.total()) == ("Completed", 1)


# -- what is told --------------------------------------------------------------------------------


@DIALECTS
def test_an_image_that_cannot_be_pulled_is_told_at_once(dialect: Dialect) -> None:
    world = World(dialect, 2)
    why = Stuck(StuckReason.IMAGE, "container main: ErrImagePull: not found")
    world.pod("x", phase=PodPhase.PENDING, ready=False, stuck=why)
    assert world.stall[0] == "ImagePullFailed"
    assert "x" in world.stall[1]
    assert "not found" in world.stall[1]
    events = [one for one in world.bench.events if one.reason == "ImagePullFailed"]
    assert len(events) == 1
    world.pod("x", stuck=None)
    world.pod("y")
    world.bench.advance(60)
    assert world.stall == ("", "")


def test_a_crash_loop_is_told_once_although_the_container_runs_in_between() -> None:
    world = World(Dialect.V1BETA1, 1)
    why = Stuck(StuckReason.CRASH, "container main: CrashLoopBackOff")
    world.pod("x")
    world.bench.advance(100)
    for _ in range(10):
        world.pod("x", stuck=why)
        world.bench.advance(40)
        world.pod("x", stuck=None)
        world.bench.advance(5)
        assert world.stall[0] == "CrashLoop"
    assert [one.reason for one in world.bench.events].count("CrashLoop") == 1
    world.bench.advance(60)
    assert world.stall == ("", "")


@DIALECTS
def test_pods_that_are_refused_are_told_in_the_words_of_the_server(dialect: Dialect) -> None:
    world = World(dialect, 2)
    world.bench.refused_words["it"] = 'pods "it-0" is forbidden: exceeded quota: team'
    world.bench.advance(10)
    assert world.stall[0] == "PodsRefused"
    assert "exceeded quota: team" in world.stall[1]
    world.pod("x")
    world.pod("y")
    world.bench.advance(60)
    assert world.stall == ("", "")


@DIALECTS
def test_pods_that_their_node_does_not_start_are_told_in_its_words(dialect: Dialect) -> None:
    """Their status says ContainerCreating for as long as a volume cannot be mounted."""
    world, words = World(dialect, 2), 'Pod default/y: MountVolume.SetUp failed for volume "data"'
    world.bench.refused_words["y"] = words
    world.pod("x")
    world.pod("y", phase=PodPhase.PENDING, ready=False)
    world.bench.advance(10)
    assert world.stall[0] == "ContainerCannotStart"
    assert world.stall[1].startswith("1 pod is unable to run: y since ")
    assert words in world.stall[1]
    world.pod("y", phase=PodPhase.PENDING, ready=False)  # some other part of its status changes
    world.bench.advance(40)
    assert world.stall[0] == "ContainerCannotStart", "they are asked for again"
    world.pod("y", phase=PodPhase.RUNNING, ready=True)
    world.bench.advance(60)
    assert world.stall == ("", "")


@DIALECTS
def test_pods_that_have_just_got_their_nodes_are_not_asked_about(dialect: Dialect) -> None:
    world = World(dialect, 1)
    world.bench.refused_words["x"] = "Pod default/x: no such volume"
    world.pod("x", phase=PodPhase.PENDING, ready=False)
    world.bench.advance(7)
    world.pod("x")
    world.bench.advance(60)
    assert world.stall == ("", "")
    assert [one.reason for one in world.bench.events].count("ContainerCannotStart") == 0


def test_pods_that_run_on_after_the_end_are_told() -> None:
    world = World(Dialect.V1BETA2, 1, 2)
    world.pod("l")
    for name in "xy":
        world.pod(name, index=1)
    world.pod("l", phase=PodPhase.SUCCEEDED)
    now = world.bench.now
    world.says(Wanted(0), Wanted(2), state=ItemState.SUCCEEDED, ended=now)
    assert world.stall[0] == "PodsRemain"
    assert "x, y" in world.stall[1]
    world.gone("x", "y")
    assert world.bench.state("a") == "Completed", "its object says the same as before"


@DIALECTS
def test_ready_and_stalled_end_with_the_attempt(dialect: Dialect) -> None:
    world = World(dialect, 1)
    world.pod("x")
    world.bench.edit("uid-a", suspended=True)
    world.bench.settle()
    for kind in ("PodsReady", "Stalled"):
        found = world.bench.condition("a", kind)
        assert found is None or not found[0]


@pytest.mark.parametrize("wanted", [Wanted(2), None], ids=["known kind", "unknown kind"])
def test_pods_that_are_not_waited_for_any_more_are_still_told_of(wanted: Wanted | None) -> None:
    world = World(Dialect.V1BETA1, 2)
    world.says(wanted)
    world.pod("x")
    world.pod("y")
    world.gone("x", "y")
    world.bench.advance(3600)
    assert world.runs
    assert world.room == 0
    told = world.bench.condition("a", ConditionType.STALLED)
    assert told is not None
    assert told[1] == "PodsMissing"


def test_a_kind_that_tells_nothing_may_have_fewer_pods_than_declared() -> None:
    world = World(Dialect.V1BETA1, 2)
    world.says(None)
    world.pod("x")
    world.bench.advance(3600)
    assert world.runs
    assert world.bench.condition("a", ConditionType.STALLED) is None


def test_a_failed_pod_stays_replaced_while_its_successor_is_being_deleted() -> None:
    world = World(Dialect.V1BETA2, 1)
    world.pod("x", phase=PodPhase.FAILED, ready=False)
    world.pod("y")
    world.pod("y", terminating=True, disruption="DeletionByTaintManager")
    world.bench.advance(1)
    shown = world.bench.condition("a", ConditionType.UNHEALTHY)
    assert shown is None or not shown[0]


def test_an_item_is_not_absent_while_its_kind_is_not_watched() -> None:
    """Its API may be away: then the watch of every object of it tells that it is gone."""
    world = World(Dialect.V1BETA2, 1)
    world.pod("x")
    world.bench.feed(KindWatched("batch", "jobs", watched=False, message="it is not installed"))
    world.bench.feed(ChildGone(world.child.uid))
    world.bench.advance(3600)
    assert world.runs
    world.says(Wanted(1))
    world.bench.feed(KindWatched("batch", "jobs", watched=True, message=""))
    world.bench.advance(3600)
    assert world.runs


# -- what was while no dispatcher looked, or too late for it --------------------------------------


def test_pods_on_a_node_that_failed_before_they_were_attributed_have_had_nodes() -> None:
    world = World(Dialect.V1BETA1, 2)
    world.bench.feed(NodeSeen(node(milli=200, ready=False)))
    world.pod("x", ready=False)
    world.pod("y", ready=False)
    world.bench.advance(10)
    world.gone("x", "y")
    world.bench.advance(2 * PLACEMENT_S)
    assert world.runs


@pytest.mark.parametrize(("since_s", "goes_on"), [(WARMUP_S - 10, True), (10, False)])
def test_a_pod_that_became_ready_between_two_dispatchers_begins_the_clock_anew(
    since_s: int, goes_on: bool
) -> None:
    world = World(Dialect.V1BETA2, 2)
    world.pod("x", ready=False, phase=PodPhase.PENDING)
    world.pod("y", ready=False, phase=PodPhase.PENDING)
    began = world.bench.now
    world.bench.now += WARMUP_S * SECOND
    world.known["x"] = replace(
        world.known["x"],
        phase=PodPhase.RUNNING,
        ready=True,
        ready_since=began + since_s * SECOND,
    )
    world.crash()
    world.bench.advance(20)
    assert world.runs is goes_on
