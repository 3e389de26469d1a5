"""Policies on batch traces: utilisation, slowdown, and how good start time estimates were.

    python -m benchmarks.batch_traces [--jobs 300] [--loads 0.7 0.85 1.0] [--seeds 1 2 3 4 5]

Every trace (traces.py: its published sources are named there) is simulated under each policy with
the core alone, in virtual time. All jobs declare limits, most of them far too long, and none
declares an expected duration.

A figure is printed only after the gate: every AppWrapper has ended, no node was given more than it
has, and none started after the start that its status promised. For some of the submissions, and for
each first in line, the start time estimate is kept and compared with the start.
"""

from __future__ import annotations

import argparse
from collections import Counter
from functools import partial
from statistics import fmean
from typing import NamedTuple

from benchmarks.builders import machines
from benchmarks.replay import DAY, HOUR, Job, Life, Replay, uid_of
from benchmarks.traces import Shape, batch
from mcad.core.state.bounds import START_TIMES_AHEAD
from mcad.core.state.model import Node
from mcad.core.state.settings import Policy, Settings
from mcad.core.state.units import SECOND, Duration
from mcad.core.views.rows import Picture
from mcad.core.views.start_times import StartTime, start_times
from tests.core.builders import START

SHUTDOWN: Duration = 30 * SECOND
"""What pods take to end when they are deleted, by default."""

NODES, EVERY = 16, 5
"""So many nodes, and a start time estimate for one in so many submissions."""
ASKED_AFTER: Duration = SECOND
"""How long after the submission the estimate is made."""


class Estimate(NamedTuple):
    """The start time estimate of an AppWrapper (uid); ``place`` is "submitted" or "first"."""

    uid: str
    place: str
    estimate: StartTime


class Cell(NamedTuple):
    """What one trace came to."""

    utilisation: float
    slowdown: float
    longest_wait: Duration
    promised: int
    counts: Counter[tuple[str, str]]


class Asked:
    """A replay in which some people ask when they start."""

    def __init__(self, jobs: list[Job], nodes: list[Node], policy: Policy) -> None:
        self.told: list[Estimate] = []
        self.replay = Replay(jobs, nodes, Settings(policy=policy), shutdown=SHUTDOWN)
        self._seen_first: set[str] = set()
        for job in jobs[::EVERY]:
            at = START + job.at + ASKED_AFTER
            self.replay.plan(at, partial(self._ask, uid_of(job.name)))

    def _ask(self, uid: str) -> None:
        cluster = self.replay.brain.cluster
        line = Picture(cluster, self.replay.now).line(START_TIMES_AHEAD)
        first = [one for one in line[:1] if one not in self._seen_first]
        self._seen_first.update(first)
        entry = cluster.entries.get(uid)
        asked = [uid] if entry is not None and not entry.attempt else []
        found = start_times(cluster, line, [*asked, *first])
        self.told += [Estimate(one, "submitted", found[one]) for one in asked]
        self.told += [Estimate(one, "first", found[one]) for one in first]


def play(shape: Shape, seed: int, policy: Policy) -> Cell:
    """One trace under one policy, with the gate."""
    asked = Asked(batch(shape, seed), machines(shape.nodes, shape.cpus), policy)
    replay = asked.replay.run()
    replay.check()
    lives = list(replay.lives.values())
    if replay.open or any(not (life.starts or life.failed) for life in lives):
        raise SystemExit("gate: an AppWrapper never started, or never ended")
    promised = [life for life in lives if any(one.start for one in life.promises)]
    if late := [life for life in promised if _is_late(life)]:
        raise SystemExit(f"gate: later than promised: {[life.job.name for life in late[:5]]}")
    counts: Counter[tuple[str, str]] = Counter()
    for one in asked.told:
        life = replay.lives[one.uid]
        if life.starts:
            counts[one.place, _outcome(one.estimate, life.starts[0])] += 1
    return Cell(
        replay.utilisation,
        fmean(life.slowdown for life in lives),
        max(life.wait for life in lives),
        len(promised),
        counts,
    )


def _is_late(life: Life) -> bool:
    """Whether it started after any start that its status has promised."""
    said = min(one.start for one in life.promises if one.start)
    return bool(life.starts) and life.starts[0] > said


def _outcome(estimate: StartTime, start: int) -> str:
    if not estimate.latest:
        return "none"
    if start > estimate.latest:
        return "late"
    return "early" if start < estimate.earliest else "within"


def main() -> None:
    """A row per load and policy: means over the seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--loads", type=float, nargs="+", default=[0.7, 0.85, 1.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    options = parser.parse_args()
    seeds = options.seeds
    print(
        f"{options.jobs} jobs in a day on {NODES} nodes, {len(seeds)} seeds; estimates: "
        "within / earlier / later than told, of those told (asked)"
    )
    titles = ("load", "policy", "used", "slowdown", "longest", "promises")
    print(("{:>5} {:<15} {:>6} {:>9} {:>8} {:>9}").format(*titles), end="")
    print(f"   {'at submission':<24}{'when first in line':<24}")
    for load in options.loads:
        shape = Shape(options.jobs, DAY, NODES, load)
        for policy in Policy:
            _print_row(load, policy, [play(shape, seed, policy) for seed in seeds])


def _print_row(load: float, policy: Policy, cells: list[Cell]) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for cell in cells:
        counts += cell.counts
    print(
        f"{load:>5.2f} {policy.value:<15} {fmean(cell.utilisation for cell in cells):>6.3f} "
        f"{fmean(cell.slowdown for cell in cells):>9.1f} "
        f"{max(cell.longest_wait for cell in cells) / HOUR:>6.1f} h "
        f"{sum(cell.promised for cell in cells):>9}   "
        f"{_shares(counts, 'submitted'):<24}{_shares(counts, 'first'):<24}",
        flush=True,
    )


def _shares(counts: Counter[tuple[str, str]], place: str) -> str:
    told = {word: counts[place, word] for word in ("within", "early", "late")}
    total, asked = sum(told.values()), sum(n for (at, _), n in counts.items() if at == place)
    if not total:
        return "-"
    shares = "/".join(f"{100 * n / total:.0f}" for n in told.values())
    return f"{shares} % of {total} ({asked})"


if __name__ == "__main__":
    main()
