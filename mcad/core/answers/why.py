"""Why an AppWrapper waits, and what would start it now. Every answer was tried."""

from __future__ import annotations

from collections.abc import Iterator

from mcad.core.answers.ahead import ahead
from mcad.core.answers.changes import Edit
from mcad.core.answers.dry_run import DryRun
from mcad.core.answers.ends import ends
from mcad.core.answers.extra_nodes import extra_nodes
from mcad.core.answers.holding import Holding, holding
from mcad.core.answers.more_quota import more_quota
from mcad.core.answers.priority import priority, would_evict
from mcad.core.answers.remedies import Kind, Remedy
from mcad.core.answers.smaller import smaller
from mcad.core.cycle import cycle
from mcad.core.quota.explain import Words
from mcad.core.state.lifecycle import Phase
from mcad.core.state.records import Struct, replace
from mcad.core.state.refusal import Refusal
from mcad.core.state.waiting_reason import WaitingReason

_FOR_OTHERS_TOO = frozenset({Kind.ENDS, Kind.NODES, Kind.QUOTA, Kind.AHEAD})
"""Changes by which other AppWrappers may start too."""

STARTS = "It fits and is dispatched next."


class Why(Struct, frozen=True):
    """What keeps an AppWrapper, as a word and as a sentence, and what would start it now.

    ``starts``: it is dispatched next without any change. ``evicts`` are the uids of the AppWrappers
    that it may evict as it is. ``holding`` says which others hold what it lacks. Without a reason
    it does not wait.
    """

    reason: str = ""
    text: str = ""
    starts: bool = False
    evicts: tuple[str, ...] = ()
    holding: Holding = Holding()
    remedies: tuple[Remedy, ...] = ()


def why(run: DryRun, uid: str) -> Why:
    """The answers about one AppWrapper that is known."""
    with run.tried() as started:
        entry, refusal = run.entry(uid), _refusal(run, uid)
        hold = entry.hold
        is_waiting = entry.phase is Phase.WAITING
        text = Words(run.cluster.forest).explain(refusal) if refusal is not None else ""
        is_refused = refusal is not None and not refusal.reason.lets_others_first
        held = holding(run.cluster, entry, refusal) if is_refused and refusal else Holding()
        evicts = would_evict(run, uid) if is_refused and uid not in started else ()
    if uid in started:
        return Why(text=STARTS, starts=True)
    if is_waiting and hold is not None:
        return Why(hold.code, hold.message, remedies=tuple(_of_hold(run, uid, hold.reason)))
    if not is_waiting or refusal is None:
        return Why()
    found = _of_refusal(run, uid, refusal, evicts=bool(evicts))
    remedies = tuple(one for one in found if _holds(run, uid, one))
    return Why(refusal.code, text, evicts=evicts, holding=held, remedies=remedies)


def _refusal(run: DryRun, uid: str) -> Refusal | None:
    cluster = run.cluster
    eqclass = cluster.waiting.queue.eqclass_of(run.entry(uid))
    if eqclass is None:
        return None
    return cycle.verdict(cluster, cluster.capacity.questions(), eqclass)


def _of_hold(run: DryRun, uid: str, reason: WaitingReason) -> Iterator[Remedy]:
    if reason is WaitingReason.SUSPENDED:
        change = Edit(replace(run.entry(uid).workload, suspended=False))
        if run.starts(uid, change):
            yield Remedy(Kind.RELEASE, "If spec.suspend is set to false.", change)
    elif reason is WaitingReason.ROOM_RESERVED:
        yield from _some(ends(run, uid))


def _of_refusal(run: DryRun, uid: str, refusal: Refusal, *, evicts: bool) -> Iterator[Remedy]:
    if refusal.reason.lets_others_first:
        yield from _some(ahead(run, uid))
    else:
        yield from _some(ends(run, uid))
        if refusal.quota is not None:
            yield from _some(more_quota(run, uid, refusal.quota))
        else:
            yield from extra_nodes(run, uid, refusal)
    if not evicts:
        yield from _some(priority(run, uid))
    yield from smaller(run, uid, refusal)


def _holds(run: DryRun, uid: str, remedy: Remedy) -> bool:
    """Whether it starts once more. Where AppWrappers ahead start too, that may depend on which of
    equal nodes they take; then the answer is not given."""
    if remedy.kind not in _FOR_OTHERS_TOO:
        return True
    return run.starts(uid, remedy.change)


def _some(found: Remedy | None) -> Iterator[Remedy]:
    if found is not None:
        yield found
