"""A gang that has a placement inside its constraints starts, with a place for every pod and each
required group in one domain, whatever it prefers: random small worlds against brute force."""

from __future__ import annotations

from random import Random

import pytest

from mcad.core.capacity import Capacity
from mcad.core.state.model import Node, PodSet, Topology
from mcad.core.state.records import replace
from mcad.core.state.settings import Settings
from tests import budget
from tests.core.builders import cluster, hold, needs, node, on, pods
from tests.core.racks import World, draw_world, has_placement, may_go

WORLDS = budget.draw(range(6_000), 300, "gangs with topology")


def _check_places(capacity: Capacity, world: World) -> None:
    """Every pod has a place that its set selects, in the domain of the set, which its group
    shares; a required group has one."""
    chosen = {one.item: one.domain for one in capacity.domains("w")}
    places, groups = capacity.places_of("w"), set()
    for number, one in enumerate(world.sets):
        at = {name: n[number] for name, n in places.items() if n[number]}
        assert sum(at.values()) == one.replicas, one
        domain = chosen.get(number)
        if one.topology and one.replicas:
            groups.add((one.topology.group, domain))
            assert domain or not one.topology.required, one
        within = {one.topology.group: domain} if one.topology and domain else {}
        assert at.keys() <= set(may_go(one, world.nodes, within)), one
    assert len(groups) == len({group for group, _ in groups})


@pytest.mark.parametrize("seed", WORLDS)
def test_a_gang_that_has_a_placement_starts_and_is_whole(seed: int) -> None:
    world = draw_world(Random(seed))
    capacity = cluster(*world.nodes, settings=Settings(topology_levels=world.levels))
    shape = capacity.shape(world.sets)
    expected = has_placement(world.nodes, world.sets)
    assert (capacity.refusal(shape) is None) is expected
    assert (capacity.assume("w", 1, shape, world.sets) is None) is expected
    if expected:
        _check_places(capacity, world)


@pytest.mark.parametrize("seed", WORLDS)
def test_a_gang_that_takes_the_room_of_others_is_whole(seed: int) -> None:
    """On nodes that are full of others: a plan is made, reserved, and followed when they left."""
    world = draw_world(Random(seed))
    capacity = cluster(*world.nodes, settings=Settings(topology_levels=world.levels))
    others = [each.name for each in world.nodes if dict(each.allocatable).get("cpu")]
    for each in world.nodes:
        if each.name in others:
            hold(capacity, each.name, _all_of(each))
    shape = capacity.shape(world.sets)
    snapshot = capacity.what_if(shape)
    for uid in others:
        snapshot.remove(uid)
    plan = snapshot.plan()
    assert (plan is not None) is has_placement(world.nodes, world.sets)
    if plan is None:
        return
    capacity.reserve("w", 1, shape, world.sets, plan)
    _check_places(capacity, world)
    assert [name for name, _ in sorted(snapshot.planned(plan).pods)] == capacity.nodes_of("w")
    for uid in others:
        capacity.release(uid)
    capacity.unreserve("w", shape)
    capacity.assume_at("w", 1, shape, world.sets, plan)
    _check_places(capacity, world)
    capacity.check()


def _all_of(one: Node) -> PodSet:
    """A pod that takes all of the node, and runs nowhere else."""
    there = pods(1, where=on((needs("metadata.name", "In", one.name, field=True),)))
    return replace(there, request=tuple(each for each in one.allocatable if each[0] != "pods"))
