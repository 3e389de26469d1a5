"""Verdicts: whether a gang fits now, and if not, why, with figures (core rules R1, R4).

In this order, cheapest first: is there a node at all; does the sum suffice; does each set fit
alone, the one that refused last asked first; do the sets fit together. With ``fit: aggregate`` only
the sum counts, as in MCAD.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mcad.core.assumed.unplaced import UnplacedPods
from mcad.core.fit.feasible import (
    InsufficientSlots,
    InsufficientSum,
    NoNodes,
    Part,
    Prospect,
    TooLarge,
    looks_max,
)
from mcad.core.fit.greedy import Nodes, Packing, as_many_as_fit, pack
from mcad.core.fit.own_nodes import on_own_nodes
from mcad.core.nodes.host_ports import in_whole_ports, is_port
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.pod_signature import slots
from mcad.core.nodes.pools import (
    Draft,
    Plan,
    Pool,
    joint_total,
    largest,
    rough_total,
    sum_of,
    widest,
)
from mcad.core.nodes.resources import Books, book
from mcad.core.state.records import replace
from mcad.core.state.refusal import Refusal, Shortage
from mcad.core.state.settings import Fit, Settings
from mcad.core.state.waiting_reason import WaitingReason
from mcad.core.state.work_bounds import (
    EXACT_WORK_MAX,
    EXACT_WORK_PER_PASS_MAX,
    GREEDY_WORK_PER_PASS_MAX,
    PART_STEPS,
    VERDICT_STEPS,
)

_MILLION = 1_000_000

Sums = Mapping[str, int]


class Judge:
    """Answers whether the gangs of a prospect fit, and notes in the prospect what helps the next
    time.

    ``steps`` counts its work so far, about a microsecond each: verdicts, and nodes looked at. The
    judge of the cycle ``remembers``: the unplaced pods learn that it has counted them.
    """

    def __init__(
        self, settings: Settings, ledger: Ledger, unplaced_pods: UnplacedPods, *, remembers: bool
    ) -> None:
        self._remembers = remembers
        self._ledger = ledger
        self._unplaced_pods = unplaced_pods
        self._on_nodes = settings.fit is Fit.NODES
        self.steps = 0
        self._budget = EXACT_WORK_PER_PASS_MAX
        self._looks = GREEDY_WORK_PER_PASS_MAX
        self._put_off: list[Prospect] = []
        self._fits: dict[Prospect, Draft | None] = {}
        self._fits_at = -1

    def new_pass(self) -> list[Prospect]:
        """A fresh budget; returns the prospects that the last one did not suffice for."""
        self._budget, self._looks = EXACT_WORK_PER_PASS_MAX, GREEDY_WORK_PER_PASS_MAX
        put_off, self._put_off, self._fits = self._put_off, [], {}
        for prospect in put_off:
            prospect.searched = -1
        return put_off

    # -- now -----------------------------------------------------------------------------------

    def refusal(self, prospect: Prospect) -> Refusal | None:
        """Why the gang does not fit now; None if it does. That is known, with the plan that it
        rests on, until something changes, whatever else is judged in between."""
        if self._fits_at != self._ledger.log.now:
            self._fits, self._fits_at = {}, self._ledger.log.now
        if prospect in self._fits:
            return None
        refused = self._judge(prospect)
        if refused is None:
            self._fits.setdefault(prospect, None)
        return refused

    def _judge(self, prospect: Prospect) -> Refusal | None:
        self.steps += VERDICT_STEPS + PART_STEPS * max(0, len(prospect.parts) - 1)
        prospect.obstacle = None
        if not prospect.parts:
            return None
        sums = self._sums(prospect)
        if not self._on_nodes:
            return self._sum_refuses(prospect, sums or {})
        for part in prospect.parts:
            if not part.pods.pool.rows and not part.per_node:
                prospect.obstacle = NoNodes(part.pods.pool)
                return _refusal(WaitingReason.NO_NODE, prospect, (), part, part.replicas)
        refused = self._sum_refuses(prospect, sums) if sums is not None else None
        refused = refused or self._some_part_refuses(prospect) or self._refused_together(prospect)
        if refused is None:
            return None
        refused = _too_large(prospect) or refused
        return _in_words(refused) if self._ledger.ports else refused

    def plan(self, prospect: Prospect) -> Plan:
        """Where the gang goes that was found to fit just now. With ``fit: aggregate`` the plan may
        hold fewer pods than the gang has."""
        nodes, weights = Nodes(self._unplaced_pods.barred), self._ledger.allocatable
        if not self._on_nodes:
            return prospect.plan(as_many_as_fit(prospect, nodes))
        draft = self._fits[prospect]
        if draft is None:  # the pods are equal, so slots were counted, and greed finds them
            draft = pack(prospect, nodes, 0, weights).plan or []
        draft, looked = on_own_nodes(prospect, draft, nodes, weights)
        self.steps += looked
        return prospect.plan(draft)

    # -- sums ----------------------------------------------------------------------------------

    def _sums(self, prospect: Prospect) -> Sums | None:
        """What is free on all its nodes; None if that takes a look at every node."""
        at, pools = prospect.widest
        if at != self._ledger.joins:
            pools = widest(prospect.pools)
            self.steps += len(prospect.pools) ** 2
            prospect.widest = (self._ledger.joins, pools)
        return None if pools is None else sum_of(pools)

    def _sum_refuses(self, prospect: Prospect, sums: Sums) -> Refusal | None:
        demand, available = prospect.demand, self._less_unplaced(prospect, sums)
        for name, n in demand:
            if available.get(name, 0) < n:
                shortages = _shortages(demand, available)
                if not prospect.shape.per_node:  # what is short of most lasts longest
                    self._remember_short(prospect, prospect.widest[1], shortages[0])
                return _refusal(WaitingReason.INSUFFICIENT, prospect, shortages)
        return None

    def _less_unplaced(self, prospect: Prospect, sums: Sums) -> Sums:
        """What is left of the sums after those whose reservations have no node (C6)."""
        unplaced = self._unplaced_pods
        owed = unplaced.weighing_on(prospect.pools) if unplaced.by_class else []
        if self._remembers:
            unplaced.note_weighed()
        if not owed:
            return sums
        left = dict(sums)
        for request, n in owed:
            book(left, request, -n)
        return left

    def _remember_short(
        self, prospect: Prospect, pools: tuple[Pool, ...] | None, most: Shortage
    ) -> None:
        if pools is None:
            return
        resource, needed = most.resource, most.requested
        if sum_of(pools).get(resource, 0) < needed:  # else what is owed to others made it short
            standing_in = len(prospect.pools) > 1 and pools is prospect.widest[1]
            if len(pools) == 1 and not standing_in:
                base = pools[0].base  # one line for all that lack a few of its nodes
                pools = (base,) if base.total.get(resource, 0) < needed else pools
            prospect.obstacle = InsufficientSum(pools, resource, needed, standing_in)

    # -- each part alone -----------------------------------------------------------------------

    def _some_part_refuses(self, prospect: Prospect) -> Refusal | None:
        first = (prospect.watched,) if prospect.watched else ()
        most = self.steps + looks_max(len(prospect.parts))
        for number in (*first, *range(len(prospect.parts))):
            if self.steps >= most:
                return None  # of dozens of large parts; placing them together decides
            refused = self._part_refuses(prospect, number)
            if refused is not None:
                prospect.watched = number
                return refused
        return None

    def _part_refuses(self, prospect: Prospect, number: int) -> Refusal | None:
        part = prospect.parts[number]
        pods, replicas = part.pods, part.replicas
        if part.per_node:
            return None  # no count of slots decides it; it is placed first when sets are combined
        held = self._unplaced_pods.held_slots(pods) if self._unplaced_pods.barred else 0
        looked = pods.looked
        missing = pods.missing(replicas + held)
        self.steps += pods.looked - looked
        if not missing:
            return None
        shortages = _shortages([(r, n * replicas) for r, n in pods.request], pods.pool.total)
        missing = min(missing, replicas)
        if not shortages[0].missing:
            if pods.at_most() < replicas:  # else what is set aside for others made them few
                prospect.obstacle = InsufficientSlots(pods, replicas)
            return _refusal(WaitingReason.FRAGMENTED, prospect, shortages, part, missing)
        self._remember_short(prospect, (pods.pool,), shortages[0])
        return _refusal(WaitingReason.INSUFFICIENT, prospect, shortages, part, missing)

    # -- all parts together --------------------------------------------------------------------

    def _refused_together(self, prospect: Prospect) -> Refusal | None:
        if len(prospect.parts) == 1 and not prospect.shape.per_node:
            return None  # alone is all there is
        if prospect.searched == prospect.latest_rise():
            return prospect.found  # only falls since the search failed
        refused = self._search(prospect)
        if refused is not None:
            prospect.searched, prospect.found = prospect.latest_rise(), refused
        return refused

    def _search(self, prospect: Prospect) -> Refusal | None:
        sums = self._sums(prospect)
        if sums is None and not self._plainly_suffices(prospect):
            sums = self._joint_total(prospect)
            refused = self._sum_refuses(prospect, sums)
            if refused is not None:
                return refused
        ample = self._ample()
        outcome = self._pack(prospect, Nodes(self._unplaced_pods.barred))
        if outcome.plan is not None:
            self._fits[prospect] = outcome.plan
            return None
        if not outcome.decided and not ample:
            self._put_off.append(prospect)
        sums = self._joint_total(prospect) if sums is None else sums
        shortages = _shortages(prospect.demand, self._less_unplaced(prospect, sums))
        kind = WaitingReason.FRAGMENTED if outcome.decided else WaitingReason.UNDECIDED
        part = prospect.parts[outcome.part] if outcome.part >= 0 else None
        return _refusal(kind, prospect, shortages, part, outcome.missing)

    def _joint_total(self, prospect: Prospect) -> Sums:
        bases = dict.fromkeys(pool.base for pool in prospect.pools)
        self.steps += 2 * sum(len(base.rows) for base in bases)
        return joint_total(prospect.pools)

    def _ample(self) -> bool:
        """Whether a search that is undecided now would be so in any other pass."""
        return self._looks > 0 and self._budget >= EXACT_WORK_MAX

    def _pack(self, prospect: Prospect, nodes: Nodes) -> Packing:
        """Search within what is left of the budgets of the pass."""
        if self._looks <= 0:
            return Packing(decided=False)
        budget = min(self._budget, EXACT_WORK_MAX)
        outcome = pack(prospect, nodes, budget, self._ledger.allocatable)
        self._looks -= outcome.looked
        self._budget -= outcome.work
        self.steps += outcome.looked + outcome.work
        return outcome

    def _plainly_suffices(self, prospect: Prospect) -> bool:
        """A lower bound of the sum, so that nodes need not be added up at every dispatch."""
        available = self._less_unplaced(prospect, rough_total(prospect.pools))
        return all(available.get(name, 0) >= n for name, n in prospect.demand)

    # -- emptied -------------------------------------------------------------------------------

    def would_fit_emptied(self, prospect: Prospect) -> bool:
        """Whether the gang would fit if every AppWrapper's pods and reservations left (R6).

        Undecided counts as no: a gang that cannot be shown to fit must not hold up others.
        """
        fitted, now = prospect.emptied[1], self._ledger.log.now
        if self.knows_emptied(prospect):
            return fitted
        if not fitted and self._still_lacks(prospect):
            prospect.emptied = (now, False)
            return False
        ample = self._ample()
        self.steps += sum(len(pool.rows) for pool in prospect.pools)
        fits = self._fits_emptied(prospect)
        if fits or ample:
            prospect.emptied = (now, fits)
        return fits

    def knows_emptied(self, prospect: Prospect) -> bool:
        """Whether the last answer to that question still holds, so that it is no work."""
        at, fitted = prospect.emptied
        ledger = self._ledger
        if prospect.shape.per_node:  # a node more is a pod more, a node less is a pod less
            return at >= max(ledger.idle_falls, ledger.idle_rises)
        return at >= (ledger.idle_falls if fitted else ledger.idle_rises)

    def _still_lacks(self, prospect: Prospect) -> bool:
        """Whether all slots on the nodes that changed since are surely too few for those pods that
        did not fit at the last look."""
        changed = self._ledger.log.since(prospect.emptied[0])
        if changed is None or prospect.lacking is None:
            return False
        number, missing = prospect.lacking
        pods, rows = prospect.parts[number].pods, prospect.parts[number].pods.pool.rows
        there = (rows[rank] for rank in changed if rank in rows)
        missing -= sum(slots(row.idle, pods.request, pods.cap) for row in there)
        prospect.lacking = (number, missing)
        return missing > 0

    def _fits_emptied(self, prospect: Prospect) -> bool:
        prospect.lacking = None
        if not self._on_nodes:
            return self._sum_fits_emptied(prospect)
        for number, part in enumerate(prospect.parts):
            pods = part.pods
            if part.per_node:
                continue
            missing = part.replicas
            for row in pods.pool.rows.values():
                missing -= slots(row.idle, pods.request, pods.cap)
                if missing <= 0:
                    break
            else:
                prospect.lacking = (number, missing)
                return False
        if len(prospect.parts) == 1 and not prospect.shape.per_node:
            return True
        return self._pack(prospect, Nodes(emptied=True)).plan is not None

    def _sum_fits_emptied(self, prospect: Prospect) -> bool:
        left: Books = {}
        for pool in prospect.pools:
            for row in pool.rows.values():
                book(left, ((name, max(0, n)) for name, n in row.idle.items()))
        return all(left.get(name, 0) >= n for name, n in prospect.demand)


# -- figures -------------------------------------------------------------------------------------


def _too_large(prospect: Prospect) -> Refusal | None:
    """A pod larger than every node that admits it makes all other figures beside the point."""
    for part in prospect.parts:
        pods = part.pods
        if pods.pool.rows and pods.too_large():
            prospect.obstacle = TooLarge(pods)
            shortages = _shortages(pods.request, largest(pods.pool))
            return _refusal(WaitingReason.TOO_LARGE, prospect, shortages, part, part.replicas)
    return None


def _refusal(
    kind: WaitingReason,
    prospect: Prospect,
    shortages: tuple[Shortage, ...],
    part: Part | None = None,
    missing: int = 0,
) -> Refusal:
    """A refusal by one part, named after the first of its sets, or by all of them together."""
    shape = prospect.shape
    if part is None:
        return Refusal(kind, shortages, missing=missing, unmodelled=shape.unmodelled)
    pod_set = shape.sets[part.positions[0]]
    return Refusal(kind, shortages, pod_set.item, pod_set.index, missing, shape.unmodelled)


def _shortages(demand: Iterable[tuple[str, int]], available: Sums) -> tuple[Shortage, ...]:
    """Every resource of the demand, the binding one first: what misses most of what it asks for,
    and where nothing is missing, what is asked for most of what there is."""
    found = []
    for name, n in demand:
        there = max(0, available.get(name, 0))
        missing = (n - there) * _MILLION // n if n > there else 0
        found.append((-missing, -(n * _MILLION // (there or 1)), name, n, there))
    found.sort()
    return tuple([Shortage(name, n, there) for _, _, name, n, there in found])


def _in_words(refusal: Refusal) -> Refusal:
    """With host ports called what people call them, and only where they matter."""
    if not any(is_port(one.resource) for one in refusal.shortages):
        return refusal
    told = [
        one
        for number, one in enumerate(refusal.shortages)
        if not number or one.missing or not is_port(one.resource)
    ]
    return replace(refusal, shortages=tuple(map(in_whole_ports, told)))
