"""When a waiting AppWrapper starts, and the basis of that. For users: nothing is changed, and no
decision uses it (core R9, ADR 31).

``latest`` is a start time estimate: it rests on declared limits, or, without limits, on expected
ends. AppWrappers that come later and go ahead are not foreseen, so only a reservation is a promise.
``earliest`` is when there is room if no AppWrapper ahead takes any: no sooner, if the expected ends
hold. Nodes and pods of others are assumed to stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from mcad.core.cluster import Cluster
from mcad.core.eligibility.end_times import NEVER, QUICK, SLOW
from mcad.core.scale_up import asking
from mcad.core.state.bounds import START_TIMES_AHEAD, START_TIMES_STEPS
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.records import Struct, replace
from mcad.core.state.reservation import EVICTIONS, Reservation, ReservationReason
from mcad.core.state.units import SECOND, Instant
from mcad.core.views.start_estimate import Start, StartEstimate


class Basis(StrEnum):
    """The basis of the latest start."""

    RESERVATION = "Reservation"  # room is kept, and declared limits say when it is free
    LIMITS = "Limits"  # declared limits; but another AppWrapper may come and go ahead of it
    EXPECTATIONS = "Expectations"  # expectations of manifests, or runs of equal shape
    SCALE_UP = "ScaleUp"  # new nodes, which take as long as the last ones did
    NOTHING = ""


class StartTime(Struct, frozen=True):
    """When the AppWrapper starts; an instant is 0 if unknown. ``why`` says what the estimate rests
    on, or why there is no latest start; "" if the AppWrapper does not wait."""

    earliest: Instant = 0
    latest: Instant = 0
    basis: Basis = Basis.NOTHING
    why: str = ""


def start_times(
    cluster: Cluster, line: Sequence[str], wanted: Iterable[str]
) -> dict[str, StartTime]:
    """The start times of the AppWrappers ``wanted`` (uids). ``line`` has the uids in line in their
    order, at least the first ``START_TIMES_AHEAD``; AppWrappers further back get no estimate."""
    estimate, asked = StartEstimate(cluster), dict.fromkeys(wanted)
    first = (cluster.entries.get(uid) for uid in line[:START_TIMES_AHEAD])
    ahead = [one for one in first if one is not None and one in cluster.waiting.queue]
    while ahead and ahead[-1].uid not in asked:
        ahead.pop()
    undated = _place_reservations(cluster, estimate) if ahead else []
    found: dict[str, StartTime] = {}
    for entry in ahead:
        if estimate.steps >= START_TIMES_STEPS:
            break
        start_time = _on_new_nodes(cluster, entry, _latest(estimate, entry, undated))
        if entry.uid in asked:
            found[entry.uid] = _with_earliest(estimate, entry, start_time)
    for uid in asked:
        if uid in cluster.entries and uid not in found:
            found[uid] = _of_another(cluster, estimate, cluster.entries[uid])
    return found


def _place_reservations(cluster: Cluster, estimate: StartEstimate) -> list[Entry]:
    """Place AppWrappers with a reservation before the line; returns those of unknown start. Those
    that wait for new nodes are not placed: what they will leave of them is unknown."""
    dated = sorted(
        (one.reservation.start or NEVER, one.uid, one)
        for one in cluster.reservations.values()
        if one.reservation is not None and one.reserved.reason is not ReservationReason.SCALING_UP
    )
    return [
        one
        for start, _, one in dated
        if estimate.place(one, 0 if start == NEVER else start) is None
    ]


def _latest(estimate: StartEstimate, entry: Entry, undated: list[Entry]) -> StartTime:
    for one in undated:
        if estimate.compete(entry, one):
            return StartTime(why=f"Unknown, as is the start of {one.title}, which is ahead of it.")
    if estimate.is_hopeless(entry):
        return StartTime(why="It would not fit even if every AppWrapper left.")
    start = estimate.place(entry)
    if start is not None:
        basis = Basis.EXPECTATIONS if start.soft else Basis.LIMITS
        return StartTime(0, start.at, basis, _rests_on(start))
    undated.append(entry)
    count = estimate.lacking(entry)
    if not count:
        return StartTime(why="It does not fit beside what stays for all that is known.")
    have = "has" if count == 1 else "have"
    return StartTime(why=f"{count} of those it waits for {have} no declared limit and no history.")


def _on_new_nodes(cluster: Cluster, entry: Entry, start_time: StartTime) -> StartTime:
    """The start time, or without one the time when nodes would come if it asked for them."""
    eqclass = cluster.waiting.queue.eqclass_of(entry)
    may_grow = cluster.settings.asks_for_nodes and cluster.scale_ups.served
    if start_time.latest or not may_grow or eqclass is None:
        return start_time
    if not asking.may_be_ended_by_nodes(eqclass.refusal):
        return start_time
    usual = cluster.scale_ups.usual
    at = max(cluster.now, entry.scale_up_patience.until) + usual
    why = f"If the cluster grows for it: a scale-up takes about {usual // SECOND} s."
    return StartTime(0, at, Basis.SCALE_UP, why)


def _of_request(cluster: Cluster, reservation: Reservation) -> StartTime:
    if reservation.start <= cluster.now:
        return StartTime(why="The nodes that it asked for take longer than is usual.")
    usual = cluster.scale_ups.usual // SECOND
    why = f"It starts when the nodes that it asked for are there: that takes about {usual} s."
    return StartTime(0, reservation.start, Basis.SCALE_UP, why)


def _rests_on(start: Start) -> str:
    if not (start.left or start.ahead):
        return "It fits already."
    waits = f"it waits for {start.left} to end, with {start.ahead} ahead of it"
    if not start.soft:
        return f"By declared limits, unless others go before it: {waits}."
    return (
        f"By what is expected, unless others go before it: {waits}, and {start.soft} of these, "
        f"which have no limit, take no longer than {SLOW} % of equal ones did, or than they say."
    )


def _with_earliest(estimate: StartEstimate, entry: Entry, start_time: StartTime) -> StartTime:
    """The start time with its earliest, unless there may be room at any moment, or that is
    unknown."""
    earliest = estimate.earliest(entry)
    if not earliest:
        return start_time
    if start_time.latest and earliest >= start_time.latest:
        return replace(start_time, earliest=start_time.latest)
    said = (
        f"Sooner only if one takes less time than it says, or than {100 - QUICK} % of equal ones."
    )
    return replace(start_time, earliest=earliest, why=f"{start_time.why} {said}")


def _of_another(cluster: Cluster, estimate: StartEstimate, entry: Entry) -> StartTime:
    """The start time of an AppWrapper that is not among the first in line."""
    if entry.phase is not Phase.WAITING:
        return StartTime()
    if entry.reservation is not None:
        if entry.reserved.reason is ReservationReason.SCALING_UP:
            return _of_request(cluster, entry.reserved)
        return _of_reservation(estimate, entry, entry.reservation)
    if entry.wait.hold is not None:
        return StartTime(why=f"It is kept out of the line ({entry.wait.hold.reason}).")
    return StartTime(why="Too many are ahead of it to tell.")


def _of_reservation(estimate: StartEstimate, entry: Entry, reservation: Reservation) -> StartTime:
    if reservation.reason in EVICTIONS:
        return StartTime(why="Its room is reserved; it starts when the victims are gone.")
    if not reservation.start:
        why = "Its room is reserved; when it is free is unknown, as one of its users has no limit."
        return _with_earliest(estimate, entry, StartTime(why=why))
    why = "Its room is reserved, and free by then if all keep their declared limits."
    promise = StartTime(0, reservation.start, Basis.RESERVATION, why)
    return _with_earliest(estimate, entry, promise)
