"""Pod sets of a gang on nodes of their own, where they could strand each other otherwise (core R2).

A set that other pods of its gang can strand gets its planned nodes for itself: the other pods avoid
these nodes (assumed/apart.py). On a node that is planned for two sets this protects neither set. So
a plan with such a node gives way to a plan without, if the search finds one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mcad.core.assumed.any_order import Budget, Unbound, are_safe
from mcad.core.fit.greedy import Nodes, size
from mcad.core.fit.prospect import Draft, Part, Prospect
from mcad.core.nodes.columns import take_slots
from mcad.core.state.work_bounds import APART_WORK_MAX, ROWS_PER_STEP


def on_own_nodes(
    prospect: Prospect, plan: Draft, nodes: Nodes, weights: Mapping[str, int]
) -> tuple[Draft, int]:
    """The plan to follow, this one or a better one, and the work of the search. ``weights`` are the
    cluster's totals, by which large pods are known."""
    if prospect.shape.per_node or not _shares_a_node(plan):
        return plan, 0
    budget = Budget(APART_WORK_MAX)
    if are_safe(unbound_of(prospect), budget):
        return plan, budget.spent
    work = budget.spent + len(prospect.parts) * nodes.columns.rows // ROWS_PER_STEP
    for most_first in (False, True):
        found = _one_after_the_other(prospect.parts, nodes, weights, most_first=most_first)
        if found is not None:
            return found, work
    return plan, work


def _shares_a_node(plan: Draft) -> bool:
    seen: dict[int, int] = {}
    return any(seen.setdefault(at, number) != number for number, at, _ in plan)


def unbound_of(prospect: Prospect) -> list[Unbound]:
    """The gang's pods except those of DaemonSets, none assumed yet."""
    return [
        Unbound(part.pods, part.replicas, {}, pod_set=prospect.shape.sets[part.positions[0]])
        for part in prospect.parts
        if not part.per_node
    ]


def _one_after_the_other(
    parts: Sequence[Part], nodes: Nodes, weights: Mapping[str, int], *, most_first: bool
) -> Draft | None:
    """Place the largest pods first, each set on nodes without pods of earlier sets: nodes with room
    for the fewest of its pods first, or with room for the most."""
    plan: Draft = []
    left = np.ones(nodes.columns.rows, np.bool_)
    order = sorted(range(len(parts)), key=lambda n: -size(parts[n].pods.request, weights))
    for number in order:
        slots = nodes.slots(parts[number].pods, nodes.columns).among(left)
        taken = take_slots(slots, parts[number].replicas, most_first=most_first)
        if taken.total < parts[number].replicas:
            return None
        plan += [(number, at, pods) for at, pods in taken.pairs()]
        left[taken.rows] = False
    return plan
