"""What is free in each topology domain, counted without a pool per domain.

A verdict on a gang with topology needs a pool only for the domains that may have room. Two counts
name these: of amounts, which all gangs share, and of the slots for one pod class.
Both count again only the domains with a node that changed.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.pod_signature import PodClass, slots
from mcad.core.nodes.resources import Books
from mcad.core.state.model import Resources

_MILLION = 1_000_000


class DomainSums:
    """What is free on the nodes of each domain of a level in sum, at most: also on nodes that do
    not admit the pods in question. ``emptied``: as if every AppWrapper had left. ``looked``
    counts the nodes it looked at so far."""

    def __init__(self, ledger: Ledger, level: str, *, emptied: bool) -> None:
        self.looked = 0
        self._ledger = ledger
        self._level = level
        self._emptied = emptied
        self._seen = -1
        self._sums: dict[str, Books] = {}

    def copy(self) -> DomainSums:
        """The same for a question, which adds nothing to what is remembered."""
        copied = DomainSums(self._ledger, self._level, emptied=self._emptied)
        copied._seen, copied._sums = self._seen, dict(self._sums)
        return copied

    def sums(self) -> Mapping[str, Books]:
        """By the value of the label; they are looked at and not changed."""
        now = self._ledger.log.now
        if self._seen != now:
            changed = self._ledger.values_changed(self._level, self._seen)
            if changed is None:
                self._sums.clear()
            for value in self._ledger.values_of(self._level) if changed is None else changed:
                self._count(value)
            self._seen = now
        return self._sums

    def counts_truly(self) -> bool:
        """Whether it is as if it had counted now. This changes nothing."""
        fresh = DomainSums(self._ledger, self._level, emptied=self._emptied)
        return self.copy().sums() == fresh.sums()

    def _count(self, value: str) -> None:
        rows = self._ledger.with_label((self._level, value))
        if not rows:
            self._sums.pop(value, None)
            return
        self.looked += len(rows)
        sums: Books = {}
        for row in rows:
            if row.node.ready:
                for name, n in (row.idle if self._emptied else row.free).items():
                    if n > 0:
                        sums[name] = sums.get(name, 0) + n
        self._sums[value] = sums


class DomainSlots:
    """How many pods of one class have slots in the domains of a level that were asked about.
    ``looked`` counts the nodes it looked at so far."""

    def __init__(self, ledger: Ledger, pods: PodClass, level: str, *, emptied: bool) -> None:
        self.looked = 0
        self._ledger = ledger
        self._pods = pods
        self._level = level
        self._emptied = emptied
        self._seen = -1
        self._counts: dict[str, int] = {}

    def of(self, value: str) -> int:
        """Exactly how many; pods and reservations without a node are not looked at."""
        now = self._ledger.log.now
        if self._seen != now:
            changed = self._ledger.values_changed(self._level, self._seen)
            if changed is None:
                self._counts.clear()
            for each in changed or ():
                self._counts.pop(each, None)
            self._seen = now
        count = self._counts.get(value)
        if count is None:
            count = self._counts[value] = self._count(value)
            self.looked += len(self._ledger.with_label((self._level, value)))
        return count

    def counts_truly(self) -> bool:
        """Whether it is as if it had counted now. This changes nothing."""
        copied = DomainSlots(self._ledger, self._pods, self._level, emptied=self._emptied)
        copied._seen, copied._counts = self._seen, dict(self._counts)
        return all(copied.of(value) == self._count(value) for value in self._counts)

    def _count(self, value: str) -> int:
        among, request, cap = self._pods.pool.rows, self._pods.request, self._pods.cap
        rows = [row for row in self._ledger.with_label((self._level, value)) if row.rank in among]
        return sum(slots(row.idle if self._emptied else row.free, request, cap) for row in rows)


def covers(sums: Mapping[str, int], demand: Resources) -> bool:
    """Whether the amounts are enough in sum."""
    return all(sums.get(name, 0) >= n for name, n in demand)


def room(sums: Mapping[str, int], demand: Resources) -> int:
    """How often the demand is there, in millionths: of the scarcest resource."""
    return min(sums.get(name, 0) * _MILLION // n for name, n in demand)
