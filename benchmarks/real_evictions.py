"""Do evictions come to something on a real control plane, with the real kube-scheduler?

``python -m benchmarks.real_evictions --appwrappers 2000``: two teams with half of the quota each,
20 nodes, one AppWrapper in twenty a gang, one in ten of a higher priority, a third of the pods of a
grace period (``--graces``) that they use up to its end. One team has the whole cluster first; the
other one comes later. KWOK plays the kubelets. Reported are

- the evictions, and those whose preemptor did not have its pods on nodes within ten minutes;
- the longest time between two dispatches, with what was idle in it of the quota and of the nodes,
  while AppWrappers waited.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

from benchmarks.cluster import cluster
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.fleet import Bystander, Sight
from tests.e2e.process import ACCOUNT, NAMESPACE, Dispatcher, mcad
from tests.e2e.support import appwrappers_path, create, states
from tests.manifests import components, job, pod, subtree

Json = dict[str, Any]

NODES, CPUS, QUOTA = 20, 8, 128
PODS = "/api/v1/namespaces/default/pods"
TREE = "teams"
IN_VAIN_S = 600.0
ENDED = {"Completed", "Succeeded", "Failed"}
SETTINGS = ("quotaEnabled=true", "preemption=true", "minRunTime=0")


class Eviction(NamedTuple):
    """Of one victim, for one preemptor."""

    victim: str
    at: float
    preemptor: str


class Spell(NamedTuple):
    """Something held or waited, in seconds since the epoch; ``end`` may be infinite."""

    start: float
    end: float
    cpus: float = 0.0


def manifest(number: int, rng: Random, team: str, graces: Sequence[int]) -> Json:
    """A pod, or a gang; with a priority, or without."""
    name, seconds = f"{team}-{number:04}", rng.choice((5, 10, 20, 30))
    if rng.random() < 0.05:
        template = job(name, rng.randint(4, 10), rng.choice(("2", "4")), seconds)
        made = template["spec"]["template"]
    else:
        made = template = pod(name, rng.choice(("1", "2", "4")), seconds)
    if rng.random() < 1 / 3:
        made["spec"]["terminationGracePeriodSeconds"] = rng.choice(graces)
        notes = {"controlplane.test/lingers": "true"}
        made["metadata"] = made.get("metadata", {}) | {"annotations": notes}
    priority = rng.choice((5, 9)) if rng.random() < 0.1 else 0
    whole = components(name, template, priority=priority)
    whole["metadata"] |= {"namespace": "default", "labels": {TREE: team}}
    return whole


def submit_all(plane: ControlPlane, count: int, rng: Random, graces: Sequence[int]) -> None:
    """First red alone, then both by turns, in bursts."""
    for number in range(count):
        team = "red" if number < count // 4 else rng.choice(("red", "blue"))
        create(plane, manifest(number, rng, team, graces))
        if number % 100 == 99:
            time.sleep(rng.uniform(1, 20))


# -- what was seen -------------------------------------------------------------------------------


def seconds(at: str | None) -> float:
    """Since the epoch; infinite for what has not happened."""
    return datetime.fromisoformat(at).timestamp() if at else float("inf")


def evictions(sights: list[Sight]) -> list[Eviction]:
    """Each once."""
    found = {}
    for one in sights:
        said = one.object.get("status", {}).get("eviction")
        if one.kind == "AppWrapper" and said:
            preemptor = said["title"].partition("/")[2]
            found[one.name, said["count"]] = Eviction(one.name, seconds(said["at"]), preemptor)
    return list(found.values())


def dispatches(sights: list[Sight]) -> dict[str, list[float]]:
    """When each attempt of an AppWrapper began, by its name."""
    found: dict[str, dict[int, float]] = {}
    for one in sights:
        record = one.object.get("status", {}).get("dispatch", {})
        if one.kind == "AppWrapper" and record.get("intentTime"):
            found.setdefault(one.name, {})[record["attempt"]] = seconds(record["intentTime"])
    return {name: sorted(times.values()) for name, times in found.items()}


def bindings(sights: list[Sight]) -> Iterator[tuple[str, Spell]]:
    """The AppWrapper and the time on a node of every pod that had one."""
    last = {one.uid: one for one in sights if one.kind == "Pod"}
    for one in last.values():
        meta, status = one.object["metadata"], one.object["status"]
        held = next((c for c in status.get("conditions", []) if c["type"] == "PodScheduled"), {})
        if held.get("status") != "True":
            continue
        ends = [
            seconds(container["state"].get("terminated", {}).get("finishedAt"))
            for container in status.get("containerStatuses", [])
        ]
        end = min([seconds(meta.get("deletionTimestamp")), *ends])
        cpu = one.object["spec"]["containers"][0]["resources"]["requests"]["cpu"]
        owner = meta["name"][: len("red-0000" if meta["name"].startswith("red") else "blue-0000")]
        yield owner, Spell(seconds(held["lastTransitionTime"]), end, float(cpu))


def waits(sights: list[Sight], started: dict[str, list[float]]) -> list[Spell]:
    """From the creation of each AppWrapper to its first dispatch."""
    created = {
        one.name: seconds(one.object["metadata"]["creationTimestamp"])
        for one in sights
        if one.kind == "AppWrapper"
    }
    return [Spell(at, started.get(name, [float("inf")])[0]) for name, at in created.items()]


def in_vain(found: list[Eviction], bound: list[tuple[str, Spell]]) -> list[Eviction]:
    """Those whose preemptor got no pod on a node in time."""
    starts: dict[str, list[float]] = {}
    for name, spell in bound:
        starts.setdefault(name, []).append(spell.start)
    return [
        one
        for one in found
        if not any(one.at - 1 <= at <= one.at + IN_VAIN_S for at in starts.get(one.preemptor, []))
    ]


def longest_gap(started: dict[str, list[float]], waiting: list[Spell]) -> Spell:
    """Between two dispatches while any AppWrapper waited all the time."""
    times = sorted(at for each in started.values() for at in each)
    gaps = [Spell(a, b) for a, b in pairwise(times)]
    kept = [one for one in gaps if any(w.start < one.start and w.end >= one.end for w in waiting)]
    return max(kept, key=lambda one: one.end - one.start)


def taken_at(bound: list[tuple[str, Spell]], at: float) -> float:
    """CPUs of pods on nodes."""
    return sum(one.cpus for _, one in bound if one.start <= at < one.end)


def main() -> None:
    """Submit, wait until all have ended, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--appwrappers", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--graces", type=int, nargs="+", default=[10, 30, 60], help="in seconds")
    args = parser.parse_args()
    with cluster(NODES, cpu=str(CPUS), memory="64Gi") as (plane, account):
        plane.wait_for_crd("quotasubtrees.quota.codeflare.dev")
        rbac = ("rbac", "-n", NAMESPACE, "--service-account", ACCOUNT, "--set", SETTINGS[0])
        plane.apply(mcad(*rbac))
        half = QUOTA // 2
        plane.apply((subtree("root", TREE, root=QUOTA),))
        plane.apply((subtree("teams", TREE, "root", red=half, blue=half),))
        bystander = Bystander(plane, appwrappers_path(), PODS)
        with Dispatcher(plane, account, *(f for one in SETTINGS for f in ("--set", one))):
            submit_all(plane, args.appwrappers, Random(args.seed), args.graces)
            deadline = time.monotonic() + 3600
            while not set(states(plane).values()) <= ENDED and time.monotonic() < deadline:
                time.sleep(5)
            final = states(plane)
        sights = bystander.sights()
    found, bound = evictions(sights), list(bindings(sights))
    started = dispatches(sights)
    vain = in_vain(found, bound)
    print(f"AppWrappers {len(final)}", end="  ")
    print(f"not ended {sum(state not in ENDED for state in final.values())}", end="  ")
    print(f"attempts {sum(map(len, started.values()))}", end="  ")
    print(f"evictions {len(found)}  in vain {len(vain)}")
    gap = longest_gap(started, waits(sights, started))
    idle = [taken_at(bound, gap.start + share * (gap.end - gap.start)) for share in (0.25, 0.5, 1)]
    taken = max(idle)
    print(f"longest time without a dispatch {gap.end - gap.start:.0f} s", end="  ")
    print(f"idle in it: {QUOTA - taken:.0f} CPUs of quota, {NODES * CPUS - taken:.0f} of nodes")
    for one in vain:
        print(f"  {one.victim} was evicted for {one.preemptor}")


if __name__ == "__main__":
    main()
