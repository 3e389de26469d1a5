"""The books for people: what ``mcad capacity`` shows."""

from __future__ import annotations

from dataclasses import dataclass

from mcad.core.capacity.arrears import Arrears
from mcad.core.capacity.ledger import Ledger
from mcad.core.capacity.pools import Row
from mcad.core.capacity.ports import without_ports
from mcad.core.capacity.reservations import Reservations
from mcad.core.capacity.resources import Books, book, resources, total
from mcad.core.capacity.roster import Roster
from mcad.core.model import TERMINAL_PHASES, Resources


@dataclass(frozen=True, slots=True)
class NodeReport:
    """One node's books: free = allocatable - used - reserved, and may be negative."""

    name: str
    allocatable: Resources
    used: Resources
    reserved: Resources
    free: Resources


@dataclass(frozen=True, slots=True)
class CapacityReport:
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
    nodes = tuple(
        NodeReport(
            name,
            row.node.allocatable,
            without_ports(used_on(name, roster)),
            without_ports(reserved_on(name, reservations)),
            without_ports(resources(row.free)),
        )
        for name, row in sorted(ledger.rows.items())
    )
    sums = _sums(nodes, list(ledger.rows.values()))
    return CapacityReport(nodes, sums, without_ports(arrears.demand()))


def used_on(name: str, roster: Roster) -> Resources:
    """What the pods bound to the node use (C1)."""
    uses = roster.on_node.get(name, {}).values()
    return total((use.request, 1) for use in uses if use.pod.phase not in TERMINAL_PHASES)


def reserved_on(name: str, reservations: Reservations) -> Resources:
    """What is assumed on the node."""
    return total(
        (claim.pods.request, claim.at[name]) for claim in reservations.slots_on.get(name, {})
    )


def _sums(nodes: tuple[NodeReport, ...], rows: list[Row]) -> NodeReport:
    free: Books = {}
    for row in rows:
        book(free, ((name, max(0, n)) for name, n in row.free.items()))
    return NodeReport(
        "",
        total((node.allocatable, 1) for node in nodes),
        total((node.used, 1) for node in nodes),
        total((node.reserved, 1) for node in nodes),
        without_ports(resources(free)),
    )
