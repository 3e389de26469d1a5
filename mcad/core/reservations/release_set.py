"""Which AppWrappers have to end before another AppWrapper fits, and when, by declared limits (core
R8, R9)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from mcad.core.cluster import Cluster
from mcad.core.eligibility import end_times
from mcad.core.nodes.ledger import Plan
from mcad.core.snapshot.removal import Room, fewest
from mcad.core.snapshot.snapshot import ANYWHERE, Snapshot, Where
from mcad.core.state.bounds import ENDS_PER_PASS
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import TEARING_DOWN
from mcad.core.state.reservation_book import EndOrder, Ends
from mcad.core.state.settings import Fit
from mcad.core.state.units import Instant


class ReleaseSet(NamedTuple):
    """Where a gang goes when the AppWrappers ``leaving`` (uids) are gone.

    They are gone at ``start`` at the latest if they keep their limits; 0 if one of them declares
    none. Then ``likely`` is the expected time, by earlier runs of equal shape, 0 if unknown.
    """

    plan: Plan
    leaving: tuple[str, ...]
    start: Instant = 0
    likely: Instant = 0


def what_if(
    cluster: Cluster, entry: Entry, lifted: Collection[str] = (), where: Where = ANYWHERE
) -> Snapshot:
    """A dry run for a waiting AppWrapper. The reservations of ``lifted`` (uids) do not count."""
    shape, path = cluster.capacity.shape(entry.workload.sets), cluster.path(entry)
    snapshot = cluster.admission.what_if(shape, path, lifted, where=where)
    return _counted(cluster, snapshot)


def _counted(cluster: Cluster, snapshot: Snapshot) -> Snapshot:
    """Count the creation of a snapshot as work of the pass."""
    cluster.agenda.spent += snapshot.steps
    return snapshot


def for_owner(cluster: Cluster, owner: Entry) -> Snapshot:
    """A dry run for the owner of a reservation, which does not count itself.

    Younger reservations do not count in quota. A reservation is charged beside its victims until
    these are gone, so the books show more than will ever be used at a time; each younger
    reservation was planned beside this one, and the quota of its own victims suffices.
    """
    shape, path = cluster.capacity.shape(owner.workload.sets), cluster.path(owner)
    younger = tuple(cluster.reservations.younger(owner.uid))
    on_nodes = cluster.settings.fit is Fit.NODES  # where only sums count room has no owner
    lifted = (owner.uid,) if on_nodes else (owner.uid, *younger)
    free = younger if on_nodes else ()
    return _counted(cluster, cluster.admission.what_if(shape, path, lifted, free))


def least(cluster: Cluster, snapshot: Snapshot, candidates: Iterable[str]) -> Room | None:
    """The candidates (uids) that have to leave, as ``fewest``; work of the pass."""
    begun = snapshot.steps
    found = fewest(snapshot, candidates)
    cluster.agenda.spent += snapshot.steps - begun
    return found


def place(cluster: Cluster, snapshot: Snapshot) -> Plan | None:
    """Where the gang of the snapshot goes, None if it does not fit; work of the pass."""
    begun = snapshot.steps
    plan = snapshot.plan()
    cluster.agenda.spent += snapshot.steps - begun
    return plan


def ends(cluster: Cluster, entries: Iterable[Entry]) -> list[tuple[Ends, str]]:
    """The ends of these AppWrappers, and their uids; sorted, the earliest end comes first.

    AppWrappers without a limit sort by their expected ends, and AppWrappers without an expectation
    by the latest dispatch: a run that is long already is expected to go on.
    """
    found = [(_end(cluster, one), one.uid) for one in entries]
    cluster.agenda.spent += 3 * len(found)
    return found


def knows_ends(cluster: Cluster, order: EndOrder) -> bool:
    """Whether the order of ends is known; if not, this pass finds out a part of it."""
    if order.unknown is None:
        order.unknown = [one.uid for one in present(cluster)]
    while order.unknown and not cluster.agenda.is_spent:
        part, order.unknown = order.unknown[:ENDS_PER_PASS], order.unknown[ENDS_PER_PASS:]
        order.line += ends(cluster, cluster.known(part))
        order.line.sort()
    return not order.unknown


def earliest(
    cluster: Cluster,
    entry: Entry,
    lifted: Collection[str] = (),
    line: list[tuple[Ends, str]] | None = None,
) -> ReleaseSet | None:
    """The AppWrappers that end first, as few as suffice; None if even all of them do not. The
    reservations of ``lifted`` (uids) do not count. ``line`` are the sorted ``ends`` of all that
    hold room, if known; AppWrappers that have left since make no difference."""
    line = sorted(ends(cluster, present(cluster))) if line is None else line
    found = least(cluster, what_if(cluster, entry, lifted), [uid for _, uid in line])
    if found is None:
        return None
    leaving = set(found.leaving)
    gone = [end for end, uid in line if uid in leaving]
    start, likely = (max((end[n] for end in gone), default=cluster.now) for n in range(2))
    known = (0 if at == end_times.NEVER else at for at in (start, likely))
    return ReleaseSet(found.plan, found.leaving, *known)


def without(
    cluster: Cluster, entry: Entry, leaving: Iterable[str], only: Collection[str] = ()
) -> ReleaseSet | None:
    """Where the AppWrapper goes when all or some of ``leaving`` (uids) are gone; None if it does
    not fit. ``only`` names the nodes that it may use (none: all)."""
    found = least(cluster, what_if(cluster, entry, where=Where(only)), leaving)
    return ReleaseSet(found.plan, found.leaving) if found is not None else None


def releasing_soon(cluster: Cluster) -> list[str]:
    """The uids of AppWrappers in teardown that keep no room for another attempt."""
    return [one.uid for one in present(cluster) if one.phase in TEARING_DOWN and not one.keeps_room]


def present(cluster: Cluster) -> Iterator[Entry]:
    """The AppWrappers that hold room, reservations aside."""
    for uid in cluster.capacity.gangs.uids():
        entry = cluster.entries.get(uid)
        if entry is not None and uid not in cluster.reservations:
            yield entry


def _end(cluster: Cluster, entry: Entry) -> Ends:
    end, record = end_times.at_latest(cluster, entry), entry.dispatch
    if end != end_times.NEVER or record is None:
        return end, end, 0
    return end, end_times.of_present(cluster, entry).late, -record.since
