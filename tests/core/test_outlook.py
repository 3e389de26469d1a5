"""The evictions that are foreseen are those that follow, if nothing ends by itself."""

from __future__ import annotations

from copy import deepcopy
from random import Random

from mcad.core.dispatcher import Dispatcher
from mcad.core.outlook import foresee, unhurried
from mcad.core.state.lifecycle import Phase
from mcad.core.state.records import replace
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.quotas import child, subtree

EAGER = replace(PATIENT, preemption=True, protect_after=0, max_evictions_per_minute=0)


def fresh(bench: Bench, settings: Settings) -> Dispatcher:
    """A fresh dispatcher that was told of everything in a bench, which stays as it is."""
    copy = deepcopy(bench)
    copy.settings = unhurried(settings)
    copy.crash()
    return copy.dispatcher


def evicted(bench: Bench) -> list[tuple[str, str]]:
    """The last eviction of each: the victim and its preemptor."""
    found = [(e, e.eviction) for e in bench.dispatcher.cluster.entries.values()]
    return sorted((entry.title, one.title) for entry, one in found if one is not None)


def test_foreseen_evictions_happen() -> None:
    foreseen = [compared(seed) for seed in range(20)]
    assert sum(map(bool, foreseen)) > 10
    assert max(foreseen) > 2


def compared(seed: int) -> int:
    """How many evictions a random world sees, which have to be the foreseen ones."""
    rng = Random(seed)
    before = replace(EAGER, preemption=False, reclaim=False, min_run_time=0)
    after = replace(before, preemption=rng.random() < 0.7, reclaim=True)
    bench = Bench(before, nodes=[node(f"n{number}") for number in range(4)])
    bench.share(
        subtree("root", child("root", cpu=4000)),
        subtree("teams", child("red", cpu=2000), child("blue", cpu=2000), parent="root"),
    )
    for number in range(12):
        leaf = "red" if number < 5 else rng.choice(("red", "blue"))
        size, priority = rng.choice((300, 500, 900)), rng.randint(0, 2)
        made = workload(f"w{number:02}", size, priority=priority, quota=(("gold", leaf),))
        bench.submit(made)
        bench.advance(1)
    for entry in list(bench.dispatcher.cluster.entries.values()):
        if entry.phase is Phase.RUNNING and rng.random() < 0.5:
            (place,) = bench.dispatcher.cluster.capacity.gangs.places_of(entry.uid)
            bench.bind(f"{entry.workload.name}-0", place).settle()
    found = foresee(fresh(bench, after), bench.now + 2 * SECOND)
    bench.settings = after
    bench.crash()
    bench.advance(600)
    last = {one.victim: one.preemptor for one in found}
    assert sorted(last.items()) == evicted(bench)
    return len(found)


def test_nothing_is_foreseen_where_all_run() -> None:
    bench = Bench(EAGER, nodes=[node()])
    bench.submit(workload("a", 500), workload("b", 500, priority=5))
    bench.advance(1)
    assert foresee(fresh(bench, EAGER), bench.now + 2 * SECOND) == []


def test_it_is_told_how_soon() -> None:
    settings = replace(EAGER, min_run_time=100 * SECOND)
    bench = Bench(settings, nodes=[node()])
    bench.submit(workload("low", 900))
    bench.advance(40)
    bench.submit(workload("high", 900, priority=5))
    bench.advance(1)
    (one,) = foresee(fresh(bench, settings), bench.now + 2 * SECOND)
    told = (one.victim, one.preemptor, one.reason)
    assert told == ("default/low", "default/high", "Preempting")
    assert 50 * SECOND < one.after < 62 * SECOND
