"""A refusal by quota in sentences: what is used up, by whom, or which leaf was meant."""

from __future__ import annotations

from difflib import get_close_matches

from mcad.core.quantity import format_amount
from mcad.core.quota.forest import Forest
from mcad.core.quota.records import DEFAULT_LEAF
from mcad.core.quota.trees import QuotaNode, Tree
from mcad.core.reasons import explain_refusal, some_of
from mcad.core.verdicts import QuotaLimit, Refusal

LIKE_MAX = 3
"""Leaves that are offered to whoever misspelt one."""


def explain(refusal: Refusal, forest: Forest) -> str:
    """What to know about a refusal, whatever refuses."""
    limit = refusal.quota
    return explain_refusal(refusal) if limit is None else _explain_quota(limit, forest)


def _explain_quota(limit: QuotaLimit, forest: Forest) -> str:
    tree = forest.tree(limit.tree)
    if tree is None:
        return f'Quota tree "{limit.tree}" was taken away just now.'
    if not limit.node:
        return _no_leaf(limit, tree)
    node, resource = tree.nodes.get(limit.node), limit.resource
    requested, nominal, used = (
        format_amount(resource, n) for n in (limit.requested, limit.nominal, limit.used)
    )
    where = f'Quota tree "{limit.tree}", node "{limit.node}"'
    if limit.requested > limit.nominal:
        return f"{where}: {resource}: {requested} requested, its whole share is {nominal}."
    text = f"{where}: {resource}: {requested} requested, {used} of {nominal} used."
    borrowers = _borrowers(node, resource) if node is not None else []
    return f"{text} Borrowing there: {some_of(borrowers)}." if borrowers else text


def _borrowers(node: QuotaNode, resource: str) -> list[str]:
    """The leaves below it that use more than their share, the greatest borrower first."""
    found: list[tuple[int, str]] = []
    todo = list(node.children)
    while todo:
        one = todo.pop()
        todo += one.children
        if not one.children and one.room(resource) < 0:
            found.append((one.room(resource), one.name))
    return [f"{name} ({format_amount(resource, -over)})" for over, name in sorted(found)]


def _no_leaf(limit: QuotaLimit, tree: Tree) -> str:
    if limit.leaf in tree.nodes:
        text = f'"{limit.leaf}" of quota tree "{limit.tree}" has nodes below it: name one of those.'
    elif limit.leaf == DEFAULT_LEAF:
        text = f'Quota tree "{limit.tree}" has no leaf "{DEFAULT_LEAF}": set the label '
        text += f"{limit.tree} to one of its leaves."
    else:
        text = f'Quota tree "{limit.tree}" has no leaf "{limit.leaf}"; '
        text += "it waits until there is one."
    like = get_close_matches(limit.leaf, tree.leaves(), LIKE_MAX)
    return f"{text} Alike: {', '.join(like)}." if like else text
