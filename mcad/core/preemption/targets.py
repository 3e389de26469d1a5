"""Which AppWrappers may be evicted for a preemptor, and which of them have to be (core R10).

There are two rights, each with its setting. *Reclaim*: a request within the nominal share gets it
back from borrowers, whatever their priority. *Preemption*: the higher priority goes first. Work
within the own share of another team goes last, and only for a preemptor that asks within its own.
Nothing is evicted unless the whole preemptor fits then, on nodes and in all its shares, and every
victim is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from enum import IntEnum
from typing import NamedTuple

from mcad.core.nodes.ledger import Plan
from mcad.core.quota.tree import QuotaNode
from mcad.core.snapshot.quota import Seat
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


RightNow = Callable[[str], Right | None]
"""By what right the preemptor may evict this candidate, with the removed ones gone; None: by none.
"""

Victims = tuple[tuple[str, Right], ...]


class Evictions(NamedTuple):
    """The victims, each with the right to evict it once those before it are gone, and where the
    preemptor goes then."""

    victims: tuple[tuple[str, ReservationReason], ...]
    plan: Plan

    @property
    def reason(self) -> ReservationReason:
        """The reason of the preemptor's reservation: reclaiming, if all victims are borrowers."""
        if all(reason is ReservationReason.RECLAIMING for _, reason in self.victims):
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
    """The rights of one preemptor; what is removed from the snapshot is gone.

    What it asks for within its share, and what is idle, is judged before any victim has left: room
    made in its own team does not make it less of a borrower.
    """

    def __init__(self, preemptor: Workload, snapshot: Snapshot, settings: Settings) -> None:
        self._preemptor = preemptor
        self._shares = snapshot.shares
        self._settings = settings
        self._seats = {seat.tree.name: _seat(seat, snapshot) for seat in snapshot.shares.seats}
        self._sides: dict[QuotaNode, _Side] = {}
        self._over_at_first = snapshot.shares.over_by_now()

    def lower(self, others: Mapping[str, Workload]) -> Iterator[str]:
        """Where there are no shares: the candidates that may be evicted, whatever has left."""
        priority = self._preemptor.priority if self._settings.preemption else LOWEST
        return (uid for uid, one in others.items() if one.priority < priority)

    def entitled(
        self, others: Mapping[str, Workload], least: Right = Right.OWN_SHARE
    ) -> Iterator[str]:
        """The candidates that may be evicted first, those of a better right first; by no right
        below the ``least``. Candidates with the same charge come under the same rights."""
        account, priority = self._shares.account, self._preemptor.priority
        known: dict[tuple[Path, Resources, bool], Right | None] = {}
        for right in list(Right)[: least + 1]:
            for uid, one in others.items():
                alike = (*account(uid), one.priority < priority)
                if alike not in known:
                    known[alike] = self._right(one, self._over_at_first)
                if known[alike] is right:
                    yield uid

    def in_turn(self, others: Mapping[str, Workload], least: Right) -> Iterator[str]:
        """The candidates that may be evicted when those before them have left and none is restored.
        If one may not be evicted, no other with the same charge may: borrowing only decreases."""
        barred: set[tuple[Path, Resources, bool]] = set()
        for uid in self.entitled(others, least):
            one = others[uid]
            alike = (*self._shares.account(uid), one.priority < self._preemptor.priority)
            if alike in barred:
                continue
            right = self.right(one)
            if right is None or right > least:
                barred.add(alike)
            else:
                yield uid

    def right(self, other: Workload) -> Right | None:
        """By what right the preemptor may evict the candidate now; None: by none."""
        return self._right(other, self._shares.over)

    def at_first(self, other: Workload) -> Right | None:
        """By what right it might evict the candidate before any had left."""
        return self._right(other, self._over_at_first)

    def _right(self, other: Workload, over: Over) -> Right | None:
        reclaims = self._settings.reclaim
        preempts = self._settings.preemption and other.priority < self._preemptor.priority
        borrows, borrows_owned, is_own_leaf = False, False, True
        for tree, node, amounts in self._shares.held(other.uid):
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


def evictions(
    preemptor: Workload, candidates: Mapping[str, Workload], snapshot: Snapshot, settings: Settings
) -> Evictions | None:
    """The victims among the candidates (by uid); None if evictions are of no use.

    By the best right that suffices, and under the same right in the order of the candidates. Each
    victim may be evicted with those before it gone: a team that is back within its share loses no
    more. Each is needed. The victims of the result are removed from the snapshot.
    """
    if snapshot.hopeless:
        return None
    precedence = Precedence(preemptor, snapshot, settings)
    if not snapshot.shares.seats:
        found = fewest(snapshot, precedence.lower(candidates))
        if found is None:
            return None
        return _evictions([(uid, Right.PRIORITY) for uid in found.leaving], found)
    found = fewest(snapshot, precedence.entitled(candidates))
    if found is None:
        return None
    rights = [precedence.at_first(candidates[uid]) for uid in found.leaving]
    best = max(filter(None, rights), default=Right.RECLAIM)  # better ones do not suffice
    victims = _one_after_the_other(snapshot, found.leaving, _right_now(precedence, candidates))
    worst = max((right for _, right in victims), default=best) if victims is not None else None
    if victims is not None and worst == best:
        return _evictions(victims, found)
    for uid in found.leaving:
        snapshot.restore(uid)
    for least in list(Right)[best:worst]:
        others = _by_rights(precedence, candidates, snapshot, least)
        if others is not None:
            return others
    if victims is None:
        return None
    for uid in found.leaving:
        snapshot.remove(uid)
    return _evictions(victims, found)


def _by_rights(
    precedence: Precedence, candidates: Mapping[str, Workload], snapshot: Snapshot, least: Right
) -> Evictions | None:
    """The victims that may be evicted one after the other by no right below the ``least``."""
    right = _right_now(precedence, candidates, least)
    found = fewest(snapshot, precedence.in_turn(candidates, least))
    found = found or _among_few(snapshot, list(precedence.entitled(candidates, least)), right)
    if found is None:
        return None
    victims = _one_after_the_other(snapshot, found.leaving, right)
    return _evictions(victims, found) if victims is not None else None


def _evictions(victims: Sequence[tuple[str, Right]], found: Room) -> Evictions:
    return Evictions(tuple((uid, right.reason) for uid, right in victims), found.plan)


def _right_now(
    precedence: Precedence, candidates: Mapping[str, Workload], least: Right = Right.OWN_SHARE
) -> RightNow:
    def right_now(uid: str) -> Right | None:
        right = precedence.right(candidates[uid])
        return right if right is not None and right <= least else None

    return right_now


def _among_few(snapshot: Snapshot, candidates: list[str], right: RightNow) -> Room | None:
    """Taken in turn, some candidates only use up what their team borrows. So, if they are few, any
    set of victims is searched that may be evicted one after the other."""
    gone = _any(snapshot, candidates, right, ()) if len(candidates) <= SEARCHED_MAX else None
    return None if gone is None else spare_victims(snapshot, gone)


def _any(
    snapshot: Snapshot, candidates: Sequence[str], right: RightNow, gone: tuple[str, ...]
) -> tuple[str, ...] | None:
    """The first of all sets with those ``gone`` that may be evicted, in whatever order, so that the
    preemptor fits. Without one of its victims such a set may be evicted too: the more have left,
    the less is borrowed. So no set has to be tried with others that may not."""
    if snapshot.fits():
        return gone
    for number, uid in enumerate(candidates):
        may_be_last, more = right(uid) is not None, (*gone, uid)
        if not snapshot.remove(uid):
            continue
        if may_be_last or _one_after_the_other(snapshot, more, right) is not None:
            found = _any(snapshot, candidates[number + 1 :], right, more)
            if found is not None:
                return found
        snapshot.restore(uid)
    return None


def _one_after_the_other(
    snapshot: Snapshot, leaving: Sequence[str], right: RightNow
) -> Victims | None:
    """The removed candidates in an order in which each may be evicted once those before it are
    gone, and the rights; None if there is none. It is found from its end: the fewer have left, the
    more is borrowed, so the last may be any that may be evicted when all others are gone."""
    shares, left, victims = snapshot.shares, list(leaving), list[tuple[str, Right]]()
    while left:
        for uid in reversed(left):
            shares.restore(uid)
            by = right(uid)
            if by is not None:
                victims.append((uid, by))
                left.remove(uid)
                break
            shares.remove(uid)
        else:
            break
    for uid, _ in victims:
        shares.remove(uid)
    return None if left else tuple(reversed(victims))
