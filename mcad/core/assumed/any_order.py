"""Whether pods without a node find room in every order of binding, wherever others go (core R2).

A pod q takes away at most ``max over r of ceil(q_r / p_r)`` of the slots of p, because ``floor((f -
q) / p) >= floor(f / p) - ceil(q / p)``; a pod that shares no node with p takes away all slots of
one node. So the pods of one class are safe if its slots on all nodes, less the slots that all other
pods there may take away, are enough for all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from mcad.core.nodes.columns import Columns, Mask, counted
from mcad.core.nodes.pod_class import PodClass
from mcad.core.state.model import PodSet
from mcad.core.state.work_bounds import ROWS_PER_STEP, SAFETY_STEPS


class Unbound(NamedTuple):
    """Equal pods without a node: how many are assumed on which node (``at``), and which nodes their
    template leaves to others (``off``). ``pod_set`` is a set of these pods, None if they are of
    several gangs: then anti-affinity between sets is not considered."""

    pods: PodClass
    size: int
    at: dict[str, int]
    off: Collection[str] = ()
    pod_set: PodSet | None = None


class Budget:
    """A budget of work; a test that exceeds it counts as passed."""

    def __init__(self, steps: int) -> None:
        self._most = steps
        self.spent = 0

    @property
    def is_spent(self) -> bool:
        """Whether the budget is used up."""
        return self.spent >= self._most

    def spend(self, steps: int) -> None:
        """Count this many steps of work."""
        self.spent += steps


def are_safe(unbound: Sequence[Unbound], budget: Budget) -> bool:
    """Whether no order of binding strands any of these pods."""
    return all(
        is_safe(one, [other for other in unbound if other is not one], budget) for one in unbound
    )


def is_safe(one: Unbound, others: Sequence[Unbound], budget: Budget) -> bool:
    """Whether these pods find room wherever the other pods go that may come to the same nodes."""
    ledger = one.pods.ledger
    budget.spend((1 + len(others)) * (SAFETY_STEPS + ledger.size // ROWS_PER_STEP))
    if budget.is_spent:
        return True
    excluded = [_exclude(each, one) for each in others]
    # The most slots that a pod which comes to a node takes away.
    cap = min(one.pods.cap, one.size) if any(excluded) else one.pods.cap
    free = _emptied((one, *others))
    here = free.slots(one.pods.request, cap, _admitted(one))
    have, need = here.total, one.size
    reached = ledger.nothing()
    reached[here.rows] = True
    for other, is_excluded in zip(others, excluded, strict=True):
        if have < need:
            break
        if len(free.slots(other.pods.request, 1, reached & _admitted(other)).rows):
            need += other.size * (cap if is_excluded else _spoils(other.pods, one.pods))
    return have >= need


def _emptied(unbound: Sequence[Unbound]) -> Columns:
    """The free amounts if none of these pods is assumed anywhere."""
    ledger = unbound[0].pods.ledger
    free = ledger.free.copy({name: None for each in unbound for name, _ in each.pods.request})
    for each in unbound:
        amounts = [(name, counted(n)) for name, n in each.pods.request]
        for name, pods in each.at.items():
            if name in ledger.rows:
                free.add(ledger.rows[name].at, amounts, pods)
    return free


def _admitted(one: Unbound) -> Mask:
    """The rows where these pods may go."""
    mask, rows = one.pods.mask.copy(), one.pods.ledger.rows
    mask[[rows[name].at for name in one.off if name in rows]] = False
    return mask


def _exclude(one: Unbound, other: Unbound) -> bool:
    """Whether the pods of the two share no node."""
    if one.pod_set is None or other.pod_set is None:
        return False
    return one.pod_set.excludes(other.pod_set)


def _spoils(other: PodClass, pods: PodClass) -> int:
    """How many slots of ``pods`` one pod of the other class takes away at most."""
    wanted = dict(other.request)
    return max(-(-wanted.get(name, 0) // n) for name, n in pods.request)
