"""The quota side of a snapshot: whether one gang's shares would suffice without some AppWrappers.

Removing and restoring are computed beside the books: O(depth x resources) each, and no tree
changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from typing import NamedTuple

from mcad.core.nodes.resources import Books, book
from mcad.core.quota.tree import QuotaNode, Tree
from mcad.core.quota.usage import Charge
from mcad.core.state.model import Resources
from mcad.core.state.quota_records import Path


class Seat(NamedTuple):
    """Where the gang would be charged in one tree, and the charge: the resources that the tree
    names. ``node`` is a leaf in force."""

    tree: Tree
    node: QuotaNode
    demand: Resources


class Shares:
    """The shares of one gang without the removed AppWrappers.

    ``hopeless``: its leaf does not exist, or it demands more than the whole of a limit. ``seats``
    are its places in the trees in force.
    """

    def __init__(
        self,
        trees: Mapping[str, Tree],
        charges: Mapping[str, Charge],
        path: Path,
        demand: Resources,
        lifted: Iterable[str],
    ) -> None:
        self._trees = trees
        self._charges = charges
        self._planned: dict[str, tuple[Seat, ...]] = {}
        self._given_back: dict[QuotaNode, Books] = {}
        self._demanded: dict[QuotaNode, Books] = {}  # by the limits above its seats
        self.hopeless = False
        self.seats: list[Seat] = []
        for name, leaf in path:
            tree = trees.get(name)
            if tree is not None:
                self._sit(tree, tree.nodes.get(leaf), demand)
        for uid in lifted:
            self.remove(uid)

    def _sit(self, tree: Tree, node: QuotaNode | None, demand: Resources) -> None:
        if node is None or node.children:
            self.hopeless = True
            return
        named = tuple((name, n) for name, n in demand if name in tree.named)
        self.seats.append(Seat(tree, node, named))
        for limit in node.limits:
            self._demanded[limit] = dict(named)
            self.hopeless |= any(n > limit.nominal.get(name, 0) for name, n in named)

    def remove(self, uid: str) -> bool:
        """Give back the AppWrapper's charge. Returns False if the gang lacks none of these
        resources; the charge is given back in any case."""
        if not self.seats:
            return False
        useful = False
        for _, node, amounts in self.held(uid):
            for each in node.chain:
                demanded = self._demanded.get(each, {})
                useful = useful or any(
                    name in demanded and self.over(each, name, demanded[name])
                    for name, _ in amounts
                )
                book(self._given_back.setdefault(each, {}), amounts)
        return useful

    def restore(self, uid: str) -> None:
        """Charge a removed AppWrapper again."""
        for _, node, amounts in self.held(uid) if self.seats else ():
            for each in node.chain:
                book(self._given_back.setdefault(each, {}), amounts, -1)

    def fits(self) -> bool:
        """Whether its shares would suffice in all trees."""
        return not self.hopeless and not any(
            self.over(limit, name, n)
            for limit, demanded in self._demanded.items()
            for name, n in demanded.items()
        )

    def assume(self, uid: str, seats: tuple[Seat, ...]) -> None:
        """Assume this charge for an AppWrapper without one, until it is removed."""
        self._planned[uid] = seats
        self.restore(uid)

    def held(self, uid: str) -> Iterator[tuple[Tree, QuotaNode, Resources]]:
        """(tree, node, amounts): where the AppWrapper is charged, and its charge."""
        if uid in self._planned:
            yield from self._planned[uid]
            return
        charge = self._charges.get(uid)
        if charge is not None:
            for name, leaf in charge.path:
                tree = self._trees[name]
                yield tree, tree.node_of(leaf), charge.amounts

    def account(self, uid: str) -> tuple[Path, Resources]:
        """A key that is equal for two AppWrappers with the same charge at the same leaves."""
        charge = self._charges.get(uid)
        return ((), ()) if charge is None else (charge.path, charge.amounts)

    def over(self, node: QuotaNode, resource: str, more: int = 0) -> bool:
        """Whether the subtree of the node, with ``more`` of the resource, would exceed its share
        without the removed AppWrappers."""
        given_back = self._given_back.get(node)
        there = given_back.get(resource, 0) if given_back is not None else 0
        return more > node.room(resource) + there

    def over_by_now(self) -> Callable[[QuotaNode, str], bool]:
        """``over`` without ``more``, fixed at this moment: later removals do not change it."""
        fixed = copy(self)
        fixed._given_back = {node: books.copy() for node, books in self._given_back.items()}
        return fixed.over
