"""A snapshot of nodes and shares: where one gang would go if some AppWrappers were removed.

Removing and restoring change a copy of the columns, never the books, and no event may come in
between. Creating a snapshot costs about as much as a verdict, removing or restoring an AppWrapper a
look at its nodes. The gang may use what it could use at once: no node that is set aside for
unplaced pods (C6), and none that is reserved for another AppWrapper.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from mcad.core.assumed.assumed import Assumed, Held
from mcad.core.assumed.pod_index import PodIndex
from mcad.core.assumed.unplaced import UnplacedPods
from mcad.core.fit.fit import fit_alone
from mcad.core.fit.greedy import Nodes, as_many_as_fit, pack
from mcad.core.fit.prospect import Draft, Prospect
from mcad.core.nodes.columns import Mask, counted
from mcad.core.nodes.ledger import Ledger, Plan
from mcad.core.nodes.resources import total
from mcad.core.snapshot.quota import Seat, Shares
from mcad.core.snapshot.slot_counts import Slots, Sum
from mcad.core.snapshot.tentative import TentativePlan
from mcad.core.state.model import Resources
from mcad.core.state.settings import Fit, Settings
from mcad.core.state.work_bounds import (
    PART_STEPS,
    ROWS_PER_STEP,
    SHIFT_STEPS,
    WHAT_IF_LOOKS_MAX,
    WHAT_IF_SEARCH_MAX,
    WHAT_IF_WORK_MAX,
)


class View(NamedTuple):
    """The books of the nodes that a snapshot reads."""

    settings: Settings
    ledger: Ledger
    unplaced_pods: UnplacedPods
    pod_index: PodIndex
    assumed: Assumed


class Planned(NamedTuple):
    """What a gang would hold: (node, amounts), or where only sums count the amounts ``anywhere``;
    and its places in the quota trees."""

    pods: Held
    anywhere: Resources
    seats: tuple[Seat, ...]


class Snapshot:
    """One gang, and the AppWrappers removed for it. ``shares`` is the quota side. ``only`` names
    the nodes that it may use (none: all).

    ``hopeless``: the gang would not fit even if all were removed, or unplaced pods have to find
    nodes first. ``steps`` counts the work so far, about a microsecond each. Beyond
    ``WHAT_IF_WORK_MAX`` for searches with several parts nothing fits any more; what was found
    before stays valid.
    """

    def __init__(
        self,
        view: View,
        prospect: Prospect,
        lifted: Collection[str],
        shares: Shares,
        only: Collection[str] = (),
    ) -> None:
        self.shares = shares
        self._has_seats = bool(shares.seats)
        self._view = view
        self._prospect = prospect
        self._searched = self._looked = 0
        self._planned: dict[str, Planned] = {}
        self._found: TentativePlan | None = None
        self._in_vain = False  # whether a search has found none for those that are removed now
        self._needed: set[object] = set()
        self._known = view.assumed.held
        self._on_nodes = view.settings.fit is Fit.NODES
        self._names = {name for part in prospect.parts for name, _ in part.pods.request}
        ledger, parts = view.ledger, prospect.parts
        self._free = ledger.free.copy(self._names)
        self._usable = self._use(lifted, only)
        self._nodes = Nodes(self._free, self._usable, most_first=True)
        self._nodes.known_choices = {}
        self.steps = len(parts) * (PART_STEPS + ledger.size // ROWS_PER_STEP)
        self.hopeless = shares.hopeless
        self._test: Slots | Sum
        if self._on_nodes:
            self._test = Slots(parts, self._free, self._usable, ledger.allocatable)
            weighs = bool(view.unplaced_pods.weighing_on(prospect.nodes))
            self.hopeless |= weighs or not fit_alone(prospect, ledger.idle, self._usable)
            self._concerned = ledger.nothing()
            for part in parts:
                self._concerned[part.pods.slots(ledger.idle, self._usable).rows] = True
        else:
            self._test, self._concerned = self._sum_of(lifted), self._usable
        self._looks = len(parts) if self._on_nodes else 1

    def _use(self, lifted: Collection[str], only: Collection[str]) -> Mask:
        """The rows that the gang may use; reservations that are lifted are given back there."""
        ledger, set_aside = self._view.ledger, self._view.unplaced_pods.usable
        usable = self._prospect.mask.copy()
        if set_aside is not None:
            usable &= set_aside
        for name, row in ledger.rows.items():
            if (row.reserved_for and row.reserved_for not in lifted) or (only and name not in only):
                usable[row.at] = False
            elif row.reserved_for:
                reserved = ((one, n) for one, n in row.reserved.items() if one in self._names)
                self._free.add(row.at, reserved, 1)
        return usable

    def _sum_of(self, lifted: Collection[str]) -> Sum:
        test = Sum(self._prospect, self._free, self._usable)
        test.give(self._view.unplaced_pods.demand(), -1)
        for uid in lifted:
            if uid in self._view.assumed.reserved:
                test.give(self._unplaced(uid), 1)
        return test

    # -- remove and restore --------------------------------------------------------------------

    def remove(self, uid: str) -> bool:
        """Give back what the AppWrapper's pods use, what is assumed for it, and its charge. False
        if the gang could not use any of that, or lacks none of it any more: then it stays."""
        self._needed.clear()
        lacks = not (self._test.exact and self._is_enough_on_nodes())
        useful = self._has_seats and self.shares.remove(uid)
        useful = (self._shift(uid, 1) and lacks) or useful
        if not useful:
            self.restore(uid)
        return useful

    def remove_in_turn(self, uids: Iterable[str], least: int) -> list[str]:
        """Remove AppWrappers in order, at ``least`` so many, until ``suffices``. Returns the
        removed; those with nothing that the gang lacks stay. Each is taken from ``uids`` when those
        before it are removed."""
        self._needed.clear()
        gone: list[str] = []
        for uid in uids:
            if self._looked >= WHAT_IF_LOOKS_MAX:
                break
            if self._has_seats:
                if self.remove(uid):
                    gone.append(uid)
                    if len(gone) >= least and self.suffices():
                        break
            elif self._shift(uid, 1):  # asked of ten thousand
                gone.append(uid)
                if len(gone) >= least and self._test.suffices():
                    break
        return gone

    def restore(self, uid: str) -> None:
        """Take again what the AppWrapper gave back."""
        if self._has_seats:
            self.shares.restore(uid)
        self._shift(uid, -1)

    def restore_if_spare(self, uid: str) -> bool:
        """Restore a removed AppWrapper if the gang, which fits now, still fits with it."""
        if not self._has_seats:
            return self._restore_if_spare(uid)
        self.shares.restore(uid)
        if self.shares.fits() and self._restore_if_spare(uid):
            return True
        self.shares.remove(uid)
        return False

    def _restore_if_spare(self, uid: str) -> bool:
        """The same on nodes. For a gang of several parts a test may cost a search, a hundred times
        as much as a comparison, so most are saved:

            removed, in order     a1   b1   a2   c1   c2      restored from the right
            c2  the plan still has room:                      restored
            c1  the plan is repaired, one node moved:         restored (tentative.py)
            a2  neither that nor a search finds a plan:       needed
            b1  as c1
            a1  as much as a2 on nodes like those of a2:      needed without a search

        There is only less room than when a2 was tried, and the nodes of a1 and a2 could change
        places. So a1 is needed as well, until another AppWrapper is removed.
        """
        test, held = self._test, self._held(uid)
        alike: object = held, self._unplaced(uid)
        if alike in self._needed or self._looked >= WHAT_IF_LOOKS_MAX:
            return False
        self._shift(uid, -1)
        if self._is_there():
            return True
        if isinstance(test, Slots) and not test.exact:
            alike = tuple([(test.kind(at), amounts) for at, amounts in self._on_usable(held)])
        if alike not in self._needed and self._fits_on_nodes():
            return True
        self._shift(uid, 1)
        self._needed.add(alike)
        return False

    def restore_idle(self, gone: Sequence[str]) -> list[str]:
        """Restore at once all removed AppWrappers on nodes that gained no room for a further pod of
        the gang: they make no difference. Returns those still removed."""
        gained = None if self._has_seats or not self._test.exact else self._test.gained()
        if gained is None:
            return list(gone)
        left: list[str] = []
        idle: list[Held] = []
        for uid in gone:
            held = self._held(uid)
            if any(gained[at] for at, _ in self._on_usable(held)):
                left.append(uid)
            else:
                idle.append(held)
        self._take_again(chain.from_iterable(idle))
        self.steps += 2 * len(idle)
        self._in_vain = False
        return left

    def _shift(self, uid: str, times: int) -> bool:
        """Give back what the AppWrapper has on nodes (``times`` 1), or take it again (-1). A plan
        does this thousands of times, so what is not always needed is computed on demand."""
        held = self._held(uid)
        found = self._give_back(held) if times > 0 else self._take_again(held)
        self.steps += SHIFT_STEPS
        self._looked += len(held) * self._looks
        self._in_vain = False
        unplaced = () if self._on_nodes else self._unplaced(uid)
        if unplaced:
            self._test.give(unplaced, times)
        return found or bool(unplaced)

    def _on_usable(self, held: Iterable[tuple[str, Resources]]) -> Iterable[tuple[int, Resources]]:
        """Of what is held, what is on nodes that the gang could use, by row."""
        rows, concerned = self._view.ledger.rows, self._concerned
        for name, amounts in held:
            row = rows.get(name)
            if row is not None and concerned[row.at]:
                yield row.at, amounts

    def _give_back(self, held: Held) -> bool:
        found, changed = False, self._test.changed
        for at, amounts in self._on_usable(held):
            self._free.add(at, self._asked_for(amounts), 1)
            changed.add(at)
            found = True
        return found

    def _take_again(self, held: Iterable[tuple[str, Resources]]) -> bool:
        found, changed, plan = False, self._test.changed, self._found
        for at, amounts in self._on_usable(held):
            self._free.add(at, self._asked_for(amounts), -1)
            changed.add(at)
            if plan is not None:
                plan.fell(at)
            found = True
        return found

    def _asked_for(self, amounts: Resources) -> list[tuple[str, int]]:
        return [(name, counted(n)) for name, n in amounts if name in self._names]

    def _held(self, uid: str) -> Held:
        """What it has on nodes, cached until that changes."""
        held = self._known.get(uid)
        if held is None:
            held = self._view.pod_index.held(uid)
            if held:  # then its removal makes a difference
                self._known[uid] = held
        return held

    def _unplaced(self, uid: str) -> Resources:
        """Its unplaced amounts, where only sums count."""
        if self._on_nodes:
            return ()
        if uid in self._planned:
            return self._planned[uid].anywhere
        gang = self._view.assumed.by_uid.get(uid)
        allotments = gang.allotments if gang is not None else ()
        return total((one.pods.request, one.unplaced) for one in allotments if one.unplaced)

    # -- gangs ahead ---------------------------------------------------------------------------

    def planned(self, plan: Plan) -> Planned:
        """What the gang itself would hold, placed like that."""
        seats = tuple(self.shares.seats)
        if not self._on_nodes:
            return Planned((), self._prospect.demand, seats)
        asked = {one: part.pods.request for part in self._prospect.parts for one in part.positions}
        pods = [(row.node.name, total([(asked[sets[0]], k)])) for sets, row, k in plan]
        return Planned(tuple(pods), (), seats)

    def assume(self, uid: str, planned: Planned) -> None:
        """Assume this for a waiting AppWrapper, until it is removed."""
        self.shares.assume(uid, planned.seats)
        if not self._planned:
            self._known = self._known.copy()  # assumptions stay in this snapshot
        self._planned[uid] = planned
        self._known[uid] = planned.pods
        self._shift(uid, -1)

    def competes(self, other: Snapshot) -> bool:
        """Whether pods of both gangs could go to the same node."""
        return bool((self._concerned & other._concerned).any())

    # -- the answer ----------------------------------------------------------------------------

    def suffices(self) -> bool:
        """Whether its shares suffice, and there is room for each part of the gang by itself and in
        sum for all: necessary, and for one part sufficient."""
        return self.shares.fits() and self._is_enough_on_nodes()

    def is_idle(self, resource: str, amount: int) -> bool:
        """Whether so much of the resource is free in sum on the nodes that the gang may use."""
        if isinstance(self._test, Sum):
            return self._test.missing().get(resource, 0) <= 0
        self.steps += self._view.ledger.size // ROWS_PER_STEP
        free = self._free.to_lend(resource, self._concerned)
        return free - dict(self._view.unplaced_pods.demand()).get(resource, 0) >= amount

    def fits(self) -> bool:
        """Whether the whole gang would fit. Undecided counts as no."""
        return self.shares.fits() and self._fits_on_nodes()

    @property
    def is_spent(self) -> bool:
        """Whether no plan will be found any more, because all searches together took the work that
        they may take."""
        return self._found is None and self._searched >= WHAT_IF_WORK_MAX

    def plan(self) -> Plan | None:
        """Where the whole gang would go, None if it does not fit. With ``fit: aggregate`` the plan
        may hold fewer pods than the gang has."""
        if not self.suffices():
            return None
        if not self._on_nodes:
            return self._prospect.plan(as_many_as_fit(self._prospect, self._nodes))
        if not self._has_plan() or self._found is None:
            return None
        return self._prospect.plan(self._found.whole())

    def _is_enough_on_nodes(self) -> bool:
        return not self.hopeless and self._test.suffices()

    def _fits_on_nodes(self) -> bool:
        if self._test.exact:
            return self._is_enough_on_nodes()
        return self._is_there() or (self._is_enough_on_nodes() and self._has_plan())

    def _is_there(self) -> bool:
        return self._found is not None and self._found.is_there()

    def _has_plan(self) -> bool:
        """Whether there is a plan: the last one if it still holds, the last one repaired, or a new
        one."""
        if self._is_there() or (self._found is not None and self._found.mend()):
            return True
        if self._in_vain:
            return False
        plan = self._search()
        if plan is not None and isinstance(self._test, Slots):
            self._found = TentativePlan(self._prospect.parts, self._free, self._test, plan)
        self._in_vain = plan is None
        return plan is not None

    def _search(self) -> Draft | None:
        budget = min(WHAT_IF_SEARCH_MAX, WHAT_IF_WORK_MAX - self._searched)
        if budget <= 0:
            return None
        outcome = pack(self._prospect, self._nodes, budget, self._view.ledger.allocatable)
        work = outcome.work + len(self._prospect.parts) * self._view.ledger.size // ROWS_PER_STEP
        self._searched, self.steps = self._searched + work, self.steps + work
        return outcome.plan
