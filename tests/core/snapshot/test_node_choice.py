"""A plan for a gang of dozens of parts has some of the nodes, and still finds the room that there
is on all."""

from __future__ import annotations

from collections import Counter

from mcad.core.capacity import Capacity
from mcad.core.snapshot.removal import fewest
from mcad.core.state.model import PodSet
from mcad.core.state.settings import Settings
from mcad.core.state.work_bounds import SNAPSHOT_PAIRS_MAX
from tests.core.builders import hold, node, on, pods

NODES, PARTS = 400, 64
assert NODES * PARTS > SNAPSHOT_PAIRS_MAX


def dozens(zone: str = "") -> tuple[PodSet, ...]:
    """Pods of as many sizes, each more than half of a node."""
    where = on(zone=zone) if zone else on()
    return tuple(pods(1, f"{2100 + 10 * n}m", index=n, where=where) for n in range(PARTS))


def full(zones: str = "ab") -> tuple[Capacity, list[str]]:
    """Nodes of each zone by turns, each full with one AppWrapper; their uids."""
    zone = {f"n{n:03}": zones[n % len(zones)] for n in range(NODES)}
    capacity = Capacity(Settings())  # checked at the end, not after each change
    for name, where in zone.items():
        capacity.node_seen(node(name, "4", labels={"zone": where}))
    uids = [f"a{n:03}" for n in range(NODES)]
    for uid in uids:
        hold(capacity, uid, pods(1, "4"))
    return capacity, uids


def test_its_work_is_bounded_and_it_finds_a_plan() -> None:
    capacity, uids = full()
    asked = capacity.what_if(capacity.shape(dozens()))
    assert 0 < asked.steps <= SNAPSHOT_PAIRS_MAX

    found = fewest(asked, uids)
    assert found is not None
    assert len(found.leaving) == PARTS
    placed = Counter(row.node.name for _, row, count in found.plan for _ in range(count))
    assert sorted(placed.values()) == [1] * PARTS
    assert {name for uid in found.leaving for name in capacity.nodes_of(uid)} == placed.keys()
    capacity.check()


def test_it_has_nodes_for_each_part() -> None:
    capacity, uids = full()
    sets = (*dozens("a")[: PARTS // 2], *dozens("b")[PARTS // 2 :])
    found = fewest(capacity.what_if(capacity.shape(sets)), uids)
    assert found is not None
    assert len(found.leaving) == PARTS


def test_nodes_with_most_room_come_first() -> None:
    capacity, uids = full()
    for name in ("n111", "n333"):
        capacity.node_seen(node(name, "4", labels={"zone": "b"}))
    left = [uid for uid in uids if capacity.nodes_of(uid) not in (["n111"], ["n333"])]
    for uid in set(uids) - set(left):
        capacity.release(uid)
    found = fewest(capacity.what_if(capacity.shape(dozens())), left)
    assert found is not None
    assert {"n111", "n333"} <= {row.node.name for _, row, _ in found.plan}
    assert len(found.leaving) == PARTS - 2


def test_what_cannot_fit_on_so_few_nodes_has_no_plan() -> None:
    capacity, uids = full()
    sets = tuple(pods(6, f"{2100 + 10 * n}m", index=n) for n in range(PARTS))
    assert NODES > PARTS * 6 > SNAPSHOT_PAIRS_MAX // 2 // PARTS
    asked = capacity.what_if(capacity.shape(sets))
    assert fewest(asked, uids) is None
    assert asked.steps <= 3 * SNAPSHOT_PAIRS_MAX
