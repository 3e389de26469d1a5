"""What the levels of the cluster's topology add to the requests of manifests (ADR 53).

The setting ``topologyLevels`` names node labels, the widest domains first: block, rack, hostname. A
preferred topology without room at its level is tried at the next wider level. A gang without
topology is put together as closely as there is room for all of it, so that whole domains stay free;
it never waits for that, and its pods may go elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mcad.core.state.model import HOSTNAME, Domain, PodSet, Topology
from mcad.core.state.records import replace

_TOGETHER = "all"


def widened(topology: Topology | None, levels: tuple[str, ...]) -> Topology | None:
    """A preferred topology with the levels wider than its own; a topology whose label is no level
    is not changed."""
    if topology is None or topology.required or topology.levels[-1] not in levels:
        return topology
    wider = levels[: levels.index(topology.levels[-1])]
    return replace(topology, levels=(*topology.levels, *reversed(wider))) if wider else topology


def put_together(sets: tuple[PodSet, ...], levels: tuple[str, ...]) -> tuple[PodSet, ...]:
    """The sets of a gang without topology, as if all had to share one domain. Single nodes are left
    to kube-scheduler."""
    topology = Topology(domain_levels(levels), group=_TOGETHER)
    return tuple(replace(one, topology=topology) for one in sets)


def domain_levels(levels: tuple[str, ...]) -> tuple[str, ...]:
    """The levels for gangs without topology, the narrowest first."""
    return tuple(level for level in reversed(levels) if level != HOSTNAME)


def common_domain(nodes: Collection[Mapping[str, str]], levels: tuple[str, ...]) -> Domain | None:
    """The narrowest domain that has all of these nodes, given by their labels."""
    for level in domain_levels(levels):
        values = {labels.get(level) for labels in nodes}
        value = values.pop() if len(values) == 1 else None
        if value is not None:
            return level, value
    return None
