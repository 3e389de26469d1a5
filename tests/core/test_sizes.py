"""Nothing grows for ever: after everything has gone every container of the core is as at the start.

Arrays are as large as they had to be at some time, and some resources that nothing uses any more
are forgotten later; the run times of shapes are kept for start time estimates, ``SHAPES_MAX`` of
them."""

from __future__ import annotations

from collections import Counter

import pytest

from mcad.core.events import NodeGone, QuotaGone, QuotaSeen
from mcad.core.state.records import replace
from mcad.core.state.settings import Fairness, Policy, Settings
from mcad.core.state.units import SECOND
from mcad.core.state.work_bounds import COLUMNS_KEPT_MIN
from tests import budget
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.builders import cluster, pod, pods, waiting, wants
from tests.core.builders import node as worker
from tests.core.handovers import Handovers
from tests.core.histories import SIZE, History, Lives, Teams
from tests.core.preemption.test_search import of
from tests.core.quotas import teams
from tests.core.sizes import sizes

BLOCK, HISTORIES = 10, 500

BOUNDED = {
    # vacancies of arrays, whose sizes are those of the most that were in use at a time
    *("Bounds._vacant", "Constraints._unused", "Codes._values", "Codes._uses", "Codes._unused"),
    *("QueueingHints._refused", "QueueingHints._vacant"),
    *("QueueingHints._parts_of", "QueueingHints._vacant_parts"),
    # resources: COLUMNS_KEPT_MIN and twice those in use
    *("Columns._columns", "Bounds._needs"),
    # sums of what is free, until the next verdict
    *("Judge._summed", "Judge._summed[]"),
    # looks by their kind; run times of the last shapes
    *("Agenda.looked_at", "History._by_shape"),
}


class Strangers(Teams):
    """Each AppWrapper is of another namespace, with pods of another size, and shares are cut in
    trees of ever new names."""

    def settings(self) -> Settings:
        draw = self.random
        return replace(
            super().settings(),
            fairness=draw.choice(list(Fairness)),
            policy=draw.choice((Policy.BEST_EFFORT_FIFO, Policy.BACKFILL, Policy.STRICT_FIFO)),
            head_of_line_holding=draw.choice((0, 20 * SECOND)),
            quota_grace=draw.choice((0, 60 * SECOND)),
        )

    def submit(self) -> None:
        before = {*self.bench.works}
        super().submit()
        for uid in self.bench.works.keys() - before:
            pods = [self.random.randint(200, 700)]
            other = workload(f"s{self.made}", *pods, namespace=f"ns-{self.made}")
            self.bench.submit(replace(other, quota=self.bench.works[uid].quota))

    def shrinks(self) -> None:
        """A tree comes, and goes."""
        name = f"tree-{self.made}"
        tree = [replace(one, tree=name, uid=f"{one.uid}-{name}") for one in teams(SIZE, red=SIZE)]
        for one in tree:
            self.bench.feed(QuotaSeen(one, None))
        self.bench.settle()
        for one in tree:
            self.bench.feed(QuotaGone(one.uid))


def everything_goes(life: History) -> None:
    bench = life.bench
    for uid in list(bench.works):
        bench.delete(uid)
    for ref in list(bench.things):
        bench.remove(ref)
    for uid in list(bench.left):  # pods that have outlived their objects, some just now
        bench.end_pod(uid)
    bench.unshare(*list(bench.quotas))
    for one in list(bench.dispatcher.cluster.capacity.nodes()):
        bench.feed(NodeGone(one.name))
    bench.advance(1500)  # longer than tombstones, grace periods and pauses
    bench.decide()  # what passed in the last step is gone


def kept(life: History) -> Counter[str]:
    """What is larger than at the start, by container."""
    found = sizes(life.bench.dispatcher.cluster)
    found.subtract(sizes(Bench(life.settings()).dispatcher.cluster))
    return Counter({name: n for name, n in found.items() if n > 0 and name not in BOUNDED})


@pytest.mark.parametrize("begin", budget.draw(range(0, HISTORIES, BLOCK), 1, "sizes"))
@pytest.mark.parametrize("profile", [Strangers, Lives, Handovers])
def test_after_everything_has_gone_every_container_is_as_at_the_start(
    profile: type[History], begin: int
) -> None:
    for seed in range(begin, begin + BLOCK):
        life = profile(seed)
        for _ in range(60):
            life.random.choice(life.acts())()
        everything_goes(life)
        assert not kept(life), f"{seed=}: {kept(life)}"


def test_a_class_that_borrowers_wait_for_is_forgotten_with_its_last_member() -> None:
    bench = Bench(replace(PATIENT, protect_after=0), nodes=[node("n1"), node("n2")])
    bench.share(*teams(2000, red=1000, blue=1000))
    for name in "ab":
        bench.submit(of("red", workload(name, 600))).settle()
    for number in range(5):
        bench.submit(of("blue", workload(f"w{number}", 900 + number))).settle()
        assert len(bench.dispatcher.cluster.waiting.queue.ask_back) == 1
        bench.delete(f"uid-w{number}").settle()
    assert not bench.dispatcher.cluster.waiting.queue.ask_back


def test_a_namespace_that_holds_nothing_is_forgotten() -> None:
    bench = Bench(replace(PATIENT, fairness=Fairness.NAMESPACE), nodes=[node()])
    for number in range(3):
        bench.start(workload("a", 100, namespace=f"ns-{number}"))
        bench.delete("uid-a").settle()
    assert not kept_by_turns(bench)


def kept_by_turns(bench: Bench) -> dict[str, int]:
    found = sizes(bench.dispatcher.cluster.waiting.turns)
    return {name: n for name, n in found.items() if name.startswith("Turns.") and n}


def test_an_appwrapper_and_its_tree_are_forgotten_with_what_they_were_remembered_for() -> None:
    bench = Bench(replace(PATIENT, binding_wait=5 * SECOND), nodes=[node(milli=1000)])
    bench.share(*teams(2000, red=1000))
    bench.start(of("red", workload("a", 900)), of("red", workload("b", 900)))
    world = bench.dispatcher.cluster
    world.reservations.fulfilled["uid-a"] = None  # as if its room had been reserved
    assert world.walk.in_flight
    bench.delete("uid-b").delete("uid-a").settle()
    assert not world.reservations.fulfilled
    assert not world.walk.in_flight
    assert not sizes(world.forest.in_line)["DemandInLine._asked"]


@pytest.mark.parametrize("of", ["node", "foreign pod", "gang"])
def test_resources_with_ever_new_names_are_forgotten(of: str) -> None:
    capacity = cluster(worker("kept"))
    for number in range(4 * COLUMNS_KEPT_MIN):
        more = {f"example.com/r{number}": "1"}
        if of == "node":
            capacity.node_seen(replace(worker(), allocatable=wants("1", **more)))
            capacity.node_gone("n1")
        elif of == "foreign pod":
            capacity.pod_seen(replace(pod("p", "kept"), request=wants("1", **more)))
            capacity.pod_gone("p")
        else:
            shape = waiting(capacity, replace(pods(1), request=wants("1", **more)))
            assert capacity.refusal(shape) is not None
            capacity.forget(shape)
        capacity.place_unplaced()
    columns = (capacity._ledger.whole, capacity._ledger.free, capacity._ledger.idle)
    assert max(len(each.names()) for each in columns) <= COLUMNS_KEPT_MIN + 1
    assert len(capacity._memory.bounds._needs) <= COLUMNS_KEPT_MIN + 1
