"""The shapes of Kueue's performance harness, with Kueue and with the dispatcher, side by side.

    python -m benchmarks.kueue_shapes [--shape baseline] [--scale 1] [--rounds 2] [--qps 50]
        [--arms kueue kueue-jobs mcad]

Each run has a control plane of its own with the same flags; runs alternate. The generator of load
is the same for both arms (kueue_load.py). Reported are the time from the first creation to the last
end, the use of the nominal CPUs, the time to the *first* admission of each class by the generator's
clock, the writes by verb from the audit log, and CPU time and memory of each process. ``--qps 0``
is no limit of the arm's client; Kueue's harness has 50.

Kueue's harness has no jobs: a workload is a Workload alone (*kueue*). In *kueue-jobs* it is the
same PyTorchJob that the dispatcher wraps, with Kueue's own controller for it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.dispatch_rate import cpu_s, kind
from benchmarks.kueue_arms import Kueue, KueueJobs, Mcad
from benchmarks.kueue_load import SHAPES, Record, Shape, play
from tests.controlplane.audit import AuditEntry
from tests.controlplane.commands import ADMIN
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import USER

PROCESSES = ("kube-apiserver", "etcd", "kube-controller-manager")
INFLIGHT = ["--max-requests-inflight=5000", "--max-mutating-requests-inflight=2500"]
"""As in Kueue's harness."""
ARMS = ("kueue", "kueue-jobs", "mcad")
QUIET_S = 8.0
"""Longer than the dispatcher lets an Event wait."""
ENVIRONMENT = {"GOGC": "100"}
"""Go's default: with that of the tests, 15,000 workloads take 13 GB of the API server."""


@contextmanager
def prepared(arm: Kueue | Mcad, shape: Shape) -> Iterator[ControlPlane]:
    """A control plane of its own, with the namespaces of the shape and what the arm needs."""
    flags = {"kube-apiserver": INFLIGHT}
    with ControlPlane(
        kinds=arm.kinds, extra_args=flags, environment=ENVIRONMENT, lease_seconds=40
    ) as plane:
        for _, queue in shape.leaves():
            plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": queue}})
        arm.prepare(plane, shape)
        yield plane


def run(arm: Kueue | Mcad, shape: Shape) -> None:
    """One run, on a control plane of its own; print what it has shown."""
    with prepared(arm, shape) as plane, arm.running(plane, shape) as pid:
        pids = {name: plane.process(name).pid for name in PROCESSES}
        pids |= {"arm": pid, "generator": os.getpid()}
        before, mark = {name: cpu_s(one) for name, one in pids.items()}, plane.audit_mark()
        found = asyncio.run(play(plane, shape, arm, pid))
        spent = {name: cpu_s(one) - before[name] for name, one in pids.items()}
        peaks = {name: peak_mb(one) for name, one in pids.items() if name != "generator"}
        tell(found, spent, peaks)
        tell_writes(plane, mark, arm.user, shape.count)


def tell(found: Record, spent: dict[str, float], peaks: dict[str, float]) -> None:
    """What a run has shown, for people."""
    print(f"  wall {found.wall_s:.1f} s, use {100 * found.use:.1f} %")
    for name, times in found.times.items():
        print(
            f"  {name}: first admission after p50 {times.p50:.2f} s, p99 {times.p99:.2f} s, "
            f"mean {times.mean:.2f} s; evictions {times.evictions}"
        )
    print("  CPU s: " + ", ".join(f"{name} {one:.0f}" for name, one in spent.items()))
    print("  peak MB: " + ", ".join(f"{name} {one:.0f}" for name, one in peaks.items()))


def tell_writes(plane: ControlPlane, mark: int, user: str, count: int) -> None:
    """The writes of the arm and of the generator for each of so many workloads, once the arm writes
    no more, and how many were refused."""
    before = -1
    while before < len(writes := _writes(plane, mark)):
        before = len(writes)
        time.sleep(QUIET_S)
    for account, name in ((user, "arm"), (ADMIN, "generator")):
        made = [one for one in writes if one.user == account]
        kinds = Counter(map(kind, made))
        refused = sum(one.code >= 300 for one in made)
        told = ", ".join(f"{each} {n / count:.2f}" for each, n in kinds.most_common())
        total = f"{kinds.total() / count:.2f} each ({refused} refused)"
        print(f"  writes of the {name}: {total}: {told}", flush=True)


def _writes(plane: ControlPlane, mark: int) -> list[AuditEntry]:
    """Of the arm and of the generator."""
    made = (one for one in plane.audit(mark) if one.is_write and one.resource != "leases")
    return [one for one in made if one.user in (ADMIN, USER, Kueue.user)]


def peak_mb(pid: int) -> float:
    """The most memory that a process had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(one.split()[1]) for one in lines if one.startswith("VmHWM")) / 1024


def main() -> None:
    """Run the arms by turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, default="baseline")
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of workloads")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--qps", type=float, default=50.0, help="of the arm's client, per kind")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=ARMS)
    options = parser.parse_args()
    shape = SHAPES[options.shape].scaled(options.scale)
    arms = {
        "kueue": Kueue(qps=options.qps),
        "kueue-jobs": KueueJobs(qps=options.qps),
        "mcad": Mcad(qps=options.qps),
    }
    for number in range(options.rounds):
        for name in options.arms:
            limit = f"{options.qps:g} requests a second" if options.qps else "no limit"
            print(f"round {number}, {name}, {shape.name} x {options.scale:g}, {limit}", flush=True)
            run(arms[name], shape)


if __name__ == "__main__":
    main()
