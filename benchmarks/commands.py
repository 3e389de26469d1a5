"""Commands that ask the dispatcher, beside kubectl, on a real API server with the chart's objects.

    python -m benchmarks.commands [--appwrappers 200 2000] [--rounds 9] [--mcad PATH]

AppWrappers are stored that wait, in a hundred namespaces; a dispatcher answers at the visibility
API as the chart installs it. In each round every command is a process of its own, one after the
other: ``kubectl get appwrappers -A`` first, with its discovery cached, then those of ``mcad``. CPU
time is that of the process, not of the API server and the dispatcher. The median of the ratios of a
round counts, never a time alone; the goal is 2 at most. ``--mcad`` names the program of another
installation: an editable one, as of ``make``, searches longer for each module.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.measuring import speed
from benchmarks.start_real import OTHERS
from benchmarks.stored import KINDS, NAMESPACES, namespace, store
from tests.chart.helm import NAMESPACE, RELEASE, Helm
from tests.controlplane import binaries
from tests.controlplane.controlplane import ControlPlane, free_ports
from tests.e2e.process import Dispatcher
from tests.e2e.test_visibility import POD_IP, applied, is_available, mounted

NODES = 10
"""Full of pods of others: every AppWrapper waits."""
SETTINGS = 0
"""Environment variables of an AppWrapper."""
KUBECTL = "kubectl get appwrappers -A"
PATIENCE_S = 600.0


class Spent(NamedTuple):
    """Seconds of one process."""

    wall_s: float
    cpu_s: float


def commands(mcad: str, number: int) -> dict[str, list[str]]:
    """What is typed; ``number`` is that of the AppWrapper in question."""
    name = KINDS["appwrappers"].key(number)
    typed = {
        "mcad queue -A": ["queue", "-A"],
        "mcad get -A": ["get", "-A"],
        "mcad describe NAME": ["describe", name],
        "mcad why NAME": ["why", name],
        "mcad version": ["version"],
    }
    return {what: [mcad, *words] for what, words in typed.items()}


def spent(command: Sequence[str], env: Mapping[str, str]) -> Spent:
    """Run it; raises if it fails or prints a warning."""
    with TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        with out.open("wb") as stdout, err.open("wb") as stderr:
            began = time.monotonic()
            process = subprocess.Popen(command, stdout=stdout, stderr=stderr, env=env)
            _, status, usage = os.wait4(process.pid, 0)
            wall_s = time.monotonic() - began
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode or err.read_text() or not out.read_text():
            raise RuntimeError(f"{' '.join(command)}: {process.returncode}: {err.read_text()}")
    return Spent(wall_s, usage.ru_utime + usage.ru_stime)


def measure(plane: ControlPlane, typed: Mapping[str, list[str]], rounds: int) -> None:
    """Print the medians of each command, and of its ratios to kubectl."""
    env = {**os.environ, "KUBECONFIG": str(plane.admin_kubeconfig), "HOME": str(plane.folder)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # users have the bytecode of what they installed
    kubectl = [str(plane.layout.bin / "kubectl"), "get", "appwrappers", "-A"]
    known = {KUBECTL: kubectl} | typed
    for command in known.values():
        spent(command, env)  # caches are warm
    print(speed(), flush=True)
    found = [{what: spent(one, env) for what, one in known.items()} for _ in range(rounds)]
    for what in known:
        wall_s, cpu_s = (statistics.median(one[what][n] for one in found) for n in (0, 1))
        walls, cpus = (
            statistics.median(one[what][n] / one[KUBECTL][n] for one in found) for n in (0, 1)
        )
        print(f"| `{what}` | {wall_s:.2f} | {cpu_s:.2f} | {walls:.2f} | {cpus:.2f} |", flush=True)


@contextmanager
def installed(appwrappers: int, helm: Helm) -> Iterator[ControlPlane]:
    """A control plane with so many AppWrappers and a dispatcher that answers."""
    with ControlPlane(start_delay_ms=0) as plane:
        (port,) = free_ports(1)
        objects = applied(plane, helm, port)
        for number in range(NAMESPACES):
            plane.create_namespace(namespace(number))
        account = plane.kubeconfig_for_token(plane.service_account(NAMESPACE, RELEASE), RELEASE)
        for name in OTHERS:
            plane.end(name)
        asyncio.run(store(plane.layout.ports.etcd, appwrappers, NODES, SETTINGS))
        options = (
            f"--visibility=127.0.0.1:{port}",
            f"--visibility-certs={mounted(plane, objects, 'visibility')}",
            f"--visibility-service={NAMESPACE}/{RELEASE}-visibility",
        )
        with Dispatcher(plane, account, *options, env={"POD_IP": POD_IP}):
            plane.wait_for(lambda: is_available(plane), PATIENCE_S, "the visibility API")
            yield plane


def main() -> None:
    """Measure with each number of AppWrappers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--appwrappers", type=int, nargs="+", default=[200, 2000])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--mcad", default=str(Path(sys.executable).parent / "mcad"))
    args = parser.parse_args()
    with TemporaryDirectory() as home:
        helm = Helm(binaries.ensure_helm(), Path(home))
        for count in args.appwrappers:
            with installed(count, helm) as plane:
                print(f"{count} AppWrappers: wall s, CPU s, ratios to kubectl of both")
                middle_of_the_line = count // 2
                measure(plane, commands(args.mcad, middle_of_the_line), args.rounds)


if __name__ == "__main__":
    main()
