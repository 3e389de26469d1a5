"""CPU time of one decision with 100,000 AppWrappers queued on 5,000 nodes. No cluster, no I/O.

    python -m benchmarks.core_decide [--queued 100000] [--shapes 100] [--nodes 5000]

Process CPU time, minimum and median over repetitions; garbage collection off as in ``mcad run``
after its start. Before any figure the gate: every AppWrapper is in line, none is dispatched, and
the books are balanced.

Measured on a busy machine of two cores: a foreign pod that ends after a holding time is over costs
9.5 ms at 1,000 shapes and 1,000 nodes (192 when every shape was tried on all emptied nodes); 50,000
holds take 69 passes, the longest 32 ms; first verdicts on 10,000 shapes take 6, the longest 109 ms.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
from collections.abc import Callable

from benchmarks.builders import Fed, item
from benchmarks.measuring import cpu_ms, rss_mb, spread
from mcad.core.events import AppWrapperSeen, Decide, KindWatched, NodeSeen, PodGone, PodSeen
from mcad.core.state.model import Node, Pod, PodPhase, PodSet, Workload
from mcad.core.state.records import replace
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from tests.core.builders import START, appwrapper


def node(number: int, cpu: int = 32_000) -> Node:
    """A node of 32 cores, 256 GiB, 8 GPUs."""
    amounts = (("cpu", cpu), ("memory", 256 * 2**30), ("nvidia.com/gpu", 8), ("pods", 110))
    return Node(f"n{number}", amounts)


def workload(number: int, rng: random.Random) -> Workload:
    """A gang of up to 3 pod sets that no free room can take."""
    sets = tuple(
        PodSet(
            0,
            index,
            f"p{index}",
            rng.randint(1, 8),
            (
                ("cpu", 1_000 * rng.randint(1, 8)),
                ("memory", rng.randint(1, 32) * 2**30),
                ("nvidia.com/gpu", 8),
                ("pods", 1),
            ),
        )
        for index in range(rng.randint(1, 3))
    )
    job = item("Job", f"w{number}")
    return appwrapper(f"w{number}", [job], sets, created=START + number, priority=number % 3)


class Bench(Fed):
    """A dispatcher with full nodes and a long line."""

    def __init__(
        self, queued: int, shapes: int, nodes: int, settings: Settings | None = None
    ) -> None:
        super().__init__(settings or Settings())
        for number in range(nodes):
            self.feed(NodeSeen(node(number)))
            for gpu in range(8):
                self.feed(PodSeen(self.pod(number, gpu)))
        for number in range(queued):
            self.feed(AppWrapperSeen(workload(number, random.Random(number % shapes)), listed=True))

    def pod(self, number: int, gpu: int) -> Pod:
        """A foreign pod that takes one GPU."""
        request = (("cpu", 2_000), ("memory", 2**34), ("nvidia.com/gpu", 1), ("pods", 1))
        uid = f"p{number}-{gpu}"
        return Pod(uid, "other", uid, f"n{number}", PodPhase.RUNNING, request)

    def settle(self) -> None:
        """Until every status is written."""
        while self.dispatcher.cluster.agenda.to_report:
            self.decide()

    def decide(self) -> None:
        """One pass."""
        self.feed(Decide())

    def timed(self, change: Callable[[int], None], repeat: int) -> str:
        """CPU of the decision after a change, in ms."""
        times = []
        for number in range(repeat):
            change(number)
            times.append(cpu_ms(self.decide))
        least, middle, _ = spread(times)
        return f"min {least:.2f}  median {middle:.2f} ms"


def passes(bench: Bench) -> list[float]:
    """Decide until no pass asks for another; the CPU of each, in ms."""
    times = []
    while True:
        times.append(cpu_ms(bench.decide))
        if bench.dispatcher.cluster.walk.resume_at is None:
            return times


def first_verdicts(queued: int, nodes: int) -> None:
    """Every AppWrapper has a shape of its own and no verdict yet."""
    bench = Bench(queued, queued, nodes)
    times = passes(bench)
    print(f"first verdicts on {queued} shapes, {nodes} nodes: ", _story(times))


def after_a_hold(shapes: int, nodes: int) -> None:
    """The head's holding time is over, and a foreign pod ends on a node at a time."""
    settings = Settings(head_of_line_holding=SECOND)
    bench = Bench(shapes, shapes, nodes, settings)
    passes(bench)
    bench.now += 2 * SECOND
    passes(bench)

    def end_pod(number: int) -> None:
        bench.feed(PodGone(f"p{number}-0"))

    print(f"a pod ends after a hold, {shapes} shapes: ", bench.timed(end_pod, 10))


def many_holds(queued: int) -> None:
    """Their kind cannot be watched: all of them are put on hold."""
    bench = Bench(0, 1, 10)
    bench.feed(KindWatched("batch", "jobs", watched=False, message="forbidden"))
    bench.feed(NodeSeen(node(10)))
    for number in range(queued):
        work = replace(workload(number, random.Random(0)), sets=())
        bench.feed(AppWrapperSeen(work, listed=True))
    times = passes(bench)
    print(f"{queued} holds: ", _story(times))


def _story(times: list[float]) -> str:
    return f"{len(times)} passes, the longest {max(times):.0f} ms, together {sum(times):.0f} ms"


def main() -> None:
    """Print one line per kind of change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queued", type=int, default=100_000)
    parser.add_argument("--shapes", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--repeat", type=int, default=20)
    options = parser.parse_args()
    begun = time.process_time()
    bench = Bench(options.queued, options.shapes, options.nodes)
    print(f"fed in {time.process_time() - begun:.1f} s CPU")
    begun = time.process_time()
    bench.settle()
    cluster = bench.dispatcher.cluster
    told = len(bench.written)
    print(f"told {told} refusals in {time.process_time() - begun:.1f} s CPU")
    if len(cluster.waiting.queue) != options.queued or told != options.queued:
        raise SystemExit("gate: an AppWrapper was dispatched, lost, or written twice")
    gc.collect()
    gc.disable()

    def end_pod(number: int) -> None:
        bench.feed(PodGone(f"p{number}-0"))

    def free_node(number: int) -> None:
        for gpu in range(8):
            bench.feed(PodGone(f"p{1000 + number}-{gpu}"))

    def all_change(number: int) -> None:
        for one in range(options.nodes):
            bench.feed(NodeSeen(node(one, 32_000 + number + 1)))

    print("nothing changed         ", bench.timed(lambda _: None, options.repeat))
    print("a pod ends, none starts ", bench.timed(end_pod, options.repeat))
    before = len(cluster.waiting.queue)
    print("a node is freed         ", bench.timed(free_node, options.repeat))
    print(f"  dispatched meanwhile: {before - len(cluster.waiting.queue)}")
    print("all nodes rise a little ", bench.timed(all_change, 5))
    cluster.capacity.check()
    first_verdicts(options.queued // 10, options.nodes // 5)
    after_a_hold(options.queued // 100, options.nodes // 5)
    many_holds(options.queued // 2)
    print(f"peak memory {rss_mb('VmHWM'):.0f} MB")


if __name__ == "__main__":
    main()
