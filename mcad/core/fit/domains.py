"""Topology: the gang has to fit with the pods of each group in one domain (ADR 49).

A domain is the set of nodes with one value of a label. In a domain a gang has another shape, whose
pods select the label, so it is judged like any other gang. A group takes the domain with the least
room at the narrowest level where it fits, so that large gangs find whole domains.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby, islice
from operator import itemgetter
from typing import Protocol

from mcad.core.fit.domain_counts import DomainCounts
from mcad.core.fit.fit import Judge
from mcad.core.fit.prospect import Prospect, Variant
from mcad.core.nodes.ledger import Ledger, Plan
from mcad.core.nodes.resources import total
from mcad.core.nodes.shape import Shape, TopologyGroup
from mcad.core.state.model import Domain, PodSet, Resources
from mcad.core.state.records import replace
from mcad.core.state.refusal import DomainLimit, Refusal
from mcad.core.state.waiting_reason import WaitingReason
from mcad.core.state.work_bounds import (
    DOMAIN_STEPS,
    DOMAINS_MAX,
    DOMAINS_WORK,
    DOMAINS_WORK_MAX,
    ROWS_PER_STEP,
    VARIANTS_MAX,
)

Choice = tuple[Domain | None, ...]
"""The domain of each group of a gang; None is any node."""

_TOGETHER: Variant = ((-1,), ())
"""The key, among the variants of a gang, of the gang with all of its pods in one domain."""

LEFT_OFF = Refusal(WaitingReason.UNDECIDED)
"""No verdict yet: the work for this pass is done; the next pass goes on (ADR 60)."""


class _LeftOffError(Exception):
    """Control flow of one verdict: the work for this pass is done."""


class Prospects(Protocol):
    """Makes and keeps prospects. Not a function, because a journal's snapshot pickles it."""

    def hold(self, shape: Shape) -> Prospect:
        """The prospect of a shape, kept as long as the gang's prospect is kept."""
        ...


class Domains:
    """Finds the domains of a gang, by the verdicts of a judge on its variants."""

    def __init__(self, ledger: Ledger, judge: Judge, prospects: Prospects) -> None:
        self._ledger = ledger
        self._judge = judge
        self._prospects = prospects
        self._counts = DomainCounts(ledger)
        self._undecided: dict[Prospect, None] = {}
        self._left = 0

    def for_questions(self, judge: Judge, prospects: Prospects) -> Domains:
        """A copy for questions; it reads the same books and changes nothing of this object."""
        return Domains(self._ledger, judge, prospects)

    def take_put_off(self, variants: Collection[Prospect]) -> list[Prospect]:
        """The gangs left undecided since the last call because one of these variants was put
        off."""
        undecided, self._undecided = self._undecided, {}
        late = set(variants)
        return [one for one in undecided if not late.isdisjoint(one.variants.values())]

    def find(self, prospect: Prospect) -> Prospect | Refusal:
        """The gang in its domains if it fits, else the reason why not, or ``LEFT_OFF``."""
        refused = self._judge.refusal(prospect)
        if refused is not None or not prospect.shape.groups:
            return refused or prospect
        options = self._all_options(prospect, emptied=False)
        needed = _needed(prospect.shape, options)
        found: Prospect | Refusal | None = None
        self._left = DOMAINS_WORK
        try:
            found = self._find_needed(prospect, options, needed)
            if isinstance(found, Prospect) and needed != options:
                found = self._first(prospect, _choices(options), emptied=False) or found
        except _LeftOffError:
            if self._goes_on(prospect):
                return LEFT_OFF
        prospect.domains_work = 0
        unmodelled = prospect.shape.unmodelled
        found = found or Refusal(WaitingReason.UNDECIDED, unmodelled=unmodelled)
        if isinstance(found, Refusal) and found.reason is WaitingReason.UNDECIDED:
            self._undecided[prospect] = None
        return found

    def _find_needed(
        self,
        prospect: Prospect,
        options: Sequence[_Options],
        needed: Sequence[Iterable[Domain | None]],
    ) -> Prospect | Refusal:
        for number, group in enumerate(prospect.shape.groups):
            if group.topology.required and options[number].is_empty:
                return self._refusal(prospect, number, group)
        choices = _choices(needed)
        found = self._first(prospect, choices, emptied=False)
        if found is not None:
            return found
        is_decided = next(choices, None) is None and not self._is_undecided(prospect)
        reason = WaitingReason.NO_DOMAIN if is_decided else WaitingReason.UNDECIDED
        return Refusal(reason, unmodelled=prospect.shape.unmodelled)

    def _is_undecided(self, prospect: Prospect) -> bool:
        """Whether a search for the gang, or for a group, in domains ended at its bound."""
        latest, variants = self._judge.latest_rise, prospect.variants.values()
        found = (one.found for one in variants if one.searched == latest(one))
        return any(one is not None and one.reason is WaitingReason.UNDECIDED for one in found)

    def fits_emptied(self, prospect: Prospect) -> bool | None:
        """Whether the gang would fit in its domains if every AppWrapper left (R6); None if the
        search goes on in the next pass, where the tried domains are known."""
        fits = self._judge.would_fit_emptied(prospect)
        if not fits or not prospect.shape.groups:
            return fits
        needed = _needed(prospect.shape, self._all_options(prospect, emptied=True))
        self._left = DOMAINS_WORK
        try:
            found = self._first(prospect, _choices(needed), emptied=True)
        except _LeftOffError:
            if self._goes_on(prospect):
                return None
            found = None
        prospect.domains_work = 0
        return found is not None

    def _goes_on(self, prospect: Prospect) -> bool:
        """Whether the verdict that was left off may take another pass."""
        prospect.domains_work += DOMAINS_WORK
        return prospect.domains_work < DOMAINS_WORK_MAX

    def variants(self, prospect: Prospect) -> tuple[list[Prospect], list[Prospect]]:
        """The gang in the domains where it would fit if every AppWrapper left, up to a bound, in
        order of preference: first in preferred domains, then in any possible ones."""
        options = self._all_options(prospect, emptied=True)
        needed = _needed(prospect.shape, options)
        self._left = DOMAINS_WORK
        preferred = [] if needed == options else self._variants(prospect, options)
        last = self._variants(prospect, needed)
        return [one for one in preferred if one not in last], last

    def _variants(
        self, prospect: Prospect, options: Sequence[Iterable[Domain | None]]
    ) -> list[Prospect]:
        choices = islice(_choices(options), VARIANTS_MAX)
        found: list[Prospect] = []
        with suppress(_LeftOffError):
            found.extend(self._variant(prospect, None, one) for one in choices)
        return found

    def together(self, prospect: Prospect, shape: Shape) -> Prospect | None:
        """The gang, which fits, in the first domain with room for all of it; None if no domain has
        room. ``shape`` is the same gang with a topology that all sets share."""
        known = prospect.variants.get(_TOGETHER)
        if known is None:
            known = prospect.variants[_TOGETHER] = self._prospects.hold(shape)
        if not known.shape.groups:
            return None  # the gang has no pods of its own
        choices = _choices(self._all_options(known, emptied=False))
        self._left = DOMAINS_WORK
        with suppress(_LeftOffError):
            return self._first(known, choices, emptied=False)
        return None

    def _first(
        self, prospect: Prospect, choices: Iterator[Choice], *, emptied: bool
    ) -> Prospect | None:
        for choice in islice(choices, VARIANTS_MAX):
            variant = self._variant(prospect, None, choice)
            if self._fits(variant, emptied=emptied):
                return variant
        return None

    def _fits(self, variant: Prospect, *, emptied: bool) -> bool:
        """Whether the variant fits in its domains. A refused variant is not tried again until
        something rises, so a verdict that was left off goes on where it ended."""
        judge = self._judge
        if emptied and judge.knows_emptied(variant):
            return judge.would_fit_emptied(variant)
        if not emptied and variant.refused_at == judge.latest_rise(variant):
            judge.steps += 1
            return False
        if self._left <= 0:
            raise _LeftOffError
        begun = judge.steps
        fits = judge.would_fit_emptied(variant) if emptied else self._fits_now(variant)
        if not fits:  # few variants fit, and these are judged anew in each pass
            self._left -= judge.steps - begun
        return fits

    def _fits_now(self, variant: Prospect) -> bool:
        refused = self._judge.refusal(variant)
        if refused is not None and refused.reason is not WaitingReason.UNDECIDED:
            variant.refused_at = self._judge.latest_rise(variant)
        return refused is None

    # -- the domains of one group --------------------------------------------------------------

    def _all_options(self, prospect: Prospect, *, emptied: bool) -> list[_Options]:
        numbers = range(len(prospect.shape.groups))
        return [_Options(self._options(prospect, n, emptied=emptied)) for n in numbers]

    def _options(
        self, prospect: Prospect, number: int, *, emptied: bool
    ) -> Iterator[Domain | None]:
        """The domains where a group fits by itself, the narrowest first, then the domain with the
        least room; last any node (None), if the topology is not required."""
        topology = prospect.shape.groups[number].topology
        for level in topology.levels:
            candidates = self._candidates(prospect, number, level, emptied=emptied)
            for domain in islice(candidates, DOMAINS_MAX):
                if self._fits(self._variant(prospect, number, (domain,)), emptied=emptied):
                    yield domain
        if not topology.required:
            yield None

    def _candidates(
        self, prospect: Prospect, number: int, level: str, *, emptied: bool
    ) -> Iterator[Domain]:
        """The domains with room enough in sum and slots enough for each part of a group, the domain
        with the least room first."""
        group = prospect.shape.groups[number]
        demand, counts = _demand(prospect, group), self._counts
        possible = set(counts.with_room(level, demand, emptied=emptied))
        for part in (prospect.parts[number] for number in group.parts):
            self._judge.steps += self._ledger.size // ROWS_PER_STEP
            slots = counts.slots(level, part.pods, emptied=emptied)
            possible.intersection_update(v for v, n in slots.items() if n >= part.replicas)
        room = counts.rooms(level, demand)
        rooms = sorted((room[value], value) for value in possible)
        wider = group.topology.levels[group.topology.levels.index(level) + 1 :]
        for value in self._nested(level, wider, demand, rooms) if wider else (v for _, v in rooms):
            yield level, value

    def _nested(
        self,
        level: str,
        wider: tuple[str, ...],
        demand: Resources,
        rooms: Iterable[tuple[int, str]],
    ) -> Iterator[str]:
        """The values in this order; of values with equal room, first the value whose wider domain
        has less room. So a block is filled before a rack of another block is opened."""
        outer = [(one, self._counts.rooms(one, demand)) for one in wider]
        for _, equal in groupby(rooms, key=itemgetter(0)):
            values = [value for _, value in equal]
            if len(values) > 1:
                around = {value: self._counts.labels_of(level, value) for value in values}
                values.sort(
                    key=lambda value: (
                        [room.get(around[value].get(one, ""), 0) for one, room in outer],
                        value,
                    )
                )
            yield from values

    def _variant(self, prospect: Prospect, number: int | None, choice: Choice) -> Prospect:
        """The gang, or one group of it alone, in these domains."""
        groups = prospect.shape.groups
        if number is None and not any(choice):
            return prospect
        if number is None and len(groups) == 1 and _is_all(prospect.shape, groups[0]):
            number = 0  # the group was already judged alone
        key = (() if number is None else (number,), choice)
        variant = prospect.variants.get(key)
        if variant is None:
            if self._left <= 0:
                raise _LeftOffError
            concerned = groups if number is None else (groups[number],)
            shape = _in_domains(prospect.shape, concerned, choice, alone=number is not None)
            variant = prospect.variants[key] = self._prospects.hold(shape)
            if variant.refused_at < 0:  # not a question, which starts from known verdicts
                self._left -= DOMAIN_STEPS
                self._judge.steps += DOMAIN_STEPS
        return variant

    # -- why not -------------------------------------------------------------------------------

    def _refusal(self, prospect: Prospect, number: int, group: TopologyGroup) -> Refusal:
        """The refusal of a group; names the domain of the widest level with the most places."""
        level = group.topology.levels[-1]
        values = sorted(self._ledger.label(level).values())
        needed = sum(prospect.shape.sets[position].replicas for position in group.positions)
        nearest, most, is_decided = "", 0, True
        candidates = {
            one
            for each in group.topology.levels
            for one in self._candidates(prospect, number, each, emptied=False)
        }
        for value in values:
            if (level, value) in candidates:
                continue
            places = self._places(prospect, group, (level, value), needed)
            if places > most:
                nearest, most = value, places
        for domain in sorted(candidates):
            known = prospect.variants.get(((number,), (domain,)))
            refused = None if known is None else self._judge.refusal(known)
            is_decided &= refused is not None and refused.reason is not WaitingReason.UNDECIDED
            places = 0 if refused is None else _places(refused, needed)
            if domain[0] == level and places > most:
                nearest, most = domain[1], places
        first = prospect.shape.sets[group.positions[0]]
        return Refusal(
            WaitingReason.NO_DOMAIN if is_decided else WaitingReason.UNDECIDED,
            item=first.item,
            index=first.index,
            unmodelled=prospect.shape.unmodelled,
            domain=DomainLimit(level, len(values), needed, nearest, most),
        )

    def _places(self, prospect: Prospect, group: TopologyGroup, domain: Domain, needed: int) -> int:
        """At most how many pods of the group have places in a domain that is too small."""
        level, value = domain
        sums = self._counts.sums(level, value)
        enough = min(sums.get(name, 0) * needed // n for name, n in _demand(prospect, group))
        for part in (prospect.parts[number] for number in group.parts):
            slots = self._counts.slots(level, part.pods, emptied=False).get(value, 0)
            if slots < part.replicas:
                enough = min(enough, needed - part.replicas + slots)
                break
        return max(0, enough)


class _Options:
    """The options of one group, found on demand and kept."""

    def __init__(self, source: Iterator[Domain | None]) -> None:
        self._source = source
        self._known: list[Domain | None] = []

    @property
    def is_empty(self) -> bool:
        """Whether the group has no option."""
        return not self._known and not self._find()

    def __iter__(self) -> Iterator[Domain | None]:
        at = 0
        while at < len(self._known) or self._find():
            yield self._known[at]
            at += 1

    def _find(self) -> bool:
        for one in self._source:
            self._known.append(one)
            return True
        return False


def _needed(shape: Shape, options: Sequence[_Options]) -> Sequence[Iterable[Domain | None]]:
    """The options of the groups that require a domain; the other groups may be on any nodes."""
    return [
        one if group.topology.required else (None,)
        for group, one in zip(shape.groups, options, strict=True)
    ]


def _choices(options: Sequence[Iterable[Domain | None]]) -> Iterator[Choice]:
    """Every choice of one option per group, in order of preference."""
    if not options:
        yield ()
        return
    for one in options[0]:
        for others in _choices(options[1:]):
            yield (one, *others)


def _demand(prospect: Prospect, group: TopologyGroup) -> Resources:
    """The sum of the group's requests."""
    parts = (prospect.parts[number] for number in group.parts)
    return total((part.pods.request, part.declared) for part in parts)


def _is_all(shape: Shape, group: TopologyGroup) -> bool:
    return len(group.positions) == len(shape.sets)


def _places(refusal: Refusal, needed: int) -> int:
    """At most how many of the pods have places, by the figures of a refusal."""
    if refusal.missing:
        return max(0, needed - refusal.missing)
    enough = (one.available * needed // one.requested for one in refusal.shortages)
    return min(enough, default=0)


# -- pod sets in domains -------------------------------------------------------------------------


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
    """The pod sets, with the sets at these positions confined to their domains."""
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
        labels = [dict(row.node.labels) for sets, row, _ in plan if sets[0] in group.positions]
        for level in group.topology.levels:
            values = {one.get(level) for one in labels}
            value = values.pop() if len(values) == 1 else None
            if value is not None:
                found.update((position, (level, value)) for position in group.positions)
                break
    return found
