"""The two clocks of the pods of an attempt: how long a missing pod keeps its room, and how long a
pod may be without a node (C4, P15)."""

from __future__ import annotations

from mcad.core.cluster import Cluster
from mcad.core.state.entry import Entry
from mcad.core.state.model import Dialect
from mcad.core.state.timers import Timer
from mcad.core.state.units import Duration


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
