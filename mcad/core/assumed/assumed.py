"""Reservations on concrete nodes: assumed, released, moved and brought home (core rule R3, C6).

For every allotment assumed + adrift = reservation. Observations only let slots go or set them
adrift; ``rehome``, which comes first in each pass, takes slots off overdrawn nodes and looks for
homes.
"""

from __future__ import annotations

from mcad.core.assumed.allotments import Allotment, Reservation
from mcad.core.assumed.unplaced import Arrears
from mcad.core.fit.exact import Plan
from mcad.core.fit.shape import ClassKey, Shape
from mcad.core.fit.shape_cache import Memory
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.pod_signature import UNBOUNDED
from mcad.core.nodes.pools import Row
from mcad.core.state.model import PodSet, Resources
from mcad.core.state.records import replace
from mcad.core.state.violations import check

Held = tuple[tuple[str, Resources], ...]
"""(node, amounts) of each pod, and of the slots of each allotment on each node."""


class Reservations:
    """Every reservation by uid, and which allotments hold slots on which node (``slots_on``).

    ``held`` is for what-if questions: what AppWrappers have on nodes, by uid, until that changes.
    ``claimed`` are those for attempts that have not begun, the oldest first.
    """

    def __init__(self, ledger: Ledger, arrears: Arrears, memory: Memory, *, on_nodes: bool) -> None:
        self._ledger = ledger
        self._on_nodes = on_nodes
        self._arrears = arrears
        self._memory = memory
        self._made = 0
        self._adrift: dict[Allotment, None] = {}
        self._per_node: dict[Allotment, None] = {}
        self._unnoted: dict[Allotment, None] = {}
        self.by_uid: dict[str, Reservation] = {}
        self.claimed: dict[str, Reservation] = {}
        self.slots_on: dict[str, dict[Allotment, None]] = {}
        self.held: dict[str, Held] = {}

    # -- making and ending ---------------------------------------------------------------------

    def make(
        self, uid: str, attempt: int, sets: tuple[PodSet, ...], *, leaving: bool = False
    ) -> Reservation:
        """A reservation that holds nothing yet, and will not until it is placed."""
        check(uid not in self.by_uid, "reserved-once", f"{uid} has a reservation already")
        self._made += 1
        reservation = Reservation(uid, attempt, self._made, leaving=leaving)
        allotments = []
        for position, pod_set in enumerate(sets):
            pods = self._memory.hold_class(ClassKey.of(pod_set))
            allotments.append(Allotment(reservation, position, pod_set, pods))
        reservation.allotments = tuple(allotments)
        self._per_node.update(dict.fromkeys(one for one in allotments if one.pod_set.per_node))
        self.by_uid[uid] = reservation
        return reservation

    def allotments(self, uid: str) -> tuple[Allotment, ...]:
        """Those of the AppWrapper, per set in the order of the sets; () without a reservation."""
        reservation = self.by_uid.get(uid)
        return reservation.allotments if reservation is not None else ()

    def claim(self, reservation: Reservation, shape: Shape, plan: Plan) -> None:
        """Claim the slots of the plan; they stay as they are until the claim ends. Where only sums
        count they have no nodes: the sum is that much smaller for all others."""
        reservation.claimed = True
        self.claimed[reservation.uid] = reservation
        self.place(reservation, shape, plan if self._on_nodes else [])
        reservation.frozen = True

    def place(self, reservation: Reservation, shape: Shape, plan: Plan) -> None:
        """Assume the slots where the plan puts them; the rest drifts."""
        reservation.frozen = False
        for number, row, times in plan:
            name, left = row.node.name, times
            for position in shape.alike[number].positions:
                allotment = reservation.allotments[position]
                part = min(left, allotment.target - allotment.size)
                if part > 0 and not (allotment.pod_set.per_node and allotment.crowd(name)):
                    self._assume(allotment, name, part)
                    left -= part
        for allotment in reservation.allotments:
            self.settle(allotment)

    def end(self, uid: str) -> None:
        """The reservation is over."""
        reservation = self.by_uid.pop(uid)
        self.claimed.pop(uid, None)
        for allotment in reservation.allotments:
            self._per_node.pop(allotment, None)
            self._unnoted.pop(allotment, None)
            self._owe(allotment, -allotment.adrift)
            for name, held in list(allotment.at.items()):
                self._release(allotment, name, held)
            self._memory.let_go_class(allotment.pods)
        reservation.allotments = ()  # they know it, so nothing but the collector would free them

    # -- size ----------------------------------------------------------------------------------

    def settle(self, allotment: Allotment, near: str = "") -> None:
        """Bring the allotment to its size: what it lacks drifts until the next pass. What is too
        much goes from the node that a pod was just bound to, else from what is adrift, else from
        the node assumed last (R3)."""
        self._unnoted[allotment] = None
        surplus = allotment.size - allotment.target
        if surplus < 0:
            self._owe(allotment, -surplus)
        if surplus <= 0:
            return
        here = min(surplus, allotment.at.get(near, 0))
        if here:
            self._release(allotment, near, here)
        adrift = min(surplus - here, allotment.adrift)
        self._owe(allotment, -adrift)
        surplus -= here + adrift
        while surplus:
            last = next(reversed(allotment.at))
            part = min(surplus, allotment.at[last])
            self._release(allotment, last, part)
            surplus -= part

    def settle_daemons(self) -> None:
        """A node came or went: DaemonSets have a pod more or less to make."""
        for allotment in self._per_node:
            self.settle(allotment)

    def is_owed(self, reservation: Reservation) -> bool:
        """Whether what it has without a node is taken off the sum of others."""
        return not (reservation.claimed and self._on_nodes)

    def take_unnoted(self) -> list[Allotment]:
        """The allotments whose pods or wishes changed since the last call."""
        unnoted, self._unnoted = self._unnoted, {}
        return list(unnoted)

    def leave(self, name: str, *, unless_admitted_by: Row | None = None) -> None:
        """Slots on the node drift: all of them, or those that the node does not admit any more."""
        row = unless_admitted_by
        for allotment in list(self.slots_on.get(name, {})):
            if row is None or row.rank not in allotment.pods.pool.rows:
                self._set_adrift(allotment, name, allotment.at[name])

    # -- homes ---------------------------------------------------------------------------------

    def rehome(self) -> None:
        """First in each pass: existing reservations come before the queue, older ones first."""
        for name in list(self._ledger.overdrawn):
            self._shed(name)
        for allotment in sorted(self._adrift, key=lambda allotment: allotment.order):
            self._bring_home(allotment)

    def _shed(self, name: str) -> None:
        """While the node is overdrawn its latest slots give way, if they take what it lacks. A
        claim stays: it waits for the node to be less used, and takes nothing from those there."""
        row = self._ledger.rows[name]
        holders = [one for one in self.slots_on.get(name, {}) if not one.reservation.claimed]
        for allotment in sorted(holders, key=lambda one: one.order, reverse=True):
            request = allotment.pods.request
            over = max((-(row.unclaimed(r) // n) for r, n in request), default=0)
            if over > 0:
                self._set_adrift(allotment, name, min(over, allotment.at[name]))
                self._ledger.post()

    def _bring_home(self, allotment: Allotment) -> None:
        pods = allotment.pods
        if pods.missing(1):
            return
        # Nodes that rose lately come early: among them is the one that a moved slot was vacated on.
        for row in pods.places():
            name = row.node.name
            part = min(pods.slots(row), allotment.adrift)
            if part and pods.cap < UNBOUNDED:
                part = min(part, max(0, pods.cap - allotment.crowd(name)))
            if part:
                self._owe(allotment, -part)
                self._assume(allotment, name, part)
                self._ledger.post()
                if not allotment.adrift:
                    break

    # -- slots ---------------------------------------------------------------------------------

    def _assume(self, allotment: Allotment, name: str, part: int) -> None:
        allotment.at[name] = allotment.at.get(name, 0) + part
        allotment.assumed += part
        self.slots_on.setdefault(name, {})[allotment] = None
        self._take(allotment, name, part)

    def _release(self, allotment: Allotment, name: str, part: int) -> None:
        allotment.at[name] -= part
        allotment.assumed -= part
        if not allotment.at[name]:
            del allotment.at[name]
            del self.slots_on[name][allotment]
            if not self.slots_on[name]:
                del self.slots_on[name]
        self._take(allotment, name, -part)

    def _take(self, allotment: Allotment, name: str, part: int) -> None:
        owner, request = allotment.reservation, allotment.pods.request
        self.held.pop(owner.uid, None)
        if owner.claimed:
            self._ledger.claim(name, owner.uid, request, part)
        else:
            self._ledger.note(name, request, part)

    def _set_adrift(self, allotment: Allotment, name: str, part: int) -> None:
        self._release(allotment, name, part)
        self._owe(allotment, part)

    def _owe(self, allotment: Allotment, more: int) -> None:
        if not more:
            return
        allotment.adrift += more
        if self.is_owed(allotment.reservation):
            self._arrears.owe(allotment.pods, more)
        if allotment.reservation.claimed:
            return  # it needs no node, or has lost one: then it is planned anew, or ends
        if allotment.adrift:
            self._adrift[allotment] = None
        else:
            del self._adrift[allotment]


def shrunk_to(sets: tuple[PodSet, ...], reservation: Reservation) -> tuple[PodSet, ...]:
    """The sets with only as many replicas as the reservation still misses."""
    return tuple(
        pod_set
        if pod_set.per_node or allotment.uncovered == pod_set.replicas
        else replace(pod_set, replicas=allotment.uncovered)
        for pod_set, allotment in zip(sets, reservation.allotments, strict=True)
    )
