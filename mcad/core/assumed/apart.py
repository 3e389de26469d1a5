"""Which nodes the pods of one set of a gang leave to the pods of its other sets (core R2).

The dispatcher finds a node for every pod, and then kube-scheduler binds the pods one by one, in
order of appearance, each by its own scores. So a gang may strand itself: a small pod takes the
empty node that a large pod needs. A set is *safe* if there is room for all of its pods wherever the
other pods of the gang go (any_order.py). The other sets avoid the planned nodes of an unsafe set.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from mcad.core.assumed.allotments import Allotment
from mcad.core.assumed.any_order import Budget, Unbound, is_safe
from mcad.core.state.bounds import AVOIDED_MAX
from mcad.core.state.work_bounds import APART_WORK_MAX


def kept_apart(gang: Sequence[Allotment]) -> dict[int, tuple[str, ...]]:
    """By position of a set, the sorted names of the nodes that its pods leave to other sets.

    The result is empty if a set would leave more nodes than a pod template can name, or if the
    search exceeds its budget: then the gang is as safe as kube-scheduler makes it.
    """
    waiting = [one for one in gang if one.size and not one.pod_set.per_node]
    if all(one.is_like(waiting[0]) for one in waiting):
        return {}
    off: dict[int, set[str]] = {one.position: set() for one in waiting}
    budget = Budget(APART_WORK_MAX)
    asked = waiting
    while (found := _first_unsafe(gang, asked, off, budget)) is not None:
        asked = [one for one in asked if one is not found]
        for other in waiting:
            if not other.is_like(found):
                off[other.position] |= found.at.keys() - other.at.keys()
    if budget.is_spent or any(len(names) > AVOIDED_MAX for names in off.values()):
        return {}
    return {position: tuple(sorted(names)) for position, names in off.items() if names}


def _first_unsafe(
    gang: Sequence[Allotment],
    waiting: Iterable[Allotment],
    off: Mapping[int, Collection[str]],
    budget: Budget,
) -> Allotment | None:
    """The first set that is not safe on the nodes left to it, or None. Leaving nodes to other sets
    makes the room of a set smaller, so every set is judged again."""
    for one in waiting:
        others = [_unbound(each, off) for each in gang if not each.is_like(one)]
        if not is_safe(_unbound(one, off), others, budget):
            return one
    return None


def _unbound(one: Allotment, off: Mapping[int, Collection[str]]) -> Unbound:
    return Unbound(one.pods, one.size, one.at, off.get(one.position, ()), one.pod_set)
