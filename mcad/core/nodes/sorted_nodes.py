"""The nodes of a pool sorted by what is free of a resource, so that a search looks at few.

Sorting is dear and most changes matter to none, so a sorted tail is kept for as long as it is of
use. A node that fell is passed over where it stood; one that rose is entered where it belongs now.
When searches have passed over so many that sorting again would have been cheaper, it is done.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from mcad.core.nodes.resources import PODS
from mcad.core.state.model import Resources
from mcad.core.state.work_bounds import (
    ESTIMATED,
    FALLEN_PER_NODE,
    RISEN_SHARE,
    SAMPLED,
    TAIL_SHORT,
)

if TYPE_CHECKING:
    from mcad.core.nodes.pools import Row


def with_at_least(rows: list[Row], resource: str, n: int) -> list[Row]:
    """The rows with so much of the resource free."""
    try:
        return [row for row in rows if row.free[resource] >= n]
    except KeyError:  # some node knows nothing of it: twice as slow, so only then
        return [row for row in rows if row.free.get(resource, 0) >= n]


def _free_of(rows: list[Row], resource: str) -> list[int]:
    try:
        return [row.free[resource] for row in rows]
    except KeyError:
        return [row.free.get(resource, 0) for row in rows]


class Tail:
    """All nodes by what was free of one resource when they were sorted; never changed.

    Those that rose since are in it a second time, up to the rise that ``known`` numbers.
    """

    __slots__ = ("amounts", "known", "resource", "rows")

    def __init__(self, resource: str, rows: list[Row], amounts: list[int], known: int) -> None:
        self.resource = resource
        self.rows = rows
        self.amounts = amounts
        self.known = known

    @classmethod
    def of(cls, resource: str, rows: list[Row], known: int) -> Tail:
        """The rows, sorted."""
        free = _free_of(rows, resource)
        order = sorted(range(len(rows)), key=free.__getitem__)
        return cls(resource, [rows[i] for i in order], [free[i] for i in order], known)

    def with_risen(self, risen: Iterable[Row], known: int) -> Tail:
        """A copy with these besides, each where it belongs now."""
        tail = Tail(self.resource, self.rows.copy(), self.amounts.copy(), known)
        for row in risen:
            free = row.free.get(self.resource, 0)
            at = bisect_left(tail.amounts, free)
            tail.amounts.insert(at, free)
            tail.rows.insert(at, row)
        return tail


class Cut(NamedTuple):
    """Where the nodes of a tail begin that may have ``n`` of its resource."""

    tail: Tail
    at: int
    n: int

    @property
    def left(self) -> int:
        """How many nodes that are."""
        return len(self.tail.rows) - self.at


class Tails:
    """The tails of one pool, made when they are asked for. ``rows`` are the pool's own."""

    __slots__ = ("_fallen", "_risen", "_rows", "_tails")

    def __init__(self, rows: dict[int, Row]) -> None:
        self._rows = rows
        self._drop()

    def _drop(self) -> None:
        self._tails: dict[str, Tail] = {}
        self._risen: list[Row] = []
        self._fallen = 0

    def rise(self, row: Row) -> None:
        """The node gained room. What falls needs no word: it makes a tail a superset."""
        if self._tails:
            self._risen.append(row)
            if len(self._risen) > len(self._rows):
                self._drop()

    def cut(self, request: Resources) -> Cut:
        """The shortest of the tails that the request cuts off, or the first short one: sorting
        is dear, so resources that only some nodes have come first, ``pods`` never if there is
        anything else, and others only if a sample of the nodes says that it makes a shorter tail.
        """
        if self._fallen > FALLEN_PER_NODE * len(self._rows):
            self._drop()
        best = self._cut(*request[0])
        for name, n in request[1:]:
            if best.left <= TAIL_SHORT:
                break
            if name != PODS and (name in self._tails or self._estimate(name, n) < best.left):
                best = min(best, self._cut(name, n), key=lambda cut: cut.left)
        return best

    def _estimate(self, name: str, n: int) -> int:
        """About how many nodes have so much free of a resource."""
        sample = list(islice(self._rows.values(), 0, None, ESTIMATED))
        return ESTIMATED * len(with_at_least(sample, name, n))

    def _cut(self, name: str, n: int) -> Cut:
        tail = self._tail(name)
        return Cut(tail, bisect_left(tail.amounts, n), n)

    def is_current(self, cut: Cut) -> bool:
        """Whether nothing rose since the cut was made, and its tail is still in use."""
        tail = cut.tail
        return self._tails.get(tail.resource) is tail and tail.known == len(self._risen)

    def after(self, cut: Cut, length: int) -> list[Row]:
        """The next nodes from the cut on; some may have fallen."""
        rows = cut.tail.rows[cut.at : cut.at + length]
        sample = rows[::SAMPLED]
        fallen = len(sample) - len(with_at_least(sample, cut.tail.resource, cut.n))
        self._fallen += fallen * SAMPLED
        return rows

    def _tail(self, name: str) -> Tail:
        tail, known = self._tails.get(name), len(self._risen)
        if tail is not None and tail.known == known:
            return tail
        if tail is None or known - tail.known > len(self._rows) // RISEN_SHARE:
            tail = Tail.of(name, list(self._rows.values()), known)
        else:
            tail = tail.with_risen(dict.fromkeys(self._risen[tail.known :]), known)
        self._tails[name] = tail
        return tail
