"""A gang that has a placement inside its constraints starts, with a place for every pod and each
required group in one domain, whatever it prefers: random small worlds against brute force."""

from __future__ import annotations

from random import Random

import pytest

from mcad.core.assumed.assumed import Held
from mcad.core.capacity import Capacity
from mcad.core.fit import domains
from mcad.core.nodes.resources import total
from mcad.core.state.model import Node, PodSet, Resources, Topology
from mcad.core.state.records import replace
from mcad.core.state.settings import Settings
from mcad.core.state.violations import InvariantViolated
from tests import budget
from tests.core.builders import cluster, hold, needs, node, on, pods
from tests.core.racks import World, draw_world, has_placement, may_go, may_join

WORLDS = budget.draw(range(6_000), 300, "gangs with topology")


def _check_places(capacity: Capacity, world: World) -> None:
    """Every pod has a place that its set selects, in the domain of the set, which its group
    shares; a required group has one."""
    chosen = {one.item: one.domain for one in capacity.gangs.domains("w")}
    places, groups = capacity.gangs.places_of("w"), set()
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
    for counts in places.values():
        there: list[PodSet] = []
        for one, n in zip(world.sets, counts, strict=True):
            for _ in range(n):
                assert may_join(one, there), (one, there)
                there.append(one)


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
    assert _sums(snapshot.planned(plan).pods) == _sums(capacity.gangs.held("w"))
    for uid in others:
        capacity.gangs.release(uid)
    capacity.gangs.release("w")
    capacity.forget(shape)
    capacity.assume_at("w", 1, shape, world.sets, plan)
    _check_places(capacity, world)
    capacity.check()


def _sums(held: Held) -> dict[str, Resources]:
    return {name: total((amounts, 1) for node, amounts in held if node == name) for name, _ in held}


def _all_of(one: Node) -> PodSet:
    """A pod that takes all of the node, and runs nowhere else."""
    there = pods(1, where=on((needs("metadata.name", "In", one.name, field=True),)))
    return replace(there, request=tuple(each for each in one.allocatable if each[0] != "pods"))


def _racks() -> Capacity:
    nodes = [node("a1", "4", labels={"rack": "a"}), node("a2", "2", labels={"rack": "a"})]
    nodes += [node("b1", "8", labels={"rack": "b"}), node("c1", "4", gpu=4, labels={"rack": "c"})]
    return cluster(*nodes)


def _in_rack(one: PodSet) -> PodSet:
    return replace(one, topology=Topology(("rack",), group="g"))


def test_sets_of_a_group_that_are_equal_in_one_domain_only_are_both_there() -> None:
    """In rack a the two sets of the group are equal, elsewhere they are not."""
    capacity = _racks()
    leader, worker = pods(2, "2", where=on(rack="a")), pods(1, "2", item=1)
    sets = (_in_rack(leader), _in_rack(worker), pods(3, "1", gpu=1, item=2))
    hold(capacity, "w", *sets)
    assert capacity.gangs.places_of("w") == {"a1": (1, 1, 0), "a2": (1, 0, 0), "c1": (0, 0, 3)}
    assert {one.domain for one in capacity.gangs.domains("w")} == {("rack", "a")}


def _zones(first: str, second: str) -> Capacity:
    nodes = [node("a1", first, labels={"zone": "a"}), node("a2", second, labels={"zone": "a"})]
    nodes += [node("b1", "4", labels={"zone": "b"})]
    return cluster(*nodes, settings=Settings(topology_levels=("zone",)))


LEADER_IN_A = (pods(1, "2"), pods(1, "2", item=1, where=on(zone="a")))


def test_sets_that_are_equal_in_the_domain_that_they_prefer_are_both_there() -> None:
    capacity = _zones("4", "1")
    hold(capacity, "w", *LEADER_IN_A)
    assert capacity.gangs.places_of("w") == {"a1": (1, 1)}


def test_a_gang_that_can_prefer_no_domain_goes_where_its_verdict_says() -> None:
    """In zone a there is enough in sum, but not for both pods; then greed, which takes the node
    that only the second pod may go to, is not asked anew."""
    capacity = _zones("3", "1")
    hold(capacity, "w", *LEADER_IN_A)
    assert capacity.gangs.places_of("w") == {"a1": (0, 1), "b1": (1, 0)}


@pytest.mark.parametrize("topology", [None, Topology(("zone",), required=False, group="g")])
def test_a_gang_that_fits_is_not_judged_again_when_it_starts(topology: Topology | None) -> None:
    """Another gang is judged in between, and takes what work was left in the pass."""
    capacity = _zones("3", "1")
    sets = tuple(replace(one, topology=topology) for one in LEADER_IN_A)
    shape, other = capacity.shape(sets), capacity.shape((pods(1, "3"),))
    capacity.remember(shape)
    assert capacity.refusal(shape) is None
    assert capacity.refusal(other) is None
    capacity._judge._budget = 0
    assert capacity.assume("w", 1, shape, sets) is None


def _preferring(capacity: Capacity) -> tuple[PodSet, ...]:
    """Three sets that fill two racks and a node in none, and prefer a rack each."""
    for name, labels in (("n1", {"rack": "a"}), ("n2", {"rack": "b"}), ("n3", {})):
        capacity.node_seen(node(name, "2", labels=labels))
    prefers = (Topology(("rack",), required=False, group=name) for name in "ghi")
    return tuple(replace(pods(2, item=n), topology=one) for n, one in enumerate(prefers))


def test_a_gang_starts_though_its_preferences_end_the_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All sets in a, or one of them in b, is all that is tried of what they prefer."""
    monkeypatch.setattr(domains, "VARIANTS_MAX", 2)
    capacity = cluster()
    hold(capacity, "w", *_preferring(capacity))


@pytest.mark.parametrize("tried", [2, 100])
def test_a_gang_makes_room_though_its_preferences_end_the_search(
    tried: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ways to choose racks that it needs take all the work of making snapshots."""
    monkeypatch.setattr(domains, "VARIANTS_MAX", tried)
    monkeypatch.setattr("mcad.core.snapshot.snapshot.WAYS_WORK_MAX", 1)
    capacity = cluster()
    sets = _preferring(capacity)
    hold(capacity, "low", pods(6))
    snapshot = capacity.what_if(capacity.shape(sets))
    snapshot.remove("low")
    assert snapshot.plan() is not None


@pytest.mark.parametrize(
    ("places", "fault"),
    [
        ({"a1": (1,), "b1": (2,)}, "group-in-one-domain"),
        ({"a1": (2,)}, "gang-not-split"),
    ],
)
def test_a_plan_without_a_place_for_each_pod_in_one_domain_is_not_followed(
    places: dict[str, tuple[int, ...]], fault: str
) -> None:
    capacity = _racks()
    sets = (_in_rack(pods(3)),)
    shape = capacity.shape(sets)
    rows = capacity._ledger.rows
    plan = [((0,), rows[name], count) for name, (count,) in places.items()]
    with pytest.raises(InvariantViolated, match=fault):
        capacity.assume_at("w", 1, shape, sets, plan)
