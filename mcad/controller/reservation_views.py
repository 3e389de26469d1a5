"""Claims and evictions as JSON, for the HTTP port and the CLI."""

from typing import Any

from mcad.api.status import render_claim, render_eviction
from mcad.api.wire import format_instant
from mcad.core.cluster import World
from mcad.core.state.entry import Entry
from mcad.core.state.refusal import Refusal
from mcad.core.state.reservation import Claim
from mcad.core.views.blocking_reservations import in_the_way

Json = dict[str, Any]


def claim_view(world: World, entry: Entry, refusal: Refusal | None) -> Json:
    """What an AppWrapper claims, the claims of others in its way, and when it was evicted last;
    None and empty where there is nothing of that. ``refusal`` is the present verdict on it."""
    return {
        "claim": render_claim(entry.claim) if entry.claim is not None else None,
        "keptOffBy": [
            _owner_view(owner, claim) for owner, claim in in_the_way(world, entry, refusal)
        ],
        "eviction": render_eviction(entry.eviction) if entry.eviction is not None else None,
    }


def _owner_view(owner: Entry, claim: Claim) -> Json:
    return {
        "namespace": owner.workload.namespace,
        "name": owner.workload.name,
        "reason": claim.reason.value,
        "nodeCount": len(claim.nodes),
        "until": format_instant(claim.until),
        "start": format_instant(claim.start),
    }
