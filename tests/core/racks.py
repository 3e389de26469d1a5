"""Nodes in racks, and AppWrappers whose pods have to be in one."""

from __future__ import annotations

from mcad.core.state.model import Node, Topology, Workload
from mcad.core.state.records import replace
from tests.core.bench import node, workload

TOGETHER = Topology(("rack",), group="all")


def rack(name: str, nodes: int) -> list[Node]:
    """So many nodes of 1 CPU with this value of the label ``rack``."""
    return [replace(node(f"{name}n{n}"), labels=(("rack", name),)) for n in range(nodes)]


def close(name: str, *milli: int, **changes: object) -> Workload:
    """An AppWrapper with one bare Pod per figure, all of them in one rack."""
    work = workload(name, *milli, **changes)
    return replace(work, sets=tuple(replace(one, topology=TOGETHER) for one in work.sets))
