"""A refusal by quota in sentences: the exhausted share and its users, or the leaf that was
meant."""

from __future__ import annotations

from itertools import islice

from mcad.core.nodes.resources import Books
from mcad.core.quota.tree import Tree
from mcad.core.quota.usage import ChargedAs, Forest
from mcad.core.state.quantity import format_amount
from mcad.core.state.quota_records import DEFAULT_LEAF
from mcad.core.state.reasons import some_of
from mcad.core.state.refusal import QuotaLimit, Refusal
from mcad.core.state.spelling import ALIKE_MAX, did_you_mean

ABSENT_REPORTED = 1
"""How many absent QuotaSubtrees of a tree a refusal names."""


class Words:
    """Explains refusals of one moment, between two events; an answer that takes a look at all
    leaves of a tree is computed once."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        self._reserved: dict[str, dict[str, Books]] = {}
        self._known: dict[tuple[str, ...], str] = {}  # by tree and node or leaf

    def explain(self, refusal: Refusal) -> str:
        """The sentence about a refusal, by quota or otherwise."""
        limit = refusal.quota
        if limit is None:
            return refusal.message
        tree = self._forest.trees.get(limit.tree)
        if tree is None:
            return f'Quota tree "{limit.tree}" was taken away just now.'
        text = self._used_up(limit, tree) if limit.node else self._no_leaf(limit, tree)
        return " ".join((text, *islice(self._forest.absent.texts(limit.tree), ABSENT_REPORTED)))

    def _used_up(self, limit: QuotaLimit, tree: Tree) -> str:
        resource = limit.resource
        here = self._reserved_in(tree).get(limit.node, {}).get(resource, 0)
        kept = min(here, limit.used)
        requested, nominal, used, reserved = (
            format_amount(resource, n)
            for n in (limit.requested, limit.nominal, limit.used - kept, kept)
        )
        where = f'Quota tree "{limit.tree}", node "{limit.node}"'
        if limit.requested > limit.nominal:
            return f"{where}: {resource}: {requested} requested, its whole share is {nominal}."
        text = f"{where}: {resource}: {requested} requested, {used} of {nominal} used."
        if kept:
            text = f"{text[:-1]}, {reserved} reserved."
        key = (limit.tree, limit.node, resource)
        if key not in self._known:
            borrowers = self._borrowers(tree, limit.node, resource)
            self._known[key] = f"Borrowing there: {some_of(borrowers)}." if borrowers else ""
        return f"{text} {self._known[key]}".rstrip()

    def _borrowers(self, tree: Tree, node: str, resource: str) -> list[str]:
        """The leaves below the node that use more than their share, the greatest borrower first."""
        reserved = self._reserved_in(tree)
        found: list[tuple[int, str]] = []
        todo = list(tree.nodes[node].children) if node in tree.nodes else []
        while todo:
            one = todo.pop()
            todo += one.children
            left = one.room(resource) + reserved.get(one.name, {}).get(resource, 0)
            if not one.children and left < 0:
                found.append((left, one.name))
        return [f"{name} ({format_amount(resource, -over)})" for over, name in sorted(found)]

    def _reserved_in(self, tree: Tree) -> dict[str, Books]:
        if tree.name not in self._reserved:
            self._reserved[tree.name] = self._forest.held_as(ChargedAs.RESERVED, tree)
        return self._reserved[tree.name]

    def _no_leaf(self, limit: QuotaLimit, tree: Tree) -> str:
        where = f'Quota tree "{limit.tree}"'
        if not tree.nodes:
            return f'Leaf "{limit.leaf}" is not known.'
        if limit.leaf in tree.nodes:
            text = f'{where}: "{limit.leaf}" has nodes below it: name one of those.'
        elif limit.leaf == DEFAULT_LEAF:
            text = f'{where} has no leaf "{DEFAULT_LEAF}": set the label {limit.tree} to one of '
            text += "its leaves."
        else:
            text = f'{where} has no leaf "{limit.leaf}"; it waits until there is one.'
        key = (limit.tree, limit.leaf)
        if key not in self._known:
            self._known[key] = did_you_mean(limit.leaf, tree.leaves(), ALIKE_MAX)
        return f"{text} {self._known[key]}".rstrip()
