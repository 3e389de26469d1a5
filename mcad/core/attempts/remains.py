"""Deleted AppWrappers: their objects are deleted at once and hold their room until they are gone
(P9).

The cluster's garbage collector would delete them too, but late: for up to half a minute it does not
know AppWrappers of a CRD installed just now, and in a large cluster it lags.
"""

from __future__ import annotations

from mcad.core.attempts import orphans, teardown
from mcad.core.cluster import Cluster
from mcad.core.state.bounds import STUCK_AFTER, TOMBSTONE_GRACE, TOMBSTONE_LOOK
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase, Signal
from mcad.core.state.reasons import DELETION_INITIATED, ConditionType, EventReason
from mcad.core.state.timers import Timer


def deletion_seen(cluster: Cluster, entry: Entry) -> None:
    """React to a deletion: create no more objects, delete the objects if asked to."""
    cluster.freeze(entry)
    cluster.agenda.to_judge[entry.uid] = cluster.agenda.to_settle[entry.uid] = None
    orphans.judge_anew(cluster, entry)


def linger(cluster: Cluster, entry: Entry) -> None:
    """Report the objects that delay a foreground deletion, and use force as in a teardown. The
    clock is that of the condition, which is persisted."""
    if not entry.lingers or Timer.TOMBSTONE in entry.timers:
        return
    kind = ConditionType.DELETING_RESOURCES
    if not entry.shows(kind):
        entry.set_condition(kind, cluster.now, reason=DELETION_INITIATED)
        cluster.settle(entry)
    cluster.agenda.wake_in(entry, Timer.TOMBSTONE, teardown.next_look(cluster, entry))


def object_gone(cluster: Cluster, entry: Entry) -> None:
    """Keep the room of a deleted AppWrapper's remains until they are gone."""
    is_waiting = entry.phase is Phase.WAITING
    cluster.leave_line(entry)
    cluster.freeze(entry)
    cluster.move(entry, Signal.OBJECT_GONE)
    orphans.judge_anew(cluster, entry)
    if is_waiting and not cluster.objects.by_workload.get(entry.uid):
        cluster.forget(entry)
    else:
        bury(cluster, entry)


def bury(cluster: Cluster, entry: Entry) -> None:
    """Forget the AppWrapper if nothing of it is left or can come any more; else look again. While
    pods of it end on nodes its share is in use, however long that takes. Pods without a deletion by
    then are meant to stay: a client may have orphaned them while no dispatcher saw it."""
    making, has_pods = entry.creation, waits_for_pods(cluster, entry)
    objects = making.asked or making.created or cluster.objects.by_workload.get(entry.uid)
    grace = TOMBSTONE_GRACE + (entry.workload.tolerance.forceful_deletion_grace or 0)
    until = entry.step_since + grace if objects or has_pods else making.doubt
    _say_what_is_left(cluster, entry)
    if cluster.now < until:
        cluster.agenda.wake_in(entry, Timer.TOMBSTONE, min(until - cluster.now, TOMBSTONE_LOOK))
    elif has_pods and cluster.capacity.pods.are_ending(entry.uid):
        cluster.agenda.wake_in(entry, Timer.TOMBSTONE, TOMBSTONE_LOOK)
    else:
        cluster.forget(entry)


def waits_for_pods(cluster: Cluster, entry: Entry) -> bool:
    """Whether pods of a deleted AppWrapper have not ended, and are not meant to stay."""
    return not orphans.is_spared(entry) and cluster.capacity.pods.at_work(entry.uid)


def _say_what_is_left(cluster: Cluster, entry: Entry) -> None:
    """Report once the remaining objects, by an Event: there is no status any more."""
    if entry.removal.remains_reported or cluster.now - entry.step_since < STUCK_AFTER:
        return
    left = teardown.first_left(cluster, entry)
    if left is None:
        return
    entry.removal.remains_reported = True
    note = f"{left.ref} outlives its AppWrapper and keeps its room for now; what keeps it?"
    cluster.announce_remnant(entry, left, EventReason.REMAINS, note, action="Delete")


def visit(cluster: Cluster, entry: Entry) -> None:
    """Act on the expired timer of an AppWrapper that is deleted or about to be deleted."""
    if entry.lingers:
        teardown.look(cluster, entry)
    if entry.phase is not Phase.GONE:
        return
    is_unseen = entry.creation.created and not cluster.objects.by_workload.get(entry.uid)
    if is_unseen or teardown.force_is_due(cluster, entry, entry.step_since) <= 0:
        teardown.look(cluster, entry)
    bury(cluster, entry)
