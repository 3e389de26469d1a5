"""QuotaSubtrees as the border reads them, and the leaves that an AppWrapper names."""

from __future__ import annotations

from typing import NamedTuple

from mcad.core.state.records import Struct
from mcad.core.state.units import Instant

Figures = tuple[tuple[str, int], ...]
"""(resource name, amount) sorted by name; unlike in ``Resources`` a zero is a figure."""

Path = tuple[tuple[str, str], ...]
"""(tree, leaf) for every tree in force, in the order of the trees' names."""

DEFAULT_LEAF = "default"
"""The leaf of an AppWrapper that names none (facts: MCAD, section 5.2)."""


class Designation(NamedTuple):
    """The leaves that an AppWrapper names."""

    labels: tuple[tuple[str, str], ...] = ()  # (tree, leaf)
    otherwise: str = DEFAULT_LEAF  # in all trees that the labels do not name

    def leaf(self, tree: str) -> str:
        """Its leaf in the tree, whether there is such a leaf or not."""
        return next((leaf for key, leaf in self.labels if key == tree), self.otherwise)

    def is_of(self, tree: str) -> bool:
        """Whether it counts in the tree even if the tree lacks its leaf: a label names the tree."""
        return self.otherwise != DEFAULT_LEAF or any(key == tree for key, _ in self.labels)


NOBODYS = Designation(otherwise="")
"""The designation for room of an unknown AppWrapper: it counts at the root of every tree."""


class QuotaChild(Struct, frozen=True):
    """One node of a tree."""

    name: str
    nominal: Figures = ()
    hard: bool = False  # it may not borrow
    flaw: str = ""  # the part that the border could not read: then the node does not count


class QuotaSubtree(Struct, frozen=True):
    """One QuotaSubtree: nodes of a tree that hang under the same parent."""

    uid: str
    namespace: str
    name: str
    created: Instant  # where two definitions contradict each other, the older counts
    tree: str  # "" if it names no tree
    parent: str  # "" for the root
    children: tuple[QuotaChild, ...]
    generation: int = 0

    @property
    def title(self) -> str:
        """``namespace/name``, for messages."""
        return f"{self.namespace}/{self.name}"


class QuotaCondition(Struct, frozen=True):
    """One condition of a QuotaSubtree."""

    type: str
    status: bool
    reason: str
    message: str
    changed: Instant  # moves only when ``status`` does


class NodeStatus(Struct, frozen=True):
    """The status of one node in force; without zeros, except for its share."""

    name: str
    nominal: Figures = ()
    allocated: Figures = ()
    borrowed: Figures = ()
    lent: Figures = ()
    waiting: Figures = ()
    leaving: Figures = ()
    reserved: Figures = ()


BOOKS = ("nominal", "allocated", "leaving", "reserved", "borrowed", "lent", "waiting")
"""The figures of a ``NodeStatus``, in the order in which users see them."""


class QuotaView(Struct, frozen=True):
    """The status of one QuotaSubtree; the border renders it for the wire, and reads it back."""

    generation: int
    conditions: tuple[QuotaCondition, ...] = ()
    children: tuple[NodeStatus, ...] = ()
