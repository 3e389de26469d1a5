"""Deferred borrowing: a borrower waits for AppWrappers that ask within their share, if both want
the same nodes.

Otherwise a borrower would take room before the owner of the share had enough for a whole gang, and
would be evicted minutes later. Reclaim evicts nothing within ``minRunTime`` of its dispatch, so an
AppWrapper within its share gets its room within that time, if evicting borrowers can provide it. No
AppWrapper keeps borrowers waiting for longer, and no borrower that fits waits for longer in all,
however many AppWrappers of an owner follow each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from mcad.core.cluster import Cluster
from mcad.core.queue.equivalence import NO_HEAD, EquivalenceClass
from mcad.core.state.bounds import OWNERS_MAX
from mcad.core.state.units import Duration, Instant


def ask_back(cluster: Cluster, eqclass: EquivalenceClass) -> None:
    """Note a refusal: if the head of the class asks within its share, borrowers wait for it from
    now on."""
    if not (cluster.waiting.turns.has_owners and eqclass.path):
        return
    if cluster.waiting.turns.has_its_share(eqclass) or not _may_ask_back(cluster, eqclass):
        eqclass.asks_back = NO_HEAD
        return
    first = eqclass.first().uid
    if eqclass.asks_back[0] != first:
        eqclass.asks_back = (first, cluster.now)
    if cluster.now < _until(cluster, eqclass):
        cluster.waiting.queue.ask_back[eqclass] = None


class DeferredBorrowing:
    """The classes that keep borrowers waiting in one pass. They are looked up when the first
    borrower is about to start, and only until the first class for which it has to wait."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._owners: list[EquivalenceClass] = []
        self._others = iter(list(islice(cluster.waiting.queue.ask_back, OWNERS_MAX)))

    def waits(self, eqclass: EquivalenceClass) -> bool:
        """Whether the head of the class, which fits, borrows and has to let another AppWrapper go
        first; requests a pass for the end of the wait."""
        cluster, now = self._cluster, self._cluster.now
        if not (cluster.waiting.queue.ask_back and eqclass.path) or _is_within(cluster, eqclass):
            return False
        until = eqclass.count_deferred(now) + _longest(cluster)
        if now >= until or not self._is_behind_an_owner(eqclass):
            eqclass.deferred_at = 0
            return False
        eqclass.deferred_at = now
        cluster.agenda.wake_at(until)
        return True

    def _is_behind_an_owner(self, eqclass: EquivalenceClass) -> bool:
        """Whether an AppWrapper of another leaf wants the same nodes within its share."""
        leaves, compete = dict(eqclass.path), self._cluster.capacity.compete
        return any(
            any(leaf != leaves.get(tree, leaf) for tree, leaf in owner.path)
            and compete(owner.shape, eqclass.shape)
            for owner in chain(self._owners, self._more())
            if owner.members
        )

    def _more(self) -> Iterator[EquivalenceClass]:
        """The classes whose head asks within its share and has kept borrowers waiting for less than
        ``minRunTime`` (in which running AppWrappers may not be evicted) and the time until the next
        search."""
        cluster = self._cluster
        for eqclass in self._others:
            ask_back(cluster, eqclass)
            until = _until(cluster, eqclass)
            if cluster.now < until:
                cluster.agenda.wake_at(until)
                self._owners.append(eqclass)
                yield eqclass
            else:
                # The class may have left the queue in this pass.
                cluster.waiting.queue.ask_back.pop(eqclass, None)


def _until(cluster: Cluster, eqclass: EquivalenceClass) -> Instant:
    return eqclass.asks_back[1] + _longest(cluster)


def _longest(cluster: Cluster) -> Duration:
    return cluster.settings.min_run_time + cluster.settings.backoff


def _may_ask_back(cluster: Cluster, eqclass: EquivalenceClass) -> bool:
    if not eqclass.members or eqclass.refusal is None or eqclass.refusal.reason.is_impossible:
        return False
    entry = eqclass.first()
    if entry.workload.never_preempts or cluster.now < entry.eviction_patience.until:
        return False
    return _is_within(cluster, eqclass)


def _is_within(cluster: Cluster, eqclass: EquivalenceClass) -> bool:
    return cluster.forest.is_nominal(eqclass.path, cluster.admission.demand(eqclass.shape))
