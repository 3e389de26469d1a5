"""Assumed pods that have no node, and the room that is kept for them.

They stay subtracted from the sum of all pools that share nodes with theirs, and the nodes nearest
to having room for them are set aside for the pass (protocol C6): otherwise AppWrappers behind them
would take every bit of room that comes up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from heapq import nsmallest
from typing import NamedTuple

from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.pod_signature import PodClass, slots
from mcad.core.nodes.pools import KeptPool, Pool, Row, pools_sharing
from mcad.core.nodes.resources import total
from mcad.core.state.model import Resources
from mcad.core.state.work_bounds import EARMARKED_CLASSES_MAX, EARMARKED_NODES_MAX

_MILLION = 1_000_000


class _Picked(NamedTuple):
    """The nodes that were set aside for a class: how many were wanted, and (shortfall, rank)."""

    wanted: int
    nodes: list[tuple[tuple[int, int], int]]


class UnplacedPods:
    """``by_class``: pods by class, oldest class first. ``barred``: the nodes set aside for them, by
    rank.

    A shape that was refused because of unplaced pods is requeued when these become fewer. A class
    that no verdict has counted yet (``_weighed``) requeues nothing: every pod that ends is unplaced
    for a moment.
    """

    def __init__(self, ledger: Ledger, *, on_nodes: bool) -> None:
        self._ledger = ledger
        self._on_nodes = on_nodes
        self._earmarked_at = -1
        self._membership = 0
        self._weighed: dict[PodClass, None] = {}
        self._picked: dict[PodClass, _Picked] = {}
        self.by_class: dict[PodClass, int] = {}
        self.barred: dict[int, Row] = {}

    def add(self, pods: PodClass, more: int) -> None:
        """So many more pods of the class (fewer, if negative) have no node."""
        left = self.by_class.get(pods, 0) + more
        if left:
            self.by_class[pods] = left
        else:
            del self.by_class[pods]
        self._earmarked_at = -1
        self._ledger.log.tick()
        if more < 0 and pods in self._weighed:
            self._ease(pods.pool)
            if not left:
                del self._weighed[pods]

    def demand(self) -> Resources:
        """The sum of the requests of all unplaced pods."""
        return total((pods.request, n) for pods, n in self.by_class.items())

    def weighing_on(self, pools: tuple[Pool, ...]) -> list[tuple[Resources, int]]:
        """(request, pods) of the unplaced pods that could go to one of these pools; of all of them
        where nodes do not matter."""
        return [
            (pods.request, n)
            for pods, n in self.by_class.items()
            if not self._on_nodes or any(pods.pool.shared(pool) for pool in pools)
        ]

    def note_weighed(self) -> None:
        """A verdict has counted the unplaced pods: requeue refused shapes when these get fewer."""
        self._weighed.update(dict.fromkeys(self.by_class))

    def held_slots(self, pods: PodClass) -> int:
        """Slots of the class on nodes that are set aside."""
        rows = pods.pool.rows
        return sum(pods.slots(row) for rank, row in self.barred.items() if rank in rows)

    def new_pass(self) -> None:
        """Set aside, for each unplaced pod, the node of its pool that is nearest to having room."""
        if not self._on_nodes:
            return
        if self._weighed and self._membership != self._ledger.membership:
            self._ease(None)  # pools that shared nodes may share none any more
        self._membership = self._ledger.membership
        if self._nearest_may_differ():
            self._earmark()

    def _earmark(self) -> None:
        at = self._earmarked_at
        changed = self._ledger.log.since(at) if at >= 0 else None
        before, self.barred = self.barred, {}
        picked = {}
        for pods, n in list(self.by_class.items())[:EARMARKED_CLASSES_MAX]:
            wanted = min(n, EARMARKED_NODES_MAX - len(self.barred))
            few = None if changed is None else self._few(pods, wanted, [*before, *changed])
            picked[pods] = self._nearest(pods, wanted, pods.pool.rows if few is None else few)
            for _, rank in picked[pods].nodes:
                self.barred[rank] = pods.pool.rows[rank]
        self._picked = picked
        for rank, row in before.items():
            if rank not in self.barred:
                self._give_back(row)
        self._earmarked_at = self._ledger.log.now

    def _nearest_may_differ(self) -> bool:
        at = self._earmarked_at
        return at < 0 or any(max(p.pool.risen, p.pool.shifted) > at for p in self.by_class)

    def _nearest(self, pods: PodClass, n: int, ranks: Collection[int]) -> _Picked:
        """The ``n`` nodes that lack least for one pod, among those that could ever hold it."""
        rows = pods.pool.rows
        self._ledger.steps += len(ranks)
        found = (
            (_shortfall(rows[rank], pods), rank)
            for rank in ranks
            if rank not in self.barred and slots(rows[rank].profile.amounts, pods.request)
        )
        return _Picked(n, nsmallest(n, found))

    def _few(self, pods: PodClass, n: int, news: Iterable[int]) -> Collection[int] | None:
        """Nodes among which the nearest surely are: those picked before, and the news (nodes that
        changed, or were set aside). None if it may be any: one of those picked is taken, or lacks
        more than it did, so an unreported one may be nearer now."""
        known, rows = self._picked.get(pods), pods.pool.rows
        if known is None or known.wanted != n:
            return None
        for shortfall, rank in known.nodes:
            row = rows.get(rank)
            if row is None or rank in self.barred or _shortfall(row, pods) > shortfall:
                return None
        ranks = (*(rank for _, rank in known.nodes), *news)
        return [rank for rank in dict.fromkeys(ranks) if rank in rows]

    def _ease(self, pool: Pool | None) -> None:
        """Let the shapes that counted this pool be tried again; None stands for all pools."""
        change = self._ledger.log.gain()
        concerned: Collection[KeptPool] = self._ledger.pools()
        if pool is not None and self._on_nodes:
            concerned = pools_sharing(pool, concerned)
        for other in concerned:
            other.risen = change

    def _give_back(self, row: Row) -> None:
        change = self._ledger.log.gain()
        for pool in row.pools:
            pool.risen = change


def _shortfall(row: Row, pods: PodClass) -> tuple[int, int]:
    """What the node lacks for one pod, in millionths of the request: the worst, and the sum."""
    worst = together = 0
    for name, n in pods.request:
        lacking = n - row.free.get(name, 0)
        if lacking > 0:
            share = lacking * _MILLION // n
            worst, together = max(worst, share), together + share
    return (worst, together)
