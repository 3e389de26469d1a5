"""The topology domain of an attempt: on record before anything is created, and what it needs."""

from __future__ import annotations

import pytest

from mcad.core.commands import CreateItem
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import ChosenDomain
from mcad.core.state.records import replace
from mcad.core.state.settings import Settings
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.racks import close, rack

EAGER = replace(PATIENT, preemption=True, min_run_time=0, protect_after=0)


def _phase(bench: Bench, name: str) -> Phase:
    return bench.dispatcher.cluster.entries[f"uid-{name}"].phase


@pytest.mark.parametrize("restarted", [False, True])
def test_the_domain_is_on_record_before_anything_is_created_and_outlives_a_restart(
    restarted: bool,
) -> None:
    bench = Bench(PATIENT, nodes=[*rack("r1", 3), *rack("r2", 2)])
    bench.submit(close("a", 900, 900))
    bench.decide()
    while not isinstance(bench.pending[0], CreateItem):
        bench.execute(bench.pending.pop(0))
    chosen = [ChosenDomain(item, 0, "template", ("rack", "r2")) for item in range(2)]
    record = bench.status["uid-a"].dispatch
    assert record is not None
    assert record.domains == tuple(chosen)
    if restarted:
        bench.crash()
        bench.decide()
        while not isinstance(bench.pending[0], CreateItem):
            bench.execute(bench.pending.pop(0))
    create = bench.pending[0]
    assert isinstance(create, CreateItem)
    assert create.node_rules.domains == (chosen[0],)
    assert set(bench.dispatcher.cluster.capacity.gangs.nodes_of("uid-a")) == {"r2n0", "r2n1"}


@pytest.mark.parametrize("levels", [(), ("rack",)])
def test_the_event_of_a_dispatch_names_the_domain(levels: tuple[str, ...]) -> None:
    settings = replace(PATIENT, topology_levels=levels)
    bench = Bench(settings, nodes=[*rack("r1", 2), *rack("r2", 3)])
    bench.start(close("a", 900, 900), workload("b", 900, 900))
    ends = [one.note.partition("first seen")[2] for one in bench.events]
    preferred = "; its pods prefer rack=r2." if levels else "."
    assert [one for one in ends if one] == ["; its pods have to be in rack=r1.", preferred]


def _crowded(settings: Settings, high: str) -> Bench:
    """One AppWrapper of one pod on each of four nodes in two racks; that in ``high`` stays."""
    bench = Bench(settings, nodes=[*rack("r1", 2), *rack("r2", 2)])
    for name in "abcd":
        bench.submit(workload(name, 900, priority=9 if name in high else 0))
        bench.advance(1)
    return bench


def test_none_is_evicted_unless_one_whole_rack_comes_free() -> None:
    bench = _crowded(EAGER, "")
    places = {
        n: bench.dispatcher.cluster.capacity.gangs.nodes_of(f"uid-{n}")[0][:2] for n in "abcd"
    }
    stays = [next(n for n in "abcd" if places[n] == rack) for rack in ("r1", "r2")]
    bench.edit(f"uid-{stays[0]}", priority=9)
    bench.edit(f"uid-{stays[1]}", priority=9)
    bench.submit(close("w", 900, 900, priority=5))
    bench.advance(30)
    assert all(_phase(bench, name) is Phase.RUNNING for name in "abcd")

    bench.edit(f"uid-{stays[1]}", priority=0)
    bench.advance(60)
    assert _phase(bench, "w") is Phase.RUNNING
    assert {name[:2] for name in bench.dispatcher.cluster.capacity.gangs.nodes_of("uid-w")} <= {
        "r2"
    }
    running = {name for name in "abcd" if _phase(bench, name) is Phase.RUNNING}
    assert running == {name for name in "abcd" if places[name] == "r1"}


LEVELLED = replace(PATIENT, topology_levels=("block", "rack"))


def _creates(bench: Bench) -> CreateItem:
    """Go on until the first create."""
    bench.decide()
    while not isinstance(bench.pending[0], CreateItem):
        bench.execute(bench.pending.pop(0))
    assert isinstance(bench.pending[0], CreateItem)
    return bench.pending[0]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_gang_without_topology_prefers_the_recorded_domain_after_a_restart_too(
    restarted: bool,
) -> None:
    """Meanwhile the other rack has become the one with the least room."""
    bench = Bench(LEVELLED, nodes=[*rack("r1", 3), *rack("r2", 2)])
    bench.submit(workload("a", 900, 900))
    _creates(bench)
    record = bench.status["uid-a"].dispatch
    assert record is not None
    assert record.prefers == ("rack", "r2")
    if restarted:
        bench.crash()
        bench.submit(workload("b", 900, priority=9))
    create = next(one for one in [_creates(bench)] if one.uid == "uid-a")
    assert create.node_rules.prefers == ("rack", "r2")
    assert create.node_rules.domains == ()


def test_the_event_of_a_dispatch_names_the_nodes_that_its_pods_leave_to_each_other() -> None:
    bench = Bench(PATIENT, nodes=[node("whole", 8000), node("part", 7000)])
    bench.start(workload("a", 1000, 8000))
    (note,) = [one.note for one in bench.events if "first seen" in one.note]
    assert note.endswith("first seen; some of its pods keep off whole, which others need.")
