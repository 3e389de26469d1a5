"""Which AppWrappers may use reserved room: AppWrappers that end before the reserved start, by
declared limits (core R9), and AppWrappers with a higher priority (R8)."""

from __future__ import annotations

from mcad.core.attempts import create
from mcad.core.cluster import Cluster
from mcad.core.eligibility import pre_enqueue
from mcad.core.eligibility.precedence import ends_before, may_pass
from mcad.core.nodes.ledger import Plan
from mcad.core.nodes.reserved_free import Spare
from mcad.core.queue.equivalence import EquivalenceClass
from mcad.core.queue.walk import Offer
from mcad.core.reservations import manage, release_set
from mcad.core.state.bounds import (
    BACKFILL_MEMBER_STEPS,
    BACKFILL_MEMBERS,
    BACKFILL_TEST_STEPS,
    BACKFILL_TESTS,
    BACKFILL_TRIES,
    Look,
)
from mcad.core.state.entry import Entry


def walk(cluster: Cluster) -> None:
    """Offer, after all other steps, reserved room to the refused classes in their order: the room
    that came free since the last offer, or all free reserved room to classes without an offer so
    far. To list the classes and to test them may take several passes."""
    begun, agenda = cluster.walk.offer, cluster.agenda
    if not cluster.reservations:
        if begun is not None:
            _offer_later(cluster, begun)
        return
    if begun is None:
        is_new = cluster.capacity.reserved.is_relieved or cluster.waiting.queue.new
        if not (is_new and agenda.is_time_for(Look.BACKFILL)):
            return
        begun = cluster.walk.offer = _begin(cluster)
        if agenda.is_spent:
            cluster.walk.gives_way = True
            agenda.carry_over()
            return
    if _is_behind(cluster, begun):
        _offer_later(cluster, begun)
        agenda.look_again(Look.BACKFILL)  # with the classes that came meanwhile, in order
        return
    _make(cluster, begun)


def _begin(cluster: Cluster) -> Offer:
    """Begin an offer. Classes without a verdict, or that only let others go first, get it later."""
    queue, relieved = cluster.waiting.queue, cluster.capacity.reserved.take_relieved()
    new = queue.new
    queue.new = {eqclass: None for eqclass in new if not eqclass.may_keep_verdict}
    line = cluster.waiting.refused(queue.eqclasses() if relieved else new)
    return Offer(line[::-1], new, relieved)


def _is_behind(cluster: Cluster, begun: Offer) -> bool:
    """Whether the next class of the offer is behind a class that came since."""
    following = _find_first(begun)
    if following is None:
        return False
    turns, now = cluster.waiting.turns, cluster.now
    came = [eqclass for eqclass in cluster.waiting.queue.new if eqclass.is_refused]
    return any(turn < turns.of(following, now) for turn, _ in turns.line(came, now))


def _find_first(begun: Offer) -> EquivalenceClass | None:
    """The next class of the offer that is still refused, None if there is none."""
    while begun.line and not begun.line[-1].is_refused:
        begun.line.pop()
    return begun.line[-1] if begun.line else None


def _make(cluster: Cluster, begun: Offer) -> None:
    """Go on with an offer, as far as this pass gets. After enough tries the other classes wait for
    the next offer."""
    room, agenda = _Room(cluster, begun), cluster.agenda
    tries, tests = BACKFILL_TRIES, BACKFILL_TESTS
    while tries > 0 and cluster.reservations:
        if tests <= 0 or agenda.is_spent:
            agenda.carry_over()
            return
        eqclass = _find_first(begun) if room.free else None
        if eqclass is None:
            cluster.walk.offer = None
            return
        parts = max(1, len(eqclass.shape.alike))
        tests -= parts
        agenda.spent += BACKFILL_TEST_STEPS * parts
        begun_at, is_done = cluster.admission.steps, True
        if room.may_fit(eqclass):
            tried, is_done = _try(cluster, eqclass, room, tries)
            tries -= tried
        agenda.spent += cluster.admission.steps - begun_at
        if is_done:
            begun.line.pop()
    _offer_later(cluster, begun)


class _Room:
    """The free reserved room on offer: the relieved nodes, or all for ``new`` classes."""

    def __init__(self, cluster: Cluster, begun: Offer) -> None:
        self.relieved = begun.relieved.again()
        self.free = cluster.capacity.reserved.spare()
        self._capacity = cluster.capacity
        self._new = begun.new

    def places(self, eqclass: EquivalenceClass) -> Spare:
        """The room that is offered to the class."""
        return self.free if eqclass in self._new else self.relieved

    def may_fit(self, eqclass: EquivalenceClass) -> bool:
        """Whether one of the class's pods fits on the offer, and all may fit on the free room."""
        has_place = self._capacity.has_place(eqclass.shape, self.places(eqclass))
        return has_place and self._capacity.may_fit(eqclass.shape, self.free)

    def taken(self) -> None:
        """Update the offer after a start."""
        self.relieved, self.free = self.relieved.again(), self.free.again()


def _offer_later(cluster: Cluster, begun: Offer) -> None:
    """End the offer; the classes that were not reached are ``new`` in the next offer."""
    cluster.walk.offer = None
    left = ((eqclass, None) for eqclass in begun.line if eqclass.members)
    cluster.waiting.queue.new.update(left)
    cluster.agenda.is_time_for(Look.BACKFILL)


def _try(cluster: Cluster, eqclass: EquivalenceClass, room: _Room, most: int) -> tuple[int, bool]:
    """Start as many of the class as possible. Returns how many were tried, at most ``most`` and,
    once the work of the pass is done, only the first; and whether no other may start."""
    cluster.errors.about = eqclass.first().uid
    for tries in range(most):
        if not eqclass.members:
            return tries, True
        if tries and cluster.agenda.is_spent:
            return tries, False
        if not room.may_fit(eqclass):
            return tries, True
        found = _next(cluster, eqclass, room.places(eqclass))
        if found is None:
            return tries, True
        entry, lifted = found
        plan = release_set.place(cluster, release_set.what_if(cluster, entry, lifted))
        if plan is None:
            return tries + 1, True
        _go(cluster, entry, plan)
        room.taken()
    return most, not eqclass.members


def _next(
    cluster: Cluster, eqclass: EquivalenceClass, places: Spare
) -> tuple[Entry, list[str]] | None:
    """The first member that may start on these nodes, and the reservations (uids) it passes."""
    for entry in eqclass.front(BACKFILL_MEMBERS):
        reserved = cluster.reservations.items()
        cluster.agenda.spent += BACKFILL_MEMBER_STEPS * len(reserved)
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
