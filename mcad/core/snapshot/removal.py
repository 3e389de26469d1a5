"""Dry run on nodes and quota together: which AppWrappers have to be removed so that one gang fits.

Evictions, release sets and start time estimates use this. Entrance: ``Admission.what_if``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mcad.core.nodes.pools import Plan
from mcad.core.snapshot.nodes import PlannedPods
from mcad.core.snapshot.nodes import WhatIf as Nodes
from mcad.core.snapshot.quota import Seat
from mcad.core.snapshot.quota import WhatIf as Shares


class Room(NamedTuple):
    """The AppWrappers that have to leave, in the order of the candidates, and where the gang goes
    then."""

    leaving: tuple[str, ...]
    plan: Plan


class Planned(NamedTuple):
    """What a waiting AppWrapper would hold, on nodes and in quota."""

    pods: PlannedPods
    seats: tuple[Seat, ...]


class Removal:
    """One gang, and the AppWrappers removed for it. Valid until the next event. ``shares`` is the
    quota part."""

    def __init__(self, nodes: Nodes, shares: Shares) -> None:
        self._nodes = nodes
        self.shares = shares
        self._has_seats = bool(shares.seats)

    @property
    def hopeless(self) -> bool:
        """Whether the gang would not fit even if all were removed."""
        return self._nodes.hopeless or self.shares.hopeless

    @property
    def steps(self) -> int:
        """The work so far, about a microsecond each."""
        return self._nodes.steps

    def remove(self, uid: str) -> bool:
        """Remove an AppWrapper. False if it has nothing that the gang still lacks: then it
        stays."""
        by_quota, on_nodes = self._has_seats and self.shares.remove(uid), self._nodes.remove(uid)
        if not (by_quota or on_nodes):
            self.restore(uid)
        return by_quota or on_nodes

    def remove_in_turn(self, uids: Iterable[str], least: int) -> list[str]:
        """Remove AppWrappers in order, at ``least`` so many, until there is room for each part, and
        quota. Returns the removed; those with nothing that the gang lacks stay. Each is taken from
        ``uids`` when those before it are removed."""
        if not self._has_seats:
            return self._nodes.remove_in_turn(uids, least)
        gone = []
        for uid in uids:
            if self.remove(uid):
                gone.append(uid)
                if len(gone) >= least and self.suffices():
                    break
        return gone

    def restore(self, uid: str) -> None:
        """Restore a removed AppWrapper."""
        if self._has_seats:
            self.shares.restore(uid)
        self._nodes.restore(uid)

    def restore_if_spare(self, uid: str) -> bool:
        """Restore a removed AppWrapper if the gang still fits with it."""
        if not self._has_seats:
            return self._nodes.restore_if_spare(uid)
        self.shares.restore(uid)
        if self.shares.fits() and self._nodes.restore_if_spare(uid):
            return True
        self.shares.remove(uid)
        return False

    def restore_idle(self, gone: Sequence[str]) -> list[str]:
        """Restore at once the removed AppWrappers that surely make no difference, which is far
        cheaper than trying them one by one. Returns those still removed."""
        return list(gone) if self._has_seats else self._nodes.restore_idle(gone)

    def planned(self, plan: Plan) -> Planned:
        """What the gang itself would hold, placed like that."""
        return Planned(self._nodes.planned(plan), tuple(self.shares.seats))

    def assume(self, uid: str, planned: Planned) -> None:
        """A waiting AppWrapper holds room as well, until it is removed."""
        self.shares.assume(uid, planned.seats)
        self._nodes.assume(uid, planned.pods)

    def competes(self, other: Removal) -> bool:
        """Whether pods of both gangs could go to the same node."""
        return self._nodes.competes(other._nodes)

    def suffices(self) -> bool:
        """Whether its shares suffice, and there is room for each part of the gang by itself and in
        sum for all: necessary."""
        return self.shares.fits() and self._nodes.suffices()

    def fits(self) -> bool:
        """Whether the whole gang would fit. Undecided counts as no."""
        return self.shares.fits() and self._nodes.fits()

    def plan(self) -> Plan | None:
        """Where the whole gang would go, None if it does not fit."""
        return self._nodes.plan() if self.shares.fits() else None


def fewest(removal: Removal, candidates: Iterable[str]) -> Room | None:
    """The candidates that have to leave, each of them needed (R10).

    They are removed in order until the gang fits. Then the last, which are the most valuable, are
    restored first if the gang fits with them. Each candidate is asked for when those before it are
    removed. Those of the result stay removed; without a result none is.
    """
    gone = _leave_until_it_fits(removal, candidates)
    return None if gone is None else spare_victims(removal, gone)


def soonest(removal: Removal, candidates: Iterable[str]) -> Room | None:
    """The first candidates that suffice, where none can be spared; without those that have nothing
    that the gang could use."""
    gone = _leave_until_it_fits(removal, candidates)
    return None if gone is None else spare_victims(removal, gone, to_the_end=False)


def _leave_until_it_fits(removal: Removal, candidates: Iterable[str]) -> list[str] | None:
    """The AppWrappers removed until the gang fits, perhaps more than needed. A test is expensive
    where sums suffice and the gang still does not fit, so it is repeated after one more removal,
    two, four..."""
    if removal.hopeless:
        return None
    gone: list[str] = []
    line, least = iter(candidates), 1
    while not removal.fits():
        more = removal.remove_in_turn(line, least)
        if not more:
            for uid in gone:
                removal.restore(uid)
            return None
        gone += more
        least *= 2
    return gone


def spare_victims(removal: Removal, gone: Sequence[str], *, to_the_end: bool = True) -> Room | None:
    """With those ``gone`` the gang fits. Restore, from the last to the first, those that it does
    not need; all of them, or (not ``to_the_end``) those before the first that is needed."""
    left, kept = removal.restore_idle(gone), list[str]()
    while left and (to_the_end or not kept):
        uid = left.pop()
        if not removal.restore_if_spare(uid):
            kept.append(uid)
    left += reversed(kept)
    plan = removal.plan()
    if plan is None:
        for uid in left:
            removal.restore(uid)
        return None
    return Room(tuple(left), plan)
