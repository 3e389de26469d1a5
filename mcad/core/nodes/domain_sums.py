"""What is free in each topology domain of a level, kept in step with the books as a pool's sum is.

A verdict on a gang with topology compares the sums of all domains. Counting them is a look at every
node, which is done once for a level and not in the first verdict of each cycle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from mcad.core.nodes.resources import Books, book
from mcad.core.state.model import Resources

if TYPE_CHECKING:
    from mcad.core.nodes.pools import Row

_NOTHING: Books = {}


class DomainSums:
    """By the value of a label, what is free in sum on the ready nodes that have it: also on nodes
    that do not admit the pods in question. ``emptied``: as if every AppWrapper had left."""

    def __init__(self, level: str, rows: Iterable[Row], *, emptied: bool) -> None:
        self.level = level
        self.emptied = emptied
        self._sums: dict[str, Books] = {}
        self._nodes: dict[str, int] = {}
        for row in rows:
            self._add(row)

    def of(self, value: str) -> Mapping[str, int]:
        """Of one domain; nothing if no ready node has the value."""
        return self._sums.get(value, _NOTHING)

    def values(self) -> Collection[str]:
        """The domains that have a ready node."""
        return self._sums.keys()

    def follow(self, row: Row) -> None:
        """From now on the sums change with the books of this row, which is counted already."""
        value = self._value(row)
        if value is not None:
            (row.idle_sums if self.emptied else row.sums).append(self._sums[value])

    def join(self, row: Row) -> None:
        """A node appeared."""
        self._add(row)
        self.follow(row)

    def leave(self, row: Row) -> None:
        """A node is going; its books are still there."""
        value = self._value(row)
        if value is None:
            return
        self._nodes[value] -= 1
        if self._nodes[value]:
            book(self._sums[value], self._lent(row), -1)
        else:
            del self._sums[value], self._nodes[value]

    def amounts(self) -> dict[str, dict[str, int]]:
        """All of them, without zeros."""
        return {
            value: {name: n for name, n in sums.items() if n} for value, sums in self._sums.items()
        }

    def _add(self, row: Row) -> None:
        value = self._value(row)
        if value is not None:
            book(self._sums.setdefault(value, {}), self._lent(row))
            self._nodes[value] = self._nodes.get(value, 0) + 1

    def _value(self, row: Row) -> str | None:
        """The domain of a node, None if it is in none."""
        labels = row.node.labels if row.node.ready else ()
        return next((value for key, value in labels if key == self.level), None)

    def _lent(self, row: Row) -> Iterable[tuple[str, int]]:
        """What the node lends: nothing of what is overcommitted."""
        free = row.idle if self.emptied else row.free
        return [(name, n) for name, n in free.items() if n > 0]


def follow_idle(row: Row, amounts: Resources, times: int) -> None:
    """So much is taken of what is idle on a node."""
    for name, n in amounts:
        before = row.idle.get(name, 0)
        change = max(0, before - n * times) - max(0, before)
        for sums in row.idle_sums if change else ():
            sums[name] = sums.get(name, 0) + change
