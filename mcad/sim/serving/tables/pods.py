"""Rows of pods, with one word for the state of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mcad.kube.types import Json
from mcad.sim.serving.tables.printer import NONE, age, condition, name, printer, since, status

_TERMINAL = ("Succeeded", "Failed")


def row_conditions(pod: Json) -> list[Json]:
    """Conditions of the row of a finished pod: kubectl can hide such rows."""
    phase = status(pod).get("phase")
    if phase not in _TERMINAL:
        return []
    ended = "has completed successfully" if phase == "Succeeded" else "failed"
    return [
        {"type": "Completed", "status": "True", "reason": phase, "message": f"The pod {ended}."}
    ]


def _cells(pod: Json, now_us: int) -> list[Any]:
    containers = status(pod).get("containerStatuses") or ()
    ready = sum(map(_runs, containers))
    return [
        name(pod),
        f"{ready}/{len(pod['spec'].get('containers') or ())}",
        _deletion_word(pod) or _word(pod, containers),
        _restarts(containers, now_us),
        age(pod, now_us),
        *_wide(pod),
    ]


def _runs(container: Json) -> bool:
    is_running = (container.get("state") or {}).get("running") is not None
    return is_running and bool(container.get("ready"))


def _restarts(containers: Iterable[Json], now_us: int) -> str:
    count = sum(one.get("restartCount", 0) for one in containers)
    ends = [(one.get("lastState") or {}).get("terminated") or {} for one in containers]
    last = max((one.get("finishedAt") or "" for one in ends), default="")
    return f"{count} ({since(last, now_us)} ago)" if count and last else str(count)


def _deletion_word(pod: Json) -> str:
    is_over = status(pod).get("phase") in _TERMINAL
    return "Terminating" if pod["metadata"].get("deletionTimestamp") and not is_over else ""


def _word(pod: Json, containers: Sequence[Json]) -> str:
    """The problem of the first container that has one, otherwise the phase or reason of the pod."""
    state = status(pod)
    gated = condition(pod, "PodScheduled").get("reason") == "SchedulingGated"
    word = "SchedulingGated" if gated else state.get("reason") or state.get("phase", "")
    failure = ""
    for one in reversed(containers):
        now = one.get("state") or {}
        ended, waiting = now.get("terminated"), now.get("waiting") or {}
        if waiting.get("reason"):
            word = waiting["reason"]
        elif ended is not None:
            word = ended.get("reason") or f"ExitCode:{ended.get('exitCode', 0)}"
            failure = word if ended.get("exitCode", 0) else failure
    if word != "Completed":
        return str(word)
    if any(map(_runs, containers)):
        is_ready = condition(pod, "Ready").get("status") == "True"
        return "Running" if is_ready else failure or "NotReady"
    return failure or "Completed"


def _wide(pod: Json) -> list[str]:
    spec, state = pod["spec"], status(pod)
    ips = state.get("podIPs") or [{}]
    gates = [condition(pod, one["conditionType"]) for one in spec.get("readinessGates") or ()]
    passed = sum(gate.get("status") == "True" for gate in gates)
    return [
        ips[0].get("ip") or NONE,
        spec.get("nodeName") or NONE,
        state.get("nominatedNodeName") or NONE,
        f"{passed}/{len(gates)}" if gates else NONE,
    ]


PODS = printer(
    "Name, Ready, Status, Restarts, Age, IP+, Node+, Nominated Node+, Readiness Gates+", _cells
)
