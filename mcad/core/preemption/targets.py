"""Which AppWrappers have to be evicted for a preemptor (core R10).

Nothing is evicted unless the whole preemptor fits then, on nodes and in all its shares, and every
victim is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from mcad.core.nodes.ledger import Plan
from mcad.core.preemption.rights import Precedence, Right
from mcad.core.snapshot.removal import Room, fewest, spare_victims
from mcad.core.snapshot.snapshot import Snapshot
from mcad.core.state.model import Workload
from mcad.core.state.reservation import ReservationReason
from mcad.core.state.settings import Settings

SEARCHED_MAX = 10
"""The number of candidates up to which every permitted set of victims is tried, if neither taking
them in order nor sparing as many as possible finds a set; each more doubles the work."""

Victims = tuple[tuple[str, Right], ...]


class Evictions(NamedTuple):
    """The victims, each with the right to evict it once the victims before it are gone, and where
    the preemptor goes then."""

    victims: tuple[tuple[str, ReservationReason], ...]
    plan: Plan

    @property
    def reason(self) -> ReservationReason:
        """The reason of the preemptor's reservation: reclaiming, if all victims are borrowers."""
        if all(reason is ReservationReason.RECLAIMING for _, reason in self.victims):
            return ReservationReason.RECLAIMING
        return ReservationReason.PREEMPTING


def evictions(
    preemptor: Workload, candidates: Mapping[str, Workload], snapshot: Snapshot, settings: Settings
) -> Evictions | None:
    """The victims among the candidates (by uid); None if evictions are of no use.

    The best right that suffices is used, and under the same right the order of the candidates. Each
    victim is needed, and may be evicted with the victims before it gone: a team that is back within
    its share loses no more. The victims of the result are removed from the snapshot.
    """
    if snapshot.hopeless:
        return None
    rights = Precedence(preemptor, candidates, snapshot, settings)
    found = fewest(snapshot, rights.entitled())
    if found is None:
        return None
    first = [rights.at_first(uid) for uid in found.leaving]
    best = max(filter(None, first), default=Right.RECLAIM)  # better rights do not suffice
    victims = _one_after_the_other(snapshot, found.leaving, rights)
    worst = max((right for _, right in victims or ()), default=best)
    for least in list(Right)[best:]:
        if victims is not None and least is worst:
            return _evictions(victims, found)
        for uid in found.leaving:
            snapshot.restore(uid)
        others = _by_rights(snapshot, rights, least)
        if others is not None:
            return others
        for uid in found.leaving:
            snapshot.remove_anyway(uid)
    return None


def _by_rights(snapshot: Snapshot, rights: Precedence, least: Right) -> Evictions | None:
    """The victims that may be evicted one after the other by no right below the ``least``."""
    found = fewest(snapshot, rights.in_turn(least)) or _among_few(snapshot, rights, least)
    if found is None:
        return None
    victims = _one_after_the_other(snapshot, found.leaving, rights, least)
    return _evictions(victims, found) if victims is not None else None


def _evictions(victims: Victims, found: Room) -> Evictions:
    return Evictions(tuple((uid, right.reason) for uid, right in victims), found.plan)


def _among_few(snapshot: Snapshot, rights: Precedence, least: Right) -> Room | None:
    """Victims among few candidates: taken in turn, some only use up what their team borrows, so
    every set is searched that may be evicted one after the other."""
    few = list(islice(rights.entitled(least), SEARCHED_MAX + 1))
    gone = _any(snapshot, few, rights, least) if len(few) <= SEARCHED_MAX else None
    return None if gone is None else spare_victims(snapshot, gone)


def _any(
    snapshot: Snapshot,
    candidates: Sequence[str],
    rights: Precedence,
    least: Right,
    gone: tuple[str, ...] = (),
) -> tuple[str, ...] | None:
    """The first set of victims, ``gone`` among them, that may be evicted in some order so that the
    preemptor fits. A set that may be evicted may be evicted without one of its victims too: the
    more have left, the less is borrowed. So a set that may not be evicted is not extended."""
    if snapshot.fits():
        return gone
    for number, uid in enumerate(candidates):
        may_be_last, more = rights.now(uid, least) is not None, (*gone, uid)
        if not snapshot.remove(uid):
            continue
        if may_be_last or _one_after_the_other(snapshot, more, rights, least) is not None:
            found = _any(snapshot, candidates[number + 1 :], rights, least, more)
            if found is not None:
                return found
        snapshot.restore(uid)
    return None


def _one_after_the_other(
    snapshot: Snapshot,
    leaving: Sequence[str],
    rights: Precedence,
    least: Right = Right.OWN_SHARE,
) -> Victims | None:
    """The removed candidates in an order in which each may be evicted once those before it are
    gone, with the rights; None without such an order. It is built from its end: the fewer have
    left, the more is borrowed, so any may be last that may be evicted when all others are gone."""
    shares, left, victims = snapshot.shares, list(leaving), list[tuple[str, Right]]()
    while left:
        for at in reversed(range(len(left))):
            shares.restore(left[at])
            by = rights.now(left[at], least)
            if by is not None:
                victims.append((left.pop(at), by))
                break
            shares.remove(left[at])
        else:
            break
    for uid, _ in victims:
        shares.remove(uid)
    return None if left else tuple(reversed(victims))
