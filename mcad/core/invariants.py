"""Everything that is kept twice, compared: a difference is a fault of the core.

``everything`` is for tests, after every pass: it costs as much as there is. ``appwrapper`` looks at
one, so that a running dispatcher can look at a few in every second. Both raise
``InvariantViolated``, and both are for the time between two passes: observations leave some of it
to the next one (core rule R5).
"""

from __future__ import annotations

from mcad.core.cluster import World
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.reasons import HoldReason
from mcad.core.state.violations import check


def everything(world: World) -> None:
    """All books, and all AppWrappers."""
    world.admission.check()
    world.queue.check()
    world.timers.check()
    world.names.check(world.children)
    for uid, entry in world.entries.items():
        check(uid == entry.uid, "entries-by-uid", entry.title)
        appwrapper(world, entry)
    _check_counts(world)


def appwrapper(world: World, entry: Entry) -> None:
    """What is kept about one AppWrapper in several places."""
    _check_waiting(world, entry)
    _check_claim(world, entry)
    _check_hold(world, entry)
    _check_objects(world, entry)


def _check_waiting(world: World, entry: Entry) -> None:
    is_in_line = entry in world.queue
    if entry.phase is not Phase.WAITING:
        check(not is_in_line and entry.hold is None, "only-those-that-wait-wait", entry.title)
        return
    check(is_in_line != (entry.hold is not None), "in-line-or-on-hold", entry.title)
    bucket = world.queue.bucket_of(entry)
    if bucket is not None:
        shape = world.capacity.shape(entry.workload.sets)
        check(bucket.shape == shape, "stands-with-its-shape", entry.title)
        check(bucket.path == world.path(entry), "stands-with-its-path", entry.title)


def _check_claim(world: World, entry: Entry) -> None:
    has_claim = entry.uid in world.claims
    check(has_claim == (entry.claim is not None), "claims-are-known", entry.title)
    check(has_claim or not entry.waits_for, "only-claims-wait-for-others", entry.title)
    if entry.phase is Phase.WAITING:
        holds = world.capacity.holds(entry.uid)
        check(holds == has_claim, "room-of-those-that-wait-is-claimed", entry.title)
    pending = world.evictions.get(entry.uid)
    if pending is not None and not entry.workload.deleting:
        by = world.claims.get(pending.by)
        check(by is not None and entry.uid in by.waits_for, "evicted-for-a-claim", entry.title)


def _check_hold(world: World, entry: Entry) -> None:
    reason = entry.hold.reason if entry.hold is not None else ""
    waits_for_kind = entry.uid in world.waiting_for_kind
    check(
        waits_for_kind == (reason == HoldReason.KIND_NOT_WATCHED),
        "waits-for-a-kind-if-on-hold-for-it",
        entry.title,
    )
    if reason == HoldReason.WAITING_FOR_NAME:
        for item in entry.workload.items:
            is_known = entry.uid in world.names.waiters(item.ref)
            check(is_known, "waits-for-its-names", entry.title)


def _check_objects(world: World, entry: Entry) -> None:
    for uid, child in world.children_of.get(entry.uid, {}).items():
        check(world.children.get(uid) is child, "children-are-the-same", str(child.ref))
        check(child.workload == entry.uid, "children-are-of-their-parent", str(child.ref))


def _check_counts(world: World) -> None:
    of_parents = sum(map(len, world.children_of.values()))
    check(of_parents == len(world.children), "each-child-has-one-parent", str(of_parents))
    for uid in (*world.claims, *world.waiting_for_kind):
        check(uid in world.entries, "only-what-exists-is-remembered", uid)
