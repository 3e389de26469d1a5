"""Nodes in racks, AppWrappers whose pods have to be in one, and random worlds of both."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import product
from random import Random
from typing import NamedTuple

from mcad.core.nodes.resources import with_pod_slot
from mcad.core.state.model import Domain, Node, PodSet, Topology, Workload
from mcad.core.state.records import replace
from tests.core.bench import node, workload
from tests.core.builders import may_share, on, pods
from tests.core.builders import node as node_of

TOGETHER = Topology(("rack",), group="all")


def rack(name: str, nodes: int) -> list[Node]:
    """So many nodes of 1 CPU with this value of the label ``rack``."""
    return [replace(node(f"{name}n{n}"), labels=(("rack", name),)) for n in range(nodes)]


def close(name: str, *milli: int, **changes: object) -> Workload:
    """An AppWrapper with one bare Pod per figure, all of them in one rack."""
    work = workload(name, *milli, **changes)
    return replace(work, sets=tuple(replace(one, topology=TOGETHER) for one in work.sets))


# -- random small worlds ---------------------------------------------------------------------------

LEVELS = ("host", "rack", "block")


class World(NamedTuple):
    """A few nodes on three levels, one gang, and the setting ``topologyLevels``."""

    nodes: tuple[Node, ...]
    sets: tuple[PodSet, ...]
    levels: tuple[str, ...]


def draw_world(rng: Random) -> World:
    """Up to five nodes, some without a label, and up to four sets. Sets are often equal but for
    what they select, and share a topology, which two groups of them may have, or have none."""
    nodes = []
    for number in range(rng.randint(1, 5)):
        labels = {"host": f"h{number}", "rack": rng.choice(["r1", "r2", ""])}
        labels["block"] = rng.choice(["b1", "b1", "b2", ""])
        has = {key: value for key, value in labels.items() if value}
        gpu, cpu = rng.choice([0, 0, 2]), str(rng.randint(0, 4))
        nodes.append(node_of(f"n{number}", cpu, gpu=gpu, labels=has))
    levels = [LEVELS[:1], LEVELS[1:2], LEVELS[1:2], LEVELS[2:], LEVELS[1:], LEVELS]
    one, other = (Topology(rng.choice(levels), rng.random() < 0.6, name) for name in "gh")
    groups = rng.choice([[None], [one], [None, one, one], [None, one, one, other]])
    larger = rng.choice([("1", 0), ("1", 0), ("2", 0), ("1", 1)])
    sets = []
    for number in range(rng.randint(1, 4)):
        cpu, gpu = rng.choice([("1", 0), ("1", 0), larger])
        where = on(**rng.choice([{}, {}, {"rack": "r1"}, {"rack": "r2"}, {"block": "b1"}]))
        each = pods(rng.randint(0, 3), cpu, gpu=gpu, item=number, where=where)
        sets.append(replace(each, topology=rng.choice(groups)))
    if rng.random() < 0.3:
        sets = [_kept_apart(rng, one) for one in sets]
    return World(tuple(nodes), tuple(sets), rng.choice([(), LEVELS[::-1], LEVELS[:0:-1]]))


def _kept_apart(rng: Random, one: PodSet) -> PodSet:
    """With two terms of anti-affinity that sets of the gang may have, and be selected by."""
    repels, repelled = ([n for n in (0, 1) if rng.random() < 0.4] for _ in range(2))
    cap = 1 if {*repels} & {*repelled} else rng.choice([0, 0, 1])
    return replace(one, cap=cap, repels=tuple(repels), repelled=tuple(repelled))


def has_placement(nodes: Collection[Node], sets: Collection[PodSet]) -> bool:
    """Whether there is a place for every pod, with each required group in one domain: by trying
    every way, without sums and slots. Preferences are none of its business."""
    required = {
        one.topology.group: one.topology
        for one in sets
        if one.topology and one.topology.required and one.replicas
    }
    options = [
        sorted({label for one in nodes for label in one.labels if label[0] in topology.levels})
        for topology in required.values()
    ]
    return any(
        _place({one.name: dict(one.allocatable) for one in nodes}, nodes, sets, chosen)
        for choice in product(*options)
        for chosen in [dict(zip(required, choice, strict=True))]
    )


def _place(
    free: dict[str, dict[str, int]],
    nodes: Collection[Node],
    sets: Iterable[PodSet],
    chosen: dict[str, Domain],
) -> bool:
    needed = [(one, may_go(one, nodes, chosen)) for one in sets for _ in range(one.replicas)]
    return _place_from(free, {name: [] for name in free}, needed, 0, 0)


def may_go(one: PodSet, nodes: Iterable[Node], chosen: dict[str, Domain]) -> list[str]:
    """The nodes that the pods of a set may go to, in the domain that is chosen for its group."""
    wanted = {*one.constraint.selector}
    if one.topology and one.topology.group in chosen:
        wanted.add(chosen[one.topology.group])
    return [each.name for each in nodes if wanted <= {*each.labels}]


def may_join(one: PodSet, there: list[PodSet]) -> bool:
    """Whether anti-affinity lets a pod of the set on a node with one pod of each of the others."""
    is_full = one.cap > 0 and sum(other is one for other in there) >= one.cap
    return not is_full and all(may_share(one, other) for other in there)


def _place_from(
    free: dict[str, dict[str, int]],
    bound: dict[str, list[PodSet]],
    needed: list[tuple[PodSet, list[str]]],
    at: int,
    first: int,
) -> bool:
    """The pods from the one ``at`` on; this one on a node from the ``first`` on, because pods of
    one set are equal."""
    if at == len(needed):
        return True
    one, names = needed[at]
    request = with_pod_slot(one.request)
    for number, name in enumerate(names[first:], first):
        there = free[name]
        if any(there.get(resource, 0) < n for resource, n in request):
            continue
        if not may_join(one, bound[name]):
            continue
        for resource, n in request:
            there[resource] -= n
        bound[name].append(one)
        is_next_equal = at + 1 < len(needed) and needed[at + 1][0] is one
        found = _place_from(free, bound, needed, at + 1, number if is_next_equal else 0)
        for resource, n in request:
            there[resource] += n
        bound[name].pop()
        if found:
            return True
    return False
