"""Extreme manifests through a real API server, with two replicas of the dispatcher per policy.

Each AppWrapper that the server accepts has to run, to end, or to be held with a reason, and no
process may end. Batches overlap: one waits and runs while the one before is deleted.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.rest import Reply
from tests.e2e.process import ACCOUNT, NAMESPACE, Dispatcher, install, printed
from tests.e2e.support import appwrappers_path
from tests.extremes.drawn import LEVELS, manifest, trees

Json = dict[str, Any]

BATCH = 100
NODES = 6
SETTLE_S = 240.0
START_S = 240.0
TRIES = 10
_DISK = {"ephemeral-storage": "64Gi"}
BATCH_LABEL = "extremes/batch"
REPLICAS = ("mcad-a", "mcad-b")

_LEASE = "leaderElection={leaseDuration: 60, renewDeadline: 50, retryPeriod: 2}"
"""Long enough that none is lost where the processor is shared."""

_COMMON = (
    *("quotaEnabled=true", "queueNameTree=teams", "preemption=true", "minRunTime=3"),
    *("protectAfter=10", "maxEvictionsPerMinute=600", "backoffTime=5", "neverPreempt=[default]"),
    *("placementTimeout=20", "maxPriority={default: 1000}"),
)
POLICIES = {
    "BestEffortFIFO": ("policy=BestEffortFIFO", "fairness=leaf"),
    "StrictFIFO": ("policy=StrictFIFO", "fairness=namespace"),
    "Backfill": ("policy=Backfill", "preemptionGracePeriod=1"),
    "levels": ("policy=BestEffortFIFO", f"topologyLevels=[{', '.join(LEVELS)}]"),
    "aggregate": ("fit=aggregate",),
}
_WORDS = {
    "held": "internal error uid=",
    "violated": "invariant violated",
    "journal": "the journal ends here",
    "traceback": "Traceback",
}


_WAITS = ("Backoff", "InternalError", "Unhealthy")  # the last is between two attempts


class Found(NamedTuple):
    """What became of the manifests: ``fates`` counts outcomes, ``untold`` names AppWrappers with
    neither a run nor a reason, ``ended`` the processes that ended, ``log`` counts log lines."""

    fates: Counter[str]
    untold: list[str]
    ended: list[str]
    log: Counter[str]


def furnish(plane: ControlPlane) -> Path:
    """Nodes in blocks and racks, and the rights of the dispatcher; returns its kubeconfig."""
    account = install(plane)
    rights = ("rbac", "--namespace", NAMESPACE, "--service-account", ACCOUNT)
    plane.apply(printed(*rights, "--set", "quotaEnabled=true"))
    for number in range(NODES):
        labels = {LEVELS[0]: f"b{number // 4}", LEVELS[1]: f"r{number // 2}"}
        labels |= {"disk": "ssd", "generation": str(number)}
        plane.add_node(f"n{number}", labels=labels, extended=_DISK, wait=False)
    plane.wait_for_nodes([f"n{number}" for number in range(NODES)])
    return account


def soak(
    plane: ControlPlane, account: Path, journals: Path, *, policy: str, seed: int, numbers: range
) -> Found:
    """Give these manifests to two replicas with this policy."""
    found = Found(Counter(), [], [], Counter())
    plane.apply(trees(seed, numbers.start), namespace="default")
    with _replicas(plane, account, journals, policy) as names:
        for begin in range(numbers.start, numbers.stop, BATCH):
            batch = range(begin, min(begin + BATCH, numbers.stop))
            _play(plane, seed, batch, found)
            found.ended.extend(name for name in names if plane.process(name).poll() is not None)
            if found.ended:
                break
        for name in names:
            said = plane.log(name).read_text(errors="replace")
            found.log.update({word: said.count(text) for word, text in _WORDS.items()})
        _delete(plane, range(max(numbers.start, numbers.stop - 2 * BATCH), numbers.stop))
    return found


@contextmanager
def _replicas(
    plane: ControlPlane, account: Path, journals: Path, policy: str
) -> Iterator[tuple[str, ...]]:
    options = [f"--set={one}" for one in (*_COMMON, *POLICIES[policy])]
    made = [
        Dispatcher(
            plane,
            account,
            f"--set={_LEASE}",
            *options,
            f"--journal={journals / name}",
            name=f"{name}-{policy}",
        )
        for name in REPLICAS
    ]
    for one in made:
        one.start(ready=False)
        plane.wait_for(partial(_listens, one), START_S, "a replica listens")
    names = tuple(f"{name}-{policy}" for name in REPLICAS)
    try:
        yield names
    finally:
        for one, name in zip(made, names, strict=True):
            if plane.process(name).poll() is None:
                one.stop()


def _listens(dispatcher: Dispatcher) -> bool:
    return "http=" in dispatcher.log() and dispatcher.pid > 0


def _play(plane: ControlPlane, seed: int, batch: range, found: Found) -> None:
    waiting: set[str] = set()
    for number in batch:
        drawn = manifest(seed, number)
        drawn["metadata"]["labels"][BATCH_LABEL] = str(batch.start)
        version = drawn["apiVersion"].rpartition("/")[2]
        code, _ = _request(plane, "POST", appwrappers_path("default", version), drawn)
        if code in (201, 409):
            waiting.add(drawn["metadata"]["name"])
        else:
            found.fates[f"refused with {code}"] += 1
    last, until = {}, time.monotonic() + SETTLE_S
    while waiting and time.monotonic() < until:
        time.sleep(0.5)
        for one in _listed(plane, batch):
            name = one["metadata"]["name"]
            fate, last[name] = fate_of(one), one
            if name in waiting and fate:
                waiting.discard(name)
                found.fates[fate] += 1
    found.untold.extend(f"{name}: {last.get(name, {}).get('status')}" for name in sorted(waiting))
    found.fates["untold"] += len(waiting)
    _delete(plane, range(max(0, batch.start - BATCH), batch.start))


def fate_of(obj: Json) -> str:
    """In one or two words, "" if its status says neither that it runs nor why it waits."""
    status = obj.get("status") or {}
    state = status.get("state", "")
    if state not in ("", "Pending"):
        return str(state)
    for one in status.get("conditions") or ():
        is_wait = one["type"] in _WAITS and one["status"] == "True"
        if is_wait and one.get("reason") and one.get("message"):
            return f"{one['type']}: {one['reason']}"
    return "dispatching" if status.get("canrun") else ""


def _listed(plane: ControlPlane, batch: range) -> list[Json]:
    path = f"{appwrappers_path('default', 'v1beta1')}?labelSelector={BATCH_LABEL}%3D{batch.start}"
    code, answer = _request(plane, "GET", path)
    return answer["items"] if code == 200 else []


def _delete(plane: ControlPlane, numbers: range) -> None:
    for begin in range(numbers.start, numbers.stop, BATCH):
        selector = f"labelSelector={BATCH_LABEL}%3D{begin}"
        _request(plane, "DELETE", f"{appwrappers_path('default', 'v1beta1')}?{selector}")


def _request(plane: ControlPlane, method: str, path: str, body: Json | None = None) -> Reply:
    """Repeated where a busy machine gives no answer in time; a POST may then be answered by 409."""
    for _ in range(TRIES):
        with suppress(OSError, HTTPException):
            return plane.request(method, path, body)
    raise TimeoutError(f"{method} {path}: no answer {TRIES} times")
