"""Dispatches per second on a real API server, beside a bare client that makes the same writes.

    python -m benchmarks.dispatch_rate [--count 200] [--rounds 3]

Rounds alternate. The ceiling comes first: a bare client creates COUNT AppWrappers, and for each one
writes an intent, a pod, a confirmation and an Event, as fast as it can, in the way of the release
before: both statuses are merge patches. Then the same process creates COUNT AppWrappers in the same
way, and a running dispatcher does the rest. Both rates come from the API server's audit log: from
the first AppWrapper created to the last pod created. What the dispatcher writes later than that it
has put off (ADR 69), and it counts in the CPU time. The
median of the ratios counts, never a rate alone. The CPU time of every process says where it goes:
on few cores, the ratio of all CPU time is what remains of the ratio when other work disturbs it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from random import Random
from typing import NamedTuple

from benchmarks.cluster import PODS, appwrapper, clear, cluster, pod, span
from mcad.kube.client import Client, CreateOptions
from mcad.kube.clock import RealClock
from mcad.kube.connection import load
from mcad.kube.resource import Resource
from mcad.kube.rest import RestApi
from tests.controlplane.audit import AuditEntry
from tests.controlplane.commands import ADMIN
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import USER, Dispatcher

AW = Resource("workload.codeflare.dev", "v1beta1", "appwrappers", "AppWrapper")
POD = Resource("", "v1", "pods", "Pod")
EVENT = Resource("events.k8s.io", "v1", "events", "Event")
CONCURRENCY = 16
SERVERS = ("kube-apiserver", "etcd", "kube-scheduler", "kube-controller-manager", "kwok")
KINDS = {
    "create appwrappers": 1,
    "write appwrappers/status": 2,
    "create pods": 1,
    "create events": 0,
}
"""What is counted of what is written for an AppWrapper, and how often that is at least."""
DISPATCHED = ("create appwrappers", "create pods")


class Clients(NamedTuple):
    """Of the user that submits, and of the dispatcher's ServiceAccount."""

    user: Client
    account: Client


Work = Callable[[Clients, str, int], Awaitable[None]]
"""Is given clients, the name of an AppWrapper, and its number."""
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
    times = {"lastUpdateMicroTime": time, "lastTransitionMicroTime": time}
    so = {"status": "True", "reason": "AwaitingHeadOfLine"} | times
    return [{"type": kind} | so for kind in kinds]


async def bare_dispatch(clients: Clients, name: str, number: int) -> None:
    """The same five writes, without deciding anything."""
    made, client = await submit(clients.user, name), clients.account
    intent = {"state": "Pending", "dispatch": DISPATCH}
    intent["conditions"] = conditions("Init", "Queueing", "HeadOfLine")
    version = made["metadata"]["resourceVersion"]
    body = {"metadata": {"resourceVersion": version}, "status": intent}
    answer = await client.patch_status(AW, "default", name, json.dumps(body).encode())
    owned = pod(name)
    kind = {"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper"}
    owner = kind | {"name": name, "uid": made["metadata"]["uid"]}
    owner |= {"controller": True, "blockOwnerDeletion": True}
    owned["metadata"] = {"name": name, "ownerReferences": [owner]}
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
        "regarding": {"apiVersion": AW.api_version, "kind": AW.kind}
        | {"namespace": "default", "name": name, "uid": uid},
    }


async def submit(client: Client, name: str) -> dict:
    """Create an AppWrapper of one pod; what identifies it."""
    body = json.dumps(appwrapper(name, pod(name))).encode()
    return await client.create(AW, "default", body, CreateOptions(metadata_only=True))


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[Client]:
    """A client."""
    clock = RealClock()
    async with RestApi(await load(clock, str(kubeconfig)), clock) as api:
        yield Client(api, clock, Random(1))


async def in_parallel(kubeconfigs: tuple[Path, Path], names: list[str], one: Work) -> None:
    """Work on all of them, CONCURRENCY at a time."""
    gate = asyncio.Semaphore(CONCURRENCY)
    user, account = map(connected, kubeconfigs)
    async with user as admin, account as dispatcher:
        clients = Clients(admin, dispatcher)

        async def in_turn(number: int, name: str) -> None:
            async with gate:
                await one(clients, name, number)

        await asyncio.gather(*(in_turn(n, name) for n, name in enumerate(names)))


async def only_submit(clients: Clients, name: str, _: int) -> None:
    """The user's part."""
    await submit(clients.user, name)


class Outcome(NamedTuple):
    """What a round needed."""

    rate: float  # AppWrappers a second
    to_run_s: float  # from the creation of an AppWrapper to its confirmation, median
    cpu_ms: dict[str, float]  # of each process, per AppWrapper
    writes: Counter[str]  # of each kind


class Bench(NamedTuple):
    """Where rounds take place."""

    plane: ControlPlane
    account: Path

    def measure(self, names: list[str], work: Work, **pids: int) -> Outcome:
        """Do the work and wait until every AppWrapper has its pod and its statuses."""
        plane, count = self.plane, len(names)
        pids |= {name: plane.process(name).pid for name in SERVERS}
        mark, before = plane.audit_mark(), {name: cpu_s(pid) for name, pid in pids.items()}
        asyncio.run(in_parallel((plane.admin_kubeconfig, self.account), names, work))
        plane.wait_for(lambda: is_over(plane, mark, count), timeout=300, what="all writes")
        spent = {name: 1000 * (cpu_s(pid) - before[name]) / count for name, pid in pids.items()}
        made = counted(plane, mark)
        plane.wait_for(lambda: running(plane, count), timeout=120, what="all pods run")
        clear(plane)
        kinds = Counter(kind(one) for one in made)
        rate = count / span([one for one in made if kind(one) in DISPATCHED])
        return Outcome(rate, to_run(made), spent, kinds)


def to_run(made: list[AuditEntry]) -> float:
    """The median time from the creation of an AppWrapper to the second write of its status."""
    begun: dict[str, datetime] = {}
    told: defaultdict[str, list[datetime]] = defaultdict(list)
    for one in made:
        if kind(one) == "create appwrappers":
            begun[one.name] = one.time
        elif kind(one) == "write appwrappers/status":
            told[one.name].append(one.time)
    return statistics.median(
        (sorted(times)[1] - begun[name]).total_seconds() for name, times in told.items()
    )


def counted(plane: ControlPlane, mark: int) -> list[AuditEntry]:
    """The writes since the mark of the user, the bare client and the dispatcher."""
    done = [one for one in plane.audit(mark) if one.is_write and one.user in (ADMIN, USER)]
    return [one for one in done if one.code < 300 and kind(one) in KINDS]


def kind(one: AuditEntry) -> str:
    """What was written: ``create pods``, ``write appwrappers/status``, whether patched or
    replaced."""
    verb = "write" if one.verb in ("patch", "update") else one.verb
    return f"{verb} {one.resource}" + (f"/{one.subresource}" if one.subresource else "")


def is_over(plane: ControlPlane, mark: int, count: int) -> bool:
    """Whether every AppWrapper has what it gets at least, and nothing more comes, not even Events,
    of which a dispatcher drops some when very many come together. Looking costs, so it is rare."""
    time.sleep(0.5)
    made = Counter(kind(one) for one in counted(plane, mark))
    if not all(made[each] >= least * count for each, least in KINDS.items()):
        return False
    time.sleep(0.5)
    return len(counted(plane, mark)) == made.total()


def running(plane: ControlPlane, count: int) -> bool:
    """Whether all pods run."""
    pods = plane.request("GET", PODS)[1]["items"]
    return sum(one["status"].get("phase") == "Running" for one in pods) == count


def _stat(pid: int) -> list[str]:
    """What the kernel says of a process, from its state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def is_alive(pid: int) -> bool:
    """Whether it has not ended; one that is not waited for yet has."""
    try:
        return _stat(pid)[0] != "Z"
    except FileNotFoundError:
        return False


def cpu_s(pid: int) -> float:
    """The CPU time of a process so far."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def told(label: str, found: Outcome, count: int) -> str:
    """A few lines for people."""
    cpu = ", ".join(f"{name} {ms:.1f}" for name, ms in found.cpu_ms.items())
    writes = ", ".join(f"{each} {n / count:.2f}" for each, n in sorted(found.writes.items()))
    return (
        f"  {label} {found.rate:.0f}/s, runs after {found.to_run_s:.2f} s (median)\n"
        f"    CPU ms each: all {sum(found.cpu_ms.values()):.1f}; {cpu}\n"
        f"    writes each: {writes}"
    )


def main() -> None:
    """Print what each round needed, and the median ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    count, rates, costs = options.count, [], []
    with cluster(8, cpu="32", memory="256Gi") as (plane, account):
        bench = Bench(plane, account)
        for number in range(options.rounds):
            names = [f"bare-{number}-{i}" for i in range(count)]
            bare = bench.measure(names, bare_dispatch, client=os.getpid())
            with Dispatcher(plane, account) as ours:
                names = [f"ours-{number}-{i}" for i in range(count)]
                found = bench.measure(names, only_submit, client=os.getpid(), dispatcher=ours.pid)
            rates.append(found.rate / bare.rate)
            costs.append(sum(bare.cpu_ms.values()) / sum(found.cpu_ms.values()))
            print(f"round {number}: ratio {rates[-1]:.2f}, of all CPU time {costs[-1]:.2f}")
            print(told("bare client", bare, count))
            print(told("dispatcher ", found, count), flush=True)
    print(
        f"median ratio {statistics.median(rates):.2f} (goal: at least 0.80), "
        f"of all CPU time {statistics.median(costs):.2f}"
    )


if __name__ == "__main__":
    main()
