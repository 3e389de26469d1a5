"""Pod classes: pods that are equal for kube-scheduler share one count of slots (core rule R1).

For identical pods the sum of slots over the nodes is exact, because every constraint is per node.
The books keep an upper bound of that sum per class: a fall of free room changes no bound, and a
rise adds its gain to all bounds at once. So a refused gang needs a look only when the bounds of its
parts suffice.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from mcad.core.nodes.columns import UNBOUNDED, Amounts, Columns, Mask, Packed, Slots, grown
from mcad.core.nodes.constraints import NodeSet
from mcad.core.nodes.ledger import Ledger, Row
from mcad.core.nodes.resources import PODS, Books
from mcad.core.nodes.shape import ClassKey
from mcad.core.state.model import Resources
from mcad.core.state.quantity import CPU, EPHEMERAL_STORAGE, MEMORY
from mcad.core.state.work_bounds import CONSTRAINTS_SUMMED_MAX, RISES_MAX

_PLENTIFUL = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
"""Every node has these. A resource that only some nodes have shows soonest that room is missing."""


def _scarcest_first(amount: tuple[str, int]) -> tuple[int, str]:
    name = amount[0]
    return (_PLENTIFUL.index(name) if name in _PLENTIFUL else -1, name)


class PodClass:
    """Pods of one key in one capacity, and where they may go. ``at`` is the place of their bound,
    ``holders`` counts the holders of the class."""

    def __init__(self, key: ClassKey, ledger: Ledger, at: int) -> None:
        self.key = key
        self.at = at
        self.holders = 0
        taken = ((name, n) for name, n in key.request if n > 0)
        self.request: Resources = tuple(sorted(taken, key=_scarcest_first))
        self.cap = key.cap or UNBOUNDED
        self.constraint = ledger.constraints.hold(key.constraint)
        self.ledger = ledger

    def retire(self) -> None:
        """Release the constraint: the class has no holder any more."""
        self.ledger.constraints.let_go(self.key.constraint)

    @property
    def mask(self) -> Mask:
        """The rows that admit its pods."""
        return self.ledger.constraints.mask(self.constraint)

    @property
    def nodes(self) -> NodeSet:
        """The rows that admit its pods, as a set."""
        return self.ledger.constraints.nodes(self.constraint)

    @property
    def count(self) -> int:
        """How many nodes admit its pods."""
        return self.ledger.constraints.count(self.constraint)

    def admitted_by(self, row: Row) -> bool:
        """Whether its pods may go to the node."""
        return self.ledger.constraints.admits(self.constraint, row.at)

    def fits_whole(self) -> bool:
        """Whether an empty node could take one of its pods. The node that took the largest pod with
        this constraint is tried first."""
        constraints, whole = self.ledger.constraints, self.ledger.whole
        largest = constraints.largest.get(self.constraint, 0)
        if constraints.admits(self.constraint, largest) and whole.slots_at(largest, self.request):
            return True
        rows = self.slots(whole).rows
        if len(rows):
            constraints.largest[self.constraint] = int(rows[0])
        return bool(len(rows))

    def slots_on(self, row: Row) -> int:
        """How many pods fit on a node that admits the class."""
        return self.ledger.free.slots_at(row.at, self.request, self.cap)

    def slots(self, columns: Columns, usable: Mask | None = None) -> Slots:
        """How many pods fit by these columns on each admitting node that is ``usable``."""
        mask = self.mask
        return columns.slots(self.request, self.cap, mask if usable is None else mask & usable)


Places = NDArray[np.int64]
"""Classes, by the places of their bounds."""


class Bounds(Packed):
    """At most how many pods of each class in use have slots, by the place of the class; and the
    change at which a node that admits the class last gained room for a pod (``risen``), or came
    (``joined``). ``seen`` is the last change that the bounds include."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.seen = 0
        self.risen: NDArray[np.int64] = np.zeros(0, np.int64)
        self.joined: NDArray[np.int64] = np.zeros(0, np.int64)
        self._bound: NDArray[np.float64] = np.zeros(0)
        self._caps: NDArray[np.float64] = np.zeros(0)
        self._constraints: NDArray[np.int64] = np.zeros(0, np.int64)
        self._needs: dict[str, NDArray[np.float64]] = {}
        self._vacant: list[int] = []

    def __getitem__(self, pods: PodClass) -> float:
        return float(self._bound[pods.at])

    def __setitem__(self, pods: PodClass, slots: int) -> None:
        """Set the bound of a class whose slots were just counted."""
        self._bound[pods.at] = slots

    @property
    def all(self) -> NDArray[np.float64]:
        """The bounds of all classes by their places, for reading."""
        return self._bound

    def place(self) -> int:
        """A place for a new class."""
        if not self._vacant:
            self._grow()
        return self._vacant.pop()

    def _grow(self) -> None:
        before = len(self._bound)
        size = max(64, before * 2)
        self._bound = grown(self._bound, size)
        self.risen = grown(self.risen, size)
        self.joined = grown(self.joined, size)
        self._caps = grown(self._caps, size)
        self._constraints = grown(self._constraints, size)
        for name, needs in self._needs.items():
            self._needs[name] = grown(needs, size)
        self._vacant = list(range(size - 1, before - 1, -1))

    def enter(self, pods: PodClass) -> None:
        """Enter a class without a known bound."""
        at = pods.at
        self._bound[at], self._caps[at] = np.inf, pods.cap
        self.risen[at] = self.joined[at] = self._ledger.now
        self._constraints[at] = pods.constraint
        for name, n in pods.request:
            if name not in self._needs:
                self._needs[name] = np.zeros(len(self._bound))
            self._needs[name][at] = n

    def leave(self, pods: PodClass) -> None:
        """Clear the place of a class that is not in use any more."""
        at = pods.at
        self._bound[at] = self._caps[at] = 0
        for name, _ in pods.request:
            self._needs[name][at] = 0
            if not self._needs[name].any():  # resource names come and go
                del self._needs[name]
        self._vacant.append(at)

    @property
    def has_news(self) -> bool:
        """Whether anything rose since the last ``catch_up``."""
        return bool(self._ledger.rose or self._ledger.came) or self._ledger.is_eased

    def catch_up(self) -> None:
        """Add the gains since the last call."""
        ledger = self._ledger
        if not self.has_news:
            return
        rose, ledger.rose = ledger.rose, {}
        came, ledger.came = ledger.came, set()
        self.seen = ledger.now
        if ledger.is_eased:
            ledger.is_eased = False
            self.risen[:] = self.seen
        if came:
            self.joined[ledger.constraints.admitting_any(came)[self._constraints]] = self.seen
        if len(rose) > RISES_MAX:
            self._estimate()
            self.risen[:] = self.seen
            return
        for at, before in rose.items():
            now = ledger.free.row(at)
            classes = self._fitting(now, ledger.constraints.admitting(at)[self._constraints])
            self.risen[classes] = self.seen
            if before and len(classes):
                gain = self._slots(now, classes) - self._slots({**now, **before}, classes)
                self._bound[classes] += np.maximum(gain, 0)

    def _fitting(self, free: Books, among: Mask) -> Places:
        """The classes whose pods fit into these amounts; comparing is cheaper than dividing."""
        for name, needs in self._needs.items():
            among &= needs <= max(0, free.get(name, 0))
        return np.flatnonzero(among)

    def latest(self, classes: Iterable[PodClass]) -> int:
        """The change at which a node last gained room for a pod of one of these classes."""
        self.catch_up()
        return max((int(self.risen[pods.at]) for pods in classes), default=0)

    def _slots(self, free: Books, classes: Places) -> NDArray[np.float64]:
        """How many pods of these classes fit into these amounts. The amounts are floats below 2^53,
        so no quotient is rounded up to the next integer."""
        found = self._caps[classes]
        with np.errstate(divide="ignore", invalid="ignore"):  # absent requests bound nothing
            for name, needs in self._needs.items():
                there = max(0, free.get(name, 0))
                np.fmin(found, np.floor(there / needs[classes]), out=found)
        return found

    def _estimate(self) -> None:
        """Set all bounds by the nodes that have enough of a resource for one pod: by how many they
        are, and by the sum of what they have."""
        self._bound[:] = np.inf
        numbers = np.unique(self._constraints[self._caps > 0]).tolist()
        if len(numbers) > CONSTRAINTS_SUMMED_MAX:
            return
        places = [np.flatnonzero(self._constraints == number) for number in numbers]
        for name, needs in self._needs.items():
            free = np.maximum(self._ledger.free.column(name), 0)
            order = np.argsort(free)
            for number, at in zip(numbers, places, strict=True):
                rising = free[order[self._ledger.constraints.mask(number)[order]]]
                most = _most(rising, needs[at], self._caps[at])
                self._bound[at] = np.fmin(self._bound[at], most)


def _most(
    rising: Amounts, needs: NDArray[np.float64], caps: NDArray[np.float64]
) -> NDArray[np.float64]:
    """At most how many pods have enough of one resource on nodes with these free amounts, by what
    each pod needs. A sum above 2^53 is rounded, so a billionth is added."""
    above = np.append(np.cumsum(rising[::-1], dtype=np.float64)[::-1], 0.0)
    at = np.searchsorted(rising, needs)
    with np.errstate(divide="ignore", invalid="ignore"):  # a pod that needs none has no bound here
        by_sum = np.floor(above[at] / needs * (1 + 1e-9))
    return np.fmin(by_sum, (len(rising) - at) * caps)
