"""By which right a candidate may be evicted for a preemptor (core R10).

There are two rights, each with its setting. *Reclaim*: a request within the nominal share gets it
back from borrowers, whatever their priority. *Preemption*: the higher priority goes first. Work
within the own share of another team goes last, and only for a preemptor that asks within its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from enum import IntEnum
from typing import NamedTuple

from mcad.core.quota.tree import QuotaNode
from mcad.core.snapshot.quota import Seat
from mcad.core.snapshot.snapshot import Snapshot
from mcad.core.state.model import Resources, Workload
from mcad.core.state.quota_records import Path
from mcad.core.state.reservation import ReservationReason
from mcad.core.state.settings import Settings

LOWEST = -(2**63)
"""No priority is below it."""

_Kind = tuple[Path, Resources, bool]
"""What a candidate is charged for and where, and whether its priority is lower."""

Over = Callable[[QuotaNode, str], bool]
"""Whether a node has more than its share of a resource."""


class Right(IntEnum):
    """By what right a candidate may be evicted; those of the first rights that suffice are."""

    RECLAIM = 0  # it borrows what the preemptor asks for within its share
    PRIORITY = 1  # of lower priority, and it borrows or is of the preemptor's own leaf
    OWN_SHARE = 2  # of lower priority, within its own share; the preemptor asks within its own

    @property
    def reason(self) -> ReservationReason:
        """How the eviction is announced."""
        if self is Right.RECLAIM:
            return ReservationReason.RECLAIMING
        return ReservationReason.PREEMPTING


class _Seat(NamedTuple):
    """The preemptor's leaf in one tree; below each node that it may have in common with a victim,
    the resources that it ``owns``, as it asks for them within its share at all of its own nodes;
    the resources that it demands and the tree names; and those of them that are ``idle``."""

    node: QuotaNode
    owns: Mapping[QuotaNode, Set[str]]
    named: Set[str]
    idle: Set[str]


class _Side(NamedTuple):
    """How a candidate's leaf stands to the preemptor's in one tree, seen from their lowest common
    node.

    ``same``: they are one leaf. ``nodes`` are the candidate's nodes below the common node; there
    are none if its leaf does not exist, and then all that it holds is borrowed. ``owns``: what the
    preemptor asks for within its share. ``within``: that is all that it demands. ``entitled``: what
    it does not own is idle, so that it takes none of that from others.
    """

    same: bool
    nodes: tuple[QuotaNode, ...]
    owns: Set[str]
    within: bool
    entitled: bool


class Precedence:
    """The rights of one preemptor among the candidates (by uid); what is removed from the snapshot
    is gone.

    What it asks for within its share, and what is idle, is judged before any victim has left: room
    made in its own team does not make it less of a borrower.
    """

    def __init__(
        self,
        preemptor: Workload,
        candidates: Mapping[str, Workload],
        snapshot: Snapshot,
        settings: Settings,
    ) -> None:
        self._priority = preemptor.priority if settings.preemption else LOWEST
        self._candidates = candidates
        self._shares = snapshot.shares
        self._reclaim = settings.reclaim
        self._seats = {seat.tree.name: _seat(seat, snapshot) for seat in snapshot.shares.seats}
        self._sides: dict[QuotaNode, _Side] = {}
        self._over_at_first = snapshot.shares.over_by_now()

    def entitled(self, least: Right = Right.OWN_SHARE) -> Iterator[str]:
        """The candidates that may be evicted first, those of a better right first; by no right
        below the ``least``."""
        if not self._seats:  # asked of ten thousand
            lower = (uid for uid, one in self._candidates.items() if one.priority < self._priority)
            yield from lower
            return
        known: dict[_Kind, Right | None] = {}
        for right in list(Right)[: least + 1]:
            for uid in self._candidates:
                kind = self._kind(uid)
                if kind not in known:
                    known[kind] = self.at_first(uid)
                if known[kind] is right:
                    yield uid

    def in_turn(self, least: Right) -> Iterator[str]:
        """The candidates that may be evicted when those before them have left and none is restored.
        If one may not be evicted, no other of its kind may: borrowing only decreases."""
        barred: set[_Kind] = set()
        for uid in self.entitled(least):
            kind = self._kind(uid)
            if kind in barred:
                continue
            if self.now(uid, least) is None:
                barred.add(kind)
            else:
                yield uid

    def _kind(self, uid: str) -> _Kind:
        """Equal for candidates that come under the same rights."""
        return *self._shares.account(uid), self._candidates[uid].priority < self._priority

    def now(self, uid: str, least: Right = Right.OWN_SHARE) -> Right | None:
        """By what right the preemptor may evict the candidate now; None: by none, or by one below
        the ``least``."""
        right = self._right(uid, self._shares.over)
        return right if right is not None and right <= least else None

    def at_first(self, uid: str) -> Right | None:
        """By what right it might evict the candidate before any had left."""
        return self._right(uid, self._over_at_first)

    def _right(self, uid: str, over: Over) -> Right | None:
        reclaims = self._reclaim
        preempts = self._candidates[uid].priority < self._priority
        borrows, borrows_owned, is_own_leaf = False, False, True
        for tree, node, amounts in self._shares.held(uid):
            if not (reclaims or preempts):
                return None
            seat = self._seats[tree.name]
            side = self._sides.get(node)
            if side is None:
                side = self._sides[node] = _side(seat, node)
            borrows_here = not side.same and _borrows(side, seat.named, amounts, over)
            borrows = borrows or borrows_here
            if borrows_here:
                borrows_owned = borrows_owned or _borrows(side, side.owns, amounts, over)
            is_own_leaf = is_own_leaf and side.same
            reclaims = reclaims and side.entitled
            preempts = preempts and (side.same or borrows_here or side.within)
        if reclaims and borrows_owned:
            return Right.RECLAIM
        if not preempts:
            return None
        return Right.PRIORITY if borrows or is_own_leaf else Right.OWN_SHARE


def _borrows(side: _Side, names: Set[str], amounts: Resources, over: Over) -> bool:
    """Whether the candidate's side has more than its share of one of these resources, which the
    candidate holds, at each of its nodes."""
    for name, n in amounts:
        if n and name in names:
            for node in side.nodes:
                if not over(node, name):
                    break
            else:
                return True
    return False


def _seat(seat: Seat, snapshot: Snapshot) -> _Seat:
    owned, owns, shares = dict(seat.demand), dict[QuotaNode, Set[str]](), snapshot.shares
    for node in seat.node.chain:
        owns[node] = frozenset(owned)
        owned = {name: n for name, n in owned.items() if not shares.over(node, name, n)}
    named = owns[seat.node]
    borrowed = [(name, n) for name, n in seat.demand if name not in owned]
    idle = frozenset(name for name, n in borrowed if _is_idle(seat, snapshot, name, n))
    return _Seat(seat.node, owns, named, idle)


def _is_idle(seat: Seat, snapshot: Snapshot, name: str, amount: int) -> bool:
    """Whether so much could be borrowed without an eviction, in the tree and on the nodes in
    sum."""
    is_over = any(snapshot.shares.over(limit, name, amount) for limit in seat.node.limits)
    return not is_over and snapshot.is_idle(name, amount)


def _side(seat: _Seat, node: QuotaNode) -> _Side:
    mine = seat.node.chain
    common = next(each for each in node.chain if each in mine)
    below = tuple(each for each in node.chain if each not in mine)
    owns, borrowed = seat.owns[common], seat.named - seat.owns[common]
    return _Side(node is seat.node, below, owns, not borrowed, borrowed <= seat.idle)
