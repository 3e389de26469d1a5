"""Random stories beside the stand-in, in virtual time: no gang is dispatched without its nodes, no
request is left, no more nodes are made than are needed.

``World`` looks at every pod: one that finds no room is a trouble, but where the cloud takes nodes
back. A push plays a part of the seeds.
"""

from __future__ import annotations

from collections import Counter
from math import ceil
from random import Random

import pytest

from mcad.api.config import Config
from tests import budget
from tests.autoscaler.groups import Group
from tests.autoscaler.growing import GrowingWorld, grow
from tests.autoscaler.stories import VIAS, story
from tests.faults.injection import Fault, Plan
from tests.faults.scenarios import Scenario, complete, create, job
from tests.faults.world import Outcome

KIND, MOODY, LASTING, WRITES = 6, 10, 9, 10
SEEDS = 500
LATE = 0.002
FOR_EVER = 100_000.0


def _played(seed: int, *, kind: bool) -> GrowingWorld:
    """Play a story; a failure says which."""
    told = story(seed, kind=kind)
    worlds: list[GrowingWorld] = []
    try:
        grow(told.scenario, told.groups, told.moods, told.plan, worlds.append)
    except AssertionError as error:
        error.add_note("\n".join([f"story({seed}, kind={kind}): {told.via}", *told.said]))
        raise
    return worlds[0]


@pytest.mark.parametrize(
    "seeds", budget.slow_but_first([range(n, n + KIND) for n in (0, 100, 200)]), ids=str
)
def test_all_that_fits_runs_where_the_cloud_keeps_its_word(seeds: range) -> None:
    pods, late = 0, 0
    for seed in budget.draw(seeds, KIND, "growing", str(seeds)):
        world = _played(seed, kind=True)
        pods, late = pods + len(world.pods), late + len(world.late)
    assert pods
    assert late <= LATE * pods


@pytest.mark.parametrize(
    "seeds", budget.slow_but_first([range(n, n + 100) for n in range(0, SEEDS, 100)]), ids=str
)
def test_nothing_is_left_of_requests_whatever_the_cloud_does(seeds: range) -> None:
    for seed in budget.draw(seeds, MOODY, "moods", str(seeds)):
        _played(seed, kind=False)


@pytest.mark.parametrize("seed", [190])
def test_stories_that_have_failed(seed: int) -> None:
    """190: a PodTemplate whose creation had no answer is stored after the request is withdrawn."""
    _played(seed, kind=False)


# -- crashes ---------------------------------------------------------------------------------------

GROUPS = (Group("cpus", "2", 4, 20.0),)


def _in_turn(via: str) -> Scenario:
    """One gets its nodes, one the nodes of it, and one is too large; then it is deleted."""
    config = Config(protectAfter=0, scaleUp={"via": via, "timeout": 300})
    acts = (
        (0.0, create(complete("a", job("a", 5, 60)))),
        (1.0, create(complete("b", job("b", 6, 30)))),
    )
    ends = dict.fromkeys("ab", "Completed")
    return Scenario(f"two in turn, {via}", (), acts, ends, config=config, settles_s=900.0)


@pytest.mark.parametrize("fault", [Fault.KILLED_BEFORE, Fault.KILLED_AFTER], ids=lambda f: f.name)
@pytest.mark.parametrize("via", sorted(set(VIAS)))
def test_a_crash_at_any_write_changes_nothing_in_the_end(via: str, fault: Fault) -> None:
    scenario = _in_turn(via)
    undisturbed = grow(scenario, GROUPS)
    assert undisturbed.writes > 20
    for k in budget.draw(range(undisturbed.writes), WRITES, fault.name, via):
        plan = Plan(writes=lambda number, k=k: fault if number == k else None)
        outcome = grow(scenario, GROUPS, plan=plan)
        assert outcome.objects == undisturbed.objects, (k, undisturbed.requests[k])


# -- as many nodes as are needed -------------------------------------------------------------------


def _lasting(seed: int) -> tuple[Scenario, tuple[Group, ...], int]:
    """Gangs that run for ever, and how many nodes they need: pods are of one CPU."""
    rng = Random(seed)
    cpus, pods, acts, now = rng.randint(1, 4), 0, [], 0.0
    names = "abcdef"[: rng.randint(2, 6)]
    for name in names:
        now += rng.choice((0.0, 0.1, 3.0, 40.0))
        count = rng.randint(1, 9)
        pods += count
        acts.append((now, create(complete(name, job(name, count, FOR_EVER)))))
    via = VIAS[seed % len(VIAS)]
    config = Config(protectAfter=0, scaleUp={"via": via, "concurrent": rng.choice((1, 5))})
    ends = dict.fromkeys(names, "Running")
    scenario = Scenario(f"lasting {seed}", (), tuple(acts), ends, config=config)
    group = Group("cpus", str(cpus), 60, rng.choice((2.0, 20.0, 60.0)))
    return scenario, (group,), ceil(pods / cpus)


def _lives_through(seed: int) -> tuple[Outcome, GrowingWorld, int]:
    scenario, groups, needed = _lasting(seed)
    worlds: list[GrowingWorld] = []
    return grow(scenario, groups, seen=worlds.append), worlds[0], needed


@pytest.mark.parametrize(
    "seeds", budget.slow_but_first([range(n, n + 50) for n in (0, 50)]), ids=str
)
def test_as_many_nodes_are_made_as_are_needed(seeds: range) -> None:
    sums: Counter[str] = Counter()
    for seed in budget.draw(seeds, LASTING, "lasting", str(seeds)):
        _, world, needed = _lives_through(seed)
        made = len(world.autoscaler.figures.ready_s)
        sums.update(made=made, needed=needed, worlds=1, exact=made == needed)
        assert not world.late
        assert made <= needed + 1, f"seed {seed}: {made} nodes for {needed}"
    assert sums["made"] <= 1.01 * sums["needed"], sums


def test_none_asks_where_room_comes_free_sooner() -> None:
    """The one that runs declares that it ends in time; the other one waits for it."""
    made = complete("a", job("a", 2, FOR_EVER))
    made["spec"]["schedulingSpec"] = {"dispatchDuration": {"limit": 60}}
    acts = ((0.0, create(made)), (5.0, create(complete("b", job("b", 2, 30)))))
    ends = {"a": "Failed", "b": "Completed"}
    config = Config(protectAfter=0, scaleUp={"via": "ProvisioningRequest"})
    scenario = Scenario("a release in time", (2,), acts, ends, config=config)
    worlds: list[GrowingWorld] = []
    grow(scenario, (Group("cpus", "2", 4),), seen=worlds.append)
    assert not worlds[0].autoscaler.figures.requests
