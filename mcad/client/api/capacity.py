"""What ``capacity()`` of the Python client returns: the nodes, and their sum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

from msgspec import Struct

from mcad.api.wire import plural
from mcad.client.api import html

Json = dict[str, Any]
Amounts = Mapping[str, str]


class NodeCapacity(Struct, frozen=True):
    """One node, or the sum of nodes; amounts by resource.

    ``state`` is that of ``kubectl get nodes``, with ``Tainted`` and ``Overcommitted``. ``used`` is
    what bound pods request, ``reserved`` what dispatched AppWrappers demand for pods that are not
    bound yet. ``free`` is what is left; nothing is free on a node that is cordoned or not ready.
    """

    name: str
    state: str
    allocatable: Amounts
    used: Amounts
    reserved: Amounts
    free: Amounts

    @classmethod
    def of(cls, node: Json) -> NodeCapacity:
        """From the JSON of ``mcad.controller.views``."""
        books = (node["allocatable"], node["used"], node["reserved"], node["free"])
        return cls(node["name"], node.get("state", ""), *books)

    def __repr__(self) -> str:
        return f"<NodeCapacity {self.name}: {html.amounts(self.free) or 'nothing'} free>"

    def _repr_html_(self) -> str:
        return _table([self])


class Capacity(Sequence[NodeCapacity]):
    """The nodes by name; ``total`` is their sum.

    ``unplaced`` is what dispatched AppWrappers demand that fits no node at present.
    """

    def __init__(self, told: Json) -> None:
        self.raw = told
        self.total = NodeCapacity.of(told["total"])
        self.unplaced: Amounts = told["unplaced"]
        self._nodes = tuple(map(NodeCapacity.of, told["nodes"]))

    @overload
    def __getitem__(self, index: int) -> NodeCapacity: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[NodeCapacity]: ...
    def __getitem__(self, index: int | slice) -> NodeCapacity | Sequence[NodeCapacity]:
        """One of them."""
        return self._nodes[index]

    def __len__(self) -> int:
        return len(self._nodes)

    def __repr__(self) -> str:
        free = html.amounts(self.total.free)
        return f"<Capacity of {plural(len(self), 'node')}: {free or 'nothing'} free>"

    def _repr_html_(self) -> str:
        return _table([*self, self.total])


def _table(nodes: Iterable[NodeCapacity]) -> str:
    books = ("allocatable", "used", "reserved", "free")
    rows = (
        (node.name, node.state, *(html.amounts(getattr(node, book)) for book in books))
        for node in nodes
    )
    return html.table(("node", "state", *books), rows)
