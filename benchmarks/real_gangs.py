"""Do gangs bind as they were planned, on a real control plane with the real kube-scheduler?

    python -m benchmarks.real_gangs [--mix mixed] [--load 0.9] [--gangs 300] [--tree PATH]

A stream of gangs on KWOK nodes of 8 GPUs. Counted are the dispatches, those that were taken back
because pods found no node, and those whose last pod was bound later than ``LATE_S`` after the
dispatch. ``--tree`` runs the dispatcher of another checkout, to compare. The mixes:

- equal: 1 to 4 pods of 1, 2, 4 or 8 GPUs
- mixed: in 3 of 10 gangs one pod of 1 GPU, created first, and 1 to 4 pods of 8
- ray: in 3 of 10 gangs a head of 12 CPUs without a GPU, created first, and 1 to 4 pods of 8 GPUs

Measured once, on 2 busy cores, before pods of a gang left each other their nodes (ADR 48): mixed,
load 0.9, 50 nodes, 300 dispatches: none taken back, 1 late. The real kube-scheduler is kinder than
models of it, so thousands of gangs are needed to see a difference.
"""

from __future__ import annotations

import argparse
import math
import time
from datetime import datetime
from random import Random
from typing import Any, NamedTuple

from benchmarks.cluster import cluster
from mcad.api.labels import APPWRAPPER_UID, ATTEMPT
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.fleet import Bystander, Sight
from tests.e2e.process import Dispatcher
from tests.e2e.support import appwrappers_path, create, states
from tests.manifests import job, wrapper

Json = dict[str, Any]

CPUS, GPUS = 32, 8
RUNS_S = 20
PLACEMENT_S = 30
LATE_S = 3.0
GPU = "nvidia.com/gpu"
PODS = "/api/v1/namespaces/default/pods"


class Gang(NamedTuple):
    """(pods, CPUs, GPUs) of each Job, in the order of creation."""

    parts: tuple[tuple[int, int, int], ...]

    @property
    def gpus(self) -> int:
        """In all."""
        return sum(pods * gpus for pods, _, gpus in self.parts)


def drawn(mix: str, rng: Random) -> Gang:
    """One gang of a mix."""
    if mix != "equal" and rng.random() < 0.3:
        small = (1, 12, 0) if mix == "ray" else (1, 1, 1)
        return Gang((small, (rng.randint(1, 4), 4, GPUS)))
    gpus = rng.choice((1, 2, 4, 8))
    return Gang(((rng.randint(1, 4), gpus, gpus),))


def manifest(name: str, gang: Gang, seconds: int) -> Json:
    """Its AppWrapper, in MCAD's dialect: a Job for each part."""
    items: list[Json] = []
    for number, (pods, cpus, gpus) in enumerate(gang.parts):
        one = job(f"{name}-{number}", pods, str(cpus), seconds)
        resources = one["spec"]["template"]["spec"]["containers"][0]["resources"]
        if gpus:
            resources["requests"][GPU] = str(gpus)
            resources["limits"] = {GPU: str(gpus)}
        items.append({"generictemplate": one, "completionstatus": "Complete"})
    made = wrapper(name, {"resources": {"GenericItems": items}})
    made["metadata"]["namespace"] = "default"
    return made


class Outcome(NamedTuple):
    """Of the dispatches: those whose pods were taken back, and those that were bound late."""

    dispatches: int
    taken_back: int
    late: int


def outcome(appwrappers: list[Sight], pods: list[Sight]) -> Outcome:
    """From the statuses and the bindings that a bystander saw."""
    began: dict[tuple[str, str], float] = {}
    for one in appwrappers:
        record = one.object.get("status", {}).get("dispatch", {})
        if record.get("confirmTime"):
            began.setdefault((one.uid, str(record["attempt"])), _seconds(record["confirmTime"]))
    bound: dict[tuple[str, str], dict[str, float]] = {}
    for one in pods:
        conditions = one.object.get("status", {}).get("conditions", [])
        times = [
            _seconds(each["lastTransitionTime"])
            for each in conditions
            if (each["type"], each["status"]) == ("PodScheduled", "True")
        ]
        labels = one.object["metadata"].get("labels", {})
        attempt = labels.get(APPWRAPPER_UID, ""), labels.get(ATTEMPT, "")
        bound.setdefault(attempt, {})[one.uid] = times[0] if times else math.inf
    last = {attempt: max(times.values()) for attempt, times in bound.items()}
    waits = [last.get(attempt, math.inf) - at for attempt, at in began.items()]
    stranded = sum(wait == math.inf for wait in waits)
    return Outcome(len(began), stranded, sum(LATE_S < wait < math.inf for wait in waits))


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


def submit(plane: ControlPlane, args: argparse.Namespace, rng: Random) -> None:
    """So many gangs, at the rate that keeps this part of the GPUs in use."""
    gangs = [drawn(args.mix, rng) for _ in range(args.gangs)]
    mean = sum(gang.gpus for gang in gangs) / len(gangs)
    rate = args.load * args.nodes * GPUS / (mean * RUNS_S)
    due = time.monotonic()
    for number, gang in enumerate(gangs):
        due += rng.expovariate(rate)
        time.sleep(max(0.0, due - time.monotonic()))
        seconds = rng.randint(RUNS_S // 2, RUNS_S * 3 // 2)
        create(plane, manifest(f"gang-{number:04}", gang, seconds))


def main() -> None:
    """Submit, wait until all have ended, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mix", choices=("equal", "mixed", "ray"), default="mixed")
    parser.add_argument("--load", type=float, default=0.9)
    parser.add_argument("--gangs", type=int, default=300)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tree", default="")
    args = parser.parse_args()
    rng, size = Random(args.seed), {"cpu": str(CPUS), "memory": "64Gi"}
    with cluster(args.nodes, extended={GPU: str(GPUS)}, **size) as (plane, account):
        seen, pods = (Bystander(plane, path) for path in (appwrappers_path(), PODS))
        env = {"PYTHONPATH": args.tree} if args.tree else None
        with Dispatcher(plane, account, "--set", f"placementTimeout={PLACEMENT_S}", env=env):
            begun = time.monotonic()
            submit(plane, args, rng)
            ended = {"Completed", "Failed"}
            plane.wait_for(lambda: ended >= set(states(plane).values()), 1800, "the end of all")
            lasted = time.monotonic() - begun
        found = outcome(seen.sights(), pods.sights())
    percent = 100 / max(1, found.dispatches)
    print(f"{args.mix} {args.load}: dispatches {found.dispatches} in {lasted:.0f} s", end="  ")
    print(f"taken back {found.taken_back} ({found.taken_back * percent:.1f} %)", end="  ")
    print(f"late {found.late} ({found.late * percent:.1f} %)")


if __name__ == "__main__":
    main()
