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
from mcad.core.capacity.enough import Counted, Enough, Later, Slots, Sum
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
        self._plan: Plan | None = None
        self._found: Plan | None = None  # the last one, which takes
        self._taken: dict[int, tuple[Row, Books]] = {}
        self._touched: dict[int, None] = {}  # where anything changed since that surely had room
        self._known = False  # whether the last search was about those who leave now
        self._left: dict[str, None] = {}
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
        if times > 0:
            self._left[uid] = None
        else:
            del self._left[uid]
        return self._shift(uid, times)

    def _shift(self, uid: str, times: int) -> bool:
        held = self._known_to_hold.get(uid)
        if held is None:
            held = self._known_to_hold[uid] = self._held(uid)
        changed = self._test.changed
        for rank, free, amounts in held:
            for name, n in amounts:
                free[name] += n * times
            changed(rank, free)
            self._touched[rank] = None
        adrift = () if self._on_nodes else self._adrift(uid)
        if adrift:
            self._test.give(adrift, times)
        self.steps += 1 + len(held)
        self._known = False
        return bool(held or adrift)

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
        self._left.pop(uid, None)
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
        return found

    def _demanded(self, request: Resources) -> Resources:
        """What of it the gang demands, too."""
        names = self._nodes.names
        amounts = tuple((name, n) for name, n in request if name in names)
        self._requests[request] = amounts
        return amounts

    @property
    def only_counts(self) -> bool:
        """Whether it is a matter of the slots of one part: then those who leave and come back in
        turn are moved far faster than one by one."""
        return self._test.sole is not None

    def leave_in_turn(self, uids: Iterable[str]) -> list[str]:
        """They leave in order until there is room; who has nothing that matters stays. Returns who
        has left. For where it ``only_counts``."""
        part, changed = self._counted, self._test.changed
        known = self._known_to_hold
        gone: list[str] = []
        for uid in uids:
            if part.missing <= 0:
                break
            held = known.get(uid)
            if held is None:
                held = known[uid] = self._held(uid)
            for rank, free, amounts in held:
                for name, n in amounts:
                    free[name] += n
                if free[part.name] >= part.least:
                    changed(rank, free)
            if held:
                gone.append(uid)
        self._left.update(dict.fromkeys(gone))
        self.steps += 2 * len(gone)
        self._known = False
        return gone

    def come_back_in_turn(self, gone: Sequence[str], *, to_the_end: bool) -> list[str]:
        """From the last to the first those come back who are not missed; all of them, or (not
        ``to_the_end``) those before the first who is. Returns who has still left."""
        part, kept = self._counted, list[str]()
        for number in range(len(gone) - 1, -1, -1):
            uid = gone[number]
            self._shift(uid, -1)
            if part.missing <= 0:
                del self._left[uid]
                continue
            self._shift(uid, 1)
            kept.append(uid)
            if not to_the_end:
                return [*gone[:number], uid]
        return kept[::-1]

    @property
    def _counted(self) -> Counted:
        sole = self._test.sole
        if sole is None:
            raise NotImplementedError  # several parts, or a sum, are asked one by one
        return sole

    def come_back(self, uids: Collection[str]) -> None:
        """All of these who had left do not: faster than one by one."""
        back = set(uids)
        left = [uid for uid in self._left if uid not in back]
        self._nodes.reset()
        self._test.reset()
        self._left.clear()
        self._touched.update(dict.fromkeys(self._taken))
        for uid in self._guests:
            self._shift(uid, -1)
        for uid in left:
            self._move(uid, 1)

    def without_idle(self, gone: Sequence[str]) -> list[str]:
        """Those ``gone`` without those on whose nodes there is no more room for all that: these
        have come back. For one part alone nobody misses them."""
        gained = self._test.gained()
        if gained is None:
            return list(gone)
        left: list[str] = []
        for uid in gone:
            for rank, _, _ in self._known_to_hold[uid]:
                if rank in gained:
                    left.append(uid)
                    break
        if len(left) < len(gone):
            self.come_back(set(gone).difference(left))
        return left

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
        """The last plan that was found, if there is still room for it, else another one."""
        if not self._known:
            self._known = True
            self._plan = self._found if self._is_there() else self._search_anew()
        return self._plan

    def _search_anew(self) -> Plan | None:
        budget = min(WHAT_IF_SEARCH_MAX, WHAT_IF_WORK_MAX - self._searched)
        if budget <= 0:
            return None
        outcome = pack(self._prospect, self._nodes, budget, self._scene.ledger.allocatable)
        work = outcome.looked + outcome.work
        self._searched, self.steps = self._searched + work, self.steps + work
        if outcome.plan is not None:
            self._found, self._taken = outcome.plan, {}
            self._touched.clear()
            for part, row, count in outcome.plan:
                taken = self._taken.setdefault(row.rank, (row, {}))[1]
                book(taken, self._prospect.parts[part].pods.request, count)
        return outcome.plan

    def _is_there(self) -> bool:
        """Whether there is still room for the last plan that was found."""
        if self._found is None:
            return False
        self.steps += len(self._touched)
        for rank in self._touched:
            row, books = self._taken.get(rank, (None, {}))
            if row is not None:
                free = self._nodes.free(row)
                if any(free.get(name, 0) < n for name, n in books.items()):
                    return False
        self._touched.clear()
        return True


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
