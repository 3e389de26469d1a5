"""Verdicts: whether a gang fits now, and if not, why, with figures (core rules R1, R4).

The checks in order: is there a node at all; does each set fit alone; do the sets fit together. A
refusal names the first cause: no node, the sum, a set, all sets together. With ``fit: aggregate``
only the sum counts, as in MCAD.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mcad.core.assumed.unplaced import UnplacedPods
from mcad.core.fit.greedy import Nodes, Packing, as_many_as_fit, pack
from mcad.core.fit.own_nodes import on_own_nodes
from mcad.core.fit.prospect import NOWHERE, Part, Prospect
from mcad.core.nodes.columns import Columns, Mask, take_slots
from mcad.core.nodes.constraints import NodeSet
from mcad.core.nodes.host_ports import in_whole_ports, is_port
from mcad.core.nodes.ledger import Ledger, Plan
from mcad.core.nodes.obstacle import obstacle
from mcad.core.nodes.pod_class import Bounds, PodClass
from mcad.core.nodes.reserved_free import Spare
from mcad.core.state.model import Constraint, Resources
from mcad.core.state.records import replace
from mcad.core.state.refusal import Refusal, Shortage
from mcad.core.state.settings import Fit, Settings
from mcad.core.state.waiting_reason import WaitingReason
from mcad.core.state.work_bounds import (
    EXACT_WORK_MAX,
    EXACT_WORK_PER_PASS_MAX,
    PART_STEPS,
    ROWS_PER_STEP,
    VERDICT_STEPS,
)

_MILLION = 1_000_000

Sums = Mapping[str, int]


class Judge:
    """Judges whether the gangs of prospects fit, and notes results in the prospects for the next
    time.

    ``steps`` counts its work so far, about a microsecond each. The judge of the cycle
    ``remembers``: it updates the ``bounds`` and the unplaced pods with its counts.
    """

    def __init__(
        self,
        settings: Settings,
        ledger: Ledger,
        unplaced_pods: UnplacedPods,
        bounds: Bounds,
        *,
        remembers: bool,
    ) -> None:
        self._bounds = bounds
        self._remembers = remembers
        self._ledger = ledger
        self._unplaced_pods = unplaced_pods
        self._on_nodes = settings.fit is Fit.NODES
        self.steps = 0
        self._budget = EXACT_WORK_PER_PASS_MAX
        self._put_off: list[Prospect] = []
        self._summed_at = -1
        self._summed: dict[NodeSet, dict[str, int]] = {}
        self._explained_at = -1
        self._explained: dict[Constraint, str] = {}

    def new_pass(self) -> list[Prospect]:
        """Renew the budget; returns the prospects for which the last budget did not suffice."""
        self._budget = EXACT_WORK_PER_PASS_MAX
        put_off, self._put_off = self._put_off, []
        for prospect in put_off:
            prospect.searched = -1
        return put_off

    # -- now -----------------------------------------------------------------------------------

    def refusal(self, prospect: Prospect) -> Refusal | None:
        """Why the gang does not fit now; None if it fits. A "fits" and its plan are kept until
        something changes."""
        if prospect.fits[0] == self._ledger.now:
            return None
        if self._remembers:
            self._bounds.catch_up()
        if not prospect.parts:
            prospect.fits = self._ledger.now, []
            return None
        refused = self._judge_on_nodes(prospect) if self._on_nodes else self._judge_sum(prospect)
        return _in_words(refused) if refused is not None and self._ledger.ports else refused

    def _judge_sum(self, prospect: Prospect) -> Refusal | None:
        self._spend(1)
        refused = self._sum_refuses(prospect)
        if refused is None:
            prospect.fits = self._ledger.now, as_many_as_fit(prospect, self._nodes())
        return refused

    def _judge_on_nodes(self, prospect: Prospect) -> Refusal | None:
        self._spend(len(prospect.parts))
        for part in prospect.parts:
            if not part.per_node and not part.pods.nodes:
                self._note(part, 0)
                found = _refusal(WaitingReason.NO_NODE, prospect, (), part, part.replicas)
                return replace(found, obstacle=self._obstacle(part.pods.key.constraint))
        short = self._short_part(prospect)
        refused: Refusal | None = None
        if short is not None:
            refused = self._sum_refuses(prospect) or self._part_refusal(prospect, *short)
        else:
            if self._unplaced_pods.by_class:
                refused = self._sum_refuses(prospect)
            if refused is None and not _is_decided_alone(prospect):
                refused = self._refused_together(prospect)
        if refused is None:
            return None
        prospect.fits = NOWHERE
        return self._too_large(prospect) or refused

    def _obstacle(self, constraint: Constraint) -> str:
        """Why no node admits pods with this constraint; cached until a node changes."""
        if self._explained_at != self._ledger.constraints.changes:
            self._explained_at, self._explained = self._ledger.constraints.changes, {}
        known = self._explained.get(constraint)
        if known is None:
            known = self._explained[constraint] = obstacle(self._ledger.facts, constraint)
        return known

    def plan(self, prospect: Prospect) -> Plan:
        """Where the gang goes, which was just found to fit. With ``fit: aggregate`` the plan may
        hold fewer pods than the gang has."""
        _, draft = prospect.fits
        if self._on_nodes:
            weights = self._ledger.allocatable
            draft, steps = on_own_nodes(prospect, draft, self._nodes(), weights)
            self.steps += steps
        return prospect.plan(draft)

    def _nodes(self) -> Nodes:
        return Nodes(self._ledger.free, self._unplaced_pods.usable)

    def _spend(self, parts: int) -> None:
        looks = parts * (self._ledger.size // ROWS_PER_STEP)
        self.steps += VERDICT_STEPS + PART_STEPS * (parts - 1) + looks

    def _note(self, part: Part, slots: int) -> None:
        if self._remembers:
            self._bounds[part.pods] = slots

    # -- sums ----------------------------------------------------------------------------------

    def _sum_refuses(self, prospect: Prospect) -> Refusal | None:
        shortages = self._by_sum(prospect)
        if not any(one.missing for one in shortages):
            return None
        return _refusal(WaitingReason.INSUFFICIENT, prospect, shortages)

    def _by_sum(self, prospect: Prospect) -> tuple[Shortage, ...]:
        """The shortages of free room on all its nodes, less requests of unplaced pods (C6)."""
        available = self._sums(prospect, prospect.demand)
        if self._remembers:
            self._unplaced_pods.note_weighed()
        for request, n in self._unplaced_pods.weighing_on(prospect.nodes):
            for name, each in request:
                if name in available:
                    available[name] -= each * n
        return _shortages(prospect.demand, available)

    def _sums(self, pods: Prospect | PodClass, demand: Resources) -> dict[str, int]:
        """The free amounts of these resources on the nodes that admit the pods; cached until
        something changes."""
        if self._summed_at != self._ledger.now:
            self._summed_at, self._summed = self._ledger.now, {}
        known = self._summed.setdefault(pods.nodes, {})
        missing = [name for name, _ in demand if name not in known]
        if missing:
            self.steps += len(missing) * self._ledger.size // ROWS_PER_STEP
            mask = pods.mask
            known.update({name: self._ledger.free.to_lend(name, mask) for name in missing})
        return {name: known[name] for name, _ in demand}

    # -- each part alone -----------------------------------------------------------------------

    def _short_part(self, prospect: Prospect) -> tuple[Part, int] | None:
        """The first part with too few slots alone, and how many of its pods have none. A DaemonSet
        is not decided by its slots: it is placed first when sets are combined."""
        usable = self._unplaced_pods.usable
        for part in prospect.parts:
            if part.per_node:
                continue
            slots = part.pods.slots(self._ledger.free)
            there = slots.total
            self._note(part, there)
            if usable is not None:
                slots = slots.among(usable)
                there = slots.total
            if there < part.declared:
                return part, part.declared - there
            if _is_decided_alone(prospect):
                taken = take_slots(slots, part.declared, most_first=False)
                prospect.fits = self._ledger.now, [(0, at, pods) for at, pods in taken.pairs()]
        return None

    def _part_refusal(self, prospect: Prospect, part: Part, missing: int) -> Refusal:
        request = part.pods.request
        needed = tuple((name, n * part.declared) for name, n in request)
        shortages = _shortages(needed, self._sums(part.pods, request))
        is_short = bool(shortages[0].missing)
        reason = WaitingReason.INSUFFICIENT if is_short else WaitingReason.FRAGMENTED
        return _refusal(reason, prospect, shortages, part, missing)

    # -- all parts together --------------------------------------------------------------------

    def latest_rise(self, prospect: Prospect) -> int:
        """The change at which room for one of its pods last rose. A node less is a pod less for a
        DaemonSet, so a fall may let it in."""
        if self._bounds.has_news and not self._remembers:
            return self._ledger.now
        latest = self._bounds.latest([part.pods for part in prospect.parts])
        return max(latest, self._ledger.moved) if prospect.shape.per_node else latest

    def _refused_together(self, prospect: Prospect) -> Refusal | None:
        latest = self.latest_rise(prospect)
        if prospect.searched == latest and prospect.found is not None:
            # Only falls since the search failed: the figures may differ.
            refused = self._sum_refuses(prospect)
            if refused is not None or prospect.found.reason is not WaitingReason.INSUFFICIENT:
                return refused or replace(prospect.found, shortages=self._by_sum(prospect))
        is_ample = self._budget >= EXACT_WORK_MAX
        outcome = self._pack(prospect, self._nodes())
        if outcome.plan is not None:
            prospect.fits = self._ledger.now, outcome.plan
            return None
        if not outcome.decided and not is_ample:
            self._put_off.append(prospect)
        refused = self._sum_refuses(prospect)
        if refused is None:
            kind = WaitingReason.FRAGMENTED if outcome.decided else WaitingReason.UNDECIDED
            part = prospect.parts[outcome.part] if outcome.part >= 0 else None
            refused = _refusal(kind, prospect, self._by_sum(prospect), part, outcome.missing)
        prospect.searched, prospect.found = latest, refused
        return refused

    def _pack(self, prospect: Prospect, nodes: Nodes) -> Packing:
        """Search within the remaining budget of the pass."""
        self._spend(len(prospect.parts))
        outcome = pack(prospect, nodes, min(self._budget, EXACT_WORK_MAX), self._ledger.allocatable)
        self._budget -= outcome.work
        self.steps += outcome.work
        return outcome

    def may_fit(self, prospect: Prospect, spare: Spare) -> bool:
        """Whether the spare nodes and the free nodes together have slots enough for each part by
        itself, and enough in sum."""
        self._spend(len(prospect.parts))
        for part in prospect.parts:
            if not part.per_node:
                there = part.pods.slots(self._ledger.free).total
                if there + spare.slots(part.pods) < part.declared:
                    return False
        if len(prospect.parts) == 1:
            return True
        sums = self._sums(prospect, prospect.demand)
        return all(sums[name] + spare.total(name) >= n for name, n in prospect.demand)

    # -- emptied -------------------------------------------------------------------------------

    def would_fit_emptied(self, prospect: Prospect) -> bool:
        """Whether the gang would fit if every AppWrapper's pods and reservations left (R6).

        Undecided counts as no: a gang that cannot be shown to fit must not hold up others.
        """
        if self.knows_emptied(prospect):
            return prospect.emptied[1]
        is_ample = self._budget >= EXACT_WORK_MAX
        self._spend(len(prospect.parts))
        fits = self._fits_emptied(prospect)
        if fits or is_ample:
            prospect.emptied = (self._ledger.now, fits)
        return fits

    def knows_emptied(self, prospect: Prospect) -> bool:
        """Whether the last answer of ``would_fit_emptied`` still holds and costs nothing."""
        at, fitted = prospect.emptied
        ledger = self._ledger
        if prospect.shape.per_node:  # a node more is a pod more, a node less is a pod less
            return at >= max(ledger.idle_falls, ledger.idle_rises)
        return at >= (ledger.idle_falls if fitted else ledger.idle_rises)

    def _fits_emptied(self, prospect: Prospect) -> bool:
        idle = self._ledger.idle
        if not self._on_nodes:
            mask = prospect.mask
            return all(idle.to_lend(name, mask) >= n for name, n in prospect.demand)
        return fit_alone(prospect, idle) and (
            _is_decided_alone(prospect) or self._pack(prospect, Nodes(idle)).plan is not None
        )

    # -- figures -------------------------------------------------------------------------------

    def _too_large(self, prospect: Prospect) -> Refusal | None:
        """The refusal of a pod larger than every node that admits it: nothing else matters."""
        for part in prospect.parts:
            pods, whole = part.pods, self._ledger.whole
            if not pods.fits_whole() and pods.nodes:
                most = {name: int(whole.column(name)[pods.mask].max()) for name, _ in pods.request}
                shortages = _shortages(pods.request, most)
                return _refusal(WaitingReason.TOO_LARGE, prospect, shortages, part, part.replicas)
        return None


def fit_alone(prospect: Prospect, columns: Columns, usable: Mask | None = None) -> bool:
    """Whether each part by itself has slots enough, by these columns."""
    for part in prospect.parts:
        if not part.per_node and part.pods.slots(columns, usable).total < part.declared:
            return False
    return True


def _is_decided_alone(prospect: Prospect) -> bool:
    return len(prospect.parts) == 1 and not prospect.shape.per_node


def _refusal(
    kind: WaitingReason,
    prospect: Prospect,
    shortages: tuple[Shortage, ...],
    part: Part | None = None,
    missing: int = 0,
) -> Refusal:
    """A refusal by one part, named after the part's first set, or by all parts together."""
    shape = prospect.shape
    if part is None:
        return Refusal(kind, shortages, missing=missing, unmodelled=shape.unmodelled)
    pod_set = shape.sets[part.positions[0]]
    return Refusal(kind, shortages, pod_set.item, pod_set.index, missing, shape.unmodelled)


def _shortages(demand: Iterable[tuple[str, int]], available: Sums) -> tuple[Shortage, ...]:
    """Every resource of the demand, the binding resource first: the largest missing share of the
    request, and where nothing is missing, the largest requested share of what is available."""
    found = []
    for name, n in demand:
        there = max(0, available.get(name, 0))
        missing = (n - there) * _MILLION // n if n > there else 0
        found.append((there >= n, -missing, -(n * _MILLION // (there or 1)), name, n, there))
    found.sort()
    return tuple([Shortage(name, n, there) for *_, name, n, there in found])


def _in_words(refusal: Refusal) -> Refusal:
    """The refusal with host ports in the words of users, and only where they matter."""
    if not any(is_port(one.resource) for one in refusal.shortages):
        return refusal
    told = [
        one
        for number, one in enumerate(refusal.shortages)
        if not number or one.missing or not is_port(one.resource)
    ]
    return replace(refusal, shortages=tuple(map(in_whole_ports, told)))
