"""Do gangs that need one rack get one, with the real kube-scheduler, and do racks stay empty?

    python -m benchmarks.real_racks [--gangs 600] [--set topologyLevels=...] [--tree PATH]
    python -m benchmarks.real_racks --full 0 --load 0.7 --runs 120 --mix equal     # empty racks
    python -m benchmarks.real_racks ... --required 0 --preferred 0                 # no topology

The gangs of ``real_gangs.py`` on 640 KWOK nodes of 8 GPUs and 96 CPUs, in 10 racks. Pods that stay
fill a part of the nodes (``--full``) and make racks scarce. Half of the gangs need all of their
pods in one rack, a quarter prefers it, and the others do not care; ``--load`` is of the GPUs that
are left. A pod of a gang outside of the rack that its AppWrapper's status names, or a gang that
needs one rack and names none, is an error: the exit code is 1. Beside that are counted the racks
without any pod, from the time when as many gangs run as shall, until the last one is submitted.

A trial: ``--nodes 40 --racks 4 --gangs 30 --full 0.4 --runs 10``. With fewer free nodes a gang of
four whole nodes may fit in no rack, and the run does not end.
"""

from __future__ import annotations

import argparse
import math
import os
from collections import defaultdict
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from benchmarks.cluster import LEASE_S, PATIENT, cluster
from benchmarks.gangs import GPU, GPUS, interval
from benchmarks.real_gangs import (
    PODS,
    Json,
    Played,
    bound_at,
    ended_at,
    parser,
    play,
    scheduler_config,
    seconds_of,
    told,
)
from mcad.api.labels import APPWRAPPER_UID, ATTEMPT
from mcad.api.topology import GROUP, PREFERRED, REQUIRED
from tests.controlplane.controlplane import ControlPlane
from tests.manifests import pod

RACK = "cloud.provider.com/topology-rack"
CPUS = 96
OPTIONS = {"lease_seconds": LEASE_S, "extra_args": {"kube-controller-manager": [PATIENT]}}

Attempt = tuple[str, str]
"""The uid of an AppWrapper, and the number of the attempt."""


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


def fill(plane: ControlPlane, args: argparse.Namespace) -> int:
    """Bind pods that stay to a part of the nodes; the GPUs that are left."""
    rng, left = Random(args.seed), args.nodes * GPUS
    for number in range(args.nodes):
        gpus = GPUS if rng.random() < args.full else rng.choice((0, 0, 2, 4)) if args.full else 0
        if not gpus:
            continue
        made = pod(f"stays-{number}", extended={GPU: str(gpus)})
        made["spec"]["nodeName"] = f"node-{number}"
        plane.ask("POST", PODS, made)
        left -= gpus
    return left


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


def main() -> None:
    """Fill racks, play the stream, and count; exit code 1 if a pod is outside of its rack."""
    flags = parser(__doc__, 640)
    flags.add_argument("--racks", type=int, default=10)
    flags.add_argument("--full", type=float, default=0.8, help="nodes without a free GPU")
    flags.add_argument("--required", type=float, default=0.5)
    flags.add_argument("--preferred", type=float, default=0.25)
    args = flags.parse_args()
    racks = Racks(args.nodes, args.racks)
    asks = Asks(args.required, args.preferred, args.seed)
    size = {"cpu": str(CPUS), "memory": "256Gi", "extended": {GPU: str(GPUS)}}
    options = {**OPTIONS, "scheduler": scheduler_config(args)}
    with cluster(args.nodes, options=options, labels=racks.labels, **size) as (plane, account):
        gpus = fill(plane, args)
        print(f"{gpus} of {args.nodes * GPUS} GPUs are free", flush=True)
        played = play(plane, account, args, gpus, asks)
    found = list(places(played, racks))
    bad, gathered = outside(found, asks.needs), together(found)
    empty = empty_racks(played, racks, 1.5 * args.runs)
    print(
        f"gangs that need a rack {len(asks.needs)}; pods outside of their rack {bad}; "
        f"gangs of several pods in one rack {interval(*gathered)}; "
        f"empty racks {empty:.1f} of {racks.count}; load {os.getloadavg()[0]:.1f}"
    )
    print(told(args, played, gpus))
    if bad:
        raise SystemExit("gate: pods are outside of their rack")


if __name__ == "__main__":
    main()
