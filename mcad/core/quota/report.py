"""The figures of a tree: what every node has, uses, borrows and lends, and the demand in line."""

from __future__ import annotations

from collections.abc import Mapping

from mcad.core.nodes.resources import Books, book
from mcad.core.quota.tree import QuotaNode, Tree
from mcad.core.state.model import Resources
from mcad.core.state.quantity import format_amount
from mcad.core.state.quota_records import NodeStatus


def figures(tree: Tree, waiting: Mapping[str, Resources]) -> dict[str, NodeStatus]:
    """Every node of a tree, from the root down, with the resources that the tree names: ``nominal``
    is its share, ``allocated`` is charged below it, ``borrowed`` is what of that exceeds its share,
    ``lent`` what others under the same parent use of it. ``waiting``, by leaf, is what is demanded
    there."""
    asked: dict[str, Books] = {}
    for leaf, amounts in waiting.items():
        for node in tree.node_of(leaf).chain:
            book(asked.setdefault(node.name, {}), amounts)
    named = sorted(tree.named)
    lent: dict[str, Books] = {name: {} for name in tree.nodes}
    for parent in tree.nodes.values():
        for resource in named if parent.children else ():
            for name, amount in _lent_below(parent, resource).items():
                lent[name][resource] = amount
    found = {}
    for name, node in tree.nodes.items():
        borrowed = {resource: max(0, -node.room(resource)) for resource in named}
        books = (node.usage, borrowed, lent[name], asked.get(name, {}))
        nominal = tuple((resource, node.nominal.get(resource, 0)) for resource in named)
        nonzero = (tuple((r, book[r]) for r in named if book.get(r)) for book in books)
        found[name] = NodeStatus(name, nominal, *nonzero)
    return found


def overcommitted(tree: Tree) -> dict[str, str]:
    """The nodes whose children have more than they have themselves, each with a sentence. That is
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


def _lent_below(parent: QuotaNode, resource: str) -> dict[str, int]:
    """What each child lends.

    What they borrow comes first from what their parent has besides their shares or borrows itself;
    the rest from children with idle shares, in proportion, and what does not divide by name.
    """
    idle = {one.name: max(0, one.room(resource)) for one in parent.children}
    assigned = sum(one.nominal.get(resource, 0) for one in parent.children)
    within = sum(
        min(one.usage.get(resource, 0), one.nominal.get(resource, 0)) for one in parent.children
    )
    taken = parent.usage.get(resource, 0) - within
    besides = max(0, parent.nominal.get(resource, 0) - assigned) + max(0, -parent.room(resource))
    total = sum(idle.values())
    left = min(total, max(0, taken - besides))
    lent = {name: left * room // total if total else 0 for name, room in idle.items()}
    rest = left - sum(lent.values())
    for name in sorted(lent):
        if rest and lent[name] < idle[name]:
            lent[name] += 1
            rest -= 1
    return lent
