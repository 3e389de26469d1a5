"""What a person waits for: looks at a dispatcher of 10,000 AppWrappers, and the tab key.

Each command is a process of its own, as typed, against servers in this one; the figure is its
CPU time, start of the interpreter and imports included, the least and the median of several runs.
The goals are 0.5 s for a look with --server, 0.3 s for a completion and for what needs no cluster,
and 0.8 s where figures of 2,000 AppWrappers are computed from the objects of the cluster.

    .venv/bin/python -m benchmarks.cli_latency [--appwrappers 10000] [--runs 5]
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mcad.kube.port import Request, Response
from tests.cli.cluster import appwrapper, deployment, kubeconfig, tutorial
from tests.fakeapi import FakeApi, Fault, answer
from tests.serving import answering, served

Json = dict[str, Any]

BOOKS = {"cpu": "64", "memory": "263882092Ki", "pods": "110", "nvidia.com/gpu": "8"}
NODES = 1_000
LOOK_GOAL_S, KEY_GOAL_S, NOTHING_GOAL_S = 0.5, 0.3, 0.15
COMPUTED, COMPUTED_GOAL_S = 2_000, 0.8

LOOKS = (
    ("queue -A", LOOK_GOAL_S),
    ("queue -n team-7", LOOK_GOAL_S),
    ("get -A -o name", LOOK_GOAL_S),
    ("get -A -o json", LOOK_GOAL_S),
    ("get aw-00001234 -n team-4", LOOK_GOAL_S),
    ("describe aw-00001234 -n team-4", LOOK_GOAL_S),
    ("capacity --total", LOOK_GOAL_S),
    ("top --once", LOOK_GOAL_S),
)
KEYS = (
    ("mcad desc", KEY_GOAL_S),
    ("mcad queue --na", KEY_GOAL_S),
    ("mcad describe aw-", KEY_GOAL_S),
)


def row(number: int) -> Json:
    return {
        "namespace": f"team-{number % 10}",
        "name": f"aw-{number:08}",
        "uid": f"00000000-0000-0000-0000-{number:012}",
        "position": number + 1,
        "headOfLine": number == 0,
        "state": "Pending",
        "queuejobstate": "Backoff",
        "priority": 0,
        "firstSeen": "2026-11-22T02:00:00.000000Z",
        "demand": {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "8", "pods": "2"},
        "attempt": 0,
        "waitsFor": "nvidia.com/gpu",
        "why": "nvidia.com/gpu: 8 requested, 3 available, 5 missing.",
    }


def dispatcher(appwrappers: int) -> Fault:
    """Answers as a dispatcher does; the answers are made before, so that only the asker works."""
    rows = json.dumps({"items": [row(number) for number in range(appwrappers)]}).encode()
    books = dict.fromkeys(("allocatable", "used", "reserved", "free"), BOOKS)
    nodes = [{"name": f"node-{number}"} | books for number in range(NODES)]
    capacity = json.dumps({"nodes": nodes, "total": {"name": ""} | books, "unplaced": {}}).encode()
    pods = dict.fromkeys(("pending", "running", "succeeded", "failed"), 0)
    more = {"dialect": "v1beta1", "inLine": 1, "ahead": [], "figures": [], "items": []}
    detail = json.dumps(row(1234) | more | {"podSets": [], "pods": pods}).encode()

    async def dispatch(request: Request) -> Response:
        body = {"capacity": capacity, "queue": rows, "appwrappers": rows}
        told = body.get(request.path.removeprefix("/api/v1/"), detail)
        return answer(told)

    return dispatch


def api(appwrappers: int) -> FakeApi:
    """An API server with as many names."""
    found = FakeApi()
    for n in range(appwrappers):
        found.put("appwrappers", {"metadata": {"name": f"aw-{n:08}", "namespace": "default"}})
    return found


def queued(appwrappers: int) -> FakeApi:
    """The tutorial's cluster with so many more AppWrappers that wait."""
    found = tutorial()
    for n in range(appwrappers):
        name = f"aw-{n:08}"
        item = deployment(name, replicas=2, cpu="1", memory="1Gi")
        found.put("appwrappers", appwrapper(name, f"uid-{n}", "07:30:00", item))
    return found


def cpu_s(args: list[str], **env: str) -> float:
    """CPU seconds of ``mcad`` with these arguments, as a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "mcad", *args]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def tell(what: str, seconds: list[float], goal_s: float) -> None:
    least, middle = min(seconds), statistics.median(seconds)
    print(f"{what:<44} {least:6.3f} s   {middle:6.3f} s   goal {goal_s:g} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--appwrappers", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    print(f"{'CPU time of the whole process':<44}    least      median")
    with answering(dispatcher(options.appwrappers)) as url:
        for line, goal_s in LOOKS:
            args = [*line.split(), "--server", url]
            tell(f"mcad {line} --server", [cpu_s(args) for _ in range(options.runs)], goal_s)
    for line in ("--help", "version"):
        tell(f"mcad {line}", [cpu_s([line]) for _ in range(options.runs)], NOTHING_GOAL_S)
    with tempfile.TemporaryDirectory() as folder, served(queued(COMPUTED)) as url:
        env = {"KUBECONFIG": kubeconfig(Path(folder), url)}
        for line in ("queue -A", "describe aw-00001234"):
            seconds = [cpu_s(line.split(), **env) for _ in range(options.runs)]
            tell(f"mcad {line}, computed", seconds, COMPUTED_GOAL_S)
    with tempfile.TemporaryDirectory() as folder, served(api(options.appwrappers)) as url:
        config = kubeconfig(Path(folder), url)
        for line, goal_s in KEYS:
            env = {"_MCAD_COMPLETE": "bash_complete", "COMP_WORDS": line, "KUBECONFIG": config}
            env["COMP_CWORD"] = str(len(line.split()) - 1)
            tell(f"{line}<TAB>", [cpu_s([], **env) for _ in range(options.runs)], goal_s)


if __name__ == "__main__":
    main()
