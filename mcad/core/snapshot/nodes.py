"""Dry run on nodes: where one gang would go if some AppWrappers were removed.

Removing and restoring work on copies: no book changes, and no event may come in between. Creating a
dry run costs a look at every node of the gang's pools; removing or restoring an AppWrapper costs a
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
from mcad.core.fit.feasible import Part, Prospect
from mcad.core.fit.greedy import as_many_as_fit, pack
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.pod_signature import slots
from mcad.core.nodes.pools import Plan, Pool, Row
from mcad.core.nodes.resources import Books, total
from mcad.core.snapshot.needed import Kind, Loss, Needed
from mcad.core.snapshot.slot_counts import Enough, Later, Slots, Sum
from mcad.core.snapshot.tentative import TentativePlan
from mcad.core.state.model import Resources
from mcad.core.state.settings import Fit, Settings
from mcad.core.state.work_bounds import WHAT_IF_SEARCH_MAX, WHAT_IF_WORK_MAX

_Spot = tuple[int, Books]
"""(rank, what would be free there): a node that the gang could go to."""


class View(NamedTuple):
    """The books that a dry run reads."""

    settings: Settings
    ledger: Ledger
    unplaced_pods: UnplacedPods
    pod_index: PodIndex
    assumed: Assumed


class PlannedPods(NamedTuple):
    """What a gang would take: (node, amounts), or where only sums count the amounts
    ``anywhere``."""

    pods: Held
    anywhere: Resources


class WhatIf:
    """Where one gang would go without the removed AppWrappers.

    ``hopeless``: it would not fit even if all were removed, or unplaced pods have to find nodes
    first. ``steps`` counts the work so far, about a microsecond each. Beyond ``WHAT_IF_WORK_MAX``
    for searches with several parts nothing fits any more; what was found before stays valid.
    """

    def __init__(self, view: View, prospect: Prospect, lifted: Collection[str]) -> None:
        self._view = view
        self._prospect = prospect
        self._searched = 0
        self._planned: dict[str, PlannedPods] = {}
        self._found: TentativePlan | None = None
        self._in_vain = False  # whether a search has found none for those that have left now
        self._needed = Needed()
        self._spots: dict[str, _Spot] = {}
        self._known = view.assumed.held
        self._on_nodes = view.settings.fit is Fit.NODES
        rows = self._all_rows()
        reserved = {row.rank for row in rows if _is_anothers(row, lifted)}
        names = {name for part in prospect.parts for name, _ in part.pods.request}
        self._nodes = Later(view.unplaced_pods.barred.keys() | reserved, names)
        usable = [row for row in rows if not self._nodes.barred(row)]
        for row in usable:
            if row.reserved_for:
                self._nodes.to_change(row)
        self.steps = len(usable) * len(prospect.parts)
        if self._on_nodes:
            self._test: Enough = Slots(prospect.parts, usable, self._nodes, view.ledger.allocatable)
            concerned, enough = _once_emptied(prospect.parts, usable)
            self.hopeless = not enough or _weighs(view.unplaced_pods, prospect.pools)
        else:
            self._test, concerned = self._sum_of(usable, lifted), usable
            self.hopeless = False
        self._least = self._test.least
        self._rows = {row.node.name: row for row in concerned}

    def _all_rows(self) -> list[Row]:
        """The nodes that the gang could go to; where only sums count, every node."""
        if not self._on_nodes:
            return list(self._view.ledger.rows.values())
        pools = self._prospect.pools
        return list({rank: row for pool in pools for rank, row in pool.rows.items()}.values())

    def _sum_of(self, usable: list[Row], lifted: Collection[str]) -> Sum:
        pools = self._prospect.pools
        counted = [row for row in usable if any(row.rank in pool.rows for pool in pools)]
        test = Sum(self._prospect.demand, counted, self._nodes)
        test.give(self._view.settings.potential_capacity, 1)
        test.give(self._view.unplaced_pods.demand(), -1)
        for uid in lifted:
            if uid in self._view.assumed.reserved:
                test.give(self._unplaced(uid), 1)
        return test

    # -- leaving and coming back -------------------------------------------------------------------

    def remove(self, uid: str) -> bool:
        """Give back what the AppWrapper's pods use and what is assumed for it. False if the gang
        could not use any of that, or lacks nothing more; it is given back all the same."""
        lacks = not (self._test.exact and self._test.suffices())
        self._needed.clear()
        return self._shift(uid, 1) and lacks

    def remove_in_turn(self, uids: Iterable[str], least: int) -> list[str]:
        """Remove AppWrappers in order, at ``least`` so many, until there is enough room. Returns
        the removed; those with nothing that the gang could use stay."""
        shift, changed, suffices = self._shift, self._test.changed, self._test.suffices
        self._needed.clear()
        gone: list[str] = []
        for uid in uids:
            if shift(uid, 1):
                gone.append(uid)
                if changed and len(gone) >= least and suffices():
                    break
        return gone

    def restore(self, uid: str) -> None:
        """Take again what the AppWrapper gave back."""
        self._shift(uid, -1)

    def restore_if_spare(self, uid: str) -> bool:
        """Restore a removed AppWrapper if the gang, which fits now, still fits with it."""
        if self._is_beside_the_plan(uid):
            self._shift(uid, -1)
            return True
        same = self._held(uid), self._unplaced(uid)
        if self._needed.has(same):
            return False
        without = self._kinds(uid)
        alike = without, self._amounts(uid), self._unplaced(uid)
        if not self._needed.has(alike):
            self._shift(uid, -1)
            if self._fits_with(uid, without):
                return True
            self._shift(uid, 1)
        self._needed.note(same, alike)
        return False

    def _fits_with(self, uid: str, without: tuple[Kind, ...]) -> bool:
        """Whether the gang fits with the AppWrapper restored; ``without`` has its nodes as they
        were while it was removed."""
        if self._test.exact:
            return self.suffices()
        loss = Loss(without, self._kinds(uid))
        if self._needed.covers(loss):
            return False
        if self.fits():
            return True
        self._needed.add(loss)
        return False

    def _is_beside_the_plan(self, uid: str) -> bool:
        """Whether the present plan uses none of its nodes; False if there is no plan."""
        if self._found is None or self._test.exact:
            return False
        ranks = [self._spots[name][0] for name, _ in self._held(uid) if name in self._spots]
        return self._found.is_beside(ranks)

    def restore_idle(self, gone: Sequence[str]) -> list[str]:
        """Restore at once all removed AppWrappers on nodes that gained no room for a further pod of
        the gang: they make no difference. Returns those still removed."""
        gained = self._test.gained() if self._test.exact else None
        if gained is None:
            return list(gone)
        missed = {name for name, (rank, _) in self._spots.items() if rank in gained}
        left: list[str] = []
        idle: list[Held] = []
        for uid in gone:
            held = self._held(uid)
            for name, _ in held:
                if name in missed:
                    left.append(uid)
                    break
            else:
                idle.append(held)
        self._take_again(chain.from_iterable(idle))
        self.steps += 2 * len(idle)
        self._in_vain = False
        return left

    def _shift(self, uid: str, times: int) -> bool:
        """Give back what the AppWrapper has (``times`` 1), or take it again (-1). A plan does this
        thousands of times, so what is not always needed is computed on demand."""
        held = self._held(uid)
        found = self._give_back(held) if times > 0 else self._take_again(held)
        self.steps += 2
        self._in_vain = False
        unplaced = self._unplaced(uid)
        if unplaced:
            self._test.give(unplaced, times)
        return found or bool(unplaced)

    def _give_back(self, held: Held) -> bool:
        spots, least, changed, found = self._spots, self._least, self._test.changed, False
        for name, amounts in held:
            spot = spots.get(name) or self._spot(name)
            if spot:
                rank, free = spot
                for resource, n in amounts:
                    free[resource] += n
                for resource, n in least:
                    if free[resource] >= n:
                        changed[rank] = free
                        break
                found = True
        return found

    def _take_again(self, held: Iterable[tuple[str, Resources]]) -> bool:
        spots, changed, plan, found = self._spots, self._test.changed, self._found, False
        for name, amounts in held:
            spot = spots.get(name) or self._spot(name)
            if spot:
                rank, free = spot
                for resource, n in amounts:
                    free[resource] -= n
                changed[rank] = free
                if plan is not None:
                    plan.fell(rank)
                found = True
        return found

    def _spot(self, name: str) -> _Spot | None:
        """(rank, what would be free there) of a node; None if the gang could not go there."""
        row = self._rows.get(name)
        if row is None:
            return None
        spot = self._spots[name] = (row.rank, self._nodes.to_change(row))
        return spot

    def _kinds(self, uid: str) -> tuple[Kind, ...]:
        kind, spots = self._test.kind, self._spots
        return tuple([kind(*spots[name]) for name, _ in self._held(uid) if name in spots])

    def _amounts(self, uid: str) -> tuple[Resources, ...]:
        return tuple([amounts for name, amounts in self._held(uid) if name in self._spots])

    def competes(self, other: WhatIf) -> bool:
        """Whether both could have pods on the same node."""
        return not self._rows.keys().isdisjoint(other._rows)

    def planned(self, plan: Plan) -> PlannedPods:
        """What the gang itself would take, placed like that."""
        if not self._on_nodes:
            return PlannedPods((), self._prospect.demand)
        parts = self._prospect.parts
        placed = [(row.node.name, ((parts[n].pods.request, k),)) for n, row, k in plan]
        return PlannedPods(tuple((name, total(pods)) for name, pods in placed), ())

    def assume(self, uid: str, held: PlannedPods) -> None:
        """Assume this for an AppWrapper that has nothing in the books, until it is removed."""
        if not self._planned:
            self._known = self._known.copy()  # assumptions stay in this question
        self._planned[uid] = held
        self._known[uid] = held.pods
        for name, amounts in held.pods:
            free = (self._spot(name) or (0, {}))[1]
            free.update((resource, 0) for resource, _ in amounts if resource not in free)
        self._shift(uid, -1)

    def _held(self, uid: str) -> Held:
        """What it has on nodes, cached until that changes."""
        held = self._known.get(uid)
        if held is None:
            held = self._view.pod_index.held(uid)
            if held:  # then its leaving makes a difference
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

    # -- the answer ------------------------------------------------------------------------------

    def suffices(self) -> bool:
        """Whether there is room for each part by itself, and in sum for all: necessary, and for one
        part sufficient."""
        return not self.hopeless and self._test.suffices()

    @property
    def is_exact(self) -> bool:
        """Whether ``suffices`` is the whole answer, so that ``fits`` costs nothing."""
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
        """Whether there is a plan: the last one if it still holds, the last one repaired, or a new
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
        outcome = pack(self._prospect, self._nodes, budget, self._view.ledger.allocatable)
        work = outcome.looked + outcome.work
        self._searched, self.steps = self._searched + work, self.steps + work
        return outcome.plan


def _is_anothers(row: Row, lifted: Collection[str]) -> bool:
    """Whether the node is reserved for an AppWrapper that is not lifted."""
    return bool(row.reserved_for) and row.reserved_for not in lifted


def _once_emptied(parts: Sequence[Part], rows: Collection[Row]) -> tuple[list[Row], bool]:
    """The nodes on which any part has room without AppWrappers, and whether each part by itself has
    enough room then."""
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


def _weighs(unplaced_pods: UnplacedPods, pools: Sequence[Pool]) -> bool:
    """Whether an unplaced pod could go to one of the pools."""
    return any(
        not pods.pool.rows.keys().isdisjoint(pool.rows)
        for pods in unplaced_pods.by_class
        for pool in pools
    )
