"""Prospects: one shape in one capacity, and the findings about it so far.

A waiting AppWrapper or a question holds the prospect; ``Memory`` counts the holders.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import NamedTuple

from mcad.core.nodes.columns import Mask, slots
from mcad.core.nodes.constraints import NodeSet, as_set
from mcad.core.nodes.ledger import Ledger, Plan, Row
from mcad.core.nodes.pod_class import PodClass
from mcad.core.nodes.resources import total
from mcad.core.nodes.shape import Shape
from mcad.core.state.model import Domain, Resources
from mcad.core.state.refusal import Refusal

Draft = list[tuple[int, int, int]]
"""(part, row, pods): where the pods of a gang go, by the parts of one prospect. In each of its
domains a gang has other parts."""


NOWHERE: tuple[int, Draft] = (-1, [])
"""The gang was found to fit at no change."""


class Part(NamedTuple):
    """The equal pods of a gang (``shape.Alike``), with their class in this capacity. They share no
    node with pods of the parts with the numbers in ``apart``."""

    pods: PodClass
    declared: int
    positions: tuple[int, ...]
    per_node: bool
    apart: frozenset[int] = frozenset()

    @property
    def replicas(self) -> int:
        """How many pods the part has now."""
        return self.pods.count if self.per_node else self.declared

    def spread(self, rows: Iterable[Row]) -> Iterator[tuple[Row, int]]:
        """The part's pods over these nodes in order, on each as many as fit without AppWrappers."""
        left = self.replicas
        for row in rows:
            if self.pods.admitted_by(row):
                pods = min(left, slots(row.idle, self.pods.request, self.pods.cap))
                if pods:
                    yield row, pods
                    left -= pods


Variant = tuple[tuple[int, ...], tuple[Domain | None, ...]]
"""Topology groups of a gang, and the domain of each; None is any node. Without groups the variant
is the whole gang."""


@dataclass(slots=True, eq=False)
class Prospect:
    """A shape in one capacity, and the findings of its last tests.

    ``fixed`` is the demand that does not depend on the number of nodes, ``holders`` counts its
    holders. ``fits`` is the change at which it was found to fit, and the plan. ``searched`` is
    ``Ledger.risen`` at the last search for all parts that found no place, and ``found`` its
    verdict, which stands until something rises. ``emptied`` is the change at which it was tried on
    emptied nodes, and whether it fitted. ``variants`` are prospects of the gang, or of one of its
    topology groups, in domains; ``refused_at`` is ``Ledger.risen`` when such a variant was last
    refused, and ``domains_work`` the work so far of a verdict that takes several passes. ``line``
    is its place among the refused (queueing_hints.py), -1 if it has none.
    """

    shape: Shape
    parts: tuple[Part, ...]
    ledger: Ledger
    on_nodes: bool = True
    fixed: Resources = field(init=False)
    holders: int = 0
    fits: tuple[int, Draft] = NOWHERE
    searched: int = -1
    found: Refusal | None = None
    emptied: tuple[int, bool] = (-1, False)
    variants: dict[Variant, Prospect] = field(default_factory=dict)
    refused_at: int = -1
    domains_work: int = 0
    line: int = -1
    _nodes: tuple[int, NodeSet] = (-1, 0)

    def __post_init__(self) -> None:
        parts = (part for part in self.parts if not part.per_node)
        self.fixed = total((part.pods.request, part.declared) for part in parts)

    @property
    def demand(self) -> Resources:
        """The declared demand of the whole gang now, with ``pods`` slots and host ports."""
        if not self.shape.per_node:
            return self.fixed
        return total((part.pods.request, part.replicas) for part in self.parts)

    @property
    def mask(self) -> Mask:
        """The rows that admit any of its pods; where only sums count, the rows in service."""
        if not self.on_nodes:
            return self.ledger.facts.in_service
        if len(self.parts) == 1:
            return self.parts[0].pods.mask
        mask = self.ledger.nothing()
        for number in dict.fromkeys(part.pods.constraint for part in self.parts):
            mask |= self.ledger.constraints.mask(number)
        return mask

    @property
    def nodes(self) -> NodeSet:
        """The rows of ``mask`` as a set, cached until a node changes: gangs may have many parts."""
        changes = self.ledger.constraints.changes
        if self._nodes[0] != changes:
            of_parts = (part.pods.nodes for part in self.parts)
            self._nodes = changes, reduce(or_, of_parts, 0) if self.on_nodes else as_set(self.mask)
        return self._nodes[1]

    def plan(self, draft: Draft) -> Plan:
        """The draft, which is by parts of the prospect, as a plan by pod sets of the gang."""
        row = self.ledger.row
        return [(self.parts[number].positions, row(at), pods) for number, at, pods in draft]
