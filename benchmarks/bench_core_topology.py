"""Process CPU time of verdicts on gangs that need a topology domain, on 5,000 nodes of 8 GPUs.

``python -m benchmarks.bench_core_topology [nodes]`` prints a table in milliseconds: the first
verdict of a fresh capacity, first verdicts on further shapes (least / middle / most), and later
ones after a pod has ended. The nodes are full but for every eighth (roomy), or each has one GPU
left, so that sums suffice and slots do not until pods end (fragmented). Racks are a level of the
setting ``topologyLevels``. Garbage collection is off, as in ``mcad run``.

Measured with CPython 3.11: on two busy cores (load average 10) before and after sums of listed
levels were kept while nodes are read and domains without a slot were passed over; and now, twice on
a machine that is 1.4 times slower (10 million additions take 0.5 s), with little beside it, since a
second resource is sorted only if a sample says that it helps, and an exact search compares sums
first.

                                              before         after          now
    first verdict, roomy, 10 racks            8.5 to 10.2    4.3 to 6.5     2.9 to 4.5
    first verdict, roomy, 100 racks           6.4 to 8.4     3.1 to 5.4     1.5 to 2.5
    first verdict, roomy, 500 racks           7.3 to 10.5    3.3 to 6.7     1.9 to 4.3
    first verdict, fragmented                                               0.9 to 1.7
    first on a further shape                                                3.0 at most
    fragmented, once, 100 and 500 racks       6.3 to 20.0    0.2 to 2.7     2.9 at most
    fragmented, once, 10 racks, three sets    9.4, 9.5       9.2 to 10.0    0.5 at most

Where no setting lists the level, the first gang that asks for it pays for the sums: 2.4 to 3.2 ms
more. With a domain per node (5,000 domains, load average 13, before these changes) a first verdict
took 5 to 14 ms and a later one 5 to 10: all domains are sorted by their room.

A gang that nearly fits in each of 512 racks of two nodes took 150 to 165 ms in one step of a pass,
11 again (230 to 460 at a load average of 30): each rack is searched, and has a pool. Since a
verdict is left off after so much work (ADR 60) the longest of ten steps takes 18 to 28 ms, all of
them 160 to 200, and the verdict again 8.
"""

from __future__ import annotations

import gc
import sys
from itertools import product

from benchmarks.measuring import cpu_ms, spread
from mcad.core.capacity import LEFT_OFF, Capacity
from mcad.core.nodes.shape import Shape
from mcad.core.state.model import Node, Pod, PodPhase, PodSet, Topology
from mcad.core.state.records import replace
from mcad.core.state.refusal import Refusal
from mcad.core.state.settings import Settings

GI = 1 << 30
GPU = "nvidia.com/gpu"
RACK = "rack"
SHAPES = 20


def capacity(nodes: int, racks: int, *, fragmented: bool) -> Capacity:
    """Nodes in racks, with foreign pods."""
    found = Capacity(Settings(topology_levels=(RACK,)))
    amounts = (("cpu", 64_000), ("memory", 512 * GI), (GPU, 8), ("pods", 110))
    for number in range(nodes):
        name = f"n{number:05d}"
        labels = ((RACK, f"r{number % racks:03d}"), ("zone", f"z{number % 3}"))
        found.node_seen(Node(name, amounts, labels=labels))
        if fragmented or (number // racks) % 8:
            taken = (("cpu", 7_000), ("memory", 56 * GI), (GPU, 7 if fragmented else 8))
            found.pod_seen(Pod(f"p-{name}", "ns", name, name, PodPhase.RUNNING, taken))
    found.place_unplaced()
    return found


def sets(count: int, pods: int, number: int, *, required: bool) -> tuple[PodSet, ...]:
    """Pod sets of so many pods in sum, each in a domain of its own; every number is a shape."""
    asked = Topology((RACK,), required)
    return tuple(
        PodSet(
            item,
            0,
            "",
            max(1, pods // count),
            (("cpu", 4_000 + number), ("memory", (8 + item) * GI), (GPU, 8)),
            topology=asked,
        )
        for item in range(count)
    )


def _judge(books: Capacity, shape: Shape) -> None:
    books.refusal(shape)


def measure(nodes: int, racks: int, count: int, *, required: bool, fragmented: bool) -> str:
    """One line of the table."""
    books = capacity(nodes, racks, fragmented=fragmented)
    pods = max(count, nodes // racks // 10)
    shapes = [books.shape(sets(count, pods, n, required=required)) for n in range(SHAPES)]
    if fragmented:  # two pods of four GPUs would fit, and no node has four
        shapes = [
            books.shape(
                tuple(
                    replace(one, request=(*one.request[:2], (GPU, 4)))
                    for one in sets(count, pods, n, required=required)
                )
            )
            for n in range(SHAPES)
        ]
    for shape in shapes:
        books.remember(shape)
    first = cpu_ms(_judge, books, shapes[0])
    further = [cpu_ms(_judge, books, shape) for shape in shapes[1:]]
    later = []
    for number in range(SHAPES):
        books.pod_gone(f"p-n{nodes - 1 - number:05d}")
        later.append(cpu_ms(_judge, books, shapes[0]))
    fits = books.refusal(shapes[0]) is None
    figures = "  ".join(" / ".join(f"{n:.2f}" for n in spread(times)) for times in (further, later))
    return f"{first:8.2f}  {figures}  {'fits' if fits else 'refused'}"


def near_miss(racks: int) -> str:
    """A gang that has room in sum and for each set alone in each of the racks of two nodes, and in
    none for all: each is searched, with a pool of its own, in the steps of several passes."""
    books = Capacity(Settings(topology_levels=(RACK,)))
    for number in range(2 * racks):
        labels = ((RACK, f"r{number // 2:03d}"),)
        books.node_seen(Node(f"n{number:05d}", (("cpu", 4_000), ("pods", 110)), labels=labels))
    books.place_unplaced()
    asked = Topology((RACK,), group="g")
    shape = books.shape(
        (
            PodSet(0, 0, "", 2, (("cpu", 3_000),), topology=asked),
            PodSet(1, 0, "", 1, (("cpu", 2_000),), topology=asked),
        )
    )
    books.remember(shape)
    steps = []
    refusals: list[Refusal | None] = [LEFT_OFF]
    while refusals[-1] is LEFT_OFF:
        books.place_unplaced()
        steps.append(cpu_ms(lambda: refusals.append(books.refusal(shape))))
    again = cpu_ms(_judge, books, shape)
    title = f"{racks:5} racks of two nodes, near miss"
    return f"{title} {max(steps):8.2f} at most in {len(steps)} passes, again {again:.2f}"


def main() -> None:
    """Print the table."""
    gc.disable()
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    print("racks sets asked     state         first  further shapes  later")
    for racks, count, required, fragmented in product(
        (10, 100, 500), (1, 3), (True, False), (False, True)
    ):
        line = measure(nodes, racks, count, required=required, fragmented=fragmented)
        asked = "required" if required else "preferred"
        state = "fragmented" if fragmented else "roomy"
        print(f"{racks:5} {count:4} {asked:9} {state:11} {line}", flush=True)
    print(near_miss(512))


if __name__ == "__main__":
    main()
