"""When running AppWrappers are gone: at the latest by declared limits, and by expectation.

Declared limits are enforced, by the dispatcher or by the wrapped object's controller. The
expectation is the manifest's, else the times of earlier runs of equal shape (run_history.py); only
start time estimates use it.
"""

from __future__ import annotations

from typing import NamedTuple

from mcad.core.cluster import Cluster
from mcad.core.state.bounds import TEARDOWN_MARGIN
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import TEARING_DOWN, Phase
from mcad.core.state.model import Workload
from mcad.core.state.units import Duration, Instant

NEVER: Instant = 2**62
"""The end of an AppWrapper that declares none."""

QUICK, SLOW = 10, 90
"""Percentiles of the times of equal runs: for the earliest end, and for the probable end."""

AT_WORK = frozenset({Phase.INTENDING, Phase.CREATING, Phase.CONFIRMING, Phase.RUNNING})


class ExpectedEnd(NamedTuple):
    """When an AppWrapper is gone: not before ``early``, and probably at ``late``; ``firm`` ends are
    declared."""

    early: Instant
    late: Instant
    firm: bool


def declared(work: Workload, first: Instant, since: Instant) -> Instant:
    """When an attempt that begins at ``since`` is over at the latest, ``NEVER`` without a limit.
    The run limit counts from ``first`` (requeue.py)."""
    by_itself = since + work.attempt_limit if work.attempt_limit else NEVER
    return min(by_itself, max(since, first + work.run_limit)) if work.run_limit else by_itself


def at_latest(cluster: Cluster, entry: Entry) -> Instant:
    """When an AppWrapper that holds room is gone, its teardown included; ``NEVER`` without a limit,
    or if it keeps its room for a reset."""
    record = entry.dispatch
    if entry.keeps_room or record is None or entry.phase is Phase.HELD:
        return NEVER
    if entry.phase in TEARING_DOWN or entry.phase is Phase.GONE:
        return max(record.entered + teardown_time(cluster, entry), cluster.now + TEARDOWN_MARGIN)
    if entry.phase is Phase.KEEPING:
        return _gone(cluster, entry, record.entered, cluster.now)
    begun = record.confirmed or cluster.now  # no limit runs until all objects exist
    limit = declared(entry.workload, entry.limit_counts_from(begun), begun)
    return limit if limit == NEVER else _gone(cluster, entry, limit, cluster.now)


def if_begun(cluster: Cluster, entry: Entry, at: Instant) -> Instant:
    """When a waiting AppWrapper would be gone at the latest if it started at ``at``."""
    limit = declared(entry.workload, entry.limit_counts_from(at), at)
    return limit if limit == NEVER else _gone(cluster, entry, limit, at)


def _gone(cluster: Cluster, entry: Entry, failed: Instant, now: Instant) -> Instant:
    """When an AppWrapper that may fail at ``failed`` has been kept for inspection and torn down."""
    kept = failed + entry.workload.tolerance.deletion_on_failure_grace
    return max(kept, now) + teardown_time(cluster, entry)


def teardown_time(cluster: Cluster, entry: Entry) -> Duration:
    """How long the AppWrapper's teardown may keep its room."""
    return grace(cluster, entry) + TEARDOWN_MARGIN


def grace(cluster: Cluster, entry: Entry) -> Duration:
    """The longest grace period of the AppWrapper's pods: of their template, or of a pod itself if
    admission changed it."""
    return max(entry.workload.grace, cluster.capacity.pods.grace(entry.uid))


def of_present(cluster: Cluster, entry: Entry) -> ExpectedEnd:
    """The end of an AppWrapper that holds room."""
    late, record = at_latest(cluster, entry), entry.dispatch
    if record is None or entry.phase not in AT_WORK:
        return ExpectedEnd(cluster.now, late, late != NEVER)
    return _end(cluster, entry.workload, late, record.since)


def of_start(cluster: Cluster, entry: Entry, at: Instant) -> ExpectedEnd:
    """The end of a waiting AppWrapper, if it started at ``at``."""
    return _end(cluster, entry.workload, if_begun(cluster, entry, at), at)


def _end(cluster: Cluster, work: Workload, late: Instant, since: Instant) -> ExpectedEnd:
    """The end of a run; with a limit, the expectation only moves the earliest end."""
    early, likely = _expected(cluster, work, since)
    return ExpectedEnd(min(early, late), likely if late == NEVER else late, late != NEVER)


def _expected(cluster: Cluster, work: Workload, since: Instant) -> tuple[Instant, Instant]:
    """(not before, probably): now and never for a run that is longer than expected."""
    by_itself = since + work.run_expected
    if work.run_expected and by_itself > cluster.now:
        return by_itself, by_itself
    shape, over = cluster.capacity.shape(work.sets), max(0, cluster.now - since)
    quick = cluster.history.quantile(shape, QUICK, over)
    if not quick:
        return max(since, cluster.now), NEVER
    return since + quick, since + cluster.history.quantile(shape, SLOW, over)
