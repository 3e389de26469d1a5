"""The smallest priority with which an AppWrapper would be dispatched now, or would evict others for
its room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice

from mcad.core.answers.changes import Edit
from mcad.core.answers.dry_run import DryRun
from mcad.core.answers.remedies import Kind, Remedy
from mcad.core.answers.search import earliest
from mcad.core.cluster import Cluster
from mcad.core.preemption import search
from mcad.core.state.bounds import HEADS_TRIED
from mcad.core.state.entry import Entry
from mcad.core.state.reasons import some_of
from mcad.core.state.records import replace
from mcad.core.state.reservation import EVICTIONS
from mcad.core.state.units import SECOND

_TOP = 2**31 - 1  # of priorities in Kubernetes, and of spec.priority
PLANNED_MAX = 20
"""AppWrappers ahead for which evictions are planned; beyond, there is no answer."""

_SCALE = 1_000_000  # the gain per second of a slope of one per second


def priority(run: DryRun, uid: str) -> Iterator[Remedy]:
    """The answer, none if no priority would do."""
    work = run.entry(uid).workload

    @cache
    def tried(number: int) -> tuple[str, ...] | None:
        """The victims, () if it starts without victims, None if it does neither."""
        with run.tried(Edit(replace(work, priority=number))) as started:
            entry = run.entry(uid)
            if uid in started:
                return ()
            if not run.cluster.settings.preemption or entry.workload.priority != number:
                return None
            return _victims(run, entry)

    found = earliest(lambda number: tried(number) is not None, _steps(run, uid))
    if found is None:
        return
    change = Edit(replace(work, priority=found))
    text = f"A priority of {found} instead of {work.priority}"
    victims = tried(found) or ()
    if not victims:
        yield Remedy(Kind.PRIORITY, f"{text}.", change, number=found)
        return
    names = some_of([run.entry(one).title for one in victims])
    text += f": then it may evict {names}, and starts when that is done."
    yield Remedy(Kind.EVICT, text, change, number=found, uids=victims)


def _victims(run: DryRun, entry: Entry) -> tuple[str, ...] | None:
    """The victims of the AppWrapper, None if evictions are of no use, or if another AppWrapper
    evicts before it: the room that is left then is not known."""
    for number, one in enumerate(_preemptors(run.cluster)):
        if number == PLANNED_MAX or run.candidates is None:
            return None
        found = search.plan(run.cluster, one, run.candidates).victims
        if one is entry:
            return tuple(uid for uid, _ in found) or None
        if found:
            return None
    return None


def _preemptors(cluster: Cluster) -> Iterator[Entry]:
    """The AppWrappers that may evict, in the order in which the dispatcher plans for them."""
    for owner in cluster.reservations.values():
        if owner.reserved.reason not in EVICTIONS and search.may_win(cluster, owner):
            yield owner
    for eqclass in cluster.waiting.refused(cluster.waiting.queue.eqclasses()):
        front = (one for one in eqclass.front(HEADS_TRIED) if search.may_win(cluster, one))
        yield from islice(front, 1)


def would_evict(run: DryRun, uid: str) -> tuple[str, ...]:
    """The victims of an unchanged AppWrapper in line, if it is the next preemptor; the dispatcher
    evicts them if their number permits."""
    return _victims(run, run.entry(uid)) or ()


def _steps(run: DryRun, uid: str) -> Sequence[int]:
    """The priorities above its own that may make a difference: those of others, and one more. With
    slopes others are in between, so twice the gain of the oldest is added."""
    own = run.entry(uid).workload
    found = {number for each in (*run.priorities, own.priority) for number in (each, each + 1)}
    queue = run.cluster.waiting.queue
    slope = max((abs(one.slope) for one in queue.eqclasses()), default=0)
    if slope:
        oldest = min(entry.first_seen for entry in queue.entries())
        gain = slope * (run.facts.now - oldest) // SECOND // _SCALE + 1
        return range(own.priority + 1, min(max(found) + 2 * gain, _TOP) + 1)
    return sorted(one for one in found if own.priority < one <= _TOP)
