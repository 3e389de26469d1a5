"""Which AppWrappers may be evicted for a preemptor, and which of them have to be (core R10).

There are two rights, each with its setting. *Reclaim*: a request within the nominal share gets it
back from borrowers, whatever their priority. *Preemption*: the higher priority goes first, but no
priority entitles to the own share of another team. Nothing is evicted unless the whole preemptor
fits then, on nodes and in all its shares, and every victim is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from mcad.core.nodes.pools import Plan
from mcad.core.quota.tree import QuotaNode
from mcad.core.snapshot.quota import Seat, Shares
from mcad.core.snapshot.removal import Room, fewest, spare_victims
from mcad.core.snapshot.snapshot import Snapshot
from mcad.core.state.model import Resources, Workload
from mcad.core.state.quota_records import Path
from mcad.core.state.reservation import ReservationReason
from mcad.core.state.settings import Settings

SEARCHED_MAX = 10
"""The number of candidates up to which every permitted set of victims is tried, where neither
taking them in order nor sparing as many as possible finds one; each more doubles the work."""

LOWEST = -(2**63)
"""No priority is below it."""

Over = Callable[[QuotaNode, str], bool]
"""Whether a node has more than its share of a resource."""

Right = Callable[[str], ReservationReason | None]
"""By what right the preemptor may evict this candidate, with the removed ones gone; None: by none.
"""


class Evictions(NamedTuple):
    """The victims, each with the right to evict it, in the order of the candidates, and where the
    preemptor goes once they are gone."""

    victims: tuple[tuple[str, ReservationReason], ...]
    plan: Plan

    @property
    def reason(self) -> ReservationReason:
        """The reason of the preemptor's reservation: reclaiming, if all victims are borrowers."""
        if all(reason is ReservationReason.RECLAIMING for _, reason in self.victims):
            return ReservationReason.RECLAIMING
        return ReservationReason.PREEMPTING


class _Seat(NamedTuple):
    """The preemptor's leaf in one tree, the common nodes below which it asks within its share, and
    which of the resources that it demands the tree names."""

    node: QuotaNode
    nominal: Collection[QuotaNode]
    named: set[str]


class _Side(NamedTuple):
    """How a candidate's leaf stands to the preemptor's in one tree, seen from their lowest common
    node.

    ``same``: they are one leaf. ``nodes`` are the candidate's nodes below the common node; there
    are none if its leaf does not exist, and then all that it holds is borrowed. ``nominal``: the
    preemptor asks within its share at all of its own nodes below the common one.
    """

    same: bool
    nodes: tuple[QuotaNode, ...]
    nominal: bool


class Precedence:
    """The rights of one preemptor; what has left ``shares`` is gone.

    Whether it asks within its share is judged before any victim has left: room made in its own team
    does not make it less of a borrower.
    """

    def __init__(self, preemptor: Workload, shares: Shares, settings: Settings) -> None:
        self._preemptor = preemptor
        self._shares = shares
        self._settings = settings
        self._seats = {
            seat.tree.name: _Seat(
                seat.node, frozenset(_nominal(seat, shares)), {name for name, _ in seat.demand}
            )
            for seat in shares.seats
        }
        self._sides: dict[QuotaNode, _Side] = {}
        self._over_at_first = shares.over_by_now()

    def lower(self, others: Mapping[str, Workload]) -> Iterator[str]:
        """Where there are no shares: the candidates that may be evicted, whatever has left."""
        priority = self._preemptor.priority if self._settings.preemption else LOWEST
        return (uid for uid, one in others.items() if one.priority < priority)

    def entitled(self, others: Mapping[str, Workload]) -> Iterator[str]:
        """The candidates that may be evicted first. Candidates with the same charge come under
        the same rights."""
        account, priority = self._shares.account, self._preemptor.priority
        known: dict[tuple[Path, Resources, bool], bool] = {}
        for uid, one in others.items():
            alike = (*account(uid), one.priority < priority)
            may = known.get(alike)
            if may is None:
                may = known[alike] = self._right(one, self._over_at_first) is not None
            if may:
                yield uid

    def in_turn(self, others: Mapping[str, Workload]) -> Iterator[str]:
        """The candidates that may be evicted when those before them have left and none is restored.
        If one may not be evicted, no other with the same charge may: borrowing only decreases."""
        barred: set[tuple[Path, Resources, bool]] = set()
        for uid, one in others.items():
            alike = (*self._shares.account(uid), one.priority < self._preemptor.priority)
            if alike in barred:
                continue
            if self.right(one) is None:
                barred.add(alike)
            else:
                yield uid

    def right(self, other: Workload) -> ReservationReason | None:
        """By what right the preemptor may evict the candidate now; None: by none."""
        return self._right(other, self._shares.over)

    def _right(self, other: Workload, over: Over) -> ReservationReason | None:
        reclaims = self._settings.reclaim
        preempts = self._settings.preemption and other.priority < self._preemptor.priority
        borrows = False
        for tree, node, amounts in self._shares.held(other.uid):
            if not (reclaims or preempts):
                return None
            seat = self._seats[tree.name]
            side = self._sides.get(node)
            if side is None:
                side = self._sides[node] = _side(seat, node)
            borrows_here = not side.same and _borrows(side, seat, amounts, over)
            borrows = borrows or borrows_here
            reclaims = reclaims and side.nominal
            preempts = preempts and (side.same or borrows_here or side.nominal)
        if reclaims and borrows:
            return ReservationReason.RECLAIMING
        return ReservationReason.PREEMPTING if preempts else None


def _borrows(side: _Side, seat: _Seat, amounts: Resources, over: Over) -> bool:
    """Whether the candidate's side has more than its share of a resource that the preemptor demands
    and the candidate holds, at each of its nodes."""
    for name, n in amounts:
        if n and name in seat.named:
            for node in side.nodes:
                if not over(node, name):
                    break
            else:
                return True
    return False


def _nominal(seat: Seat, shares: Shares) -> Iterator[QuotaNode]:
    """The common nodes below which the preemptor asks within its share."""
    for node in seat.node.chain:
        yield node
        if any(shares.over(node, name, n) for name, n in seat.demand):
            return


def _side(seat: _Seat, node: QuotaNode) -> _Side:
    mine = seat.node.chain
    common = next(each for each in node.chain if each in mine)
    below = tuple(each for each in node.chain if each not in mine)
    return _Side(node is seat.node, below, common in seat.nominal)


def evictions(
    preemptor: Workload, candidates: Mapping[str, Workload], snapshot: Snapshot, settings: Settings
) -> Evictions | None:
    """The victims among the candidates (by uid), in their order; None if evictions are of no use.

    Each victim may be evicted with those before it gone: a team that is back within its share loses
    no more. Each is needed. The victims of the result are removed from the snapshot.
    """
    if snapshot.hopeless:
        return None
    precedence = Precedence(preemptor, snapshot.shares, settings)

    def right(uid: str) -> ReservationReason | None:
        return precedence.right(candidates[uid])

    if not snapshot.shares.seats:
        found = fewest(snapshot, precedence.lower(candidates))
        if found is None:
            return None
        return Evictions(
            tuple((uid, ReservationReason.PREEMPTING) for uid in found.leaving), found.plan
        )
    found = fewest(snapshot, precedence.entitled(candidates))
    if found is None:
        return None
    victims = _one_after_the_other(snapshot, found.leaving, right)
    if len(victims) < len(found.leaving):
        for uid in found.leaving:
            snapshot.restore(uid)
        found = fewest(snapshot, precedence.in_turn(candidates))
        found = found or _among_few(snapshot, list(precedence.entitled(candidates)), right)
        if found is None:
            return None
        victims = _one_after_the_other(snapshot, found.leaving, right)
    return Evictions(victims, found.plan)


def _among_few(snapshot: Snapshot, candidates: list[str], right: Right) -> Room | None:
    """Taken in turn, some candidates only use up what their team borrows. So, if they are few, any
    set of victims is searched that may be evicted one after the other."""
    gone = _any(snapshot, candidates, right) if len(candidates) <= SEARCHED_MAX else None
    return None if gone is None else spare_victims(snapshot, gone)


def _any(snapshot: Snapshot, candidates: list[str], right: Right) -> list[str] | None:
    """The first of all sets that may be evicted one after the other, so that the preemptor fits."""
    if snapshot.fits():
        return []
    for number, uid in enumerate(candidates):
        if right(uid) is None or not snapshot.remove(uid):
            continue
        others = _any(snapshot, candidates[number + 1 :], right)
        if others is not None:
            return [uid, *others]
        snapshot.restore(uid)
    return None


def _one_after_the_other(
    snapshot: Snapshot, leaving: Sequence[str], right: Right
) -> tuple[tuple[str, ReservationReason], ...]:
    """The removed candidates and the rights to evict them, without those that may not be evicted
    once the others before them are gone."""
    for uid in leaving:
        snapshot.restore(uid)
    victims = []
    for uid in leaving:
        by = right(uid)
        if by is not None:
            victims.append((uid, by))
        snapshot.remove(uid)
    return tuple(victims)
