"""Placing a whole gang on nodes, first greedily, then exactly, without touching the books.

Each set alone being able to fit is necessary, and for one set sufficient. Sets that share nodes
have to be placed together; sets whose pools share no node are placed independently.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from mcad.core.fit.exact import FreeOf, KnownChoices, Need, exact
from mcad.core.fit.feasible import Prospect, looks_max
from mcad.core.nodes.pod_signature import PodClass, slots
from mcad.core.nodes.pools import Draft, Row, meet
from mcad.core.nodes.resources import Books
from mcad.core.state.model import Resources
from mcad.core.state.records import Struct, replace
from mcad.core.state.work_bounds import (
    CANDIDATES_MAX,
    CANDIDATES_OF_MANY,
    EXACT_WORK_MAX,
    FEW_PARTS,
)


class Nodes:
    """The nodes that a gang may be placed on: all but the ``barred``, as they are now, or
    (``emptied``) as they would be if every AppWrapper left."""

    def __init__(self, barred: Collection[int] = (), *, emptied: bool = False) -> None:
        self._barred = barred
        self._emptied = emptied
        self.known_choices: KnownChoices | None = None  # where searches for one gang follow

    def free(self, row: Row) -> Books:
        """What is free on the node before anything is placed."""
        return row.idle if self._emptied else row.free

    def barred(self, row: Row) -> bool:
        """Whether the node is set aside for another."""
        return row.rank in self._barred

    def places(self, pods: PodClass) -> Iterator[Row]:
        """Every node that may have room for the class, the likeliest first, and each once: a cap
        per node would not survive a second visit."""
        rows = iter(pods.pool.rows.values()) if self._emptied else pods.places()
        visited: set[int] = set()
        for row in rows:
            if row.rank not in visited and row.rank not in self._barred:
                visited.add(row.rank)
                yield row

    def groups(self, needs: Sequence[Need]) -> list[list[Need]]:
        """The needs of a gang by groups that share no node with one another."""
        return _sharing_nodes(needs)


class Overlay:
    """The books of the ``nodes`` as they would be after what was placed so far; those that are
    ``changed`` by rank, and which parts have pods ``there``."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.changed: dict[int, Books] = {}
        self.there: dict[int, frozenset[int]] = {}

    def fork(self) -> Overlay:
        """A copy to try something on."""
        fork = Overlay(self.nodes)
        fork.changed, fork.there = dict(self.changed), dict(self.there)
        return fork

    def free(self, row: Row) -> Books:
        """What is left on the node."""
        changed = self.changed.get(row.rank)
        return self.nodes.free(row) if changed is None else changed

    def take(self, row: Row, need: Need, times: int) -> None:
        """Place so many pods on the node."""
        left = dict(self.free(row))
        for name, n in need.pods.request:
            left[name] = left.get(name, 0) - n * times
        self.changed[row.rank] = left  # never changed in place: forks share it
        if need.apart:
            self.there[row.rank] = self.there.get(row.rank, frozenset()) | {need.part}

    def apply(self, plan: Draft, needs: Sequence[Need]) -> None:
        """Place everything that the plan says."""
        by_part = {need.part: need for need in needs}
        for part, row, times in plan:
            self.take(row, by_part[part], times)


class Packing(Struct, frozen=True):
    """A plan; or none, with the part that had no place (-1: the sets together) and how many of its
    pods at least; or undecided. ``looked`` counts the nodes that the first greedy placement looked
    at, ``work`` what was done beyond it."""

    plan: Draft | None = None
    part: int = -1
    missing: int = 0
    decided: bool = True
    looked: int = 0
    work: int = 0


def pack(prospect: Prospect, nodes: Nodes, budget: int, weights: Mapping[str, int]) -> Packing:
    """Place all pods of a gang, or say why not. ``weights`` are the cluster's totals: they tell
    which pods are large. ``budget`` bounds the work; 0 leaves the first greedy placement."""
    overlay = Overlay(nodes)
    plan: Draft = []
    needs: list[Need] = []
    for part, demand in enumerate(prospect.parts):
        if not demand.per_node:
            needs.append(Need(part, demand.pods, demand.replicas, demand.apart))
            continue
        everywhere = _one_per_node(Need(part, demand.pods, 0), nodes, overlay)
        if everywhere.plan is None:
            return everywhere
        plan += everywhere.plan
    needs.sort(key=lambda need: -size(need.pods.request, weights))
    looked = work = 0
    groups = nodes.groups(needs)
    for number, group in enumerate(groups, 1):
        outcome = _together(group, nodes, overlay, budget - work)
        looked, work = looked + outcome.looked, work + outcome.work
        if outcome.plan is None:
            return replace(outcome, looked=looked, work=work)
        plan += outcome.plan
        if number < len(groups):
            overlay.apply(outcome.plan, group)
    return Packing(plan, looked=looked, work=work)


def as_many_as_fit(prospect: Prospect, nodes: Nodes) -> Draft:
    """Where pods of a gang go, part after part, if not all have to have a place."""
    overlay = Overlay(nodes)
    plan: Draft = []
    for number, part in enumerate(prospect.parts):
        need = Need(number, part.pods, part.replicas, part.apart)
        plan += _fill(need, nodes.places(part.pods), overlay)[0]
    return plan


def _fill(
    need: Need, rows: Iterable[Row], overlay: Overlay, *, is_last: bool = False
) -> tuple[Draft, int, int]:
    """Place as many of the pods as fit on the rows in their order. Returns where, how many are
    left, and how many rows were looked at. What the last ones take matters to none."""
    plan: Draft = []
    (part, pods, left, apart), looked = need, 0
    changed, there, free_at_first = overlay.changed, overlay.there, overlay.nodes.free
    for row in rows:  # of tens of thousands, so what is free there is spelled out
        looked += 1
        if apart and not apart.isdisjoint(there.get(row.rank, ())):
            continue
        free = changed[row.rank] if row.rank in changed else free_at_first(row)
        fit = slots(free, pods.request, pods.cap)
        if fit:
            fit = min(left, fit)
            if not is_last:
                overlay.take(row, need, fit)
            plan.append((part, row, fit))
            left -= fit
            if not left:
                break
    return plan, left, looked


def _one_per_node(need: Need, nodes: Nodes, overlay: Overlay) -> Packing:
    """A DaemonSet's pods have no choice: one on every admitted node."""
    part, pods = need.part, need.pods
    plan: Draft = []
    missing = 0
    for row in pods.pool.rows.values():
        if nodes.barred(row) or not slots(overlay.free(row), pods.request, pods.cap):
            missing += 1
        else:
            plan.append((part, row, 1))
    if missing:
        return Packing(None, part, missing)
    for _, row, times in plan:
        overlay.take(row, need, times)
    return Packing(plan)


def size(request: Resources, weights: Mapping[str, int]) -> int:
    """The largest share that one pod takes of any resource of the cluster, in millionths."""
    return max(n * 1_000_000 // max(1, weights.get(name, 0)) for name, n in request)


def _candidates_max(parts: int) -> int:
    """The nodes that are sorted for a gang of so many parts."""
    return CANDIDATES_MAX if parts <= FEW_PARTS else CANDIDATES_OF_MANY


def _sharing_nodes(needs: Sequence[Need]) -> list[list[Need]]:
    """Groups whose pools, directly or through others of the group, share nodes."""
    if len({need.pods.pool for need in needs}) == 1:
        return [list(needs)]  # as nearly always; of dozens of parts each would be compared with all
    groups: list[list[Need]] = []
    for need in needs:
        pool = need.pods.pool
        near = [g for g in groups if any(meet(pool, other.pods.pool) for other in g)]
        groups = [g for g in groups if g not in near]
        groups.append([*(other for g in near for other in g), need])
    return [[need for need in needs if need in group] for group in groups]


def _together(group: list[Need], nodes: Nodes, overlay: Overlay, budget: int) -> Packing:
    first = _greedy(group, {need.part: nodes.places(need.pods) for need in group}, overlay)
    if first.plan is not None or len(group) == 1:
        return first  # for identical pods greed is exact
    if budget <= 0:
        return Packing(decided=False, looked=first.looked)
    most = min(budget, _candidates_max(len(group))) // len(group)
    candidates = {need.part: list(islice(nodes.places(need.pods), most)) for need in group}
    by_slots = {
        need.part: _fewest_slots_first(need, candidates[need.part], overlay.free) for need in group
    }
    second = _greedy(group, by_slots, overlay)
    work = sum(map(len, candidates.values())) + second.looked
    if second.plan is not None:
        return replace(second, looked=first.looked, work=work)
    if any(len(rows) >= most for rows in candidates.values()):
        return Packing(decided=False, looked=first.looked, work=work)
    rows = {row.rank: row for need in group for row in candidates[need.part]}
    in_order = [rows[rank] for rank in sorted(rows)]
    verdict = exact(group, in_order, overlay.free, min(budget, EXACT_WORK_MAX), nodes.known_choices)
    return Packing(verdict.plan, -1, 1, verdict.decided, first.looked, work + verdict.work)


def _greedy(group: list[Need], places: Mapping[int, Iterable[Row]], overlay: Overlay) -> Packing:
    """Set after set, the last of which is usually the most numerous one."""
    trial = overlay.fork()
    plan: Draft = []
    looked = 0
    for need in group:
        rows = places[need.part]
        if len(group) > 1:
            rows = islice(rows, looks_max(len(group)) - looked)
        placed, left, more = _fill(need, rows, trial, is_last=need is group[-1])
        looked += more
        if left:
            return Packing(None, need.part, left, looked=looked)
        plan += placed
    return Packing(plan, looked=looked)


def _fewest_slots_first(need: Need, rows: list[Row], free: FreeOf) -> list[Row]:
    pods = need.pods
    return sorted(rows, key=lambda row: (slots(free(row), pods.request, pods.cap), row.rank))
