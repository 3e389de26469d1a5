"""The pod counts in status: right with every write, and never older than the interval (ADR 22)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mcad.core.events import PodGone, PodSeen
from mcad.core.state.model import (
    Dialect,
    Item,
    ObjectRef,
    Pod,
    PodCounts,
    PodPhase,
    PodSet,
    Unscheduled,
)
from mcad.core.state.settings import Settings
from mcad.core.state.status_view import StatusView
from mcad.core.status.pod_counts import UNSCHEDULED_SHOWN
from tests.core.bench import PATIENT, START, Bench, cpu, node, workload

INTERVAL = 30
GANG = ObjectRef("apps", "v1", "deployments", "Deployment", "default", "gang")


class Stage:
    """``a`` is one Deployment with as many ``running`` pods, and others as the test says."""

    def __init__(
        self,
        pods: int,
        dialect: Dialect = Dialect.V1BETA1,
        settings: Settings = PATIENT,
        *,
        running: int = 0,
    ) -> None:
        self.bench = Bench(settings, nodes=[node(milli=100 * pods)])
        sets = (PodSet(0, 0, "spec.template", pods, cpu(100, 1)),)
        self.bench.submit(
            replace(workload("a"), items=(Item(GANG),), sets=sets, dialect=dialect)
        ).settle()
        self.find()
        for number in range(running):
            self.pod(number, PodPhase.RUNNING)

    def find(self) -> None:
        self.root = self.bench.things[GANG].child.uid
        self.bench.feed(PodGone(self.root))  # it is no pod itself

    def pod(self, number: int, phase: PodPhase, words: str = "") -> None:
        """A pod of it is in this phase; ``words`` are kube-scheduler's."""
        name = f"gang-{number:03}"
        where = "n1" if phase is not PodPhase.PENDING else ""
        pod = Pod(f"pod-{name}", "default", name, where, phase, cpu(100, 1))
        pod = replace(pod, workload="uid-a", item=0, index=0, attempt=1, root=self.root)
        self.bench.feed(
            PodSeen(replace(pod, unscheduled=Unscheduled(words, START) if words else None))
        )

    def gone(self, number: int) -> None:
        self.bench.feed(PodGone(f"pod-gang-{number:03}"))

    def passes(self, seconds: float) -> int:
        """Time passes; how often status is written in it."""
        before = self.bench.writes["status"]
        self.bench.advance(seconds)
        return self.bench.writes["status"] - before

    @property
    def view(self) -> StatusView:
        return self.bench.status["uid-a"]

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Pending, running, succeeded and failed pods, as status says."""
        pods = self.view.pods
        return (pods.pending, pods.running, pods.succeeded, pods.failed)

    @property
    def waiting(self) -> list[str]:
        return [name for name, _ in self.view.pods.unscheduled]


@pytest.mark.parametrize("dialect", Dialect)
def test_a_gang_of_a_hundred_that_comes_up_costs_a_write_per_interval(dialect: Dialect) -> None:
    """Two hundred changes of pods within 50 s."""
    stage = Stage(100, dialect)
    before = stage.bench.writes["status"]
    for number in range(100):
        for phase in (PodPhase.PENDING, PodPhase.RUNNING):
            stage.pod(number, phase)
            stage.passes(0.25)
    stage.passes(INTERVAL)

    assert stage.counts == (0, 100, 0, 0)
    assert dict(stage.view.pods.totals) == {"cpu": 10_000}
    # And one when all are placed; in v1beta2 that is said along with PodsReady.
    assert stage.bench.writes["status"] - before == 3
    assert stage.passes(86_400) == 0


def test_the_first_change_is_written_at_once_and_the_next_ones_together() -> None:
    stage = Stage(3, running=3)
    stage.passes(600)
    assert stage.counts == (0, 3, 0, 0)

    stage.pod(0, PodPhase.FAILED)
    assert stage.passes(0) == 1
    assert stage.counts == (0, 2, 0, 1)

    stage.pod(3, PodPhase.PENDING)
    stage.pod(1, PodPhase.FAILED)
    assert stage.passes(INTERVAL - 1) == 0
    assert stage.passes(2) == 1
    assert stage.counts == (1, 1, 0, 2)

    stage.pod(4, PodPhase.PENDING)
    stage.gone(4)
    assert stage.passes(600) == 0, "as it was when the time came"


def test_a_restart_writes_nothing_that_is_on_record() -> None:
    words = "0/1 nodes are available: 1 Insufficient cpu."
    stage = Stage(2, running=1)
    stage.pod(1, PodPhase.PENDING, words)
    stage.passes(600)
    assert stage.counts == (1, 1, 0, 0)

    def restart(phase: PodPhase, words: str = "") -> None:
        stage.bench.crash()
        stage.find()
        stage.pod(0, PodPhase.RUNNING)
        stage.pod(1, phase, words)

    restart(PodPhase.PENDING, words)
    assert stage.passes(600) == 0
    assert stage.counts == (1, 1, 0, 0)

    restart(PodPhase.RUNNING)
    assert stage.passes(INTERVAL - 1) == 0, "a start has more urgent things to write"
    assert stage.passes(2) == 1
    assert (stage.counts, stage.waiting) == ((0, 2, 0, 0), [])


def test_pods_without_a_node_are_named_and_other_words_about_them_are_no_reason_to_write() -> None:
    stage = Stage(3, running=1)
    stage.pod(1, PodPhase.PENDING, "0/9 nodes are available.")
    stage.pod(2, PodPhase.PENDING)
    stage.passes(600)
    assert stage.waiting == ["gang-001"]

    for nodes in range(10, 100):  # the cluster grows, and kube-scheduler says so each time
        stage.pod(1, PodPhase.PENDING, f"0/{nodes} nodes are available.")
        assert stage.passes(INTERVAL) == 0

    stage.pod(2, PodPhase.PENDING, "0/99 nodes are available.")  # as many pods as before
    assert stage.passes(0) == 1
    assert stage.waiting == ["gang-001", "gang-002"]
    said = {words.message for _, words in stage.view.pods.unscheduled}
    assert said == {"0/99 nodes are available."}

    stage.pod(1, PodPhase.RUNNING)
    stage.pod(2, PodPhase.RUNNING)
    stage.passes(INTERVAL)
    assert stage.waiting == []


def test_a_gang_without_nodes_names_its_first_pods_only() -> None:
    stage = Stage(100)
    for number in reversed(range(100)):
        stage.pod(number, PodPhase.PENDING, "0/9 nodes are available.")
    stage.passes(INTERVAL)
    assert stage.counts == (100, 0, 0, 0)
    assert stage.waiting == [f"gang-{number:03}" for number in range(UNSCHEDULED_SHOWN)]


def test_an_attempt_that_is_taken_back_has_no_pods() -> None:
    stage = Stage(2, running=2)
    stage.passes(INTERVAL)
    assert stage.counts == (0, 2, 0, 0)

    stage.bench.edit("uid-a", suspended=True)
    for number in range(2):
        stage.gone(number)
    stage.passes(INTERVAL)
    assert stage.bench.state("a") == "Pending"
    assert stage.view.pods == PodCounts()


def test_a_completed_appwrapper_keeps_its_counts_when_its_pods_are_deleted() -> None:
    work = workload("a", 100)
    items = tuple(replace(item, completion=("succeeded",)) for item in work.items)
    bench = Bench(nodes=[node()]).submit(replace(work, items=items))
    bench.settle()
    bench.change("a-0", node="n1", phase=PodPhase.SUCCEEDED).settle()
    assert bench.state("a") == "Completed"
    assert bench.status["uid-a"].pods == PodCounts(succeeded=1, totals=(("cpu", 100),))

    before = bench.writes["status"]
    bench.remove(next(iter(bench.things)))
    bench.advance(600)
    assert bench.writes["status"] == before


def test_the_interval_bounds_the_writes_of_a_gang_that_changes_all_the_time() -> None:
    stage = Stage(1, running=1)
    stage.passes(600)
    written = 0
    for number in range(1, 601):  # a pod fails every second
        stage.pod(number, PodPhase.FAILED)
        written += stage.passes(1)
    written += stage.passes(2 * INTERVAL)
    assert 600 // INTERVAL <= written <= 600 // INTERVAL + 2
    assert stage.counts == (0, 1, 0, 600)
