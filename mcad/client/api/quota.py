"""What ``quota()`` of the Python client returns: the nodes of the quota trees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

from msgspec import Struct

from mcad.client.api import html
from mcad.core.state.quota_records import BOOKS

Json = dict[str, Any]
Amounts = Mapping[str, str]

USED = "allocated"  # in statuses and reports


class QuotaNode(Struct, frozen=True):
    """One node of a quota tree; amounts by resource, without zeros except in ``nominal``.

    ``path`` leads from the node to the root. ``nominal`` is its quota. ``used`` is what is in use
    at it or below, ``leaving`` the part of it that is being torn down, ``reserved`` what is kept
    beside it for AppWrappers that wait until others have left, ``borrowed`` the part of ``used``
    above ``nominal``, ``lent`` the part of ``nominal`` that others use, ``waiting`` the demand of
    its queue. They are None where the dispatcher cannot be asked and has stored none.
    """

    tree: str
    name: str
    path: tuple[str, ...]
    leaf: bool
    hard_limit: bool
    nominal: Amounts | None
    used: Amounts | None
    leaving: Amounts | None
    reserved: Amounts | None
    borrowed: Amounts | None
    lent: Amounts | None
    waiting: Amounts | None
    raw: Json

    @classmethod
    def of(cls, tree: str, node: Json) -> QuotaNode:
        """From the JSON of ``mcad.controller.quota_views``."""
        return cls(
            tree,
            node["node"],
            tuple(node["path"]),
            node["leaf"],
            node["hardLimit"],
            node["nominal"],
            node[USED],
            node["leaving"],
            node["reserved"],
            node["borrowed"],
            node["lent"],
            node["waiting"],
            node,
        )

    def __repr__(self) -> str:
        used = "unknown" if self.used is None else html.amounts(self.used) or "nothing"
        return f"<QuotaNode {self.tree}/{self.name}: {used} used>"

    def _repr_html_(self) -> str:
        return Quota((self,))._repr_html_()


class Quota(Sequence[QuotaNode]):
    """The nodes of quota trees, each before its children."""

    def __init__(self, nodes: Iterable[QuotaNode]) -> None:
        self._nodes = tuple(nodes)

    @classmethod
    def of(cls, trees: Iterable[Json]) -> Quota:
        """From the JSON of ``mcad.controller.quota_views``."""
        return cls(QuotaNode.of(tree["tree"], node) for tree in trees for node in tree["nodes"])

    @overload
    def __getitem__(self, index: int) -> QuotaNode: ...
    @overload
    def __getitem__(self, index: slice) -> Quota: ...
    def __getitem__(self, index: int | slice) -> QuotaNode | Quota:
        """One of them."""
        return Quota(self._nodes[index]) if isinstance(index, slice) else self._nodes[index]

    def __len__(self) -> int:
        return len(self._nodes)

    def __repr__(self) -> str:
        return f"<Quota: {', '.join(f'{one.tree}/{one.name}' for one in self._nodes)}>"

    def _repr_html_(self) -> str:
        titles = ("used" if book == USED else book for book in BOOKS)
        return html.table(("tree", "node", *titles), map(_cells, self._nodes))


def _cells(node: QuotaNode) -> Iterator[str]:
    yield from (node.tree, node.name)
    for book in BOOKS:
        amounts = getattr(node, "used" if book == USED else book)
        yield "?" if amounts is None else html.amounts(amounts)
