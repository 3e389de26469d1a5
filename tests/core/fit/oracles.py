"""What the figures of a refusal have to be, by plain arithmetic over a report."""

from __future__ import annotations

from collections.abc import Mapping

from mcad.core.capacity import Capacity
from mcad.core.nodes.filters import admits
from mcad.core.nodes.resources import book, with_pod_slot
from mcad.core.nodes.shape import Shape
from mcad.core.state.model import Node
from mcad.core.state.refusal import Refusal
from mcad.core.state.waiting_reason import WaitingReason


def figures_add_up(
    capacity: Capacity, nodes: Mapping[str, Node], shape: Shape, found: Refusal
) -> None:
    """A refusal for all parts together shows what is free on their nodes in sum, less what pods
    without a node will take there; it is a refusal by the sum if that is short, and only then."""
    if found.item >= 0 or not found.shortages:
        return
    among = [one.key.constraint for one in shape.alike]
    names = {n.name for n in nodes.values() if any(admits(n, one) for one in among)}
    left: dict[str, int] = {}
    for one in capacity.report.nodes():
        if one.name in names:
            book(left, ((name, max(0, n)) for name, n in one.free))
    for gang in capacity._assumed.by_uid.values():
        for each in gang.allotments:
            if any(admits(nodes[name], each.pod_set.constraint) for name in names):
                book(left, with_pod_slot(each.pod_set.request), -each.unplaced)
    shown = {one.resource: one.available for one in found.shortages}
    expected = {name: max(0, left.get(name, 0)) for name in shown if name in shape.demanded}
    assert {name: shown[name] for name in expected} == expected
    is_short = any(one.missing for one in found.shortages)
    assert is_short is (found.reason is WaitingReason.INSUFFICIENT)
