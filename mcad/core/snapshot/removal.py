"""Which AppWrappers have to be removed so that one gang fits, each of them needed.

Evictions, release sets and start time estimates use this. Entrance: ``Admission.what_if``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mcad.core.nodes.ledger import Plan
from mcad.core.snapshot.snapshot import Snapshot


class Room(NamedTuple):
    """The AppWrappers that have to leave, in the order of the candidates, and where the gang goes
    then."""

    leaving: tuple[str, ...]
    plan: Plan


def fewest(snapshot: Snapshot, candidates: Iterable[str]) -> Room | None:
    """The candidates that have to leave, each of them needed (R10).

    They are removed in order until the gang fits. Then the last, which are the most valuable, are
    restored first if the gang fits with them. Each candidate is asked for when those before it are
    removed. Those of the result stay removed; without a result none is.
    """
    gone = _leave_until_it_fits(snapshot, candidates)
    return None if gone is None else spare_victims(snapshot, gone)


def soonest(snapshot: Snapshot, candidates: Iterable[str]) -> Room | None:
    """The first candidates that suffice, where none can be spared; without those that have nothing
    that the gang could use."""
    gone = _leave_until_it_fits(snapshot, candidates)
    return None if gone is None else spare_victims(snapshot, gone, to_the_end=False)


def _leave_until_it_fits(snapshot: Snapshot, candidates: Iterable[str]) -> list[str] | None:
    """The AppWrappers removed until the gang fits, perhaps more than needed: a test is expensive
    where sums suffice and the gang still does not fit, so the next one comes after one more is
    removed, two, four..."""
    if snapshot.hopeless:
        return None
    gone: list[str] = []
    due = run = 1
    if snapshot.fits():
        return gone
    for uid in () if snapshot.is_spent else candidates:
        if not snapshot.remove(uid):
            continue
        gone.append(uid)
        if len(gone) >= due and snapshot.suffices():
            if snapshot.fits():
                return gone
            run *= 2
            due = len(gone) + run
        if snapshot.is_spent:
            break
    if gone and snapshot.fits():
        return gone
    for uid in gone:
        snapshot.restore(uid)
    return None


def spare_victims(
    snapshot: Snapshot, gone: Sequence[str], *, to_the_end: bool = True
) -> Room | None:
    """With those ``gone`` the gang fits. Restore, from the last to the first, those that it does
    not need; all of them, or (not ``to_the_end``) those before the first that is needed.

    There is ever less room, so an AppWrapper that gives as much as a needed one, on nodes like
    those of that one, is needed as well: no test, which for several parts may cost a search."""
    left, kept, needed = list(gone), list[str](), set[object]()
    while left and (to_the_end or not kept):
        uid = left.pop()
        if needed and snapshot.likeness(uid) in needed:
            kept.append(uid)
            continue
        snapshot.restore(uid)
        if not snapshot.fits():
            snapshot.remove_anyway(uid)
            kept.append(uid)
            needed.add(snapshot.likeness(uid))
    left += reversed(kept)
    plan = snapshot.plan()
    if plan is None:
        for uid in left:
            snapshot.restore(uid)
        return None
    return Room(tuple(left), plan)
