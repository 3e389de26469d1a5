"""How an AppWrapper is evicted for another: announced, left running during a grace period if there
is one, then taken back and requeued at its original position (core R10).

Until then the eviction can be called off: the preemptor has found room, or is gone. A restart
forgets announced evictions; the preemptor is planned again, counting on the victims that are
already being taken back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from mcad.core.attempts import teardown
from mcad.core.cluster import Cluster
from mcad.core.reservations import manage, release_set
from mcad.core.snapshot.removal import fewest
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.reasons import EVICTION_CALLED_OFF, ConditionType, EventReason, TeardownReason
from mcad.core.state.reservation import Eviction, PendingEviction, ReservationReason
from mcad.core.state.units import SECOND

_STANDING = frozenset({Phase.CREATING, Phase.CONFIRMING, Phase.RUNNING})

_WORDS = {
    ReservationReason.PREEMPTING: (
        TeardownReason.PREEMPTED,
        "Evicted to make room for {}, which has a higher priority",
    ),
    ReservationReason.RECLAIMING: (
        TeardownReason.RECLAIMED,
        "Evicted so that {} can reclaim its quota",
    ),
}


def may_be_evicted(entry: Entry) -> bool:
    """Whether the state of its attempt allows taking it back now."""
    phase = entry.phase
    if phase is not Phase.RUNNING and (phase is not Phase.CREATING or entry.creation.asked):
        return False
    return not (entry.workload.never_preempted or entry.workload.deleting or entry.untested)


def begin(
    cluster: Cluster, preemptor: Entry, victims: Iterable[tuple[str, ReservationReason]]
) -> None:
    """Announce the evictions to the victims; without a grace period take them back at once."""
    at = cluster.now + cluster.settings.preemption_grace
    for uid, reason in victims:
        entry = cluster.entries[uid]
        cause, why = _WORDS[reason]
        message = f"{why.format(preemptor.title)}; requeued at its original position."
        cluster.evictions[uid] = PendingEviction(preemptor.uid, reason, message, at)
        kind = ConditionType.PREEMPT_CANDIDATE
        entry.set_condition(kind, cluster.now, reason=cause, message=message)
        announce = EventReason.PREEMPT_CANDIDATE
        cluster.announce(entry, announce, message, action="Preempt", warning=True)
        if cluster.settings.preemption_grace:
            cluster.settle(entry)
        else:
            _take_back(cluster, entry, cluster.evictions[uid])
    cluster.agenda.wake_at(at)


def continue_attempt(cluster: Cluster) -> None:
    """Take back the victims whose grace is over, if they are still needed."""
    reported: dict[str, list[str]] = {}
    for uid, pending in cluster.evictions.items():
        reported.setdefault(pending.by, []).append(uid)
    for preemptor, uids in reported.items():
        _proceed(cluster, preemptor, uids)


def _proceed(cluster: Cluster, preemptor: str, uids: Sequence[str]) -> None:
    cluster.errors.about = preemptor
    owner = cluster.reservations.get(preemptor)
    reserved = owner.waits_for if owner is not None else {}
    standing = dict.fromkeys(uid for uid in uids if uid in reserved and _stands(cluster, uid))
    for uid in uids:
        if uid not in standing:
            _call_off(cluster, uid)
    pending = [cluster.evictions[uid] for uid in standing]
    if owner is None or not pending:
        return
    if any(cluster.now < one.at for one in pending):
        cluster.agenda.wake_at(min(one.at for one in pending))
        return
    needed = _still_needed(cluster, owner, standing)
    if needed is None:
        for uid in standing:
            _call_off(cluster, uid)
        manage.end(cluster, owner, "No set of evictions makes enough room.")
        return
    for uid in standing:
        entry = cluster.entries[uid]
        if uid not in needed:
            _call_off(cluster, uid)
            cluster.reservations.let_stay(owner, uid)
        elif may_be_evicted(entry):
            _take_back(cluster, entry, cluster.evictions[uid])
        else:
            next_second = (cluster.now // SECOND + 1) * SECOND  # one for all passes of a second
            cluster.agenda.wake_at(next_second)


def _stands(cluster: Cluster, uid: str) -> bool:
    entry = cluster.entries.get(uid)
    return entry is not None and entry.phase in _STANDING and not entry.workload.deleting


def _still_needed(cluster: Cluster, owner: Entry, uids: Collection[str]) -> set[str] | None:
    """The victims that are still needed after their grace period; None if their eviction makes no
    room any more."""
    snapshot = release_set.for_owner(cluster, owner)
    for uid in manage.still_there(cluster, owner):
        if uid not in uids:
            snapshot.remove(uid)
    found = fewest(snapshot, uids)
    return None if found is None else set(found.leaving)


def _take_back(cluster: Cluster, entry: Entry, pending: PendingEviction) -> None:
    del cluster.evictions[entry.uid]
    preemptor, before = cluster.entries[pending.by], entry.eviction
    count = 1 + (before.count if before is not None else 0)
    entry.eviction = Eviction(count, pending.reason, preemptor.uid, preemptor.title, cluster.now)
    entry.amend(preemptor=preemptor.uid)
    teardown.take_back(cluster, entry, _WORDS[pending.reason][0], pending.message)


def _call_off(cluster: Cluster, uid: str) -> None:
    del cluster.evictions[uid]
    entry = cluster.entries.get(uid)
    if entry is not None:
        forget(cluster, entry)


def forget(cluster: Cluster, entry: Entry) -> None:
    """Report that an announced eviction was called off."""
    shown = entry.conditions.get(ConditionType.PREEMPT_CANDIDATE)
    reported = {cause for cause, _ in _WORDS.values()}
    if shown is None or not shown.status or shown.reason not in reported:
        return
    entry.unset_condition(ConditionType.PREEMPT_CANDIDATE, cluster.now, reason=EVICTION_CALLED_OFF)
    cluster.settle(entry)
