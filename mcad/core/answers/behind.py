"""Which AppWrappers wait behind another, so that no answer about that one depends on them."""

from __future__ import annotations

from collections.abc import Callable

from mcad.core.cluster import Cluster
from mcad.core.state.entry import Entry
from mcad.core.state.units import Instant


def is_behind(cluster: Cluster, uid: str, now: Instant) -> Callable[[Entry], bool]:
    """Whether an AppWrapper is in line behind the one with this uid, and was never dispatched.

    In each walk the AppWrapper ahead has its verdict before those behind. So copies of the
    dispatcher that answer for it need not know them, which of 100,000 in line saves most of the
    work. Where a dispatch changes the order of the others, none counts as behind.
    """
    queue, turns = cluster.waiting.queue, cluster.waiting.turns

    def behind(entry: Entry) -> bool:
        own, place = queue.place_of(uid), queue.place_of(entry.uid)
        if turns.change or own is None or place is None or entry.dispatch is not None:
            return False
        return turns.at(*place, now) > turns.at(*own, now)

    return behind
