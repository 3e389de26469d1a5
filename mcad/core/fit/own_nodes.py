"""Pod sets of a gang on nodes of their own, where they could strand each other otherwise (core R2).

A set that other pods of its gang can strand gets its planned nodes for itself: the others avoid
them (assumed/apart.py). On a node that two sets are planned on this protects neither. So a plan
with such a node gives way to one without, if one is found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcad.core.assumed.any_order import RowBudget, Unbound, is_safe
from mcad.core.fit.feasible import Part, Prospect
from mcad.core.fit.greedy import Nodes, size
from mcad.core.nodes.pod_signature import slots
from mcad.core.nodes.pools import Draft
from mcad.core.state.work_bounds import APART_ROWS_MAX


def on_own_nodes(
    prospect: Prospect, plan: Draft, nodes: Nodes, weights: Mapping[str, int]
) -> tuple[Draft, int]:
    """The plan to follow instead of this one, or this one; and how many nodes were looked at.
    ``weights`` are the cluster's totals: they tell which pods are large."""
    parts = prospect.parts
    looks = sum(len(part.pods.pool.rows) for part in parts)
    if prospect.shape.per_node or looks > APART_ROWS_MAX or not _shares_a_node(plan):
        return plan, 0
    if _all_are_safe(prospect):
        return plan, looks
    for fewest_first in (True, False):
        found = _one_after_the_other(parts, nodes, weights, fewest_first=fewest_first)
        if found is not None:
            return found, 2 * looks
    return plan, 3 * looks


def _shares_a_node(plan: Draft) -> bool:
    seen: dict[int, int] = {}
    return any(seen.setdefault(row.rank, number) != number for number, row, _ in plan)


def _all_are_safe(prospect: Prospect) -> bool:
    """Whether no order of binding strands the gang as it is (any_order.py)."""
    budget = RowBudget(APART_ROWS_MAX)
    unbound = unbound_of(prospect)
    return all(
        is_safe(one, [other for other in unbound if other is not one], budget, {})
        for one in unbound
    )


def unbound_of(prospect: Prospect) -> list[Unbound]:
    """Its pods but those of DaemonSets, none of them assumed yet."""
    return [
        Unbound(part.pods, part.replicas, {}, pod_set=prospect.shape.sets[part.positions[0]])
        for part in prospect.parts
        if not part.per_node
    ]


def _one_after_the_other(
    parts: Sequence[Part], nodes: Nodes, weights: Mapping[str, int], *, fewest_first: bool
) -> Draft | None:
    """The largest pods first, each set on nodes that no set before it has: those with room for the
    fewest of its pods first, or those with room for the most."""
    plan: Draft = []
    taken: set[int] = set()
    sign = 1 if fewest_first else -1
    for number in sorted(
        range(len(parts)), key=lambda number: -size(parts[number].pods.request, weights)
    ):
        left, pods = parts[number].replicas, parts[number].pods
        offers = [
            (sign * slots(nodes.free(row), pods.request, pods.cap), row.rank, row)
            for row in nodes.places(pods)
            if row.rank not in taken
        ]
        for there, rank, row in sorted(offers):
            if there and left:
                plan.append((number, row, min(left, abs(there))))
                left -= min(left, abs(there))
                taken.add(rank)
        if left:
            return None
    return plan
