"""Topology: a gang fits if and only if brute force finds a domain for each group of its sets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mcad.core.capacity import Capacity
from mcad.core.fit import domains
from mcad.core.state.model import Domain, Node, PodSet, Topology
from mcad.core.state.settings import Settings
from mcad.core.state.waiting_reason import WaitingReason
from tests import budget
from tests.core.builders import cluster, fits_by_brute_force, hosts_of, node, pods

LEVELS = ("host", "rack", "block")
WORLDS = 100_000 if budget.SOAK else 300


def _sets(*found: PodSet) -> tuple[PodSet, ...]:
    return tuple(replace(one, item=number) for number, one in enumerate(found))


@st.composite
def _worlds(draw: st.DrawFn) -> tuple[tuple[Node, ...], tuple[PodSet, ...]]:
    """Up to six nodes on three levels, some without a label, and up to three sets."""
    found: list[Node] = []
    for number in range(draw(st.integers(1, 6))):
        labels = {
            "host": f"h{number}",
            "rack": draw(st.sampled_from(["r1", "r2", "r3", ""])),
            "block": draw(st.sampled_from(["b1", "b2", ""])),
        }
        cpu = str(draw(st.integers(0, 4)))
        has = {key: value for key, value in labels.items() if value}
        found.append(node(f"n{number}", cpu, labels=has))
    asked = st.none() | st.builds(
        Topology,
        st.sampled_from([LEVELS[:1], LEVELS[1:2], LEVELS[2:], LEVELS[1:], LEVELS]),
        st.booleans(),
        st.sampled_from(["", "", "g"]),
    )
    sets = [
        replace(
            pods(draw(st.integers(1, 4)), str(draw(st.integers(1, 2)))),
            topology=draw(asked),
        )
        for _ in range(draw(st.integers(1, 3)))
    ]
    shared = next((one.topology for one in sets if one.topology and one.topology.group), None)
    grouped = [
        replace(one, topology=shared) if one.topology and one.topology.group else one
        for one in sets
    ]
    return tuple(found), _sets(*grouped)


def _choices(nodes: tuple[Node, ...], sets: tuple[PodSet, ...]) -> Iterator[dict[int, Domain]]:
    """Every way to choose a domain for each group."""
    groups: dict[object, list[int]] = {}
    for number, one in enumerate(sets):
        if one.topology is not None:
            groups.setdefault(one.topology.group or number, []).append(number)
    options: list[list[Domain | None]] = []
    for numbers in groups.values():
        topology = sets[numbers[0]].topology
        assert topology is not None
        there: list[Domain | None] = [
            (level, value)
            for level in topology.levels
            for value in sorted({dict(n.labels)[level] for n in nodes if level in dict(n.labels)})
        ]
        options.append(there if topology.required else [*there, None])
    for choice in product(*options):
        found: dict[int, Domain] = {}
        for numbers, domain in zip(groups.values(), choice, strict=True):
            found.update((n, domain) for n in numbers if domain is not None)
        yield found


def _is_possible(nodes: tuple[Node, ...], sets: tuple[PodSet, ...]) -> bool:
    return any(
        fits_by_brute_force(hosts_of(nodes), domains.confined(sets, choice))
        for choice in _choices(nodes, sets)
    )


@settings(max_examples=budget.examples(WORLDS))
@given(_worlds(), st.sampled_from([(), ("block", "rack", "host"), ("block", "rack")]))
def test_a_gang_with_topology_fits_if_and_only_if_brute_force_finds_domains(
    world: tuple[tuple[Node, ...], tuple[PodSet, ...]], levels: tuple[str, ...]
) -> None:
    nodes, sets = world
    capacity = cluster(*nodes, settings=Settings(topology_levels=levels))
    shape = capacity.shape(sets)
    capacity.remember(shape)
    expected = _is_possible(nodes, sets)

    refused = capacity.refusal(shape)
    event("fits" if expected else f"refused: {refused.reason if refused else None}")
    assert (refused is None) is expected
    assert refused is None or refused.reason is not WaitingReason.UNDECIDED
    assert capacity.questions().refusal(shape) == refused
    assert capacity.would_fit_emptied(shape) is expected
    assert (capacity.assume("w", 1, shape, sets) is None) is expected
    if expected:
        _check_places(capacity, nodes, sets)
        _check_level(capacity, nodes, sets, levels)
    capacity.forget(shape)
    capacity.check()


def _check_places(capacity: Capacity, nodes: tuple[Node, ...], sets: tuple[PodSet, ...]) -> None:
    """Every pod of a set has its place in the domain of the set, which its group shares."""
    labels = {one.name: dict(one.labels) for one in nodes}
    chosen = {one.item: one.domain for one in capacity.gangs.domains("w")}
    for number, one in enumerate(sets):
        if one.topology is None or not one.topology.required:
            continue
        level, value = chosen[number]
        assert level in one.topology.levels
        places = [name for name, n in capacity.gangs.places_of("w").items() if n[number]]
        assert {labels[name].get(level) for name in places} == {value}
    grouped = {chosen.get(n) for n, one in enumerate(sets) if one.topology and one.topology.group}
    assert len(grouped) <= 1


def _check_level(
    capacity: Capacity, nodes: tuple[Node, ...], sets: tuple[PodSet, ...], levels: tuple[str, ...]
) -> None:
    """A gang with one preferred topology is in a domain of the narrowest level that has one for it,
    from its own level on; one without topology prefers such a domain."""
    asked = {one.topology for one in sets}
    topology = next(iter(asked)) if len(asked) == 1 else None
    if asked == {None}:
        tried = levels[::-1]
        chosen = [one for one in [capacity.preferred_domain("w")] if one is not None]
    elif topology is not None and not topology.required and (len(sets) == 1 or topology.group):
        last = topology.levels[-1]
        wider = levels[: levels.index(last)] if last in levels else ()
        tried = (*topology.levels, *wider[::-1])
        chosen = sorted({one.domain for one in capacity.gangs.domains("w")})
    else:
        return
    possible = [level for level in tried if _is_possible_in_one(nodes, sets, level)]
    event(f"level {tried.index(possible[0]) if possible else None} of {len(tried)}")
    assert [level for level, _ in chosen] == possible[:1]


def _is_possible_in_one(nodes: tuple[Node, ...], sets: tuple[PodSet, ...], level: str) -> bool:
    values = {dict(one.labels).get(level) for one in nodes} - {None}
    return any(
        fits_by_brute_force(
            hosts_of(tuple(one for one in nodes if dict(one.labels).get(level) == value)),
            tuple(replace(one, topology=None) for one in sets),
        )
        for value in values
    )


def _rack(number: int, *cpus: str) -> list[Node]:
    return [
        node(f"r{number}n{n}", cpu, labels={"rack": f"r{number}"}) for n, cpu in enumerate(cpus)
    ]


def _asks(replicas: int, *, required: bool = True) -> tuple[PodSet, ...]:
    return (replace(pods(replicas, "1"), topology=Topology(("rack",), required)),)


def test_of_the_racks_that_have_room_the_one_with_the_least_is_taken() -> None:
    capacity = cluster(*_rack(1, "4", "4"), *_rack(2, "2", "2"), *_rack(3, "1"))
    sets = _asks(3)
    assert capacity.assume("w", 1, capacity.shape(sets), sets) is None
    assert [one.domain for one in capacity.gangs.domains("w")] == [("rack", "r2")]


def test_a_refusal_names_the_nearest_rack_and_a_node_that_joins_it_ends_the_wait() -> None:
    capacity = cluster(*_rack(1, "2"), *_rack(2, "2", "1"))
    sets = _asks(4)
    shape = capacity.shape(sets)
    capacity.remember(shape)
    refused = capacity.refusal(shape)
    assert refused is not None
    assert refused.reason is WaitingReason.NO_DOMAIN
    assert (
        "None of 2 domains of rack has 4 places; the nearest, r2, has 3: 1 missing."
        in refused.message
    )
    assert not capacity.would_fit_emptied(shape)

    capacity.node_seen(node("more", "1", labels={"rack": "r2"}))
    assert capacity.take_requeued() == [shape]
    assert capacity.refusal(shape) is None


def test_without_a_rack_for_all_a_gang_that_only_prefers_one_goes_anywhere() -> None:
    capacity = cluster(*_rack(1, "2"), *_rack(2, "2"))
    sets = _asks(4, required=False)
    assert capacity.assume("w", 1, capacity.shape(sets), sets) is None
    assert capacity.gangs.domains("w") == ()


def test_no_rack_is_a_refusal_that_says_so() -> None:
    capacity = cluster(node("n1"))
    refused = capacity.refusal(capacity.shape(_asks(1)))
    assert refused is not None
    assert "No node has the label rack." in refused.message


def test_pods_in_flight_may_take_the_room_of_a_rack_though_other_racks_have_more() -> None:
    capacity = cluster(*_rack(1, "4", "4"), *_rack(2, "4", "4"))
    small = (pods(2, "1"),)
    assert capacity.assume("small", 1, capacity.shape(small), small) is None
    in_flight = capacity.gangs.in_flight(["small"])
    for topology, strands in ((None, False), (Topology(("rack",)), True)):
        shape = capacity.shape((replace(pods(2, "4"), topology=topology),))
        capacity.remember(shape)
        assert capacity.refusal(shape) is None
        assert capacity.may_strand(in_flight, shape) is strands
