"""Which nodes each placement constraint admits: a row of bits per constraint in use.

The bits are computed once from the facts of all nodes, and after a change of a node from that node
alone; both by the rules of filters.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mcad.core.nodes.codes import Codes
from mcad.core.nodes.columns import Mask, Packed, grown
from mcad.core.nodes.filters import (
    admits,
    in_service,
    matches,
    repelling,
    takes_pods,
    tolerates,
)
from mcad.core.state.model import Constraint, Node, Requirement, Taint

NodeSet = int
"""Nodes as bits by row: intersection and overlap of two sets are one operation."""

READ_MAX = 64
"""Constraints whose rows are known as a mask, of a byte for each row, and as a set."""


class Facts(Packed):
    """The facts of every row that constraints read: its name, readiness, labels and taints.

    ``in_service`` are the rows that count where placement does not matter (``fit: aggregate``).
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._present: Mask = np.zeros(rows, np.bool_)
        self._ready: Mask = np.zeros(rows, np.bool_)
        self.in_service: Mask = np.zeros(rows, np.bool_)
        self._names: dict[str, int] = {}
        self._labels: dict[str, Codes[str]] = {}
        self._taints: Codes[tuple[Taint, ...]] = Codes(rows)

    def grow(self, rows: int) -> None:
        """Set the number of rows."""
        self._rows = rows
        self._present = grown(self._present, rows)
        self._ready = grown(self._ready, rows)
        self.in_service = grown(self.in_service, rows)
        self._taints.grow(rows)
        for codes in self._labels.values():
            codes.grow(rows)

    def enter(self, at: int, node: Node) -> None:
        """Enter the facts of a node in the row."""
        self._names[node.name] = at
        self._present[at] = True
        self._ready[at], self.in_service[at] = takes_pods(node), in_service(node)
        self._taints.set(at, repelling(node))
        for key, value in node.labels:
            codes = self._labels.get(key)
            if codes is None:
                codes = self._labels[key] = Codes(self._rows)
            codes.set(at, value)

    def leave(self, at: int, node: Node) -> None:
        """Clear the row, which had this node."""
        del self._names[node.name]
        self._present[at] = self._ready[at] = self.in_service[at] = False
        self._taints.set(at, None)
        for key, _ in node.labels:
            codes = self._labels.get(key)
            if codes is not None:
                codes.set(at, None)
                if not codes.values():
                    del self._labels[key]

    def label(self, key: str) -> Codes[str]:
        """The values of a label on all nodes, ready or not."""
        return self._labels.get(key) or Codes(self._rows)

    @property
    def ready(self) -> Mask:
        """The rows of ready nodes."""
        return self._ready

    @property
    def present(self) -> Mask:
        """The rows that have a node."""
        return self._present

    def admitting(self, constraint: Constraint) -> Mask:
        """The rows that the constraint admits, by ``filters.admits``."""
        return self._ready & self.tolerating(constraint) & self.selected(constraint)

    def tolerating(self, constraint: Constraint) -> Mask:
        """The rows without a taint that repels pods with this constraint."""
        return self._taints.where(partial(_tolerates_all, constraint))

    def taints_of(self, rows: Mask) -> set[Taint]:
        """The taints of the nodes in these rows."""
        codes = set(self._taints.of[rows].tolist())
        return {taint for code in codes for taint in self._taints.value(code) or ()}

    def selected(self, constraint: Constraint) -> Mask:
        """The rows that name, labels and affinity select, whatever their taints and readiness."""
        found = self._present.copy()
        if constraint.node_name:
            found &= self._named(constraint.node_name)
        for key, value in constraint.selector:
            found &= self.label(key).are_in((value,))
        if constraint.affinity is not None:
            found &= self._any_of(map(self._term, constraint.affinity))
        return found

    def _named(self, name: str) -> Mask:
        found = np.zeros(self._rows, np.bool_)
        if name in self._names:
            found[self._names[name]] = True
        return found

    def _any_of(self, masks: Iterable[Mask]) -> Mask:
        found = np.zeros(self._rows, np.bool_)
        for mask in masks:
            found |= mask
        return found

    def _term(self, term: tuple[Requirement, ...]) -> Mask:
        found = np.full(self._rows, bool(term))
        for one in term:
            found &= self._satisfying(one)
        return found

    def _satisfying(self, one: Requirement) -> Mask:
        if one.field:
            return self._of_field(one)
        codes = self.label(one.key)
        if one.operator == "In":  # of thousands of values, few are named
            return codes.are_in(one.values)
        if one.operator == "NotIn" and one.values:
            return ~codes.are_in(one.values)
        return codes.where(partial(matches, one))

    def _of_field(self, one: Requirement) -> Mask:
        """matchFields: one field with one value; anything else is an error, so no match."""
        if one.key != "metadata.name" or len(one.values) != 1:
            return np.zeros(self._rows, np.bool_)
        named = self._named(one.values[0])
        if one.operator == "NotIn":
            return ~named
        return named if one.operator == "In" else np.zeros(self._rows, np.bool_)


def _tolerates_all(constraint: Constraint, taints: tuple[Taint, ...] | None) -> bool:
    return taints is None or all(tolerates(constraint, taint) for taint in taints)


class Constraints(Packed):
    """The constraints in use, and the nodes that each admits. ``changes`` numbers the changes of
    nodes: facts derived from a row of bits hold until it changes. ``largest`` has, by number, a row
    to try first with a pod that is large.

    The last constraints that were read have their rows as a mask and as a set too, because each
    verdict reads both: without them it takes a quarter longer.
    """

    def __init__(self, facts: Facts, rows: int) -> None:
        self._facts = facts
        self._bits: NDArray[np.uint8] = np.zeros((0, rows // 8), np.uint8)
        self._used: dict[Constraint, int] = {}
        self._numbers: dict[Constraint, int] = {}
        self._unused: list[int] = []
        self.changes = 0
        self.largest: dict[int, int] = {}
        self._masks: dict[int, Mask] = {}
        self._sets: dict[int, NodeSet] = {}

    def hold(self, constraint: Constraint) -> int:
        """Hold the constraint and return its number, until each ``hold`` has its ``let_go``."""
        number = self._numbers.get(constraint)
        if number is None:
            if not self._unused:
                count = len(self._bits)
                self._bits = grown(self._bits, max(16, 2 * count))
                self._unused = list(range(len(self._bits) - 1, count - 1, -1))
            number = self._numbers[constraint] = self._unused.pop()
            self._used[constraint] = 0
            self._bits[number] = np.packbits(self._facts.admitting(constraint), bitorder="little")
        self._used[constraint] += 1
        return number

    def let_go(self, constraint: Constraint) -> None:
        """Drop one holder."""
        self._used[constraint] -= 1
        if not self._used[constraint]:
            del self._used[constraint]
            number = self._numbers.pop(constraint)
            for known in (self.largest, self._masks, self._sets):
                known.pop(number, None)
            self._bits[number] = 0
            self._unused.append(number)

    def grow(self, rows: int) -> None:
        """Set the number of rows."""
        longer = np.zeros((len(self._bits), rows // 8), np.uint8)
        longer[:, : self._bits.shape[1]] = self._bits
        self._bits = longer
        self._forget_rows()

    def enter(self, at: int, node: Node) -> None:
        """Enter a node that is new in the row, or has changed."""
        self.leave(at)  # forgets the rows
        bit = 1 << (at & 7)
        for constraint, number in self._numbers.items():
            if admits(node, constraint):
                self._bits[number, at >> 3] |= bit

    def leave(self, at: int) -> None:
        """Clear the row of a node that is gone."""
        self.changes += 1
        self._bits[:, at >> 3] &= 0xFF ^ (1 << (at & 7))
        self._forget_rows()

    def _forget_rows(self) -> None:
        self._masks.clear()
        self._sets.clear()

    def mask(self, number: int) -> Mask:
        """The rows that a constraint admits, for reading."""
        known = self._masks.get(number)
        if known is None:
            self._read(number)
            known = self._masks[number]
        return known

    def nodes(self, number: int) -> NodeSet:
        """The rows that a constraint admits, as a set."""
        known = self._sets.get(number)
        if known is None:
            self._read(number)
            known = self._sets[number]
        return known

    def _read(self, number: int) -> None:
        if len(self._masks) >= READ_MAX:
            self._forget_rows()
        bits = self._bits[number]
        mask = np.unpackbits(bits, bitorder="little").view(np.bool_)
        mask.flags.writeable = False
        self._masks[number], self._sets[number] = mask, int.from_bytes(bits.tobytes(), "little")

    def count(self, number: int) -> int:
        """How many rows a constraint admits."""
        return self.nodes(number).bit_count()

    def admits(self, number: int, at: int) -> bool:
        """Whether a constraint admits one row."""
        return bool(self._bits[number, at >> 3] >> (at & 7) & 1)

    def admitting(self, at: int) -> Mask:
        """By number, which constraints admit a row."""
        return ((self._bits[:, at >> 3] >> (at & 7)) & 1).view(np.bool_)

    def admitting_any(self, rows: Collection[int]) -> Mask:
        """By number, which constraints admit at least one of the rows."""
        found = np.zeros(self._bits.shape[1] * 8, np.bool_)
        found[list(rows)] = True
        packed = np.packbits(found, bitorder="little")
        there = np.flatnonzero(packed)
        admitting: Mask = np.any(self._bits[:, there] & packed[there], axis=1)
        return admitting

    def check(self) -> bool:
        """Whether each row of bits agrees with the facts. O(all)."""
        return all(
            bool((self.mask(number) == self._facts.admitting(constraint)).all())
            for constraint, number in self._numbers.items()
        )


def as_set(mask: Mask) -> NodeSet:
    """The rows of a mask as a set."""
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")
