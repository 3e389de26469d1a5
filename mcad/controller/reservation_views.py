"""Reservations and evictions as JSON, for the HTTP port and the CLI."""

from typing import Any

from mcad.api.list_page import Evicted, Evictions
from mcad.api.status import render_eviction, render_reservation
from mcad.api.wire import format_instant
from mcad.core.cluster import Cluster
from mcad.core.state.entry import Entry
from mcad.core.state.reasons import ConditionType
from mcad.core.state.refusal import Refusal
from mcad.core.state.reservation import Reservation
from mcad.core.state.units import SECOND, Instant
from mcad.core.views.evictions import evicted_after
from mcad.core.views.holders import in_the_way

Json = dict[str, Any]

HOUR = 3_600 * SECOND
EVICTIONS_SHOWN = 20


def reservation_view(cluster: Cluster, entry: Entry, refusal: Refusal | None) -> Json:
    """The reservation of an AppWrapper, what an autoscaler is asked for it, the reservations in its
    way, and its last eviction.

    None or empty without any, and no key if no autoscaler is asked. ``refusal`` is its present
    refusal.
    """
    shown = entry.conditions.get(ConditionType.SCALE_UP)
    asked = {"scaleUp": shown.message} if shown is not None and shown.status else {}
    return asked | {
        "reservation": render_reservation(entry.reservation)
        if entry.reservation is not None
        else None,
        "keptOffBy": [
            _owner_view(owner, reservation)
            for owner, reservation in in_the_way(cluster, entry, refusal)
        ],
        "eviction": render_eviction(entry.eviction) if entry.eviction is not None else None,
    }


def evictions_view(cluster: Cluster, now: Instant, namespace: str = "") -> Evictions:
    """Of the last hour, of a namespace ("": all)."""
    found = evicted_after(cluster, now - HOUR, namespace)
    latest = [
        Evicted(
            at=format_instant(eviction.at) or "",
            namespace=work.namespace,
            name=work.name,
            reason=eviction.reason.value,
            by=eviction.title or eviction.by,
            count=eviction.count,
        )
        for work, eviction in found[:EVICTIONS_SHOWN]
    ]
    return Evictions(len(found), latest)


def _owner_view(owner: Entry, reservation: Reservation) -> Json:
    return {
        "namespace": owner.workload.namespace,
        "name": owner.workload.name,
        "reason": reservation.reason.value,
        "nodeCount": len(reservation.nodes),
        "until": format_instant(reservation.until),
        "start": format_instant(reservation.start),
    }
