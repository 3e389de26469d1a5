"""Who need not keep off a claim: whoever is gone before its room is wanted, by what both declared
(core R9), and whoever has a higher priority (R8)."""

from __future__ import annotations

from mcad.core import ends
from mcad.core.claim import EVICTIONS, Claim
from mcad.core.entry import Entry
from mcad.core.pacing import AVOIDED_MAX
from mcad.core.units import Instant
from mcad.core.world import World


def may_pass(entry: Entry, owner: Entry, now: Instant) -> bool:
    """Whether somebody who waits may take room that the owner claims."""
    claim = owner.claim
    return claim is not None and (ends_before(entry, claim, now) or outranks(entry, owner))


def ends_before(entry: Entry, claim: Claim, now: Instant) -> bool:
    """Whether it is gone by the start that the claim promises, if it goes now."""
    return ends.if_begun(entry, now) <= claim.start


def outranks(entry: Entry, owner: Entry) -> bool:
    """Whether somebody who waits goes before the owner of a claim. What others were evicted for is
    given to whom they were evicted for."""
    claim = owner.claim
    evicts = claim is not None and claim.reason in EVICTIONS
    return entry.workload.priority > owner.workload.priority and not evicts


def outranked(world: World, entry: Entry) -> dict[str, None]:
    """The uids (an ordered set) of the owners of claims whom it outranks: their claims do not count
    for it."""
    return {uid: None for uid, owner in world.claims.items() if outranks(entry, owner)}


def nodes_to_avoid(world: World, entry: Entry) -> tuple[str, ...]:
    """The names of the nodes in claims that it may not pass, by the oldest claims, sorted.

    kube-scheduler knows of no claim and puts pods where most is free. That is where others have
    left for a claim, so nobody who claims a node would ever see it empty.
    """
    names: list[str] = []
    for owner in world.claims.values():
        if owner.claim is not None and not may_pass(entry, owner, world.now):
            names += owner.claim.nodes
    return tuple(sorted(names[:AVOIDED_MAX]))
