"""The exact search for mixed gangs: dynamic programming over the counts of all sets but one.

The most numerous set, the main set, is not part of the state. A state is how many pods of each
other set are placed on the nodes visited so far; its value is the fewest slots of the main set lost
to these pods. Only losses that the main set can bear are kept, so the gang fits if and only if the
goal is reached. Work is counted, never timed, so that a replay reaches the same verdict (core rule
R1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from math import gcd, prod
from operator import add, lt, sub
from typing import NamedTuple

from mcad.core.nodes.pod_class import PodClass
from mcad.core.state.records import Struct
from mcad.core.state.work_bounds import EXACT_STATES_MAX

Free = tuple[int, ...]
"""The free amount on a node of each resource that any of the pods requests, in one order."""


class Need(NamedTuple):
    """Pods of one part that have to be placed; ``part`` is its index in the shape. The pods share
    no node with pods of the parts ``apart``."""

    part: int
    pods: PodClass
    replicas: int
    apart: frozenset[int] = frozenset()


class Place(NamedTuple):
    """A node (its row), its free amounts, and its slots for each of the needs alone."""

    at: int
    free: Free
    slots: tuple[int, ...]


class Verdict(Struct, frozen=True):
    """The result of the search: a plan, or no plan (``decided``), or that its budget ran out."""

    plan: list[tuple[int, int, int]] | None
    decided: bool
    work: int


class _Step(NamedTuple):
    """One node's share of a way to reach a state, and the steps before it."""

    before: _Step | None
    place: Place
    counts: tuple[int, ...]


class _Choice(NamedTuple):
    """Pods of the other sets that one node could take, and the cost in slots of the main set."""

    counts: tuple[int, ...]
    loss: int


class _Stage(NamedTuple):
    """One node: how many pods of each other set it could take, and how many have to be placed up to
    it because later nodes cannot take more."""

    place: Place
    caps: tuple[int, ...]
    due: tuple[int, ...]


_States = dict[tuple[int, ...], tuple[int, _Step | None]]

KnownChoices = dict[int, tuple[tuple[Free, tuple[int, ...]], list[_Choice]]]
"""The choices of nodes by row, and the free amounts then: for consecutive searches of one gang,
between which most nodes do not change."""


def is_searchable(needs: Sequence[Need]) -> bool:
    """Whether the states that a search would have to tell apart are few enough."""
    counts = [need.replicas + 1 for need in needs]
    return prod(counts) // max(counts) <= EXACT_STATES_MAX


def exact(
    needs: Sequence[Need],
    places: Sequence[Place],
    names: Sequence[str],
    budget: int,
    known: KnownChoices | None = None,
) -> Verdict:
    """Whether all needs, which are searchable, can be placed together, within ``budget`` steps.
    ``names`` are the resources of the places in their order, including all that the pods request.
    """
    search = _Search(needs, names, budget, {} if known is None else known)
    try:
        plan = search.run(places)
    except _BudgetSpentError:
        return Verdict(None, decided=False, work=search.work)
    return Verdict(plan, decided=True, work=search.work)


class _BudgetSpentError(Exception):
    """Control flow of one search: it ends where the work is counted."""


class _Search:
    def __init__(
        self, needs: Sequence[Need], names: Sequence[str], budget: int, known: KnownChoices
    ) -> None:
        self._needs = needs
        self._main_at = max(range(len(needs)), key=lambda n: needs[n].replicas)
        self._others_at = [n for n in range(len(needs)) if n != self._main_at]
        self._main = needs[self._main_at]
        self._others = [needs[n] for n in self._others_at]
        self._budget = budget
        self._known = known
        self._asks = [_asks(need, names) for need in needs]
        self._goal = tuple(need.replicas for need in self._others)
        self._beside_main = [
            n for n, need in enumerate(self._others) if need.part in self._main.apart
        ]
        self._apart = [
            (n, m)
            for n, need in enumerate(self._others)
            for m, other in enumerate(self._others[:n])
            if other.part in need.apart
        ]
        self.work = 0

    def run(self, places: Sequence[Place]) -> list[tuple[int, int, int]] | None:
        self._spend(len(places))
        if len(self._others) > 1 and not self._sums_suffice(places):
            return None
        bearable = sum([place.slots[self._main_at] for place in places]) - self._main.replicas
        stages = self._stages(places)
        if bearable < 0 or stages is None:
            return None
        states: _States = {(0,) * len(self._others): (0, None)}
        for stage in stages:
            choices = [one for one in self._choices(stage) if one.loss <= bearable]
            self._spend(len(choices) * len(states))
            states = self._advance(states, stage, choices, bearable)
            if self._goal in states:
                return self._plan(states[self._goal][1], places)
        return None

    def _sums_suffice(self, places: Sequence[Place]) -> bool:
        """Whether these nodes together have what all pods need; with three sets or more, the search
        would try most states to find that out. A node counts with its usable amount: where all pods
        request multiples of 4 GPUs, a node with 7 has 4."""
        for at in range(len(self._asks[0])):
            asked = [
                (asks[at], need.replicas)
                for asks, need in zip(self._asks, self._needs, strict=True)
            ]
            unit = gcd(*(n for n, _ in asked))
            if not unit:
                continue
            usable = sum([max(0, place.free[at]) // unit for place in places]) * unit
            if usable < sum(n * replicas for n, replicas in asked):
                return False
        return True

    def _spend(self, steps: int) -> None:
        self.work += steps
        if self.work > self._budget:
            raise _BudgetSpentError

    def _stages(self, places: Sequence[Place]) -> list[_Stage] | None:
        """The nodes that can take pods of the other sets; None if these nodes are too few."""
        found: list[_Stage] = []
        due = self._goal
        for place in reversed(places):
            caps = tuple([min(place.slots[n], self._needs[n].replicas) for n in self._others_at])
            if any(caps):
                found.append(_Stage(place, caps, due))
                due = tuple([max(0, left - cap) for left, cap in zip(due, caps, strict=True)])
        return None if any(due) else found[::-1]

    def _choices(self, stage: _Stage) -> list[_Choice]:
        """The pods of the other sets that the node could take, perhaps none, without choices that
        take no more pods for the same loss."""
        at, free, slots = stage.place
        before, choices = self._known.get(at, (None, []))
        if before != (free, slots):
            choices = self._find_choices(stage)
            self._known[at] = (free, slots), choices
        return choices

    def _find_choices(self, stage: _Stage) -> list[_Choice]:
        self._spend(prod(cap + 1 for cap in stage.caps))
        place = stage.place
        before = place.slots[self._main_at]
        found: list[_Choice] = []
        for counts in product(*(range(cap, -1, -1) for cap in stage.caps)):
            left = self._less(place.free, counts)
            if left is None:
                continue
            loss = before - self._main_beside(counts, place, left)
            self._spend(len(found))
            if not any(_covers(known, counts, loss) for known in found):
                found.append(_Choice(counts, loss))
        return found

    def _main_beside(self, counts: tuple[int, ...], place: Place, left: Free) -> int:
        """The slots of the main set on a node with this many pods of the other sets."""
        slots = place.slots[self._main_at]
        if not slots or not any(counts):
            return slots
        if any(counts[n] for n in self._beside_main):
            return 0
        asks = self._asks[self._main_at]
        return min(slots, *(there // n for there, n in zip(left, asks, strict=True) if n))

    def _less(self, free: Free, counts: tuple[int, ...]) -> Free | None:
        """The free amounts beside this many pods of other sets; None if these do not fit."""
        if not any(counts):
            return free
        if any(counts[n] and counts[m] for n, m in self._apart):
            return None
        left = list(free)
        for count, number in zip(counts, self._others_at, strict=True):
            if count:
                for at, n in enumerate(self._asks[number]):
                    left[at] -= n * count
                    if n and left[at] < 0:
                        return None
        return tuple(left)

    def _advance(
        self, states: _States, stage: _Stage, choices: list[_Choice], bearable: int
    ) -> _States:
        """Every state with every choice that can still reach the goal."""
        if len(self._others) == 1:
            return _undominated(self._advance_one(states, stage, choices, bearable))
        after: _States = {}
        place, due, goal = stage.place, stage.due, self._goal
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
                    after[reached] = (total, _Step(step, place, counts) if any(counts) else step)
        return after

    def _advance_one(
        self, states: _States, stage: _Stage, choices: list[_Choice], bearable: int
    ) -> _States:
        """``_advance`` with one other set, the case of most gangs: a third of the time."""
        after: _States = {}
        place, (due,), (goal,) = stage.place, stage.due, self._goal
        for (placed,), (loss, step) in states.items():
            for counts, more in choices:
                total, sum_placed = loss + more, placed + counts[0]
                if total > bearable or sum_placed < due:
                    continue
                reached = (sum_placed if sum_placed < goal else goal,)
                known = after.get(reached)
                if known is None or total < known[0]:
                    after[reached] = (total, _Step(step, place, counts) if counts[0] else step)
        return after

    def _plan(self, last: _Step | None, places: Sequence[Place]) -> list[tuple[int, int, int]]:
        """Read the steps backwards; then place the main set in the remaining slots."""
        plan: list[tuple[int, int, int]] = []
        taken: dict[int, tuple[int, ...]] = {}
        missing: tuple[int, ...] = self._goal
        step = last
        while step is not None:
            counts = taken[step.place.at] = tuple(map(min, step.counts, missing))
            missing = tuple(map(sub, missing, counts))
            parts = zip(self._others, counts, strict=True)
            plan += [(need.part, step.place.at, count) for need, count in parts if count]
            step = step.before
        left = self._main.replicas
        for place in places:
            counts = taken.get(place.at, ())
            free = self._less(place.free, counts) if counts else place.free
            room = min(left, self._main_beside(counts, place, free)) if free is not None else 0
            if room:
                plan.append((self._main.part, place.at, room))
                left -= room
        return plan


def _asks(need: Need, names: Iterable[str]) -> tuple[int, ...]:
    """The amounts that one of its pods requests, in the order of the names."""
    request = dict(need.pods.request)
    return tuple(request.get(name, 0) for name in names)


def _covers(known: _Choice, counts: tuple[int, ...], loss: int) -> bool:
    return known.loss <= loss and not any(map(lt, known.counts, counts))


def _undominated(states: _States) -> _States:
    """With one other set: drop each state that placed fewer pods without a smaller loss."""
    kept: _States = {}
    least = -1
    for state in sorted(states, reverse=True):
        if least < 0 or states[state][0] < least:
            kept[state] = states[state]
            least = states[state][0]
    return kept
