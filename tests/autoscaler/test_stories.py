"""Random stories beside the stand-in, in virtual time: no gang is dispatched without its nodes, no
request is left, no more nodes are made than are needed.

``World`` looks at every pod: one that finds no room is a trouble, but where the cloud takes nodes
back. A push plays a part of the seeds.
"""

from __future__ import annotations

from collections import Counter

import pytest

from mcad.api.config import Config
from tests import budget
from tests.autoscaler import crashes
from tests.autoscaler.groups import Group
from tests.autoscaler.growing import GrowingWorld, grow
from tests.autoscaler.stories import FOR_EVER, lasting, story
from tests.faults.injection import Fault
from tests.faults.scenarios import Scenario, complete, create, job

KIND, MOODY, LASTING, WRITES = 6, 10, 9, 4
SEEDS = 500
LATE = 0.002


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
        pods, late = pods + len(world.waits.pods), late + len(world.waits.late)
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


@pytest.mark.parametrize("fault", crashes.FAULTS, ids=lambda fault: fault.name)
@pytest.mark.parametrize("via", crashes.WAYS)
def test_a_crash_at_any_write_changes_nothing_in_the_end(via: str, fault: Fault) -> None:
    writes = crashes.undisturbed(via).writes
    assert writes >= 50
    for k in budget.draw(range(writes), WRITES, fault.name, via):
        assert not (wrong := crashes.broken(via, fault, k)), wrong


def test_a_template_that_is_stored_when_another_dispatcher_leads_is_deleted() -> None:
    assert "podtemplates" in crashes.undisturbed("CapacityBuffer").requests[0]
    assert not (wrong := crashes.broken("CapacityBuffer", Fault.BEQUEATHED, 0)), wrong


# -- as many nodes as are needed -------------------------------------------------------------------


@pytest.mark.parametrize(
    "seeds", budget.slow_but_first([range(n, n + 50) for n in (0, 50)]), ids=str
)
def test_as_many_nodes_are_made_as_are_needed(seeds: range) -> None:
    sums: Counter[str] = Counter()
    for seed in budget.draw(seeds, LASTING, "lasting", str(seeds)):
        told, worlds = lasting(seed), list[GrowingWorld]()
        grow(told.scenario, told.groups, told.moods, seen=worlds.append)
        made = len(worlds[0].autoscaler.figures.ready_s)
        sums.update(made=made, needed=told.needed, worlds=1, exact=made == told.needed)
        assert not worlds[0].waits.late
        assert made <= told.needed + 1, f"seed {seed}: {made} nodes for {told.needed}"
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
