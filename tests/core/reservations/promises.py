"""Are promised starts kept, with a kube-scheduler that spreads pods and binds them late?

``python -m tests.core.reservations.promises --seeds 10``: 90 jobs in 12 hours on 10 nodes of 8
CPUs, with the policy Backfill, at loads from 0.8 to 0.95. Every job ends two minutes before its
limit at the latest, so each start that a status promised has to be kept. A start counts as late
after the time that the last binding may take.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import product
from random import Random
from typing import NamedTuple

from benchmarks.builders import cores, machines
from benchmarks.replay import HOUR, Gang, Job, Life, Member, Replay
from benchmarks.traces import Shape, batch
from mcad.core.events import PodSeen
from mcad.core.state.model import Node
from mcad.core.state.settings import Policy, Settings
from mcad.core.state.units import SECOND, Duration

NODES, CPUS, JOBS = 10, 8, 90
LOADS = (0.8, 0.85, 0.9, 0.95)
LATE: Duration = 8 * SECOND
"""A pod is bound so much later at most than it exists, and one in ten up to three times as late."""
LATEST = 3 * LATE


class LateReplay(Replay):
    """Pods are bound one by one, late and in any order. The node is chosen at that moment."""

    def __init__(self, jobs: list[Job], nodes: list[Node], settings: Settings, *, seed: int):
        self._random = Random(seed)
        self._known: set[str] = set()  # uids of children whose pods have a time
        self._waiting: list[tuple[str, Gang, Member]] = []  # whose time has come
        super().__init__(jobs, nodes, settings)

    def _bind(self) -> None:
        for uid in self._unbound:
            gang = self.gangs[uid]
            if gang.child.uid not in self._known:
                self._known.add(gang.child.uid)
                self._schedule(uid, gang)
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            self._try(*one)

    def _schedule(self, uid: str, gang: Gang) -> None:
        for member in gang.members:
            self._feed(PodSeen(member.pod))
            late = self._random.randrange(LATE) * (3 if self._random.random() < 0.1 else 1)
            self.plan(self.now + late, partial(self._try, uid, gang, member))

    def _try(self, uid: str, gang: Gang, member: Member) -> None:
        if self.gangs.get(uid) is not gang or gang.child.terminating:
            return
        if not self._bind_one(gang, member):
            self._waiting.append((uid, gang, member))
        elif all(one.node >= 0 for one in gang.members):
            self._begin_work(uid, gang)


class Cluster(NamedTuple):
    """Which jobs come, and how pods are bound."""

    seed: int
    load: float
    mixed: bool
    late: bool

    def jobs(self) -> list[Job]:
        """Of mixed sizes, or all pods of 2 CPUs."""
        shape = Shape(JOBS, 12 * HOUR, NODES, self.load, CPUS)
        found = [one if self.mixed else _of_two(one) for one in batch(shape, self.seed)]
        return [one._replace(limit=max(one.limit, one.run + 120 * SECOND)) for one in found]

    def replay(self) -> Replay:
        """Until all have ended."""
        jobs, nodes, settings = self.jobs(), machines(NODES, CPUS), Settings(policy=Policy.BACKFILL)
        made = Replay(jobs, nodes, settings)
        if self.late:
            made = LateReplay(jobs, nodes, settings, seed=self.seed)
        done = made.run()
        done.check()
        return done


def _of_two(job: Job) -> Job:
    total = job.pods * dict(job.request)["cpu"] // 2000
    return job._replace(pods=min(max(1, total), NODES * CPUS // 2), request=cores(2))


def promised(cluster: Cluster) -> Iterator[tuple[Life, bool]]:
    """The lives with a promised start, and whether the first one was kept."""
    slack = LATEST if cluster.late else 0
    for life in cluster.replay().lives.values():
        told = [one.start for one in life.promises if one.start]
        if told:
            yield life, bool(life.starts) and life.starts[0] <= min(told) + slack


def main() -> None:
    """A line per kind of world."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    seeds = range(parser.parse_args().seeds)
    print("pods        bindings  promised  late")
    for mixed, late in product((False, True), repeat=2):
        worlds = (Cluster(seed, load, mixed, late) for load in LOADS for seed in seeds)
        kept = Counter(is_kept for cluster in worlds for _, is_kept in promised(cluster))
        sizes, times = "mixed" if mixed else "equal", "late" if late else "at once"
        print(f"{sizes:<10}  {times:<8}  {kept.total():>8}  {kept[False]:>4}", flush=True)


if __name__ == "__main__":
    main()
