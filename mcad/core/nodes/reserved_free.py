"""What is free on reserved nodes, reservations aside: room for AppWrappers that may pass a
reservation."""

from __future__ import annotations

from collections.abc import Container, Iterable

from mcad.core.nodes.columns import Columns, Mask, Packed
from mcad.core.nodes.ledger import Row
from mcad.core.nodes.pod_class import PodClass


class Spare(Packed):
    """Reserved nodes with something free, as of its creation."""

    def __init__(self, rows: Iterable[Row]) -> None:
        """Select the reserved nodes with free room from the rows."""
        self._rows = [row for row in rows if row.reserved and row.has_room]
        self._columns = Columns()
        self._mask: Mask | None = None
        if self._rows:
            ledger = self._rows[0].ledger
            self._columns = ledger.free.copy(ledger.free.names())
            self._mask = ledger.nothing()
            for row in self._rows:
                self._mask[row.at] = True
                self._columns.add(row.at, row.reserved.items(), 1)

    def __bool__(self) -> bool:
        return bool(self._rows)

    def again(self) -> Spare:
        """The same nodes as they are now."""
        return Spare(self._rows)

    def total(self, name: str) -> int:
        """The sum of a resource that is free on all these nodes."""
        return 0 if self._mask is None else self._columns.to_lend(name, self._mask)

    def is_of(self, reserved_for: Container[str]) -> bool:
        """Whether one of the nodes is reserved for one of these (uids)."""
        return any(row.reserved_for in reserved_for for row in self._rows)

    def slots(self, pods: PodClass) -> int:
        """How many pods of the class fit on these nodes."""
        return 0 if self._mask is None else pods.slots(self._columns, self._mask).total
