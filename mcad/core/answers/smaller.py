"""How many pods, or how much of a resource per pod, would fit now."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mcad.core.answers.changes import Edit, resized
from mcad.core.answers.dry_run import DryRun
from mcad.core.answers.remedies import Kind, Remedy
from mcad.core.answers.search import largest
from mcad.core.nodes.resources import PODS, resources
from mcad.core.state.model import PodSet
from mcad.core.state.quantity import format_amount
from mcad.core.state.refusal import Refusal

MI = 2**20
"""Amounts in bytes are tried in whole Mi, all other amounts in their own unit."""

SETS_MAX = 4
"""How many pod sets are made smaller, each by itself."""


def smaller(run: DryRun, uid: str, refusal: Refusal) -> Iterator[Remedy]:
    """The answers: for each pod set the most pods, and for each scarce resource the most that each
    of its pods may request."""
    sets = run.entry(uid).workload.sets[:SETS_MAX]
    for position in range(len(sets)):
        yield from _fewer_pods(run, uid, position)
    for position, one in enumerate(sets):
        for name in _short(one, refusal):
            yield from _less(run, uid, position, name)


def _fewer_pods(run: DryRun, uid: str, position: int) -> Iterator[Remedy]:
    work = run.entry(uid).workload
    pod_set = work.sets[position]

    def change(count: int) -> Edit:
        return Edit(resized(work, position, replicas=count))

    count = _most(run, uid, change, 0 if pod_set.per_node else pod_set.replicas - 1)
    if count is not None:
        pods = "1 pod" if count == 1 else f"{count} pods"
        text = f"{pods} instead of {pod_set.replicas}{_where(work.sets, position)}."
        yield Remedy(Kind.PODS, text, change(count), number=count)


def _less(run: DryRun, uid: str, position: int, resource: str) -> Iterator[Remedy]:
    work = run.entry(uid).workload
    pod_set = work.sets[position]
    now = dict(pod_set.request)[resource]
    unit = MI if resource != "cpu" and now > MI else 1

    def change(count: int) -> Edit:
        request = resources(dict(pod_set.request) | {resource: count * unit})
        return Edit(resized(work, position, request=request))

    count = _most(run, uid, change, (now - 1) // unit)
    if count is not None:
        amount = count * unit
        less, more = (format_amount(resource, n) for n in (amount, now))
        text = f"{resource}: {less} instead of {more} per pod{_where(work.sets, position)}."
        yield Remedy(Kind.REQUEST, text, change(count), number=amount)


def _most(run: DryRun, uid: str, change: Callable[[int], Edit], last: int) -> int | None:
    """The largest number up to ``last`` with which the AppWrapper starts after such a change."""
    return largest(lambda number: run.starts(uid, change(number)), 1, last)


def _short(pod_set: PodSet, refusal: Refusal) -> Iterator[str]:
    """The scarce resources of its request: those missing in sum, else all of the shortages."""
    if refusal.quota is not None:
        short = [refusal.quota.resource]
    else:
        short = [one.resource for one in refusal.shortages if one.missing]
        short = short or [one.resource for one in refusal.shortages]
    requested = {name for name, _ in pod_set.request}
    return (name for name in short if name in requested and name != PODS)


def _where(sets: tuple[PodSet, ...], position: int) -> str:
    """The position of the pods, if there are several sets."""
    return f" at {sets[position].path}" if len(sets) > 1 else ""
