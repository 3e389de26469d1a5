"""Topology: the gang has to fit with the pods of each group in one domain (ADR 49).

A domain is the nodes with one value of a label. In a domain a gang has another shape, whose pods
select the label, so it is judged like any other. A group takes a domain of its narrowest level that
has one; of those the one with the least room, so that large gangs find whole domains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice, product
from typing import Protocol

from mcad.core.fit.feasible import Prospect
from mcad.core.fit.fit import Judge
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.pools import Plan, rough_total
from mcad.core.nodes.shape import Shape, TopologyGroup
from mcad.core.state.model import Domain, PodSet
from mcad.core.state.records import replace
from mcad.core.state.refusal import DomainLimit, Refusal
from mcad.core.state.waiting_reason import WaitingReason
from mcad.core.state.work_bounds import DOMAINS_MAX, VARIANTS_MAX

_MILLION = 1_000_000

Test = Callable[[Prospect], bool]


class Prospects(Protocol):
    """Makes and keeps prospects. No function, because a journal's snapshot pickles it."""

    def hold(self, shape: Shape) -> Prospect:
        """The prospect of a shape, kept for as long as that of the gang is."""
        ...


class Domains:
    """Finds the domains of a gang, with the verdicts of a judge on these prospects."""

    def __init__(self, ledger: Ledger, judge: Judge, prospects: Prospects) -> None:
        self._ledger = ledger
        self._judge = judge
        self._prospects = prospects

    def find(self, prospect: Prospect) -> Prospect | Refusal:
        """The gang in its domains if it fits there, else why not."""
        refused = self._judge.refusal(prospect)
        if refused is not None or not prospect.shape.groups:
            return refused or prospect
        options: list[list[Domain | None]] = []
        for number, group in enumerate(prospect.shape.groups):
            options.append(list(self._options(prospect, number, self._fits)))
            if not options[-1]:
                return self._refusal(prospect, number, group)
        found = self._first(prospect, options, self._fits)
        if found is not None:
            return found
        is_decided = _count(options) <= VARIANTS_MAX
        return Refusal(WaitingReason.NO_DOMAIN if is_decided else WaitingReason.UNDECIDED)

    def fits_emptied(self, prospect: Prospect) -> bool:
        """Whether it would fit in its domains if every AppWrapper left (R6)."""
        test = self._judge.would_fit_emptied
        if not test(prospect) or not prospect.shape.groups:
            return test(prospect)
        numbers = range(len(prospect.shape.groups))
        options = [list(self._options(prospect, number, test)) for number in numbers]
        return self._first(prospect, options, test) is not None

    def variants(self, prospect: Prospect) -> list[Prospect]:
        """The gang in all domains in which it would fit if every AppWrapper left, up to a bound,
        in the order of preference; the gang itself if it has no topology."""
        numbers = range(len(prospect.shape.groups))
        test = self._judge.would_fit_emptied
        options = [list(self._options(prospect, number, test)) for number in numbers]
        choices = islice(product(*options), VARIANTS_MAX)
        return [self._variant(prospect, None, choice) for choice in choices]

    def _fits(self, prospect: Prospect) -> bool:
        return self._judge.refusal(prospect) is None

    def _first(
        self, prospect: Prospect, options: list[list[Domain | None]], test: Test
    ) -> Prospect | None:
        for choice in islice(product(*options), VARIANTS_MAX):
            variant = self._variant(prospect, None, choice)
            if test(variant):
                return variant
        return None

    def _options(self, prospect: Prospect, number: int, test: Test) -> Iterator[Domain | None]:
        """The domains in which a group fits by itself, the narrowest first, then those with the
        least room; any node at last, if that will do."""
        topology = prospect.shape.groups[number].topology
        for level in topology.levels:
            found: list[tuple[int, str]] = []
            for domain in self._domains(level):
                variant = self._variant(prospect, number, (domain,))
                if test(variant):
                    found.append((_room(variant), domain[1]))
            yield from ((level, value) for _, value in sorted(found))
        if not topology.required:
            yield None

    def _domains(self, level: str) -> list[Domain]:
        return [(level, value) for value in self._ledger.values_of(level)[:DOMAINS_MAX]]

    def _variant(
        self, prospect: Prospect, number: int | None, choice: tuple[Domain | None, ...]
    ) -> Prospect:
        """The gang, or one group of it alone, in these domains."""
        groups = prospect.shape.groups
        if number is None and not any(choice):
            return prospect
        if number is None and len(groups) == 1 and _is_all(prospect.shape, groups[0]):
            number = 0  # it was judged alone already
        key = (() if number is None else (number,), choice)
        variant = prospect.variants.get(key)
        if variant is None:
            concerned = groups if number is None else (groups[number],)
            shape = _in_domains(prospect.shape, concerned, choice, alone=number is not None)
            variant = prospect.variants[key] = self._prospects.hold(shape)
        return variant

    def _refusal(self, prospect: Prospect, number: int, group: TopologyGroup) -> Refusal:
        """The group fits in no domain; the nearest of the widest level has the most places."""
        level = group.topology.levels[-1]
        domains = self._domains(level)
        needed = sum(prospect.shape.sets[position].replicas for position in group.positions)
        nearest, most = "", 0
        for domain in domains:
            refused = self._judge.refusal(self._variant(prospect, number, (domain,)))
            places = needed if refused is None else _places(refused, needed)
            if places > most:
                nearest, most = domain[1], places
        first = prospect.shape.sets[group.positions[0]]
        is_decided = len(self._ledger.values_of(level)) <= DOMAINS_MAX
        return Refusal(
            WaitingReason.NO_DOMAIN if is_decided else WaitingReason.UNDECIDED,
            item=first.item,
            index=first.index,
            domain=DomainLimit(level, len(domains), needed, nearest, most),
        )


def _is_all(shape: Shape, group: TopologyGroup) -> bool:
    return len(group.parts) == len(shape.alike)


def _count(options: list[list[Domain | None]]) -> int:
    count = 1
    for one in options:
        count *= len(one)
    return count


def _room(prospect: Prospect) -> int:
    """How often what it demands is free in its domain, in millionths: of the scarcest resource."""
    there = rough_total(prospect.pools)
    return min(there.get(name, 0) * _MILLION // n for name, n in prospect.demand)


def _places(refusal: Refusal, needed: int) -> int:
    """At most how many of the pods have places, by the figures of a refusal."""
    if refusal.missing:
        return max(0, needed - refusal.missing)
    enough = (one.available * needed // one.requested for one in refusal.shortages)
    return min(enough, default=0)


# -- pod sets in domains ---------------------------------------------------------------------------


def _in_domains(
    shape: Shape,
    groups: tuple[TopologyGroup, ...],
    choice: tuple[Domain | None, ...],
    *,
    alone: bool,
) -> Shape:
    at = {
        position: domain
        for group, domain in zip(groups, choice, strict=True)
        for position in group.positions
        if domain is not None
    }
    sets = confined(shape.sets, at)
    return Shape.of(tuple(sets[n] for n in groups[0].positions) if alone else sets)


def confined(sets: tuple[PodSet, ...], domains: Mapping[int, Domain]) -> tuple[PodSet, ...]:
    """The pod sets, with those at these positions in their domains."""
    return tuple(
        _confined(one, domains[position]) if position in domains else one
        for position, one in enumerate(sets)
    )


def _confined(one: PodSet, domain: Domain) -> PodSet:
    selector = tuple(sorted({*one.constraint.selector, domain}))
    return replace(one, constraint=replace(one.constraint, selector=selector), domain=domain)


def domains_of(shape: Shape, plan: Plan) -> dict[int, Domain]:
    """By position of a set, the narrowest domain that has all pods of its group in the plan."""
    found: dict[int, Domain] = {}
    for group in shape.groups:
        labels = [dict(row.node.labels) for part, row, _ in plan if part in group.parts]
        for level in group.topology.levels:
            values = {one.get(level) for one in labels}
            value = values.pop() if len(values) == 1 else None
            if value is not None:
                found.update((position, (level, value)) for position in group.positions)
                break
    return found
