"""Which AppWrappers have to be removed so that one gang fits, each of them needed.

Evictions, release sets and start time estimates use this. Entrance: ``Admission.what_if``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mcad.core.nodes.ledger import Plan
from mcad.core.snapshot.snapshot import Snapshot


class Room(NamedTuple):
    """The AppWrappers that have to leave, in the order of the candidates, and the gang's plan
    then."""

    leaving: tuple[str, ...]
    plan: Plan


def fewest(snapshot: Snapshot, candidates: Iterable[str]) -> Room | None:
    """The candidates that have to leave, each of them needed (R10).

    Candidates are removed in order until the gang fits. Then they are restored from the last, the
    most valuable, where the gang still fits. Each candidate is requested after the removal of the
    candidates before it. Those of the result stay removed; without a result none does.
    """
    gone = _leave_until_it_fits(snapshot, candidates)
    return None if gone is None else spare_victims(snapshot, gone)


def soonest(snapshot: Snapshot, candidates: Iterable[str]) -> Room | None:
    """The fewest first candidates that suffice; candidates without anything that the gang could use
    are skipped."""
    gone = _leave_until_it_fits(snapshot, candidates)
    return None if gone is None else spare_victims(snapshot, gone, to_the_end=False)


def _leave_until_it_fits(snapshot: Snapshot, candidates: Iterable[str]) -> list[str] | None:
    """The AppWrappers removed until the gang fits, perhaps too many: a test is expensive where sums
    suffice and the gang still does not fit, so the tests come one, two, four... removals apart."""
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
    """The gang fits with ``gone`` removed. Restore from the last to the first the AppWrappers that
    the gang does not need, to the first needed one or (``to_the_end``) all.

    Room only falls here, so an AppWrapper that gives as much as a needed one, on similar nodes, is
    needed as well, without a test, which may cost a search.
    """
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
