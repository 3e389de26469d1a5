"""Shapes: what equal gangs have in common, interned, so that equal gangs share their verdicts.

Two gangs are of one shape if their pod sets are equal in everything but the path they were read
from. Classes and pools that no living shape and no reservation uses are dropped from time to time:
users invent constraints for ever, and every pool costs something at every change of a node.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from weakref import WeakValueDictionary

from mcad.core.ledger import Ledger
from mcad.core.limits import CLASSES_KEPT_MIN
from mcad.core.model import Constraint, Node, PodSet, Refusal, Resources
from mcad.core.placement import admits, in_service
from mcad.core.podclass import PodClass
from mcad.core.pools import Pool
from mcad.core.resources import total

ClassKey = tuple[Resources, Constraint, int]


@dataclass(slots=True, eq=False)
class Part:
    """All pods of a gang that are of one class.

    ``positions`` are the indices of their sets within the gang. For ``per_node`` parts the number
    of replicas is that of the admitted nodes.
    """

    pods: PodClass
    declared: int
    positions: tuple[int, ...]
    per_node: bool

    @property
    def replicas(self) -> int:
        """How many pods the part has now."""
        return len(self.pods.pool.rows) if self.per_node else self.declared


@dataclass(slots=True, eq=False)
class Search:
    """What a shape remembers of its last search on nodes: it is valid until a pool rises (R4)."""

    at: int = -1
    refusal: Refusal | None = None


@dataclass(slots=True, eq=False, weakref_slot=True)
class Shape:
    """The demand of a gang. Compared by identity: ``Capacity.shape`` interns.

    ``pools`` are those whose rises concern it. ``watched`` is the part that refused it last, and is
    asked first. ``eased`` is shared by all shapes of a Capacity, see ``Eased``.
    """

    sets: tuple[PodSet, ...]
    parts: tuple[Part, ...]
    pools: tuple[Pool, ...]
    eased: Eased
    unmodelled: tuple[str, ...]
    watched: int = 0
    again: int = 0
    search: Search = field(default_factory=Search)
    emptied: tuple[int, bool] = (-1, False)

    @property
    def demand(self) -> Resources:
        """What the whole gang declares, with the ``pods`` slots."""
        return total((part.pods.request, part.replicas) for part in self.parts)

    def rises(self) -> int:
        """A number that changes whenever something rose that concerns the shape (R4)."""
        return max(self.eased.at, self.again, max((p.risen for p in self.pools), default=0))


@dataclass(slots=True, eq=False)
class Eased:
    """The change at which adrift reservations last weighed less on everybody's sums."""

    at: int = 0
