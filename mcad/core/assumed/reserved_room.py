"""The room of reservations: what is still there, and what is to spare (core R8-R10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import repeat

from mcad.core.assumed.allotments import AssumedGang
from mcad.core.assumed.assumed import Assumed
from mcad.core.assumed.pod_index import PodIndex
from mcad.core.assumed.unplaced import UnplacedPods
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.reserved_free import Spare
from mcad.core.nodes.resources import Books, book
from mcad.core.state.model import Pod


class ReservedRoom:
    """Questions about reservations, by the uid of the AppWrapper that each of them is for."""

    def __init__(
        self,
        ledger: Ledger,
        pod_index: PodIndex,
        assumed: Assumed,
        unplaced_pods: UnplacedPods,
        *,
        on_nodes: bool,
    ) -> None:
        self._ledger = ledger
        self._pod_index = pod_index
        self._assumed = assumed
        self._unplaced_pods = unplaced_pods
        self._on_nodes = on_nodes

    def is_free(self, uid: str) -> bool:
        """Whether the reserved room has nodes and is free of other pods; where only sums count,
        whether the sums suffice."""
        if not self._on_nodes:
            return self._is_free_by_sum(self._assumed.by_uid[uid])
        rows = self._ledger.rows
        return all(
            not allotment.unplaced and not any(rows[name].owes_reservation for name in allotment.at)
            for allotment in self._assumed.allotments(uid)
        )

    def _is_free_by_sum(self, gang: AssumedGang) -> bool:
        """Whether the sums suffice. Younger reservations count for nothing: they get the rest."""
        ledger = self._ledger
        left = {
            name: ledger.free.to_lend(name, ledger.facts.in_service) for name, _ in gang.request
        }
        book(left, self._unplaced_pods.demand(), -1)
        for other in self._assumed.reserved.values():
            if other.order > gang.order:
                book(left, other.request)
        return all(left.get(name, 0) >= 0 for name, _ in gang.request)

    def occupants(self, uid: str) -> tuple[list[Pod], list[str]]:
        """The users of the reserved nodes that are not free yet: pods that do not terminate, and
        the uids of AppWrappers with assumed pods."""
        pods: list[Pod] = []
        uids: dict[str, None] = {}
        for name in self._assumed.nodes_of(uid):
            if self._ledger.rows[name].owes_reservation:
                uses = self._pod_index.on_node.get(name, {}).values()
                pods += [one.pod for one in uses if one.weighs and not one.pod.terminating]
                slots = self._assumed.slots_on.get(name, {})
                uids.update((one.gang.uid, None) for one in slots)
        uids.pop(uid, None)
        return pods, list(uids)

    def is_left(self, uid: str, attempts: Mapping[str, int]) -> bool:
        """Whether a pod is still leaving the reserved nodes: a terminating pod, or a pod of one of
        these attempts (uid -> attempt). The watch of pods may lag behind the live list that ends a
        teardown."""
        uses = (
            self._pod_index.on_node.get(name, {}).values() for name in self._assumed.nodes_of(uid)
        )
        pods = (one.pod for of_node in uses for one in of_node if one.weighs)
        return any(pod.terminating or attempts.get(pod.workload) == pod.attempt for pod in pods)

    def take_pressed(self) -> dict[str, list[str]]:
        """The reserved nodes with more use than at the last call, by the uid of the reservation's
        owner."""
        found: dict[str, list[str]] = {}
        for name in self._ledger.pressed:
            row = self._ledger.rows.get(name)
            if row is not None and row.reserved_for:
                found.setdefault(row.reserved_for, []).append(name)
        self._ledger.pressed.clear()
        return found

    def is_crowded(self, uid: str, nodes: Iterable[str], leaves: Callable[[str], bool]) -> bool:
        """Whether one of these nodes has too little room for the reservation, even without the
        AppWrappers (uids) for which ``leaves`` is true."""
        reserved = {name for one in self._assumed.allotments(uid) for name, _ in one.pods.request}
        return any(
            left.get(name, 0) < 0
            for left in map(self._left_on, nodes, repeat(leaves))
            for name in reserved
        )

    def _left_on(self, node: str, leaves: Callable[[str], bool]) -> Books:
        left = dict(self._ledger.rows[node].free)
        for use in self._pod_index.on_node.get(node, {}).values():
            if use.weighs and use.pod.workload and leaves(use.pod.workload):
                book(left, use.request)
        for one in self._assumed.slots_on.get(node, {}):
            if not one.gang.reserved and leaves(one.gang.uid):
                book(left, one.pods.request, one.at[node])
        return left

    def take_relieved(self) -> Spare:
        """The nodes of ``spare`` that an AppWrapper has left since the last call."""
        found = [self._ledger.rows.get(name) for name in self._ledger.relieved]
        self._ledger.relieved.clear()
        return Spare(row for row in found if row is not None)

    @property
    def is_relieved(self) -> bool:
        """Whether an AppWrapper has left a reserved node since the last ``take_relieved``."""
        return bool(self._ledger.relieved)

    def spare(self) -> Spare:
        """The reserved nodes on which something is free, reservations aside."""
        return Spare(self._ledger.rows.values())
