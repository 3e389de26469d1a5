"""The demand of the AppWrappers in line, by leaf, kept up to date as they come and go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mcad.core.nodes.resources import Books, book, resources
from mcad.core.state.model import Resources
from mcad.core.state.quota_records import Path

if TYPE_CHECKING:
    from mcad.core.nodes.shape import Shape


class DemandInLine:
    """The demand in line by tree and leaf. Demand that depends on the number of nodes is kept as
    shapes, and computed when asked for. ``moved`` names the trees whose demand has changed."""

    def __init__(self) -> None:
        self.moved: dict[str, None] = {}
        self._asked: dict[str, dict[str, Books]] = {}
        self._per_node: dict[tuple[Path, Shape], int] = {}

    def join(self, path: Path, shape: Shape, times: int = 1) -> None:
        """Add the demand of an AppWrapper in line, or remove it with ``times`` -1."""
        if shape.per_node and path:
            key = (path, shape)
            self._per_node[key] = self._per_node.get(key, 0) + times
            if not self._per_node[key]:
                del self._per_node[key]
        for tree, leaf in path:
            self.moved[tree] = None
            if not shape.per_node:
                leaves = self._asked.setdefault(tree, {})
                books = leaves.setdefault(leaf, {})
                book(books, shape.fixed, times)
                if times < 0 and not any(books.values()):
                    del leaves[leaf]
                if not leaves:
                    del self._asked[tree]

    def of(self, tree: str, demand: Callable[[Shape], Resources]) -> Mapping[str, Resources]:
        """The demand in the tree by leaf; ``demand`` computes a shape on the present nodes."""
        found = {leaf: dict(books) for leaf, books in self._asked.get(tree, {}).items()}
        for (path, shape), count in self._per_node.items():
            leaf = dict(path).get(tree)
            if leaf is not None:
                book(found.setdefault(leaf, {}), demand(shape), count)
        return {leaf: resources(books) for leaf, books in found.items()}

    def equals(self, other: DemandInLine) -> bool:
        """Whether both have the same demand; for checks."""
        return self._sums() == other._sums() and self._per_node == other._per_node

    def _sums(self) -> dict[tuple[str, str], Resources]:
        """The demand by tree and leaf, without leaves that have none."""
        found = {
            (tree, leaf): resources(books)
            for tree, leaves in self._asked.items()
            for leaf, books in leaves.items()
        }
        return {key: amounts for key, amounts in found.items() if amounts}
