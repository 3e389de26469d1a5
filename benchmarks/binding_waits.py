"""How many gangs had to wait for the bindings of others before they started, and for how long.

    python -m benchmarks.real_gangs --mix mixed --load 0.9 --gangs 300 --journal DIR
    python -m benchmarks.binding_waits DIR

Everything is read from the journal of a dispatcher, which is replayed: a gang waits from the pass
in which it fits, but some order of binding could strand it or another one (ADR 52), until it
starts or fits no more; of several such waits the sum counts. Journals of any dispatcher with
``BINDING_WAIT`` will do.
"""

from __future__ import annotations

import argparse
import statistics
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from mcad.core.cluster import Cluster
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.units import SECOND, Duration, Instant
from mcad.core.state.waiting_reason import WaitingReason
from mcad.journal import reader
from mcad.journal.reader import Gap
from mcad.journal.replay import replay


class Waits(NamedTuple):
    """What was seen: AppWrappers that started, and the waits of those of them that had to."""

    started: int
    waits: list[Duration]

    def __str__(self) -> str:
        told = f"{self.started} started, {len(self.waits)} of them waited for bindings"
        if not self.waits:
            return told
        middle, most = statistics.median(self.waits) / SECOND, max(self.waits) / SECOND
        mean = sum(self.waits) / self.started / SECOND
        return f"{told}: p50 {middle:.2f} s, most {most:.2f} s; {mean:.3f} s at the mean of all"


def waits(made: Iterable[tuple[Instant, Cluster]]) -> Waits:
    """Of a dispatcher after each of its steps."""
    waited: Counter[str] = Counter()
    attempts: dict[str, int] = {}
    found: list[Duration] = []
    before: Instant = 0
    waiting: list[str] = []
    for now, cluster in made:
        waited.update(dict.fromkeys(waiting, now - before))
        before, waiting = (
            now,
            [one.uid for one in cluster.waiting.queue.entries() if _waits(cluster, one)],
        )
        for uid, entry in cluster.entries.items():
            if entry.phase is not Phase.WAITING and entry.attempt > attempts.get(uid, 0):
                attempts[uid] = entry.attempt
                if uid in waited:
                    found.append(waited.pop(uid))
    return Waits(sum(attempts.values()), found)


def _waits(cluster: Cluster, entry: Entry) -> bool:
    refusal = cluster.waiting.queue.refusal_of(entry)
    return refusal is not None and refusal.reason is WaitingReason.BINDING


def main() -> None:
    """A line per leadership in the journal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("journal", type=Path)
    sessions, problems = reader.sessions(parser.parse_args().journal)
    for problem in problems:
        print(problem)
    for session in sessions:
        steps = (one for one in replay(session) if not isinstance(one, Gap))
        print(waits((one.step.now, one.cluster) for one in steps))


if __name__ == "__main__":
    main()
