"""How many gangs had to wait for the bindings of others before they started, and for how long.

    python -m benchmarks.real_gangs --mix mixed --load 0.9 --gangs 300 --journal DIR
    python -m benchmarks.binding_waits DIR

Everything is read from the journal of a dispatcher, which is replayed: a gang waits from the pass
in which it fits, but some order of binding could strand it or another one (ADR 52), until it
starts. If its room goes to another one meanwhile, the wait for room counts too: so a wait may be
longer than ``bindingWait``. Journals of any dispatcher with that setting will do.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from mcad.core.cluster import Cluster
from mcad.core.state.lifecycle import Phase
from mcad.core.state.units import SECOND, Duration, Instant
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
    since: dict[str, Instant] = {}
    attempts: dict[str, int] = {}
    found: list[Duration] = []
    for now, cluster in made:
        for uid, entry in cluster.entries.items():
            if entry.phase is Phase.WAITING:
                if entry.binding_since:
                    since[uid] = entry.binding_since
            elif entry.attempt > attempts.get(uid, 0):
                attempts[uid] = entry.attempt
                if uid in since:
                    found.append(now - since.pop(uid))
    return Waits(sum(attempts.values()), found)


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
