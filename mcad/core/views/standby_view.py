"""What a standby knows: a process that decides nothing and takes all records as they are.

The leader remembers more than it writes. Where the stored objects leave open what it would say, a
standby says less (``refusal.Doubts``).
"""

from __future__ import annotations

from mcad.core.attempts import leftovers
from mcad.core.cluster import Cluster
from mcad.core.observed import recovery
from mcad.core.reservations import manage
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import ENDED, Phase
from mcad.core.state.model import DispatchPhase
from mcad.core.state.reasons import ConditionType, explain_reservation
from mcad.core.state.refusal import Doubts
from mcad.core.state.reservation import Reservation
from mcad.core.state.waiting_reason import HOLDS, Hold, WaitingReason


def look_on(cluster: Cluster, *, is_led: bool) -> None:
    """Everything is listed: attempts and reservations hold their room, and holds stand as written.
    Where it ``is_led``, another process knows more."""
    if cluster.forest.refresh(cluster.now):
        for entry in cluster.waiting.queue.entries():
            cluster.waiting.rank_anew(entry)
    recovery.take_as_recorded(cluster)
    leftovers.take_up(cluster)
    cluster.capacity.place_unplaced()
    found, cluster.reservations.on_record = cluster.reservations.on_record, {}
    for entry, reservation in manage.in_line(cluster, found):
        if entry.uid not in cluster.agenda.to_settle:
            _reservation_as_recorded(cluster, entry, reservation)
    for entry in cluster.waiting.queue.entries():
        _hold_as_recorded(cluster, entry)
    cluster.doubts = _doubts(cluster) if is_led else None


def _reservation_as_recorded(cluster: Cluster, entry: Entry, reservation: Reservation) -> None:
    """The reservation is where its record says; nothing is planned anew."""
    shape = cluster.capacity.shape(entry.workload.sets)
    if reservation.is_placed:
        places = dict(zip(reservation.nodes, reservation.pods, strict=True))
        plan = cluster.capacity.plan_at(shape, places)
    else:
        plan = cluster.capacity.plan_on(shape, reservation.nodes)
    shown = entry.conditions.get(ConditionType.BACKOFF)
    is_told = shown is not None and shown.status and shown.reason == WaitingReason.ROOM_RESERVED
    message = shown.message if shown is not None and is_told else explain_reservation(reservation)
    cluster.admission.reserve(*cluster.next_gang(entry), plan)
    cluster.reservations.add(entry, reservation, {})
    cluster.waiting.reserve(entry, message)


def _hold_as_recorded(cluster: Cluster, entry: Entry) -> None:
    """A recorded hold counts as long as the spec is the one that it was written about."""
    shown = entry.conditions.get(ConditionType.BACKOFF)
    if shown is None or not shown.status or entry.uid in cluster.agenda.to_settle:
        return
    if shown.reason in HOLDS:
        cluster.waiting.hold(entry, Hold(HOLDS[shown.reason], shown.message))


def _doubts(cluster: Cluster) -> Doubts:
    """What is open: the nodes of assumed pods, the declaration of attempts whose spec was edited
    since, what deleted AppWrappers hold, and the place of reservations whose record does not say it
    all."""
    holders = [one for one in cluster.entries.values() if cluster.capacity.gangs.exists(one.uid)]
    attempts = [one for one in holders if one.reservation is None]
    is_gone = any(one.phase is Phase.GONE for one in attempts)
    is_unbound = any(sum(cluster.capacity.gangs.outstanding(one.uid)) for one in attempts)
    is_unplaced = any(
        one.reservation is not None and not one.reservation.is_placed for one in holders
    )
    return Doubts(
        room=is_unbound or is_gone or is_unplaced,
        shares=bool(cluster.forest.trees) and (is_gone or any(map(is_edited, attempts))),
    )


def is_edited(entry: Entry) -> bool:
    """Whether its attempt stands and declared something else than its spec does by now."""
    record = entry.dispatch
    if record is None or entry.phase in ENDED or record.phase is DispatchPhase.RELEASED:
        return False
    return bool(record.payload) and record.payload != entry.workload.payload


def last_word(entry: Entry) -> str:
    """The recorded message about a refused AppWrapper, "" if there is none."""
    shown = entry.conditions.get(ConditionType.BACKOFF)
    return shown.message if shown is not None and shown.status else ""
