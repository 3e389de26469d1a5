"""The quota side of a snapshot: whether one gang's shares would suffice without some AppWrappers.

Removing and restoring are computed beside the books: O(depth x resources) each, and no tree
changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from mcad.core.nodes.resources import Books
from mcad.core.quota.tree import QuotaNode, Tree
from mcad.core.quota.usage import Charge
from mcad.core.state.model import Resources
from mcad.core.state.quota_records import Path

_Account = tuple[Books, Books | None, str, int]
"""What is left at a quota node, what the gang is missing there (None: none of this resource), the
resource, and the amount that is charged."""


class Seat(NamedTuple):
    """Where the gang would be charged in one tree, and for what: the resources that the tree names.
    ``node`` is a leaf in force."""

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
        self._known: dict[tuple[Path, Resources], list[_Account]] = {}
        self._left: dict[QuotaNode, Books] = {}
        self._missing: dict[QuotaNode, Books] = {}  # of limits, below 0 if there is more than that
        self._short = 0  # how many of those are above 0
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
            missing = self._missing[limit] = {name: n - limit.room(name) for name, n in named}
            self._short += sum(n > 0 for n in missing.values())
            self.hopeless |= any(n > limit.nominal.get(name, 0) for name, n in named)

    def remove(self, uid: str) -> bool:
        """Give back the AppWrapper's charge. False if the gang lacks none of it; it is given back
        all the same."""
        return self._move(uid, 1)

    def restore(self, uid: str) -> None:
        """Charge a removed AppWrapper again."""
        self._move(uid, -1)

    def _move(self, uid: str, times: int) -> bool:
        """Asked of thousands, most of which are charged for the same at the same leaves."""
        useful = False
        for left, missing, name, n in self._books_of(uid):
            left[name] += n * times
            if missing is not None:
                before = missing[name]
                after = missing[name] = before - n * times
                self._short += (after > 0) - (before > 0)
                useful = useful or before > 0
        return useful

    def _books_of(self, uid: str) -> list[_Account]:
        """Where the charge of an AppWrapper is counted."""
        charge = self._charges.get(uid)
        if charge is None or uid in self._planned:
            return self._accounts(self.held(uid))
        key = charge.path, charge.amounts
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._accounts(self.held(uid))
        return found

    def _accounts(self, held: Iterable[tuple[Tree, QuotaNode, Resources]]) -> list[_Account]:
        found: list[_Account] = []
        for _, node, amounts in held:
            for each in node.chain:
                left = self._left.setdefault(each, {})
                missing = self._missing.get(each, {})
                for name, n in amounts:
                    left.setdefault(name, 0)
                    found.append((left, missing if name in missing else None, name, n))
        return found

    def fits(self) -> bool:
        """Whether its shares would suffice in all trees."""
        return not self._short and not self.hopeless

    def assume(self, uid: str, seats: tuple[Seat, ...]) -> None:
        """Assume this charge for an AppWrapper without one, until it is removed."""
        self._planned[uid] = seats
        self._move(uid, -1)

    def held(self, uid: str) -> Iterator[tuple[Tree, QuotaNode, Resources]]:
        """(tree, node, amounts): where the AppWrapper is charged, and for what."""
        if uid in self._planned:
            yield from self._planned[uid]
            return
        charge = self._charges.get(uid)
        if charge is not None:
            for name, leaf in charge.path:
                tree = self._trees[name]
                yield tree, tree.node_of(leaf), charge.amounts

    def account(self, uid: str) -> tuple[Path, Resources]:
        """Equal for two charged AppWrappers with the same charge at the same leaves."""
        charge = self._charges.get(uid)
        return ((), ()) if charge is None else (charge.path, charge.amounts)

    def over(self, node: QuotaNode, resource: str, more: int = 0) -> bool:
        """Whether the node and those below it would have more than its share with so much ``more``,
        without the removed AppWrappers."""
        left = self._left.get(node)
        return more > node.room(resource) + (left.get(resource, 0) if left is not None else 0)

    def over_by_now(self) -> Callable[[QuotaNode, str], bool]:
        """The same without ``more``, fixed at this moment whatever is removed later."""
        left_by_now = {node: books.copy() for node, books in self._left.items()}

        def over(node: QuotaNode, resource: str) -> bool:
            left = left_by_now.get(node)
            return node.room(resource) + (left.get(resource, 0) if left is not None else 0) < 0

        return over
