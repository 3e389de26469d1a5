"""Pods: one word for everything that can be the matter with one."""

from __future__ import annotations

from typing import Any

from mcad.sim.serving.tables.printer import NONE, Json, age, condition, name, printer, since, status

_TERMINAL = ("Succeeded", "Failed")
_NODE_LOST = "NodeLost"


def row_conditions(pod: Json) -> list[Json]:
    """What a row says about a pod that is over: kubectl can hide such rows."""
    phase = status(pod).get("phase")
    if phase not in _TERMINAL:
        return []
    ended = "has completed successfully" if phase == "Succeeded" else "failed"
    return [
        {"type": "Completed", "status": "True", "reason": phase, "message": f"The pod {ended}."}
    ]


class _Tally:
    """Restarts and ready containers, counted while the statuses are walked through."""

    def __init__(self) -> None:
        self.restarts = 0
        self.last_restart = ""
        self.ready = 0

    def restarted(self, container: Json) -> None:
        self.restarts += container.get("restartCount", 0)
        ended = (container.get("lastState") or {}).get("terminated") or {}
        self.last_restart = max(self.last_restart, ended.get("finishedAt") or "")

    def shown(self, now_us: int) -> str:
        if not self.restarts or not self.last_restart:
            return str(self.restarts)
        return f"{self.restarts} ({since(self.last_restart, now_us)} ago)"


def _cells(pod: Json, now_us: int) -> list[Any]:
    spec = pod["spec"]
    sidecars = {one["name"] for one in spec.get("initContainers") or () if _restarts(one)}
    total = len(spec.get("containers") or ()) + len(sidecars)
    tally, of_sidecars = _Tally(), _Tally()
    initializing = _initializing(pod, sidecars, tally, of_sidecars)
    word = initializing or _initial_word(pod)
    if not initializing or condition(pod, "Initialized").get("status") == "True":
        # Restarts of init containers that are done are of no interest any more.
        of_sidecars.ready, tally = tally.ready, of_sidecars
        word = _main_word(pod, tally, word)
    return [
        name(pod),
        f"{tally.ready}/{total}",
        _deletion_word(pod) or word,
        tally.shown(now_us),
        age(pod, now_us),
        *_wide(pod),
    ]


def _initial_word(pod: Json) -> str:
    state = status(pod)
    gated = condition(pod, "PodScheduled").get("reason") == "SchedulingGated"
    return "SchedulingGated" if gated else state.get("reason") or state.get("phase", "")


def _deletion_word(pod: Json) -> str:
    state = status(pod)
    if not pod["metadata"].get("deletionTimestamp"):
        return ""
    if state.get("reason") == _NODE_LOST:
        return "Unknown"
    return "" if state.get("phase") in _TERMINAL else "Terminating"


def _restarts(init_container: Json) -> bool:
    """Whether it is a sidecar, which goes on running (KEP-753)."""
    return init_container.get("restartPolicy") == "Always"


def _initializing(pod: Json, sidecars: set[str], tally: _Tally, of_sidecars: _Tally) -> str:
    """``Init:...`` while an init container keeps the pod from starting."""
    total = len(pod["spec"].get("initContainers") or ())
    for position, one in enumerate(status(pod).get("initContainerStatuses") or ()):
        tally.restarted(one)
        if one["name"] in sidecars:
            of_sidecars.restarted(one)
        state = one.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if ended is not None and ended.get("exitCode", 0) == 0:
            continue
        if one["name"] in sidecars and one.get("started"):
            tally.ready += bool(one.get("ready"))
            continue
        if ended is not None:
            return f"Init:{_ended(ended)}"
        if waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}"
        return f"Init:{position}/{total}"
    return ""


def _ended(terminated: Json) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _main_word(pod: Json, tally: _Tally, word: str) -> str:
    """Once it is initialized: the trouble of the first container that has one."""
    is_running, failure = False, ""
    for one in reversed(status(pod).get("containerStatuses") or ()):
        tally.restarted(one)
        state = one.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if waiting.get("reason"):
            word = waiting["reason"]
        elif ended is not None:
            word = _ended(ended)
            failure = word if ended.get("exitCode", 0) else failure
        elif one.get("ready") and state.get("running") is not None:
            is_running = True
            tally.ready += 1
    if word != "Completed":
        return word
    if is_running and condition(pod, "Ready").get("status") == "True":
        return "Running"
    return failure or ("NotReady" if is_running else word)


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
