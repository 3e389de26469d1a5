"""Access reviews of rights to create objects: one review for all AppWrappers that need the right,
and a hold on the resource while it is missing.

A 403 that an access review confirms is not caused by any manifest: a right has to be granted. Until
then the *resource* is held in that namespace. AppWrappers that contain it are not dispatched,
everything else goes on, and reviews are repeated until the right is back (ADR 8).
"""

from __future__ import annotations

from mcad.core.cluster import Cluster
from mcad.core.commands import ReviewAccess
from mcad.core.events import AccessReviewed
from mcad.core.state.bounds import RIGHT_TEST_BASE, RIGHT_TEST_MAX, backoff
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import TEARING_DOWN, Phase
from mcad.core.state.model import HeldResource, ObjectRef
from mcad.core.state.reasons import EventReason, missing_right
from mcad.core.state.rights import MissingRight, RightKey, right_key
from mcad.core.state.waiting_reason import WaitingReason


def ask(cluster: Cluster, entry: Entry, item: int, ref: ObjectRef) -> None:
    """Request a review of the right after a refused create; one review serves all AppWrappers."""
    asked = cluster.rights.asked
    if right_key(ref) not in asked:
        asked[right_key(ref)] = {}
        cluster.emit(ReviewAccess(ref))
    asked[right_key(ref)][entry.uid] = (entry.attempt, item)


def reviewed(cluster: Cluster, event: AccessReviewed) -> list[Entry]:
    """Begin, continue or end the hold; returns the AppWrappers that wait for this answer."""
    key = (event.namespace, event.group, event.resource)
    asked_at = cluster.rights.asked.pop(key, {})
    asked = [entry for entry in cluster.known(asked_at) if entry.is_at(*asked_at[entry.uid])]
    if event.allowed:
        _end(cluster, key)
    elif key in cluster.rights.held:
        _test_later(cluster, key)
    elif event.allowed is False and asked:
        _begin(cluster, asked[0], event.user)
    return asked


def _begin(cluster: Cluster, entry: Entry, user: str) -> None:
    """Hold the resource; the Event is about ``entry``, the first AppWrapper that was refused."""
    ref = entry.ref(entry.creation.cursor)
    key = right_key(ref)
    message = missing_right(ref, entry.creation.words, user)
    resource = HeldResource(*key, WaitingReason.MISSING_RIGHT, message, cluster.now)
    cluster.rights.held[key] = MissingRight(resource, ref)
    cluster.announce(entry, EventReason.HELD, message, action="Create", warning=True)
    _test_later(cluster, key)


def _test_later(cluster: Cluster, key: RightKey) -> None:
    """Review the right again, at growing intervals: it is not back, or the review failed."""
    held = cluster.rights.held[key]
    held.tests += 1
    held.test_at = cluster.now + backoff(held.tests, RIGHT_TEST_BASE, RIGHT_TEST_MAX)
    cluster.agenda.wake_at(held.test_at)


def _end(cluster: Cluster, key: RightKey) -> None:
    """End the hold of a granted right: AppWrappers that waited for it are in line again."""
    held = cluster.rights.held.pop(key, None)
    for entry in cluster.known(held.concerned if held is not None else ()):
        if entry.wait.hold is not None and entry.wait.hold.reason == WaitingReason.MISSING_RIGHT:
            cluster.line_up(entry)


def test(cluster: Cluster) -> None:
    """Request the reviews that are due; end a hold that concerns no AppWrapper any more."""
    rights = cluster.rights
    for key, held in list(rights.held.items()):
        if held.test_at > cluster.now or key in rights.asked:
            continue
        known = cluster.known(held.concerned)
        held.concerned = {entry.uid: None for entry in known if _concerns(key, entry)}
        if held.concerned:
            rights.asked[key] = {}
            cluster.emit(ReviewAccess(held.ref))
        else:
            _end(cluster, key)


def _concerns(key: RightKey, entry: Entry) -> bool:
    waits = entry.phase is Phase.WAITING or entry.phase in TEARING_DOWN
    return waits and any(right_key(item.ref) == key for item in entry.workload.items)
