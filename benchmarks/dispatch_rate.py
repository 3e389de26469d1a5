"""Dispatches per second on a real API server, beside a bare client that makes the same writes.

    python -m benchmarks.dispatch_rate [--count 200] [--rounds 5]

Rounds alternate: the bare client writes an intent, the pod, a confirmation and an Event for each of
COUNT existing AppWrappers, as fast as it can; then the dispatcher is started on COUNT existing
AppWrappers. Both rates come from the API server's audit log: writes of that user, first to last.
The median of the ratios counts, never a rate alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
from pathlib import Path
from random import Random

from benchmarks.cluster import appwrapper, clear, cluster, create, pod, span
from mcad.kube.client import Client, CreateOptions
from mcad.kube.clock import RealClock
from mcad.kube.connection import load
from mcad.kube.resource import Resource
from mcad.kube.rest import RestApi
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import USER, Dispatcher

AW = Resource("workload.codeflare.dev", "v1beta2", "appwrappers", "AppWrapper")
POD = Resource("", "v1", "pods", "Pod")
EVENT = Resource("events.k8s.io", "v1", "events", "Event")
CONCURRENCY = 16
DISPATCH = {
    "attempt": 1,
    "epoch": 1,
    "phase": "creating",
    "payloadSHA256": "0" * 64,
    "inventory": [{"version": "v1", "resource": "pods", "kind": "Pod", "name": "x"}],
    "intentTime": "2026-01-01T00:00:00.000000Z",
}


def conditions(*kinds: str) -> list[dict[str, str]]:
    """As many conditions as the dispatcher writes at the same point."""
    time = "2026-01-01T00:00:00.000000Z"
    return [
        {
            "type": kind,
            "status": "True",
            "reason": "AwaitingHeadOfLine",
            "lastUpdateMicroTime": time,
            "lastTransitionMicroTime": time,
        }
        for kind in kinds
    ]


async def bare_dispatch(client: Client, made: dict, number: int) -> None:
    """The same four writes, without deciding anything."""
    name = made["metadata"]["name"]
    intent = {"state": "Pending", "dispatch": DISPATCH}
    intent["conditions"] = conditions("Init", "Queueing", "HeadOfLine")
    version = made["metadata"]["resourceVersion"]
    body = {"metadata": {"resourceVersion": version}, "status": intent}
    answer = await client.patch_status(AW, "default", name, json.dumps(body).encode())
    owned = pod(name)
    owned["metadata"] = {
        "name": name,
        "ownerReferences": [
            {
                "apiVersion": "workload.codeflare.dev/v1beta1",
                "kind": "AppWrapper",
                "name": name,
                "uid": made["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    metadata_only = CreateOptions(metadata_only=True)
    await client.create(POD, "default", json.dumps(owned).encode(), metadata_only)
    version = answer["metadata"]["resourceVersion"]
    confirm = {"state": "Running", "dispatch": DISPATCH | {"phase": "dispatched"}}
    confirm["conditions"] = conditions("Init", "Queueing", "HeadOfLine", "Dispatched")
    body = {"metadata": {"resourceVersion": version}, "status": confirm}
    await client.patch_status(AW, "default", name, json.dumps(body).encode())
    await client.create_event("default", event(name, made["metadata"]["uid"], number))


def event(name: str, uid: str, number: int) -> dict:
    """One Event, as the dispatcher writes it."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{number:x}", "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "workload.codeflare.dev/bench",
        "reportingInstance": "bench",
        "action": "Dispatch",
        "reason": "Dispatched",
        "type": "Normal",
        "note": "Created 1 item.",
        "regarding": {
            "apiVersion": "workload.codeflare.dev/v1beta1",
            "kind": "AppWrapper",
            "namespace": "default",
            "name": name,
            "uid": uid,
        },
    }


async def bare_round(kubeconfig: Path, objects: list[dict], offset: int) -> None:
    """All of them, CONCURRENCY at a time."""
    clock = RealClock()
    connection = await load(clock, str(kubeconfig))
    async with RestApi(connection, clock) as api:
        client = Client(api, clock, Random(1))
        gate = asyncio.Semaphore(CONCURRENCY)

        async def one(number: int, made: dict) -> None:
            async with gate:
                await bare_dispatch(client, made, offset + number)

        await asyncio.gather(*(one(n, made) for n, made in enumerate(objects)))


def running(plane: ControlPlane, count: int) -> bool:
    """Whether all pods run."""
    pods = plane.request("GET", "/api/v1/namespaces/default/pods")[1]["items"]
    return sum(one["status"].get("phase") == "Running" for one in pods) == count


def measure_bare(plane: ControlPlane, account: Path, count: int, number: int) -> float:
    """Dispatches per second of the bare client."""
    names = [f"bare-{number}-{i}" for i in range(count)]
    objects = [create(plane, appwrapper(name, pod(name))) for name in names]
    mark = plane.audit_mark()
    asyncio.run(bare_round(account, objects, number * count))
    writes = own_writes(plane, mark, 4 * count)
    plane.wait_for(lambda: running(plane, count), timeout=120, what="all pods run")
    clear(plane)
    return count / span(writes)


def measure_dispatcher(plane: ControlPlane, account: Path, count: int, number: int) -> float:
    """Dispatches per second of the dispatcher."""
    for i in range(count):
        create(plane, appwrapper(f"ours-{number}-{i}", pod(f"ours-{number}-{i}")))
    mark = plane.audit_mark()
    with Dispatcher(plane, account):
        writes = own_writes(plane, mark, 4 * count)
        plane.wait_for(lambda: running(plane, count), timeout=120, what="all pods run")
    clear(plane)
    return count / span(writes)


def own_writes(plane: ControlPlane, mark: int, count: int) -> list:
    """The writes of the account since the mark, once there are as many as there must be."""

    def enough() -> list:
        done = [e for e in plane.audit(mark) if e.is_write and e.user == USER and e.code < 300]
        found = [e for e in done if e.resource != "leases"]
        return found if len(found) >= count else []

    return plane.wait_for(enough, timeout=300, what=f"{count} writes")


def main() -> None:
    """Print one line per round and the median ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    ratios = []
    with cluster(8, cpu="32", memory="256Gi") as (plane, account):
        for number in range(options.rounds):
            bare = measure_bare(plane, account, options.count, number)
            ours = measure_dispatcher(plane, account, options.count, number)
            ratios.append(ours / bare)
            print(
                f"round {number}: bare client {bare:.0f}/s, dispatcher {ours:.0f}/s, "
                f"ratio {ours / bare:.2f}",
                flush=True,
            )
    print(f"median ratio {statistics.median(ratios):.2f} (goal: at least 0.60)")


if __name__ == "__main__":
    main()
