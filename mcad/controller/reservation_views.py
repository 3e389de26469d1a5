"""Reservations and evictions as JSON, for the HTTP port and the CLI."""

from typing import Any

from mcad.api.status import render_eviction, render_reservation
from mcad.api.wire import format_instant
from mcad.core.cluster import Cluster
from mcad.core.state.entry import Entry
from mcad.core.state.refusal import Refusal
from mcad.core.state.reservation import Reservation
from mcad.core.views.holders import in_the_way

Json = dict[str, Any]


def reservation_view(cluster: Cluster, entry: Entry, refusal: Refusal | None) -> Json:
    """What an AppWrapper reserves, the reservations of others in its way, and when it was evicted
    last; None and empty where there is nothing of that. ``refusal`` is the present verdict on
    it."""
    return {
        "reservation": render_reservation(entry.reservation)
        if entry.reservation is not None
        else None,
        "keptOffBy": [
            _owner_view(owner, reservation)
            for owner, reservation in in_the_way(cluster, entry, refusal)
        ],
        "eviction": render_eviction(entry.eviction) if entry.eviction is not None else None,
    }


def _owner_view(owner: Entry, reservation: Reservation) -> Json:
    return {
        "namespace": owner.workload.namespace,
        "name": owner.workload.name,
        "reason": reservation.reason.value,
        "nodeCount": len(reservation.nodes),
        "until": format_instant(reservation.until),
        "start": format_instant(reservation.start),
    }
