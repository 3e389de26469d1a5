"""A snapshot of nodes and shares: where one gang would go if some AppWrappers were removed.

Removing and restoring change a copy of the columns, never the books, and no event may come in
between. Creating a snapshot costs about as much as a verdict, removing or restoring an AppWrapper a
look at its nodes. The gang may use what it could use at once: no node that is set aside for
unplaced pods (C6) or reserved for another AppWrapper.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from mcad.core.assumed.assumed import Assumed, Held
from mcad.core.assumed.pod_index import PodIndex
from mcad.core.assumed.unplaced import UnplacedPods
from mcad.core.fit.prospect import Prospect
from mcad.core.nodes.columns import Mask, counted
from mcad.core.nodes.ledger import Ledger, Plan
from mcad.core.nodes.resources import Books, book, total
from mcad.core.snapshot.quota import Seat, Shares
from mcad.core.snapshot.way import Way
from mcad.core.state.model import Resources
from mcad.core.state.work_bounds import (
    PART_STEPS,
    ROWS_PER_STEP,
    SHIFT_STEPS,
    WAYS_WORK_MAX,
    WHAT_IF_LOOKS_MAX,
)


class View(NamedTuple):
    """The books of the nodes that a snapshot reads."""

    ledger: Ledger
    unplaced_pods: UnplacedPods
    pod_index: PodIndex
    assumed: Assumed


class Variants(NamedTuple):
    """A gang: the ``whole`` of it, and its variants in each choice of topology domains, in order of
    preference: first the variants that it ``prefers``, then those that ``may`` be used."""

    whole: Prospect
    prefers: Sequence[Prospect]
    may: Sequence[Prospect]


class Where(NamedTuple):
    """The nodes that a gang may use: ``only`` names them (none: all). ``beside``: also what is left
    of nodes that are reserved for others, as if it started at once. ``fullest``: a plan takes the
    nodes with the least room that suffices, else the fewest nodes."""

    only: Collection[str] = ()
    beside: bool = False
    fullest: bool = False


ANYWHERE = Where()


class Planned(NamedTuple):
    """The room that a gang would hold: (node, amounts), or where only sums count the amounts
    ``anywhere``; and its places in the quota trees."""

    pods: Held
    anywhere: Resources
    seats: tuple[Seat, ...]


class Snapshot:
    """One gang, and the AppWrappers removed for it. ``shares`` is the quota side, ``where`` says
    which nodes the gang may use. The gang fits if it fits in one of its ways: so no AppWrapper is
    evicted, and no room is reserved, unless one whole domain comes free (ADR 49).

    ``hopeless``: the gang would not fit even without all other AppWrappers, or unplaced pods have
    to find nodes first. The work so far is ``steps``, about a microsecond each.
    """

    def __init__(
        self,
        view: View,
        gang: Variants,
        lifted: Collection[str],
        shares: Shares,
        where: Where = ANYWHERE,
    ) -> None:
        self.shares = shares
        self._view = view
        self._prospect = prospect = gang.whole
        self._on_nodes = prospect.on_nodes
        self._spent = self._looked = 0
        self._planned: dict[str, Planned] = {}
        names = {name for part in prospect.parts for name, _ in part.pods.request}
        self._free = view.ledger.free.copy(names)
        self._columns = {name: self._free.column(name) for name in names}
        self._unplaced: Books = dict(view.unplaced_pods.demand())
        usable = self._open_to_all(lifted, where)
        self._ways = self._made(gang, usable, most_first=not where.fullest)
        self._ways_at: dict[int, list[Way]] = {}
        for way in self._ways:
            for at in way.concerned.nonzero()[0].tolist():
                self._ways_at.setdefault(at, []).append(way)
        self.hopeless = shares.hopeless or all(way.hopeless for way in self._ways)
        if not self._on_nodes:
            self._give(view.unplaced_pods.demand(), -1)
            for uid in view.assumed.reserved.keys() & lifted:
                self._give(self._held_anywhere(uid), 1)

    def _open_to_all(self, lifted: Collection[str], where: Where) -> Mask:
        """The rows that any gang may use, with the room of lifted reservations given back."""
        ledger, assumed, set_aside = self._view.ledger, self._view.assumed, self._view.unplaced_pods
        usable = ~ledger.nothing() if set_aside.usable is None else set_aside.usable
        for owner in assumed.reserved if self._on_nodes else ():
            for row in [ledger.rows[name] for name in assumed.nodes_of(owner)]:
                if row.reserved_for in lifted:
                    self._add(row.at, row.reserved.items(), 1)
                elif row.reserved_for and not where.beside:
                    usable[row.at] = False
        if where.only:
            among = ledger.nothing()
            among[[ledger.rows[name].at for name in where.only if name in ledger.rows]] = True
            usable &= among
        return usable

    def _made(self, gang: Variants, usable: Mask, *, most_first: bool) -> list[Way]:
        """A way for each variant, as far as the work for ways suffices: the possible variants are
        made first, then the preferred ones. The result is in order of preference."""
        ledger, ways, last = self._view.ledger, list[Way](), len(gang.may)
        for one in (*gang.may, *gang.prefers):
            way = Way(one, self._free, one.mask & usable, ledger, most_first=most_first)
            if self._on_nodes and self._view.unplaced_pods.weighing_on(one.nodes):
                way.hopeless = True
            ways.append(way)
            self._spent += len(one.parts) * (PART_STEPS + ledger.size // ROWS_PER_STEP)
            if self._spent >= WAYS_WORK_MAX:
                break
        ways = ways[last:] + ways[:last]
        return [way for way in ways if not way.hopeless] or ways

    # -- work ----------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """The work so far."""
        return self._spent + sum(way.steps for way in self._ways)

    def spend(self, steps: int) -> None:
        """Count work outside of the snapshot."""
        self._spent += steps

    @property
    def is_spent(self) -> bool:
        """Whether the work bound of one plan is reached: no further AppWrapper is removed."""
        return self._looked >= WHAT_IF_LOOKS_MAX or all(way.is_spent for way in self._ways)

    # -- remove and restore --------------------------------------------------------------------

    def remove(self, uid: str) -> bool:
        """Give back the AppWrapper's pods, assumed pods and charge. Returns False, without a
        change, if the gang could not use any of that or lacks nothing any more."""
        lacks = not any(way.is_exact and way.is_enough for way in self._ways)
        useful = self.shares.remove(uid)
        useful = (self._shift(uid, 1) and lacks) or useful
        if not useful:
            self.restore(uid)
        return useful

    def remove_anyway(self, uid: str) -> None:
        """Remove the AppWrapper, whether that is of use or not."""
        self.shares.remove(uid)
        self._shift(uid, 1)

    def remove_leaving_pods(self) -> None:
        """Give back the room of pods of no AppWrapper that terminate. Only ``partial`` counts it:
        such pods may stay for ever."""
        rows = self._view.ledger.rows
        for use in self._view.pod_index.leaving.values():
            row = rows.get(use.pod.charged)
            if row is not None:
                self._add(row.at, use.request, 1)
                self._spent += 1

    def restore(self, uid: str) -> None:
        """Take again the room and the charge that the AppWrapper gave back."""
        self.shares.restore(uid)
        self._shift(uid, -1)

    def likeness(self, uid: str) -> object:
        """A key that is equal for two removed AppWrappers that give the gang as much, on nodes that
        are equal for the gang: the two could change places."""
        rows, on_nodes = self._view.ledger.rows, list[object]()
        for name, amounts in self._held(uid):
            row = rows.get(name)
            if row is not None and row.at in self._ways_at:
                admitted = [(way, way.admitted(row.at)) for way in self._ways_at[row.at]]
                free = [int(column[row.at]) for column in self._columns.values()]
                on_nodes.append((*admitted, *free, amounts))
        anywhere = () if self._on_nodes else self._held_anywhere(uid)
        return (tuple(on_nodes), anywhere, self.shares.account(uid) if self.shares.seats else ())

    def _shift(self, uid: str, times: int) -> bool:
        """Give back the AppWrapper's room (``times`` 1), or take it again (-1). Returns whether the
        gang could use any of it."""
        found, rows, ways_at = False, self._view.ledger.rows, self._ways_at
        for name, amounts in self._held(uid):
            row = rows.get(name)
            if row is not None and row.at in ways_at:
                self._add(row.at, amounts, times)
                found = True
                for way in ways_at[row.at]:
                    way.count(row.at)
                    self._looked += way.parts
        self._spent += SHIFT_STEPS
        unplaced = () if self._on_nodes else self._held_anywhere(uid)
        if unplaced:
            self._give(unplaced, times)
        return found or bool(unplaced)

    def _add(self, at: int, amounts: Iterable[tuple[str, int]], times: int) -> None:
        """Add ``times`` the amounts to a row, as far as the gang asks for the resources."""
        for name, n in amounts:
            column = self._columns.get(name)
            if column is not None:
                column[at] += counted(n) * times

    def _give(self, amounts: Resources, times: int) -> None:
        """Give back amounts without a node, where only sums count."""
        book(self._unplaced, amounts, -times)
        for way in self._ways:
            way.give(amounts, times)

    def _held(self, uid: str) -> Held:
        """The AppWrapper's room on nodes, cached until it changes."""
        if uid in self._planned:
            return self._planned[uid].pods
        known = self._view.assumed.held
        held = known.get(uid)
        if held is None:
            held = self._view.pod_index.held(uid)
            if held:  # then its removal makes a difference
                known[uid] = held
        return held

    def _held_anywhere(self, uid: str) -> Resources:
        """The AppWrapper's unplaced amounts."""
        if uid in self._planned:
            return self._planned[uid].anywhere
        allotments = self._view.assumed.allotments(uid)
        return total((one.pods.request, one.unplaced) for one in allotments if one.unplaced)

    # -- gangs ahead ---------------------------------------------------------------------------

    def planned(self, plan: Plan) -> Planned:
        """The room that the gang itself would hold with this plan."""
        seats = tuple(self.shares.seats)
        if not self._on_nodes:
            return Planned((), self._prospect.demand, seats)
        asked = {one: part.pods.request for part in self._prospect.parts for one in part.positions}
        pods = [(row.node.name, total([(asked[sets[0]], k)])) for sets, row, k in plan]
        return Planned(tuple(pods), (), seats)

    def assume(self, uid: str, planned: Planned) -> None:
        """Assume this room for a waiting AppWrapper, until it is removed."""
        self.shares.assume(uid, planned.seats)
        self._planned[uid] = planned
        self._shift(uid, -1)

    def competes(self, other: Snapshot) -> bool:
        """Whether pods of both gangs could go to the same node."""
        return not self._ways_at.keys().isdisjoint(other._ways_at)

    # -- the answer ----------------------------------------------------------------------------

    def suffices(self) -> bool:
        """Whether the gang's shares suffice, and each part by itself and all parts in sum have
        room: necessary, and for one part sufficient."""
        enough = not self.hopeless and any(way.is_enough for way in self._ways)
        return enough and self.shares.fits()

    def is_idle(self, resource: str, amount: int) -> bool:
        """Whether the amount of the resource is free in sum on the nodes of one way."""
        self._spent += len(self._ways) * (self._view.ledger.size // ROWS_PER_STEP)
        there = max(self._free.to_lend(resource, way.concerned) for way in self._ways)
        return there - self._unplaced.get(resource, 0) >= amount

    def fits(self) -> bool:
        """Whether the whole gang would fit. Undecided counts as no."""
        if self.hopeless or not self.shares.fits():
            return False
        return any(way.fits() for way in self._ways)

    def plan(self) -> Plan | None:
        """Where the whole gang would go, None if it does not fit. With ``fit: aggregate`` the plan
        may hold fewer pods than the gang has."""
        if not self.suffices():
            return None
        plans = (way.plan() for way in self._ways)
        return next((plan for plan in plans if plan is not None), None)

    def partial(self) -> Plan:
        """Where pods of the gang would go if not all of them need a place, and its shares do not
        count. Preferred domains are not looked at."""
        return self._ways[-1].partial()
