"""Whether there are enough slots for a gang on nodes from which AppWrappers are removed. Counts are
kept up to date node by node, so that asking is free."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from mcad.core.fit.exact import Need
from mcad.core.fit.feasible import Part
from mcad.core.fit.greedy import Nodes, size
from mcad.core.nodes.pod_signature import PodClass, slots
from mcad.core.nodes.pools import Row
from mcad.core.nodes.resources import Books, book
from mcad.core.state.model import Resources
from mcad.core.state.work_bounds import FILLED_PARTS_MAX, FILLS_MAX


class Later(Nodes):
    """The nodes as they would be. Those with room for most pods come first, so that a plan uses few
    nodes.

    ``room`` has, by rank, for how many pods of a class a node would have room, where that is
    counted.
    """

    def __init__(self, barred: Collection[int], names: Collection[str]) -> None:
        super().__init__(barred)
        self.known_choices = {}
        self.names = names
        self._changed: dict[int, Books] = {}
        self.room: dict[PodClass, dict[int, int]] = {}
        self._groups: list[list[Need]] | None = None

    def free(self, row: Row) -> Books:
        """What would be free there, at least of what the gang demands."""
        return self._changed.get(row.rank, row.free)

    def to_change(self, row: Row) -> Books:
        """What would be free there, to be changed: of all resources held there. At first that is
        what is free now, without regard to a reservation on the node."""
        free = self._changed.get(row.rank)
        if free is None:
            free = self._changed[row.rank] = self._unreserved(row)
        return free

    def _unreserved(self, row: Row) -> Books:
        free = row.free.copy()
        for name in self.names:
            free.setdefault(name, 0)
        book(free, row.reserved.items())
        return free

    def places(self, pods: PodClass) -> Iterator[Row]:
        """Every node that would have room for the class."""
        rows, room = pods.pool.base.rows, self.room.get(pods)
        if room is None:
            usable = [row for row in pods.pool.rows.values() if not self.barred(row)]
            room = {row.rank: slots(self.free(row), pods.request, pods.cap) for row in usable}
        order = sorted([(-fit, rank) for rank, fit in room.items() if fit])
        return iter([rows[rank] for _, rank in order])

    def groups(self, needs: Sequence[Need]) -> list[list[Need]]:
        """Made once: all searches are for one gang, of which each part is compared with each."""
        if self._groups is None:
            self._groups = super().groups(needs)
        return self._groups

    def listed(self, pods: PodClass) -> int:
        """How many nodes a search for the class puts in order."""
        return len(self.room.get(pods, ()))


class _Counted:
    """One part: for how many pods there is room on each node that has any, now and at first."""

    __slots__ = (
        "admitted",
        "cap",
        "first",
        "least",
        "missing",
        "name",
        "pool",
        "request",
        "room",
        "without",
    )

    def __init__(self, part: Part, free_on: Mapping[int, Books]) -> None:
        self.request, self.cap = part.pods.request, part.pods.cap
        self.name, self.least = self.request[0]
        self.pool = part.pods.pool
        # By rank: the pool has the nodes of the first that are not in the second. They are asked
        # for dozens of parts whenever something is removed, so they are looked up once.
        self.admitted, self.without = self.pool.base.rows, self.pool.without
        name, least, admitted, without = self.name, self.least, self.admitted, self.without
        if len(admitted) < len(free_on):  # a constraint may name a few nodes only
            free_on = {rank: free_on[rank] for rank in admitted if rank in free_on}
        self.room = {
            rank: fit
            for rank, free in free_on.items()
            if free.get(name, 0) >= least  # first: most nodes have no room
            and rank in admitted
            and rank not in without
            and (fit := slots(free, self.request, self.cap))
        }
        self.first = self.room.copy()
        self.missing = part.replicas - sum(self.room.values())

    def count(self, changed: Mapping[int, Books]) -> None:
        """These nodes have so much free now."""
        room, name, least = self.room, self.name, self.least
        admitted, without = self.admitted, self.without
        for rank, free in changed.items():
            before = 0
            if rank in room:
                before = room[rank]
            elif free[name] < least or rank not in admitted or rank in without:
                continue  # most nodes have no room and get none by one departure
            now = slots(free, self.request, self.cap)
            self.missing += before - now
            if now:
                room[rank] = now
            elif before:
                del room[rank]


class _Fill:
    """How much of a gang all nodes could take together, each filled as well as possible with pods
    of any parts; a pod counts as its size. Necessary for several parts, and it saves most searches
    that would find nothing."""

    def __init__(self, parts: Sequence[Part], weights: Mapping[str, int]) -> None:
        kinds = [
            (size(part.pods.request, weights), part.pods) for part in parts if not part.per_node
        ]
        self._kinds = sorted(kinds, key=lambda kind: -kind[0])
        self.most: dict[int, int] = {}  # by rank, of the nodes that had room for any pod
        self._known: dict[object, int] = {}
        self.missing = sum(
            size(part.pods.request, weights) * part.replicas for part in parts if not part.per_node
        )

    def count(self, rank: int, kind: object, free: Books) -> None:
        """The node has so much free now; many nodes are of one kind, so each kind is computed
        once."""
        now = self._known.get(kind)
        if now is None:
            kinds = [(n, pods) for n, pods in self._kinds if rank in pods.pool.rows]
            now = self._known[kind] = _best_fill(free, kinds)
        self.missing += self.most.get(rank, 0) - now
        self.most[rank] = now


def _best_fill(free: Books, kinds: Sequence[tuple[int, PodClass]]) -> int:
    """The most that pods of these kinds, given with their sizes, could take of a node; a bound
    where there are too many ways to fill it."""
    ways, bound = 1, 0
    for n, pods in kinds:
        times = slots(free, pods.request, pods.cap)
        ways *= times + 1
        bound += n * times
    return bound if ways > FILLS_MAX else _fill(free, kinds)


def _fill(free: Books, kinds: Sequence[tuple[int, PodClass]]) -> int:
    """The same, by trying all ways."""
    if not kinds:
        return 0
    (n, pods), others = kinds[0], kinds[1:]
    most = slots(free, pods.request, pods.cap)
    if not others:
        return n * most
    found = 0
    for times in range(most + 1):
        left = dict(free)
        book(left, pods.request, -times)
        found = max(found, n * times + _fill(left, others))
    return found


class Slots:
    """Slots of each part on the nodes: ``exact`` for one part, otherwise only necessary.

    A node without so much of any resource of ``least`` has no room for any part. ``changed`` has
    the nodes where something was given back or taken, by rank, with what would be free there; they
    are counted when asked.
    """

    def __init__(
        self,
        parts: Sequence[Part],
        rows: Collection[Row],
        nodes: Later,
        weights: Mapping[str, int],
    ) -> None:
        self.exact = len(parts) <= 1
        self.changed: dict[int, Books] = {}
        self._unfilled = {row.rank: nodes.free(row) for row in rows}  # that it has not looked at
        self._parts = [_Counted(part, self._unfilled) for part in parts]
        self._names = sorted({name for part in self._parts for name, _ in part.request})
        self._admitting: dict[int, int] = {}
        self._fill = _Fill(parts, weights) if 1 < len(parts) <= FILLED_PARTS_MAX else None
        least: Books = {}
        for part, counted in zip(parts, self._parts, strict=True):
            nodes.room[part.pods] = counted.room
            least[counted.name] = min(counted.least, least.get(counted.name, counted.least))
        self.least = tuple(least.items())

    def gained(self) -> Collection[int]:
        """The nodes with more room than at first, by rank."""
        self._look()
        return {
            rank
            for part in self._parts
            for rank, n in part.room.items()
            if n > part.first.get(rank, 0)
        }

    def kind(self, rank: int, free: Books) -> tuple[int, ...]:
        """What matters to the gang of a node with so much free: which parts the node admits, and
        the amounts."""
        admitting = self._admitting.get(rank)
        if admitting is None:
            admits = [rank in part.pool.rows for part in self._parts]
            admitting = self._admitting[rank] = sum(yes << i for i, yes in enumerate(admits))
        return (admitting, *[free.get(name, 0) for name in self._names])

    def give(self, amounts: Resources, times: int) -> None:
        """Unplaced amounts take nothing here: while there are any, nothing is planned."""

    def suffices(self) -> bool:
        """Whether no further AppWrapper has to be removed."""
        if self.changed:
            self._look()
        for part in self._parts:
            if part.missing > 0:
                return False
        return self._fill is None or self._is_filled(self._fill)

    def _look(self) -> None:
        for part in self._parts:
            part.count(self.changed)
        if self._fill is not None:
            self._unfilled.update(self.changed)
        self.changed.clear()

    def _is_filled(self, fill: _Fill) -> bool:
        rooms = [part.room for part in self._parts]
        for rank, free in self._unfilled.items():
            if rank in fill.most or any(rank in room for room in rooms):
                fill.count(rank, self.kind(rank, free), free)
        self._unfilled.clear()
        return fill.missing <= 0


class Sum:
    """The same for ``fit: aggregate``: the sum of what is free, each node clamped at 0; exact by
    definition."""

    exact = True

    def __init__(self, demand: Resources, rows: Collection[Row], nodes: Nodes) -> None:
        self.changed: dict[int, Books] = {}
        self.least = tuple((name, 1) for name, _ in demand)
        self._missing = dict(demand)
        self._lent = {row.rank: self._lends(nodes.free(row)) for row in rows}
        for lent in self._lent.values():
            book(self._missing, lent, -1)

    def _lends(self, free: Books) -> Resources:
        return tuple((name, max(0, free.get(name, 0))) for name in self._missing)

    def gained(self) -> None:
        """Nodes do not matter."""

    def give(self, amounts: Resources, times: int) -> None:
        """So much is given back that is on no node."""
        book(self._missing, ((name, n) for name, n in amounts if name in self._missing), -times)

    def suffices(self) -> bool:
        """Whether no further AppWrapper has to be removed."""
        return max(self.missing().values(), default=0) <= 0

    def missing(self) -> Books:
        """What the gang demands beyond what is free, below 0 if there is more than that."""
        for rank, free in self.changed.items():
            before = self._lent.get(rank)
            if before is not None:
                self._lent[rank] = now = self._lends(free)
                book(self._missing, before)
                book(self._missing, now, -1)
        self.changed.clear()
        return self._missing
