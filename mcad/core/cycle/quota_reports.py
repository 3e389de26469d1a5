"""The statuses of QuotaSubtrees: which are written, and when.

Trees take turns, each at most once a second; a status that is already shown is not written again.
While no figure changes this costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcad.core.cluster import Cluster
from mcad.core.commands import RecordQuotaEvent, WriteQuota
from mcad.core.cycle import deleted_trees
from mcad.core.events import QuotaGone, QuotaRefused, QuotaSeen, QuotaWritten
from mcad.core.internal_errors import for_each
from mcad.core.quota.status import QuotaWrites, findings, view
from mcad.core.state.bounds import (
    FIGURES_STEPS,
    LISTED_PER_STEP,
    QUOTA_INTERVAL,
    RANK_STEPS,
    RANKED_PER_PASS,
    Tries,
)
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.reasons import EventReason


def heard(cluster: Cluster, event: QuotaSeen | QuotaGone | QuotaWritten | QuotaRefused) -> None:
    """Process observed changes of QuotaSubtrees, and answers to the writes of their statuses."""
    statuses = cluster.quota_statuses
    match event:
        case QuotaSeen():
            cluster.forest.seen(event.subtree)
            cluster.waiting.dispatch_pauses.trees_changed()
            statuses.writes.setdefault(event.subtree.uid, QuotaWrites()).shown = event.shown
            statuses.want(event.subtree.tree)
        case QuotaGone():
            cluster.forest.gone(event.uid)
            cluster.waiting.dispatch_pauses.trees_changed()
            statuses.writes.pop(event.uid, None)
        case QuotaWritten() | QuotaRefused():
            writes = statuses.writes.get(event.uid, QuotaWrites())
            if writes.flying is None or writes.serial != event.serial:
                return
            if isinstance(event, QuotaWritten):
                writes.shown, writes.tries = writes.flying, Tries()
            else:  # repeated at growing intervals; the watch brings what the object shows
                pause = writes.tries.pause(event.answer)
                writes.not_before = cluster.now + max(QUOTA_INTERVAL, pause)
                writes.is_stale = True
            writes.flying = None
            if writes.is_stale:
                statuses.want(cluster.forest.subtrees[event.uid].tree, writes.not_before)


def expect_trees(cluster: Cluster, restored: Iterable[Entry]) -> None:
    """Expect, after a start, the trees in which AppWrappers are recorded as charged: they may be
    about to return. A foreign AppWrapper keeps its record for ever, so it does not count."""
    known = [entry for entry in restored if entry.phase is not Phase.FOREIGN]
    deleted_trees.recall(cluster, known)
    for name in sorted({tree for entry in known for tree, _ in entry.path}):
        cluster.forest.expect(name, deleted_trees.since(cluster, name))


def rank_anew(cluster: Cluster) -> None:
    """Rank the AppWrappers in line by their places in the present trees, some in each pass."""
    agenda = cluster.agenda
    for _ in range(RANKED_PER_PASS):
        if not agenda.to_rank or agenda.is_spent:
            break
        for entry in cluster.known(agenda.take(agenda.to_rank, 1)):
            agenda.spent += RANK_STEPS * (1 + len(entry.workload.sets))
            for_each(cluster, (entry,), _rank_anew)
    if agenda.to_rank:
        agenda.carry_over()


def _rank_anew(cluster: Cluster, entry: Entry) -> None:
    cluster.waiting.rank_anew(entry)


def refresh(cluster: Cluster) -> None:
    """Apply QuotaSubtrees that came, changed and went; a deleted QuotaSubtree counts until its
    grace ends. Statuses stop naming trees that are gone for good."""
    before = dict.fromkeys(cluster.forest.trees)
    is_other = cluster.forest.refresh(cluster.now)
    if cluster.forest.absent.next_change:
        cluster.agenda.wake_at(cluster.forest.absent.next_change)
    deleted_trees.record(cluster)
    for news in cluster.forest.absent.take_news():
        if news.is_over:
            before[news.tree] = None
        reason = EventReason.QUOTA_DROPPED if news.is_over else EventReason.QUOTA_ABSENT
        cluster.emit(RecordQuotaEvent(news.subtree, True, reason, "Limit", news.text))
    if is_other:
        cluster.agenda.to_rank = dict.fromkeys(cluster.waiting.queue.uids())
        cluster.agenda.spent += len(cluster.agenda.to_rank) // LISTED_PER_STEP
    gone = before.keys() - cluster.forest.trees.keys()
    for entry in cluster.entries.values() if gone else ():
        if not gone.isdisjoint(tree for tree, _ in entry.path):
            entry.path = tuple(one for one in entry.path if one[0] not in gone)
            cluster.settle(entry)


def report_late(cluster: Cluster) -> None:
    """Write, before other work of the pass, the statuses of a tree that takes most of a pass, or
    that the passes of a whole second had no time for."""
    statuses = cluster.quota_statuses
    turn, until = statuses.next(), statuses.put_off_until
    if turn is not None and until is not None and until <= cluster.now:
        _report_tree(cluster, turn[1])


def report(cluster: Cluster) -> None:
    """Write the statuses of one tree, if a tree is due and the pass has work left; the next tree
    follows in another pass."""
    statuses = cluster.quota_statuses
    for name in cluster.forest.take_moved():
        statuses.want(name)
    turn = statuses.next()
    statuses.put_off_until = None
    if turn is not None and turn[0] <= cluster.now:
        if cluster.agenda.is_spent:
            statuses.put_off_until = turn[0] + QUOTA_INTERVAL
        elif not cluster.agenda.has_work_for(_report_steps(cluster, turn[1])):
            statuses.put_off_until = cluster.now
        else:
            _report_tree(cluster, turn[1])
            turn = statuses.next()
    if turn is not None:
        cluster.agenda.wake_at(max(turn[0], cluster.now))


def _report_steps(cluster: Cluster, name: str) -> int:
    return FIGURES_STEPS * sum(len(one.children) for one in cluster.forest.subtrees_of(name))


def _report_tree(cluster: Cluster, name: str) -> None:
    statuses, now = cluster.quota_statuses, cluster.now
    subtrees = cluster.forest.subtrees_of(name)
    statuses.has_its_say(name, now, exists=bool(subtrees))
    cluster.agenda.spent += _report_steps(cluster, name)
    for finding in findings(cluster.forest, name, cluster.admission.demand):
        uid = finding.subtree.uid
        writes = statuses.writes[uid]
        said = view(finding, writes.shown, now)
        if writes.flying is not None:
            writes.is_stale = True
        elif said != writes.shown and now < writes.not_before:
            statuses.want(name, writes.not_before)
        elif said != writes.shown:
            writes.serial += 1
            writes.flying, writes.is_stale = said, False
            writes.not_before = now + QUOTA_INTERVAL
            cluster.emit(WriteQuota(uid, writes.serial, said))
