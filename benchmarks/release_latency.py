"""From room released to dispatch, as a bystander sees it on the real API server.

    python -m benchmarks.release_latency [--rounds 50]

One node holds one pod. In each round an AppWrapper waits; the AppWrapper that runs is deleted; the
time from the watch event DELETED of its pod to ADDED of the waiting one's bare pod is taken at a
third process's watch. The goal is a maximum under 200 ms here.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time

from benchmarks.cluster import APPWRAPPERS, appwrapper, cluster, create, pod
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import Dispatcher

BYSTANDER = """
import json, ssl, sys, time, urllib.request
url, ca, token = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
for line in urllib.request.urlopen(request, context=context):
    now = time.monotonic()
    event = json.loads(line)
    print(now, event["type"], event["object"]["metadata"]["name"], flush=True)
"""


def state(plane: ControlPlane, name: str) -> str:
    """The state and the last condition of an AppWrapper."""
    status = plane.request("GET", f"{APPWRAPPERS}/{name}")[1].get("status", {})
    return f"{status.get('state')}/{status.get('queuejobstate')}"


def measure(plane: ControlPlane, rounds: int) -> list[float]:
    """Milliseconds per round."""
    url = f"{plane.url}/api/v1/namespaces/default/pods?watch=true"
    seen: list[tuple[float, str, str]] = []
    token = plane.layout.tokens["admin"]
    command = [sys.executable, "-c", BYSTANDER, url, str(plane.ca_file), token]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watcher:
        create(plane, appwrapper("aw-0", pod("pod-0", cpu="900m")))
        for number in range(rounds):
            after = f"aw-{number + 1}"
            wait_for_state(plane, f"aw-{number}", "Running/Dispatched")
            wait_running(plane, f"pod-{number}")
            create(plane, appwrapper(after, pod(f"pod-{number + 1}", cpu="900m")))
            wait_for_state(plane, after, "Pending/Backoff")
            time.sleep(0.2)  # what the refusal left to do is done
            plane.request("DELETE", f"{APPWRAPPERS}/aw-{number}")
            read_until(watcher, seen, "ADDED", f"pod-{number + 1}")
        watcher.terminate()
    at = {(kind, name): when for when, kind, name in seen}
    return [1000 * (at["ADDED", f"pod-{n + 1}"] - at["DELETED", f"pod-{n}"]) for n in range(rounds)]


def wait_for_state(plane: ControlPlane, name: str, wanted: str) -> None:
    """Until the AppWrapper says so."""
    plane.wait_for(lambda: state(plane, name) == wanted, what=f"{name} is {wanted}")


def wait_running(plane: ControlPlane, name: str) -> None:
    """Until the pod runs."""
    path = f"/api/v1/namespaces/default/pods/{name}"
    plane.wait_for(
        lambda: plane.request("GET", path)[1].get("status", {}).get("phase") == "Running",
        what=f"{name} runs",
    )


def read_until(watcher: subprocess.Popen, seen: list, kind: str, name: str) -> None:
    """Collect what the bystander saw until it saw this."""
    while not seen or seen[-1][1:] != (kind, name):
        when, what, whose = watcher.stdout.readline().split()
        seen.append((float(when), what, whose))


def main() -> None:
    """Print median and maximum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args()
    with cluster(1, cpu="1", memory="16Gi") as (plane, account), Dispatcher(plane, account):
        times = measure(plane, options.rounds)
    print(json.dumps([round(t, 1) for t in times]))
    print(
        f"{len(times)} rounds: median {statistics.median(times):.0f} ms, "
        f"maximum {max(times):.0f} ms (goal: maximum under 200 ms)"
    )


if __name__ == "__main__":
    main()
