"""The figures of a tree: what every node has, uses, borrows and lends, and the demand in line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from mcad.core.nodes.resources import Books, book
from mcad.core.quota.tree import QuotaNode, Tree
from mcad.core.state.model import Resources
from mcad.core.state.quantity import format_amount


class Share(NamedTuple):
    """One resource at one node.

    ``allocated`` is charged below it; ``borrowed`` is what of that exceeds its own share, ``lent``
    what others under the same parent use of it; ``waiting`` is what those in line demand there.
    """

    node: str
    resource: str
    nominal: int
    allocated: int
    borrowed: int
    lent: int
    waiting: int


def shares(tree: Tree, waiting: Mapping[str, Resources]) -> Iterator[Share]:
    """Every node of a tree, from the root down, with the resources that the tree names;
    ``waiting`` is by leaf."""
    asked: dict[str, Books] = {}
    for leaf, amounts in waiting.items():
        for node in tree.node_of(leaf).chain:
            book(asked.setdefault(node.name, {}), amounts)
    for resource in sorted(tree.named):
        lent = {tree.root.name: 0}
        for node in tree.nodes.values():
            if node.children:
                lent |= _lent_below(node, resource)
        for node in tree.nodes.values():
            used, nominal = node.usage.get(resource, 0), node.nominal.get(resource, 0)
            wanted = asked.get(node.name, {}).get(resource, 0)
            over = max(0, used - nominal)
            yield Share(node.name, resource, nominal, used, over, lent[node.name], wanted)


def overcommitted(tree: Tree) -> dict[str, str]:
    """The nodes whose children have more than they have themselves, each with a sentence. That is
    allowed, to lend one share twice, and it is reported."""
    told = ((node.name, _beyond(node, sorted(tree.named))) for node in tree.nodes.values())
    return {name: text for name, text in told if text}


def _beyond(parent: QuotaNode, resources: Iterable[str]) -> str:
    figures = []
    for resource in resources if parent.children else ():
        nominal = parent.nominal.get(resource, 0)
        below = sum(one.nominal.get(resource, 0) for one in parent.children)
        if below > nominal:
            told = (format_amount(resource, amount) for amount in (below, nominal))
            figures.append(f"{resource}: {' of '.join(told)}")
    if not figures:
        return ""
    return (
        f'The shares below "{parent.name}" come to more than its own ({", ".join(figures)}): they '
        "cannot all be used at once."
    )


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
