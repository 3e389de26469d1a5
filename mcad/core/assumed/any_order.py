"""Whether pods without a node find room in every order and wherever the others go (core R2).

A pod q takes away at most ``max over r of ceil(q_r / p_r)`` of the slots of p, because
``floor((f - q) / p) >= floor(f / p) - ceil(q / p)``; one that shares no node with p takes away all
of one node. So the pods of one class are safe if its slots
on all nodes, less what all other pods that can come there take away, are as many as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from mcad.core.nodes.pod_signature import PodClass, slots
from mcad.core.nodes.pools import Row
from mcad.core.nodes.resources import Books, book
from mcad.core.state.model import PodSet


class Unbound(NamedTuple):
    """Equal pods without a node: how many are assumed on which node (``at``), and which nodes their
    template leaves to others (``off``). ``pod_set`` is one of theirs, None where they are of
    several gangs: then anti-affinity between sets is not looked at."""

    pods: PodClass
    size: int
    at: dict[str, int]
    off: Collection[str] = ()
    pod_set: PodSet | None = None


class RowBudget:
    """The nodes that may still be looked at; a test that cannot be ended counts as passed."""

    def __init__(self, rows: int) -> None:
        self._left = rows

    @property
    def is_spent(self) -> bool:
        """Whether no more may be looked at."""
        return self._left <= 0

    def spend(self, rows: int) -> None:
        """Nodes are looked at, each for every set of pods that may come there."""
        self._left -= rows


def is_safe(
    one: Unbound, others: Sequence[Unbound], budget: RowBudget, own: Mapping[str, Row]
) -> bool:
    """Whether these pods find room wherever the others go that can come to their nodes. ``own`` has
    the nodes on which any of all these pods is assumed, by name; others do no harm."""
    budget.spend(len(others))
    request, cap = one.pods.request, one.pods.cap
    spoils = [each.size * _spoils(each.pods, one.pods) for each in others]
    if excluded := [n for n, each in enumerate(others) if _exclude(each, one)]:
        cap = min(cap, one.size)  # what a pod that comes to a node takes away at most
        for n in excluded:
            spoils[n] = others[n].size * cap
    need, most, have = one.size, one.size + sum(spoils), 0
    absent = list(range(len(others)))  # those that have not been found to come to these nodes
    everyone, off = (one, *others), one.off
    for row in _rows(one.pods, own):
        budget.spend(1 + len(absent))
        if have >= most or budget.is_spent:
            return True
        name, free = row.node.name, row.free
        if name in off:
            continue
        if name in own:
            budget.spend(len(everyone))
            free = _emptied(row, everyone)
        here = slots(free, request, cap)
        if not here:
            continue  # whatever comes there takes nothing from it
        have += here
        for number in [each for each in absent if _may_come(others[each], row, free)]:
            absent.remove(number)
            need += spoils[number]
    return have >= need


def _exclude(one: Unbound, other: Unbound) -> bool:
    """Whether their pods share no node."""
    if one.pod_set is None or other.pod_set is None:
        return False
    return one.pod_set.excludes(other.pod_set)


def _may_come(other: Unbound, row: Row, free: Books) -> bool:
    """Whether such a pod may come to a node on which this much is free."""
    if row.node.name in other.off or row.rank not in other.pods.pool.rows:
        return False
    return slots(free, other.pods.request) > 0


def _rows(pods: PodClass, own: Mapping[str, Row]) -> Iterator[Row]:
    """The nodes of the class that may have room for one of its pods if the pods assumed there were
    gone, each once."""
    told: set[int] = set()
    for row in pods.places():
        if row.rank not in told:
            told.add(row.rank)
            yield row
    admitted = pods.pool.rows
    yield from [row for row in own.values() if row.rank in admitted and row.rank not in told]


def _spoils(other: PodClass, pods: PodClass) -> int:
    """How many slots of a class one pod of the other takes away at most."""
    wanted, most = dict(other.request), 0
    for name, n in pods.request:  # asked for each pair of dozens of sets
        if name in wanted:
            most = max(most, -(-wanted[name] // n))
    return most


def _emptied(row: Row, unbound: Iterable[Unbound]) -> Books:
    """What is free on the node if none of these pods is assumed there."""
    free = dict(row.free)
    name = row.node.name
    for each in unbound:
        if name in each.at:  # of dozens of parts few are there
            book(free, each.pods.request, each.at[name])
    return free
