"""Judges AppWrappers with an attempt, whenever something about them has changed.

The spec counts, not its change, which may have come during the creation or before a restart.
"""

from __future__ import annotations

from mcad.core.attempts import create, orphans, pod_warnings, remains, teardown
from mcad.core.cluster import Cluster
from mcad.core.internal_errors import for_each
from mcad.core.running import completion, health, items, requeue, reset, stage, stalls
from mcad.core.state.bounds import JUDGE_STEPS, JUDGED_PER_PASS, POD_COUNTS_INTERVAL
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.milestones import Milestone
from mcad.core.state.timers import Timer
from mcad.core.status import pod_counts


def judge(cluster: Cluster) -> None:
    """Complete finished AppWrappers, take back unhealthy and unwanted ones, set the timers."""
    waiting = cluster.agenda.to_judge
    uids = cluster.agenda.take(waiting, JUDGED_PER_PASS)
    cluster.agenda.spent += JUDGE_STEPS * len(uids)
    for_each(cluster, cluster.known(uids), _judge)
    for uid in uids:
        waiting.pop(uid, None)  # its own changes were judged with the rest


def _judge(cluster: Cluster, entry: Entry) -> None:
    if entry.goes:
        remains.linger(cluster, entry)
        return
    match entry.phase:
        case Phase.CREATING:
            create.judge(cluster, entry)
        case Phase.CONFIRMING if completion.is_complete(cluster, entry):
            create.run(cluster, entry)  # its end is written instead of the confirmation (ADR 69)
            _judge_running(cluster, entry)
        case Phase.RUNNING:
            _judge_running(cluster, entry)
        case Phase.COMPLETED:
            completion.keep(cluster, entry)
        case Phase.KEEPING:
            reset.keep(cluster, entry)
        case Phase.PAUSING:
            reset.pause(cluster, entry)
    _report_pod_counts(cluster, entry)


def _report_pod_counts(cluster: Cluster, entry: Entry) -> None:
    """Report changed pods that no other write reports, when the last count is old."""
    is_due = entry.phase in pod_counts.LIVE and Timer.COUNTS not in entry.timers
    if not is_due or pod_counts.are_right(entry, cluster.capacity):
        return
    due = entry.counted_at + POD_COUNTS_INTERVAL
    if cluster.now < due:
        cluster.agenda.set_timer(entry, Timer.COUNTS, due)
    else:
        pod_counts.recount(entry, cluster.capacity, cluster.now)
        cluster.settle(entry)


_ENDS = (requeue.judge, health.judge, stage.judge_placement)
"""Each rule ends the attempt if it is broken, else returns until when it tolerates the state."""


def _judge_running(cluster: Cluster, entry: Entry) -> None:
    stage.note(cluster, entry)
    said = (entry.conditions.copy(), entry.record)
    if completion.judge(cluster, entry):
        return
    if entry.is_unwanted:
        teardown.take_back_unwanted(cluster, entry)
        return
    looks, entry.run.ends_at = items.judge(cluster, entry), 0
    for rule in _ENDS:
        if entry.phase is Phase.RUNNING:
            entry.run.ends_at = stage.earliest(entry.run.ends_at, rule(cluster, entry))
    if entry.phase is not Phase.RUNNING:
        return
    orphans.expire(cluster, entry)
    others = (act(cluster, entry) for act in (stage.give_up, pod_warnings.ask, stalls.report))
    cluster.agenda.set_timer(entry, Timer.HEALTH, stage.earliest(entry.run.ends_at, looks, *others))
    _note_ready(cluster, entry)
    if said != (entry.conditions, entry.record):
        cluster.settle(entry)  # after a restart no status is written that is on record already


def _note_ready(cluster: Cluster, entry: Entry) -> None:
    """Note for figures that as many of its pods run or have succeeded as it has."""
    pods = cluster.capacity.pods
    counts, expected = pods.counts(entry.uid), pods.expected(entry.uid)
    if 0 < expected <= counts.running + counts.succeeded - counts.leaving:
        cluster.note(Milestone.PODS_READY, entry)
