"""Do gangs bind as they were planned, on a real control plane with the real kube-scheduler?

    python -m benchmarks.real_gangs [--mix mixed] [--load 0.9] [--gangs 1000] [--tree PATH]
        [--most-allocated]

A stream of gangs (``benchmarks/gangs.py``) on 100 KWOK nodes of 8 GPUs. A gang runs for 20 s at the
mean; it is taken back after 5 s without nodes. Counted are the dispatches, those that were taken
back because pods found no node, and those whose last pod was bound later than ``LATE_S`` after the
dispatch; beside them the GPUs in use. ``--tree`` runs the dispatcher of another checkout, to
compare; ``--set`` is for the dispatcher. A run takes five minutes and most of two cores.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from benchmarks.cluster import cluster
from benchmarks.gangs import CPUS, GPU, GPUS, MIXES, Gang, drawn, interval
from mcad.api.labels import APPWRAPPER_UID, ATTEMPT
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.fleet import Bystander, Sight
from tests.e2e.process import Dispatcher
from tests.e2e.support import appwrappers_path, create, states
from tests.manifests import job, wrapper

Json = dict[str, Any]

RUNS_S = 20
PLACEMENT_S = 5
LATE_S = 3.0
PODS = "/api/v1/namespaces/default/pods"


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
    """Of the dispatches: those whose pods were taken back, and those that were bound late; and the
    GPU seconds of all pods that were bound."""

    dispatches: int
    taken_back: int
    late: int
    gpu_seconds: float


def outcome(appwrappers: list[Sight], pods: list[Sight]) -> Outcome:
    """From the statuses, the bindings and the ends that a bystander saw."""
    began: dict[tuple[str, str], float] = {}
    for one in appwrappers:
        record = one.object.get("status", {}).get("dispatch", {})
        if record.get("confirmTime"):
            began.setdefault((one.uid, str(record["attempt"])), seconds_of(record["confirmTime"]))
    bound: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    ended: dict[str, float] = {}
    gpus: dict[str, int] = {}
    for one in pods:
        labels = one.object["metadata"].get("labels", {})
        attempt = labels.get(APPWRAPPER_UID, ""), labels.get(ATTEMPT, "")
        bound[attempt][one.uid] = bound_at(one.object)
        gpus[one.uid] = _gpus(one.object)
        if (at := ended_at(one.object)) != math.inf:
            ended[one.uid] = at
    last = {attempt: max(times.values()) for attempt, times in bound.items()}
    waits = [last.get(attempt, math.inf) - at for attempt, at in began.items()]
    stranded = sum(wait == math.inf for wait in waits)
    # Every AppWrapper has completed, so its last attempt was bound. An attempt that was not seen
    # bound and is the last one is a gap of the watch, and no figure.
    again = len(began) - len({uid for uid, _ in began})
    if stranded != again:
        raise SystemExit(f"gate: {stranded} attempts were not seen bound, {again} were repeated")
    used = sum(
        gpus[uid] * (ended[uid] - at)
        for times in bound.values()
        for uid, at in times.items()
        if uid in ended and at != math.inf
    )
    return Outcome(len(began), stranded, sum(LATE_S < wait < math.inf for wait in waits), used)


def bound_at(pod: Json) -> float:
    """When it was bound, never if that is not so."""
    for each in pod["status"].get("conditions", []):
        if (each["type"], each["status"]) == ("PodScheduled", "True"):
            return seconds_of(each["lastTransitionTime"])
    return math.inf


def ended_at(pod: Json) -> float:
    """When its container ended, never if that is not so."""
    for each in pod["status"].get("containerStatuses", []):
        if "terminated" in each.get("state", {}):
            return seconds_of(each["state"]["terminated"]["finishedAt"])
    return math.inf


def _gpus(pod: Json) -> int:
    requests = (one["resources"].get("requests", {}) for one in pod["spec"]["containers"])
    return sum(int(one.get(GPU, 0)) for one in requests)


def seconds_of(at: str) -> float:
    """Since the epoch."""
    return datetime.fromisoformat(at).timestamp()


Change = Callable[[Json], None]
"""Made to a manifest before it is submitted."""


def as_it_is(_: Json) -> None:
    """No change."""


class Played(NamedTuple):
    """What was seen of a stream: statuses and pods, when it began, and for how many seconds gangs
    were submitted, and until all had ended."""

    appwrappers: list[Sight]
    pods: list[Sight]
    begun: float
    submitted_s: float
    lasted_s: float


def play(
    plane: ControlPlane,
    account: Path,
    args: argparse.Namespace,
    gpus: int,
    change: Change = as_it_is,
) -> Played:
    """Run a dispatcher, and gangs that keep a part of so many GPUs in use, until all have ended."""
    watched = [Bystander(plane, path) for path in (appwrappers_path(), PODS)]
    env = {"PYTHONPATH": args.tree} if args.tree else None
    settings = [f"placementTimeout={PLACEMENT_S}", *args.set]
    flags = [flag for one in settings for flag in ("--set", one)]
    flags += ["--journal", args.journal] if args.journal else []
    with Dispatcher(plane, account, *flags, env=env):
        at, begun = time.time(), time.monotonic()
        submit(plane, args, gpus, watched, change)
        submitted = time.monotonic() - begun
        plane.wait_for(lambda: _have_ended(plane, watched), 1800, "the end of all")
        lasted = time.monotonic() - begun
    appwrappers, pods = (one.sights() for one in watched)
    return Played(appwrappers, pods, at, submitted, lasted)


def submit(
    plane: ControlPlane,
    args: argparse.Namespace,
    gpus: int,
    watched: list[Bystander],
    change: Change,
) -> None:
    """So many gangs, at the rate that keeps this part of the GPUs in use; what is watched stays
    so."""
    rng = Random(args.seed)
    gangs = [drawn(args.mix, rng) for _ in range(args.gangs)]
    mean = sum(gang.gpus for gang in gangs) / len(gangs)
    rate = args.load * gpus / (mean * args.runs)
    due, burst = time.monotonic(), MIXES[args.mix].burst
    for number, gang in enumerate(gangs):
        due += rng.expovariate(rate / burst) if number % burst == 0 else 0
        time.sleep(max(0.0, due - time.monotonic()))
        seconds = rng.randint(args.runs // 2, args.runs * 3 // 2)
        made = manifest(f"gang-{number:04}", gang, seconds)
        change(made)
        create(plane, made)
        for one in watched if number % 20 == 0 else ():
            one.resume()


def _have_ended(plane: ControlPlane, watched: list[Bystander]) -> bool:
    for one in watched:
        one.resume()
    return set(states(plane).values()) <= {"Completed"}


def told(args: argparse.Namespace, played: Played, gpus: int) -> str:
    """A line for people."""
    found = outcome(played.appwrappers, played.pods)
    use = found.gpu_seconds / (gpus * played.submitted_s)
    return (
        f"{args.mix} {args.load}: dispatches {found.dispatches}, submitted in "
        f"{played.submitted_s:.0f} s, over in {played.lasted_s:.0f} s; "
        f"taken back {interval(found.taken_back, found.dispatches)}, "
        f"late {interval(found.late, found.dispatches)}, GPUs in use {use:.0%}"
    )


def parser(about: str | None, nodes: int) -> argparse.ArgumentParser:
    """The flags of every stream of gangs."""
    made = argparse.ArgumentParser(description=about)
    made.add_argument("--mix", choices=MIXES, default="mixed")
    made.add_argument("--load", type=float, default=0.9)
    made.add_argument("--gangs", type=int, default=1000)
    made.add_argument("--nodes", type=int, default=nodes)
    made.add_argument("--runs", type=int, default=RUNS_S, help="seconds, at the mean")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--tree", default="")
    made.add_argument("--most-allocated", action="store_true", help="kube-scheduler fills nodes")
    made.add_argument("--score-all", action="store_true", help="kube-scheduler scores all nodes")
    made.add_argument("--set", action="append", default=[])
    made.add_argument("--journal", default="", help="folder; see benchmarks/binding_waits.py")
    return made


def scheduler_config(args: argparse.Namespace) -> Json:
    """The fields of a KubeSchedulerConfiguration that the flags ask for."""
    fields: Json = {"percentageOfNodesToScore": 100} if args.score_all else {}
    if args.most_allocated:
        resources = [{"name": name, "weight": 1} for name in ("cpu", "memory")]
        scoring = {"type": "MostAllocated", "resources": resources}
        fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": scoring}}
        fields["profiles"] = [{"schedulerName": "default-scheduler", "pluginConfig": [fit]}]
    return fields


def main() -> None:
    """Submit, wait until all have ended, and count."""
    args = parser(__doc__, 100).parse_args()
    size, gpus = {"cpu": str(CPUS), "memory": "64Gi"}, args.nodes * GPUS
    options = {"scheduler": scheduler_config(args)}
    with cluster(args.nodes, options=options, extended={GPU: str(GPUS)}, **size) as made:
        plane, account = made
        played = play(plane, account, args, gpus)
    print(told(args, played, gpus))


if __name__ == "__main__":
    main()
