"""Are promised starts kept on a real control plane, with the real kube-scheduler?

``python -m benchmarks.real_promises --jobs 80``: Jobs of one to four fifths of the cluster and many
small ones, twenty in every half a minute, with the policy Backfill. All end well before their
limit, so every start that a status promised has to be kept. KWOK plays the kubelets.
"""

from __future__ import annotations

import argparse
import time
from datetime import datetime
from random import Random
from typing import NamedTuple

from benchmarks.cluster import cluster
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.fleet import Bystander, Sight
from tests.e2e.process import Dispatcher
from tests.e2e.support import appwrappers_path, create, states
from tests.manifests import components, job

NODES, CPUS = 8, 8
SLACK_S = 10.0
"""kube-scheduler, the Job controller and the start of a pod take their time."""


class Life(NamedTuple):
    """What the statuses of one AppWrapper said, in seconds since the epoch; 0 is never."""

    name: str
    promised: float
    started: float
    attempts: int


def submit(plane: ControlPlane, number: int, rng: Random) -> None:
    """One in six is large; the limit is half as long again as it runs, and some more."""
    pods = rng.randint(NODES // 2, NODES * 4 // 5) if rng.random() < 1 / 6 else rng.randint(1, 3)
    cpu = str(rng.choice((2, 4, 8)) if pods > 3 else rng.choice((1, 2, 4)))
    seconds = rng.choice((15, 30, 60))
    name = f"job-{number:03}"
    limit = {"dispatchDuration": {"limit": round(1.5 * seconds) + 20}}
    made = components(name, job(name, pods, cpu, seconds), schedulingSpec=limit)
    made["metadata"]["namespace"] = "default"
    create(plane, made)


def lives(sights: list[Sight]) -> list[Life]:
    """By name: the first promise, and when its last attempt was dispatched for good."""
    promised: dict[str, float] = {}
    started: dict[str, float] = {}
    attempts: dict[str, int] = {}
    for one in sights:
        name, status = one.object["metadata"]["name"], one.object.get("status", {})
        reservation, record = status.get("reservation", {}), status.get("dispatch", {})
        if reservation.get("start"):
            promised.setdefault(name, _seconds(reservation["start"]))
        if record.get("confirmTime") and record["attempt"] != attempts.get(name):
            attempts[name] = record["attempt"]
            started[name] = _seconds(record["confirmTime"])
    return [
        Life(name, promised.get(name, 0.0), started.get(name, 0.0), attempts.get(name, 0))
        for name in sorted(promised.keys() | started.keys())
    ]


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


def main() -> None:
    """Submit, wait until all have ended, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=80)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = Random(args.seed)
    size = {"cpu": str(CPUS), "memory": "64Gi"}
    with cluster(NODES, **size) as (plane, account):
        bystander = Bystander(plane, appwrappers_path())
        settings = ("--set", "policy=Backfill", "--set", "protectAfter=0")
        with Dispatcher(plane, account, *settings):
            for number in range(args.jobs):
                submit(plane, number, rng)
                if number % 20 == 19:
                    time.sleep(30)
            ended = {"Completed", "Succeeded", "Failed"}
            plane.wait_for(lambda: ended >= set(states(plane).values()), 1800, "the end of all")
            final = states(plane)
        found = lives(bystander.sights())
    told = [one for one in found if one.promised]
    late = [one for one in told if not one.started or one.started > one.promised + SLACK_S]
    print(f"jobs {len(found)}  promised {len(told)}  late {len(late)}", end="  ")
    print(f"taken back {sum(one.attempts > 1 for one in found)}", end="  ")
    print(f"failed {sum(state == 'Failed' for state in final.values())}")
    for one in late:
        print(f"  {one.name}: {one.started - one.promised:.1f} s after the promise")


if __name__ == "__main__":
    main()
