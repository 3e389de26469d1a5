"""The lines of ``mcad describe`` about reservations and evictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mcad.api.wire import as_int, as_list, as_map, as_text
from mcad.core.state.reasons import some_of
from mcad.core.state.reservation import ReservationReason

Json = dict[str, Any]
Line = tuple[str, str]
Ago = Callable[[Any], str]

_WHY = {
    ReservationReason.STARVED: "long at the head of the queue",
    ReservationReason.PLANNED: "head of the queue; run time limits give its start time",
    ReservationReason.PREEMPTING: "evicts AppWrappers of lower priority",
    ReservationReason.RECLAIMING: "evicts borrowers of its quota",
    ReservationReason.SCALING_UP: "asks an autoscaler for nodes",
}


def reservation_facts(reservation: Json, ago: Ago) -> Iterator[Line]:
    """Lines about the reservation of an AppWrapper; ``ago`` formats an instant with its age."""
    reason = as_text(reservation.get("reason"))
    why = f" ({_WHY[ReservationReason(reason)]})" if reason in set(ReservationReason) else ""
    yield "Reason", f"{reason}{why}"
    yield "Room", _room(reservation)
    yield "Since", ago(reservation.get("since"))
    scales = reason == ReservationReason.SCALING_UP
    if start := reservation.get("start"):
        condition = (
            "nodes come as soon as usual" if scales else "running AppWrappers keep their limits"
        )
        yield "Starts by", f"{start}, if {condition}"
    if until := reservation.get("until"):
        what = "nodes are not there" if scales else "room is not free"
        yield "Given up", f"{until}, if the {what} by then"
    waits_for = [as_text(one) for one in as_list(reservation.get("waitsFor"))]
    yield "Waits for", some_of(waits_for) or ("new nodes" if scales else "nothing any more")


def _room(reservation: Json) -> str:
    names = [as_text(one) for one in as_list(reservation.get("nodes"))]
    count = as_int(reservation.get("nodeCount")) or len(names)
    listed = some_of(names)
    if count > len(names):
        listed = f"{', '.join(names[:3])} and {count - len(names[:3])} more"
    return _nodes(count) + (f": {listed}" if listed else "")


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def kept_off(detail: Json) -> Iterator[str]:
    """The reservations in the way, one per line; absent from older dispatchers."""
    for one in map(as_map, as_list(detail.get("keptOffBy"))):
        start = f", starts by {one['start']}" if one.get("start") else ""
        what = f"{_nodes(as_int(one.get('nodeCount')))} ({one['reason']}{start})"
        yield f"{one['namespace']}/{one['name']}, which has reserved {what}"


def eviction(last: Json, ago: Ago) -> str:
    """The last eviction in one line."""
    count, by = as_int(last.get("count")), as_text(last.get("title")) or as_text(last.get("by"))
    times = "once" if count == 1 else f"{count} times, last"
    return f"{times} for {by} ({as_text(last.get('reason'))}), {ago(last.get('at'))}"
