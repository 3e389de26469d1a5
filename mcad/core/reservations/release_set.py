"""What has to end before an AppWrapper fits, and when that is by what was declared (core R8,
R9)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from mcad.core.cluster import Cluster
from mcad.core.eligibility import end_times
from mcad.core.nodes.pools import Plan
from mcad.core.snapshot.removal import Removal, fewest
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import TEARING_DOWN
from mcad.core.state.units import Instant


class ReleaseSet(NamedTuple):
    """Where a gang goes when those in ``leaving`` (uids) are gone. That is at ``start`` at the
    latest if they keep their limits, 0 if one of them declares none; then it is at ``likely`` in
    all likelihood, by what others of equal shape took, 0 if that is unknown."""

    plan: Plan
    leaving: tuple[str, ...]
    start: Instant = 0
    likely: Instant = 0


def what_if(cluster: Cluster, entry: Entry, lifted: Collection[str] = ()) -> Removal:
    """What would become of a waiting AppWrapper if others left. The reservations of those in
    ``lifted`` (uids) do not count."""
    shape, path = cluster.capacity.shape(entry.workload.sets), cluster.path(entry)
    return cluster.admission.what_if(shape, path, lifted)


def earliest(cluster: Cluster, entry: Entry, lifted: Collection[str] = ()) -> ReleaseSet | None:
    """Those that end first, as few as suffice; None if not even all of them do. The reservations of
    those in ``lifted`` (uids) do not count.

    Of those without a limit the one ends first that is likely to, and of those without any
    expectation the one that was dispatched last: what has run for long runs on.
    """
    line = sorted((_end(cluster, one), one.uid) for one in present(cluster))
    found = fewest(what_if(cluster, entry, lifted), [uid for _, uid in line])
    if found is None:
        return None
    leaving = set(found.leaving)
    gone = [end for end, uid in line if uid in leaving]
    start, likely = (max((end[n] for end in gone), default=cluster.now) for n in range(2))
    known = (0 if at == end_times.NEVER else at for at in (start, likely))
    return ReleaseSet(found.plan, found.leaving, *known)


def without(cluster: Cluster, entry: Entry, leaving: Iterable[str]) -> ReleaseSet | None:
    """Where it goes when those (uids) are gone, or some of them; None if that is nowhere."""
    found = fewest(what_if(cluster, entry), leaving)
    return ReleaseSet(found.plan, found.leaving) if found is not None else None


def releasing_soon(cluster: Cluster) -> list[str]:
    """The uids of those that are being torn down, and keep no room for another attempt."""
    return [one.uid for one in present(cluster) if one.phase in TEARING_DOWN and not one.keeps_room]


def present(cluster: Cluster) -> Iterator[Entry]:
    """Those that have room and no reservation."""
    for uid in cluster.capacity.assumed_uids():
        entry = cluster.entries.get(uid)
        if entry is not None and uid not in cluster.reservations:
            yield entry


def _end(cluster: Cluster, entry: Entry) -> tuple[Instant, Instant, Instant]:
    """(when it is gone at the latest, when in all likelihood, what decides between those without an
    expected end)"""
    end, record = end_times.at_latest(cluster, entry), entry.dispatch
    if end != end_times.NEVER or record is None:
        return end, end, 0
    return end, end_times.of_present(cluster, entry).late, -record.since
