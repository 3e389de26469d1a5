"""Which AppWrappers were evicted for others since some time."""

from __future__ import annotations

from mcad.core.cluster import Cluster
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Workload
from mcad.core.state.reservation import Eviction
from mcad.core.state.units import Instant

Evicted = tuple[Workload, Eviction]


def evicted_after(cluster: Cluster, since: Instant, namespace: str = "") -> list[Evicted]:
    """Existing AppWrappers (of a namespace; "" is all) with their last eviction, latest first."""
    found = [
        (entry.workload, entry.eviction)
        for entry in cluster.entries.values()
        if entry.eviction is not None
        and entry.eviction.at > since
        and entry.phase is not Phase.GONE
        and namespace in ("", entry.workload.namespace)
    ]
    return sorted(found, key=lambda one: (-one[1].at, one[0].namespace, one[0].name))
