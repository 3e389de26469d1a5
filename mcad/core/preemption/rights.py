"""By which right a candidate may be evicted for a preemptor (core R10).

There are two rights, each with its setting. *Reclaim*: a preemptor that asks within its nominal
share gets it back from borrowers of any priority. *Preemption*: the higher priority goes first.
Work within the own share of another team goes last, and only for a preemptor within its own share.
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
"""Below every priority."""

_Kind = tuple[Path, Resources, bool]
"""The charge and path of a candidate, and whether its priority is lower than the preemptor's."""

Over = Callable[[QuotaNode, str], bool]
"""Whether a node has more than its share of a resource."""


class Right(IntEnum):
    """By what right a candidate may be evicted; the first rights that suffice are used."""

    RECLAIM = 0  # it borrows from the share within which the preemptor asks
    PRIORITY = 1  # of lower priority, and it borrows or is of the preemptor's own leaf
    OWN_SHARE = 2  # of lower priority, within its own share; the preemptor asks within its own

    @property
    def reason(self) -> ReservationReason:
        """The announced reason of the eviction."""
        if self is Right.RECLAIM:
            return ReservationReason.RECLAIMING
        return ReservationReason.PREEMPTING


class _Seat(NamedTuple):
    """The preemptor's leaf in one tree; for each node of its chain, the resources that it ``owns``,
    which it asks for within its share at all of its nodes below; the demanded resources that the
    tree names; and those of these that are ``idle``."""

    node: QuotaNode
    owns: Mapping[QuotaNode, Set[str]]
    named: Set[str]
    idle: Set[str]


class _Side(NamedTuple):
    """A candidate's leaf compared with the preemptor's in one tree, below their lowest common node.

    ``same``: both have one leaf. ``nodes`` are the candidate's nodes below the common node; a
    missing leaf has none, so all that the candidate holds is borrowed. ``owns``: the resources that
    the preemptor asks for within its share. ``within``: the preemptor owns all that it demands.
    ``entitled``: the demanded resources that it does not own are idle, so it takes none of them
    from others.
    """

    same: bool
    nodes: tuple[QuotaNode, ...]
    owns: Set[str]
    within: bool
    entitled: bool


class Precedence:
    """The rights of one preemptor among the candidates (by uid), without the AppWrappers removed
    from the snapshot.

    Its owned and idle resources are judged before any victim has left: room made in its own team
    does not make it less of a borrower.
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
        if not self._seats:  # called for ten thousand candidates
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
        """The candidates that may be evicted when all before them have left and none is restored.
        If a candidate may not be evicted, no other of its kind may: borrowing only decreases."""
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
        """A key that is equal for candidates under the same rights."""
        return *self._shares.account(uid), self._candidates[uid].priority < self._priority

    def now(self, uid: str, least: Right = Right.OWN_SHARE) -> Right | None:
        """By what right the preemptor may evict the candidate now; None for no right of at least
        ``least``."""
        right = self._right(uid, self._shares.over)
        return right if right is not None and right <= least else None

    def at_first(self, uid: str) -> Right | None:
        """By what right the preemptor might evict the candidate before any candidate had left."""
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
    """Whether each node of the candidate's side exceeds its share of one of the resources ``names``
    that the candidate holds."""
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
    """Whether the amount could be borrowed without an eviction, in the tree and on the nodes in
    sum."""
    is_over = any(snapshot.shares.over(limit, name, amount) for limit in seat.node.limits)
    return not is_over and snapshot.is_idle(name, amount)


def _side(seat: _Seat, node: QuotaNode) -> _Side:
    mine = seat.node.chain
    common = next(each for each in node.chain if each in mine)
    below = tuple(each for each in node.chain if each not in mine)
    owns, borrowed = seat.owns[common], seat.named - seat.owns[common]
    return _Side(node is seat.node, below, owns, not borrowed, borrowed <= seat.idle)
