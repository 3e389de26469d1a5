"""All trees, their charges, and whether one more AppWrapper fits: depth x resources, in integers.

Charges are kept by AppWrapper and by leaf, and the usage of every node is derived from them: a
changed tree is built anew from its QuotaSubtrees and takes the charges along. A node that shrank
may be overcommitted; nothing more is charged to it until it is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from enum import Enum, auto
from typing import NamedTuple

from mcad.core.nodes.resources import Books, book, resources
from mcad.core.quota.absent import AbsentSubtrees
from mcad.core.quota.demand_in_line import DemandInLine
from mcad.core.quota.tree import Fault, QuotaNode, Tree, grow, without_nodes
from mcad.core.state.model import Resources
from mcad.core.state.quota_records import Designation, Path, QuotaSubtree
from mcad.core.state.refusal import QuotaLimit, Refusal
from mcad.core.state.units import Duration, Instant
from mcad.core.state.violations import check
from mcad.core.state.waiting_reason import WaitingReason

UNLIMITED = 2**63


class HeldShare(NamedTuple):
    """The part of a node's share that waiting AppWrappers hold: their leaves, and the amounts."""

    leaves: set[str]
    amounts: Books

    def with_more(self, demand: Resources) -> Books:
        """The held amounts with this demand added."""
        sums = self.amounts.copy()
        book(sums, demand)
        return sums


HeldShares = Mapping[tuple[str, str], HeldShare]
"""By (tree, node)."""


class ChargedAs(Enum):
    """Whether an AppWrapper uses its share, is in teardown, or has the share reserved while other
    AppWrappers leave. All three count against limits; figures tell them apart."""

    USED = auto()
    LEAVING = auto()
    RESERVED = auto()


class Charge(NamedTuple):
    """The charge of one AppWrapper, and its quota labels; ``path`` is their present meaning."""

    designation: Designation
    amounts: Resources
    path: Path
    kind: ChargedAs = ChargedAs.USED


class ShareNews(NamedTuple):
    """The changes since the last call: nodes (tree, node) that may have more room, and trees of
    which a share, or the way of a leaf to the root, may have changed."""

    risen: tuple[tuple[str, str], ...] = ()
    regrown: frozenset[str] = frozenset()


NO_NEWS = ShareNews()


class Forest:
    """The trees in force and their charges. Without a tree nothing is limited.

    ``subtrees`` are the QuotaSubtrees that exist, by uid; ``trees`` the trees in force, by name;
    ``charges`` the charge of each AppWrapper, perhaps empty, by uid. ``deleted`` are the trees in
    force whose root is deleted, and since when: such a tree counts only its own AppWrappers.
    """

    def __init__(self, grace: Duration = 0) -> None:
        """``grace`` is how long a deleted QuotaSubtree counts as before."""
        self.subtrees: dict[str, QuotaSubtree] = {}
        self.absent = AbsentSubtrees(grace)
        self._stale: dict[str, None] = {}  # names of trees that have to grow anew
        self.trees: dict[str, Tree] = {}
        self.deleted: dict[str, Instant] = {}
        self._faults: dict[str, list[Fault]] = {}
        self.charges: dict[str, Charge] = {}
        self._marked: dict[str, None] = {}  # uids with another kind than ``USED``
        self._risen: dict[tuple[str, str], None] = {}
        self._regrown: set[str] = set()
        self._moved: dict[str, None] = {}  # trees whose figures changed
        self.in_line = DemandInLine()

    # -- observations --------------------------------------------------------------------------

    def seen(self, subtree: QuotaSubtree) -> None:
        """A QuotaSubtree appeared or changed; it counts from the next ``refresh`` on."""
        if self.subtrees.get(subtree.uid) == subtree:
            return
        before = self.subtrees.pop(subtree.uid, subtree)
        self.subtrees[subtree.uid] = subtree
        self._stale.update({before.tree: None, subtree.tree: None})
        predecessors = self.absent.returned(subtree.namespace, subtree.name)
        if predecessors is not None:
            self._stale[predecessors] = None

    def gone(self, uid: str) -> None:
        """Remove a QuotaSubtree that no longer exists. It is absent, unless its successor exists
        already."""
        subtree = self.subtrees.pop(uid, None)
        if subtree is not None:
            self._stale[subtree.tree] = None
            at = (subtree.namespace, subtree.name)
            if all((one.namespace, one.name) != at for one in self.subtrees.values()):
                self.absent.leave(subtree)

    def expect(self, tree: str, since: Instant = 0) -> None:
        """Expect a tree in which AppWrappers counted before a restart. ``since`` is when it was
        deleted, if that is on record."""
        self.absent.expect(tree, since)
        self._stale[tree] = None

    def refresh(self, now: Instant) -> bool:
        """Rebuild the changed trees with their charges. Returns whether the set of trees, or of
        deleted trees, has changed, and with it paths."""
        before, deleted = self.trees.keys(), self.deleted.keys()
        self._regrow_stale()
        self._stale.update(dict.fromkeys(self.absent.expire(now)))
        self._regrow_stale()
        lasting = {n: self.absent.lasting(n, tree.root.subtree) for n, tree in self.trees.items()}
        is_other = self._are_deleted({name: since for name, since in lasting.items() if since})
        return is_other or self.trees.keys() != before or self.deleted.keys() != deleted

    def _are_deleted(self, trees: dict[str, Instant]) -> bool:
        """Set the deleted trees and move charges accordingly; returns whether they changed."""
        is_other, self.deleted = self.deleted.keys() != trees.keys(), trees
        for uid, (designation, amounts, path, kind) in (
            list(self.charges.items()) if is_other else ()
        ):
            if path != self.path(designation):
                self.charge(uid, designation, amounts, kind)
        return is_other

    def _regrow_stale(self) -> None:
        stale, self._stale = sorted(self._stale), {}
        if stale and self.deleted:
            self._are_deleted({})  # the stale trees may have other leaves now
        for name in stale:
            self._moved[name] = None
            self._regrow(name, self.subtrees_of(name))

    def _regrow(self, name: str, present: list[QuotaSubtree]) -> None:
        before = self.trees.get(name)
        tree, faults = grow(name, present, self.absent.of(name))
        if tree is not None or any(not (one.parent or one.children) for one in present):
            self.absent.arrived(name)
        elif self.absent.expects(name):
            tree = without_nodes(name)
        self._faults.pop(name, None)
        if faults:
            self._faults[name] = faults
        if (before is None) != (tree is None):
            self._replant(name, tree)
        elif tree is not None and before is not None:
            self.trees[name] = tree
            for leaf, amounts in before.held.items():
                tree.add(leaf, resources(amounts))
            self._risen.update(dict.fromkeys((name, node) for node in tree.nodes))
            self._regrown.add(name)

    def _replant(self, name: str, tree: Tree | None) -> None:
        """Put the tree in force, or out of force."""
        trees = {each: one for each, one in self.trees.items() if each != name}
        if tree is not None:
            trees[name] = tree
        self.trees = {each: trees[each] for each in sorted(trees)}
        for uid, charge in self.charges.items():
            self.charges[uid] = charge._replace(path=self.path(charge.designation))
            if tree is not None:
                tree.add(charge.designation.leaf(name), charge.amounts)

    # -- verdicts ------------------------------------------------------------------------------

    def path(self, designation: Designation) -> Path:
        """Where an AppWrapper with this designation would be charged."""
        if self.deleted:
            return tuple(
                (name, designation.leaf(name))
                for name in self.trees
                if name not in self.deleted or self._is_of(name, designation)
            )
        return tuple((name, designation.leaf(name)) for name in self.trees)

    def has_place(self, path: Path, designation: Designation) -> Path:
        """The part of the path that counts, or would count if the leaf of the label existed."""
        return tuple(at for at in path if at[0] in self.trees and self._is_of(at[0], designation))

    def _is_of(self, tree: str, designation: Designation) -> bool:
        """Whether an AppWrapper counts in a deleted tree: a label names the tree, or the tree has a
        leaf for AppWrappers without the label."""
        node = self.trees[tree].nodes.get(designation.leaf(tree))
        return designation.is_of(tree) or (node is not None and not node.children)

    def refusal(self, path: Path, demand: Resources) -> Refusal | None:
        """Why the demand does not fit there now; None if it fits. A demand above a whole limit is
        reported first; a tree that is not in force refuses nothing."""
        found: Refusal | None = None
        for tree, leaf in self._seats(path):
            node = tree.nodes.get(leaf)
            if node is None or node.children:
                what = QuotaLimit(tree.name, leaf, is_absent=tree.name in self.absent.trees())
                return Refusal(WaitingReason.NO_LEAF, quota=what)
            for limit in node.limits:
                for resource, amount in demand:
                    if resource not in tree.named or amount <= limit.room(resource):
                        continue
                    nominal = limit.nominal.get(resource, 0)
                    used = limit.usage.get(resource, 0)
                    absent = tree.name in self.absent.trees()
                    figures = (resource, amount, nominal, used, absent)
                    what = QuotaLimit(tree.name, leaf, limit.name, *figures)
                    if amount > nominal:
                        return Refusal(WaitingReason.ABOVE_QUOTA, quota=what)
                    found = found or Refusal(WaitingReason.QUOTA, quota=what)
        return found

    def is_nominal(self, path: Path, demand: Resources) -> bool:
        """Whether an AppWrapper that is charged there asks within the nominal shares of its leaves;
        False without a tree."""
        seats = [(tree, tree.nodes.get(leaf)) for tree, leaf in self._seats(path)]
        return bool(seats) and all(at and not tree.exceeds(at, demand) for tree, at in seats)

    def may_reclaim(self, path: Path, demand: Resources) -> bool:
        """Whether an AppWrapper that is charged there asks for at least one resource within the
        share of its leaf in one tree. In another tree the leaf may be full of AppWrappers that are
        evicted for the first (R10), and other resources may be idle."""
        seats = ((tree, tree.nodes.get(leaf)) for tree, leaf in self._seats(path))
        return any(
            n <= node.room(name)
            for tree, node in seats
            for name, n in demand
            if node is not None and name in tree.named
        )

    def is_spent(self, path: Path, demand: Resources) -> bool:
        """Whether a leaf has used up its share of a demanded resource. Called hundreds of times per
        dispatch."""
        for name, leaf in path:
            tree = self.trees.get(name)
            if tree is not None:
                spent = tree.spent(leaf)
                for resource, _ in demand:
                    if resource in spent:
                        return True
        return False

    def spent(self, path: Path) -> list[Set[str]]:
        """For each tree, the resources of which the leaf has used up its share."""
        return [tree.spent(leaf) for tree, leaf in self._seats(path)]

    def unspent(self, path: Path) -> list[Set[str]]:
        """For each tree, the resources of which the leaf has share left."""
        return [tree.named - tree.spent(leaf) for tree, leaf in self._seats(path)]

    def _seats(self, path: Path) -> Iterator[tuple[Tree, str]]:
        """The trees of the path that are in force, with its leaf in each."""
        return ((self.trees[name], leaf) for name, leaf in path if name in self.trees)

    def room(self, tree: str, node: str, resource: str) -> int:
        """How much more may be charged below this node before this node is full."""
        grown = self.trees.get(tree)
        at = grown.nodes.get(node) if grown is not None else None
        if grown is None or at is None or resource not in grown.named:
            return UNLIMITED
        return at.room(resource) if at in at.limits else UNLIMITED

    def limits(self, path: Path) -> list[tuple[str, str]]:
        """The nodes (tree, node) whose share charges on this path cannot exceed."""
        return [
            (tree.name, node.name)
            for tree, leaf in self._seats(path)
            for node in tree.node_of(leaf).limits
        ]

    def vies(self, path: Path, demand: Resources, held: HeldShares) -> HeldShare | None:
        """The held share for which the AppWrapper competes with waiting AppWrappers, None if there
        is none: the share of a node without room for both, where its leaf is among the leaves of
        the holders, or where it would have to borrow on the way (R6)."""
        for name, leaf in path:
            tree, borrows = self.trees[name], False
            for node in tree.nodes[leaf].chain if leaf in tree.nodes else ():
                share = held.get((name, node.name))
                is_rival = borrows or (share is not None and leaf in share.leaves)
                if share is not None and is_rival:
                    sums = share.with_more(demand)
                    if tree.exceeds(node, sums.items()):
                        return share
                borrows = borrows or tree.exceeds(node, demand)
        return None

    def take_news(self) -> ShareNews:
        """The changes since the last call that may let an AppWrapper in."""
        if not (self._risen or self._regrown):
            return NO_NEWS
        news = ShareNews(tuple(self._risen), frozenset(self._regrown))
        self._risen, self._regrown = {}, set()
        return news

    # -- charges -------------------------------------------------------------------------------

    def charge(
        self,
        uid: str,
        designation: Designation,
        amounts: Resources,
        kind: ChargedAs = ChargedAs.USED,
    ) -> None:
        """Charge the amounts to the AppWrapper, whether they fit or not."""
        self.release(uid)
        path = self.path(designation)
        self.charges[uid] = Charge(designation, amounts, path)
        for name, leaf in path:
            self.trees[name].add(leaf, amounts)
        self.mark(uid, kind)

    def mark(self, uid: str, kind: ChargedAs) -> None:
        """Mark the charge as used, leaving or reserved."""
        charge = self.charges[uid]
        self.charges[uid] = charge._replace(kind=kind)
        self._moved.update(dict.fromkeys(name for name, _ in charge.path))
        if kind is ChargedAs.USED:
            self._marked.pop(uid, None)
        else:
            self._marked[uid] = None

    def release(self, uid: str) -> None:
        """Release the charge of the AppWrapper, if there is one."""
        charge = self.charges.pop(uid, None)
        self._marked.pop(uid, None)
        if charge is None:
            return
        for name, leaf in charge.path:
            tree = self.trees[name]
            tree.add(leaf, charge.amounts, -1)
            self._moved[name] = None
            self._risen.update(dict.fromkeys((name, n.name) for n in tree.node_of(leaf).limits))

    def is_overcommitted(self, uid: str) -> bool:
        """Whether a limit above the AppWrapper is exceeded in a resource that it holds."""
        charge = self.charges.get(uid)
        nothing_more = [(resource, 0) for resource, _ in charge.amounts] if charge else ()
        return any(
            tree.exceeds(limit, nothing_more)
            for tree, leaf in self._seats(self.path_of(uid))
            for limit in tree.node_of(leaf).limits
        )

    def path_of(self, uid: str) -> Path:
        """Where an AppWrapper is charged, () without a charge."""
        charge = self.charges.get(uid)
        return charge.path if charge is not None else ()

    # -- for users -----------------------------------------------------------------------------

    def names(self) -> list[str]:
        """All trees that have or had nodes, in force or not."""
        names = {one.tree for one in self.subtrees.values()} | self.absent.trees()
        return sorted(name for name in names if name)

    def subtrees_of(self, name: str) -> list[QuotaSubtree]:
        """The QuotaSubtrees of a tree, in force or not, in no relevant order."""
        return [one for one in self.subtrees.values() if one.tree == name]

    def take_moved(self) -> list[str]:
        """The names of the trees with other figures or subtrees than at the last call."""
        moved = sorted(self._moved.keys() | self.in_line.moved.keys())
        self._moved.clear()
        self.in_line.moved.clear()
        return moved

    def held_as(self, kind: ChargedAs, tree: Tree) -> dict[str, Books]:
        """The leaving, or reserved, amounts at each node of a tree that has some. O(AppWrappers
        that leave or have a reservation)."""
        charges = map(self.charges.__getitem__, self._marked)
        return tree.by_node(
            (dict(one.path)[tree.name], one.amounts)
            for one in charges
            if one.kind is kind and tree.name in dict(one.path)
        )

    def faults(self, name: str) -> list[Fault]:
        """The faults of the QuotaSubtrees of a tree, in force or not."""
        return self._faults.get(name, [])

    def check(self) -> None:
        """Recompute all usage from the charges; raises ``InvariantViolated``. O(all)."""
        for name, tree in self.trees.items():
            held: dict[str, Books] = {}
            for uid, charge in self.charges.items():
                story = f"{uid} is charged to {charge.path}"
                is_marked = charge.kind is not ChargedAs.USED
                check((uid in self._marked) == is_marked, "marked-by-its-kind", story)
                check(charge.path == self.path(charge.designation), "path-is-current", story)
                if name in dict(charge.path):
                    book(held.setdefault(charge.designation.leaf(name), {}), charge.amounts)
            for node in tree.nodes.values():
                _check_node(tree, node, held)


def _check_node(tree: Tree, node: QuotaNode, held: dict[str, Books]) -> None:
    usage: Books = {}
    for leaf, amounts in held.items():
        if node in tree.node_of(leaf).chain:
            book(usage, amounts.items())
    check(
        resources(usage) == resources(node.usage),
        "usage-is-what-is-charged",
        f"{tree.name}/{node.name}: {resources(node.usage)} booked, {resources(usage)} computed",
    )
    spent = {name for name in tree.named if node.children or node.room(name) < 1}
    check(node.spent == spent, "spent-is-what-is-used", f"{node.name}: {node.spent}, {spent}")
