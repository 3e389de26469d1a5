"""What need not keep off a claim: an AppWrapper that is gone before its room is wanted, by what
both declared (core R9), and one with a higher priority (R8)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from mcad.core.cluster import World
from mcad.core.reservations import end_times
from mcad.core.state.bounds import AVOIDED_MAX
from mcad.core.state.entry import Entry
from mcad.core.state.model import ReservedNodes
from mcad.core.state.reservation import EVICTIONS, Claim


def may_pass(world: World, entry: Entry, owner: Entry) -> bool:
    """Whether an AppWrapper that waits may take room that is reserved for the owner."""
    claim = owner.claim
    return claim is not None and (ends_before(world, entry, claim) or outranks(entry, owner))


def ends_before(world: World, entry: Entry, claim: Claim) -> bool:
    """Whether it is gone by the start that the reservation promises, if it goes now."""
    return end_times.if_begun(world, entry, world.now) <= claim.start


def outranks(entry: Entry, owner: Entry) -> bool:
    """Whether one that waits goes before the owner of a claim. What others were evicted for goes to
    the preemptor."""
    claim = owner.claim
    evicts = claim is not None and claim.reason in EVICTIONS
    return entry.workload.priority > owner.workload.priority and not evicts


def outranked(world: World, entry: Entry) -> dict[str, None]:
    """The uids (an ordered set) of the owners of claims that it outranks: their claims do not count
    for it."""
    return {uid: None for uid, owner in world.claims.items() if outranks(entry, owner)}


def reserved_nodes(world: World, entry: Entry) -> ReservedNodes:
    """The nodes that are reserved for others, and that its pods keep off; of the oldest
    reservations.

    kube-scheduler knows of no reservation and puts pods where most is free. That is where others
    have left, so no owner would ever see its nodes empty. A wish may not be granted; where
    AppWrappers are evicted for the room, their loss would be for nothing (ADR 34). A reservation
    that was made between the dispatch and the create lies beside the slots that its own pods have:
    nothing forbids those nodes, or the pods would find no node.
    """
    own = frozenset(world.capacity.nodes_of(entry.uid))
    avoid = [name for name in _of_the_redeemed(world) if name not in own]
    exclude: list[str] = []
    for owner in world.claims.values():
        claim = owner.claim
        if claim is not None and not may_pass(world, entry, owner):
            (exclude if claim.reason in EVICTIONS else avoid).extend(claim.nodes)
    exclude = [name for name in exclude if name not in own]
    return ReservedNodes(*(_first(names) for names in (avoid, exclude)))


def _of_the_redeemed(world: World) -> list[str]:
    """The nodes of those that were dispatched to what was reserved for them, while pods of theirs
    are not bound: these nodes are the emptiest, so kube-scheduler would fill them with others."""
    for uid in [uid for uid in world.redeemed if not sum(world.capacity.outstanding(uid))]:
        del world.redeemed[uid]
    return [name for uid in world.redeemed for name in world.capacity.nodes_of(uid)]


def _first(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(islice(dict.fromkeys(names), AVOIDED_MAX)))
