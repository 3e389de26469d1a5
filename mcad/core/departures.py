"""Who has to leave so that one gang fits, on nodes and in its shares: tried, and no book changes.

Whatever makes room for somebody by the leaving of others asks here: evictions, drains, and the
replay of ends that dates a start. Entrance: ``Admission.what_if``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mcad.core.capacity.mixed import Plan
from mcad.core.capacity.whatif import Lodging
from mcad.core.capacity.whatif import WhatIf as Nodes
from mcad.core.quota.whatif import Seat
from mcad.core.quota.whatif import WhatIf as Shares


class Room(NamedTuple):
    """Who has to leave, in the order of the candidates, and where the gang goes then."""

    leaving: tuple[str, ...]
    plan: Plan


class Guest(NamedTuple):
    """What somebody who waits would hold, on nodes and by quota."""

    lodging: Lodging
    seats: tuple[Seat, ...]


class Departures:
    """One gang, and those who leave for it. Good until the next event.

    ``shares`` may be asked who would hold what by quota then.
    """

    def __init__(self, nodes: Nodes, shares: Shares) -> None:
        self._nodes = nodes
        self.shares = shares
        self._has_seats = bool(shares.seats)

    @property
    def hopeless(self) -> bool:
        """Whether the gang would surely not fit whoever left."""
        return self._nodes.hopeless or self.shares.hopeless

    @property
    def steps(self) -> int:
        """The work so far, about a microsecond each."""
        return self._nodes.steps

    @property
    def is_exact(self) -> bool:
        """Whether ``fits`` costs next to nothing, so that it may be asked after each departure."""
        return self._nodes.is_exact

    def leave(self, uid: str) -> bool:
        """This one leaves. False if it has nothing that the gang still lacks: then it stays."""
        by_quota, on_nodes = self._has_seats and self.shares.leave(uid), self._nodes.leave(uid)
        if not (by_quota or on_nodes):
            self.stay(uid)
        return by_quota or on_nodes

    def leave_again(self, uid: str) -> None:
        """One who had left and come back does leave."""
        if self._has_seats:
            self.shares.leave(uid)
        self._nodes.leave(uid)

    def stay(self, uid: str) -> None:
        """One who left does not."""
        if self._has_seats:
            self.shares.stay(uid)
        self._nodes.stay(uid)

    @property
    def only_counts(self) -> bool:
        """Whether nothing but slots on nodes decides, so that those who leave are taken in turn."""
        return self._nodes.only_counts and not self._has_seats

    def leave_in_turn(self, uids: Iterable[str]) -> list[str] | None:
        """They leave in order until it fits, where it ``only_counts``. Who has left; None: it does
        not fit, and nobody has."""
        gone = self._nodes.leave_in_turn(uids)
        if self.fits():
            return gone
        self._nodes.come_back(gone)
        return None

    def come_back_in_turn(self, gone: Sequence[str], *, to_the_end: bool) -> list[str]:
        """Who of them has still left, when those are back whom nobody misses; likewise."""
        return self._nodes.come_back_in_turn(self.without_idle(gone), to_the_end=to_the_end)

    def guest(self, plan: Plan) -> Guest:
        """What the gang itself would hold, placed like that."""
        return Guest(self._nodes.lodging(plan), tuple(self.shares.seats))

    def come(self, uid: str, guest: Guest) -> None:
        """Somebody who waits has room as well, until he leaves."""
        self.shares.come(uid, guest.seats)
        self._nodes.come(uid, guest.lodging)

    def without_idle(self, gone: Sequence[str]) -> list[str]:
        """Those ``gone`` without some who surely make no difference: these have come back. Far
        cheaper than to try them one by one."""
        if self._has_seats or not self.is_exact:
            return list(gone)
        return self._nodes.without_idle(gone)

    def competes(self, other: Departures) -> bool:
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


def fewest(departures: Departures, candidates: Iterable[str]) -> Room | None:
    """Who of the candidates has to leave, so that nobody of them could be spared (R10).

    They leave in order until the gang fits; then the last, who are the dearest, come back first if
    it fits without them. Each candidate is asked for when those before it have left. Those of the
    result have left; without one nobody has.
    """
    gone = _leave_until_it_fits(departures, candidates)
    return None if gone is None else without_those_to_spare(departures, gone)


def soonest(departures: Departures, candidates: Iterable[str]) -> Room | None:
    """The same if nobody can come back: as few of the first candidates as there have to be. Who of
    them has nothing that the gang could use is not in the result."""
    gone = _leave_until_it_fits(departures, candidates)
    return None if gone is None else without_those_to_spare(departures, gone, to_the_end=False)


def _leave_until_it_fits(departures: Departures, candidates: Iterable[str]) -> list[str] | None:
    """Who has left then, perhaps more than had to: where a look is dear, each comes after twice as
    many departures as the one before."""
    gone: list[str] = []
    if departures.hopeless:
        return None
    if departures.fits():
        return gone
    if departures.only_counts:
        return departures.leave_in_turn(candidates)
    wait = pace = 1
    for uid in candidates:
        if not departures.leave(uid):
            continue
        gone.append(uid)
        if not departures.suffices():
            continue
        wait -= 1
        if departures.is_exact or not wait:
            if departures.fits():
                return gone
            wait = pace = 2 * pace
    if departures.fits():
        return gone
    for uid in gone:
        departures.stay(uid)
    return None


def without_those_to_spare(
    departures: Departures, gone: list[str], *, to_the_end: bool = True
) -> Room | None:
    """With those ``gone`` it fits. From the last to the first, those come back without whom it does
    as well; all of them, or (not ``to_the_end``) those before the first who cannot. As many at once
    as lately could, where a look is dear."""
    if departures.only_counts:
        left = departures.come_back_in_turn(gone, to_the_end=to_the_end)
        plan = departures.plan()
        return None if plan is None else Room(tuple(left), plan)
    left, kept = departures.without_idle(gone), list[str]()
    plan = None if departures.is_exact else departures.plan()
    block = 1
    most = 1 if departures.is_exact else len(left)
    while left and (to_the_end or not kept):
        some = left[-block:]
        for uid in some:
            departures.stay(uid)
        if departures.fits():
            plan = None if departures.is_exact else departures.plan()
            del left[-len(some) :]
            block = min(most, 2 * len(some))
            continue
        for uid in some:
            departures.leave_again(uid)
        if len(some) == 1:
            kept.append(left.pop())
        block = max(1, len(some) // 2)
    plan = plan if plan is not None else departures.plan()
    if plan is None:
        for uid in (*left, *kept):
            departures.stay(uid)
        return None
    return Room((*left, *reversed(kept)), plan)
