"""What if these left? Where one gang would go if some AppWrappers gave back what they hold.

Leaving is tried and undone on copies: no book changes, and none may change while it goes on. To
begin costs a look at every node of the gang's pools, one who leaves or stays a look at the nodes
that it is on. What a gang may use then is what it could use at once: no node that is set aside for
reservations without one (C6), and none that is in somebody else's claim.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, Protocol

from mcad.core.capacity.arrears import Arrears
from mcad.core.capacity.ledger import Ledger
from mcad.core.capacity.limits import EXACT_WORK_MAX, WHAT_IF_WORK_MAX
from mcad.core.capacity.mixed import Plan
from mcad.core.capacity.packing import Nodes, as_many_as_fit, pack
from mcad.core.capacity.podclass import PodClass, slots
from mcad.core.capacity.pools import Pool, Row
from mcad.core.capacity.prospects import Part, Prospect
from mcad.core.capacity.reservations import Reservations
from mcad.core.capacity.resources import Books, book, total
from mcad.core.capacity.roster import Roster
from mcad.core.model import Fit, Resources, Settings


class Later(Nodes):
    """The nodes as they would be: those with room for most pods first, so that a plan is on few."""

    def __init__(self, barred: Collection[int], names: Collection[str]) -> None:
        super().__init__(barred)
        self._names = names
        self._changed: dict[int, Books] = {}

    def free(self, row: Row) -> Books:
        """What would be free there; at least of what the gang demands."""
        return self._changed.get(row.rank, row.free)

    def to_change(self, row: Row) -> Books:
        """The same, to be changed: of what the gang demands alone."""
        free = self._changed.get(row.rank)
        if free is None:
            free = {name: row.free.get(name, 0) for name in self._names}
            self._changed[row.rank] = free
        return free

    def places(self, pods: PodClass) -> Iterator[Row]:
        """Every node that would have room for the class."""
        found = [
            (-fit, row.rank, row)
            for row in pods.pool.rows.values()
            if not self.barred(row) and (fit := slots(self.free(row), pods.request, pods.cap))
        ]
        return (row for _, _, row in sorted(found))


class _Test(Protocol):
    """Whether there is room for all parts of a gang, each taken by itself."""

    exact: bool

    def changed(self, row: Row, free: Books) -> None:
        """A node would have so much free."""

    def give(self, amounts: Resources, times: int) -> None:
        """So much would be free of what has no node."""

    def suffices(self) -> bool:
        """Whether nobody else has to leave for that."""


class _Slots:
    """Slots of each part on the nodes: ``exact`` if there is but one, else only necessary."""

    def __init__(self, parts: Sequence[Part], rows: Collection[Row], nodes: Nodes) -> None:
        self.exact = len(parts) <= 1
        self._parts = [
            (part.pods.request, part.pods.cap, _count(part, rows, nodes)) for part in parts
        ]
        self._missing = [
            part.replicas - sum(counts.values())
            for part, (_, _, counts) in zip(parts, self._parts, strict=True)
        ]

    def changed(self, row: Row, free: Books) -> None:
        for number, (request, cap, counts) in enumerate(self._parts):
            before = counts.get(row.rank)
            if before is not None:
                counts[row.rank] = now = slots(free, request, cap)
                self._missing[number] += before - now

    def give(self, amounts: Resources, times: int) -> None:
        """Nobody who has no node is in anybody's way: while there is such, nothing is planned."""

    def suffices(self) -> bool:
        return max(self._missing, default=0) <= 0


class _Sum:
    """``fit: aggregate``: the sum of what is free, each node clamped at 0; exact by definition."""

    exact = True

    def __init__(self, demand: Resources, rows: Collection[Row], nodes: Nodes) -> None:
        self._missing = dict(demand)
        self._lent = {row.rank: self._lends(nodes.free(row)) for row in rows}
        for lent in self._lent.values():
            book(self._missing, lent, -1)

    def _lends(self, free: Books) -> Resources:
        return tuple((name, max(0, free.get(name, 0))) for name in self._missing)

    def changed(self, row: Row, free: Books) -> None:
        before = self._lent.get(row.rank)
        if before is not None:
            self._lent[row.rank] = now = self._lends(free)
            book(self._missing, before)
            book(self._missing, now, -1)

    def give(self, amounts: Resources, times: int) -> None:
        book(self._missing, ((name, n) for name, n in amounts if name in self._missing), -times)

    def suffices(self) -> bool:
        return max(self._missing.values(), default=0) <= 0


class Scene(NamedTuple):
    """The books that a question is about."""

    settings: Settings
    ledger: Ledger
    arrears: Arrears
    roster: Roster
    reservations: Reservations


class Lodging(NamedTuple):
    """What a gang would take: (node, request, pods), or in a sum so much of whatever is there."""

    pods: tuple[tuple[str, Resources, int], ...]
    anywhere: Resources


class WhatIf:
    """Where one gang would go if the AppWrappers left that have been told to.

    ``hopeless``: it would not fit even if all left, or what has no node has to find one first.
    ``steps`` counts the work so far, about a microsecond each. Beyond ``WHAT_IF_WORK_MAX`` for
    searching with several parts nothing fits any more; what was found before holds.
    """

    def __init__(self, scene: Scene, prospect: Prospect, lifted: Collection[str]) -> None:
        self._scene = scene
        self._prospect = prospect
        self._searched = 0
        self._guests: dict[str, Lodging] = {}
        self._plan: Plan | None = None
        self._known = False  # whether the last search was about those who leave now
        self._on_nodes = scene.settings.fit is Fit.NODES
        rows = self._all_rows()
        claimed = {row.rank for row in rows if _is_anothers(row, lifted)}
        names = {name for part in prospect.parts for name, _ in part.pods.request}
        self._nodes = Later(scene.arrears.barred.keys() | claimed, names)
        usable = [row for row in rows if not self._nodes.barred(row)]
        for row in usable:
            if row.claimant:
                free = self._nodes.to_change(row)
                for name in free:
                    free[name] = row.unclaimed(name)
        self.steps = len(usable) * len(prospect.parts)
        if self._on_nodes:
            self._test: _Test = _Slots(prospect.parts, usable, self._nodes)
            concerned = [row for row in usable if _may_gain(row, prospect.parts)]
            owed = _weighs(scene.arrears, prospect.pools)
            self.hopeless = owed or not _fits_emptied(prospect.parts, concerned)
        else:
            self._test, concerned = self._sum_of(usable), usable
            self.hopeless = False
        self._rows = {row.node.name: row for row in concerned}

    def _all_rows(self) -> list[Row]:
        """The nodes that the gang could go to; in a sum every node may count."""
        if not self._on_nodes:
            return list(self._scene.ledger.rows.values())
        pools = self._prospect.pools
        return list({rank: row for pool in pools for rank, row in pool.rows.items()}.values())

    def _sum_of(self, usable: list[Row]) -> _Sum:
        pools = self._prospect.pools
        counted = [row for row in usable if any(row.rank in pool.rows for pool in pools)]
        test = _Sum(self._prospect.demand, counted, self._nodes)
        test.give(self._scene.settings.potential_capacity, 1)
        test.give(self._scene.arrears.demand(), -1)
        return test

    # -- leaving and staying ---------------------------------------------------------------------

    def leave(self, uid: str) -> bool:
        """The AppWrapper gives back what its pods use and what is reserved for it. False if the
        gang could not use any of that, or lacks nothing more; it is given back all the same."""
        lacks = not (self._test.exact and self._test.suffices())
        return self._move(uid, 1) and lacks

    def stay(self, uid: str) -> None:
        """One who was to leave does not."""
        self._move(uid, -1)

    def _move(self, uid: str, times: int) -> bool:
        touched: dict[str, Books] = {}
        for name, request, count in self._held(uid):
            row = self._rows.get(name)
            if row is not None:
                free = touched[name] = self._nodes.to_change(row)
                for resource, n in request:
                    if resource in free:
                        free[resource] += n * count * times
        for name, free in touched.items():
            self._test.changed(self._rows[name], free)
        adrift = () if self._on_nodes else self._adrift(uid)
        self._test.give(adrift, times)
        self.steps += 1 + len(touched)
        if touched or adrift:
            self._known = False
        return bool(touched or adrift)

    def lodging(self, plan: Plan) -> Lodging:
        """What the gang itself would take, placed like that."""
        if not self._on_nodes:
            return Lodging((), self._prospect.demand)
        parts = self._prospect.parts
        return Lodging(tuple((row.node.name, parts[n].pods.request, k) for n, row, k in plan), ())

    def come(self, uid: str, lodging: Lodging) -> None:
        """Somebody who has nothing in the books has this, until he leaves."""
        self._guests[uid] = lodging
        self._move(uid, -1)

    def _held(self, uid: str) -> Iterator[tuple[str, Resources, int]]:
        """(node, request, pods) of what it has."""
        if uid in self._guests:
            yield from self._guests[uid].pods
            return
        yield from self._scene.roster.taken_by(uid)
        reservation = self._scene.reservations.by_uid.get(uid)
        for one in reservation.allotments if reservation is not None else ():
            for name, count in one.at.items():
                yield name, one.pods.request, count

    def _adrift(self, uid: str) -> Resources:
        if uid in self._guests:
            return self._guests[uid].anywhere
        reservation = self._scene.reservations.by_uid.get(uid)
        allotments = reservation.allotments if reservation is not None else ()
        return total((one.pods.request, one.adrift) for one in allotments if one.adrift)

    # -- the answer ------------------------------------------------------------------------------

    def suffices(self) -> bool:
        """Whether there is room for each part by itself: as good as ``fits`` for one part."""
        return not self.hopeless and self._test.suffices()

    @property
    def is_exact(self) -> bool:
        """Whether ``suffices`` says all, so that ``fits`` costs nothing."""
        return self._test.exact

    def fits(self) -> bool:
        """Whether the whole gang would fit."""
        if not self.suffices():
            return False
        return self._test.exact or self._search() is not None

    def plan(self) -> Plan | None:
        """Where the whole gang would go, None if it does not fit. With ``fit: aggregate`` the plan
        may hold fewer pods than the gang has."""
        if not self.suffices():
            return None
        if not self._on_nodes:
            return as_many_as_fit(self._prospect, self._nodes)
        return self._search()

    def _search(self) -> Plan | None:
        if not self._known:
            budget = min(EXACT_WORK_MAX, WHAT_IF_WORK_MAX - self._searched)
            self._plan, self._known = None, True
            if budget > 0:
                weights = self._scene.ledger.allocatable
                found = pack(self._prospect, self._nodes, budget, weights)
                work = found.looked + found.work
                self._searched, self.steps = self._searched + work, self.steps + work
                self._plan = found.plan
        return self._plan


def _is_anothers(row: Row, lifted: Collection[str]) -> bool:
    """Whether the node is in the claim of somebody whose claim stands."""
    return bool(row.claimant) and row.claimant not in lifted


def _count(part: Part, rows: Collection[Row], nodes: Nodes) -> dict[int, int]:
    """By rank, for how many pods of the part there is room."""
    request, cap, admitted = part.pods.request, part.pods.cap, part.pods.pool.rows
    return {row.rank: slots(nodes.free(row), request, cap) for row in rows if row.rank in admitted}


def _may_gain(row: Row, parts: Sequence[Part]) -> bool:
    """Whether any part has room there once all AppWrappers have left."""
    return any(
        row.rank in part.pods.pool.rows and slots(row.idle, part.pods.request, 1) for part in parts
    )


def _fits_emptied(parts: Sequence[Part], rows: Collection[Row]) -> bool:
    """Whether each part by itself has room once all have left."""
    for part in parts:
        request, cap, admitted = part.pods.request, part.pods.cap, part.pods.pool.rows
        there = sum(slots(row.idle, request, cap) for row in rows if row.rank in admitted)
        if there < part.replicas:
            return False
    return True


def _weighs(arrears: Arrears, pools: Sequence[Pool]) -> bool:
    """Whether anything without a node could go to one of the pools."""
    return any(
        not pods.pool.rows.keys().isdisjoint(pool.rows) for pods in arrears.adrift for pool in pools
    )
