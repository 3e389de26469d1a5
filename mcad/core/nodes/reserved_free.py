"""What is free on nodes in reservations, reservations aside: what those that may pass a reservation
are offered."""

from __future__ import annotations

from collections.abc import Container, Iterable

from mcad.core.nodes.pod_signature import PodClass, slots
from mcad.core.nodes.pools import Row
from mcad.core.nodes.resources import Books, book


class Spare:
    """Nodes in reservations on which something is free, as they were when it was made.

    Most pods find no slot there, and many classes of pods ask: so for each resource the nodes are
    sorted once, those with most of it first, and one that has too little is not looked at.
    """

    __slots__ = ("_by_resource", "_rows")

    def __init__(self, rows: Iterable[Row]) -> None:
        """Those of the rows that are such."""
        reserved = (row for row in rows if row.reserved and row.has_room)
        self._rows = [(row, {name: row.unreserved(name) for name in row.free}) for row in reserved]
        self._by_resource: dict[str, list[tuple[Row, Books]]] = {}

    def __bool__(self) -> bool:
        return bool(self._rows)

    def again(self) -> Spare:
        """The same nodes as they are now."""
        return Spare(row for row, _ in self._rows)

    def total(self) -> Books:
        """What is free on all of them together."""
        sums: Books = {}
        for _, free in self._rows:
            book(sums, ((name, max(0, n)) for name, n in free.items()))
        return sums

    def is_of(self, reserved_for: Container[str]) -> bool:
        """Whether one of the nodes is in a reservation of one of these."""
        return any(row.reserved_for in reserved_for for row, _ in self._rows)

    def slots(self, pods: PodClass, most: int) -> int:
        """How many pods of the class fit; from ``most`` on it is not counted further."""
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
