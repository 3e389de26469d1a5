"""Compares everything that is kept twice; a difference is a fault of the core.

``everything`` is for tests, after every pass. ``appwrapper`` checks one AppWrapper, so that a
running dispatcher can check a few after each cycle. Both raise ``InvariantViolated``. Both hold
between two passes only: observations leave some work to the next pass (core rule R5).
"""

from __future__ import annotations

from mcad.core.cluster import Cluster
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.reservation import ReservationReason
from mcad.core.state.violations import check


def everything(cluster: Cluster) -> None:
    """All books, and all AppWrappers."""
    cluster.admission.check()
    cluster.waiting.queue.check()
    cluster.agenda.timers.check()
    cluster.objects.check()
    for uid, entry in cluster.entries.items():
        check(uid == entry.uid, "entries-by-uid", entry.title)
        appwrapper(cluster, entry)
    for uid in (*cluster.reservations, *cluster.waiting.for_kind):
        check(uid in cluster.entries, "only-known-appwrappers-are-remembered", uid)


def appwrapper(cluster: Cluster, entry: Entry) -> None:
    """Check the records about one AppWrapper in several places."""
    cluster.waiting.check_one(entry)
    cluster.reservations.check_one(entry)
    _check_place(cluster, entry)
    _check_room(cluster, entry)
    for child in cluster.objects.of(entry):
        cluster.objects.check_one(entry.uid, child)


def _check_place(cluster: Cluster, entry: Entry) -> None:
    eqclass = cluster.waiting.queue.eqclass_of(entry)
    if eqclass is not None:
        shape = cluster.capacity.shape(entry.workload.sets)
        check(eqclass.shape == shape, "in-line-with-its-shape", entry.title)
        if entry.uid not in cluster.agenda.to_rank:  # some in each pass, after a tree has changed
            check(eqclass.path == cluster.path(entry), "in-line-with-its-path", entry.title)


def _check_room(cluster: Cluster, entry: Entry) -> None:
    if entry.phase is Phase.WAITING:
        holds, has_reservation = (
            cluster.capacity.gangs.exists(entry.uid),
            entry.reservation is not None,
        )
        check(holds == has_reservation, "room-while-waiting-is-reserved", entry.title)
    if entry.reservation is not None:
        is_charged = entry.uid in cluster.forest.charges
        is_to_come = entry.reservation.reason is ReservationReason.SCALING_UP
        check(is_charged != is_to_come, "charged-unless-nodes-are-to-come", entry.title)
    pending = cluster.evictions.get(entry.uid)
    is_behind = bool(cluster.waiting.dispatch_pauses.pending)  # called off after the last one
    if pending is not None and not entry.workload.deleting and not is_behind:
        by = cluster.reservations.get(pending.by)
        is_known = by is not None and entry.uid in by.waits_for
        check(is_known, "evicted-for-a-reservation", entry.title)
