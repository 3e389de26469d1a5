"""The levels of a cluster: where preferred topologies go, and gangs without one."""

from __future__ import annotations

from msgspec.structs import replace

from mcad.core.capacity import Capacity
from mcad.core.fit.topology_levels import common_domain, put_together, widened
from mcad.core.state.model import HOSTNAME, Node, PodSet, Topology
from mcad.core.state.settings import Fit, Settings
from tests.core.builders import cluster, node, pods

LEVELS = ("block", "rack", HOSTNAME)
LEVELLED = Settings(topology_levels=LEVELS)


def _nodes(block: str, rack: str, *cpus: str) -> list[Node]:
    return [
        node(f"{rack}n{n}", cpu, labels={"block": block, "rack": rack, HOSTNAME: f"{rack}n{n}"})
        for n, cpu in enumerate(cpus)
    ]


def _started(capacity: Capacity, sets: tuple[PodSet, ...], uid: str = "w") -> set[str]:
    """The nodes of a gang that fits."""
    assert capacity.assume(uid, 1, capacity.shape(sets), sets) is None
    return set(capacity.gangs.nodes_of(uid))


def _prefers(label: str, replicas: int) -> tuple[PodSet, ...]:
    return (replace(pods(replicas, "1"), topology=Topology((label,), required=False)),)


def test_a_preferred_topology_is_widened_and_a_required_one_is_not() -> None:
    preferred = Topology((HOSTNAME,), required=False)
    assert widened(preferred, LEVELS) == replace(preferred, levels=(HOSTNAME, "rack", "block"))
    for same in (None, Topology(("rack",)), replace(preferred, levels=("zone",))):
        assert widened(same, LEVELS) == same


def test_without_a_rack_for_all_a_preferred_topology_is_tried_in_a_block() -> None:
    capacity = cluster(
        *_nodes("b1", "r1", "2"),
        *_nodes("b2", "r2", "2"),
        *_nodes("b2", "r3", "2"),
        settings=LEVELLED,
    )
    assert _started(capacity, _prefers("rack", 4)) == {"r2n0", "r3n0"}
    assert [one.domain for one in capacity.gangs.domains("w")] == [("block", "b2")]
    capacity.gangs.release("w")
    _started(capacity, _prefers("rack", 5))
    assert capacity.gangs.domains("w") == ()


def test_a_required_topology_is_never_tried_at_a_wider_level() -> None:
    nodes = (*_nodes("b", "r1", "2"), *_nodes("b", "r2", "2"))
    capacity = cluster(*nodes, settings=LEVELLED)
    sets = (replace(pods(4, "1"), topology=Topology(("rack",))),)
    assert capacity.refusal(capacity.shape(sets)) is not None


def test_a_gang_without_topology_takes_the_rack_with_the_least_room_for_all_of_it() -> None:
    racks = (
        *_nodes("b", "r1", "4", "4"),
        *_nodes("b", "r2", "2", "1"),
        *_nodes("b", "r3", "1", "1"),
    )
    capacity = cluster(*racks, settings=LEVELLED)
    sets = (pods(2, "1"), pods(1, "1", item=1))
    assert {name[:2] for name in _started(capacity, sets)} == {"r2"}
    assert capacity.preferred_domain("w") == ("rack", "r2")
    assert capacity.gangs.domains("w") == ()


def test_of_equal_racks_the_one_in_the_block_with_the_least_room_is_taken() -> None:
    racks = (
        *_nodes("b1", "r1", "4"),
        *_nodes("b1", "r2", "4"),
        *_nodes("b2", "r3", "4"),
    )
    capacity = cluster(*racks, settings=LEVELLED)
    assert _started(capacity, (pods(2, "1"),)) == {"r3n0"}


def test_a_gang_without_topology_waits_for_no_domain() -> None:
    nodes = (*_nodes("b1", "r1", "2"), *_nodes("b2", "r2", "2"))
    capacity = cluster(*nodes, settings=LEVELLED)
    assert _started(capacity, (pods(4, "1"),)) == {"r1n0", "r2n0"}
    assert capacity.preferred_domain("w") is None


def test_what_has_a_topology_prefers_nothing_besides() -> None:
    capacity = cluster(*_nodes("b", "r1", "4"), settings=LEVELLED)
    _started(capacity, _prefers("rack", 1))
    assert capacity.preferred_domain("w") is None


def test_no_levels_and_sums_alone_choose_no_domain() -> None:
    for settings in (
        Settings(),
        Settings(topology_levels=(HOSTNAME,)),
        Settings(topology_levels=LEVELS, fit=Fit.AGGREGATE),
    ):
        capacity = cluster(*_nodes("b", "r1", "4"), settings=settings)
        _started(capacity, (pods(1, "1"),))
        assert capacity.preferred_domain("w") is None


def test_a_daemonset_and_an_empty_gang_have_no_domain() -> None:
    capacity = cluster(*_nodes("b", "r1", "4"), *_nodes("b", "r2", "4"), settings=LEVELLED)
    for sets in ((pods(1, "1", per_node=True),), (pods(0, "1"),)):
        _started(capacity, sets)
        assert capacity.preferred_domain("w") is None
        capacity.gangs.release("w")


def test_the_narrowest_domain_with_all_nodes_is_theirs() -> None:
    racks = {"block": "b", "rack": "r1"}, {"block": "b", "rack": "r2"}
    assert common_domain(racks[:1], LEVELS) == ("rack", "r1")
    assert common_domain(racks, LEVELS) == ("block", "b")
    assert common_domain((*racks, {"rack": "r1"}), LEVELS) is None
    assert common_domain((), LEVELS) is None


def test_single_nodes_are_left_to_kube_scheduler() -> None:
    (one,) = put_together((pods(1, "1"),), LEVELS)
    assert one.topology is not None
    assert one.topology.levels == ("rack", "block")
