"""The reset of an unhealthy AppWrapper, which keeps its room, or its failure.

A reset is a teardown like any other, but the room stays with the next attempt, which comes after a
pause and does not queue (protocol C7; v1beta2's phases Resetting and Resuming).
"""

from __future__ import annotations

from mcad.core.attempts import create, teardown
from mcad.core.cluster import Cluster
from mcad.core.eligibility import pre_enqueue
from mcad.core.internal_errors import for_each
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase, Signal
from mcad.core.state.model import DispatchPhase, Next
from mcad.core.state.reasons import ConditionType, EventReason, TeardownReason
from mcad.core.state.records import Struct
from mcad.core.state.status_view import Urgency
from mcad.core.state.timers import Timer


class Breakdown(Struct, frozen=True):
    """Why the AppWrapper cannot go on. A reset is ``counted`` unless its cause lies in the cluster;
    after a ``final`` breakdown there is no retry."""

    reason: TeardownReason
    message: str
    counted: bool = True
    final: bool = False


def break_down(cluster: Cluster, entry: Entry, what: Breakdown) -> None:
    """Reset the AppWrapper if that is allowed, else fail it."""
    kind, limit = ConditionType.UNHEALTHY, entry.workload.tolerance.retry_limit
    entry.set_condition(kind, cluster.now, reason=what.reason, message=what.message)
    retried = not what.final and (not what.counted or entry.past.resets < limit)
    if retried:
        entry.past.resets += what.counted
        fate = f"reset {entry.past.resets} of {limit}" if what.counted else "reset, not counted"
    else:
        fate = "no retry" if what.final else f"all {limit} retries are used up"
    note = f"{what.reason}: {what.message} ({fate})"
    cluster.announce(entry, EventReason.UNHEALTHY, note, action="Check", warning=True)
    if retried:
        teardown.take_back(cluster, entry, what.reason, what.message, Next.RESET)
    else:
        fail(cluster, entry, what.reason, what.message)


# -- failure -------------------------------------------------------------------------------------


def fail(cluster: Cluster, entry: Entry, reason: TeardownReason, message: str) -> None:
    """Fail the AppWrapper; its objects are kept for a while if it asks for that."""
    if not entry.workload.tolerance.deletion_on_failure_grace or entry.is_unwanted:
        teardown.take_back(cluster, entry, reason, message, Next.FAILED)
        return
    entry.end(DispatchPhase.KEEPING, cluster.now, reason, message, Next.FAILED)
    cluster.move(entry, Signal.KEEP)
    keep(cluster, entry)
    cluster.settle(entry, Urgency.DISPATCH)


def keep(cluster: Cluster, entry: Entry) -> None:
    """Keep a failed AppWrapper for inspection until the time is over or it is unwanted."""
    record = entry.record
    until = record.entered + entry.workload.tolerance.deletion_on_failure_grace
    if entry.is_unwanted or until <= cluster.now:
        reason = TeardownReason(record.reason)
        teardown.take_back(cluster, entry, reason, record.message, Next.FAILED)
    else:
        cluster.agenda.set_timer(entry, Timer.KEEP, until)


# -- the pause and the next attempt --------------------------------------------------------------


def settled(cluster: Cluster, entry: Entry) -> None:
    """End a teardown that is persisted; after a reset the pause begins."""
    teardown.settled(cluster, entry)
    if entry.phase is Phase.PAUSING:
        pause(cluster, entry)


def pause(cluster: Cluster, entry: Entry) -> None:
    """Wait for the next attempt; if it is unwanted or was edited meanwhile, give up its room."""
    if entry.goes:
        return
    until = entry.record.entered + entry.workload.tolerance.retry_pause
    if entry.is_unwanted or entry.edited is not None:
        give_up_room(cluster, entry)
    elif cluster.now < until:
        cluster.agenda.set_timer(entry, Timer.PAUSE, until)
    else:
        cluster.agenda.to_resume[entry.uid] = None


def resume(cluster: Cluster) -> None:
    """Continue AppWrappers with their room whose pause is over; they are requeued if the room is
    gone with its node, or if something besides room prevents the attempt."""
    for_each(cluster, list(cluster.known(cluster.agenda.to_resume)), _resume)
    cluster.agenda.to_resume.clear()


def _resume(cluster: Cluster, entry: Entry) -> None:
    if entry.phase is not Phase.PAUSING or entry.workload.deleting:
        return
    if (
        cluster.capacity.gangs.unplaced(entry.uid)
        or pre_enqueue.obstacle(cluster, entry) is not None
    ):
        give_up_room(cluster, entry)
    else:
        create.begin(cluster, entry, Signal.RETRY)


def give_up_room(cluster: Cluster, entry: Entry) -> None:
    """Requeue the AppWrapper at its original position."""
    entry.amend(phase=DispatchPhase.RELEASED, next=Next.QUEUED)
    cluster.end_attempt(entry)
    cluster.move(entry, Signal.GIVE_UP_ROOM)
    cluster.line_up(entry)
    cluster.settle(entry)
