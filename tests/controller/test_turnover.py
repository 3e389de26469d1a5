"""What is counted of AppWrappers adds up, at every step of random histories."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from mcad.controller.metrics.labels import leaf
from mcad.controller.metrics.leader import Metrics
from mcad.core.cluster import Cluster
from mcad.core.commands import Command
from mcad.core.state.lifecycle import Phase
from mcad.core.state.milestones import PENDING, is_under_way
from mcad.core.state.model import PodPhase
from mcad.kube.clock import RealClock
from tests.core.bench import Bench, node, workload
from tests.core.histories import History, Lives, Teams
from tests.core.quotas import GOLD, teams

COUNTED = ("taken_up", "dispatched", "finished", "requeued", "preempted")


class Accounts:
    """The counts of each dispatcher of a bench, compared after every step."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._cluster: Cluster | None = None
        self.steps = 0
        self.most: Counter[str] = Counter()
        bench.heard = self.compare

    def compare(self, commands: tuple[Command, ...]) -> None:
        cluster = self._bench.dispatcher.cluster
        if cluster is not self._cluster:  # a crash: counters begin anew
            self._cluster = cluster
            self.metrics = Metrics(cluster, {}, {}, RealClock())
        self.metrics.count_step(commands)
        self.steps += 1
        counts = self.metrics.turnover
        there = [e for e in cluster.entries.values() if e.phase is not Phase.GONE]
        pending = [e for e in there if e.phase in PENDING]
        under_way = [e for e in there if is_under_way(e, e.phase)]
        assert counts.seen - counts.gone - (len(there) - len(pending)) == len(pending)
        begun = counts.dispatched.total() + counts.taken_up.total()
        ended = counts.finished.total() + counts.requeued.total()
        assert begun == len(under_way) + ended
        assert Counter(leaf(e.record.quota) for e in under_way) == +counts.under_way
        for word in COUNTED:
            self.most[word] = max(self.most[word], getattr(counts, word).total())


async def published(metrics: Metrics) -> Counter[str]:
    """The sums of all series of a page, by name."""
    sums: Counter[str] = Counter()
    for family in text_string_to_metric_families((await metrics.page()).decode()):
        for sample in family.samples:
            sums[sample.name] += sample.value
    return sums


@pytest.mark.parametrize(
    ("profile", "seeds"), [pytest.param(Lives, 40, marks=pytest.mark.slow), (Teams, 15)]
)
async def test_what_is_seen_and_dispatched_is_conserved(profile: type[History], seeds: int) -> None:
    most: Counter[str] = Counter()
    for seed in range(seeds):
        history = profile(seed)
        accounts = Accounts(history.bench)
        history.run(60)
        assert accounts.steps > 60
        most += accounts.most
        page = await published(accounts.metrics)
        begun = page["mcad_dispatched_total"] + page["mcad_taken_up_total"]
        ended = page["mcad_finished_total"] + page["mcad_requeued_total"]
        assert begun == page["mcad_dispatched_appwrappers"] + ended
        there = page["mcad_appwrappers_seen_total"] - page["mcad_appwrappers_gone_total"]
        assert there == page["mcad_appwrappers"]
        cluster = history.bench.dispatcher.cluster
        waiting = [e for e in cluster.entries.values() if e.phase in PENDING]
        assert page["mcad_pending_appwrappers"] == len(waiting)
    assert {word for word in COUNTED if most[word]} == set(COUNTED), "all of it happens"


async def samples(metrics: Metrics, *names: str) -> dict[str, float]:
    """What a page says by these names, without zeros and buckets."""
    page = (await metrics.page()).decode().splitlines()
    lines = (
        line.rsplit(" ", 1) for line in page if line.startswith(names) and "_bucket" not in line
    )
    return {name: float(value) for name, value in lines if float(value)}


async def test_an_attempt_is_timed_from_its_first_sight_to_its_end() -> None:
    bench = Bench(nodes=[node()]).share(*teams(1000, red=1000, blue=0))
    metrics = Metrics(bench.dispatcher.cluster, {}, {}, RealClock())
    bench.heard = metrics.count_step
    for name in "ab":
        work = workload(name, 600, quota=((GOLD, "red"),), priority=7)
        items = tuple(replace(one, completion=("succeeded",)) for one in work.items)
        bench.submit(replace(work, items=items))
    bench.settle()
    bench.advance(10)
    bench.bind("a-0")
    bench.advance(50)
    assert await samples(metrics, "mcad_oldest_pending") == {
        'mcad_oldest_pending_seconds{leaf="gold/red"}': pytest.approx(60, abs=0.1)
    }
    bench.change("a-0", phase=PodPhase.SUCCEEDED)
    bench.settle()
    timed = await samples(metrics, "mcad_queue_wait", "mcad_ready_wait", "mcad_run_", "mcad_fin")
    at = 'leaf="gold/red"'
    wanted = {
        f'mcad_queue_wait_seconds_count{{{at},priority="7"}}': 2,
        f'mcad_queue_wait_seconds_sum{{{at},priority="7"}}': 60,
        f"mcad_ready_wait_seconds_count{{{at}}}": 1,
        f"mcad_ready_wait_seconds_sum{{{at}}}": 10,
        f'mcad_run_seconds_count{{{at},outcome="completed"}}': 1,
        f'mcad_run_seconds_sum{{{at},outcome="completed"}}': 60,
        f'mcad_finished_total{{{at},reason="Completed"}}': 1,
    }
    assert timed == {name: pytest.approx(value, abs=0.1) for name, value in wanted.items()}


async def test_a_requeued_appwrapper_waits_from_the_end_of_its_attempt() -> None:
    bench = Bench(nodes=[node()])
    metrics = Metrics(bench.dispatcher.cluster, {}, {}, RealClock())
    bench.heard = metrics.count_step
    bench.start(workload("a", 600))
    bench.advance(100)
    bench.edit("uid-a", suspended=True)
    bench.settle()
    assert (await samples(metrics, "mcad_oldest_pending")) == {}, "its user has to resume it"
    bench.advance(40)
    bench.edit("uid-a", suspended=False)
    bench.advance(30)
    assert await samples(metrics, "mcad_queue_wait_seconds_sum", "mcad_requeued") == {
        'mcad_queue_wait_seconds_sum{leaf="",priority="0"}': pytest.approx(40, abs=1),
        'mcad_requeued_total{leaf="",reason="Suspended"}': 1,
    }
