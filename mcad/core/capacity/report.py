"""The books for people: what ``mcad capacity`` shows."""

from __future__ import annotations

from collections.abc import Iterator

from mcad.core.capacity.arrears import Arrears
from mcad.core.capacity.ledger import Ledger
from mcad.core.capacity.ports import without_ports
from mcad.core.capacity.reservations import Reservations
from mcad.core.capacity.resources import Books, book, resources, total
from mcad.core.capacity.roster import Roster
from mcad.core.model import TERMINAL_PHASES, Resources
from mcad.core.records import Struct


class NodeReport(Struct, frozen=True):
    """One node's books: free = allocatable - used - reserved, and may be negative."""

    name: str
    allocatable: Resources
    used: Resources
    reserved: Resources
    free: Resources


class CapacityReport(Struct, frozen=True):
    """All nodes by name, their sums, and the reservations that have no node.

    The ``free`` of the sums clamps each node at 0 (an overdrawn node lends nobody its debt), so it
    may be more than the other sums suggest.
    """

    nodes: tuple[NodeReport, ...]
    totals: NodeReport
    adrift: Resources


def report(
    ledger: Ledger, roster: Roster, reservations: Reservations, arrears: Arrears
) -> CapacityReport:
    """Everything, as it is now."""
    nodes = tuple(node_reports(ledger, roster, reservations))
    return CapacityReport(nodes, sums(ledger, reservations), without_ports(arrears.demand()))


def node_reports(
    ledger: Ledger, roster: Roster, reservations: Reservations
) -> Iterator[NodeReport]:
    """Each node by name, as it is when it is asked for; one that is gone by then is left out."""
    for name in sorted(ledger.rows):
        row = ledger.rows.get(name)
        if row is not None:
            yield NodeReport(
                name,
                row.node.allocatable,
                without_ports(used_on(name, roster)),
                without_ports(reserved_on(name, reservations)),
                without_ports(resources(row.free)),
            )


def sums(ledger: Ledger, reservations: Reservations) -> NodeReport:
    """The sums over all nodes: what is used is what is neither reserved nor free."""
    free: Books = {}
    used: Books = dict(ledger.allocatable)
    for row in ledger.rows.values():
        for name, n in row.free.items():
            used[name] = used.get(name, 0) - n
            if n > 0:
                free[name] = free.get(name, 0) + n
    reserved = total(
        (allotment.pods.request, allotment.at[name])
        for name, allotments in reservations.slots_on.items()
        if name in ledger.rows
        for allotment in allotments
    )
    book(used, reserved, -1)
    parts = (resources(books) for books in (ledger.allocatable, used))
    return NodeReport("", *map(without_ports, (*parts, reserved, resources(free))))


def used_on(name: str, roster: Roster) -> Resources:
    """What the pods bound to the node use (C1)."""
    uses = roster.on_node.get(name, {}).values()
    return total((use.request, 1) for use in uses if use.pod.phase not in TERMINAL_PHASES)


def reserved_on(name: str, reservations: Reservations) -> Resources:
    """What is assumed on the node."""
    return total(
        (allotment.pods.request, allotment.at[name])
        for allotment in reservations.slots_on.get(name, {})
    )
