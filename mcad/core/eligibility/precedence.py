"""Which AppWrappers may use reserved room: AppWrappers that end before the reserved start, by
declared limits (core R9), and AppWrappers with a higher priority (R8)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from mcad.core.cluster import Cluster
from mcad.core.eligibility import end_times
from mcad.core.state.bounds import AVOIDED_MAX
from mcad.core.state.entry import Entry
from mcad.core.state.model import NodeRules
from mcad.core.state.reservation import EVICTIONS, Reservation, ReservationReason

_SCALING_UP = ReservationReason.SCALING_UP


def may_pass(cluster: Cluster, entry: Entry, owner: Entry) -> bool:
    """Whether a waiting AppWrapper may take the room reserved for the owner."""
    reservation = owner.reservation
    return reservation is not None and (
        ends_before(cluster, entry, reservation) or outranks(entry, owner)
    )


def ends_before(cluster: Cluster, entry: Entry, reservation: Reservation) -> bool:
    """Whether the AppWrapper, started now, is gone by the start that the reservation promises."""
    return end_times.if_begun(cluster, entry, cluster.now) <= reservation.start


def outranks(entry: Entry, owner: Entry) -> bool:
    """Whether a waiting AppWrapper goes before the owner of a reservation. The room of evicted
    victims goes to the preemptor."""
    reservation = owner.reservation
    evicts = reservation is not None and reservation.reason in EVICTIONS
    return entry.workload.priority > owner.workload.priority and not evicts


def outranked(cluster: Cluster, entry: Entry) -> dict[str, None]:
    """The uids (an ordered set) of the owners of reservations that the AppWrapper outranks: these
    reservations do not count for it."""
    return {uid: None for uid, owner in cluster.reservations.items() if outranks(entry, owner)}


def reserved_nodes(cluster: Cluster, entry: Entry, item: int) -> NodeRules:
    """The nodes, of the oldest reservations, that are reserved for other AppWrappers and that the
    pods of an item avoid.

    kube-scheduler knows of no reservation and puts pods on the emptiest nodes: the nodes that
    victims have left, so an owner would never see its nodes empty. Avoiding is a preference; where
    AppWrappers are evicted for the room it is a requirement, or their loss would be for nothing
    (ADR 34), unless the item may run for ever: the requirement would last as long. A reservation
    made between the dispatch and the create may share nodes with the slots of the AppWrapper's own
    pods: these nodes are never excluded, or the pods would find no node. The nodes that an earlier
    leader planned for its pods are not on record, so none is excluded for these pods.
    """
    own = frozenset(cluster.capacity.gangs.nodes_of(entry.uid))
    avoid = [name for name in _of_the_fulfilled(cluster) if name not in own]
    exclude: list[str] = []
    ends = entry.workload.items[item].tells_end and entry.record.epoch == cluster.epoch
    for owner in cluster.reservations.values():
        reservation = owner.reservation
        if reservation is not None and not may_pass(cluster, entry, owner):
            is_needed = ends and reservation.reason in EVICTIONS
            (exclude if is_needed else avoid).extend(reservation.nodes)
    exclude = [name for name in exclude if name not in own]
    planned = _first(own) if _may_come_nodes(cluster, entry) and len(own) <= AVOIDED_MAX else ()
    return NodeRules(_first(avoid), _first(exclude), planned=planned)


def _may_come_nodes(cluster: Cluster, entry: Entry) -> bool:
    """Whether nodes that others asked for may come before the pods of the AppWrapper are bound: new
    nodes are the emptiest, and no rule of these pods names them yet."""
    asks = any(one.reserved.reason is _SCALING_UP for one in cluster.reservations.values())
    return asks and entry.record.epoch == cluster.epoch


def _of_the_fulfilled(cluster: Cluster) -> list[str]:
    """The nodes of AppWrappers that were dispatched to their reserved room, while some of their
    pods are not bound: these nodes are the emptiest, so kube-scheduler would fill them with other
    pods."""
    fulfilled, capacity = cluster.reservations.fulfilled, cluster.capacity
    for uid in [uid for uid in fulfilled if not sum(capacity.gangs.outstanding(uid))]:
        del fulfilled[uid]
    return [name for uid in fulfilled for name in capacity.gangs.nodes_of(uid)]


def _first(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(islice(dict.fromkeys(names), AVOIDED_MAX)))
