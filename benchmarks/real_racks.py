"""Do gangs get the one rack that they need or prefer, with kube-scheduler, and do racks stay empty?

    python -m benchmarks.real_racks --nodes 160 --runs 40 --gangs 280
    python -m benchmarks.real_racks --required 0 --preferred 0 --set topologyLevels=...

A stream of gangs of 1 to 4 pods of 1, 2, 4 or 8 GPUs on KWOK nodes of 8 GPUs and 96 CPUs, in 10
racks, with a real control plane; ``--load`` is the part of the GPUs that they keep in use. Half of
the gangs need all of their pods in one rack, a quarter prefers it, and the others do not care.
Counted are the gangs in one rack, the GPUs in use, and the racks without any pod, from the time
when as many gangs run as shall, until the last one is submitted. A pod of a gang outside of the
rack that its AppWrapper's status names, or a gang that needs one rack and names none, is an error:
the exit code is 1.

A trial: ``--nodes 40 --racks 4 --gangs 30 --runs 10``.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from benchmarks.cluster import LEASE_S, PATIENT, PODS, cluster
from mcad.api.labels import APPWRAPPER_UID, ATTEMPT
from mcad.api.topology import GROUP, PREFERRED, REQUIRED
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.fleet import Bystander, Sight
from tests.e2e.process import Dispatcher
from tests.e2e.support import appwrappers_path, create, states
from tests.manifests import job, wrapper

Json = dict[str, Any]

CPUS, GPUS = 96, 8
"""What a node has."""
GPU = "nvidia.com/gpu"


RACK = "cloud.provider.com/topology-rack"
OPTIONS = {"lease_seconds": LEASE_S, "extra_args": {"kube-controller-manager": [PATIENT]}}

Attempt = tuple[str, str]
"""The uid of an AppWrapper, and the number of the attempt."""


RUNS_S = 20
PLACEMENT_S = 5


def manifest(name: str, rng: Random, seconds: int) -> Json:
    """The AppWrapper of a gang, in MCAD's dialect."""
    gpus = rng.choice((1, 2, 4, 8))
    one = job(f"{name}-0", rng.randint(1, 4), str(gpus), seconds)
    resources = one["spec"]["template"]["spec"]["containers"][0]["resources"]
    resources["requests"][GPU] = str(gpus)
    resources["limits"] = {GPU: str(gpus)}
    item = {"generictemplate": one, "completionstatus": "Complete"}
    made = wrapper(name, {"resources": {"GenericItems": [item]}})
    made["metadata"]["namespace"] = "default"
    return made


MEAN_GPUS = 2.5 * (1 + 2 + 4 + 8) / 4
"""Of a gang."""


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


class Played(NamedTuple):
    """What was seen of a stream: statuses and pods, when it began, and for how many seconds gangs
    were submitted."""

    appwrappers: list[Sight]
    pods: list[Sight]
    begun: float
    submitted_s: float


def play(plane: ControlPlane, account: Path, args: argparse.Namespace, change: Change) -> Played:
    """Run a dispatcher, and gangs that keep a part of the GPUs in use, until all have ended."""
    watched = [Bystander(plane, path) for path in (appwrappers_path(), PODS)]
    settings = [f"placementTimeout={PLACEMENT_S}", *args.set]
    flags = [flag for one in settings for flag in ("--set", one)]
    with Dispatcher(plane, account, *flags):
        at, begun = time.time(), time.monotonic()
        submit(plane, args, watched, change)
        submitted = time.monotonic() - begun
        plane.wait_for(lambda: _have_ended(plane, watched), 1800, "the end of all")
    appwrappers, pods = (one.sights() for one in watched)
    return Played(appwrappers, pods, at, submitted)


def submit(
    plane: ControlPlane, args: argparse.Namespace, watched: list[Bystander], change: Change
) -> None:
    """So many gangs, at the rate that keeps this part of the GPUs in use; what is watched stays
    so."""
    rng = Random(1)
    rate = args.load * args.nodes * GPUS / (MEAN_GPUS * args.runs)
    due = time.monotonic()
    for number in range(args.gangs):
        due += rng.expovariate(rate)
        time.sleep(max(0.0, due - time.monotonic()))
        seconds = rng.randint(args.runs // 2, args.runs * 3 // 2)
        made = manifest(f"gang-{number:04}", rng, seconds)
        change(made)
        create(plane, made)
        for one in watched if number % 20 == 0 else ():
            one.resume()


def _have_ended(plane: ControlPlane, watched: list[Bystander]) -> bool:
    for one in watched:
        one.resume()
    return set(states(plane).values()) <= {"Completed"}


def in_use(played: Played, gpus: int) -> float:
    """The part of the GPUs that pods had, while gangs were submitted."""
    last = {one.uid: one.object for one in played.pods}
    used = sum(
        _gpus(pod) * (ended_at(pod) - bound_at(pod))
        for pod in last.values()
        if ended_at(pod) < math.inf and bound_at(pod) < math.inf
    )
    return used / (gpus * played.submitted_s)


class Racks:
    """Which node is in which rack."""

    def __init__(self, nodes: int, racks: int) -> None:
        self._size = math.ceil(nodes / racks)
        self.count = racks

    def labels(self, number: int) -> dict[str, str]:
        """Of a node."""
        return {RACK: f"rack-{number // self._size}"}

    def of(self, node: str) -> str:
        """Of a node by its name."""
        return self.labels(int(node.removeprefix("node-")))[RACK]


class Asks:
    """Lets gangs ask for a rack, so many of them."""

    def __init__(self, required: float, preferred: float, seed: int) -> None:
        self._shares = required, preferred
        self._rng = Random(seed)
        self.needs: set[str] = set()
        """The names of those that need one."""

    def __call__(self, manifest: Json) -> None:
        """Annotate all parts of a gang; they share one rack."""
        (required, preferred), dice = self._shares, self._rng.random()
        if dice >= required + preferred:
            return
        if dice < required:
            self.needs.add(manifest["metadata"]["name"])
        notes = {REQUIRED if dice < required else PREFERRED: RACK, GROUP: "gang"}
        for item in manifest["spec"]["resources"]["GenericItems"]:
            item["generictemplate"]["spec"]["template"]["metadata"] = {"annotations": notes}


class Where(NamedTuple):
    """Where the pods of one attempt were bound: the racks, by pod."""

    name: str
    domains: set[str]
    racks: list[str]


def places(played: Played, racks: Racks) -> Iterator[Where]:
    """Of every attempt with bound pods."""
    bound: dict[Attempt, dict[str, str]] = defaultdict(dict)
    for one in played.pods:
        labels = one.object["metadata"].get("labels", {})
        if node := one.object["spec"].get("nodeName"):
            attempt = labels.get(APPWRAPPER_UID, ""), labels.get(ATTEMPT, "")
            bound[attempt][one.uid] = racks.of(node)
    chosen: dict[Attempt, tuple[str, set[str]]] = {}
    for one in played.appwrappers:
        if record := one.object.get("status", {}).get("dispatch"):
            attempt = one.uid, str(record["attempt"])
            _, domains = chosen.setdefault(attempt, (one.name, set()))
            domains.update(each["value"] for each in record.get("domains", []))
    for attempt, (name, domains) in chosen.items():
        yield Where(name, domains, list(bound[attempt].values()))


def outside(found: list[Where], needs: set[str]) -> int:
    """Pods that are not where they have to be."""
    return sum(
        rack not in one.domains
        for one in found
        if one.domains or one.name in needs
        for rack in one.racks
    ) + sum(len(one.domains) > 1 for one in found)


def together(found: list[Where]) -> tuple[int, int]:
    """Of the attempts with several pods, how many have all of them in one rack."""
    several = [one for one in found if len(one.racks) > 1]
    return sum(len(set(one.racks)) == 1 for one in several), len(several)


def empty_racks(played: Played, racks: Racks, settled_s: float) -> float:
    """How many racks have no pod of a gang, at the mean of the seconds in which gangs are
    submitted, but for the first ones."""
    spans: dict[str, tuple[str, float, float]] = {}
    for one in played.pods:
        if (node := one.object["spec"].get("nodeName")) and bound_at(one.object) < math.inf:
            spans[one.uid] = racks.of(node), bound_at(one.object), _left_at(one.object)
    seconds = [played.begun + n for n in range(int(settled_s), int(played.submitted_s))]
    busy = sum(len({one[0] for one in spans.values() if one[1] <= at < one[2]}) for at in seconds)
    return racks.count - busy / len(seconds) if seconds else math.nan


def _left_at(obj: Json) -> float:
    """When a pod ended or was deleted."""
    deleted = obj["metadata"].get("deletionTimestamp")
    return min(ended_at(obj), seconds_of(deleted) if deleted else math.inf)


def parser() -> argparse.ArgumentParser:
    """The flags."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--load", type=float, default=0.7)
    made.add_argument("--gangs", type=int, default=1000)
    made.add_argument("--nodes", type=int, default=640)
    made.add_argument("--runs", type=int, default=RUNS_S, help="seconds, at the mean")
    made.add_argument("--score-all", action="store_true", help="kube-scheduler scores all nodes")
    made.add_argument("--set", action="append", default=[])
    made.add_argument("--racks", type=int, default=10)
    made.add_argument("--required", type=float, default=0.5)
    made.add_argument("--preferred", type=float, default=0.25)
    return made


def main() -> None:
    """Fill racks, play the stream, and count; exit code 1 if a pod is outside of its rack."""
    args = parser().parse_args()
    racks = Racks(args.nodes, args.racks)
    asks = Asks(args.required, args.preferred, seed=1)
    size = {"cpu": str(CPUS), "memory": "256Gi", "extended": {GPU: str(GPUS)}}
    scheduler = {"percentageOfNodesToScore": 100} if args.score_all else {}
    options = {**OPTIONS, "scheduler": scheduler}
    with cluster(args.nodes, options=options, labels=racks.labels, **size) as (plane, account):
        played = play(plane, account, args, asks)
    found = list(places(played, racks))
    bad, (gathered, several) = outside(found, asks.needs), together(found)
    empty = empty_racks(played, racks, 1.5 * args.runs)
    print(
        f"gangs that need a rack {len(asks.needs)}; pods outside of their rack {bad}; "
        f"gangs of several pods in one rack {gathered} of {several}; "
        f"empty racks {empty:.1f} of {racks.count}; "
        f"GPUs in use {in_use(played, args.nodes * GPUS):.0%}; load {os.getloadavg()[0]:.1f}"
    )
    if bad:
        raise SystemExit("gate: pods are outside of their rack")


if __name__ == "__main__":
    main()
