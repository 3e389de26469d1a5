"""A process that lasts holds no more after many days than after the first."""

from __future__ import annotations

from random import Random

import pytest

from mcad.api.config import Config
from mcad.api.wrapped_kinds import DEFAULT_WRAPPED
from mcad.cli.demo_cluster.cluster import dispatching, embedded_cluster
from mcad.core.events import NodeGone, NodeSeen
from mcad.core.nodes import ledger, pod_class
from mcad.core.state.records import replace
from mcad.kube.kinds import APPWRAPPERS, PODS
from mcad.kube.recorder import Limits
from mcad.sim.clock import VirtualClock, run_virtually
from tests import budget
from tests.core.bench import Bench, node
from tests.faults.growth import grown, held, live_a_day

EPISODES = 2 if budget.SOAK else 1  # of each kind and day

SELDOM = {"leaseDuration": 3600, "renewDeadline": 2400, "retryPeriod": 1200}  # it costs time only

CONFIGS = {
    "every default kind": Config(leaderElection=SELDOM),
    "owners are asked for": Config(
        leaderElection=SELDOM,
        wrappedResources=tuple(
            one.model_copy(update={"resources": ("deployments",)})
            if "apps" in one.api_group
            else one
            for one in DEFAULT_WRAPPED
        ),
    ),
}


@pytest.fixture(autouse=True)
def tight_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept within a bound reaches it on the first days."""
    monkeypatch.setattr(ledger.Ledger, "has_many_columns", lambda _: True)
    monkeypatch.setattr(pod_class, "RISES_MAX", 1)
    monkeypatch.setattr("mcad.api.template_cache._KNOWN_MAX", 1)
    monkeypatch.setattr("mcad.core.queue.run_history.SHAPES_MAX", 1)
    for module, name in (
        ("turnover", "LEAVES_MAX"),
        ("turnover", "PRIORITIES_MAX"),
        ("appwrappers", "LEAVES_MAX"),
    ):
        monkeypatch.setattr(f"mcad.controller.metrics.{module}.{name}", 1)
    monkeypatch.setattr("mcad.kube.recorder.Limits", lambda: Limits(objects_max=2))


@pytest.mark.parametrize("name", budget.draw(list(CONFIGS), 1, "growth"))
def test_nothing_is_left_of_a_day(name: str) -> None:
    async def days() -> dict[str, tuple[int, int]]:
        clock = VirtualClock()
        async with embedded_cluster(clock, Random(1)) as cluster:
            for number in range(3):
                cluster.add_node(f"node-{number}", cpu="4")
            async with dispatching(cluster, CONFIGS[name], Random(2)) as user:
                for day in (0, 1):  # what is learned once is learned
                    await live_a_day(cluster, user, day, EPISODES)
                before = held()
                for day in (2, 3):
                    await live_a_day(cluster, user, day, EPISODES)
                for kind in (APPWRAPPERS, PODS):
                    assert not (await user.list_all(kind))[0], f"the day left {kind.plural}"
                return grown(before, held())

    assert run_virtually(days()) == {}


def test_resources_that_come_and_go_with_nodes_leave_nothing() -> None:
    bench = Bench(nodes=[node("n0")])
    sizes = []
    for number in range(9):
        joins = node(f"n{number + 1}")
        allocatable = (*joins.allocatable, (f"example.com/device-{number}", 1))
        bench.feed(NodeSeen(replace(joins, allocatable=allocatable)))
        bench.feed(NodeGone(joins.name))
        bench.decide()
        ledger = bench.dispatcher.cluster.capacity._ledger
        sizes.append([len(one.names()) for one in (ledger.whole, ledger.free, ledger.idle)])
    assert sizes[-1] == sizes[2]
