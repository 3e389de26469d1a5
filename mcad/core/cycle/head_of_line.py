"""Head-of-line blocking: what a refused head keeps from the AppWrappers behind it (core R6)."""

from __future__ import annotations

from mcad.core.cluster import Cluster
from mcad.core.nodes.constraints import NodeSet
from mcad.core.nodes.resources import book
from mcad.core.queue.equivalence import EquivalenceClass
from mcad.core.queue.walk import Scope
from mcad.core.quota.usage import HeldShare
from mcad.core.state.bounds import BESIDE_MAX, BLOCKED_LOOKS_MAX
from mcad.core.state.entry import Entry
from mcad.core.state.refusal import Refusal
from mcad.core.state.settings import Policy
from mcad.core.state.units import Instant

_Place = tuple[int, Instant, str]


class HeadOfLineBlocking:
    """Head-of-line blocking in one pass.

    The head is the first refused AppWrapper that would fit on an empty cluster. Each node of a
    quota tree has a head of its own. A hold starts when an AppWrapper becomes head, once per
    attempt. While another AppWrapper is ahead its clock stands still (``Entry.head_for``), so no
    head blocks the others for longer than one holding time in all. If the line is ``open_to_all``
    nothing can be blocked, so refused classes need not be looked at in order.

    With StrictFIFO each refused class holds all that its head demands, whatever the verdict named:
    the ``_held`` shares, and all nodes where it may go, which are ``_blocked``. A head that lacks
    only a share is in ``_beside`` and holds as much of the nodes as it demands. A blocked class in
    turn holds the share or the nodes that block it, so that no later class overtakes it.
    """

    def __init__(self, cluster: Cluster) -> None:
        settings = cluster.settings
        self._cluster = cluster
        self._strict = settings.policy is Policy.STRICT_FIFO
        self._holding = settings.head_of_line_holding
        self._blocked: NodeSet = 0
        self._beside: list[EquivalenceClass] = []
        self._held: dict[tuple[str, str], HeldShare] = {}
        self._looks = BLOCKED_LOOKS_MAX
        self.open_to_all = not cluster.waiting.turns.heads_block
        self._closed = False
        self._heads: dict[Scope, Entry] = {}
        self._reserved = _Reserved(cluster) if self._strict and cluster.reservations else None

    def blocks(self, eqclass: EquivalenceClass) -> bool:
        """Whether a head further ahead keeps this class from starting."""
        if self.open_to_all:
            return False
        if self._closed:
            return True
        if self._held and (share := self._vies(eqclass)) is not None:
            self._hold_share_behind(share, eqclass)
            return True
        if self._blocked & self._nodes_for(eqclass):
            self._hold_nodes_behind(eqclass)
            return True
        return self._reserved is not None and self._reserved.blocks(eqclass)

    def takes_room(self, eqclass: EquivalenceClass) -> bool:
        """Whether the class, which fits, would take nodes that a head further ahead needs which
        lacks only a share."""
        if not self._beside or self._has_room_beside(eqclass):
            return False
        self._hold_nodes_behind(eqclass)
        return True

    def refused(self, eqclass: EquivalenceClass, refusal: Refusal) -> bool:
        """Note a refused head: it may block the classes behind it, unless it can never fit. Returns
        False if that question takes another pass."""
        if not self._may_block(refusal):
            return True
        scope = _scope(refusal)
        may_fit = self._cluster.capacity.would_fit_emptied(eqclass.shape)
        if not may_fit:
            return may_fit is not None
        if self._strict:
            self._hold_all(scope, eqclass)
        if scope not in self._heads:
            self._heads[scope] = eqclass.first()
            self._hold(scope, eqclass)
        return True

    # -- holds ---------------------------------------------------------------------------------

    def _hold_all(self, scope: Scope, eqclass: EquivalenceClass) -> None:
        for at in self._cluster.forest.limits(eqclass.path):
            self._hold_share(at, eqclass)
        is_beside = scope is not None and len(self._beside) < BESIDE_MAX
        if is_beside and self._has_room_beside(eqclass):
            self._beside.append(eqclass)
        else:
            self._blocked |= self._nodes_for(eqclass)

    def _nodes_for(self, eqclass: EquivalenceClass) -> NodeSet:
        return self._cluster.capacity.nodes_for(eqclass.shape)

    def _hold_share(self, at: tuple[str, str], eqclass: EquivalenceClass) -> None:
        share = self._held.setdefault(at, HeldShare(set(), {}))
        share.leaves.add(dict(eqclass.path)[at[0]])
        book(share.amounts, self._cluster.admission.demand(eqclass.shape))

    def _vies(self, eqclass: EquivalenceClass) -> HeldShare | None:
        demand = self._cluster.admission.demand(eqclass.shape)
        return self._cluster.forest.vies(eqclass.path, demand, self._held)

    def _has_room_beside(self, eqclass: EquivalenceClass) -> bool:
        """Whether the nodes have room for the class and for the heads that lack only a share."""
        capacity, shapes = self._cluster.capacity, [eqclass.shape]
        shapes += [o.shape for o in self._beside if capacity.compete(o.shape, eqclass.shape)]
        if len(shapes) == 1:
            return capacity.refusal(eqclass.shape) is None
        if any(one.groups or one.per_node for one in shapes):
            return False  # domains, and pods on each node, belong to one AppWrapper
        together = capacity.shape(tuple(each for one in shapes for each in one.sets))
        return capacity.refusal(together) is None

    def _hold_nodes_behind(self, eqclass: EquivalenceClass) -> None:
        nodes = self._nodes_for(eqclass)
        if not self._strict or not nodes & ~self._blocked:
            return
        self._looks -= nodes.bit_count()
        if self._looks < 0:
            self._closed = True
        elif self._may_start(eqclass):
            self._blocked |= nodes

    def _hold_share_behind(self, share: HeldShare, eqclass: EquivalenceClass) -> None:
        leaves = {leaf for _, leaf in eqclass.path}
        if self._strict and not leaves <= share.leaves and self._may_start(eqclass):
            share.leaves.update(leaves)

    def _may_start(self, eqclass: EquivalenceClass) -> bool:
        """Whether a class without a verdict may start when something comes free."""
        refusal = self._cluster.admission.quota_refusal(eqclass.shape, eqclass.path)
        if refusal is not None and refusal.reason.is_impossible:
            return False
        return self._cluster.capacity.would_fit_emptied(eqclass.shape) is not False

    # -- heads ---------------------------------------------------------------------------------

    def asks(self, eqclass: EquivalenceClass, refusal: Refusal) -> bool:
        """Whether it is work to find out whether a refused head blocks the classes behind."""
        return self._may_block(refusal) and not self._cluster.capacity.knows_emptied(eqclass.shape)

    def _may_block(self, refusal: Refusal) -> bool:
        if self.open_to_all or not refusal.reason.blocks:
            return False
        # Only the head holds, and finding the next possible head is expensive.
        return self._strict or _scope(refusal) not in self._heads

    def _hold(self, scope: Scope, eqclass: EquivalenceClass) -> None:
        cluster, head = self._cluster, self._heads[scope]
        if cluster.walk.heads.get(scope) != head.uid:
            self._step_down(scope)
            cluster.walk.heads[scope], head.wait.head_since = head.uid, cluster.now
        until = head.wait.head_since + self._holding - head.wait.head_for
        if self._holding and cluster.now < until:
            if scope is None:
                self._closed = True
            elif not self._strict:
                self._hold_share(scope, eqclass)
            cluster.agenda.wake_at(until)

    def goes(self, entry: Entry) -> None:
        """End the hold of an AppWrapper that is dispatched: another attempt may block again."""
        for scope in [each for each, uid in self._cluster.walk.heads.items() if uid == entry.uid]:
            self._step_down(scope)
        entry.wait.head_for = 0

    def closes(self) -> None:
        """Stop the clocks of scopes without a head: the whole line was looked at."""
        for scope in [each for each in self._cluster.walk.heads if each not in self._heads]:
            self._step_down(scope)

    def _step_down(self, scope: Scope) -> None:
        cluster = self._cluster
        entry = cluster.entries.get(cluster.walk.heads.pop(scope, ""))
        if entry is not None:
            entry.wait.head_for += cluster.now - entry.wait.head_since


def _scope(refusal: Refusal) -> Scope:
    """The node of a quota tree for which the AppWrapper waits, None for nodes of the cluster."""
    return (refusal.quota.tree, refusal.quota.node) if refusal.quota is not None else None


class _Reserved:
    """AppWrappers with a reservation, which wait for their victims: they are ahead as if in the
    line."""

    def __init__(self, cluster: Cluster) -> None:
        self._capacity = cluster.capacity
        owners = sorted(cluster.reservations.values(), key=_place)
        self._owners = [(_place(one), self._capacity.shape(one.workload.sets)) for one in owners]
        self._nodes: NodeSet = 0
        for _, shape in self._owners:
            self._nodes |= self._capacity.nodes_for(shape)
        self._first: dict[NodeSet, _Place] = {}

    def blocks(self, eqclass: EquivalenceClass) -> bool:
        """Whether an owner ahead of the head of the class wants the same nodes."""
        nodes = self._capacity.nodes_for(eqclass.shape)
        if not self._nodes & nodes:
            return False
        first = self._first.get(nodes)
        if first is None:
            reserved = self._capacity.nodes_for
            first = next(place for place, other in self._owners if reserved(other) & nodes)
            self._first[nodes] = first
        return first < _place(eqclass.first())


def _place(entry: Entry) -> _Place:
    """The turn of the AppWrapper, with or without a reservation."""
    return (-entry.workload.priority, entry.first_seen, entry.uid)
