"""What one write of an AppWrapper's status costs the API server, by the way it is written.

    python -m benchmarks.status_writes [--count 1500] [--pods 1] [--rounds 2]

The dispatcher writes merge patches that name the resourceVersion. The others are a JSON patch that
tests it, a PUT of the whole object, and server-side apply. Printed is the CPU time of the API
server and of etcd for each write, in milliseconds.

Two rounds each, on two busy cores, API server only: with one pod merge patch 4.7, 4.5; JSON patch
3.8, 3.9; PUT 3.7, 3.6; apply 4.3, 4.0. With 20 pods merge patch 8.0, 7.1; JSON patch 7.2, 7.7; PUT
7.2, 8.3; apply 6.5, 8.7. So what a small object gains is lost in the noise with a larger one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from benchmarks.cluster import APPWRAPPERS, appwrapper, clear, cluster, create, pod
from benchmarks.dispatch_rate import cpu_s
from tests.controlplane.controlplane import ControlPlane

Json = dict[str, Any]
Write = Callable[[ControlPlane, str, Json, Json], tuple[int, Json]]
"""Writes a new status to the object at a path."""


def merge_patch(plane: ControlPlane, path: str, obj: Json, status: Json) -> tuple[int, Json]:
    body = {"metadata": {"resourceVersion": _version(obj)}, "status": status}
    return plane.request("PATCH", path, body, content_type="application/merge-patch+json")


def json_patch(plane: ControlPlane, path: str, obj: Json, status: Json) -> tuple[int, Json]:
    unchanged = {"op": "test", "path": "/metadata/resourceVersion", "value": _version(obj)}
    fields = [{"op": "add", "path": f"/status/{key}", "value": status[key]} for key in status]
    is_first = "status" not in obj
    changes = [{"op": "add", "path": "/status", "value": status}] if is_first else fields
    return plane.request(
        "PATCH", path, [unchanged, *changes], content_type="application/json-patch+json"
    )


def put(plane: ControlPlane, path: str, obj: Json, status: Json) -> tuple[int, Json]:
    return plane.request("PUT", path, obj | {"status": status})


def apply(plane: ControlPlane, path: str, obj: Json, status: Json) -> tuple[int, Json]:
    named = {"name": obj["metadata"]["name"], "resourceVersion": _version(obj)}
    body = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": named}
    as_manager, applied = f"{path}?fieldManager=mcad&force=true", body | {"status": status}
    return plane.request("PATCH", as_manager, applied, content_type="application/apply-patch+yaml")


WAYS: tuple[Write, ...] = (merge_patch, json_patch, put, apply)


def _version(obj: Json) -> str:
    return str(obj["metadata"]["resourceVersion"])


def status_of(number: int) -> Json:
    """A status as large as one with an intent, another one for each number."""
    at = "2026-01-01T00:00:00"
    condition = {"type": "Queued", "status": "True", "reason": f"R{number}", "message": "m" * 60}
    intent = {"phase": "Dispatching", "attempt": number, "epoch": 1, "intentTime": f"{at}.000000Z"}
    return {
        "state": "Pending",
        "queuejobstate": "Queueing",
        "dispatch": intent,
        "conditions": [condition | {"lastTransitionTime": f"{at}Z"}],
    }


def measure(plane: ControlPlane, write: Write, count: int, pods: int) -> tuple[float, float]:
    """Milliseconds of the API server and of etcd for a write, of an AppWrapper of so many pods."""
    pids = [plane.process(name).pid for name in ("kube-apiserver", "etcd")]
    obj = create(plane, appwrapper("one", *(pod(f"pod-{number}") for number in range(pods))))
    path = f"{APPWRAPPERS}/one/status"
    before = [cpu_s(pid) for pid in pids]
    for number in range(count):
        code, obj = write(plane, path, obj, status_of(number))
        if code != 200:
            raise SystemExit(f"{write.__name__}: {code} {obj}")
    api_server, etcd = (
        1000 * (cpu_s(pid) - was) / count for pid, was in zip(pids, before, strict=True)
    )
    clear(plane)
    return api_server, etcd


def main() -> None:
    """The ways by turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1500)
    parser.add_argument("--pods", type=int, default=1, help="of the AppWrapper; 20 are 5 kB")
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    with cluster(0) as (plane, _):
        for _ in range(args.rounds):
            for write in WAYS:
                api_server, etcd = measure(plane, write, args.count, args.pods)
                print(f"{write.__name__:12} API server {api_server:.2f}, etcd {etcd:.2f}")


if __name__ == "__main__":
    main()
