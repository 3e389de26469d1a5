"""Nodes with their books, and pools: the nodes that one placement constraint admits.

A pool keeps three things ready, so that most verdicts need no look at nodes at all: the sum of what
is free (each node clamped at 0, because an overdrawn node lends nobody its debt), for each resource
its nodes sorted by what is free, and with how many nodes it shares another pool.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, combinations, islice

from mcad.core.limits import RISEN_MAX
from mcad.core.model import Node, Resources
from mcad.core.resources import Books, book


class Row:
    """One node as the ledger knows it.

    ``rank`` is never reused: a node whose labels, taints or readiness change is removed and added
    under a new one (core rule R4). ``free`` is allocatable less use and reservations and may be
    negative; ``idle`` is allocatable less the use of pods that belong to no AppWrapper.
    """

    __slots__ = ("free", "idle", "node", "pools", "rank")

    def __init__(self, rank: int, node: Node, free: Books, idle: Books) -> None:
        self.rank = rank
        self.node = node
        self.free = free
        self.idle = idle
        self.pools: dict[Pool, None] = {}


class _Tail:
    """A pool's nodes by what was free of one resource when they were sorted."""

    __slots__ = ("amounts", "rows")

    def __init__(self, resource: str, rows: dict[int, Row]) -> None:
        self.rows = sorted(rows.values(), key=lambda row: row.free.get(resource, 0))
        self.amounts = [row.free.get(resource, 0) for row in self.rows]


class Pool:
    """The nodes that ``admits`` selects.

    ``risen`` is the change at which one of them last gained room, ``shifted`` the one at which a
    node joined or left or its allocatable changed.
    """

    def __init__(self, admits: Callable[[Node], bool]) -> None:
        self.admits = admits
        self.rows: dict[int, Row] = {}
        self.total: Books = {}
        self.risen = 0
        self.shifted = 0
        self._largest: tuple[int, Books] = (-1, {})
        self._tails: dict[str, _Tail] = {}
        self._risen_rows: dict[int, Row] = {}
        self._neighbours: dict[Pool, int] = {}

    # -- membership ----------------------------------------------------------------------------

    def offer(self, row: Row, change: int) -> None:
        """Take the row in if its node is admitted."""
        if not self.admits(row.node):
            return
        for other in self._neighbours:
            if row.rank in other.rows:
                self._share(other, 1)
        self.rows[row.rank] = row
        row.pools[self] = None
        book(self.total, ((name, max(0, n)) for name, n in row.free.items()))
        self.shifted = change
        self.rise(row, change)

    def withdraw(self, row: Row, change: int) -> None:
        """Let the row go; it must be in the pool."""
        del self.rows[row.rank]
        del row.pools[self]
        for other in self._neighbours:
            if row.rank in other.rows:
                self._share(other, -1)
        book(self.total, ((name, max(0, n)) for name, n in row.free.items()), -1)
        self._risen_rows.pop(row.rank, None)
        self.shifted = change

    def disband(self) -> None:
        """Let everything go: nobody asks this pool any more."""
        for row in self.rows.values():
            del row.pools[self]
        for other in self._neighbours:
            if other is not self:
                del other._neighbours[self]

    def shared(self, other: Pool) -> int:
        """How many nodes both pools hold."""
        if other is self:
            return len(self.rows)
        known = self._neighbours.get(other)
        if known is None:
            known = len(self.rows.keys() & other.rows.keys())
            self._neighbours[other] = other._neighbours[self] = known
        return known

    def neighbours(self) -> dict[Pool, int]:
        """The pools that this one was compared with, and the nodes shared with each."""
        return self._neighbours

    def _share(self, other: Pool, more: int) -> None:
        self._neighbours[other] += more
        other._neighbours[self] += more

    def largest(self) -> Books:
        """The most that any of the nodes offers of each resource."""
        at, found = self._largest
        if at != self.shifted:
            found = {}
            for row in self.rows.values():
                for name, n in row.node.allocatable:
                    found[name] = max(n, found.get(name, 0))
            self._largest = (self.shifted, found)
        return found

    # -- room ----------------------------------------------------------------------------------

    def rise(self, row: Row, change: int) -> None:
        """The row gained room. What falls needs no word: it only makes a tail a superset."""
        self.risen = change
        if not self._tails:
            return
        self._risen_rows[row.rank] = row
        if len(self._risen_rows) > RISEN_MAX:
            self._tails.clear()
            self._risen_rows.clear()

    def candidates(self, request: Resources) -> Iterator[Row]:
        """A superset of the nodes with room for such a pod, those with the least room first.

        It is the shortest of the tails that the request cuts off, after the few nodes that rose
        since it was sorted; so a node may come twice, and one that has left may still come (its
        books are empty then).
        """
        cut, best = -1, None
        for name, n in request:
            tail = self._tails.get(name)
            if tail is None:
                tail = self._sort(name)
            at = bisect_left(tail.amounts, n)
            if at > cut:
                cut, best = at, tail
        if best is None:
            return iter(list(self.rows.values()))
        return chain(list(self._risen_rows.values()), islice(best.rows, cut, None))

    def _sort(self, name: str) -> _Tail:
        tail = self._tails[name] = _Tail(name, self.rows)
        return tail


# -- several pools -------------------------------------------------------------------------------


def sum_of_pools(pools: Sequence[Pool]) -> Mapping[str, int] | None:
    """What is free on all nodes of the pools; None if they overlap in such a way that only adding
    up nodes would tell."""
    widest = _widest(pools)
    if len(widest) == 1:
        return widest[0].total
    if any(a.shared(b) for a, b in combinations(widest, 2)):
        return None
    sums: Books = {}
    for pool in widest:
        book(sums, pool.total.items())
    return sums


def rough_total(pools: Sequence[Pool]) -> Books:
    """At most what is free on all nodes of the pools."""
    sums: Books = {}
    for pool in pools:
        for name, n in pool.total.items():
            sums[name] = max(n, sums.get(name, 0))
    return sums


def joint_total(pools: Sequence[Pool]) -> Books:
    """What is free on all nodes of the pools, node by node: O(nodes)."""
    rows = {rank: row for pool in pools for rank, row in pool.rows.items()}
    sums: Books = {}
    for row in rows.values():
        book(sums, ((name, max(0, n)) for name, n in row.free.items()))
    return sums


def _widest(pools: Sequence[Pool]) -> list[Pool]:
    """The pools without those whose nodes are all in another of them."""
    widest: list[Pool] = []
    for pool in pools:
        if any(pool.shared(other) == len(pool.rows) for other in widest):
            continue
        widest = [other for other in widest if pool.shared(other) < len(other.rows)]
        widest.append(pool)
    return widest
