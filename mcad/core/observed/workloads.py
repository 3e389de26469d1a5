"""Observed AppWrappers: first sight, edits, writes of other processes, deletion."""

from __future__ import annotations

from collections.abc import Iterable

from mcad.core.attempts import edits, orphans, remains
from mcad.core.cluster import Cluster
from mcad.core.events import AppWrapperSeen, NodeGone, NodeSeen
from mcad.core.observed import objects, recovery
from mcad.core.queue.priority_ceiling import cut
from mcad.core.state.entry import Entry
from mcad.core.state.injections import explain
from mcad.core.state.lifecycle import ENDED, Phase
from mcad.core.state.milestones import Milestone
from mcad.core.state.model import DispatchPhase, DispatchRecord, Persisted, Workload
from mcad.core.state.reasons import ConditionType, EventReason, State
from mcad.core.state.records import replace
from mcad.core.state.reservation import EVICTIONS
from mcad.core.state.units import SECOND, Duration, Instant

_PHASES = tuple(DispatchPhase)
"""Phases in the order in which an attempt goes through them."""

LIVE = frozenset({DispatchPhase.CREATING, DispatchPhase.DISPATCHED})
"""Phases on record of an attempt that may have, or may still create, objects and pods."""

_WITHOUT_DEMAND = frozenset({*ENDED, Phase.GONE, Phase.HELD, Phase.FOREIGN})

LATE_ARRIVAL: Duration = SECOND * 9 // 10
"""The latest refinement of an arrival within its second; later arrivals follow by a microsecond
each, so that they do not run over into the next second, where their order would end."""


def appwrapper_seen(cluster: Cluster, event: AppWrapperSeen) -> None:
    """Take up the first sight of an AppWrapper, an edit, or a write of another process."""
    if not event.workload.managed:
        return
    entry = cluster.entries.get(event.workload.uid)
    work = cut(_with_fixed_priority(event.workload, entry), cluster.waiting.ceilings)
    work = cluster.injections.completed(work)
    is_unreadable = work.persisted is not None and bool(work.persisted.unreadable)
    if entry is not None and (entry.rebuilt or (entry.unreadable and not is_unreadable)):
        cluster.forget(entry)
        entry = None
    if entry is None:
        _first_sight(cluster, work, listed=event.listed)
    elif entry.phase is not Phase.GONE:
        _changed(cluster, entry, work, rewound=event.rewound)


def _with_fixed_priority(work: Workload, entry: Entry | None) -> Workload:
    """The AppWrapper with the priority that its class had at submission: a class that changes, or a
    new global default, moves nothing that is in line already. A named class that did not exist then
    counts as soon as it exists."""
    if work.has_priority:
        return work
    saved, found = work.persisted, work.priority_source
    known = saved.priority_source if saved is not None else None
    if known is None and entry is not None:
        known = entry.workload.priority_source
    was_seen = entry is not None or (saved is not None and bool(saved.first_seen))
    if known is None and found is not None and not (was_seen and found.is_default):
        known = replace(found, is_default=False)  # as it is read back
    return replace(work, priority=known.value if known is not None else 0, priority_source=known)


def _first_sight(cluster: Cluster, work: Workload, *, listed: bool) -> None:
    saved = work.persisted
    if saved is not None and saved.dispatch is not None:
        cluster.injections.recall(work, saved.dispatch)
    work = cluster.injections.completed(work)
    if saved is not None and saved.first_seen:
        first_seen = saved.first_seen
        if first_seen // SECOND == work.created // SECOND:
            cluster.waiting.last_seen = max(cluster.waiting.last_seen, first_seen)
    else:
        first_seen = _stamp(cluster, work.created, listed=listed)
    entry = Entry(replace(work, persisted=None), first_seen)
    cluster.entries[work.uid] = entry
    _warn(cluster, entry, work.warnings if saved is None else ())
    if saved is not None:
        recovery.restore(cluster, entry, saved)
    cluster.note(Milestone.SEEN, entry)
    if work.uid in cluster.objects.by_workload or cluster.capacity.pods.exist(work.uid):
        objects.disown_strangers(cluster, entry)
    if entry.phase is Phase.WAITING:
        if ConditionType.INIT not in entry.conditions:
            entry.set_condition(ConditionType.INIT, first_seen)
            entry.set_condition(ConditionType.QUEUEING, first_seen, reason="AwaitingHeadOfLine")
        cluster.line_up(entry)
    elif entry.phase is Phase.COMPLETED:
        cluster.agenda.to_judge[work.uid] = None
        cluster.remember_run(entry)
    elif entry.dispatch is not None and entry.phase not in ENDED:
        # Before the barrier all dispatched attempts arrive together, and go first.
        entry.untested = cluster.started and entry.dispatch.phase in (*LIVE, DispatchPhase.PAUSED)
        cluster.agenda.to_recover[entry.uid] = None


def _warn(cluster: Cluster, entry: Entry, warnings: Iterable[str]) -> None:
    for warning in warnings:
        cluster.announce(entry, EventReason.MANIFEST, warning, action="Parse", warning=True)


def _stamp(cluster: Cluster, created: Instant, *, listed: bool) -> Instant:
    """First-seen time: creationTimestamp, which has seconds only, refined by arrival.

    The controller sorts an initial list by creationTimestamp and, within a second, puts recorded
    AppWrappers first: a strict succession within the second is all that is needed there. An
    AppWrapper without a record may not be new: its status may be lost (design section 4, *Order*).
    """
    offset = 0 if listed else min(max(cluster.now - created, 0), LATE_ARRIVAL)
    stamp = created + offset
    if (
        stamp <= cluster.waiting.last_seen
        and stamp // SECOND == cluster.waiting.last_seen // SECOND
    ):
        stamp = cluster.waiting.last_seen + 1
    cluster.waiting.last_seen = max(cluster.waiting.last_seen, stamp)
    return stamp


def _changed(cluster: Cluster, entry: Entry, work: Workload, *, rewound: bool) -> None:
    if entry.phase is Phase.HELD:
        _changed_while_held(cluster, entry, work)
        return
    if work.persisted is not None and _is_ahead(entry, work.persisted):
        _take_over(cluster, entry, work)
        return
    saved, work, old = work.persisted, replace(work, persisted=None), entry.workload
    _warn(cluster, entry, (one for one in work.warnings if one not in old.warnings))
    if rewound or (saved is not None and _is_news(entry, saved)):
        entry.writes.written = None
        cluster.agenda.to_settle[entry.uid] = None
    if entry.phase is not Phase.WAITING:
        entry.edit(work)
        edits.report(cluster, entry)
        if entry.workload.items != old.items:
            # a kind is discovered again: its items are shown
            cluster.agenda.to_settle[entry.uid] = None
        _changed_after_intent(cluster, entry, old)
    elif entry.uid in cluster.reservations and _wants_the_same(work, old):
        entry.edit(work)
    elif work != old:
        reservation = entry.reservation
        cluster.leave_line(entry)  # under the record with which it was added
        entry.edit(work)
        entry.report_anew()
        entry.wait.reported_at = 0
        cluster.line_up(entry)
        if reservation is not None and reservation.reason in EVICTIONS:  # others have left for it
            cluster.reservations.on_record[entry.uid] = reservation


def complete_anew(cluster: Cluster) -> None:
    """Complete all demands anew: the known additions of admission have changed."""
    found = cluster.injections
    if not found.stale:
        return
    entries = [one for one in cluster.entries.values() if found.concern(one.workload)]
    found.stale.clear()
    for entry in entries:
        if entry.phase not in _WITHOUT_DEMAND and not entry.keeps_room:
            _complete(cluster, entry)


def _complete(cluster: Cluster, entry: Entry) -> None:
    if entry.edited is not None:
        entry.edited = cluster.injections.completed(entry.edited)
        return
    work = cluster.injections.completed(entry.workload)
    if work == entry.workload:
        return
    _changed(cluster, entry, work, rewound=False)
    shown = cluster.injections.shown_by(work)
    if entry.phase is Phase.WAITING or shown == entry.record.added:
        return
    entry.amend(added=shown)
    cluster.agenda.to_settle[entry.uid] = None
    if note := explain(work):
        cluster.announce(entry, EventReason.PODS_ASK_FOR_MORE, note, action="Run", warning=True)


def _changed_while_held(cluster: Cluster, entry: Entry, work: Workload) -> None:
    """Retry after an edit of the spec, from the stored status on; let a deletion proceed."""
    if work.deleting and not entry.workload.deleting:
        entry.edit(replace(work, persisted=None))
        cluster.freeze(entry)
        orphans.judge_anew(cluster, entry)
    elif work.generation != entry.workload.generation:
        _take_over(cluster, entry, work)


_WANTED = (
    "sets",
    "quota",
    "namespace",
    "priority",
    "never_preempts",
    "suspended",
    "granted",
    "deleting",
    "problem",
)


def _wants_the_same(work: Workload, old: Workload) -> bool:
    """Whether an edit leaves a reservation as it is: an edited note costs no room."""
    return all(getattr(work, name) == getattr(old, name) for name in _WANTED)


def _is_news(entry: Entry, saved: Persisted) -> bool:
    return entry.writes.flying is None and saved.dispatch != entry.dispatch


def _changed_after_intent(cluster: Cluster, entry: Entry, old: Workload) -> None:
    work = entry.workload
    if work.deleting and (not old.deleting or work.cascade is not old.cascade):
        remains.deletion_seen(cluster, entry)
    elif work.generation != old.generation or work.tolerance != old.tolerance:
        cluster.agenda.to_judge[entry.uid] = cluster.agenda.to_settle[entry.uid] = None


def _is_ahead(entry: Entry, saved: Persisted) -> bool:
    """Whether another leader wrote this status, and it is further on than this leader's last one.

    It was sent before the barrier and is stored late, or the first list was of the past. The same
    attempt under another number was written by hand, and is repaired (ADR 44).
    """
    record, ours = saved.dispatch, entry.dispatch
    if entry.phase is Phase.INTENDING and record != ours:
        ours = entry.superseded
    if record == ours:
        if entry.phase is Phase.WAITING:
            return saved.first_seen not in (0, entry.first_seen)
        return entry.phase is Phase.RUNNING and saved.state == State.COMPLETED
    if record is None or ours is None:
        return ours is None
    if record.since == ours.since and record.attempt != ours.attempt:
        return False
    return _progress(record) > _progress(ours)


def _progress(record: DispatchRecord) -> tuple[int, int]:
    return record.attempt, _PHASES.index(record.phase)


def _take_over(cluster: Cluster, entry: Entry, work: Workload) -> None:
    """Take over the stored status, as at a start; an attempt is tested anew (P12)."""
    serial = entry.writes.serial
    cluster.forget(entry)
    _first_sight(cluster, work, listed=True)
    entry = cluster.entries[work.uid]
    entry.writes.serial = serial  # an answer to an earlier write does not count for the next
    objects.look_at_disowned(cluster, entry)


def node_heard(cluster: Cluster, event: NodeSeen | NodeGone) -> None:
    """Take up a changed or vanished node, and judge AppWrappers with pods that have to leave it."""
    if isinstance(event, NodeGone):
        cluster.capacity.node_gone(event.name)
        return
    cluster.capacity.node_seen(event.node)
    if event.node.evicts:
        users = cluster.capacity.pods.users_of(event.node.name)
        cluster.agenda.to_judge.update(dict.fromkeys(users))


def appwrapper_gone(cluster: Cluster, uid: str) -> None:
    """Take up the deletion of an AppWrapper object."""
    entry = cluster.entries.get(uid)
    if entry is not None and entry.phase is not Phase.GONE:
        remains.object_gone(cluster, entry)
