"""What has to leave so that one gang fits, on nodes and in its shares: tried, and no book changes.

Whatever makes room for one by the leaving of others asks here: evictions, drains, and the replay of
ends that dates a start. Entrance: ``Admission.what_if``.
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
    """What has to leave, in the order of the candidates, and where the gang goes then."""

    leaving: tuple[str, ...]
    plan: Plan


class Planned(NamedTuple):
    """What a waiting AppWrapper would hold, on nodes and by quota."""

    pods: PlannedPods
    seats: tuple[Seat, ...]


class Removal:
    """One gang, and those that leave for it. Good until the next event.

    ``shares`` tells what would be held by quota then.
    """

    def __init__(self, nodes: Nodes, shares: Shares) -> None:
        self._nodes = nodes
        self.shares = shares
        self._has_seats = bool(shares.seats)

    @property
    def hopeless(self) -> bool:
        """Whether the gang would surely not fit, whatever left."""
        return self._nodes.hopeless or self.shares.hopeless

    @property
    def steps(self) -> int:
        """The work so far, about a microsecond each."""
        return self._nodes.steps

    def remove(self, uid: str) -> bool:
        """This one leaves. False if it has nothing that the gang still lacks: then it stays."""
        by_quota, on_nodes = self._has_seats and self.shares.remove(uid), self._nodes.remove(uid)
        if not (by_quota or on_nodes):
            self.restore(uid)
        return by_quota or on_nodes

    def remove_in_turn(self, uids: Iterable[str], least: int) -> list[str]:
        """They leave in order, so many at ``least``, until there is enough room for each part, and
        of its shares. Returns what has left; what has nothing that the gang lacks stays. Each is
        taken from ``uids`` when those before it have left."""
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
        """Put one of the departed back."""
        if self._has_seats:
            self.shares.restore(uid)
        self._nodes.restore(uid)

    def restore_if_spare(self, uid: str) -> bool:
        """Put one of the departed back, if the gang fits without its room."""
        if not self._has_seats:
            return self._nodes.restore_if_spare(uid)
        self.shares.restore(uid)
        if self.shares.fits() and self._nodes.restore_if_spare(uid):
            return True
        self.shares.remove(uid)
        return False

    def restore_idle(self, gone: Sequence[str]) -> list[str]:
        """Put back at once those that surely make no difference: far cheaper than to try them one
        by one. Returns what is still gone."""
        return list(gone) if self._has_seats else self._nodes.restore_idle(gone)

    def planned(self, plan: Plan) -> Planned:
        """What the gang itself would hold, placed like that."""
        return Planned(self._nodes.planned(plan), tuple(self.shares.seats))

    def assume(self, uid: str, planned: Planned) -> None:
        """A waiting AppWrapper holds room as well, until it leaves."""
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
    """The candidates that have to leave, none of which could be spared (R10).

    They leave in order until the gang fits; then the last, which are the dearest, come back first
    if it fits without them. Each candidate is asked for when those before it have left. Those of
    the result have left; without one none has.
    """
    gone = _leave_until_it_fits(removal, candidates)
    return None if gone is None else spare_victims(removal, gone)


def soonest(removal: Removal, candidates: Iterable[str]) -> Room | None:
    """The same if none can come back: as few of the first candidates as there have to be. Those
    that have nothing that the gang could use are not in the result."""
    gone = _leave_until_it_fits(removal, candidates)
    return None if gone is None else spare_victims(removal, gone, to_the_end=False)


def _leave_until_it_fits(removal: Removal, candidates: Iterable[str]) -> list[str] | None:
    """What has left then, perhaps more than had to: where there is enough and it still does not
    fit, it is looked at after one more departure, two, four..., since a look is dear then."""
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
    """With those ``gone`` it fits. From the last to the first, those come back without which it
    does as well; all of them, or (not ``to_the_end``) those before the first that cannot."""
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
