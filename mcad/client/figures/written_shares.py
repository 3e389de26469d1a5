"""The figures that the dispatcher wrote into QuotaSubtrees, beside those that are computed here.

A deleted AppWrapper holds its share until its pods are gone. How much that is only the dispatcher
knows: the objects of the cluster do not tell any more. So where it counts more than is found, its
figures are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mcad.api.labels import TREE
from mcad.api.podspec import quantity
from mcad.api.wire import as_list, as_map, as_text
from mcad.core.state.quantity import format_amount

Json = dict[str, Any]
Shares = Mapping[tuple[str, str], Json]
"""The figures of the status of every node, by tree and node."""

BOOKS = ("allocated", "borrowed", "lent", "waiting")
DELETED = "Deleted"
"""The state of AppWrappers that do not exist any more."""


def written_shares(subtrees: Iterable[Json]) -> Shares:
    """The figures in the statuses of these QuotaSubtrees."""
    found = {}
    for obj in subtrees:
        tree = as_text(as_map(as_map(obj.get("metadata")).get("labels")).get(TREE))
        for child in map(as_map, as_list(as_map(obj.get("status")).get("children"))):
            figures = {book: as_map(child.get(book)) for book in BOOKS}
            found[tree, as_text(child.get("name"))] = figures
    return found


def with_deleted(node: Json, written: Json | None) -> Json:
    """The node with the written figures if they count more than is computed."""
    if written is None or not _surplus(written["allocated"], node["allocated"]):
        return node
    return node | written


def with_deleted_holders(view: Json, written: Json | None) -> Json:
    """The same of the view of one node; what its holders do not hold is a holder of its own."""
    view = with_deleted(view, written)
    left = view["allocated"]
    for one in view["holders"]:
        left = _surplus(left, one["amounts"])
    if not left:
        return view
    leaf = view["node"] if view["leaf"] else ""
    gone = {"namespace": "", "name": "", "uid": "", "state": DELETED, "leaf": leaf, "amounts": left}
    return view | {"holders": [*view["holders"], gone]}


def _surplus(more: Json, less: Json) -> Json:
    """By how much the amounts exceed others, as quantities."""
    found = {}
    for resource, text in more.items():
        over = (quantity(resource, text) or 0) - (quantity(resource, less.get(resource)) or 0)
        if over > 0:
            found[resource] = format_amount(resource, over)
    return found
