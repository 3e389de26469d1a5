"""Pod sets of a gang on nodes of their own, where they could strand each other otherwise (core R2).

A set that other pods of its gang can strand gets its planned nodes for itself: the others avoid
them (assumed/apart.py). On a node that two sets are planned on this protects neither. So a plan
with such a node gives way to one without, if one is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

from mcad.core.assumed.any_order import RowBudget, Unbound, is_safe
from mcad.core.fit.feasible import Part, Prospect
from mcad.core.fit.greedy import Nodes, size
from mcad.core.nodes.pod_signature import slots
from mcad.core.nodes.pools import Plan, Row
from mcad.core.state.work_bounds import APART_ROWS_MAX

_ORDERED_MAX = 3
"""Sets of which every order is tried; of more, the one with the largest pods first."""

_Offers = dict[int, list[tuple[int, Row]]]
"""By part, how many of its pods a node has room for, and the node."""


def on_own_nodes(
    prospect: Prospect, plan: Plan, nodes: Nodes, weights: Mapping[str, int]
) -> tuple[Plan, int]:
    """The plan to follow instead of this one, or this one; and how many nodes were looked at.
    ``weights`` are the cluster's totals: they tell which pods are large."""
    parts = prospect.parts
    looks = sum(len(part.pods.pool.rows) for part in parts)
    if prospect.shape.per_node or looks > APART_ROWS_MAX or not _shares_a_node(plan):
        return plan, 0
    if _all_are_safe(parts):
        return plan, looks
    offers = {
        number: [
            (there, row)
            for row in nodes.places(part.pods)
            if (there := slots(nodes.free(row), part.pods.request, part.pods.cap))
        ]
        for number, part in enumerate(parts)
    }
    orders = list(_orders(parts, weights))
    for fewest_first in (True, False):
        for offered in offers.values():
            offered.sort(key=lambda one: (one[0] if fewest_first else -one[0], one[1].rank))
        for order in orders:
            found = _one_after_the_other(order, parts, offers)
            if found is not None:
                return found, looks
    return plan, looks * (1 + len(orders))


def _shares_a_node(plan: Plan) -> bool:
    seen: dict[int, int] = {}
    return any(seen.setdefault(row.rank, number) != number for number, row, _ in plan)


def _all_are_safe(parts: Sequence[Part]) -> bool:
    """Whether no order of binding strands the gang as it is (any_order.py)."""
    budget = RowBudget(APART_ROWS_MAX)
    unbound = [Unbound(part.pods, part.replicas, {}) for part in parts]
    return all(
        is_safe(one, [other for other in unbound if other is not one], budget) for one in unbound
    )


def _orders(parts: Sequence[Part], weights: Mapping[str, int]) -> Iterator[tuple[int, ...]]:
    largest_first = sorted(
        range(len(parts)), key=lambda number: -size(parts[number].pods.request, weights)
    )
    if len(parts) <= _ORDERED_MAX:
        yield from permutations(largest_first)
    else:
        yield tuple(largest_first)


def _one_after_the_other(
    order: Sequence[int], parts: Sequence[Part], offers: _Offers
) -> Plan | None:
    """Each set takes the first nodes that it is offered and that no set before it has."""
    plan: Plan = []
    taken: set[int] = set()
    for number in order:
        left = parts[number].replicas
        for there, row in offers[number]:
            if not left:
                break
            if row.rank not in taken:
                plan.append((number, row, min(left, there)))
                left -= min(left, there)
        if left:
            return None
        taken.update(row.rank for of, row, _ in plan if of == number)
    return plan
