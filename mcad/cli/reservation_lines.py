"""What ``mcad describe`` says of reservations and evictions, line by line."""

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
    ReservationReason.STARVED: "it was first in line for long",
    ReservationReason.PLANNED: "it is first in line, and limits tell when there is room",
    ReservationReason.PREEMPTING: "others have to leave for its priority",
    ReservationReason.RECLAIMING: "others borrow what is its share",
}


def reservation_facts(reservation: Json, ago: Ago) -> Iterator[Line]:
    """The lines about the reservation of an AppWrapper; ``ago`` writes an instant with its age."""
    reason = as_text(reservation.get("reason"))
    why = f" ({_WHY[ReservationReason(reason)]})" if reason in set(ReservationReason) else ""
    yield "Reason", f"{reason}{why}"
    yield "Room", _room(reservation)
    yield "Since", ago(reservation.get("since"))
    if start := reservation.get("start"):
        yield "Starts by", f"{start}, if those there keep their limits"
    if until := reservation.get("until"):
        yield "Given up", f"{until}, if it is not free by then"
    waits_for = [as_text(one) for one in as_list(reservation.get("waitsFor"))]
    yield "Waits for", some_of(waits_for) or "nobody any more"


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
    """Whose reservations are in the way, one by one; an older dispatcher does not tell."""
    for one in map(as_map, as_list(detail.get("keptOffBy"))):
        start = f", starts by {one['start']}" if one.get("start") else ""
        what = f"{_nodes(as_int(one.get('nodeCount')))} ({one['reason']}{start})"
        yield f"{one['namespace']}/{one['name']}, which has reserved {what}"


def eviction(told: Json, ago: Ago) -> str:
    """The last eviction in one line."""
    count, by = as_int(told.get("count")), as_text(told.get("title")) or as_text(told.get("by"))
    times = "once" if count == 1 else f"{count} times, last"
    return f"{times} for {by} ({as_text(told.get('reason'))}), {ago(told.get('at'))}"
