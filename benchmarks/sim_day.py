"""A day of a busy cluster in virtual time: how fast is the simulator with the dispatcher on it?

10,000 AppWrappers arrive over 24 hours (a Poisson process) at 100 nodes of 32 CPUs: gangs of 1 to 4
pods in a Job, of 1 to 16 CPUs each, that run from 1 minute to 2 hours, so that about 85 % of the
CPUs are in use and gangs wait for one another. The same controller code as in production, every
write through the simulated API server, every pod through its scheduler and kubelets.

    python -m benchmarks.sim_day [--appwrappers N] [--nodes N] [--seed N]

A figure is printed only after the gate: every AppWrapper is Completed, none was created twice,
and no node was ever given more than it has.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

from mcad.api.config import Config
from mcad.cli.demo_cluster.cluster import dispatching, embedded_cluster
from mcad.core.state.quantity import amount
from mcad.kube.client import Client
from mcad.kube.kinds import APPWRAPPERS
from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.cluster import Cluster
from mcad.sim.store import Change

Json = dict[str, Any]

DAY_S = 24 * 3600
NODE_CPUS = 32
LOAD = 0.85
PATIENCE_S = 2 * DAY_S  # of virtual time, until the last one must be done
NAMESPACE = "default"
SELDOM = {"leaseDuration": 3600, "renewDeadline": 2400, "retryPeriod": 1200}
"""A renewal every two seconds would be most of the writes, and none of the queue's."""


@dataclass(frozen=True, slots=True)
class Job:
    """One AppWrapper."""

    at_s: float
    pods: int
    cpus: int
    run_s: int


def day(count: int, nodes: int, rng: Random) -> list[Job]:
    """The arrivals, scaled so that the work is ``LOAD`` of what the nodes can do in a day."""
    jobs = []
    for _ in range(count):
        pods, cpus = rng.randint(1, 4), rng.choice((1, 2, 4, 8, 16))
        jobs.append(Job(rng.uniform(0, DAY_S), pods, cpus, round(60 * 120 ** rng.random())))
    work = sum(job.pods * job.cpus * job.run_s for job in jobs)
    scale = LOAD * nodes * NODE_CPUS * DAY_S / work
    return sorted(
        (Job(j.at_s, j.pods, j.cpus, max(1, round(j.run_s * scale))) for j in jobs),
        key=lambda job: job.at_s,
    )


def appwrapper(number: int, job: Job) -> Json:
    """A Job of equal pods that sleep."""
    container = {
        "name": "work",
        "image": "busybox",
        "command": ["sleep", str(job.run_s)],
        "resources": {"requests": {"cpu": str(job.cpus), "memory": "1Gi"}},
    }
    template = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"job-{number}"},
        "spec": {
            "parallelism": job.pods,
            "completions": job.pods,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }
    item = {"generictemplate": template, "completionstatus": "Complete"}
    return {
        "apiVersion": APPWRAPPERS.api_version,
        "kind": APPWRAPPERS.kind,
        "metadata": {"name": f"aw-{number}", "namespace": NAMESPACE},
        "spec": {"resources": {"GenericItems": [item]}},
    }


class Auditor:
    """Watches the store from outside: the created AppWrappers, and what every node carries."""

    def __init__(self, cluster: Cluster) -> None:
        self.created: Counter[str] = Counter()
        self.peak_cpu = 0
        self._used: Counter[str] = Counter()
        self._bound: dict[str, tuple[str, int]] = {}
        store = cluster.registry.store
        store.listen(("", "pods"), self._pod)
        store.listen(("batch", "jobs"), self._job)

    def _job(self, change: Change) -> None:
        self.created[change.key[1]] += change.type == "ADDED"

    def _pod(self, change: Change) -> None:
        pod = change.obj
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
        over = change.type == "DELETED" or pod["status"].get("phase") in {"Succeeded", "Failed"}
        if node and not over and uid not in self._bound:
            cpu = amount("cpu", pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])
            self._bound[uid] = (node, cpu)
            self._used[node] += cpu
            assert self._used[node] <= NODE_CPUS * 1000, f"{node} is overcommitted"
            self.peak_cpu = max(self.peak_cpu, sum(self._used.values()))
        elif over and uid in self._bound:
            node, cpu = self._bound.pop(uid)
            self._used[node] -= cpu


async def live_through(jobs: list[Job], nodes: int, seed: int) -> Counter[str]:
    """The day; the result counts what happened."""
    rng = Random(seed)
    clock = VirtualClock()
    async with embedded_cluster(clock, rng) as cluster:
        for number in range(nodes):
            cluster.add_node(f"node-{number}", cpu=str(NODE_CPUS), memory="256Gi")
        auditor = Auditor(cluster)
        # The scheduler may spread what was dispatched together otherwise than it was planned, and a
        # large pod then waits for the next empty node. Here that is no reason to begin again.
        patient = Config(placementTimeout=0, leaderElection=SELDOM)
        async with dispatching(cluster, patient, Random(seed + 1)) as client:
            begun = clock.monotonic()
            for number, job in enumerate(jobs):
                await clock.sleep(begun + job.at_s - clock.monotonic())
                await client.create(APPWRAPPERS, NAMESPACE, appwrapper(number, job))
            states = await _until_all_done(client, cluster)
            took_s = clock.monotonic() - begun
        assert states == {"Completed": len(jobs)}, states
        assert set(auditor.created.values()) == {1}
        assert len(auditor.created) == len(jobs)
        return Counter(
            pods=sum(job.pods for job in jobs),
            writes=cluster.registry.store.version,
            virtual_s=round(took_s),
            peak_cpu=auditor.peak_cpu // 1000,
        )


async def _until_all_done(client: Client, cluster: Cluster) -> Counter[str]:
    clock = client.clock
    until = clock.monotonic() + PATIENCE_S
    while True:
        states = Counter(
            (obj.get("status") or {}).get("state", "")
            for _, obj in cluster.registry.store.items((APPWRAPPERS.group, APPWRAPPERS.plural))
        )
        if not states["Pending"] and not states["Running"] and not states[""]:
            return states
        assert clock.monotonic() < until, states
        await clock.sleep(600)


def main() -> None:
    """Print the figures of one run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--appwrappers", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    jobs = day(args.appwrappers, args.nodes, Random(args.seed))
    wall, cpu = time.perf_counter(), time.process_time()
    counted = run_virtually(live_through(jobs, args.nodes, args.seed))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{args.appwrappers} AppWrappers, {counted['pods']} pods, {args.nodes} nodes:"
        f" {counted['virtual_s'] / 3600:.1f} h of virtual time in {cpu:.1f} s CPU"
        f" ({wall:.1f} s wall), {counted['writes']} writes,"
        f" {cpu / counted['writes'] * 1e6:.0f} us a write, peak memory {peak_mb:.0f} MB,"
        f" at most {counted['peak_cpu']} of {args.nodes * NODE_CPUS} CPUs in use"
    )


if __name__ == "__main__":
    main()
