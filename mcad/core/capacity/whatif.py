"""What if these left? Where one gang would go if some AppWrappers gave back what they hold.

Leaving is tried and undone on copies: no book changes, and none may change while it goes on. To
begin costs a look at every node of the gang's pools, one who leaves or stays a look at the nodes
that it is on. What a gang may use then is what it could use at once: no node that is set aside for
reservations without one (C6), and none that is in somebody else's claim.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from mcad.core.capacity.arrears import Arrears
from mcad.core.capacity.enough import Enough, Later, Slots, Sum
from mcad.core.capacity.ledger import Ledger
from mcad.core.capacity.limits import WHAT_IF_SEARCH_MAX, WHAT_IF_WORK_MAX
from mcad.core.capacity.mixed import Plan
from mcad.core.capacity.packing import as_many_as_fit, pack
from mcad.core.capacity.podclass import slots
from mcad.core.capacity.pools import Pool, Row
from mcad.core.capacity.prospects import Part, Prospect
from mcad.core.capacity.reservations import Held, Reservations
from mcad.core.capacity.resources import Books, book, total
from mcad.core.capacity.roster import Roster
from mcad.core.capacity.tentative import TentativePlan
from mcad.core.model import Fit, Resources, Settings

_Holding = tuple[int, Books, Resources]
"""(rank, what would be free there, what of it is somebody's): a pod, or slots on one node."""


class Scene(NamedTuple):
    """The books that a question is about."""

    settings: Settings
    ledger: Ledger
    arrears: Arrears
    roster: Roster
    reservations: Reservations


class Lodging(NamedTuple):
    """What a gang would take: (node, amounts), or in a sum so much of whatever is there."""

    pods: Held
    anywhere: Resources


class WhatIf:
    """Where one gang would go if the AppWrappers left that have been told to.

    ``hopeless``: it would not fit even if all left, or what has no node has to find one first.
    ``steps`` counts the work so far, about a microsecond each. Beyond ``WHAT_IF_WORK_MAX`` for
    searching with several parts nothing fits any more; what was found before holds.
    """

    def __init__(
        self, scene: Scene, prospect: Prospect, lifted: Collection[str], *, remembers: bool
    ) -> None:
        self._scene = scene
        self._prospect = prospect
        self._searched = 0
        self._guests: dict[str, Lodging] = {}
        self._found: TentativePlan | None = None
        self._in_vain = False  # whether a search has found none for those who have left now
        self._missed: set[object] = set()  # kinds of coming back after which it did not fit
        self._known_to_hold: dict[str, list[_Holding]] = {}
        self._requests: dict[Resources, Resources] = {}
        self._spots: dict[str, tuple[int, Books]] = {}
        self._listed = scene.roster.held if remembers else scene.roster.found_to_hold
        self._on_nodes = scene.settings.fit is Fit.NODES
        rows = self._all_rows()
        claimed = {row.rank for row in rows if _is_anothers(row, lifted)}
        names = {name for part in prospect.parts for name, _ in part.pods.request}
        self._nodes = Later(scene.arrears.barred.keys() | claimed, names)
        usable = [row for row in rows if not self._nodes.barred(row)]
        for row in usable:
            if row.claimant:
                self._nodes.to_change(row)
        self.steps = len(usable) * len(prospect.parts)
        if self._on_nodes:
            self._test: Enough = Slots(
                prospect.parts, usable, self._nodes, scene.ledger.allocatable
            )
            concerned, enough = _once_emptied(prospect.parts, usable)
            self.hopeless = not enough or _weighs(scene.arrears, prospect.pools)
        else:
            self._test, concerned = self._sum_of(usable), usable
            self.hopeless = False
        self._least = self._test.least
        self._rows = {row.node.name: row for row in concerned}

    def _all_rows(self) -> list[Row]:
        """The nodes that the gang could go to; in a sum every node may count."""
        if not self._on_nodes:
            return list(self._scene.ledger.rows.values())
        pools = self._prospect.pools
        return list({rank: row for pool in pools for rank, row in pool.rows.items()}.values())

    def _sum_of(self, usable: list[Row]) -> Sum:
        pools = self._prospect.pools
        counted = [row for row in usable if any(row.rank in pool.rows for pool in pools)]
        test = Sum(self._prospect.demand, counted, self._nodes)
        test.give(self._scene.settings.potential_capacity, 1)
        test.give(self._scene.arrears.demand(), -1)
        return test

    # -- leaving and coming back -------------------------------------------------------------------

    def leave(self, uid: str) -> bool:
        """The AppWrapper gives back what its pods use and what is reserved for it. False if the
        gang could not use any of that, or lacks nothing more; it is given back all the same."""
        lacks = not (self._test.exact and self._test.suffices())
        self._missed.clear()
        return self._shift(uid, 1) and lacks

    def leave_in_turn(self, uids: Iterable[str], least: int) -> list[str]:
        """They leave in order, so many at ``least``, until there is enough. Returns who has left;
        who has nothing that the gang could use stays."""
        self._missed.clear()
        gone: list[str] = []
        for uid in uids:
            if self._shift(uid, 1):
                gone.append(uid)
                if len(gone) >= least and self._test.suffices():
                    break
        return gone

    def stay(self, uid: str) -> None:
        """One who was to leave does not."""
        self._shift(uid, -1)

    def come_back(self, uid: str) -> bool:
        """One who has left does not, if it fits all the same.

        Who gives back the same on a node of the same kind as somebody before him need not be tried:
        as long as nobody else leaves there is only less room than then.
        """
        kind = self._kind(uid)
        if kind in self._missed:
            return False
        self._shift(uid, -1)
        if self.fits():
            return True
        self._shift(uid, 1)
        self._missed.add(kind)
        return False

    def come_back_idle(self, gone: Sequence[str]) -> list[str]:
        """Those of them come back on whose nodes there is no more room for all that: for one part
        alone nobody misses them. Returns who has still left."""
        gained = self._test.gained() if self._test.exact else None
        if gained is None:
            return list(gone)
        known, left = self._known_to_hold, list[str]()
        for uid in gone:
            for rank, _, _ in known[uid]:
                if rank in gained:
                    left.append(uid)
                    break
            else:
                self._shift(uid, -1)
        return left

    def _shift(self, uid: str, times: int) -> bool:
        """What the AppWrapper has is free, or no more. It is done for thousands for one plan, so
        whatever can wait until somebody asks is left for then."""
        held = self._known_to_hold.get(uid)
        if held is None:
            held = self._known_to_hold[uid] = self._held(uid)
        least, changed = self._least, self._test.changed
        for rank, free, amounts in held:
            if times > 0:
                for name, n in amounts:
                    free[name] += n
                for name, n in least:
                    if free[name] >= n:
                        changed[rank] = free
                        break
            else:
                for name, n in amounts:
                    free[name] -= n
                changed[rank] = free
                if self._found is not None:
                    self._found.fell(rank)
        self.steps += 1 + len(held)
        self._in_vain = False
        if self._on_nodes:
            return bool(held)
        adrift = self._adrift(uid)
        self._test.give(adrift, times)
        return bool(held or adrift)

    def _kind(self, uid: str) -> object:
        """Equal for two whose coming back would be alike."""
        kind, held = self._test.kind, self._known_to_hold[uid]
        if len(held) == 1:
            rank, free, amounts = held[0]
            return kind(rank, free), amounts
        return tuple(sorted((kind(rank, free), amounts) for rank, free, amounts in held))

    def competes(self, other: WhatIf) -> bool:
        """Whether both could have pods on the same node."""
        return not self._rows.keys().isdisjoint(other._rows)

    def lodging(self, plan: Plan) -> Lodging:
        """What the gang itself would take, placed like that."""
        if not self._on_nodes:
            return Lodging((), self._prospect.demand)
        parts = self._prospect.parts
        placed = [(row.node.name, ((parts[n].pods.request, k),)) for n, row, k in plan]
        return Lodging(tuple((name, total(pods)) for name, pods in placed), ())

    def come(self, uid: str, lodging: Lodging) -> None:
        """Somebody who has nothing in the books has this, until he leaves."""
        self._guests[uid] = lodging
        self._known_to_hold.pop(uid, None)
        self._shift(uid, -1)

    def _held(self, uid: str) -> list[_Holding]:
        """What it has on the nodes that matter, in pieces. It is asked of thousands for one plan,
        so what is known is looked up here, without calls."""
        spots, requests = self._spots, self._requests
        found = []
        for name, request in self._guests[uid].pods if uid in self._guests else self._listed(uid):
            spot = spots.get(name)
            if spot is None:
                row = self._rows.get(name)
                if row is None:
                    continue
                spot = spots[name] = (row.rank, self._nodes.to_change(row))
            amounts = requests.get(request)
            if amounts is None:
                amounts = self._demanded(request)
            if amounts:
                found.append((*spot, amounts))
        return found if len(found) <= 1 else _by_node(found)

    def _demanded(self, request: Resources) -> Resources:
        """What of it the gang demands, too."""
        names = self._nodes.names
        amounts = tuple((name, n) for name, n in request if name in names)
        self._requests[request] = amounts
        return amounts

    def _adrift(self, uid: str) -> Resources:
        if uid in self._guests:
            return self._guests[uid].anywhere
        reservation = self._scene.reservations.by_uid.get(uid)
        allotments = reservation.allotments if reservation is not None else ()
        return total((one.pods.request, one.adrift) for one in allotments if one.adrift)

    # -- the answer ------------------------------------------------------------------------------

    def suffices(self) -> bool:
        """Whether there is room for each part by itself, and in sum for all of them: as good as
        ``fits`` for one part."""
        return not self.hopeless and self._test.suffices()

    @property
    def is_exact(self) -> bool:
        """Whether ``suffices`` says all, so that ``fits`` costs nothing."""
        return self._test.exact

    def fits(self) -> bool:
        """Whether the whole gang would fit."""
        if self._test.exact:
            return self.suffices()
        return self._is_there() or (self.suffices() and self._has_plan())

    def plan(self) -> Plan | None:
        """Where the whole gang would go, None if it does not fit. With ``fit: aggregate`` the plan
        may hold fewer pods than the gang has."""
        if not self.suffices():
            return None
        if not self._on_nodes:
            return as_many_as_fit(self._prospect, self._nodes)
        return self._found.whole() if self._has_plan() and self._found is not None else None

    def _is_there(self) -> bool:
        return self._found is not None and self._found.is_there()

    def _has_plan(self) -> bool:
        """The last plan that was found, if there is still room for it, that one mended, or another
        one."""
        if self._is_there() or (self._found is not None and self._found.mend()):
            return True
        if self._in_vain:
            return False
        plan = self._search()
        if plan is not None:
            self._found = TentativePlan(self._prospect.parts, self._nodes, plan)
        self._in_vain = plan is None
        return plan is not None

    def _search(self) -> Plan | None:
        budget = min(WHAT_IF_SEARCH_MAX, WHAT_IF_WORK_MAX - self._searched)
        if budget <= 0:
            return None
        outcome = pack(self._prospect, self._nodes, budget, self._scene.ledger.allocatable)
        work = outcome.looked + outcome.work
        self._searched, self.steps = self._searched + work, self.steps + work
        return outcome.plan


def _by_node(found: Iterable[_Holding]) -> list[_Holding]:
    """The same with one piece for each node."""
    sums: dict[int, tuple[Books, Books]] = {}
    for rank, free, amounts in found:
        book(sums.setdefault(rank, (free, {}))[1], amounts)
    return [(rank, free, tuple(amounts.items())) for rank, (free, amounts) in sums.items()]


def _is_anothers(row: Row, lifted: Collection[str]) -> bool:
    """Whether the node is in the claim of somebody whose claim stands."""
    return bool(row.claimant) and row.claimant not in lifted


def _once_emptied(parts: Sequence[Part], rows: Collection[Row]) -> tuple[list[Row], bool]:
    """The nodes on which any part has room once all AppWrappers have left, and whether each part by
    itself has enough then."""
    found: dict[int, Row] = {}
    enough = True
    for part in parts:
        request, cap, admitted = part.pods.request, part.pods.cap, part.pods.pool.rows
        missing = part.replicas
        for row in rows:
            if row.rank in admitted and (fit := slots(row.idle, request, cap)):
                missing -= fit
                found[row.rank] = row
        enough = enough and missing <= 0
    return list(found.values()), enough


def _weighs(arrears: Arrears, pools: Sequence[Pool]) -> bool:
    """Whether anything without a node could go to one of the pools."""
    return any(
        not pods.pool.rows.keys().isdisjoint(pool.rows) for pods in arrears.adrift for pool in pools
    )
