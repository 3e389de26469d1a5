"""Process CPU time of the capacity half on synthetic clusters; the goals are those of the design.

``python -m benchmarks.bench_core_capacity [quick]`` prints a table. Times are the least of several
runs, in milliseconds. Before any figure, the books are checked. The clusters: five types of nodes,
random pods, about 20 placement constraints, gangs of one to three pod sets.

Measured on 30 November on two cores with other work (load 15), least / middle / most, milliseconds;
an event counts with its pass:

    100 shapes, 5,000 nodes: per dispatch                     0.08
    the same: a pod ends                                      0.25 / 0.38 / 1.1
    the same: all nodes rise                                  39 / 41 / 45
    fragmented, all nodes rise                                45 / 46 / 48
    a head and 2,333 workers, 1,000 nodes                     0.7 / 0.8 / 0.9
    10,000 distinct shapes, 1,000 nodes: first full pass      558
    the same, at the end of the row: all nodes rise           20
    10,000 distinct shapes, 5,000 nodes: per dispatch         0.11
    the same: a pod ends                                      0.59 / 2.1 / 25
    the same, at the end of the row: all nodes rise           55
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from random import Random
from time import process_time_ns

from benchmarks.measuring import cpu_ms
from mcad.core.capacity import Capacity
from mcad.core.nodes.resources import resources
from mcad.core.nodes.shape import Shape
from mcad.core.state.model import (
    Constraint,
    Node,
    Pod,
    PodPhase,
    PodSet,
    Resources,
    Taint,
    Toleration,
)
from mcad.core.state.records import replace
from mcad.core.state.settings import Settings

GI = 1 << 30
GPU = "nvidia.com/gpu"
DISPATCHES = 200

TYPES = [  # cpu, memory, gpu, label, taint, weight
    (64_000, 256 * GI, 0, "cpu", "", 50),
    (96_000, 384 * GI, 0, "big", "", 20),
    (96_000, 768 * GI, 8, "gpu8", "gpu", 20),
    (48_000, 192 * GI, 4, "gpu4", "gpu", 7),
    (32_000, 128 * GI, 0, "ctl", "control", 3),
]
SELECTORS = [(), (), (), (), ("zone", "z0"), ("zone", "z1"), ("pool", "big"), ("pool", "gpu8")]


class Cluster:
    """A cluster and its foreign pods, with a seed of its own."""

    def __init__(self, size: int, load: float, seed: int = 1) -> None:
        self.rnd = Random(seed)
        self.capacity = Capacity(Settings())
        self.nodes: list[Node] = []
        self.pods: list[Pod] = []
        for number in range(size):
            self.add_node(number, load)

    def add_node(self, number: int, load: float) -> None:
        rnd = self.rnd
        weights = [t[-1] for t in TYPES]
        which = rnd.choices(TYPES, weights)[0]
        cpu, memory, gpu, pool, taint, _ = which
        taints = [taint] if taint else []
        if rnd.random() < 0.1:
            taints.append(f"team{rnd.randrange(3)}")
        amounts = {"cpu": cpu, "memory": memory, GPU: gpu, "pods": 110}
        node = Node(
            f"n{number:05d}",
            resources(amounts),
            taints=tuple(Taint(t, "", "NoSchedule") for t in taints),
            labels=(("host", f"n{number}"), ("pool", pool), ("zone", f"z{number % 3}")),
        )
        self.nodes.append(node)
        self.capacity.node_seen(node)
        self._fill(node, cpu, memory, gpu, min(1.0, max(0.0, rnd.gauss(load, 0.12))))

    def _fill(self, node: Node, cpu: int, memory: int, gpu: int, share: float) -> None:
        left, target = cpu, int(cpu * (1 - share))
        for _ in range(40):
            size = self.rnd.choice((500, 1000, 2000, 4000, 8000))
            uses = size // 1000 * GI * self.rnd.choice((1, 2, 4)) // 2
            some = min(gpu, self.rnd.choice((0, 1, 1, 2)))
            if left - size < target or memory < uses:
                continue
            left, memory, gpu = left - size, memory - uses, gpu - some
            self.bind(node.name, resources({"cpu": size, "memory": uses, GPU: some}))

    def bind(self, node: str, request: Resources, workload: str = "") -> Pod:
        uid = f"p{len(self.pods)}"
        pod = Pod(uid, "ns", uid, node, PodPhase.RUNNING, request, workload=workload)
        self.pods.append(pod)
        self.capacity.pod_seen(pod)
        return pod

    def pod_ends(self) -> None:
        at = self.rnd.randrange(len(self.pods))
        self.pods[at], self.pods[-1] = self.pods[-1], self.pods[at]
        self.capacity.pod_gone(self.pods.pop().uid)


def pod_set(rnd: Random, item: int, scale: int, *, diverse: bool) -> PodSet:
    if diverse:
        cpu, memory = rnd.randrange(250, 32_000, 50), rnd.randrange(GI // 2, 128 * GI, 1 << 20)
    else:
        cpu = rnd.choice((1000, 2000, 4000, 8000, 16_000, 32_000))
        memory = cpu // 1000 * rnd.choice((2, 4, 8)) * GI
    gpu = rnd.choice((1, 1, 2, 4, 8)) if rnd.random() < 0.4 else 0
    selector = rnd.choice(SELECTORS[:6] if gpu else SELECTORS)
    tolerated = ["gpu"] if gpu else []
    if rnd.random() < 0.1:
        tolerated.append(f"team{rnd.randrange(3)}")
    where = Constraint(
        selector=(selector,) if selector else (),  # type: ignore[arg-type]
        tolerations=tuple(Toleration(t, "Exists", "", "") for t in tolerated),
    )
    replicas = max(1, int(rnd.paretovariate(0.9)) * scale % 2048)
    request = resources({"cpu": cpu, "memory": memory, GPU: gpu})
    return PodSet(item, 0, "", replicas, request, where)


def gangs(count: int, *, diverse: bool, scale: int = 1, seed: int = 2) -> list[tuple[PodSet, ...]]:
    rnd = Random(seed)
    found: dict[tuple[PodSet, ...], None] = {}
    while len(found) < count:
        sets = rnd.choice((1, 1, 2, 2, 3))
        found[tuple(pod_set(rnd, i, scale, diverse=diverse) for i in range(sets))] = None
    return list(found)


class Line:
    """The part of a dispatcher that matters here: refused shapes are asked when they wake."""

    def __init__(self, cluster: Cluster, sets: list[tuple[PodSet, ...]]) -> None:
        self.capacity = cluster.capacity
        self.waiting = {self.capacity.shape(each): (at, each) for at, each in enumerate(sets)}
        for shape in self.waiting:
            self.capacity.remember(shape)
        self.awake: dict[Shape, None] = dict.fromkeys(self.waiting)
        self.serial = 0

    def run(self, limit: int = DISPATCHES) -> int:
        """One pass over the shapes that are awake, in order; returns how many gangs went."""
        self.capacity.place_unplaced()
        self.awake.update(dict.fromkeys(self.capacity.take_requeued()))
        done = 0
        for shape in sorted(self.awake, key=lambda shape: self.waiting[shape][0]):
            while self.capacity.refusal(shape) is None:
                if done >= limit:
                    return done
                self.serial += 1
                sets = self.waiting[shape][1]
                refused = self.capacity.assume(f"w{self.serial}", 1, shape, sets)
                assert refused is None
                done += 1
            del self.awake[shape]
        return done

    def dispatch_all(self) -> int:
        total = 0
        while done := self.run():
            total += done
        return total


def measure(work: Callable[[], object], event: Callable[[], object], runs: int) -> list[float]:
    """The times of an event and the pass after it: what the one defers, the other has to do."""
    times = []
    for _ in range(runs):
        gc.collect()
        times.append(cpu_ms(lambda: (event(), work())))
    return sorted(times)


def show(what: str, times: list[float], goal: str = "") -> None:
    middle = times[len(times) // 2]
    print(f"{what:66s} {times[0]:9.2f} {middle:9.2f} {times[-1]:9.2f}   {goal}")


def all_change(cluster: Cluster, by: int) -> None:
    """Every node's allocatable changes a little, as after an upgrade of the kubelets."""
    for at, node in enumerate(cluster.nodes):
        cpu = dict(node.allocatable)["cpu"] + by
        has = resources({**dict(node.allocatable), "cpu": cpu})
        cluster.nodes[at] = replace(node, allocatable=has)
        cluster.capacity.node_seen(cluster.nodes[at])


def fragment(cluster: Cluster) -> None:
    """Half the nodes have CPUs and no memory left, the other half the reverse."""
    for at, node in enumerate(cluster.capacity.report.nodes()):
        free, rest = dict(node.free), {"cpu": 200, "memory": GI // 4}
        spoilt = "cpu" if at % 2 else "memory"
        cluster.bind(node.name, ((spoilt, max(0, free.get(spoilt, 0) - rest[spoilt])),))


def few_shapes(size: int, runs: int) -> None:
    cluster = Cluster(size, 0.9)
    line = Line(cluster, gangs(100, diverse=False, scale=4))
    start = process_time_ns()
    count = line.dispatch_all()
    per = (process_time_ns() - start) / 1e6 / max(1, count)
    cluster.capacity.check()
    print(f"\n100 shapes, {size} nodes, {len(cluster.pods)} pods; {count} gangs dispatched")
    show("per dispatch, until nothing fits", [per], "1 ms")
    show("a pod ends", measure(line.run, cluster.pod_ends, runs), "2 ms")
    line.dispatch_all()
    show("all nodes rise", measure(line.run, lambda: all_change(cluster, 1), 5), "50 ms")
    line.dispatch_all()
    cluster.capacity.check()


def fragmented(size: int) -> None:
    cluster = Cluster(size, 0.1)
    line = Line(cluster, gangs(100, diverse=False, scale=4))
    fragment(cluster)
    print(f"\nfragmented: half of {size} nodes without memory, half without CPU")
    line.dispatch_all()
    show("all nodes rise", measure(line.run, lambda: all_change(cluster, 1), 5), "50 ms")


def head_and_workers(size: int) -> None:
    """One large pod and as many small ones as just do not fit beside it: the exact search."""
    cluster = Cluster(size, 0.9)
    cpu = max(dict(node.free).get("cpu", 0) for node in cluster.capacity.report.nodes())
    head = PodSet(0, 0, "", 1, resources({"cpu": cpu // 4 * 3}))
    worker = PodSet(1, 0, "", 1, resources({"cpu": 2000, "memory": 4 * GI}))

    def refused(workers: int, index: int = 0) -> bool:
        sets = (head, replace(worker, replicas=workers, index=index))
        return cluster.capacity.refusal(cluster.capacity.shape(sets)) is not None

    least, most = 1, 1 << 20
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if refused(middle) else (middle, most)
    indices = iter(range(1, 100))
    print(f"\na head and {least} workers, {size} nodes")
    show(
        "it fits", measure(lambda: refused(least, next(indices)), lambda: None, 9), "3 ms at 1,000"
    )
    show("one worker more", measure(lambda: refused(most, next(indices)), lambda: None, 9))


def many_shapes(size: int, runs: int, count: int = 10_000) -> None:
    cluster = Cluster(size, 0.9)
    line = Line(cluster, gangs(count, diverse=True))
    print(f"\n{count} distinct shapes, {size} nodes")
    gc.collect()
    gc.freeze()  # as the process has it in these seconds (mcad/controller/gc_tuning.py)
    gc.disable()
    start = process_time_ns()
    done = line.run(limit=10**9)
    took = (process_time_ns() - start) / 1e6
    show(f"first full pass, {done} dispatches", [took], "500 ms at 1,000 nodes")
    show("the same, per dispatch", [took / max(1, done)], "1 ms")
    show("a pod ends", measure(line.run, cluster.pod_ends, runs), "10 ms at 5,000 nodes")
    show("all nodes rise", measure(line.run, lambda: all_change(cluster, 1), 3))
    gc.unfreeze()
    gc.enable()


def main() -> None:
    quick = "quick" in sys.argv
    print(f"{'ms of CPU':66s} {'least':>9s} {'middle':>9s} {'most':>9s}   goal")
    few_shapes(500 if quick else 5000, 8 if quick else 30)
    fragmented(500 if quick else 5000)
    for size in (200,) if quick else (1000, 5000):
        head_and_workers(size)
    many_shapes(200 if quick else 1000, 8 if quick else 30, 1000 if quick else 10_000)
    if not quick:
        many_shapes(5000, 30)


if __name__ == "__main__":
    main()
