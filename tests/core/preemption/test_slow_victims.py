"""Victims that take all of their grace period: no eviction is in vain for that (core R10)."""

from __future__ import annotations

from itertools import product

import pytest

from mcad.core.reservations import manage
from mcad.core.state.model import Workload
from mcad.core.state.records import replace
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from tests import budget
from tests.core.bench import Bench, node, workload
from tests.core.histories import QuietTeams
from tests.core.quotas import GOLD, teams

SECONDS = 60
"""What a start may take besides minimum run time and grace: looks, retries, live lists."""


def of(team: str, work: Workload, grace: int) -> Workload:
    return replace(work, quota=((GOLD, team),), grace=grace * SECOND)


def bind_all(bench: Bench) -> None:
    """kube-scheduler puts each pod on the node with the most room, of those that it may use."""
    free = {one.name: dict(one.allocatable)["cpu"] for one in bench.nodes}
    for thing in bench.things.values():
        if thing.node:
            free[thing.node] -= dict(thing.request)["cpu"]
    for ref, thing in list(bench.things.items()):
        if not thing.node and not thing.child.terminating:
            excluded = bench.excluded.get(thing.child.workload, ())
            usable = [one for one in free if one not in excluded]
            name = max(usable, key=lambda one: (free[one], one))
            if free[name] >= dict(thing.request)["cpu"]:
                free[name] -= dict(thing.request)["cpu"]
                bench.bind(ref.name, on=name)


def play(bench: Bench, seconds: int, step: int = 5) -> None:
    for _ in range(0, seconds, step):
        bind_all(bench)
        bench.advance(step)


def borrowed(settings: Settings, grace: int) -> Bench:
    """Two teams with 2 CPUs each on two nodes; team b has all of it and more in the queue."""
    bench = Bench(settings, nodes=[node(f"n{i}", 2000) for i in range(2)], graceful=True)
    bench.share(*teams(4000, a=2000, b=2000))
    for number in range(8):
        bench.submit(of("b", workload(f"b{number}", 1000, created=bench.now), grace))
        bench.settle()
    bind_all(bench)
    return bench


PODS = ((1000,), (2000,), (1000, 1000))  # one pod, a large one, a gang
MATRIX = [*product((0, 30, 320, 600, 3600), (0, 300, 3600), (0, 600), (0, 30), PODS)]
"""In a push every fifth: these have each pair of values."""


@pytest.mark.parametrize(
    ("grace", "minimum", "protect", "notice", "pods"), MATRIX if budget.SOAK else MATRIX[::5]
)
def test_a_team_gets_its_share_back_within_minimum_run_time_and_grace(
    grace: int, minimum: int, protect: int, notice: int, pods: tuple[int, ...]
) -> None:
    settings = Settings(
        min_run_time=minimum * SECOND,
        protect_after=protect * SECOND,
        preemption_grace=notice * SECOND,
        placement_timeout=0,
    )
    bench = borrowed(settings, grace)
    bench.submit(of("a", workload("a", *pods, created=bench.now), grace))
    play(bench, minimum + grace + notice + SECONDS, step=20)
    assert bench.state("a") == "Running"
    evicted = [uid for uid, view in bench.status.items() if view.eviction is not None]
    assert len(evicted) == sum(pods) // 1000, "none is evicted in vain"


def test_a_slow_victim_of_a_younger_preemptor_delays_no_older_one() -> None:
    """The room of the second preemptor is counted twice in the books, while its victim leaves."""
    bench = Bench(Settings(min_run_time=0), nodes=[node(f"n{i}") for i in range(5)], graceful=True)
    bench.share(*teams(3000, a=1000, b=1000, c=1000))
    bench.submit(of("c", workload("slow", 1000, 1000), 3600))
    bench.submit(of("c", workload("quick", 1000), 30))
    play(bench, 10)
    bench.submit(of("a", workload("first", 1000), 30))
    play(bench, 10)
    bench.submit(of("b", workload("second", 1000), 30))
    play(bench, 21, step=1)  # and does not wait for the next look at all reservations either
    assert bench.state("first") == "Running"
    assert bench.state("second") == "Pending"
    play(bench, 3600, step=60)
    assert bench.state("second") == "Running"


def test_a_restart_leaves_each_reservation_on_its_nodes() -> None:
    """Room that is free by now may be reserved for an AppWrapper that waits for more."""
    settings = Settings(min_run_time=0, preemption=True, protect_after=0)
    bench = Bench(settings, nodes=[node(f"n{i}") for i in range(3)], graceful=True)
    for name, grace in (("slow", 3600), ("quick", 30), ("medium", 600)):
        bench.submit(replace(workload(name, 800), grace=grace * SECOND))
        play(bench, 10)
    bench.submit(workload("single", 900, priority=1))
    bench.settle()
    bench.submit(workload("gang", 900, 900, priority=1))
    play(bench, 60)
    reserved = {
        uid: one.reserved.nodes for uid, one in bench.dispatcher.cluster.reservations.items()
    }
    bench.crash()
    play(bench, 1200, step=20)
    left = {uid: one.reserved.nodes for uid, one in bench.dispatcher.cluster.reservations.items()}
    assert left == {"uid-gang": reserved["uid-gang"]}
    assert bench.state("single") == "Running"
    play(bench, 2600, step=60)
    assert bench.state("gang") == "Running"


def test_a_preemptor_that_was_dispatched_since_is_not_one_after_a_restart() -> None:
    """The records of its victims name it for as long as they wait."""
    settings = Settings(min_run_time=0, preemption=True, protect_after=0)
    bench = Bench(settings, nodes=[node("n0")], graceful=True)
    for priority, name in enumerate(("first", "second", "third", "fourth")):
        grace = (60 if name == "third" else 0) * SECOND
        bench.submit(replace(workload(name, 900, priority=priority), grace=grace))
        play(bench, 20)
    assert list(bench.dispatcher.cluster.reservations) == ["uid-fourth"]
    bench.crash()
    bench.settle()
    assert list(bench.dispatcher.cluster.reservations) == ["uid-fourth"]
    play(bench, 60)
    assert bench.state("fourth") == "Running"


class SlowTeams(QuietTeams):
    """Pods end only when their grace period is over; the dispatcher is restarted meanwhile. The
    evictions ``amid_bindings`` began while pods of others had no node yet."""

    MIN_RUN_TIME = (20 * SECOND, 40 * SECOND)  # else it may be twice at a time

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.bench.graceful = True
        self.restarts = seed % 2 == 1
        self.amid_bindings: set[tuple[str, str]] = set()

    def submit(self) -> None:
        before = self.made
        super().submit()
        uid = f"uid-w{before}"
        if self.made > before and not self.bench.status.get(uid):
            grace = self.random.choice((0, 30, 90, 320, 600))
            self.bench.edit(uid, grace=grace * SECOND)

    def pods(self) -> None:
        super().pods()
        if self.restarts and self.random.random() < 0.2:
            self.bench.crash()

    def after_each(self) -> None:
        """kube-scheduler is quick, beside a grace period."""
        known = {*self.pairs}
        super().after_each()
        things = self.bench.things.items()
        unbound = [one for one in things if not (one[1].node or one[1].child.terminating)]
        if unbound:
            self.amid_bindings |= self.pairs.keys() - known
        for ref, thing in unbound:
            self.place(ref, thing)

    def pass_by(self, seconds: int) -> None:
        for _ in range(0, seconds, 10):
            self.bench.advance(min(seconds, 10))
            self.after_each()

    def outlast(self) -> None:
        """Everything that was begun comes to its end."""
        for _ in range(40):
            self.pods()
            self.pass_by(60)


@pytest.mark.parametrize("begin", budget.draw(range(0, 200, 10), 1, "slow victims"))
def test_no_eviction_of_slow_victims_is_in_vain(begin: int) -> None:
    """Pods that are being bound may take a node that the plan counted on, because kube-scheduler
    only prefers the nodes that are planned for them: 1 of 800 lives has such an eviction."""
    evicted = slow = taken = 0
    for seed in range(begin, begin + 10):
        life = SlowTeams(seed)
        life.run(60)
        life.outlast()
        gone = {f"uid-{name}" for name in life.bench.order}
        for uid, by in life.pairs:
            if by not in gone:
                amid = (uid, by) in life.amid_bindings
                assert amid, f"{seed=}: {uid} was evicted for {by}, which was not dispatched"
                taken += 1
            evicted += 1
            slow += life.bench.works[uid].grace >= 320 * SECOND
    assert evicted >= 8
    assert slow >= 1
    assert taken <= 1


def test_a_victim_that_runs_elsewhere_by_now_is_not_waited_for() -> None:
    bench = Bench(nodes=[node(milli=1000)])
    bench.submit(workload("victim", 600), workload("owner", 700))
    bench.settle()
    cluster, owner, victim = bench.dispatcher.cluster, bench.entry("owner"), bench.entry("victim")
    owner.waits_for = {victim.uid: victim.attempt}
    assert manage.still_there(cluster, owner) == [victim.uid]
    owner.waits_for = {victim.uid: victim.attempt - 1}
    assert manage.still_there(cluster, owner) == []
