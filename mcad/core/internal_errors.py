"""AppWrappers that the dispatcher leaves alone after an error of its own about them.

An exception or a broken invariant about one AppWrapper holds that AppWrapper (phase ``held``): it
leaves all lists, its objects are left as they are, and its room stays booked. All others go on. An
edit of its spec or another version of the dispatcher tries again, as at a start.

Work that the error left half done is put aside, and then the books of the whole are compared. If
they differ the error was about the whole: ``broken`` ends the process, once the hold is on record,
so that a restart, which makes all books anew, does not come to the same place again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from mcad.core.cluster import Cluster
from mcad.core.state.entry import Entry
from mcad.core.state.internal_error import InternalError, describe
from mcad.core.state.lifecycle import Phase
from mcad.core.state.milestones import Milestone
from mcad.core.state.model import Workload
from mcad.core.state.records import replace
from mcad.core.state.restored_phase import restored_phase
from mcad.core.state.status_view import Urgency
from mcad.core.state.timers import Timer
from mcad.core.state.units import SECOND, Duration

CHECK_EVERY: Duration = 60 * SECOND
"""The books of the whole take seconds to compare where 100,000 wait, and any user may provoke
errors: so the comparisons are at least this far apart."""

RECORD_WITHIN: Duration = 10 * SECOND
"""How long a process with broken books waits until its last holds are on record."""

GONE_RETRY: Duration = 300 * SECOND


def for_each(
    cluster: Cluster, entries: Iterable[Entry], act: Callable[[Cluster, Entry], object]
) -> None:
    """Act on each AppWrapper. If that raises, the AppWrapper is held, and the others go on."""
    for entry in entries:
        cluster.errors.about = entry.uid
        try:
            act(cluster, entry)
        except Exception as error:  # noqa: BLE001 - after any error the others go on
            hold(cluster, error)
    cluster.errors.about = ""


def part(cluster: Cluster, act: Callable[[Cluster], None]) -> None:
    """Do a part of a pass. If it raises about an AppWrapper (``about``), that AppWrapper is held,
    and the rest of this part is for the next pass."""
    cluster.errors.about = ""
    try:
        act(cluster)
    except Exception as error:  # noqa: BLE001 - after any error the others go on
        hold(cluster, error)
        cluster.agenda.carry_over()
    cluster.errors.about = ""


def hold(cluster: Cluster, error: Exception, seen: Workload | None = None) -> None:
    """Hold the AppWrapper that the error is about; raises the error if it is about none. ``seen``
    is the AppWrapper as just observed: it may not be known yet."""
    uid, cluster.errors.about = cluster.errors.about, ""
    entry = cluster.entries.get(uid)
    if entry is None and seen is not None:
        entry = _unknown(cluster, seen)
    if entry is None or cluster.errors.broken is not None:
        raise error
    cluster.errors.raised.append((uid, error))
    hold_for(cluster, entry, describe(error))


def hold_for(cluster: Cluster, entry: Entry, error: InternalError) -> None:
    """Hold the AppWrapper for this error, and find out whether all others can go on."""
    if entry.error == error:
        return
    if entry.phase is Phase.GONE:  # there is no status to show it
        cluster.agenda.wake_in(entry, Timer.TOMBSTONE, GONE_RETRY)
    else:
        cluster.note(Milestone.FORGOTTEN, entry)
        _put_aside(cluster, entry)
        _leave_alone(cluster, entry)
        entry.blame(error, cluster.now)
        cluster.note(Milestone.SEEN, entry)
        _report(cluster, entry)
    _compare(cluster, entry)


def _unknown(cluster: Cluster, seen: Workload) -> Entry:
    saved = seen.persisted
    first_seen = saved.first_seen if saved is not None and saved.first_seen else seen.created
    entry = Entry(replace(seen, persisted=None), first_seen)
    if saved is not None:
        entry.recall(saved, restored_phase(saved))
    cluster.entries[seen.uid] = entry
    return entry


def _put_aside(cluster: Cluster, entry: Entry) -> None:
    """Take the AppWrapper out of all lists. Its work may be half done, so some steps may raise in
    turn; the comparison of the books shows whether enough was done."""
    uid = entry.uid
    acts: tuple[Callable[[], object], ...] = (
        partial(cluster.unreserve, entry),
        partial(cluster.waiting.put_out, entry),
        partial(cluster.reservations.waits_no_more, entry),
        partial(cluster.admission.release, uid),
        partial(cluster.agenda.forget, uid),
        partial(cluster.evictions.pop, uid, None),
    )
    for act in acts:
        with suppress(Exception):
            act()


def _leave_alone(cluster: Cluster, entry: Entry) -> None:
    """Leave the AppWrapper held, out of all lists. Its attempt's declared room stays booked; if
    even that raises, only the use of its pods is booked."""
    if entry.phase is not Phase.HELD:
        entry.set_aside(cluster.now)
    if not entry.may_have_objects:
        return
    try:
        cluster.adopt(entry)
    except Exception:  # noqa: BLE001 - the error may be in its pod sets
        with suppress(Exception):
            cluster.admission.release(entry.uid)


def _report(cluster: Cluster, entry: Entry) -> None:
    try:
        cluster.settle(entry, Urgency.DISPATCH)
    except Exception:  # noqa: BLE001 - the log has what cannot be shown
        entry.writes.dirty = False


def _compare(cluster: Cluster, entry: Entry) -> None:
    """Compare the books after an error about this AppWrapper."""
    cluster.errors.suspect = entry
    compare(cluster)


def compare(cluster: Cluster) -> None:
    """Compare the books after a hold, as soon as a comparison is due."""
    entry, due = cluster.errors.suspect, cluster.errors.compared_at + CHECK_EVERY
    if entry is None:
        return
    if cluster.errors.compared_at and cluster.now < due:
        cluster.agenda.wake_at(due)
        return
    cluster.errors.compared_at, cluster.errors.suspect = cluster.now, None
    try:
        cluster.waiting.check_one(entry)
        cluster.reservations.check_one(entry)
        cluster.admission.check()
        cluster.waiting.queue.check()
        cluster.agenda.timers.check()
    except Exception as difference:  # noqa: BLE001 - the comparison may raise anything
        cluster.errors.broken, cluster.errors.broken_at = difference, cluster.now


def is_over(cluster: Cluster) -> bool:
    """Whether a process with broken books may end: its holds are on record, or cannot be."""
    held = [entry for entry in cluster.entries.values() if entry.error is not None]
    is_recorded = all(entry.writes.flying is None and not entry.writes.dirty for entry in held)
    return is_recorded or cluster.now >= cluster.errors.broken_at + RECORD_WITHIN
