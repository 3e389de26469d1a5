"""Who need not keep off a claim: whoever is gone before its room is wanted, by what both declared
(core R9), and whoever has a higher priority (R8)."""

from __future__ import annotations

from mcad.core import ends
from mcad.core.claim import Claim, ClaimReason
from mcad.core.entry import Entry
from mcad.core.units import Instant


def may_pass(entry: Entry, owner: Entry, now: Instant) -> bool:
    """Whether somebody who waits may take room that the owner claims."""
    claim = owner.claim
    return claim is not None and (ends_before(entry, claim, now) or outranks(entry, owner))


def ends_before(entry: Entry, claim: Claim, now: Instant) -> bool:
    """Whether it is gone by the start that the claim promises, if it goes now."""
    return ends.if_begun(entry, now) <= claim.start


def outranks(entry: Entry, owner: Entry) -> bool:
    """Whether somebody who waits goes before the owner of a claim. What one takes back of his share
    he need not give to a higher priority."""
    claim = owner.claim
    reclaims = claim is not None and claim.reason is ClaimReason.RECLAIMING
    return entry.workload.priority > owner.workload.priority and not reclaims
