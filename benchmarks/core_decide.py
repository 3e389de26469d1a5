"""CPU time of one decision with 100,000 AppWrappers queued on 5,000 nodes. No cluster, no I/O.

    python -m benchmarks.core_decide [--queued 100000] [--shapes 100] [--nodes 5000]

Process CPU time, minimum and median over repetitions; garbage collection off as in ``mcad run``
after its start. Before any figure the gate: everybody in line, nobody dispatched, books balanced.

Measured on a busy machine of two cores: a foreign pod that ends after a holding time is over costs
9.5 ms at 1,000 shapes and 1,000 nodes (192 when every shape was tried on all emptied nodes); 50,000
holds take 69 passes, the longest 32 ms; first verdicts on 10,000 shapes take 6, the longest 109 ms.
"""

from __future__ import annotations

import argparse
import gc
import random
import resource
import statistics
import time
from collections.abc import Callable

from msgspec.structs import replace

from mcad.core.commands import WriteStatus
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import (
    AppWrapperSeen,
    Decide,
    KindWatched,
    NodeSeen,
    PodGone,
    PodSeen,
    StatusWritten,
)
from mcad.core.model import (
    Dialect,
    Item,
    Node,
    ObjectRef,
    Pod,
    PodPhase,
    PodSet,
    Settings,
    Workload,
)
from mcad.core.units import SECOND

START = 1_800_000_000 * SECOND


def node(number: int, cpu: int = 32_000) -> Node:
    """A node of 32 cores, 256 GiB, 8 GPUs."""
    amounts = (("cpu", cpu), ("memory", 256 * 2**30), ("nvidia.com/gpu", 8), ("pods", 110))
    return Node(f"n{number}", amounts)


def workload(number: int, shape: int, rng: random.Random) -> Workload:
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
    ref = ObjectRef("batch", "v1", "jobs", "Job", "default", f"w{number}")
    return Workload(
        uid=f"u{number}",
        namespace="default",
        name=f"w{number}",
        generation=1,
        dialect=Dialect.V1BETA1,
        created=START + number,
        payload=str(shape),
        items=(Item(ref),),
        sets=sets,
        priority=number % 3,
    )


class Bench:
    """A dispatcher with full nodes and a long line."""

    def __init__(
        self, queued: int, shapes: int, nodes: int, settings: Settings | None = None
    ) -> None:
        self.now = START
        self.dispatcher = Dispatcher(settings or Settings())
        self.acknowledged = 0
        for number in range(nodes):
            self.feed(NodeSeen(node(number)))
            for gpu in range(8):
                self.feed(PodSeen(self.pod(number, gpu)))
        for number in range(queued):
            shape = number % shapes
            self.feed(AppWrapperSeen(workload(number, shape, random.Random(shape)), listed=True))

    def pod(self, number: int, gpu: int) -> Pod:
        """A foreign pod that takes one GPU."""
        request = (("cpu", 2_000), ("memory", 2**34), ("nvidia.com/gpu", 1), ("pods", 1))
        uid = f"p{number}-{gpu}"
        return Pod(uid, "other", uid, f"n{number}", PodPhase.RUNNING, request)

    def feed(self, event: object) -> None:
        """One step; status writes are acknowledged at once."""
        self.now += 1
        for command in self.dispatcher.step(event, self.now):  # type: ignore[arg-type]
            if isinstance(command, WriteStatus):
                self.acknowledged += 1
                self.feed(StatusWritten(command.uid, command.serial))

    def settle(self) -> None:
        """Until everybody has been told."""
        while self.dispatcher.world.to_tell:
            self.feed(Decide())

    def timed(self, change: Callable[[int], None], repeat: int) -> str:
        """CPU of the decision after a change, in ms."""
        times = []
        for number in range(repeat):
            change(number)
            begun = time.process_time()
            self.feed(Decide())
            times.append(1000 * (time.process_time() - begun))
        return f"min {min(times):.2f}  median {statistics.median(times):.2f} ms"


def passes(bench: Bench) -> list[float]:
    """Decide until no pass asks for another; the CPU of each, in ms."""
    times = []
    while True:
        begun = time.process_time()
        bench.feed(Decide())
        times.append(1000 * (time.process_time() - begun))
        if bench.dispatcher.world.resume_at is None:
            return times


def first_verdicts(queued: int, nodes: int) -> None:
    """Everybody is of a shape of his own and has no verdict yet."""
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
        work = replace(workload(number, 0, random.Random(0)), sets=())
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
    world = bench.dispatcher.world
    print(f"told {bench.acknowledged} refusals in {time.process_time() - begun:.1f} s CPU")
    if len(world.queue) != options.queued or bench.acknowledged != options.queued:
        raise SystemExit("gate: somebody was dispatched, lost, or told twice")
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
    before = len(world.queue)
    print("a node is freed         ", bench.timed(free_node, options.repeat))
    print(f"  dispatched meanwhile: {before - len(world.queue)}")
    print("all nodes rise a little ", bench.timed(all_change, 5))
    world.capacity.check()
    first_verdicts(options.queued // 10, options.nodes // 5)
    after_a_hold(options.queued // 100, options.nodes // 5)
    many_holds(options.queued // 2)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:.0f} MB")


if __name__ == "__main__":
    main()
