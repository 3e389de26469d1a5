"""Placing a whole gang on nodes, first greedily, then exactly, without touching the books.

That each set fits alone is necessary, and for one set sufficient. Sets that share nodes have to be
placed together; sets on disjoint nodes are placed independently. Greed takes the nodes with the
fewest slots first, so that large gaps stay (best fit).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mcad.core.fit.exact import KnownChoices, Need, Place, exact, is_searchable
from mcad.core.fit.prospect import Draft, Prospect
from mcad.core.nodes.columns import Amounts, Columns, Mask, Slots, take_slots
from mcad.core.nodes.pod_class import PodClass
from mcad.core.state.model import Resources
from mcad.core.state.records import Struct, replace
from mcad.core.state.work_bounds import EXACT_WORK_MAX, PART_STEPS, ROWS_PER_STEP


class Nodes:
    """The nodes where a gang may be placed: the free amounts (``columns``), and the rows that are
    ``usable`` (None: all). ``most_first``: nodes with the most slots come first, so that a plan
    uses few nodes."""

    def __init__(
        self, columns: Columns, usable: Mask | None = None, *, most_first: bool = False
    ) -> None:
        self.columns = columns
        self.usable = usable
        self.most_first = most_first
        self.known_choices: KnownChoices | None = None  # set for consecutive searches of one gang

    def slots(self, pods: PodClass, columns: Columns) -> Slots:
        """Slots of a class on these nodes, by the free amounts."""
        return pods.slots(columns, self.usable)


class _Trial:
    """What is left on the ``nodes`` after the placements so far, and the rows where each part has
    pods."""

    def __init__(self, nodes: Nodes, columns: Columns) -> None:
        self.nodes = nodes
        self.columns = columns
        self.there: dict[int, Mask] = {}

    def fork(self, names: Sequence[str]) -> _Trial:
        """A copy for further trials."""
        fork = _Trial(self.nodes, self.columns.copy(names))
        fork.there = dict(self.there)
        return fork

    def slots(self, need: Need) -> Slots:
        """Slots on each row, beside the pods placed there."""
        found = self.nodes.slots(need.pods, self.columns)
        for part in need.apart:
            if part in self.there:
                found = found.among(~self.there[part])
        return found

    def take(self, need: Need, rows: Amounts, pods: Amounts) -> None:
        """Place these numbers of pods on these rows."""
        for name, n in need.pods.request if len(rows) else ():
            self.columns.column(name)[rows] -= n * pods
        if need.apart:
            mask = self.there.get(need.part)
            mask = np.zeros(self.columns.rows, np.bool_) if mask is None else mask.copy()
            mask[rows] = True
            self.there[need.part] = mask

    def fill(self, need: Need, *, most_first: bool = False) -> tuple[Draft, int]:
        """Place as many of the pods as fit. Returns where, and how many are left."""
        taken = take_slots(self.slots(need), need.replicas, most_first=most_first)
        self.take(need, taken.rows, taken.pods)
        return [(need.part, at, pods) for at, pods in taken.pairs()], need.replicas - taken.total


class Packing(Struct, frozen=True):
    """A plan; or none, with the part that had no place (-1: the sets together) and a lower bound of
    its missing pods; or undecided. ``work`` is the work after the first greedy placement."""

    plan: Draft | None = None
    part: int = -1
    missing: int = 0
    decided: bool = True
    work: int = 0


def pack(prospect: Prospect, nodes: Nodes, budget: int, weights: Mapping[str, int]) -> Packing:
    """Place all pods of a gang, or say why not. ``weights`` are the cluster's totals, by which
    large pods are known. ``budget`` bounds the work; 0 leaves the first greedy placement."""
    names = sorted({name for part in prospect.parts for name, _ in part.pods.request})
    trial = _Trial(nodes, nodes.columns.copy(names))
    plan: Draft = []
    needs: list[Need] = []
    for number, part in enumerate(prospect.parts):
        if not part.per_node:
            needs.append(Need(number, part.pods, part.replicas, part.apart))
            continue
        everywhere = _one_per_node(Need(number, part.pods, 0, part.apart), trial)
        if everywhere.plan is None:
            return everywhere
        plan += everywhere.plan
    needs.sort(key=lambda need: -size(need.pods.request, weights))
    work = 0
    for group in _sharing_nodes(needs):
        outcome = _together(group, trial, names, budget - work)
        work += outcome.work
        if outcome.plan is None:
            return replace(outcome, work=work)
        plan += outcome.plan
    return Packing(plan, work=work)


def greedy_work(parts: int, rows: int) -> int:
    """The work of placing so many parts on so many rows by greed."""
    return parts * (PART_STEPS + rows // ROWS_PER_STEP)


def part_that_fits(prospect: Prospect, nodes: Nodes, weights: Mapping[str, int]) -> Draft:
    """Where pods of a gang go that does not fit as a whole, large pods first; exact for one set."""
    names = sorted({name for part in prospect.parts for name, _ in part.pods.request})
    trial = _Trial(nodes, nodes.columns.copy(names))
    order = sorted(
        enumerate(prospect.parts),
        key=lambda one: (not one[1].per_node, -size(one[1].pods.request, weights)),
    )
    plan: Draft = []
    for number, part in order:
        need = Need(number, part.pods, part.replicas, part.apart)
        if part.per_node:
            found = trial.slots(need)
            trial.take(need, found.rows, found.pods)
            plan += [(number, at, 1) for at in found.rows.tolist()]
        else:
            plan += trial.fill(need, most_first=nodes.most_first)[0]
    return plan


def as_many_as_fit(prospect: Prospect, nodes: Nodes) -> Draft:
    """Where pods of a gang go, part after part, if not all pods need a place."""
    names = sorted({name for part in prospect.parts for name, _ in part.pods.request})
    trial = _Trial(nodes, nodes.columns.copy(names))
    plan: Draft = []
    for number, part in enumerate(prospect.parts):
        need = Need(number, part.pods, part.replicas, part.apart)
        plan += trial.fill(need, most_first=nodes.most_first)[0]
    return plan


def _one_per_node(need: Need, trial: _Trial) -> Packing:
    """Place a DaemonSet's pods: one on every admitted node, or none."""
    found = trial.slots(need)
    missing = need.pods.count - len(found.rows)
    if missing:
        return Packing(None, need.part, missing)
    trial.take(need, found.rows, found.pods)
    return Packing([(need.part, at, 1) for at in found.rows.tolist()])


def size(request: Resources, weights: Mapping[str, int]) -> int:
    """The largest share that one pod takes of any resource of the cluster, in millionths."""
    return max(n * 1_000_000 // max(1, weights.get(name, 0)) for name, n in request)


def _sharing_nodes(needs: Sequence[Need]) -> list[list[Need]]:
    """Groups of needs whose nodes overlap, directly or through other needs of the group."""
    if len({need.pods.constraint for need in needs}) <= 1:
        return [list(needs)] if needs else []
    groups: list[tuple[int, list[Need]]] = []
    for need in needs:
        nodes, together = need.pods.nodes, [need]
        near = [one for one in groups if one[0] & nodes]
        groups = [one for one in groups if one not in near]
        for theirs, others in near:
            nodes, together = nodes | theirs, [*others, *together]
        groups.append((nodes, together))
    return [[need for need in needs if need in group] for _, group in groups]


def _together(group: list[Need], trial: _Trial, names: Sequence[str], budget: int) -> Packing:
    """Place a group. No other group has pods on its nodes."""
    tries = (True, False) if trial.nodes.most_first else (False,)
    for number, most_first in enumerate(tries):
        work = number * greedy_work(len(group), trial.columns.rows)
        fork = trial.fork(names) if len(group) > 1 else trial
        outcome = _greedy(group, fork, most_first=most_first)
        if outcome.plan is not None or len(group) == 1:
            return replace(outcome, work=work)  # for identical pods greed is exact
    if budget <= work or not is_searchable(group):
        return Packing(decided=False, work=work)
    places = _places(group, trial, names)
    work += len(places) // ROWS_PER_STEP
    most = min(budget - work, EXACT_WORK_MAX)
    verdict = exact(group, places, names, most, trial.nodes.known_choices)
    return Packing(verdict.plan, -1, 1, verdict.decided, work + verdict.work)


def _places(group: Sequence[Need], trial: _Trial, names: Sequence[str]) -> list[Place]:
    """The rows with a slot for any of these pods, in row order, and their free amounts."""
    slots = np.zeros((len(group), trial.columns.rows), np.int64)
    for of_need, need in zip(slots, group, strict=True):
        found = trial.slots(need)
        of_need[found.rows] = found.pods
    rows = np.flatnonzero(slots.any(axis=0))
    free = zip(*(trial.columns.column(name)[rows].tolist() for name in names), strict=True)
    here = zip(*slots[:, rows].tolist(), strict=True)
    return [Place(at, *one) for at, *one in zip(rows.tolist(), free, here, strict=True)]


def _greedy(group: list[Need], trial: _Trial, *, most_first: bool) -> Packing:
    """Place set after set; the last set is usually the most numerous."""
    plan: Draft = []
    for need in group:
        placed, left = trial.fill(need, most_first=most_first)
        if left:
            return Packing(None, need.part, left)
        plan += placed
    return Packing(plan)
