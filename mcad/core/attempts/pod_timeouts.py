"""Pods that are missing (C4), and pods that find no node (C6).

Both waits end: room for pods that are never created is free again after a while, and a gang with
pods that find no node is taken back and requeued.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from mcad.core.attempts import teardown
from mcad.core.cluster import Cluster
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Dialect, Pod
from mcad.core.state.reasons import EventReason, TeardownReason, some_of
from mcad.core.state.settings import Policy
from mcad.core.state.timers import Timer
from mcad.core.state.units import SECOND, Duration, Instant

SLOW_PLACEMENT: Duration = 10 * SECOND
"""What kube-scheduler needs at most where there is room: no write is made of less."""


def begin(cluster: Cluster, entry: Entry) -> None:
    """The AppWrapper runs: its pods are waited for from now on.

    After a restart it is unknown since when a pod is missing. It may have vanished a moment ago,
    and its controller is about to replace it, so that clock starts anew (C4). A pod without a node
    says since when it exists, so the other clock continues (P15).
    """
    cluster.capacity.pod_waits.begin(entry.uid, cluster.now)
    entry.awaits_nodes = not cluster.capacity.pod_waits.is_placed(entry.uid)
    entry.waited_for_nodes = 0
    time_reservation(cluster, entry)
    timeout = placement_timeout(cluster, entry)
    if timeout:
        until = entry.record.confirmed + timeout
        if until <= cluster.now:
            cluster.capacity.pod_waits.end_placement(entry.uid)
        cluster.agenda.set_timer(entry, Timer.PLACEMENT, until)


def time_reservation(cluster: Cluster, entry: Entry) -> None:
    """Set the timer of the pod that has been missing longest; stop it if none is missing."""
    since = cluster.capacity.pod_waits.since(entry.uid)
    until = 0 if since is None else since + cluster.settings.reservation_timeout
    cluster.agenda.set_timer(entry, Timer.RESERVATION, until)


def placement_timeout(cluster: Cluster, entry: Entry) -> Duration:
    """The placement time-out; 0 for v1beta2, which has graces of its own (health.py)."""
    is_v1beta2 = entry.workload.dialect is Dialect.V1BETA2
    return 0 if is_v1beta2 else cluster.settings.placement_timeout


def watch(cluster: Cluster) -> None:
    """Begin, move and end the times of waiting after the changes since the last pass."""
    waits = cluster.capacity.pod_waits
    for entry in cluster.known(waits.note(cluster.now)):
        if entry.phase is Phase.RUNNING:
            if entry.awaits_nodes and cluster.capacity.pod_waits.is_placed(entry.uid):
                _all_have_nodes(cluster, entry)
            time_reservation(cluster, entry)
            _time_placement(cluster, entry)
    if not waits.is_noted:
        cluster.agenda.carry_over()


def _all_have_nodes(cluster: Cluster, entry: Entry) -> None:
    """``dispatchDuration.limit`` counts from now on, if its pods had to wait for nodes. With
    backfill it counts from the confirmation: starts are promised to others by it."""
    entry.awaits_nodes = False
    record = entry.record
    waited = cluster.now - record.confirmed
    is_promised = cluster.settings.policy is Policy.BACKFILL
    if not entry.workload.run_limit or is_promised or waited < SLOW_PLACEMENT:
        return
    counts_from = entry.limit_counts_from(record.confirmed) + waited
    entry.waited_for_nodes = waited
    entry.amend(limit_since=counts_from)
    cluster.agenda.to_judge[entry.uid] = None
    cluster.settle(entry)


def give_up(cluster: Cluster, entry: Entry) -> None:
    """C4: no room is kept for ever for pods that are never created."""
    timeout = cluster.settings.reservation_timeout
    given_up = cluster.capacity.pod_waits.give_up(entry.uid, cluster.now - timeout)
    # pods that are not waited for do not keep an AppWrapper from completing
    cluster.agenda.to_judge[entry.uid] = None
    time_reservation(cluster, entry)
    if given_up:
        pods = "1 pod that is" if given_up == 1 else f"{given_up} pods that are"
        ends = "its" if given_up == 1 else "their"
        note = (
            f"{pods} wanted did not appear within {timeout // SECOND} s; "
            f"{ends} reservation ends. Is the controller of the wrapped kind running?"
        )
        reason = EventReason.PODS_NOT_ATTRIBUTED
        cluster.announce(entry, reason, note, action="Reserve", warning=True)


# -- placement -----------------------------------------------------------------------------------


def _time_placement(cluster: Cluster, entry: Entry) -> None:
    """Look again when the first of its pods may have been without a node for too long."""
    if Timer.PLACEMENT not in entry.timers:
        cluster.agenda.set_timer(entry, Timer.PLACEMENT, placement_deadline(cluster, entry))


def placement_deadline(cluster: Cluster, entry: Entry) -> Instant:
    """When the first of its pods will have been without a node for too long; 0 if none can be."""
    timeout = placement_timeout(cluster, entry)
    unbound = cluster.capacity.pods.unbound(entry.uid) if timeout else ()
    return min((unbound_since(entry, pod) + timeout for pod in unbound), default=0)


def take_back_unplaced(cluster: Cluster, entry: Entry) -> None:
    """C6: pods have been without a node for ``placementTimeout``, or were never created. A lost pod
    that is not replaced yet is no reason: a Job waits for minutes before it retries."""
    if entry.workload.deleting:
        return
    timeout = cluster.settings.placement_timeout
    unbound = cluster.capacity.pods.unbound(entry.uid)
    late = [pod for pod in unbound if unbound_since(entry, pod) + timeout <= cluster.now]
    missing = cluster.capacity.pod_waits.never_came(entry.uid)
    cluster.capacity.pod_waits.end_placement(entry.uid)
    entry.awaits_nodes = False
    if late or missing:
        _take_back(cluster, entry, late, missing, timeout)
    else:
        _time_placement(cluster, entry)


def take_back_if_never_placed(cluster: Cluster, entry: Entry) -> bool:
    """Requeue it if at no time of this attempt all of its pods had nodes; returns whether."""
    if entry.workload.deleting or cluster.capacity.pod_waits.is_placed(entry.uid):
        return False
    late = cluster.capacity.pods.unbound(entry.uid)
    missing = cluster.capacity.pod_waits.never_came(entry.uid)
    if late or missing:
        _take_back(cluster, entry, late, missing, cluster.now - entry.record.confirmed)
    return bool(late or missing)


def _take_back(
    cluster: Cluster, entry: Entry, late: list[Pod], missing: int, waited: Duration
) -> None:
    entry.requeueings += 1
    message = _unplaced(late, missing, waited // SECOND)
    teardown.take_back(cluster, entry, TeardownReason.NOT_PLACED, message)


def unbound_since(entry: Entry, pod: Pod) -> Instant:
    """Since when a pod without a node is waited for."""
    return max(pod.created, entry.record.confirmed)


def refusal(pods: Iterable[Pod]) -> str:
    """What kube-scheduler says of most of these pods, "" if it says nothing."""
    said = Counter(_shorten(pod.unscheduled.message) for pod in pods if pod.unscheduled is not None)
    return min(said, key=lambda words: (-said[words], words), default="")


def _shorten(words: str) -> str:
    """The first sentence, which has the reasons of the nodes; the rest says what preemption of pods
    and other plugins could not do."""
    return words.partition(". ")[0].strip().rstrip(".")


def _unplaced(late: list[Pod], missing: int, seconds: int) -> str:
    reported = []
    if late:
        words = refusal(late)
        why = f" ({words})" if words else ""
        reported.append(f"Without a node for {seconds} s: {some_of([p.name for p in late])}{why}.")
    if missing:
        reported.append(f"Pods that are wanted and did not come into being: {missing}.")
    return " ".join(reported)
