"""How often does a gang strand, on a model of kube-scheduler that binds pod by pod?

    python -m benchmarks.model_gangs [--mix mixed] [--load 0.9] [--seeds 10] [--most-allocated]
        [--binding-wait 0] [--ignore-apart]

A stream of gangs on 100 nodes of 8 GPUs that run for 3 hours at the mean. Pods appear 0.1 to 1 s
after the dispatch, in any order; kube-scheduler binds 100 of them a second, each on the node with
the least GPUs in use (or the most), and one that finds no node is tried again when another ends,
after 1 to 10 s. The mixes are those of ``benchmarks/gangs.py``, as ``benchmarks/real_gangs.py`` has
them on a real one. The model is harder than a real kube-scheduler: see there.
"""

from __future__ import annotations

import argparse
from collections import deque
from functools import partial
from math import exp, log
from random import Random

from benchmarks.builders import machines
from benchmarks.gangs import CPUS, GPU, GPUS, MIXES, Interval, drawn, interval
from benchmarks.gangs import Gang as Drawn
from benchmarks.replay import HOUR, Gang, Job, Member, Replay
from mcad.core.commands import CreateItem
from mcad.core.events import Event, PodSeen
from mcad.core.state.model import Node, Resources
from mcad.core.state.records import replace
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND, Duration, Instant
from tests.core.builders import START

BIND: Duration = SECOND // 100
APPEARS: tuple[Duration, Duration] = (SECOND // 10, SECOND)
RETRY: tuple[Duration, Duration] = (SECOND, 10 * SECOND)
LATE: Duration = 30 * SECOND


class Scheduler:
    """One pod at a time, on the node with the least GPUs in use, or the most; ties by seed."""

    def __init__(self, nodes: list[Node], rng: Random, *, most: bool) -> None:
        self.free = [dict(node.allocatable) for node in nodes]
        self._sign = 1 if most else -1
        self._rng = rng

    def take(
        self, request: Resources, avoid: frozenset[int], exclude: frozenset[int] = frozenset()
    ) -> int | None:
        """The number of the node that gets the pod, None if no node has room for it."""
        fits = [
            (number in avoid, self._sign * free["cpu"], self._rng.random(), number)
            for number, free in enumerate(self.free)
            if number not in exclude and all(free.get(name, 0) >= n for name, n in request)
        ]
        if not fits:
            return None
        number = min(fits)[-1]
        self._change(number, request, -1)
        return number

    def give(self, number: int, request: Resources) -> None:
        """A pod is gone."""
        self._change(number, request, 1)

    def _change(self, number: int, request: Resources, sign: int) -> None:
        for name, amount in request:
            self.free[number][name] += sign * amount


class Late(Replay):
    """Pods appear late and are bound one by one, each on the node that suits it then."""

    def __init__(
        self,
        jobs: list[Job],
        nodes: list[Node],
        seed: int,
        settings: Settings,
        *,
        most: bool,
        ignores_apart: bool,
    ) -> None:
        self._ignores_apart = ignores_apart
        self._random = Random(seed)
        self._line: deque[tuple[Gang, Member]] = deque()
        self._is_binding = False
        self._unschedulable: dict[int, tuple[Gang, Member, int, Instant]] = {}
        self._tries: dict[int, int] = {}
        self._appeared: set[str] = set()
        self.gpu_time = 0
        self.dispatched: list[tuple[Instant, Gang]] = []
        placing = Scheduler(nodes, self._random, most=most)
        super().__init__(jobs, nodes, settings, placing=placing)

    def _create(self, command: CreateItem) -> Event:
        if self._ignores_apart:
            command = replace(command, node_rules=command.node_rules._replace(apart=()))
        return super()._create(command)

    def _bind(self) -> None:
        for uid in self._unbound:
            gang = self.gangs[uid]
            if gang.child.uid not in self._appeared:
                self._appeared.add(gang.child.uid)
                self.dispatched.append((self.now, gang))
                for member in gang.members:
                    at = self.now + self._random.randint(*APPEARS)
                    self.plan(at, partial(self._appear, gang, member))

    def _appear(self, gang: Gang, member: Member) -> None:
        if self._is_wanted(gang):
            self._feed(PodSeen(member.pod))
            self._queue(gang, member)

    def _queue(self, gang: Gang, member: Member) -> None:
        self._line.append((gang, member))
        if not self._is_binding:
            self._is_binding = True
            self.plan(self.now + BIND, self._schedule_one)

    def _schedule_one(self) -> None:
        gang, member = self._line.popleft()
        if self._is_wanted(gang) and member.node < 0:
            self._try(gang, member)
        self._is_binding = bool(self._line)
        if self._is_binding:
            self.plan(self.now + BIND, self._schedule_one)

    def _try(self, gang: Gang, member: Member) -> None:
        if not self._bind_one(gang, member):
            tries = self._tries[id(member)] = self._tries.get(id(member), 0) + 1
            self._unschedulable[id(member)] = gang, member, tries, self.now
        elif all(one.node >= 0 for one in gang.members):
            self._begin_work(gang.child.workload, gang)

    def _empty(self, gang: Gang) -> None:
        self.gpu_time += _gpu_time(gang, self.now)
        super()._empty(gang)
        waiting, self._unschedulable = self._unschedulable, {}
        for of, member, tries, since in waiting.values():
            pause = min(RETRY[1], RETRY[0] << (tries - 1))
            self.plan(max(self.now, since + pause), partial(self._queue, of, member))

    @property
    def gpu_use(self) -> float:
        """The part of the GPUs that bound pods had, from the start until now."""
        used = self.gpu_time + sum(_gpu_time(gang, self.now) for gang in self.gangs.values())
        return used / (GPUS * len(self.nodes) * (self.now - START))

    def _is_wanted(self, gang: Gang) -> bool:
        return self.gangs.get(gang.child.workload) is gang and not gang.child.terminating


def _gpu_time(gang: Gang, now: Instant) -> int:
    bound = [member for member in gang.members if member.node >= 0]
    return sum(dict(one.pod.request).get(GPU, 0) * (now - one.since) for one in bound)


def stream(mix: str, load: float, count: int, nodes: int, rng: Random) -> list[Job]:
    """So many gangs, at the rate that keeps this part of the GPUs in use."""
    gangs = [drawn(mix, rng) for _ in range(count)]
    runs = [round(exp(rng.uniform(log(0.3), log(3))) * 3 * HOUR / 1.17) for _ in gangs]
    work = sum(gang.gpus * run for gang, run in zip(gangs, runs, strict=True))
    gap = work / (load * nodes * GPUS * count)
    jobs, at, burst = [], 0.0, MIXES[mix].burst
    for number, (gang, run) in enumerate(zip(gangs, runs, strict=True)):
        at += rng.expovariate(1 / (gap * burst)) if number % burst == 0 else 0
        jobs.append(job(number, gang, round(at), run))
    return jobs


def job(number: int, gang: Drawn, at: Duration, run: Duration) -> Job:
    """The gang as one submission."""
    *more, last = [(part.pods, request(part.cpus, part.gpus)) for part in gang.parts]
    return Job(f"gang-{number:05}", at, *last, run=run, more=tuple(more))


def request(cpus: int, gpus: int) -> Resources:
    """Of one pod."""
    wanted = {"cpu": 1000 * cpus, GPU: gpus}
    return tuple((name, amount) for name, amount in sorted(wanted.items()) if amount)


def play(mix: str, seed: int, args: argparse.Namespace) -> Late:
    """One stream, until the last gang has come."""
    jobs = stream(mix, args.load, args.gangs, args.nodes, Random(seed))
    replay = Late(
        jobs,
        machines(args.nodes, CPUS, **{GPU: GPUS}),
        seed,
        Settings(binding_wait=args.binding_wait * SECOND),
        most=args.most_allocated,
        ignores_apart=args.ignore_apart,
    )
    replay.run(jobs[-1].at)
    replay.check()
    return replay


def outcome(replay: Late) -> tuple[int, int, int]:
    """Dispatches, those that were taken back for want of a node, and those that began late."""
    late = sum(gang.started - at > LATE for at, gang in replay.dispatched if gang.started)
    stranded = sum(life.stranded for life in replay.lives.values())
    return len(replay.dispatched), stranded, late


def main() -> None:
    """A line per mix, over all seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mix", choices=MIXES, action="append")
    parser.add_argument("--load", type=float, default=0.9)
    parser.add_argument("--gangs", type=int, default=2300)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--most-allocated", action="store_true")
    parser.add_argument("--binding-wait", type=int, default=5)
    parser.add_argument("--ignore-apart", action="store_true")
    args = parser.parse_args()
    print(f"{'mix':8}{'dispatches':>11}{'taken back':>24}{'late':>24}{'GPUs in use':>12}")
    for mix in args.mix or MIXES:
        replays = [play(mix, seed, args) for seed in range(1, args.seeds + 1)]
        found = [outcome(one) for one in replays]
        dispatches, stranded, late = (sum(one[at] for one in found) for at in range(3))
        use = sum(one.gpu_use for one in replays) / len(replays)
        spans: list[Interval] = [interval(n, dispatches) for n in (stranded, late)]
        print(f"{mix:8}{dispatches:>11}{spans[0]:>24}{spans[1]:>24}{use:>12.1%}", flush=True)


if __name__ == "__main__":
    main()
