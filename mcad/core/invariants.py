"""Compares everything that is kept twice; a difference is a fault of the core.

``everything`` is for tests, after every pass. ``appwrapper`` checks one, so that a running
dispatcher can check a few after each cycle. Both raise ``InvariantViolated``. Both hold between two
passes only: observations leave some of it to the next one (core rule R5).
"""

from __future__ import annotations

from mcad.core.cluster import Cluster
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.reasons import HoldReason
from mcad.core.state.violations import check


def everything(cluster: Cluster) -> None:
    """All books, and all AppWrappers."""
    cluster.admission.check()
    cluster.queue.check()
    cluster.timers.check()
    cluster.names.check(cluster.children)
    for uid, entry in cluster.entries.items():
        check(uid == entry.uid, "entries-by-uid", entry.title)
        appwrapper(cluster, entry)
    _check_counts(cluster)


def appwrapper(cluster: Cluster, entry: Entry) -> None:
    """What is kept about one AppWrapper in several places."""
    _check_waiting(cluster, entry)
    _check_reservation(cluster, entry)
    _check_hold(cluster, entry)
    _check_objects(cluster, entry)


def _check_waiting(cluster: Cluster, entry: Entry) -> None:
    is_in_line = entry in cluster.queue
    if entry.phase is not Phase.WAITING:
        check(not is_in_line and entry.hold is None, "only-those-that-wait-wait", entry.title)
        return
    check(is_in_line != (entry.hold is not None), "in-line-or-on-hold", entry.title)
    eqclass = cluster.queue.eqclass_of(entry)
    if eqclass is not None:
        shape = cluster.capacity.shape(entry.workload.sets)
        check(eqclass.shape == shape, "stands-with-its-shape", entry.title)
        check(eqclass.path == cluster.path(entry), "stands-with-its-path", entry.title)


def _check_reservation(cluster: Cluster, entry: Entry) -> None:
    has_reservation = entry.uid in cluster.reservations
    check(has_reservation == (entry.reservation is not None), "reservations-are-known", entry.title)
    check(has_reservation or not entry.waits_for, "only-reservations-wait-for-others", entry.title)
    if entry.phase is Phase.WAITING:
        holds = cluster.capacity.holds(entry.uid)
        check(holds == has_reservation, "room-of-those-that-wait-is-reserved", entry.title)
    pending = cluster.evictions.get(entry.uid)
    if pending is not None and not entry.workload.deleting:
        by = cluster.reservations.get(pending.by)
        check(
            by is not None and entry.uid in by.waits_for, "evicted-for-a-reservation", entry.title
        )


def _check_hold(cluster: Cluster, entry: Entry) -> None:
    reason = entry.hold.reason if entry.hold is not None else ""
    waits_for_kind = entry.uid in cluster.waiting_for_kind
    check(
        waits_for_kind == (reason == HoldReason.KIND_NOT_WATCHED),
        "waits-for-a-kind-if-on-hold-for-it",
        entry.title,
    )
    if reason == HoldReason.WAITING_FOR_NAME:
        for item in entry.workload.items:
            is_known = entry.uid in cluster.names.waiters(item.ref)
            check(is_known, "waits-for-its-names", entry.title)


def _check_objects(cluster: Cluster, entry: Entry) -> None:
    for uid, child in cluster.children_of.get(entry.uid, {}).items():
        check(cluster.children.get(uid) is child, "children-are-the-same", str(child.ref))
        check(child.workload == entry.uid, "children-are-of-their-parent", str(child.ref))


def _check_counts(cluster: Cluster) -> None:
    of_parents = sum(map(len, cluster.children_of.values()))
    check(of_parents == len(cluster.children), "each-child-has-one-parent", str(of_parents))
    for uid in (*cluster.reservations, *cluster.waiting_for_kind):
        check(uid in cluster.entries, "only-what-exists-is-remembered", uid)
