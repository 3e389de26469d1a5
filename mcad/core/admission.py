"""The books of nodes and quota, changed together: room is taken in both or in neither, and given
back to both, so no other part of the core assumes, reserves or releases (R11, C7).

Quota is asked first: its answer is exact and cheap. A charge exists while a gang exists, even an
empty gang, and is the declared demand, however much of it is bound.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from mcad.core.assumed.assumed import RemovedGang
from mcad.core.assumed.gangs import NOTHING_REPORTED, Wants
from mcad.core.capacity import Capacity
from mcad.core.nodes.ledger import Plan
from mcad.core.nodes.shape import Shape
from mcad.core.queue.ordering import Turns
from mcad.core.quota.usage import Charge, ChargedAs, Forest
from mcad.core.snapshot.quota import Shares
from mcad.core.snapshot.snapshot import ANYWHERE, Snapshot, Where
from mcad.core.state.model import PodSet, Resources
from mcad.core.state.quota_records import Designation, Path
from mcad.core.state.refusal import Refusal
from mcad.core.state.violations import check

QUOTA_STEPS = 20
"""The work of a verdict by quota in a pass."""


class Gang(NamedTuple):
    """All pod sets of one attempt, and their shape."""

    uid: str
    namespace: str
    attempt: int
    shape: Shape
    sets: tuple[PodSet, ...]


class Demanded(NamedTuple):
    """What a waiting AppWrapper will be charged for its shape, and where."""

    uid: str
    shape: Shape
    path: Path


class Removed(NamedTuple):
    """An AppWrapper that a dry run removed from both books."""

    namespace: str
    charge: Charge
    gang: RemovedGang


class Admission:
    """The one entrance to both books, and the only exit."""

    def __init__(self, capacity: Capacity, forest: Forest, turns: Turns) -> None:
        self._capacity = capacity
        self._forest = forest
        self._turns = turns
        self._asked = 0

    @property
    def steps(self) -> int:
        """The work so far, as counted by ``Capacity.steps``."""
        return self._capacity.steps + self._asked * QUOTA_STEPS

    def demand(self, shape: Shape) -> Resources:
        """The declared demand of a gang; a DaemonSet's pods are counted on the present nodes."""
        return self._capacity.demand(shape)

    def quota_refusal(self, shape: Shape, path: Path) -> Refusal | None:
        """Why the shares do not suffice now; None if they do."""
        if not path:
            return None
        self._asked += 1
        return self._forest.refusal(path, self.demand(shape))

    def suffices_beside(self, gang: Demanded, others: Iterable[Demanded]) -> bool:
        """Whether the shares suffice for a gang beside others that are charged nothing yet."""
        trees, charges = self._forest.trees, self._forest.charges

        def seated(one: Demanded) -> Shares:
            return Shares(trees, charges, one.path, self.demand(one.shape), ())

        self._asked += 1
        shares = seated(gang)
        for other in others:
            shares.assume(other.uid, tuple(seated(other).seats))
            self._asked += 1
        return shares.fits()

    def what_if(
        self,
        shape: Shape,
        path: Path,
        lifted: Collection[str] = (),
        uncharged: Collection[str] = (),
        where: Where = ANYWHERE,
    ) -> Snapshot:
        """Where a gang on this path would go if others left. The reservations of ``lifted`` count
        as free, on nodes and in shares, those of ``uncharged`` in shares only."""
        free = (*lifted, *uncharged)
        shares = Shares(self._forest.trees, self._forest.charges, path, self.demand(shape), free)
        return self._capacity.what_if(shape, lifted, shares, where)

    def assume(
        self,
        gang: Gang,
        designation: Designation,
        wants: Wants = NOTHING_REPORTED,
    ) -> Refusal | None:
        """Take room for the whole gang. Returns None on success, else the reason; then nothing is
        changed."""
        refused = self.quota_refusal(gang.shape, self._forest.path(designation))
        if refused is None:
            refused = self._capacity.assume(gang.uid, gang.attempt, gang.shape, gang.sets, wants)
        if refused is None:
            self._charge(gang, designation)
        return refused

    def adopt(self, gang: Gang, designation: Designation, *, leaving: bool = False) -> None:
        """Hold the room of an earlier dispatched attempt, whether it fits or not; shares may become
        overcommitted. ``leaving`` as for ``Gangs.adopt``."""
        self._capacity.gangs.adopt(gang.uid, gang.attempt, gang.sets, leaving=leaving)
        self._charge(gang, designation)

    def reserve(self, gang: Gang, designation: Designation, plan: Plan) -> None:
        """Reserve room that others still use; shares may become overcommitted."""
        self.reserve_uncharged(gang, plan)
        self._charge(gang, designation)
        self._forest.mark(gang.uid, ChargedAs.RESERVED)

    def reserve_uncharged(self, gang: Gang, plan: Plan) -> None:
        """Reserve the places of the plan, which may be too few for the gang, and charge nothing:
        the pods without a place wait for nodes that may never come (R13)."""
        self._capacity.reserve(gang.uid, gang.attempt, gang.shape, gang.sets, plan)

    def assume_at(self, gang: Gang, designation: Designation, plan: Plan) -> None:
        """Take the room of a plan that looked past reservations."""
        self._capacity.assume_at(gang.uid, gang.attempt, gang.shape, gang.sets, plan)
        self._charge(gang, designation)

    def unreserve(self, gang: Gang) -> None:
        """End the reservation of the gang."""
        self.release(gang.uid)
        self._capacity.forget(gang.shape)

    def is_free(self, uid: str, uncharged: Iterable[str] = ()) -> bool:
        """Whether no other AppWrapper uses the reserved room any more, on nodes and in quota. In
        quota the reservations of ``uncharged`` do not count."""
        if not self._capacity.reserved.is_free(uid):
            return False
        if not self._forest.is_overcommitted(uid):
            return True
        trees, charges = self._forest.trees, self._forest.charges
        own = charges[uid]
        return Shares(trees, charges, own.path, own.amounts, (uid, *uncharged)).fits()

    def _charge(self, gang: Gang, designation: Designation) -> None:
        demand = self.demand(gang.shape)
        self._forest.charge(gang.uid, designation, demand)
        self._turns.charge(gang.uid, gang.namespace, demand)

    def renew(self, uid: str, attempt: int, sets: tuple[PodSet, ...]) -> None:
        """Replace the gang by the gang of the next attempt, which is empty if no attempt follows;
        the charge stays (C7)."""
        self._capacity.gangs.release(uid)
        self._capacity.gangs.adopt(uid, attempt, sets)
        self._forest.mark(uid, ChargedAs.USED)

    def freeze(self, uid: str) -> None:
        """Freeze the AppWrapper's room until ``release``: a teardown begins."""
        if self._capacity.gangs.exists(uid):
            self._capacity.gangs.freeze(uid)
            self._forest.mark(uid, ChargedAs.LEAVING)

    def release(self, uid: str) -> None:
        """Release all room of the AppWrapper."""
        self._capacity.gangs.release(uid)
        self._turns.release(uid)
        self._forest.release(uid)

    def remove(self, uid: str, namespace: str) -> Removed:
        """Take the AppWrapper out of both books for a dry run, until ``restore``."""
        charge = self._forest.charges[uid]
        self._turns.release(uid)
        self._forest.release(uid)
        return Removed(namespace, charge, self._capacity.gangs.remove(uid))

    def restore(self, removed: Removed) -> None:
        """Give the AppWrapper its room and its charge again."""
        self._capacity.gangs.restore(removed.gang)
        uid = removed.gang.gang.uid
        charge = removed.charge
        self._forest.charge(uid, charge.designation, charge.amounts, charge.kind)
        self._turns.charge(uid, removed.namespace, charge.amounts)

    def check(self) -> None:
        """Check that both books are right and have the same AppWrappers; for tests. O(all)."""
        self._capacity.check()
        self._forest.check()
        gangs, charged = self._capacity.gangs, set(self._forest.charges)
        self._turns.check(charged)
        reserved = {uid for uid in gangs.uids() if uid in charged or not gangs.is_reserved(uid)}
        for uid, charge in self._forest.charges.items():
            kind = self._kind(uid)
            check(charge.kind is kind, "charged-as-it-is-held", f"{uid}: {charge.kind}, {kind}")
        check(
            reserved == charged,
            "charged-while-assumed",
            f"only reserved: {sorted(reserved - charged)}, only charged: "
            f"{sorted(charged - reserved)}",
        )

    def _kind(self, uid: str) -> ChargedAs:
        gangs = self._capacity.gangs
        if gangs.is_reserved(uid):
            return ChargedAs.RESERVED
        return ChargedAs.LEAVING if gangs.is_leaving(uid) else ChargedAs.USED
