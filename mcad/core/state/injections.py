"""What admission adds to pods: learned from pods that ask for more than their template (ADR 61).

A mutating webhook or policy may add a container or raise requests; no manifest shows it. The demand
of the next attempt includes the addition, as does the demand of AppWrappers of the same namespace
with a template at the same place of the same kind, while an AppWrapper that has shown it is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mcad.core.state.model import (
    AddedRequests,
    DispatchRecord,
    Pod,
    PodSet,
    Resources,
    Workload,
)
from mcad.core.state.quantity import format_amount
from mcad.core.state.records import replace


class _Set(NamedTuple):
    """A pod set of an AppWrapper."""

    uid: str
    item: int
    number: int


class _Template(NamedTuple):
    """The place of a template."""

    namespace: str
    group: str
    resource: str
    path: str


class _Shown(NamedTuple):
    """The largest request of the pods of the latest attempt of a set, and its excess over the
    template of that payload."""

    attempt: int
    payload: str
    asked: Resources
    added: Resources


class Injections:
    """By template the sets that have shown additions, the latest last: it counts for sets that have
    shown nothing themselves. ``stale`` are templates whose latest set has changed."""

    def __init__(self) -> None:
        self.shown: dict[_Template, dict[_Set, _Shown]] = {}
        self.stale: dict[_Template, None] = {}
        self._templates: dict[str, dict[_Set, _Template]] = {}  # by uid

    def completed(self, work: Workload) -> Workload:
        """The AppWrapper with the additions to its pods, whatever it had before."""
        if not self.shown and not any(one.added for one in work.sets):
            return work
        return replace(work, sets=tuple(self._completed(work, one) for one in work.sets))

    def concern(self, work: Workload) -> bool:
        """Whether the additions to its pods have changed."""
        return any(_template(work, one) in self.stale for one in work.sets)

    def pod_seen(self, work: Workload, pod: Pod) -> None:
        """Learn from a pod of the present attempt, as it was created. Sets that are declared by
        numbers alone have no template, and ask for these numbers."""
        one = next((s for s in work.sets if (s.item, s.index) == (pod.item, pod.index)), None)
        if one is None or not one.path:
            return
        more = _more(pod.request, _declared(one))
        key = _Set(work.uid, one.item, one.index)
        known = self._templates.get(work.uid, {}).get(key)
        if not more and not one.added and known is None:  # the case of nearly all pods
            return
        template = _template(work, one)
        last = self._last(template)
        old = self.shown.get(template, {}).get(key)
        asked = pod.request
        if old is not None and old.attempt == pod.attempt:
            asked = _larger(old.asked, asked)
            more = _more(asked, _declared(one))
        self._put(template, key, _Shown(pod.attempt, work.payload, asked, more))
        if more != one.added or self._last(template) != last:
            self.stale[template] = None

    def shown_by(self, work: Workload) -> tuple[AddedRequests, ...]:
        """The additions that its own pods have shown, for its record."""
        found = self._templates.get(work.uid, {})
        shown = ((key, self.shown[template][key].added) for key, template in found.items())
        return tuple(
            AddedRequests(key.item, key.number, added) for key, added in sorted(shown) if added
        )

    def recall(self, work: Workload, record: DispatchRecord) -> None:
        """Take up the recorded additions; pods that still exist show more."""
        sets = {(one.item, one.index): one for one in work.sets if one.path}
        for line in record.added:
            one = sets.get((line.item, line.index))
            key = _Set(work.uid, line.item, line.index)
            if one is not None and key not in self._templates.get(work.uid, {}):
                asked, template = _sum(_declared(one), line.requests), _template(work, one)
                shown = _Shown(record.attempt, work.payload, asked, line.requests)
                self._put(template, key, shown)
                self.stale[template] = None

    def forget(self, uid: str) -> None:
        """Forget a removed AppWrapper."""
        for key, template in self._templates.pop(uid, {}).items():
            last, sets = self._last(template), self.shown[template]
            del sets[key]
            if not sets:
                del self.shown[template]
            if self._last(template) != last:
                self.stale[template] = None

    def _put(self, template: _Template, key: _Set, shown: _Shown) -> None:
        sets = self.shown.setdefault(template, {})
        sets.pop(key, None)
        sets[key] = shown
        self._templates.setdefault(key.uid, {})[key] = template

    def _last(self, template: _Template) -> Resources:
        sets = self.shown.get(template)
        return next(reversed(sets.values())).added if sets else ()

    def _completed(self, work: Workload, one: PodSet) -> PodSet:
        declared, template = _declared(one), _template(work, one)
        key = _Set(work.uid, one.item, one.index)
        own = self.shown.get(template, {}).get(key)
        added = self._last(template) if own is None else own.added
        if own is not None and own.payload == work.payload:
            added = _more(own.asked, declared)
        if own is not None and added != own.added:  # defaults of the namespace have changed
            self.shown[template][key] = own._replace(added=added)
            self.stale[template] = None
        if added == one.added:
            return one
        return replace(one, request=_sum(declared, added), added=added)


def explain(work: Workload) -> str:
    """The sentences about additions to pods of an AppWrapper, "" without additions."""
    return " ".join(_sentences(work))


def _sentences(work: Workload) -> Iterator[str]:
    told = {(one.item, one.added): one for one in work.sets if one.added}
    for one in told.values():
        figures = ", ".join(f"{format_amount(name, n)} {name}" for name, n in one.added)
        ref = work.items[one.item].ref
        yield f"Admission adds {figures} to each pod of {ref}, which counts as well."


def _template(work: Workload, one: PodSet) -> _Template:
    ref = work.items[one.item].ref
    return _Template(work.namespace, ref.group, ref.resource, one.path)


def _declared(one: PodSet) -> Resources:
    return _more(one.request, one.added) if one.added else one.request


def _more(one: Resources, other: Resources) -> Resources:
    """The excess of ``one`` over ``other``."""
    less = dict(other)
    return tuple((name, n - less.get(name, 0)) for name, n in one if n > less.get(name, 0))


def _sum(one: Resources, other: Resources) -> Resources:
    total = dict(one)
    for name, n in other:
        total[name] = total.get(name, 0) + n
    return tuple(sorted(total.items()))


def _larger(one: Resources, other: Resources) -> Resources:
    largest = dict(one)
    for name, n in other:
        largest[name] = max(largest.get(name, 0), n)
    return tuple(sorted(largest.items()))
