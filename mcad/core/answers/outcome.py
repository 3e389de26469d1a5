"""What the next cycles of a dispatcher do with these facts: which AppWrappers start, and which are
evicted."""

from __future__ import annotations

from typing import NamedTuple

from mcad.core.answers.dry_run import Facts, fed
from mcad.core.cluster import Cluster
from mcad.core.commands import Command, WriteStatus
from mcad.core.cycle import cycle
from mcad.core.events import Decide
from mcad.core.state.lifecycle import Phase

CYCLES_MAX = 100
"""Cycles that follow each other at most, each of which starts something."""


class Evicted(NamedTuple):
    """The right by which an AppWrapper is evicted, and the preemptor (namespace/name)."""

    reason: str
    preemptor: str


class Outcome(NamedTuple):
    """The cluster after these cycles, the AppWrappers (uids) that start in them, in order, and the
    evicted AppWrappers."""

    cluster: Cluster
    starting: dict[str, None]
    evicted: dict[str, Evicted]


def outcome(facts: Facts) -> Outcome:
    """Run the cycles; their commands are not carried out."""
    dispatcher = fed(facts)
    found = Outcome(dispatcher.cluster, {}, {})
    for _ in range(CYCLES_MAX):
        before = len(found.starting)
        for command in dispatcher.step(Decide(), facts.now):
            _note(found, command, facts)
        if len(found.starting) == before and cycle.is_at_rest(dispatcher.cluster):
            break
    for uid, due in dispatcher.cluster.evictions.items():
        preemptor = dispatcher.cluster.entries[due.by].title
        found.evicted.setdefault(uid, Evicted(due.reason.value, preemptor))
    return found


def _note(found: Outcome, command: Command, facts: Facts) -> None:
    if not isinstance(command, WriteStatus):
        return
    entry, eviction = found.cluster.entries[command.uid], command.status.eviction
    if entry.phase is Phase.INTENDING:
        found.starting[entry.uid] = None
    if eviction is not None and eviction.at >= facts.now:
        found.evicted[entry.uid] = Evicted(eviction.reason.value, eviction.title)
