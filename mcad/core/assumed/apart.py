"""Which nodes the pods of one set of a gang leave to the pods of its other sets (core R2).

The dispatcher finds a node for every pod, and then kube-scheduler binds the pods one by one, in the
order in which they appear, each where its own scores say. So a gang may strand itself: its small
pod takes the empty node that its large pod needs. A set is *safe* if there is room for all of its
pods wherever the other pods of the gang go. Of a set that is not, the planned nodes are left alone
by the other sets.

A pod q takes away at most ``max over r of ceil(q_r / p_r)`` of the slots of p, because
``floor((f - q) / p) >= floor(f / p) - ceil(q / p)``: so p is safe if its slots on all nodes, less
what all other pods take away, are as many as it needs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from mcad.core.assumed.allotments import Allotment
from mcad.core.nodes.pod_signature import PodClass, slots
from mcad.core.nodes.pools import Row
from mcad.core.nodes.resources import Books, book
from mcad.core.state.bounds import AVOIDED_MAX
from mcad.core.state.work_bounds import APART_ROWS_MAX


def kept_apart(gang: Sequence[Allotment]) -> dict[int, tuple[str, ...]]:
    """By position of a set, the sorted names of the nodes that its pods leave to others.

    Nothing is kept apart if a set would leave more nodes than a pod template can name, or if that
    takes more work than is allowed: then the gang is as safe as kube-scheduler makes it.
    """
    waiting = [one for one in gang if one.size and not one.pod_set.per_node]
    if len({one.pods.key for one in waiting}) < 2:
        return {}
    off: dict[int, set[str]] = {one.position: set() for one in waiting}
    unsafe: set[int] = set()
    work = _Work()
    while (found := _first_unsafe(gang, waiting, unsafe, off, work)) is not None:
        unsafe.add(found.position)
        for other in waiting:
            if other.pods is not found.pods:
                off[other.position] |= found.at.keys() - other.at.keys()
    if work.is_spent or any(len(names) > AVOIDED_MAX for names in off.values()):
        return {}
    return {position: tuple(sorted(names)) for position, names in off.items() if names}


class _Work:
    """The nodes that were looked at, each for every set that may come there."""

    def __init__(self) -> None:
        self.rows = 0

    @property
    def is_spent(self) -> bool:
        """Whether no more may be looked at."""
        return self.rows > APART_ROWS_MAX


def _first_unsafe(
    gang: Sequence[Allotment],
    waiting: Iterable[Allotment],
    unsafe: Collection[int],
    off: Mapping[int, Collection[str]],
    work: _Work,
) -> Allotment | None:
    """A set that is not safe on the nodes that are left to it, None if there is none. What one set
    leaves to others makes the room of that set smaller, so each is judged again."""
    for one in waiting:
        if work.is_spent:
            return None
        if one.position not in unsafe and not _is_safe(one, gang, off, work):
            return one
    return None


def _is_safe(
    one: Allotment, gang: Sequence[Allotment], off: Mapping[int, Collection[str]], work: _Work
) -> bool:
    """Whether the pods of a set find room on the nodes that are left to it wherever the other pods
    go that can come to these nodes."""
    work.rows += len(gang)
    others = {
        each: each.size * _spoils(each.pods, one.pods) for each in gang if each.pods is not one.pods
    }
    most, have = one.size + sum(others.values()), 0
    own = {name for each in gang for name in each.at}
    come: dict[Allotment, None] = {}
    for row in one.pods.pool.rows.values():
        work.rows += 1 + len(others) - len(come)
        if have >= most or work.is_spent:
            return True
        name = row.node.name
        if name in off[one.position]:
            continue
        work.rows += len(gang) if name in own else 0
        free = _emptied(row, gang) if name in own else row.free
        have += slots(free, one.pods.request, one.pods.cap)
        for other in [each for each in others if each not in come]:
            is_left = name not in off.get(other.position, ()) and row.rank in other.pods.pool.rows
            if is_left and slots(free, other.pods.request):
                come[other] = None
    return have >= one.size + sum(others[other] for other in come)


def _spoils(other: PodClass, pods: PodClass) -> int:
    """How many slots of a class one pod of the other takes away at most."""
    wanted = dict(other.request)
    return max(-(-wanted.get(name, 0) // n) for name, n in pods.request)


def _emptied(row: Row, gang: Sequence[Allotment]) -> Books:
    """What is free on the node if nothing of the gang is there yet."""
    free = dict(row.free)
    for each in gang:
        book(free, each.pods.request, each.at.get(row.node.name, 0))
    return free
