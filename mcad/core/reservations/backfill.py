"""Which AppWrappers may use reserved room: those that end before it is wanted, by declared limits
(core R9), and those with a higher priority (R8)."""

from __future__ import annotations

from collections.abc import Container, Iterable

from mcad.core.attempts import create
from mcad.core.cluster import Cluster
from mcad.core.eligibility import pre_enqueue
from mcad.core.eligibility.precedence import ends_before, may_pass
from mcad.core.nodes.pools import Plan
from mcad.core.nodes.reserved_free import Spare
from mcad.core.queue.equivalence import EquivalenceClass
from mcad.core.reservations import manage, release_set
from mcad.core.state.bounds import (
    BACKFILL_MEMBERS,
    BACKFILL_TEST_STEPS,
    BACKFILL_TESTS,
    BACKFILL_TRIES,
    WORK_PER_PASS,
    Look,
)
from mcad.core.state.entry import Entry


def walk(cluster: Cluster) -> None:
    """After all others: offer the refused, in their order, the reserved room that came free since
    the last offer, or all that is free if they had no offer yet."""
    is_new = cluster.capacity.reserved.is_relieved or cluster.waiting.queue.new
    if not (cluster.reservations and is_new and cluster.agenda.is_time_for(Look.BACKFILL)):
        return
    new, cluster.waiting.queue.new = cluster.waiting.queue.new, {}
    offer = _Offer(cluster, new)
    if not offer.free:
        return
    tries, tests = BACKFILL_TRIES, BACKFILL_TESTS
    line = cluster.waiting.refused(filter(offer.concerns, cluster.waiting.queue.eqclasses()))
    # What it took to put them in order does not count: else none would ever have its turn.
    until = cluster.agenda.spent + WORK_PER_PASS
    for eqclass in line:
        is_over = cluster.agenda.spent >= until
        if tries <= 0 or tests <= 0 or is_over or not cluster.reservations:
            break
        parts = max(1, len(eqclass.shape.alike))
        tests -= parts
        cluster.agenda.spent += BACKFILL_TEST_STEPS * parts
        begun = cluster.admission.steps
        if offer.may_fit(eqclass):
            tries -= _try(cluster, eqclass, offer, tries, until)
        cluster.agenda.spent += cluster.admission.steps - begun
    else:
        return
    _offer_later(cluster, (eqclass, *line))
    if tests <= 0 or is_over:
        cluster.agenda.look_again(Look.BACKFILL)


class _Offer:
    """The free reserved room that is offered: what came free, or all to ``new`` classes."""

    def __init__(self, cluster: Cluster, new: Container[EquivalenceClass]) -> None:
        self.relieved = cluster.capacity.reserved.take_relieved()
        self.free = cluster.capacity.reserved.spare()
        self._capacity = cluster.capacity
        self._new = new

    def places(self, eqclass: EquivalenceClass) -> Spare:
        """What is offered to the class."""
        return self.free if eqclass in self._new else self.relieved

    def concerns(self, eqclass: EquivalenceClass) -> bool:
        """Whether anything is offered to the class."""
        return bool(self.places(eqclass))

    def may_fit(self, eqclass: EquivalenceClass) -> bool:
        """Whether one of its pods fits on the offer, and all may fit on what is free."""
        has_place = self._capacity.has_place(eqclass.shape, self.places(eqclass))
        return has_place and self._capacity.may_fit(eqclass.shape, self.free)

    def taken(self) -> None:
        """Some of it was taken."""
        self.relieved, self.free = self.relieved.again(), self.free.again()


def _offer_later(cluster: Cluster, eqclasses: Iterable[EquivalenceClass]) -> None:
    """These classes were not reached: the next walk offers them all that is free."""
    cluster.waiting.queue.new.update((eqclass, None) for eqclass in eqclasses if eqclass.members)
    cluster.agenda.is_time_for(Look.BACKFILL)


def _try(cluster: Cluster, eqclass: EquivalenceClass, offer: _Offer, most: int, until: int) -> int:
    """Start as many of the class as possible; returns how many were tried, at most ``most``, and
    none but the first once the pass has spent ``until``."""
    for tries in range(most):
        if not eqclass.members or (tries and cluster.agenda.spent >= until):
            return tries
        if not offer.may_fit(eqclass):
            return tries
        found = _next(cluster, eqclass, offer.places(eqclass))
        if found is None:
            return tries
        entry, lifted = found
        plan = release_set.place(cluster, release_set.what_if(cluster, entry, lifted))
        if plan is None:
            return tries + 1
        _go(cluster, entry, plan)
        offer.taken()
    return most


def _next(
    cluster: Cluster, eqclass: EquivalenceClass, places: Spare
) -> tuple[Entry, list[str]] | None:
    """The first member that may start on these nodes, and the reservations (uids) it passes."""
    for entry in eqclass.front(BACKFILL_MEMBERS):
        reserved = cluster.reservations.items()
        lifted = [uid for uid, owner in reserved if may_pass(cluster, entry, owner)]
        if places.is_of(lifted):
            return entry, lifted
    return None


def _go(cluster: Cluster, entry: Entry, plan: Plan) -> None:
    hindrance = pre_enqueue.obstacle(cluster, entry)
    if hindrance is not None:
        cluster.waiting.hold(entry, hindrance)
        return
    for owner in manage.owners_on(cluster, plan):
        if not ends_before(cluster, entry, owner.reserved):
            manage.give_way(cluster, owner, entry)
    cluster.admission.assume_at(*cluster.next_gang(entry), plan)
    cluster.waiting.stand_in_front(entry)
    create.begin(cluster, entry)
