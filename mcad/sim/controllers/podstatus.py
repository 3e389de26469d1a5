"""``status`` of a pod as a kubelet writes it; of init containers it says nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mcad.kube.types import Json
from mcad.sim.times import parse_us, seconds

_NO_BACKOFF_S, _FIRST_BACKOFF_S, _BACKOFF_S_MAX = 0.0, 10.0, 300.0
_FORGIVEN_AFTER_S = 600.0  # a container that ran this long starts with a clean record


@dataclass(slots=True)
class ContainerState:
    """One container: since when it runs, or when it will again, or how it ended for good."""

    spec: Json
    is_running: bool = False
    is_ready: bool = False
    started_s: float = 0.0
    started_at: str = ""
    again_s: float | None = None  # when it is started again
    restarts: int = 0
    backoffs: int = 0
    ended: Json | None = None  # the last termination

    @property
    def is_done(self) -> bool:
        return not self.is_running and self.again_s is None and self.ended is not None

    @property
    def code(self) -> int:
        return int((self.ended or {}).get("exitCode", 0))

    def start(self, now_s: float, at: str) -> None:
        if self.ended is not None:
            self.restarts += 1
        self.is_running, self.started_s, self.started_at = True, now_s, at
        self.is_ready, self.again_s = False, None

    def end(self, at: str, code: int) -> None:
        self.is_running = self.is_ready = False
        self.ended = {
            "exitCode": code,
            "reason": "Completed" if code == 0 else "Error",
            "startedAt": self.started_at,
            "finishedAt": at,
        }

    def restart(self, now_s: float) -> None:
        """Start it again: at once the first time, then after 10 s, 20 s... 5 min."""
        if now_s - self.started_s >= _FORGIVEN_AFTER_S:
            self.backoffs = 0
        wait_s = _NO_BACKOFF_S
        if self.backoffs:
            wait_s = min(_FIRST_BACKOFF_S * 2 ** (self.backoffs - 1), _BACKOFF_S_MAX)
        self.backoffs += 1
        self.again_s = now_s + wait_s

    def status(self, pod: Json) -> Json:
        """Its entry in ``containerStatuses``."""
        entry: Json = {
            "name": self.spec["name"],
            "image": self.spec.get("image", ""),
            "imageID": "",
            "restartCount": self.restarts,
            "ready": self.is_ready,
            "started": self.is_running,
            "lastState": {},
        }
        if self.is_running:
            entry["state"] = {"running": {"startedAt": self.started_at}}
        elif self.again_s is not None:
            entry["state"] = {"waiting": _crash_loop(pod, self)}
        else:
            entry["state"] = {"terminated": self.ended}
        if self.ended is not None and not self.is_done:
            entry["lastState"] = {"terminated": self.ended}
        return entry


def found(pod: Json, now_s: float, now_us: int) -> list[ContainerState]:
    """The containers of a pod that runs since before its kubelet was started, as they are now."""
    told = {one["name"]: one for one in pod["status"].get("containerStatuses") or ()}
    return [
        _resumed(spec, told.get(spec["name"]) or {}, now_s, now_us)
        for spec in pod["spec"]["containers"]
    ]


def _resumed(spec: Json, told: Json, now_s: float, now_us: int) -> ContainerState:
    """One that waits is started again at once."""
    state = told.get("state") or {}
    last = (told.get("lastState") or {}).get("terminated")
    made = ContainerState(spec, restarts=told.get("restartCount", 0))
    made.ended = state.get("terminated", last)
    if started := (state.get("running") or {}).get("startedAt"):
        made.is_running, made.is_ready, made.started_at = True, bool(told.get("ready")), started
        made.started_s = now_s - max(0, now_us - parse_us(started)) / 1e6
    elif "terminated" not in state:
        made.start(now_s, seconds(now_us))
    return made


def _crash_loop(pod: Json, container: ContainerState) -> Json:
    wait_s = min(_FIRST_BACKOFF_S * 2 ** max(container.backoffs - 2, 0), _BACKOFF_S_MAX)
    metadata = pod["metadata"]
    name = f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"
    text = f"back-off {_shown(wait_s)} restarting failed container={container.spec['name']}"
    return {"reason": "CrashLoopBackOff", "message": f"{text} pod={name}"}


def _shown(wait_s: float) -> str:
    minutes, seconds = divmod(int(wait_s), 60)
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"


CREATING = {"reason": "ContainerCreating"}


def waiting(pod: Json, host_ip: str, at: str, why: Callable[[Json], Json] | None = None) -> Json:
    """The status of a pod whose containers are being created, or cannot be: ``why`` says of each
    what it waits for."""
    spec = pod["spec"]
    names = [one["name"] for one in spec["containers"]]
    conditions = {
        "PodReadyToStartContainers": ("True" if why else "False", {}),
        "Initialized": ("True", {}),
        "Ready": ("False", _unready(names)),
        "ContainersReady": ("False", _unready(names)),
    }
    status = (pod.get("status") or {}) | {
        "phase": "Pending",
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "startTime": at,
        "containerStatuses": [_waiting(one, why) for one in spec["containers"]],
    }
    return _with_conditions(pod, status, conditions, at)


def running(pod: Json, containers: Sequence[ContainerState], ips: tuple[str, str], at: str) -> Json:
    """The status of a pod whose containers have been started; ``ips`` of the host and the pod."""
    host_ip, pod_ip = ips
    unready = [one.spec["name"] for one in containers if not one.is_ready]
    done = [one for one in containers if one.is_done]
    phase, reason = "Running", ""
    if len(done) == len(containers):
        phase = "Failed" if any(one.code for one in containers) else "Succeeded"
        reason = "PodFailed" if phase == "Failed" else "PodCompleted"
    ready: tuple[str, Json] = ("True", {})
    if reason:
        ready = ("False", {"reason": reason})
    elif unready:
        ready = ("False", _unready(unready))
    initialized: Json = {"reason": "PodCompleted"} if phase == "Succeeded" else {}
    conditions = {
        "PodReadyToStartContainers": ("False" if reason else "True", {}),
        "Initialized": ("True", initialized),
        "Ready": ready,
        "ContainersReady": ready,
    }
    before = pod.get("status") or {}
    status = before | {
        "phase": phase,
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "startTime": before.get("startTime") or at,
        "containerStatuses": [one.status(pod) for one in containers],
    }
    for gate in pod["spec"].get("readinessGates") or ():
        conditions[gate["conditionType"]] = ("True", {})
    return _with_conditions(pod, status, conditions, at)


def failed(pod: Json, reason: str, message: str, at: str) -> Json:
    """The status of a pod that its kubelet has stopped."""
    status = (pod.get("status") or {}) | {"phase": "Failed"}
    if reason:
        status |= {"reason": reason, "message": message}
    done: tuple[str, Json] = ("False", {"reason": "PodFailed"})
    return _with_conditions(pod, status, {"Ready": done, "ContainersReady": done}, at)


def _unready(names: Sequence[str]) -> Json:
    text = f"containers with unready status: [{' '.join(names)}]"
    return {"reason": "ContainersNotReady", "message": text}


def _waiting(container: Json, why: Callable[[Json], Json] | None) -> Json:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "restartCount": 0,
        "ready": False,
        "started": False,
        "state": {"waiting": why(container) if why else CREATING},
        "lastState": {},
    }


def _with_conditions(pod: Json, status: Json, wanted: dict[str, tuple[str, Json]], at: str) -> Json:
    before = {one["type"]: one for one in (pod.get("status") or {}).get("conditions") or ()}
    conditions = []
    for name, (value, more) in wanted.items():
        known = before.pop(name, None)
        since = at
        if known is not None and known["status"] == value:
            since = known.get("lastTransitionTime") or at
        times = {"lastProbeTime": None, "lastTransitionTime": since}
        conditions.append({"type": name, "status": value} | times | more)
    return status | {"conditions": [*conditions, *before.values()]}
