"""The exact search for mixed gangs: dynamic programming over the counts of all sets but one.

The most numerous set is left out of the state. What decides is how many of *its* slots the others
cost: a state is how many pods of each other set are placed on the nodes looked at so far, its value
the fewest slots lost. Only losses that the most numerous set can bear are kept, so the gang fits as
soon as the goal is reached at all, and does not fit if it never is. Work is counted, never timed,
so that a replay reaches the same verdict (core rule R1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from math import gcd, prod
from operator import add, lt, sub
from typing import NamedTuple

from mcad.core.nodes.pod_signature import PodClass, slots
from mcad.core.nodes.pools import Draft, Row
from mcad.core.nodes.resources import Books
from mcad.core.state.records import Struct
from mcad.core.state.work_bounds import EXACT_STATES_MAX

FreeOf = Callable[[Row], Books]


class Need(NamedTuple):
    """Pods of one part that have to be placed; ``part`` is its index in the shape, and they share
    no node with pods of the parts ``apart``."""

    part: int
    pods: PodClass
    replicas: int
    apart: frozenset[int] = frozenset()


class Verdict(Struct, frozen=True):
    """What the search found: a plan, or none (``decided``), or that its budget ran out."""

    plan: Draft | None
    decided: bool
    work: int


class _Step(NamedTuple):
    """One node's share of a way to reach a state, and the steps before it."""

    before: _Step | None
    row: Row
    counts: tuple[int, ...]


class _Choice(NamedTuple):
    """Pods of the others that one node could take, and the slots of the main set they cost."""

    counts: tuple[int, ...]
    loss: int


class _Stage(NamedTuple):
    """One node: what it could take of each other set, and what has to be placed by its end because
    the nodes after it cannot take more."""

    row: Row
    caps: tuple[int, ...]
    due: tuple[int, ...]


_States = dict[tuple[int, ...], tuple[int, _Step | None]]

KnownChoices = dict[int, tuple[tuple[int, ...], list[_Choice]]]
"""What nodes could take, by rank, and what was free there then: for searches of one gang that come
one after the other, between which most nodes stay as they were."""


def exact(
    needs: Sequence[Need],
    rows: Sequence[Row],
    free_of: FreeOf,
    budget: int,
    known: KnownChoices | None = None,
) -> Verdict:
    """Whether all needs can be placed on the rows together, within ``budget`` steps."""
    main = max(needs, key=lambda need: need.replicas)
    others = [need for need in needs if need is not main]
    if prod(need.replicas + 1 for need in others) > EXACT_STATES_MAX:
        return Verdict(None, decided=False, work=0)
    search = _Search(main, others, free_of, budget, {} if known is None else known)
    try:
        plan = search.run(rows)
    except _BudgetSpentError:
        return Verdict(None, decided=False, work=search.work)
    return Verdict(plan, decided=True, work=search.work)


class _BudgetSpentError(Exception):
    """Control flow of one search: it ends where the work is counted."""


class _Search:
    def __init__(
        self, main: Need, others: list[Need], free_of: FreeOf, budget: int, known: KnownChoices
    ) -> None:
        self._main = main
        self._others = others
        self._free_of = free_of
        self._budget = budget
        self._known = known
        self._names = sorted({n for need in (main, *others) for n, _ in need.pods.request})
        self._goal = tuple(need.replicas for need in others)
        self._beside_main = [n for n, need in enumerate(others) if need.part in main.apart]
        self._apart = [
            (n, m)
            for n, need in enumerate(others)
            for m, other in enumerate(others[:n])
            if other.part in need.apart
        ]
        self.work = 0

    def run(self, rows: Sequence[Row]) -> Draft | None:
        self._spend(len(rows))
        if len(self._others) > 1 and not self._sums_suffice(rows):
            return None
        bearable = sum(self._main_slots(row, self._free_of(row)) for row in rows)
        bearable -= self._main.replicas
        stages = self._stages(rows)
        if bearable < 0 or stages is None:
            return None
        states: _States = {(0,) * len(self._others): (0, None)}
        for stage in stages:
            choices = [one for one in self._choices(stage) if one.loss <= bearable]
            self._spend(len(choices) * len(states))
            states = self._advance(states, stage, choices, bearable)
            if self._goal in states:
                return self._plan(states[self._goal][1], rows)
        return None

    def _sums_suffice(self, rows: Iterable[Row]) -> bool:
        """Whether these nodes together have what all pods need, which three sets or more would
        find out by trying most of their states. A node counts with what pods can use of it: where
        all ask for multiples of 4 GPUs, one with 7 has 4."""
        everywhere = [self._free_of(row) for row in rows]
        needs = (self._main, *self._others)
        for name in self._names:
            asked = [(dict(need.pods.request).get(name, 0), need.replicas) for need in needs]
            unit = gcd(*(n for n, _ in asked))
            usable = sum([max(0, free.get(name, 0)) // unit for free in everywhere]) * unit
            if usable < sum(n * replicas for n, replicas in asked):
                return False
        return True

    def _spend(self, steps: int) -> None:
        self.work += steps
        if self.work > self._budget:
            raise _BudgetSpentError

    def _main_slots(self, row: Row, free: Books) -> int:
        pods = self._main.pods
        return slots(free, pods.request, pods.cap) if row.rank in pods.pool.rows else 0

    def _stages(self, rows: Sequence[Row]) -> list[_Stage] | None:
        """The nodes that can take any of the others; None if they cannot take all of them."""
        found: list[_Stage] = []
        due = self._goal
        for row in reversed(rows):
            caps = self._caps(row)
            if any(caps):
                found.append(_Stage(row, caps, due))
                due = tuple([max(0, left - cap) for left, cap in zip(due, caps, strict=True)])
        return None if any(due) else found[::-1]

    def _caps(self, row: Row) -> tuple[int, ...]:
        free, rank = self._free_of(row), row.rank
        caps = [
            min(replicas, slots(free, pods.request, pods.cap)) if rank in pods.pool.rows else 0
            for _, pods, replicas, _ in self._others
        ]
        return tuple(caps)

    def _choices(self, stage: _Stage) -> list[_Choice]:
        """What the node could take of the others, nothing included, without what takes no more
        for the same loss."""
        free = self._free_of(stage.row)
        amounts = tuple([free.get(name, 0) for name in self._names])
        before, choices = self._known.get(stage.row.rank, ((), []))
        if before != amounts:
            choices = self._find_choices(stage, free)
            self._known[stage.row.rank] = amounts, choices
        return choices

    def _find_choices(self, stage: _Stage, free: Books) -> list[_Choice]:
        self._spend(prod(cap + 1 for cap in stage.caps))
        before = self._main_slots(stage.row, free)
        found: list[_Choice] = []
        for counts in product(*(range(cap, -1, -1) for cap in stage.caps)):
            left = self._less(free, counts)
            if left is None:
                continue
            loss = before - self._main_beside(counts, stage.row, left)
            self._spend(len(found))
            if not any(_covers(known, counts, loss) for known in found):
                found.append(_Choice(counts, loss))
        return found

    def _main_beside(self, counts: tuple[int, ...], row: Row, left: Books) -> int:
        """Its slots on a node with so many pods of the others."""
        if any(counts[n] for n in self._beside_main if counts):
            return 0
        return self._main_slots(row, left)

    def _less(self, free: Books, counts: tuple[int, ...]) -> Books | None:
        """What so many pods of the others leave; None if they do not go together."""
        if not any(counts):
            return free
        if any(counts[n] and counts[m] for n, m in self._apart):
            return None
        left = dict(free)
        for count, need in zip(counts, self._others, strict=True):
            if count:
                for name, n in need.pods.request:
                    left[name] = left.get(name, 0) - n * count
                    if left[name] < 0:
                        return None
        return left

    def _advance(
        self, states: _States, stage: _Stage, choices: list[_Choice], bearable: int
    ) -> _States:
        """Every state with every choice, as long as the goal can still be reached."""
        if len(self._others) == 1:
            return _undominated(self._advance_one(states, stage, choices, bearable))
        after: _States = {}
        row, due, goal = stage.row, stage.due, self._goal
        for state, (loss, step) in states.items():
            for counts, more in choices:
                total = loss + more
                if total > bearable:
                    continue
                placed = map(add, state, counts)
                reached = tuple(map(min, placed, goal))
                if any(map(lt, reached, due)):
                    continue
                known = after.get(reached)
                if known is None or total < known[0]:
                    after[reached] = (total, _Step(step, row, counts) if any(counts) else step)
        return after

    def _advance_one(
        self, states: _States, stage: _Stage, choices: list[_Choice], bearable: int
    ) -> _States:
        """The same with one other set, of which most gangs are: a third of the time."""
        after: _States = {}
        row, (due,), (goal,) = stage.row, stage.due, self._goal
        for (placed,), (loss, step) in states.items():
            for counts, more in choices:
                total, sum_placed = loss + more, placed + counts[0]
                if total > bearable or sum_placed < due:
                    continue
                reached = (sum_placed if sum_placed < goal else goal,)
                known = after.get(reached)
                if known is None or total < known[0]:
                    after[reached] = (total, _Step(step, row, counts) if counts[0] else step)
        return after

    def _plan(self, last: _Step | None, rows: Sequence[Row]) -> Draft:
        """Read the steps backwards; then the main set takes what they left."""
        plan: Draft = []
        taken: dict[int, tuple[int, ...]] = {}
        missing: tuple[int, ...] = self._goal
        step = last
        while step is not None:
            counts = taken[step.row.rank] = tuple(map(min, step.counts, missing))
            missing = tuple(map(sub, missing, counts))
            parts = zip(self._others, counts, strict=True)
            plan += [(need.part, step.row, count) for need, count in parts if count]
            step = step.before
        left = self._main.replicas
        for row in rows:
            counts = taken.get(row.rank, ())
            free = self._less(self._free_of(row), counts)
            room = min(left, self._main_beside(counts, row, free)) if free is not None else 0
            if room:
                plan.append((self._main.part, row, room))
                left -= room
        return plan


def _covers(known: _Choice, counts: tuple[int, ...], loss: int) -> bool:
    return known.loss <= loss and not any(map(lt, known.counts, counts))


def _undominated(states: _States) -> _States:
    """With one other set: no state that has placed less without having lost less."""
    kept: _States = {}
    least = -1
    for state in sorted(states, reverse=True):
        if least < 0 or states[state][0] < least:
            kept[state] = states[state]
            least = states[state][0]
    return kept
