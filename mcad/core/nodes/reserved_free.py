"""What is free on reserved nodes, reservations aside: offered to AppWrappers that may pass a
reservation."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from mcad.core.nodes.pod_signature import PodClass, slots
from mcad.core.nodes.pools import Row
from mcad.core.nodes.resources import Books, book


class Spare:
    """Reserved nodes on which something is free, as they were when it was created.

    Most pods find no slot there, and many classes of pods ask: so the nodes are sorted once per
    resource, those with most of it first, and nodes with too little are not looked at.
    """

    __slots__ = ("_by_resource", "_rows", "_total")

    def __init__(self, rows: Iterable[Row]) -> None:
        """Select the reserved nodes with free room from the rows."""
        reserved = (row for row in rows if row.reserved and row.has_room)
        self._rows = [(row, {name: row.unreserved(name) for name in row.free}) for row in reserved]
        self._by_resource: dict[str, list[tuple[Row, Books]]] = {}
        self._total: Books | None = None

    def __bool__(self) -> bool:
        return bool(self._rows)

    def again(self) -> Spare:
        """The same nodes as they are now."""
        return Spare(row for row, _ in self._rows)

    def total(self) -> Mapping[str, int]:
        """The sum of what is free on all of them."""
        if self._total is None:
            self._total = {}
            for _, free in self._rows:
                book(self._total, ((name, max(0, n)) for name, n in free.items()))
        return self._total

    def is_of(self, reserved_for: Container[str]) -> bool:
        """Whether one of the nodes is reserved for one of these (uids)."""
        return any(row.reserved_for in reserved_for for row, _ in self._rows)

    def slots(self, pods: PodClass, most: int) -> int:
        """How many pods of the class fit, counted up to ``most``."""
        resource, n = pods.request[0]
        line = self._by_resource.get(resource)
        if line is None:
            line = self._by_resource[resource] = self._with_most(resource)
        found = 0
        for row, free in line:
            if found >= most or free.get(resource, 0) < n:
                break
            if row.rank in pods.pool.rows:
                found += slots(free, pods.request, pods.cap)
        return found

    def _with_most(self, resource: str) -> list[tuple[Row, Books]]:
        return sorted(self._rows, key=lambda one: -one[1].get(resource, 0))
