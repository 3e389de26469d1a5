"""Pod classes: pods that are equal for kube-scheduler share one verdict (core rule R1).

For identical pods the sum of slots over the nodes is exact, because every constraint is per node.
A class remembers the nodes where it has room and catches up with the ledger's log instead of
scanning again.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

from mcad.core.capacity.ledger import ChangeLog
from mcad.core.capacity.limits import ROOM_MAX, SCAN_STEP
from mcad.core.capacity.pools import Cut, Pool, Profile, Row, with_at_least
from mcad.core.capacity.resources import PODS, Books, with_pod_slot
from mcad.core.capacity.shapes import ClassKey
from mcad.core.model import Resources
from mcad.core.quantity import CPU, EPHEMERAL_STORAGE, MEMORY

UNBOUNDED = 1 << 62
"""Slots of a pod that takes nothing; no request is without ``pods``, so nobody has them."""

_PLENTIFUL = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
"""Every node has these. What only some nodes have tells soonest that there is no room."""


def slots(free: Books, request: Resources, cap: int = UNBOUNDED) -> int:
    """How many such pods fit into what is free, at most ``cap``."""
    room = cap
    for name, n in request:
        fit = free.get(name, 0) // n
        if fit < room:
            if fit <= 0:
                return 0
            room = fit
    return room


def _scarcest_first(amount: tuple[str, int]) -> tuple[int, str]:
    name = amount[0]
    return (_PLENTIFUL.index(name) if name in _PLENTIFUL else -1, name)


class PodClass:
    """Pods of one key in one capacity.

    ``holders`` counts who holds the class, ``looked`` the nodes it looked at so far.
    """

    __slots__ = (
        "_complete",
        "_cut",
        "_log",
        "_room",
        "_seen",
        "_sized_at",
        "_total",
        "_witness",
        "cap",
        "holders",
        "key",
        "looked",
        "pool",
        "request",
    )

    def __init__(self, key: ClassKey, pool: Pool, log: ChangeLog) -> None:
        taken = with_pod_slot(tuple((name, n) for name, n in key.request if n > 0))
        self.key = key
        self.holders = 0
        self.looked = 0
        self.request: Resources = tuple(sorted(taken, key=_scarcest_first))
        self.pool = pool
        self.cap = key.cap or UNBOUNDED
        self._log = log
        self._room: dict[int, int] | None = {}
        self._total = 0
        self._complete = False
        self._seen = -1
        self._cut: Cut | None = None
        self._witness: Profile | None = None
        self._sized_at = -1

    def twin(self, pool: Pool) -> PodClass:
        """A copy on a twin of the pool: what it is asked, this one does not remember."""
        twin = copy(self)
        twin.pool = pool
        twin._room = None if self._room is None else dict(self._room)
        return twin

    def slots(self, row: Row) -> int:
        """How many pods fit on the node now."""
        return slots(row.free, self.request, self.cap)

    def candidates(self) -> Iterator[Row]:
        """The nodes that may have room, those with the least room first.

        Some may have none, some come twice, and one that has left may still come: its books are
        empty then.
        """
        cut = self.pool.cut(self.request)
        yield from self.pool.risen_rows()
        yield from self._worth_a_look(self.pool.tail(cut)[cut.at :], cut)

    def places(self) -> Iterator[Row]:
        """The same, after the nodes that are known to have had room at the last look."""
        rows = self.pool.rows
        for rank in list(self._room or ()):
            if rank in rows:
                yield rows[rank]
        yield from self.candidates()

    def _worth_a_look(self, rows: list[Row], cut: Cut) -> list[Row]:
        """Without the nodes that lack the next scarcest resource: cheaper than counting slots."""
        for name, n in self.request:
            if name != cut.resource:
                return with_at_least(rows, name, n)
        return rows

    def missing(self, replicas: int) -> int:
        """0 if so many pods fit, which is exact; otherwise at least how many do not."""
        if self._caught_up():
            if self._room is not None and self._total >= replicas:
                return 0
            if self._complete and self._total < replicas:
                return replicas - self._total
        for name, n in self.request:
            if (sums := self.pool.total.get(name, 0) // n) < replicas:
                return replicas - max(0, sums)
        self._scan(replicas)
        return max(0, replicas - self._total)

    def _caught_up(self) -> bool:
        """Visit the nodes that changed since the last look; False if a scan is needed.

        Without ``_room`` the sum becomes an upper bound: changed nodes are added and never taken
        off. Without ``_complete`` it is a lower bound, because the scan ended early.
        """
        if self._seen == self._log.now:
            return True
        changed = self._log.since(self._seen) if self._seen >= 0 else None
        if changed is None:
            return False
        rows, room = self.pool.rows, self._room
        for rank in changed:
            row = rows.get(rank)
            now = self.slots(row) if row is not None else 0
            if room is None:
                self._total += now
                continue
            self._total += now - room.pop(rank, 0)
            if now:
                room[rank] = now
        self._seen = self._log.now
        if room is not None and len(room) > ROOM_MAX:
            self._forget_nodes()
        return self._seen >= 0

    def _scan(self, replicas: int) -> None:
        """Look for room until there is enough; go on where the last scan ended, if that is known
        and all that changed since has been visited."""
        cut, room = self._cut, self._room
        resumed = self._seen == self._log.now and not self._complete
        if not resumed or room is None or cut is None or cut.epoch != self.pool.epoch:
            room = self._room = {}
            self._total = 0
            cut = self.pool.cut(self.request)
            self._add(room, self.pool.risen_rows())
        rows, at, step = self.pool.tail(cut), cut.at, SCAN_STEP
        while self._total < replicas and at < len(rows):
            self._add(room, self._worth_a_look(rows[at : at + step], cut))
            at += step
            step *= 2
        self._complete = at >= len(rows)
        self._cut = Cut(cut.epoch, cut.resource, at)
        self._seen = self._log.now
        if len(room) > ROOM_MAX:
            self._forget_nodes()

    def _add(self, room: dict[int, int], rows: list[Row]) -> None:
        self.looked += len(rows)
        total, request, cap = self._total, self.request, self.cap
        for row in rows:
            if (fit := slots(row.free, request, cap)) and row.rank not in room:
                room[row.rank] = fit
                total += fit
        self._total = total

    def _forget_nodes(self) -> None:
        """Keep the sum only; a lower bound without its nodes cannot even be kept up to date."""
        self._room = None
        if not self._complete:
            self._seen = -1

    def too_large(self) -> bool:
        """Whether no admitted node could take one such pod even if it were empty."""
        pool = self.pool
        if self._sized_at != pool.shifted:
            self._sized_at = pool.shifted
            if self._witness not in pool.profiles:
                fitting = (p for p in pool.profiles if slots(p.amounts, self.request))
                self._witness = next(fitting, None)
        return self._witness is None
