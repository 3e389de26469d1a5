"""Why an AppWrapper waits, and what would start it now. Every answer was tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Self

from mcad.core.answers.ahead import ahead
from mcad.core.answers.certificate import Certificate, certify
from mcad.core.answers.changes import Edit
from mcad.core.answers.dry_run import DryRun, OutOfWorkError
from mcad.core.answers.ends import ends
from mcad.core.answers.extra_nodes import extra_nodes
from mcad.core.answers.holding import Holding, holding
from mcad.core.answers.more_quota import more_quota
from mcad.core.answers.priority import priority, would_evict
from mcad.core.answers.remedies import Kind, Remedy
from mcad.core.answers.smaller import smaller
from mcad.core.cycle import cycle
from mcad.core.quota.explain import Words
from mcad.core.state.injections import explain
from mcad.core.state.lifecycle import Phase
from mcad.core.state.reasons import ConditionType
from mcad.core.state.records import Struct, replace
from mcad.core.state.refusal import Refusal
from mcad.core.state.waiting_reason import RESERVED, WaitingReason
from mcad.core.status.status import failure
from mcad.core.views.rows import FITS_NEXT

_FOR_OTHERS_TOO = frozenset({Kind.ENDS, Kind.NODES, Kind.QUOTA, Kind.AHEAD})
"""Changes by which other AppWrappers may start too."""

STEPS_MAX = 12_000
"""The work of one question, in steps of about 5 microseconds, besides a last trial."""


class Why(Struct, frozen=True):
    """What keeps an AppWrapper, as a word and as a sentence, and what would start it now.

    ``starts``: it is dispatched next without any change. ``evicts`` are the uids of the AppWrappers
    that it may evict as it is. ``holding`` names the holders of the resource that it lacks, and a
    ``certificate`` has the figures of the refusal. ``all_tried``: the work of a question sufficed
    for all kinds of answers. An AppWrapper without a reason does not wait.
    """

    reason: str = ""
    text: str = ""
    starts: bool = False
    evicts: tuple[str, ...] = ()
    holding: Holding = Holding()
    remedies: tuple[Remedy, ...] = ()
    all_tried: bool = True
    certificate: Certificate | None = None


def why(run: DryRun, uid: str) -> Why:
    """The answers about one known AppWrapper."""
    run.allow(STEPS_MAX)
    with run.tried() as started:
        entry, refusal = run.entry(uid), _refusal(run, uid)
        hold = entry.wait.hold
        is_waiting = entry.phase is Phase.WAITING
        text = Words(run.cluster.forest).explain(refusal) if refusal is not None else ""
        text = " ".join(filter(None, (text, explain(entry.workload)))) if text else ""
        is_refused = refusal is not None and not refusal.reason.lets_others_first
        # An AppWrapper that is too large for ever lacks nothing that others hold.
        lacks = is_refused and not (refusal and refusal.reason.is_impossible)
        held = holding(run.cluster, entry, refusal) if lacks and refusal else Holding()
        figures = certify(run.cluster, entry, refusal) if refusal is not None else None
        evicts = would_evict(run, uid) if is_refused and uid not in started else ()
    if uid in started:
        return Why(text=FITS_NEXT, starts=True)
    if is_waiting and hold is not None:
        found = _Found(run, uid).of_hold(hold.reason)
        return Why(hold.code, hold.message, remedies=found.in_order(), all_tried=found.all_tried)
    if entry.error is not None:
        return Why(ConditionType.INTERNAL_ERROR, entry.error.message)
    if not is_waiting or refusal is None:
        return Why(text=failure(entry))
    found = _Found(run, uid).of_refusal(refusal, evicts=bool(evicts))
    return Why(refusal.code, text, False, evicts, held, found.in_order(), found.all_tried, figures)


def _refusal(run: DryRun, uid: str) -> Refusal | None:
    cluster = run.cluster
    eqclass = cluster.waiting.queue.eqclass_of(run.entry(uid))
    if eqclass is None:
        return None
    return cycle.verdict(cluster, cluster.capacity.questions(), eqclass)


class _Found:
    """The findings for one AppWrapper within the work of one question. The cheapest kinds of
    answers are tried first. ``all_tried``: there was work left for all of them."""

    def __init__(self, run: DryRun, uid: str) -> None:
        self._run = run
        self._uid = uid
        self._found: list[Remedy] = []
        self.all_tried = True

    def in_order(self) -> tuple[Remedy, ...]:
        """The remedies in order: changes of the cluster come before changes of the AppWrapper."""
        return tuple(sorted(self._found, key=lambda one: list(Kind).index(one.kind)))

    def of_hold(self, reason: WaitingReason) -> Self:
        """Find remedies for an AppWrapper that is out of the line."""
        if reason is WaitingReason.SUSPENDED:
            self._try(_released)
        elif reason in RESERVED:
            self._try(ends)
        return self

    def of_refusal(self, refusal: Refusal, *, evicts: bool) -> Self:
        """Find remedies for a refused AppWrapper; ``evicts``: it may evict as it is."""
        self._try(partial(smaller, refusal=refusal))
        if not evicts:
            self._try(priority)
        if refusal.reason.lets_others_first:
            self._try(ahead)
        elif refusal.quota is not None:
            self._try(partial(more_quota, limit=refusal.quota))
            self._try(partial(ends, limit=refusal.quota))
        else:
            self._try(partial(extra_nodes, refusal=refusal))
            self._try(ends)
        return self

    def _try(self, search: Callable[[DryRun, str], Iterable[Remedy]]) -> None:
        try:
            for one in search(self._run, self._uid):
                if self._holds(one):
                    self._found.append(one)
        except OutOfWorkError:
            self.all_tried = False

    def _holds(self, remedy: Remedy) -> bool:
        """Whether the AppWrapper starts once more. Where AppWrappers ahead start too, that may
        depend on which of equal nodes they take; then the answer is not given."""
        if remedy.kind not in _FOR_OTHERS_TOO:
            return True
        return self._run.starts(self._uid, remedy.change)


def _released(run: DryRun, uid: str) -> Iterator[Remedy]:
    change = Edit(replace(run.entry(uid).workload, suspended=False))
    if run.starts(uid, change):
        yield Remedy(Kind.RELEASE, "If spec.suspend is set to false.", change)
