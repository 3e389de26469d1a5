"""How the QuotaSubtrees of one name become a tree, and the faults of QuotaSubtrees that do not.

A node that cannot be placed drags along the nodes below it and no other: of two contradicting
objects the older counts, so a new object puts no other share out of force.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from mcad.core.nodes.resources import Books, book
from mcad.core.state.model import Resources
from mcad.core.state.quota_records import QuotaChild, QuotaSubtree
from mcad.core.state.units import Instant


class Flaw(StrEnum):
    """Why a node of a QuotaSubtree is not in force; the reason of its condition."""

    PARENT_MISSING = "ParentMissing"
    CYCLE = "Cycle"
    NAME_USED_TWICE = "NameUsedTwice"
    NO_ROOT = "NoRoot"
    SEVERAL_ROOTS = "SeveralRoots"
    UNREADABLE = "InvalidQuota"
    NO_TREE = "NoTree"


class Fault(NamedTuple):
    """The fault of one child of a QuotaSubtree, or of all of it: then the child is ""."""

    uid: str
    child: str
    flaw: Flaw
    message: str


@dataclass(slots=True, eq=False)
class QuotaNode:
    """A node in force. ``usage`` is the charge of the node and of all nodes below it.

    ``chain`` leads from the node to the root; ``limits`` are the nodes of the chain whose share
    cannot be exceeded: hard nodes and the root. Below a limit a node may borrow. ``spent`` are the
    resources named by the tree of which a leaf has used up its share, all of them for an inner
    node. ``subtree`` is the uid of the QuotaSubtree that defines the node.
    """

    name: str
    nominal: dict[str, int]
    hard: bool
    subtree: str = ""
    children: list[QuotaNode] = field(default_factory=list)
    usage: Books = field(default_factory=dict)
    spent: set[str] = field(default_factory=set)
    chain: tuple[QuotaNode, ...] = ()
    limits: tuple[QuotaNode, ...] = ()

    def room(self, resource: str) -> int:
        """The rest of the node's share; below zero if it is overcommitted or borrows."""
        return self.nominal.get(resource, 0) - self.usage.get(resource, 0)

    def see_what_is_spent(self, named: Iterable[str]) -> None:
        """Recompute ``spent`` for these resources; it is read far more often than it changes."""
        nominal, usage, spent = self.nominal, self.usage, self.spent
        for name in named:
            if self.children or nominal.get(name, 0) <= usage.get(name, 0):
                spent.add(name)
            else:
                spent.discard(name)


@dataclass(slots=True, eq=False)
class Tree:
    """A tree in force: it has a root. It limits only the ``named`` resources.

    ``held`` is the charge by the leaf's name: a name that is no node counts at the root.
    """

    name: str
    root: QuotaNode
    nodes: dict[str, QuotaNode]
    named: frozenset[str]
    held: dict[str, Books] = field(default_factory=dict)

    def node_of(self, leaf: str) -> QuotaNode:
        """The node at which charges to this name count."""
        return self.nodes.get(leaf, self.root)

    def add(self, leaf: str, amounts: Resources, times: int = 1) -> None:
        """Charge the amounts, or give them back with ``times`` -1."""
        held = self.held.setdefault(leaf, {})
        book(held, amounts, times)
        if times < 0 and not any(held.values()):
            del self.held[leaf]
        at = self.node_of(leaf)
        for node in at.chain:
            book(node.usage, amounts, times)
        at.see_what_is_spent([name for name, _ in amounts if name in self.named])

    def by_node(self, by_leaf: Iterable[tuple[str, Resources]]) -> dict[str, Books]:
        """The sums of these amounts, by leaf, at each node of the leaves' chains."""
        found: dict[str, Books] = {}
        for leaf, amounts in by_leaf:
            for node in self.node_of(leaf).chain:
                book(found.setdefault(node.name, {}), amounts)
        return found

    def exceeds(self, node: QuotaNode, demand: Iterable[tuple[str, int]]) -> bool:
        """Whether the demand is larger than the rest of the node's share."""
        named = self.named
        return any(name in named and amount > node.room(name) for name, amount in demand)

    def spent(self, leaf: str) -> Set[str]:
        """The resources of which the leaf has used up its share; all of them for a name that is no
        leaf."""
        node = self.nodes.get(leaf)
        return self.named if node is None else node.spent

    def leaves(self) -> list[str]:
        """The leaves that AppWrappers may name, in order of growth."""
        return [name for name, node in self.nodes.items() if not node.children]


_Definition = tuple[QuotaSubtree, QuotaChild]


def without_nodes(name: str) -> Tree:
    """A tree with a known name only: it has no leaf, so it admits nothing."""
    root = QuotaNode("", {}, hard=False)
    root.chain = root.limits = (root,)
    return Tree(name, root, {}, frozenset())


def grow(
    name: str, subtrees: Iterable[QuotaSubtree], absent: Iterable[QuotaSubtree] = ()
) -> tuple[Tree | None, list[Fault]]:
    """The tree of these subtrees, None without a root; and the faults of the subtrees. Subtrees
    without a tree have the name "".

    ``absent`` subtrees count where the others define no node of the same name; they have no faults.
    """
    if not name:
        text = "It has no label tree, so it counts in no quota tree: set it to the name of one."
        return None, [Fault(one.uid, "", Flaw.NO_TREE, text) for one in subtrees]
    present = sorted(subtrees, key=_precedence)
    tree, faults = _grow(name, [*present, *sorted(absent, key=_precedence)])
    uids = {one.uid for one in present}
    return tree, [fault for fault in faults if fault.uid in uids]


def _precedence(one: QuotaSubtree) -> tuple[Instant, str, str, str]:
    return (one.created, one.namespace, one.name, one.uid)


def _grow(name: str, ordered: list[QuotaSubtree]) -> tuple[Tree | None, list[Fault]]:
    faults: list[Fault] = []
    known = _definitions(ordered, faults)
    roots = [node for node, (subtree, _) in known.items() if not subtree.parent]
    if not roots:
        text = f'Tree "{name}" has no root: one QuotaSubtree of it needs an empty spec.parent.'
        faults += [Fault(s.uid, child, Flaw.NO_ROOT, text) for child, (s, _) in known.items()]
        return None, faults
    for other in roots[1:]:
        first, second = known[roots[0]][0], known.pop(other)[0]
        text = f'"{roots[0]}" of {first.title} is the root of tree "{name}"; it can have no other.'
        faults.append(Fault(second.uid, other, Flaw.SEVERAL_ROOTS, text))
    tree = _placed(name, roots[0], known)
    faults += [_unplaced(child, known) for child in known if child not in tree.nodes]
    return tree, faults


def _definitions(ordered: list[QuotaSubtree], faults: list[Fault]) -> dict[str, _Definition]:
    """The readable children by name; the first child with a name keeps it."""
    known: dict[str, _Definition] = {}
    for subtree in ordered:
        for child in subtree.children:
            earlier = known.get(child.name)
            if child.flaw:
                faults.append(Fault(subtree.uid, child.name, Flaw.UNREADABLE, child.flaw))
            elif earlier is not None:
                text = f'"{child.name}" of {subtree.title} is defined in {earlier[0].title} already'
                text += "; rename one of them."
                faults.append(Fault(subtree.uid, child.name, Flaw.NAME_USED_TWICE, text))
            else:
                known[child.name] = (subtree, child)
    return known


def _placed(name: str, root: str, known: dict[str, _Definition]) -> Tree:
    below: dict[str, list[str]] = {}
    for child, (subtree, _) in known.items():
        below.setdefault(subtree.parent, []).append(child)
    nodes: dict[str, QuotaNode] = {}
    todo: list[tuple[str, QuotaNode | None]] = [(root, None)]
    while todo:
        at, parent = todo.pop()
        subtree, what = known[at]
        node = nodes[at] = QuotaNode(at, dict(what.nominal), what.hard, subtree.uid)
        node.chain = (node, *(parent.chain if parent is not None else ()))
        node.limits = tuple(one for one in node.chain if one.hard or one is node.chain[-1])
        if parent is not None:
            parent.children.append(node)
        todo += [(each, node) for each in reversed(below.get(at, ()))]
    named = frozenset(resource for node in nodes.values() for resource in node.nominal)
    for node in nodes.values():
        node.see_what_is_spent(named)
    return Tree(name, nodes[root], nodes, named)


def _unplaced(child: str, known: dict[str, _Definition]) -> Fault:
    """Why the child is not connected to the root."""
    subtree, seen = known[child][0], {child}
    at = subtree.parent
    while at in known and at not in seen:
        seen.add(at)
        at = known[at][0].parent
    if at in seen:
        text = f'"{child}" hangs under "{subtree.parent}", which leads back to "{at}".'
        return Fault(subtree.uid, child, Flaw.CYCLE, text)
    text = f'"{child}" leads to "{at}", and no node of tree "{subtree.tree}" has that name.'
    return Fault(subtree.uid, child, Flaw.PARENT_MISSING, text)
