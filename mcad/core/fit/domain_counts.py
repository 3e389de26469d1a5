"""How many slots there are in a topology domain, counted without a pool per domain.

A verdict on a gang with topology needs a pool only for the domains that may have room. Two counts
name these: of amounts, which all gangs share (nodes/domain_sums.py), and of the slots for one pod
class. The latter is made for the domains that are asked about, and again for those with a node that
changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.pod_signature import PodClass, slots
from mcad.core.nodes.sorted_nodes import with_at_least
from mcad.core.state.model import Resources

ONCE = 1_000_000
"""The room for a demand, in millionths of it, where it is there exactly once."""


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

    def with_room(self) -> Collection[str] | None:
        """The domains that may have a slot, if the class knows of every node with room; else
        None."""
        rows = None if self._emptied else self._pods.rows_with_room()
        if rows is None:
            return None
        return {value for row in rows for key, value in row.node.labels if key == self._level}

    def counts_truly(self) -> bool:
        """Whether it is as if it had counted now. This changes nothing."""
        copied = DomainSlots(self._ledger, self._pods, self._level, emptied=self._emptied)
        copied._seen, copied._counts = self._seen, dict(self._counts)
        return all(copied.of(value) == self._count(value) for value in self._counts)

    def _count(self, value: str) -> int:
        among, request, cap = self._pods.pool.rows, self._pods.request, self._pods.cap
        rows = [row for row in self._ledger.with_label((self._level, value)) if row.rank in among]
        if self._emptied:
            return sum(slots(row.idle, request, cap) for row in rows)
        return sum(slots(row.free, request, cap) for row in with_at_least(rows, *request[0]))


def room(sums: Mapping[str, int], demand: Resources) -> int:
    """How often the demand is there, as a multiple of ``ONCE``: of the scarcest resource."""
    return min([sums.get(name, 0) * ONCE // n for name, n in demand])
