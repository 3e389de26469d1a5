"""Start, restart and take-over of the dispatcher at the scale of the design, on a real API server.

    python -m benchmarks.start_real [--appwrappers 10000] [--nodes 5000] [--rounds 3]

A cluster with so many AppWrappers, nodes, and ten pods per node; nearly all AppWrappers wait,
``--running`` of them run. An AppWrapper has 6 kB as its user creates it, and 7.9 kB with status and
managed fields as the API server sends it. etcd and kube-apiserver are real; nothing else runs while
it is measured. For each start an AppWrapper that fits is created before: the first write begins its
dispatch. Measured are

- start: the Lease is free;
- restart: after ``kill -9``; the Lease of the dead process has to run out;
- take-over: a standby has its copy (ADR 55), the leader is killed with -9.

``ready`` is when the log says that everything is listed, looked at every 50 ms; /readyz has to
confirm it. CPU times are those of /proc. A trial: ``--appwrappers 500 --nodes 100 --rounds 1``.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.cluster import appwrapper, cluster, create, pod
from benchmarks.dispatch_rate import cpu_s
from benchmarks.kueue_shapes import peak_mb
from benchmarks.measuring import speed
from benchmarks.stored import NAMESPACES, namespace, store
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.fleet import events, ours, wait_until_quiet, writes
from tests.e2e.process import Dispatcher
from tests.e2e.support import states

OTHERS = ("kwok", "kube-scheduler", "kube-controller-manager")
"""What made the first pods run, and is ended before anything is measured."""
ENVIRONMENT = {"GOGC": "100"}
"""Go's default, as an API server has it."""
SMALL_CPU = "950m"
"""Of the nodes with room: less than a stored AppWrapper asks for."""
PER_NODE = 80
SETTINGS_OF_6_KB = 109
"""Environment variables of an AppWrapper of 6 kB."""
ASK_S = 0.05
PATIENCE_S = 300.0
IDLE_S = 20.0
LOOK_S = 5.0
IDLE_CPU = 0.1
"""Of a core: at most so much is used by an API server that has nothing to do."""
COPIED = "a copy is complete"
SYNCED = "synced appwrappers="
GOALS = "goals: ready within 8 s and 6 s of CPU, 300 MB; take-over within the lease + 3 s"


class Figures(NamedTuple):
    """Of one start; all seconds but ``peak_mb``. Times count from the start or the kill."""

    leads_s: float
    ready_s: float
    write_s: float
    cpu_s: float  # until it is ready
    api_cpu_s: float  # meanwhile
    peak_mb: float  # a few seconds later
    load: float

    def __str__(self) -> str:
        return (
            f"leads after {self.leads_s:.1f} s, ready {self.ready_s:.1f} s, "
            f"first write {self.write_s:.1f} s; CPU {self.cpu_s:.1f} s, "
            f"of the API server {self.api_cpu_s:.1f} s; RSS peak {self.peak_mb:.0f} MB; "
            f"load {self.load:.1f}"
        )


class Bench:
    """One control plane with a full cluster, and the measurements on it."""

    def __init__(self, plane: ControlPlane, account: Path) -> None:
        self.plane = plane
        self._account = account
        self._probes = 0

    def dispatcher(self, name: str) -> Dispatcher:
        """One that is not started yet."""
        return Dispatcher(self.plane, self._account, name=name)

    def probe(self) -> None:
        """Create an AppWrapper that fits."""
        self._probes += 1
        name = f"probe-{self._probes}"
        create(self.plane, appwrapper(name, pod(name)))

    def started(self, dispatcher: Dispatcher) -> Figures:
        """Start a process, which finds an AppWrapper to dispatch."""
        self.probe()
        return self._measured(dispatcher, lambda: dispatcher.start(ready=False))

    def taken_over(self, leader: Dispatcher, standby: Dispatcher) -> Figures:
        """Kill the leader."""

        def kill() -> None:
            leader.kill()
            self.probe()

        return self._measured(standby, kill)

    def wait_until_copied(self, standby: Dispatcher) -> None:
        """Until a standby has a copy of everything."""
        self.plane.wait_for(lambda: COPIED in standby.log(), PATIENCE_S, "a complete copy")

    def _wait_until_synced(self, dispatcher: Dispatcher, known: int) -> None:
        """Until its log says so once more than ``known`` times. ``wait_for`` looks less often,
        which is too coarse for this figure."""
        until = time.monotonic() + PATIENCE_S
        while dispatcher.log().count(SYNCED) <= known:
            if time.monotonic() > until:
                raise TimeoutError(f"it does not lead after {PATIENCE_S:.0f} s")
            time.sleep(ASK_S)

    def _measured(self, dispatcher: Dispatcher, begin: Callable[[], object]) -> Figures:
        server, mark = self.plane.process("kube-apiserver").pid, self.plane.audit_mark()
        # A process that does not run yet has spent nothing.
        own = cpu_s(dispatcher.pid) if dispatcher.url else 0.0
        known = dispatcher.log().count(SYNCED)
        api, at, began = cpu_s(server), time.time(), time.monotonic()
        begin()
        self._wait_until_synced(dispatcher, known)
        ready_s = time.monotonic() - began
        own, api = cpu_s(dispatcher.pid) - own, cpu_s(server) - api
        dispatcher.wait_until_it_listens()
        if not leads(dispatcher):
            raise RuntimeError("its log says that it is synced, and /readyz does not")
        taken, first = self.plane.wait_for(lambda: self._began(mark), 60, "the first write")
        wait_until_quiet(self.plane)
        seen = ours(self.plane.audit(mark))
        print(f"  writes since: {len(writes(seen))}, Events {len(events(seen))}")
        return Figures(
            taken.timestamp() - at,
            ready_s,
            first.timestamp() - at,
            own,
            api,
            peak_mb(dispatcher.pid),
            os.getloadavg()[0],
        )

    def _began(self, mark: int) -> tuple[datetime, datetime] | None:
        """When the Lease was taken, and the first write after that, once there is one. A leader
        that was killed may have written at the same moment."""
        seen = self.plane.audit(mark)
        leases = [one for one in ours(seen) if one.resource == "leases" and one.is_write]
        taken = next((one.time for one in leases if one.code < 300), None)
        if taken is None:
            return None
        later = [one.time for one in writes(seen) if one.time >= taken]
        return (taken, min(later)) if later else None


def leads(dispatcher: Dispatcher) -> bool:
    """Whether it dispatches."""
    code, text = dispatcher.get("/readyz")
    return code == 200 and not text.startswith("standby")


def prepare(plane: ControlPlane, account: Path, args: argparse.Namespace) -> None:
    """Run some AppWrappers, end what made them run, and store all others."""
    for number in range(NAMESPACES):
        body = {"metadata": {"name": namespace(number)}}
        plane.request("POST", "/api/v1/namespaces", body)
    with Dispatcher(plane, account):
        for number in range(args.running):
            create(plane, large(f"running-{number:04}"))
        plane.wait_for(
            lambda: set(states(plane).values()) <= {"Running"}, 600, "some AppWrappers run"
        )
        wait_until_quiet(plane)
    for name in OTHERS:
        plane.end(name)
    waiting = args.appwrappers - args.running
    asyncio.run(store(plane.layout.ports.etcd, waiting, args.nodes, SETTINGS_OF_6_KB))
    wait_until_idle(plane)


def wait_until_idle(plane: ControlPlane) -> None:
    """Until the API server has read what was stored, which would slow the first start."""
    server = plane.process("kube-apiserver").pid

    def is_idle() -> bool:
        before = cpu_s(server)
        time.sleep(LOOK_S)
        return cpu_s(server) - before < IDLE_CPU * LOOK_S

    plane.wait_for(is_idle, PATIENCE_S, "an idle API server")


def large(name: str) -> dict[str, Any]:
    """An AppWrapper of one pod, as large as those that are stored."""
    one: dict[str, Any] = pod(name)
    env = [{"name": f"SETTING_{n}", "value": f"value number {n}"} for n in range(SETTINGS_OF_6_KB)]
    one["spec"]["containers"][0]["env"] = env
    return appwrapper(name, one)


def measure(bench: Bench, rounds: int) -> None:
    """Starts, restarts and take-overs, as many as there are rounds."""
    found: dict[str, list[Figures]] = {"start": [], "restart": [], "take-over": []}

    def tell(what: str, figures: Figures) -> None:
        found[what].append(figures)
        print(f"{what}: {figures}", flush=True)

    for number in range(rounds):
        print(speed(), flush=True)
        one, other = bench.dispatcher(f"one-{number}"), bench.dispatcher(f"other-{number}")
        tell("start", bench.started(one))
        one.kill()
        one.url = ""
        tell("restart", bench.started(one))
        other.start(leads=False)
        bench.wait_until_copied(other)
        before = cpu_s(other.pid)
        time.sleep(IDLE_S)
        idle = (cpu_s(other.pid) - before) / IDLE_S
        print(f"standby: {100 * idle:.1f} % of a core, RSS peak {peak_mb(other.pid):.0f} MB")
        tell("take-over", bench.taken_over(one, other))
        other.stop()
    for what, each in found.items():
        middle = Figures(*(statistics.median(values) for values in zip(*each, strict=True)))
        print(f"median of {len(each)}, {what}: {middle}")
    print(GOALS)


def main() -> None:
    """Fill a cluster, measure, and say what the goals are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--appwrappers", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--running", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    nodes = args.running // PER_NODE + 1
    options = {"environment": ENVIRONMENT}
    with cluster(nodes, options=options, cpu=SMALL_CPU, memory="16Gi") as (plane, account):
        prepare(plane, account, args)
        measure(Bench(plane, account), args.rounds)


if __name__ == "__main__":
    main()
