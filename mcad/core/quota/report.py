"""The figures of a tree: what every node has, uses, borrows and lends, the leaving and reserved
amounts, and the demand in line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mcad.core.nodes.resources import Books
from mcad.core.quota.tree import QuotaNode, Tree
from mcad.core.quota.usage import ChargedAs, Forest
from mcad.core.state.model import Resources
from mcad.core.state.quantity import format_amount
from mcad.core.state.quota_records import NodeStatus

if TYPE_CHECKING:
    from mcad.core.nodes.shape import Shape


def figures(
    forest: Forest, tree: Tree, demand: Callable[[Shape], Resources]
) -> dict[str, NodeStatus]:
    """Every node of a tree, from the root down, with the resources that the tree names: ``nominal``
    is its share, ``allocated`` is in use below it, and ``leaving`` the part of ``allocated`` in
    teardown; ``reserved`` comes on top, for AppWrappers that wait until others have left.
    ``borrowed`` is the part of ``allocated`` above the share, ``lent`` the part of the share that
    siblings use, ``waiting`` the demand in line; ``demand`` counts a shape on the present nodes."""
    asked = tree.by_node(forest.in_line.of(tree.name, demand).items())
    leaving = forest.held_as(ChargedAs.LEAVING, tree)
    reserved = forest.held_as(ChargedAs.RESERVED, tree)
    used = {name: allocated(node, reserved) for name, node in tree.nodes.items()}
    named = sorted(tree.named)
    lent: dict[str, Books] = {name: {} for name in tree.nodes}
    for parent in tree.nodes.values():
        for resource in named if parent.children else ():
            for name, amount in _lent_below(parent, resource, used).items():
                lent[name][resource] = amount
    found = {}
    for name, node in tree.nodes.items():
        borrowed = {r: max(0, used[name].get(r, 0) - node.nominal.get(r, 0)) for r in named}
        books = {
            "allocated": used[name],
            "leaving": leaving.get(name, {}),
            "reserved": reserved.get(name, {}),
            "borrowed": borrowed,
            "lent": lent[name],
            "waiting": asked.get(name, {}),
        }
        nominal = tuple((resource, node.nominal.get(resource, 0)) for resource in named)
        nonzero = {
            word: tuple((r, book[r]) for r in named if book.get(r)) for word, book in books.items()
        }
        found[name] = NodeStatus(name, nominal, **nonzero)
    return found


def allocated(node: QuotaNode, reserved: Mapping[str, Books]) -> Books:
    """The usage of a node without what is ``reserved`` there."""
    others = reserved.get(node.name, {})
    return {name: n - others.get(name, 0) for name, n in node.usage.items()}


def overcommitted(tree: Tree) -> dict[str, str]:
    """The nodes whose children's shares come to more than their own, each with a sentence. That is
    allowed, to lend one share twice, and it is reported."""
    found = {}
    for parent in tree.nodes.values():
        beyond = []
        for resource in sorted(tree.named):
            nominal = parent.nominal.get(resource, 0)
            below = sum(one.nominal.get(resource, 0) for one in parent.children)
            if below > nominal:
                amounts = (format_amount(resource, amount) for amount in (below, nominal))
                beyond.append(f"{resource}: {' of '.join(amounts)}")
        if beyond:
            found[parent.name] = (
                f'The shares below "{parent.name}" come to more than its own '
                f"({', '.join(beyond)}): they cannot all be used at once."
            )
    return found


def _lent_below(parent: QuotaNode, resource: str, usage: Mapping[str, Books]) -> dict[str, int]:
    """The amount that each child lends, by the use of each node.

    Borrowed amounts come first from what the parent has besides its children's shares or borrows
    itself; the rest from children with idle shares, in proportion, and a remainder by name.
    """
    shares = {one.name: one.nominal.get(resource, 0) for one in parent.children}
    used = {name: usage[name].get(resource, 0) for name in (parent.name, *shares)}
    idle = {name: max(0, share - used[name]) for name, share in shares.items()}
    own, assigned = parent.nominal.get(resource, 0), sum(shares.values())
    taken = used[parent.name] - sum(min(used[name], share) for name, share in shares.items())
    besides = max(0, own - assigned) + max(0, used[parent.name] - own)
    total = sum(idle.values())
    left = min(total, max(0, taken - besides))
    lent = {name: left * room // total if total else 0 for name, room in idle.items()}
    rest = left - sum(lent.values())
    for name in sorted(lent):
        if rest and lent[name] < idle[name]:
            lent[name] += 1
            rest -= 1
    return lent
