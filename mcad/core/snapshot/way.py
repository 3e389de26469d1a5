"""Whether a gang has room on nodes from which AppWrappers are removed, and where."""

from __future__ import annotations

from typing import NamedTuple

from mcad.core.fit.greedy import Nodes, as_many_as_fit, greedy_work, pack, part_that_fits
from mcad.core.fit.prospect import Draft, Prospect
from mcad.core.nodes.columns import UNBOUNDED, Columns, Mask
from mcad.core.nodes.ledger import Ledger, Plan
from mcad.core.nodes.resources import Books, book
from mcad.core.state.model import Resources
from mcad.core.state.work_bounds import WHAT_IF_SEARCH_MAX, WHAT_IF_WORK_MAX


class _Wanted(NamedTuple):
    """This many ``pods`` with this request need slots, at most ``cap`` on a row. ``admits`` tells
    by row whether the pods may go there, and ``slots`` how many find room."""

    pods: int
    request: Resources
    cap: int
    admits: list[bool]
    slots: dict[int, int]


class Way:
    """One way to place a gang. Most gangs have one way; with topology there is one way for each
    choice of domains.

    The slots of each part are counted again on each node that changes: enough slots are necessary,
    and for one part sufficient. Where only sums count, a slot is one unit of a resource.
    ``concerned`` are the rows where pods of the gang could be. ``hopeless``: the gang would not fit
    even on empty nodes. ``steps`` counts the work of searches.
    """

    def __init__(
        self,
        prospect: Prospect,
        columns: Columns,
        usable: Mask,
        ledger: Ledger,
        *,
        most_first: bool = True,
    ) -> None:
        self._prospect = prospect
        self._columns = columns
        self._ledger = ledger
        self._nodes = Nodes(columns, usable, most_first=most_first)
        self._nodes.known_choices = {}
        self._searched = 0
        self._draft: Draft | None = None
        self._taken: dict[int, list[tuple[int, int]]] = {}  # (part, pods) of the plan, by row
        self._unsure: set[int] = set()  # rows of the plan that changed since the last check
        self._in_vain = False  # whether a search since the last change found no plan
        self.steps = 0
        self.hopeless = False
        self.concerned = usable
        self._wanted: list[_Wanted] = []
        self._missing: list[int] = []
        if prospect.on_nodes:
            self._look_at_idle(usable)
            for part in prospect.parts:
                self._want(part.replicas, part.pods.request, part.pods.cap, part.pods.mask & usable)
        else:
            for name, n in prospect.demand:
                self._want(n, ((name, 1),), UNBOUNDED, usable)
        self.parts = len(prospect.parts)
        self.is_exact = not prospect.on_nodes or self.parts <= 1

    def _look_at_idle(self, usable: Mask) -> None:
        self.concerned = self._ledger.nothing()
        for part in self._prospect.parts:
            idle = part.pods.slots(self._ledger.idle, usable)
            self.concerned[idle.rows] = True
            self.hopeless |= not part.per_node and idle.total < part.declared

    def _want(self, pods: int, request: Resources, cap: int, mask: Mask) -> None:
        slots = dict(self._columns.slots(request, cap, mask).pairs())
        self._wanted.append(_Wanted(pods, request, cap, mask.tolist(), slots))
        self._missing.append(pods - sum(slots.values()))

    # -- counts --------------------------------------------------------------------------------

    def count(self, at: int) -> None:
        """Count the slots of a row again: its free amounts changed."""
        self._in_vain = False
        if at in self._taken:
            self._unsure.add(at)
        free = {name: max(0, n) for name, n in self._columns.row(at).items()}
        for number, (_, request, cap, admits, slots) in enumerate(self._wanted):
            if admits[at]:
                now = cap  # ``slots_at`` spelled out: a gang of 64 sets asks for each of them
                for name, n in request:
                    if (fit := free[name] // n) < now:
                        now = fit
                self._missing[number] += slots.get(at, 0) - now
                slots[at] = now

    def admitted(self, at: int) -> tuple[bool, ...]:
        """By part, whether its pods may go to the row."""
        return tuple([one.admits[at] for one in self._wanted])

    def give(self, amounts: Resources, times: int) -> None:
        """Count amounts that are given back without a node, where only sums count."""
        given = dict(amounts)
        for number, one in enumerate(self._wanted):
            self._missing[number] -= times * given.get(one.request[0][0], 0)

    @property
    def is_enough(self) -> bool:
        """Whether each part by itself has slots enough."""
        return max(self._missing, default=0) <= 0

    # -- plans ---------------------------------------------------------------------------------

    def fits(self) -> bool:
        """Whether the whole gang would fit. Undecided counts as no."""
        if self.is_exact or not self.is_enough:
            return self.is_enough
        return self._stands() or self._mend() or self._search() is not None

    def plan(self) -> Plan | None:
        """Where the whole gang would go. Where only sums count the plan may hold fewer pods than it
        has."""
        if not self.is_enough:
            return None
        if not self._prospect.on_nodes:
            return self._prospect.plan(as_many_as_fit(self._prospect, self._nodes))
        draft = self._draft if self._stands() else self._search()
        return None if draft is None else self._prospect.plan(sorted(draft, key=lambda one: one[0]))

    def partial(self) -> Plan:
        """Where pods of the gang would go if not all of them need a place."""
        self.steps += greedy_work(self.parts, self._ledger.size)
        weights = self._ledger.allocatable
        return self._prospect.plan(part_that_fits(self._prospect, self._nodes, weights))

    @property
    def is_spent(self) -> bool:
        """Whether no plan will be found any more, because the searches have reached their work
        bound."""
        return self._draft is None and self._searched >= WHAT_IF_WORK_MAX

    def _stands(self) -> bool:
        """Whether the last plan still has room: most restored AppWrappers touch none of its
        nodes."""
        self._unsure = {at for at in self._unsure if self._lacks(at)}
        return self._draft is not None and not self._unsure

    def _lacks(self, at: int) -> bool:
        taken: Books = {}
        for part, pods in self._taken[at]:
            book(taken, self._prospect.parts[part].pods.request, pods)
        return any(self._columns.get(at, name) < n for name, n in taken.items())

    def _mend(self) -> bool:
        """Move the pods of the last plan that lost their room to rows that the plan does not use: a
        tenth of the work of a search."""
        kept = [one for one in self._draft or () if one[1] not in self._unsure]
        used, moved = set(self._taken), Draft()
        for part, at, pods in self._draft or ():
            if at not in self._unsure:
                continue
            for other, slots in self._wanted[part].slots.items():
                if slots and other not in used:
                    moved.append((part, other, min(slots, pods)))
                    used.add(other)
                    pods -= slots
                    if pods <= 0:
                        break
            else:
                return False
        if moved:
            self._keep([*kept, *moved])
        return bool(moved)

    def _keep(self, draft: Draft) -> None:
        self._draft, self._taken, self._unsure = draft, {}, set()
        for part, at, pods in draft:
            self._taken.setdefault(at, []).append((part, pods))

    def _search(self) -> Draft | None:
        budget = min(WHAT_IF_SEARCH_MAX, WHAT_IF_WORK_MAX - self._searched)
        if self._in_vain or budget <= 0:
            return None
        outcome = pack(self._prospect, self._nodes, budget, self._ledger.allocatable)
        work = outcome.work + greedy_work(self.parts, self._ledger.size)
        self.steps += work
        if self.is_exact:
            return outcome.plan
        self._searched += work
        self._in_vain = outcome.plan is None
        if outcome.plan is not None:
            self._keep(outcome.plan)
        return outcome.plan
