"""Amounts of all nodes, a column of integers per resource: one verdict is a few vector operations.

A node is a row number inside; its name is known at the border only. Only the rooms that count room
(nodes, assumed, fit, snapshot) know the columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mcad.core.nodes.resources import Books
from mcad.core.state.model import Resources

Amounts = NDArray[np.int64]
"""One number per row."""

Mask = NDArray[np.bool_]
"""A selection of rows."""

Entry = TypeVar("Entry", bound=np.generic)

AMOUNT_MAX = 1 << 50
"""The largest amount of a node: larger amounts count as this, and a pod that asks for more counts
with one unit more than this, so that few sums leave 64 bits."""

SUM_MAX = (1 << 63) - 1
"""The largest sum of amounts that an array can hold."""

_ROWS_SURE = SUM_MAX // AMOUNT_MAX  # the largest number of rows whose sum surely fits

UNBOUNDED = 1 << 62
"""Slots of a pod that takes nothing. Every request has ``pods``, so no pod has this many."""

ROWS_MIN = 64


class Packed:
    """Arrays as bytes in a journal's snapshot, which does not know numpy."""

    def __getstate__(self) -> dict[str, object]:
        return {name: _pack(value) for name, value in self.__dict__.items()}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update({name: _unpack(value) for name, value in state.items()})


_ARRAY = "an array"


def _pack(value: object) -> object:
    if isinstance(value, np.ndarray):
        return (_ARRAY, value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, dict) and any(isinstance(one, np.ndarray) for one in value.values()):
        return {key: _pack(one) for key, one in value.items()}
    return value


def _unpack(value: object) -> object:
    if isinstance(value, tuple) and value[:1] == (_ARRAY,):
        _, kind, shape, content = value
        return np.frombuffer(content, kind).reshape(shape).copy()
    if isinstance(value, dict):
        return {key: _unpack(one) for key, one in value.items()}
    return value


def grown(array: NDArray[Entry], rows: int) -> NDArray[Entry]:
    """The array with this number of rows; new rows are zero."""
    longer: NDArray[Entry] = np.zeros((rows, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


class Slots(NamedTuple):
    """How many pods (at least one) fit into which rows, in the order of the rows; and the free
    amount there of the resource that is scarcest for the pods."""

    rows: NDArray[np.int64]
    pods: Amounts
    free: Amounts

    @property
    def total(self) -> int:
        """The slots on all rows."""
        return int(self.pods.sum())

    def among(self, rows: Mask) -> Slots:
        """The slots on these rows alone."""
        kept = rows[self.rows]
        return Slots(self.rows[kept], self.pods[kept], self.free[kept])

    def pairs(self) -> Iterator[tuple[int, int]]:
        """(row, pods) as plain integers."""
        return zip(self.rows.tolist(), self.pods.tolist(), strict=True)


class Columns(Packed):
    """Amounts by row and resource, below zero where more is taken than there is. A resource without
    a column is 0 in all of the ``rows``."""

    def __init__(self, rows: int = ROWS_MIN) -> None:
        self.rows = rows
        self._columns: dict[str, Amounts] = {}

    def names(self) -> list[str]:
        """The resources that have a column."""
        return list(self._columns)

    def column(self, name: str) -> Amounts:
        """The column of a resource itself, for reading."""
        found = self._columns.get(name)
        return np.zeros(self.rows, np.int64) if found is None else found

    def fill(self, name: str, n: int, rows: Mask) -> None:
        """Set the amount of a resource on each of these rows."""
        self.opened(name)[rows] = n

    def drop(self, name: str) -> None:
        """Forget a resource."""
        self._columns.pop(name, None)

    def grow(self, rows: int) -> None:
        """Set the number of rows."""
        self.rows = rows
        for name, column in self._columns.items():
            self._columns[name] = grown(column, rows)

    def copy(self, names: Iterable[str]) -> Columns:
        """A copy of the columns of these resources, for changes."""
        copied = Columns(self.rows)
        copied._columns = {name: self.column(name).copy() for name in names}
        return copied

    def opened(self, name: str) -> Amounts:
        """The column of a resource, for changes."""
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = np.zeros(self.rows, np.int64)
        return column

    # -- one row -------------------------------------------------------------------------------

    def get(self, at: int, name: str) -> int:
        """The amount of one resource in one row."""
        column = self._columns.get(name)
        return int(column[at]) if column is not None else 0

    def row(self, at: int) -> Books:
        """All amounts of one row."""
        return {name: int(column[at]) for name, column in self._columns.items()}

    def set(self, at: int, amounts: Books) -> None:
        """Replace all amounts of one row."""
        for column in self._columns.values():
            column[at] = 0
        for name, n in amounts.items():
            self.opened(name)[at] = n

    def add(self, at: int, amounts: Iterable[tuple[str, int]], times: int) -> None:
        """Add ``times`` the amounts to one row."""
        for name, n in amounts:
            self.opened(name)[at] += n * times

    def slots_at(self, at: int, request: Resources, cap: int = UNBOUNDED) -> int:
        """How many such pods fit into one row, at most ``cap``."""
        for name, n in request:
            column = self._columns.get(name)
            cap = min(cap, int(column[at]) // n if column is not None else 0)
            if cap <= 0:
                return 0
        return cap

    # -- all rows ------------------------------------------------------------------------------

    def slots(self, request: Resources, cap: int, among: Mask) -> Slots:
        """How many such pods fit into each of these rows, at most ``cap``. The request names the
        scarcest resource first. The division is one of integers, so it is exact. Most rows of a
        full cluster have no room, so a cheaper comparison comes first."""
        asked = [(self.column(name), n) for name, n in request]
        fits = among
        for column, n in asked:
            fits = fits & (column >= n)
        rows = fits.nonzero()[0]
        if not len(rows):
            return Slots(rows, rows, rows)
        (scarcest, n), *others = asked
        free = scarcest[rows]
        pods = free // n
        for column, m in others:
            np.minimum(pods, column[rows] // m, out=pods)
        return Slots(rows, np.minimum(pods, cap, out=pods) if cap < UNBOUNDED else pods, free)

    def to_lend(self, name: str, rows: Mask) -> int:
        """The sum of a resource on these rows; a row below zero counts as empty."""
        column = self._columns.get(name)
        if column is None:
            return 0
        lent = np.maximum(column, 0)
        if self.rows >= _ROWS_SURE and int(lent.max()) > SUM_MAX // self.rows:
            return sum(lent[rows].tolist())
        return int(np.dot(lent, rows))


def take_slots(slots: Slots, pods: int, *, most_first: bool) -> Slots:
    """Take this many slots, or all, from the rows with the fewest (most) slots first. Of equal rows
    the row with the least free amount comes first, so that large gaps stay (best fit). Each row has
    a slot, so as many rows as slots suffice."""
    order = _first_in_order(slots, pods, most_first=most_first)
    here = slots.pods[order]
    taken = here.cumsum()
    upto = int(taken.searchsorted(pods)) + 1
    here = here[:upto]
    if len(here) and (over := int(taken[len(here) - 1]) - pods) > 0:
        here[-1] -= over
    order = order[:upto]
    return Slots(slots.rows[order], here, slots.free[order])


_ROW_BITS, _FREE_BITS = 17, 30
_PODS_MAX = (1 << 15) - 1  # the rest of 62 bits


def _first_in_order(slots: Slots, count: int, *, most_first: bool) -> NDArray[np.int64]:
    """The first rows, at least ``count``, in the order of slots, then of free amount, then of
    number. All three are one integer: sorting integers takes a tenth of the time."""
    pods, rows = slots.pods, len(slots.pods)
    if rows <= 1:
        return np.arange(rows)
    if rows > 1 << _ROW_BITS or np.maximum.reduce(pods) > _PODS_MAX:
        return np.lexsort((slots.free, -pods if most_first else pods))
    too_long = int(np.maximum.reduce(slots.free)).bit_length() - _FREE_BITS
    keys = (_PODS_MAX - pods if most_first else pods) << _FREE_BITS
    keys = (keys | (slots.free >> too_long if too_long > 0 else slots.free)) << _ROW_BITS
    keys |= np.arange(rows)
    if 0 < count < rows:
        keys.partition(count - 1)
        keys = keys[:count]
    keys.sort()
    return keys & ((1 << _ROW_BITS) - 1)


def counted(n: int) -> int:
    """The amount that a request counts with: more than any node has becomes barely too much."""
    return n if n <= AMOUNT_MAX else AMOUNT_MAX + 1


def offered(n: int) -> int:
    """The amount that a node counts with."""
    return n if n <= AMOUNT_MAX else AMOUNT_MAX


def slots(free: Books, request: Resources, cap: int = UNBOUNDED) -> int:
    """How many such pods fit into the free amounts, at most ``cap``."""
    for name, n in request:
        cap = min(cap, free.get(name, 0) // n)
        if cap <= 0:
            return 0
    return cap
