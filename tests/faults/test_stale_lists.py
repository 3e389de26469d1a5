"""A process is killed at every write, and the first lists of the next one are of the past: at rest
everything is whole, and the books are true.

The API promises that such a list tells the present. What is decided until the watch tells better
may be wrong, so an attempt may be taken back; it is put right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from mcad.kube.kinds import QUOTA_SUBTREES
from tests import budget
from tests.faults.injection import Fault, Plan
from tests.faults.scenarios import (
    COMPLETED,
    COUNTING,
    IN_TURN,
    ROOT,
    TEAMS,
    Scenario,
    create,
    define,
    delete,
    deployment,
    of,
)
from tests.faults.trials import drawn, judged
from tests.faults.troubles import PLURALS
from tests.faults.weather import STREAMS, SlowStream, StaleList, Weather
from tests.faults.world import run, undisturbed
from tests.manifests import generic

OF_APPWRAPPERS = ("appwrappers",)
OF_ALL = tuple(one.plural for one in STREAMS)
AGE_S = 25.0  # in which an AppWrapper is dispatched and has run


@pytest.mark.parametrize("plurals", [OF_APPWRAPPERS, OF_ALL], ids=["appwrappers", "all"])
@pytest.mark.parametrize("scenario", [IN_TURN, COMPLETED], ids=lambda one: one.name)
def test_first_lists_of_the_past_leave_everything_whole(
    scenario: Scenario, plurals: tuple[str, ...]
) -> None:
    stale = 0
    for k in range(undisturbed(scenario).writes):
        weather = Weather(tuple(StaleList(plural, AGE_S) for plural in plurals))
        killed = {k: Fault.KILLED_AFTER}
        outcome = run(
            replace(scenario, ends=dict.fromkeys(scenario.ends, "*")),
            Plan(killed.get, weather=weather),
        )
        assert outcome.lives == 2
        stale += weather.was_stale
    assert stale > k // 2


# -- API servers are upgraded: each time all watches come to one that is behind ------------------


SERVERS = 3
APART_S = (20.0, 60.0)
BEHIND_S = (2.0, 30.0)


def upgraded(rng: Random, begin_s: float) -> Iterator[SlowStream]:
    """What the watches are like while the servers are replaced."""
    for _ in range(SERVERS):
        behind_s = round(rng.uniform(*BEHIND_S), 2)
        for plural in PLURALS:
            yield SlowStream(plural, behind_s, begin_s, begin_s + behind_s)
        begin_s += behind_s + rng.uniform(*APART_S)


@pytest.mark.parametrize("kind", ["plain", "contested"])
@pytest.mark.parametrize("seed", budget.draw(range(12), 3, "servers"))
def test_servers_that_are_behind_change_no_promise(kind: str, seed: int) -> None:
    trial, rng = drawn(kind, seed), Random(f"servers {kind} {seed}")
    behind = upgraded(rng, rng.uniform(0.0, 60.0))
    judged(replace(trial, parts=(*trial.parts, *behind)))


# -- the watch of QuotaSubtrees is late while those of a tree are replaced -----------------------


REPLACED = Scenario(
    "a tree is replaced while others wait for a share",
    cpus=(8,),
    acts=(
        (0.0, define(ROOT)),
        (0.0, define(TEAMS)),
        (90.0, create(of("red", generic("a", deployment("a", 2))))),
        (91.0, create(of("blue", generic("c", deployment("c", 1))))),
        (92.0, create(of("red", generic("b", deployment("b", 2))))),
        (93.0, create(of("blue", generic("d", deployment("d", 1))))),
        (160.0, delete("root", QUOTA_SUBTREES)),
        (160.1, define(ROOT)),
        (161.0, delete("teams", QUOTA_SUBTREES)),
        (161.1, define(TEAMS)),
        (500.0, delete("a")),
    ),
    ends={"a": "", "b": "Running", "c": "Running", "d": "Pending"},
    config=COUNTING,
)


@pytest.mark.parametrize(
    ("from_s", "until_s"),
    [(0.0, float("inf")), (160.05, 162.0), (0.0, 160.05), (161.05, 162.0)],
    ids=["all", "the new ones", "until the first is gone", "the last one"],
)
@pytest.mark.parametrize("lag_s", [0.5, 5.0, 60.0])
def test_a_tree_that_is_replaced_limits_all_the_time(
    lag_s: float, from_s: float, until_s: float
) -> None:
    late = SlowStream(QUOTA_SUBTREES.plural, lag_s, from_s, until_s)
    run(REPLACED, Plan(weather=Weather((late,))))
