"""The books of the nodes for users: what ``mcad capacity`` shows."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from mcad.core.assumed.assumed import Assumed
from mcad.core.assumed.pod_index import PodIndex
from mcad.core.assumed.unplaced import UnplacedPods
from mcad.core.nodes.filters import repelling
from mcad.core.nodes.host_ports import without_ports
from mcad.core.nodes.ledger import Ledger, Row
from mcad.core.nodes.resources import Books, book, resources, total
from mcad.core.state.model import TERMINAL_PHASES, Node, Resources
from mcad.core.state.records import Struct


class NodeState(StrEnum):
    """Whether a node takes pods, in the words of kubectl where kubectl has a word."""

    READY = "Ready"
    TAINTED = "Tainted"  # only pods that tolerate its taints
    CORDONED = "Cordoned"
    NOT_READY = "NotReady"


class NodeReport(Struct, frozen=True):
    """One node's books: free = allocatable - used - reserved, perhaps negative. ``unbound`` is the
    part of ``used`` of pods that wait for this node."""

    name: str
    allocatable: Resources
    used: Resources
    reserved: Resources
    free: Resources
    state: NodeState = NodeState.READY
    unbound: Resources = ()

    @property
    def is_in_service(self) -> bool:
        """Whether the free room of the node is of use to any pod."""
        return self.state in (NodeState.READY, NodeState.TAINTED)

    @property
    def usable(self) -> Resources:
        """The free amounts of use: no negative amount, and nothing on a node that takes no pod."""
        if not self.is_in_service:
            return ()
        return tuple((name, n) for name, n in self.free if n > 0)

    @property
    def is_overcommitted(self) -> bool:
        """Whether bound pods and reservations exceed allocatable."""
        return any(n < 0 for _, n in total(((self.free, 1), (self.unbound, 1))))


class Apart(NamedTuple):
    """The nodes that are not simply ready: how many are in one state, and their sums."""

    nodes: int
    sums: NodeReport


class Report:
    """Every node, and the sums of all nodes; each answer is computed when asked."""

    def __init__(
        self, ledger: Ledger, pod_index: PodIndex, assumed: Assumed, unplaced_pods: UnplacedPods
    ) -> None:
        self._ledger = ledger
        self._pod_index = pod_index
        self._assumed = assumed
        self._unplaced_pods = unplaced_pods

    def nodes(self) -> Iterator[NodeReport]:
        """Each node by name; a node that is gone before its turn is left out."""
        rows = self._ledger.rows
        for name in sorted(rows):
            row = rows.get(name)
            if row is not None:
                yield self._node(row)

    def overcommitted(self) -> Iterator[NodeReport]:
        """The nodes whose bound pods request more than is allocatable, by name.

        A node is overcommitted when its allocatable shrinks, or when kube-scheduler loses the
        answer to a binding: it then forgets the pod that it assumed there and binds another pod.
        """
        for name in sorted(self._ledger.overcommitted):
            row = self._ledger.rows[name]
            unused = dict(row.free)
            book(unused, reserved_on(name, self._assumed))
            book(unused, unbound_on(name, self._pod_index))
            if any(n < 0 for _, n in without_ports(resources(unused))):
                yield self._node(row)

    def _node(self, row: Row) -> NodeReport:
        name = row.node.name
        return NodeReport(
            name,
            row.node.allocatable,
            without_ports(used_on(name, self._pod_index)),
            without_ports(reserved_on(name, self._assumed)),
            without_ports(resources(row.free)),
            _state(row.node),
            without_ports(unbound_on(name, self._pod_index)),
        )

    def apart(self) -> list[Apart]:
        """The sums of the tainted, cordoned and not ready nodes, for each state that occurs."""
        found: dict[NodeState, list[NodeReport]] = {}
        for row in self._ledger.rows.values():
            state = _state(row.node)
            if state is not NodeState.READY:
                found.setdefault(state, []).append(self._node(row))
        return [Apart(len(found[one]), _sum(one, found[one])) for one in NodeState if one in found]

    def sums(self) -> NodeReport:
        """The sums over all nodes: used is allocatable less reserved and free. ``free`` counts the
        nodes that are ready and not cordoned, overcommitted nodes as 0."""
        ledger = self._ledger
        free: Books = {}
        used: Books = dict(ledger.allocatable)
        for name in ledger.free.names():
            column = ledger.free.column(name)
            used[name] = used.get(name, 0) - int(column.sum())
            free[name] = ledger.free.to_lend(name, ledger.facts.in_service)
        reserved = total(
            (allotment.pods.request, allotment.at[name])
            for name, allotments in self._assumed.slots_on.items()
            if name in ledger.rows
            for allotment in allotments
        )
        book(used, reserved, -1)
        allocatable, in_use, left = map(resources, (ledger.allocatable, used, free))
        return NodeReport(
            "",
            without_ports(allocatable),
            without_ports(in_use),
            without_ports(reserved),
            without_ports(left),
        )

    def unplaced(self) -> Resources:
        """The sum of assumed pods without a node."""
        return without_ports(self._unplaced_pods.demand())

    def unplaced_pods(self) -> int:
        """How many assumed pods have no node."""
        return sum(self._unplaced_pods.by_class.values())


def _state(node: Node) -> NodeState:
    if not node.ready:
        return NodeState.NOT_READY
    if node.unschedulable:
        return NodeState.CORDONED
    return NodeState.TAINTED if repelling(node) else NodeState.READY


def _sum(state: NodeState, nodes: list[NodeReport]) -> NodeReport:
    """The sums of these nodes, with only the part of ``free`` that is of use."""
    books = [
        [(amounts, 1) for amounts in each]
        for each in zip(
            *((n.allocatable, n.used, n.reserved, n.usable) for n in nodes), strict=True
        )
    ]
    allocatable, used, reserved, free = map(total, books)
    return NodeReport("", allocatable, used, reserved, free, state)


def used_on(name: str, pod_index: PodIndex) -> Resources:
    """The use of the pods bound to the node, or nominated to it (C1)."""
    uses = pod_index.on_node.get(name, {}).values()
    return total((use.request, 1) for use in uses if use.pod.phase not in TERMINAL_PHASES)


def unbound_on(name: str, pod_index: PodIndex) -> Resources:
    """The part of the use of pods that are not bound yet."""
    uses = pod_index.on_node.get(name, {}).values()
    return total((use.request, 1) for use in uses if use.weighs and not use.pod.node)


def reserved_on(name: str, assumed: Assumed) -> Resources:
    """The amounts assumed on the node."""
    return total(
        (allotment.pods.request, allotment.at[name]) for allotment in assumed.slots_on.get(name, {})
    )
