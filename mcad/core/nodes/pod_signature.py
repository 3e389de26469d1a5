"""Pod classes: pods that are equal for kube-scheduler share one verdict (core rule R1).

For identical pods the sum of slots over the nodes is exact, because every constraint is per node.
A class remembers the nodes where it has room and catches up with the ledger's log instead of
scanning again.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcad.core.nodes.ledger import ChangeLog
from mcad.core.nodes.pools import Pool, Profile, Row
from mcad.core.nodes.resources import PODS, Books, with_pod_slot
from mcad.core.nodes.shape import ClassKey
from mcad.core.nodes.sorted_nodes import Cut, with_at_least
from mcad.core.state.model import Resources
from mcad.core.state.quantity import CPU, EPHEMERAL_STORAGE, MEMORY
from mcad.core.state.work_bounds import ROOM_MAX, SCAN_STEP

UNBOUNDED = 1 << 62
"""Slots of a pod that takes nothing; no request is without ``pods``, so none has them."""

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


Rooms = list[tuple[int, int]]
"""Nodes by rank, and for how many pods of a request each has room."""


class PodClass:
    """Pods of one key in one capacity.

    ``holders`` counts its holders, ``looked`` the nodes it looked at so far. ``informed_at`` is the
    change up to which it knows what rose. When ``alarm`` pods may fit, the class is put among those
    that have ``rung``.

    What it remembers: ``_room``, nodes and how many pods each had room for at the last look, and
    their sum. If it is ``_complete``, no other node has room: the pool tells it of every rise.
    Otherwise ``_cut`` is where to look further. Without ``_room`` the sum alone is left, and is
    never too small: nodes that rise are added and never taken off.
    """

    def __init__(self, key: ClassKey, pool: Pool, log: ChangeLog) -> None:
        taken = with_pod_slot(tuple((name, n) for name, n in key.request if n > 0))
        self.key = key
        self.holders = 0
        self.looked = 0
        self.informed_at = 0
        self.alarm = UNBOUNDED
        self.request: Resources = tuple(sorted(taken, key=_scarcest_first))
        self.pool = pool
        self.cap = key.cap or UNBOUNDED
        self.log = log
        self._room: dict[int, int] | None = {}
        self._total = 0
        self._complete = False
        self._seen = -1
        self._cut: Cut | None = None
        self._witness: Profile | None = None
        self._sized_at = -1

    def retire(self) -> None:
        """It has no holder any more."""
        self._unfollow()

    def slots(self, row: Row) -> int:
        """How many pods fit on the node now."""
        return slots(row.free, self.request, self.cap)

    def rows_with_room(self) -> list[Row] | None:
        """Every node that may have room, if all are known. This changes nothing."""
        if not self._complete or self._room is None:
            return None
        rows, risen = self.pool.rows, (row.rank for row in self.pool.news.since(self.informed_at))
        return [rows[rank] for rank in dict.fromkeys((*self._room, *risen)) if rank in rows]

    def remembers_truly(self) -> bool:
        """Whether what is remembered holds for the nodes of now, but for changes that the class has
        not read yet. O(nodes); this changes nothing."""
        exact = {rank: n for rank, row in self.pool.rows.items() if (n := self.slots(row))}
        news = self.pool.news.since(self.informed_at) if self._complete else ()
        risen = {row.rank for row in news}
        room, changed, cut = self._room, self.log.since(self._seen), self._resumable()
        if room is None:
            most = self._total + sum(exact.get(rank, 0) for rank in risen)
            return not self._complete or most >= sum(exact.values())
        read = room.keys() - risen - set(room if changed is None else changed)
        beyond = {row.rank for row in cut.tail.rows[cut.at :]} if cut is not None else exact.keys()
        elsewhere = exact.keys() - room.keys()
        return (
            self._total == sum(room.values())
            and all(room[rank] == exact.get(rank, 0) for rank in read)
            and elsewhere <= (risen if self._complete else beyond)
        )

    # -- news ----------------------------------------------------------------------------------

    def rooms(self, rows: list[Row]) -> Rooms:
        """The room on those of the rows that have any; they have enough of the first resource of
        the request. The same for all classes with this request."""
        request = self.request
        if len(request) > 1:
            rows = with_at_least(rows, *request[1])
        return [(row.rank, now) for row in rows if (now := slots(row.free, request))]

    def inform(self, rooms: Rooms) -> None:
        """Of all nodes that gained room since it was informed, these have room for its pods, and so
        much now."""
        self.informed_at = self.pool.risen
        without, cap, room = self.pool.without, self.cap, self._room
        for rank, fit in rooms:
            if rank in without:
                continue
            self.looked += 1
            now = min(fit, cap)
            if room is None:
                self._total += now
            else:
                self._total += now - room.get(rank, 0)
                room[rank] = now
        if room is not None and len(room) > ROOM_MAX:
            self._room = None
        if self._total >= self.alarm:
            self.pool.rung[self] = None

    def lose_track(self) -> None:
        """Nodes gained room, and which is not reported."""
        self._complete = False
        self._start_anew()
        self._ring_if_awaited()

    def _ring_if_awaited(self) -> None:
        """No rise is reported any more, so the next one of the pool counts as one for it."""
        if self.alarm < UNBOUNDED:
            self.pool.rung[self] = None

    # -- questions -----------------------------------------------------------------------------

    def places(self) -> Iterator[Row]:
        """The nodes that may have room: those that had it at the last look, then those with the
        least of what is scarcest. Some may have none, some come twice."""
        self._read_news()
        rows = self.pool.rows
        complete, cut = self._complete, self._resumable()
        for rank in list(self._room or ()):
            if rank in rows:
                yield rows[rank]
        if complete and self._room is not None:
            return
        cut, step = cut or self.pool.tails.cut(self.request), SCAN_STEP
        while cut.left > 0:
            yield from self._worth_a_look(cut, step)
            cut, step = cut._replace(at=cut.at + step), 2 * step

    def at_most(self) -> int:
        """An upper bound of the pods that fit, known without a search."""
        self._catch_up()
        return self._total if self._complete else UNBOUNDED

    def missing(self, replicas: int, *, closely: bool = False) -> int:
        """0 if so many pods fit, which is exact; otherwise at least how many do not: by a sum if
        that is short, or ``closely``, by a look at the nodes."""
        self._catch_up()
        if self._total >= replicas and self._room is not None:
            return 0
        if self._complete and self._total < replicas:
            return replicas - self._total
        for name, n in () if closely else self.request:
            if (sums := self.pool.total.get(name, 0) // n) < replicas:
                return replicas - max(0, sums)
        self._scan(replicas)
        return max(0, replicas - self._total)

    def _read_news(self) -> None:
        """Read what gained room and was not reported yet, if it follows the news."""
        news = self.pool.news.since(self.informed_at) if self._complete else []
        if news:
            self.inform(self.rooms(with_at_least(news, *self.request[0])))

    def _catch_up(self) -> None:
        """Count again the nodes with room that changed, and those that gained room."""
        self._read_news()
        room, rows, seen = self._room, self.pool.rows, self._seen
        if room is None or seen == self.log.now:
            return
        self._seen = self.log.now
        changed = self.log.since(seen) if room else ()
        for rank in list(room) if changed is None else changed:
            if rank in room:
                self.looked += 1
                fit = self.slots(rows[rank]) if rank in rows else 0
                self._total += fit - room[rank]
                if fit:
                    room[rank] = fit
                else:
                    del room[rank]

    def _scan(self, replicas: int) -> None:
        """Look for room until there is enough, from where the last scan ended, if that is known."""
        cut = self._resumable()
        if cut is None or self._room is None:
            cut = self.pool.tails.cut(self.request)
            self._start_anew()
        room, step = self._room or {}, SCAN_STEP
        while self._total < replicas and cut.left > 0:
            self.looked += min(step, cut.left)
            self._add(room, self._worth_a_look(cut, step))
            cut, step = cut._replace(at=cut.at + step), 2 * step
        self._room, self._cut, self._seen = room, cut, self.log.now
        if cut.left <= 0:
            self._follow()
        else:
            self._unfollow()
        if len(room) > ROOM_MAX:
            self._room = None

    def _start_anew(self) -> None:
        self._room, self._total, self._cut = {}, 0, None

    def _resumable(self) -> Cut | None:
        """Where to look further, if every node before it is known to have no other room."""
        cut = self._cut
        resumable = cut is not None and not self._complete and self.pool.tails.is_current(cut)
        return cut if resumable and self._room is not None else None

    def _follow(self) -> None:
        if not self._complete:
            self._complete = True
            self.informed_at = self.pool.risen
            self.pool.news.follow(self)

    def _unfollow(self) -> None:
        if self._complete:
            self._complete = False
            self.pool.news.unfollow(self)
            self._ring_if_awaited()

    def _worth_a_look(self, cut: Cut, length: int) -> list[Row]:
        """Without the nodes that lack the next scarcest resource: cheaper than counting slots."""
        rows = self.pool.tails.after(cut, length)
        if without := self.pool.without:
            rows = [row for row in rows if row.rank not in without]
        for name, n in self.request:
            if name != cut.tail.resource:
                return with_at_least(rows, name, n)
        return rows

    def _add(self, room: dict[int, int], rows: list[Row]) -> None:
        total, request, cap = self._total, self.request, self.cap
        for row in rows:
            if row.rank not in room and (fit := slots(row.free, request, cap)):
                room[row.rank] = fit
                total += fit
        self._total = total

    def too_large(self) -> bool:
        """Whether no admitted node could take one such pod even if it were empty."""
        pool = self.pool
        if self._sized_at != pool.shifted:
            self._sized_at = pool.shifted
            if self._witness not in pool.profiles:
                large = (one for one in pool.profiles if slots(one.amounts, self.request))
                self._witness = next(large, None)
        return self._witness is None
