"""CPU time of one question why an AppWrapper waits, and what would start it now.

    python -m benchmarks.bench_why [--nodes 1000] [--queued 10000] [--shapes 100] [--asked 200]

The core alone: each node is full but for 2 of its 20 CPUs, nine AppWrappers run on it, and the line
is full of gangs of so many shapes, which lack room or quota. AppWrappers drawn from the line are
asked about, one after the other; every answer is tried on the copy. Feeding the copy is not in the
figures of the questions: a caller lists and reads the objects before that.

On two busy cores, CPU milliseconds: to feed, then least / middle / 99 % / most of 100 questions:

    nodes   queued
     1000    10000   100 shapes                    1609    60 /  67 /  77 /  85
     1000    10000   the same, the first 20        1612    58 /  68 /  77 /  80
     1000    10000   1000 shapes                   1779    67 /  77 /  90 /  95
     1000    10000   100 shapes, preemption        1402    57 /  68 /  86 /  89
     1000    10000   20 teams of 30 shapes each    2086    47 /  58 /  93 /  98
     5000   100000   100 shapes                   10066   211 / 225 / 256 / 279

With quota the shapes of each team are classes of their own, and a larger share lets hundreds be
judged in one trial: the work of a question ends before an answer is found, and it says so.
"""

from __future__ import annotations

import argparse
import gc
from random import Random

from benchmarks.builders import cores, item, machines, own_child, own_pod, with_attempt
from benchmarks.measuring import cpu_ms, quantile, spread
from mcad.core.answers.dry_run import DryRun, Facts
from mcad.core.answers.why import Why, why
from mcad.core.events import AppWrapperSeen, ChildSeen, Event, NodeSeen, PodSeen, QuotaSeen
from mcad.core.state.model import PodSet, Workload
from mcad.core.state.records import replace
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from mcad.core.views.rows import Picture
from tests.core.builders import START, appwrapper
from tests.core.quotas import teams

CORES = 20
RUNNING_PER_NODE = 9
TEAMS = 20


def facts(nodes: int, queued: int, shapes: int, *, quota: bool, preemption: bool) -> Facts:
    """All that a dispatcher of such a cluster observes."""
    events: list[Event] = [*map(NodeSeen, machines(nodes, CORES))]
    if quota:
        share = 2000 * nodes * RUNNING_PER_NODE // TEAMS
        leaves = {f"team{number}": share for number in range(TEAMS)}
        events += map(QuotaSeen, teams(share * TEAMS, **leaves))
    for number in range(nodes * RUNNING_PER_NODE):
        events += _running(number, f"n{number % nodes:04}", quota=quota)
    random = Random(1)
    for number in range(queued):
        work = _waiting(number, Random(random.randrange(shapes)), quota=quota)
        events.append(AppWrapperSeen(work, listed=True))
    settings = Settings(preemption=preemption)
    return Facts(settings, tuple(events), START + 10_000 * SECOND)


def _team(work: Workload, number: int, *, quota: bool) -> Workload:
    return replace(work, quota=(("gold", f"team{number % TEAMS}"),)) if quota else work


def _running(number: int, node: str, *, quota: bool) -> list[Event]:
    pods = PodSet(0, 0, "items[0]", 1, cores(2))
    work = appwrapper(f"r{number}", [item("Job", f"r{number}")], [pods], priority=number % 3)
    work = with_attempt(_team(work, number, quota=quota), START + number, START + number)
    child, pod = own_child(work), own_pod(work, f"r{number}-0", node)
    return [AppWrapperSeen(work, listed=True), ChildSeen(child), PodSeen(pod)]


def _waiting(number: int, of_shape: Random, *, quota: bool) -> Workload:
    """A gang whose pods need more than is free on a node, of two sets now and then."""
    sets = [PodSet(0, 0, "items[0]", of_shape.randrange(1, 33), cores(of_shape.randrange(3, 9)))]
    if of_shape.random() < 0.2:
        sets.append(PodSet(1, 0, "items[1]", 1, cores(4)))
    items = [item("Job", f"w{number}-{one.item}") for one in sets]
    work = appwrapper(f"w{number}", items, sets, priority=of_shape.randrange(3))
    created = START + (1000 + number // 100) * SECOND
    return replace(_team(work, number, quota=quota), created=created)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--queued", type=int, default=10_000)
    parser.add_argument("--shapes", type=int, default=100)
    parser.add_argument("--asked", type=int, default=200)
    parser.add_argument("--front", type=int, default=0, help="only of so many at the front")
    parser.add_argument("--quota", action="store_true")
    parser.add_argument("--preemption", action="store_true")
    given = parser.parse_args()
    known = facts(
        given.nodes,
        given.queued,
        given.shapes,
        quota=given.quota,
        preemption=given.preemption,
    )
    made: list[DryRun] = []
    fed = cpu_ms(lambda: made.append(DryRun(known)))
    run = made[0]
    print(f"{given.nodes} nodes, {given.queued} in line: fed in {fed:.0f} ms")
    gc.collect()
    gc.disable()
    random = Random(2)
    line = Picture(run.cluster, known.now).line(given.front or given.queued)
    told: list[Why] = []
    times, kinds = [], dict[str, int]()
    before = run.trials
    for _ in range(given.asked):
        uid = random.choice(line)
        times.append(cpu_ms(lambda uid=uid: told.append(why(run, uid))))
        for one in told[-1].remedies:
            kinds[one.kind] = kinds.get(one.kind, 0) + 1
    least, middle, most = spread(times)
    p99 = quantile(times, 0.99)
    trials = (run.trials - before) / given.asked
    print(f"least {least:.1f}, middle {middle:.1f}, p99 {p99:.1f}, most {most:.1f} ms")
    print(f"{trials:.1f} trials each; answers: {kinds}")


if __name__ == "__main__":
    main()
