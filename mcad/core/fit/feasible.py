"""Prospects: what one capacity made of one shape, and what it found out about it so far.

What waits with a shape, or asks about it, holds its prospect; ``Memory`` counts the holders.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from mcad.core.fit.domain_counts import DomainSlots
from mcad.core.nodes.pod_signature import PodClass, slots
from mcad.core.nodes.pools import Draft, Plan, Pool, Row, rough_total
from mcad.core.nodes.reserved_free import Spare
from mcad.core.nodes.resources import total
from mcad.core.nodes.shape import Shape
from mcad.core.state.model import Domain, Resources
from mcad.core.state.refusal import Refusal
from mcad.core.state.work_bounds import FEW_PARTS, LOOKS_MAX, LOOKS_OF_MANY


class Part(NamedTuple):
    """The equal pods of a gang (``shape.Alike``), with their class in this capacity. Pods of the
    parts with the numbers in ``apart`` share no node with these."""

    pods: PodClass
    declared: int
    positions: tuple[int, ...]
    per_node: bool
    apart: frozenset[int] = frozenset()

    @property
    def replicas(self) -> int:
        """How many pods the part has now."""
        return len(self.pods.pool.rows) if self.per_node else self.declared

    def spread(self, rows: Iterable[Row]) -> Iterator[tuple[Row, int]]:
        """Its pods over these nodes in their order, as many on each as fit without AppWrappers."""
        left = self.replicas
        for row in rows:
            fits = row.rank in self.pods.pool.rows
            pods = min(left, slots(row.idle, self.pods.request, self.pods.cap)) if fits else 0
            if pods:
                yield row, pods
                left -= pods


class NoNodes(NamedTuple):
    """A pool without nodes."""

    pool: Pool


class InsufficientSum(NamedTuple):
    """A resource that is short in the sum of pools: as long as it is, nothing else matters.

    ``standing_in``: the pools do so for others as well, until a node joins.
    """

    pools: tuple[Pool, ...]
    resource: str
    needed: int
    standing_in: bool


class InsufficientSlots(NamedTuple):
    """Pods that do not find enough slots even by themselves: as long as that is so, likewise."""

    pods: PodClass
    replicas: int


class TooLarge(NamedTuple):
    """A pod that no node could take even if it were empty: as long as that is so, no other node
    gains enough room, and none that gains some matters."""

    pods: PodClass


Obstacle = NoNodes | TooLarge | InsufficientSum | InsufficientSlots
"""What surely keeps a gang out by itself, whatever is owed to others."""


Variant = tuple[tuple[int, ...], tuple[Domain | None, ...]]
"""Topology groups of a gang, and the domain of each; None is any node. Without groups in the first
place it is about the whole gang."""


@dataclass(slots=True, eq=False)
class Prospect:
    """A shape in one capacity.

    ``pools`` are those whose rises concern it, ``fixed`` is the demand that does not depend on the
    number of nodes, and ``holders`` counts its holders.

    The rest is what its last tests found out. ``watched`` is the part that refused it, to be asked
    first (R4), and ``obstacle`` what surely keeps it out. ``searched`` and ``found`` are
    ``latest_rise()`` at its last search on nodes and the verdict, which stands until something
    rises. ``widest`` are the pools whose sums are that of all its nodes, None if there are none
    such, and the number of joins that this holds for: nodes that leave leave it true.
    ``emptied`` is the change at which it was tried on emptied nodes, and whether it fitted;
    ``lacking`` the part that alone did not fit there, and at least how many of its pods.
    ``variants`` are prospects of the gang, or of one of its topology groups, in domains, and
    ``domain_slots`` are counts by part, level and whether AppWrappers are left out; ``short_part``
    is the part that found too few slots in a domain last. ``refused_at`` is ``latest_rise()`` when
    one of the variants was refused last, and ``domains_work`` what a verdict on the gang that takes
    several passes has taken so far.
    """

    shape: Shape
    parts: tuple[Part, ...]
    pools: tuple[Pool, ...]
    fixed: Resources = field(init=False)
    holders: int = 0
    watched: int = 0
    obstacle: Obstacle | None = None
    searched: int = -1
    found: Refusal | None = None
    widest: tuple[int, tuple[Pool, ...] | None] = (-1, None)
    emptied: tuple[int, bool] = (-1, False)
    lacking: tuple[int, int] | None = None
    variants: dict[Variant, Prospect] = field(default_factory=dict)
    short_part: int = 0
    refused_at: int = -1
    domains_work: int = 0
    domain_slots: dict[tuple[int, str, bool], DomainSlots] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parts = (part for part in self.parts if not part.per_node)
        self.fixed = total((part.pods.request, part.declared) for part in parts)

    @property
    def demand(self) -> Resources:
        """What the whole gang declares now, with ``pods`` slots and host ports."""
        if not self.shape.per_node:
            return self.fixed
        return total((part.pods.request, part.replicas) for part in self.parts)

    def plan(self, draft: Draft) -> Plan:
        """The draft, which is by its parts, by the pod sets of the gang."""
        return [(self.parts[number].positions, row, pods) for number, row, pods in draft]

    @property
    def looked(self) -> int:
        """The nodes that the classes of its parts looked at so far."""
        return sum([part.pods.looked for part in self.parts])

    def may_fit(self, spare: Spare) -> bool:
        """Whether there are slots enough for each part by itself there and on nodes that are free
        for all, and enough in sum. Of dozens of parts only the first are looked at."""
        left = looks_max(len(self.parts))
        for part in self.parts:
            looked = part.pods.looked
            if not (part.per_node or _has_slots(part, spare)):
                return False
            left -= part.pods.looked - looked
            if left <= 0:
                break
        if len(self.parts) == 1:
            return True
        sums, more = rough_total(self.pools), spare.total()
        return all(sums.get(name, 0) + more.get(name, 0) >= n for name, n in self.demand)

    def has_place(self, spare: Spare) -> bool:
        """Whether there is room there for any of its pods."""
        if len(self.parts) == 1:  # asked of thousands
            return spare.slots(self.parts[0].pods, 1) > 0
        return any(spare.slots(part.pods, 1) for part in self.parts)

    def latest_rise(self) -> int:
        """The change at which something last rose in one of its pools."""
        latest = 0
        for pool in self.pools:
            latest = max(latest, pool.risen)
            # A node less is a pod less: what is a fall for others may let a DaemonSet in.
            if self.shape.per_node and pool.shifted > latest:
                latest = pool.shifted
        return latest


def looks_max(parts: int) -> int:
    """The nodes that a verdict on a gang of so many parts looks at in one go."""
    return LOOKS_MAX if parts <= FEW_PARTS else LOOKS_OF_MANY


def _has_slots(part: Part, spare: Spare) -> bool:
    """First by what is known of the class, which mostly is enough to say no."""
    missing = part.pods.missing(part.declared)
    if spare.slots(part.pods, missing) < missing:
        return False
    missing = part.pods.missing(part.declared, closely=True)
    return spare.slots(part.pods, missing) >= missing
