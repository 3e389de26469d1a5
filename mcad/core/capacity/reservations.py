"""Reservations on concrete nodes: assumed, released, moved and brought home (core rule R3, C6).

For every claim assumed + adrift = reservation. Observations only let slots go or set them adrift;
``rehome``, which comes first in each pass, takes slots off overdrawn nodes and looks for homes.
"""

from __future__ import annotations

from mcad.core.capacity.arrears import Arrears
from mcad.core.capacity.claims import Claim, Reservation
from mcad.core.capacity.ledger import Ledger
from mcad.core.capacity.memory import Memory
from mcad.core.capacity.mixed import Plan
from mcad.core.capacity.podclass import UNBOUNDED
from mcad.core.capacity.pools import Row
from mcad.core.capacity.shapes import ClassKey, Shape
from mcad.core.invariants import check
from mcad.core.model import PodSet
from mcad.core.records import replace


class Reservations:
    """Every reservation by uid, and which claims hold slots on which node (``slots_on``)."""

    def __init__(self, ledger: Ledger, arrears: Arrears, memory: Memory) -> None:
        self._ledger = ledger
        self._arrears = arrears
        self._memory = memory
        self._made = 0
        self._adrift: dict[Claim, None] = {}
        self._per_node: dict[Claim, None] = {}
        self._unnoted: dict[Claim, None] = {}
        self.by_uid: dict[str, Reservation] = {}
        self.slots_on: dict[str, dict[Claim, None]] = {}

    # -- making and ending ---------------------------------------------------------------------

    def make(self, uid: str, attempt: int, sets: tuple[PodSet, ...]) -> Reservation:
        """A reservation that holds nothing yet, and will not until it is placed."""
        check(uid not in self.by_uid, "reserved-once", f"{uid} has a reservation already")
        self._made += 1
        reservation = Reservation(uid, attempt, self._made)
        claims = []
        for position, pod_set in enumerate(sets):
            pods = self._memory.hold_class(ClassKey.of(pod_set))
            claims.append(Claim(reservation, position, pod_set, pods))
        reservation.claims = tuple(claims)
        self._per_node.update(dict.fromkeys(one for one in claims if one.pod_set.per_node))
        self.by_uid[uid] = reservation
        return reservation

    def place(self, reservation: Reservation, shape: Shape, plan: Plan) -> None:
        """Assume the slots where the plan puts them; the rest drifts."""
        reservation.frozen = False
        for number, row, times in plan:
            name, left = row.node.name, times
            for position in shape.alike[number].positions:
                claim = reservation.claims[position]
                part = min(left, claim.target - claim.size)
                if part > 0 and not (claim.pod_set.per_node and claim.crowd(name)):
                    self._assume(claim, name, part)
                    left -= part
        for claim in reservation.claims:
            self.settle(claim)

    def end(self, uid: str) -> None:
        """The reservation is over."""
        reservation = self.by_uid.pop(uid)
        for claim in reservation.claims:
            self._per_node.pop(claim, None)
            self._unnoted.pop(claim, None)
            self._owe(claim, -claim.adrift)
            for name, held in list(claim.at.items()):
                self._release(claim, name, held)
            self._memory.let_go_class(claim.pods)
        reservation.claims = ()  # they know it, so nothing but the collector would free them

    # -- size ----------------------------------------------------------------------------------

    def settle(self, claim: Claim, near: str = "") -> None:
        """Bring the claim to its size: what it lacks drifts until the next pass. What is too much
        goes from the node that a pod was just bound to, else from what is adrift, else from the
        node assumed last (R3)."""
        self._unnoted[claim] = None
        surplus = claim.size - claim.target
        if surplus < 0:
            self._owe(claim, -surplus)
        if surplus <= 0:
            return
        here = min(surplus, claim.at.get(near, 0))
        if here:
            self._release(claim, near, here)
        adrift = min(surplus - here, claim.adrift)
        self._owe(claim, -adrift)
        surplus -= here + adrift
        while surplus:
            last = next(reversed(claim.at))
            part = min(surplus, claim.at[last])
            self._release(claim, last, part)
            surplus -= part

    def settle_daemons(self) -> None:
        """A node came or went: DaemonSets have a pod more or less to make."""
        for claim in self._per_node:
            self.settle(claim)

    def take_unnoted(self) -> list[Claim]:
        """The claims whose pods or wishes changed since the last call."""
        unnoted, self._unnoted = self._unnoted, {}
        return list(unnoted)

    def leave(self, name: str, *, unless_admitted_by: Row | None = None) -> None:
        """Slots on the node drift: all of them, or those that the node does not admit any more."""
        row = unless_admitted_by
        for claim in list(self.slots_on.get(name, {})):
            if row is None or row.rank not in claim.pods.pool.rows:
                self._set_adrift(claim, name, claim.at[name])

    # -- homes ---------------------------------------------------------------------------------

    def rehome(self) -> None:
        """First in each pass: existing reservations come before the queue, older ones first."""
        for name in list(self._ledger.overdrawn):
            self._shed(name)
        for claim in sorted(self._adrift, key=lambda claim: claim.order):
            self._bring_home(claim)

    def _shed(self, name: str) -> None:
        """While the node is overdrawn its latest slots give way, if they take what it lacks."""
        holders = sorted(self.slots_on.get(name, {}), key=lambda claim: claim.order, reverse=True)
        for claim in holders:
            free = self._ledger.rows[name].free
            over = max((-(free.get(r, 0) // n) for r, n in claim.pods.request), default=0)
            if over > 0:
                self._set_adrift(claim, name, min(over, claim.at[name]))
                self._ledger.post()

    def _bring_home(self, claim: Claim) -> None:
        pods = claim.pods
        if pods.missing(1):
            return
        # Nodes that rose lately come early: among them is the one that a moved slot was vacated on.
        for row in pods.places():
            name = row.node.name
            part = min(pods.slots(row), claim.adrift)
            if part and pods.cap < UNBOUNDED:
                part = min(part, max(0, pods.cap - claim.crowd(name)))
            if part:
                self._owe(claim, -part)
                self._assume(claim, name, part)
                self._ledger.post()
                if not claim.adrift:
                    break

    # -- slots ---------------------------------------------------------------------------------

    def _assume(self, claim: Claim, name: str, part: int) -> None:
        claim.at[name] = claim.at.get(name, 0) + part
        claim.assumed += part
        self.slots_on.setdefault(name, {})[claim] = None
        self._ledger.note(name, claim.pods.request, part)

    def _release(self, claim: Claim, name: str, part: int) -> None:
        claim.at[name] -= part
        claim.assumed -= part
        if not claim.at[name]:
            del claim.at[name]
            del self.slots_on[name][claim]
            if not self.slots_on[name]:
                del self.slots_on[name]
        self._ledger.note(name, claim.pods.request, -part)

    def _set_adrift(self, claim: Claim, name: str, part: int) -> None:
        self._release(claim, name, part)
        self._owe(claim, part)

    def _owe(self, claim: Claim, more: int) -> None:
        if not more:
            return
        claim.adrift += more
        self._arrears.owe(claim.pods, more)
        if claim.adrift:
            self._adrift[claim] = None
        else:
            del self._adrift[claim]


def shrunk_to(sets: tuple[PodSet, ...], reservation: Reservation) -> tuple[PodSet, ...]:
    """The sets with only as many replicas as the reservation still misses."""
    return tuple(
        pod_set
        if pod_set.per_node or claim.uncovered == pod_set.replicas
        else replace(pod_set, replicas=claim.uncovered)
        for pod_set, claim in zip(sets, reservation.claims, strict=True)
    )
