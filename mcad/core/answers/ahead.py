"""AppWrappers ahead in line: which of them would have to leave, for an AppWrapper that waits for
them, and how many want the same nodes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import partial

from mcad.core.answers.changes import Leave
from mcad.core.answers.dry_run import DryRun
from mcad.core.answers.remedies import Kind, Remedy
from mcad.core.answers.search import irreducible
from mcad.core.state.reasons import some_of

AHEAD_MAX = 16
"""How many AppWrappers are taken out of the line on trial."""


def ahead(run: DryRun, uid: str) -> Iterator[Remedy]:
    """A set of AppWrappers of which each has to leave; none if the first few do not suffice."""

    def suffice(some: tuple[str, ...]) -> bool:
        return run.starts(uid, Leave(some))

    line = tuple(_ahead(run, uid))
    tried = (line[: number + 1] for number in range(len(line)))
    found = next(filter(suffice, tried), None)
    if found is None:
        return
    gone = irreducible(suffice, found)
    names = some_of([run.entry(one).title for one in gone])
    text = f"If {names}, ahead of it, {'leaves' if len(gone) == 1 else 'leave'} the queue."
    yield Remedy(Kind.AHEAD, text, Leave(gone), number=len(gone), uids=gone)


def _ahead(run: DryRun, uid: str) -> list[str]:
    """The first AppWrappers in line that are ahead of this one, in order."""
    waiting, now = run.cluster.waiting, run.facts.now
    places = waiting.queue.places()
    turns = {one: waiting.turns.at(*places[one], now) for one in _firsts(run)}
    own = waiting.turns.at(*places[uid], now)
    return sorted((one for one in turns if turns[one] < own), key=turns.__getitem__)[:AHEAD_MAX]


def rivals_ahead(run: DryRun, uid: str) -> int:
    """How many AppWrappers ahead in line could go to the same nodes."""
    waiting, capacity, now = run.cluster.waiting, run.cluster.capacity, run.facts.now
    place = waiting.queue.place_of(uid)
    if place is None:
        return 0
    shape, own = place[0].shape, waiting.turns.at(*place, now)
    count = 0
    for eqclass in waiting.queue.eqclasses():
        if capacity.compete(eqclass.shape, shape):
            turn = partial(waiting.turns.at, eqclass, now=now)
            count += bisect_left(eqclass.members.keys(), own, key=turn)
    return count


def _firsts(run: DryRun) -> Iterator[str]:
    """The uids of the first members of each class: no others are among the first in line."""
    for eqclass in run.cluster.waiting.queue.eqclasses():
        yield from (entry.uid for entry in eqclass.front(AHEAD_MAX))
