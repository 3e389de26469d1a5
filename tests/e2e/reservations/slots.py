"""A dispatcher with these settings, what is submitted to it, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.controlplane.controlplane import ControlPlane
from tests.e2e.fleet import Sight
from tests.e2e.process import Dispatcher
from tests.e2e.support import conditions_of, create, delete, items, states, status_of
from tests.manifests import components, pod

Json = dict[str, Any]

SLOT = "example.com/slot"
SLOTS = 4
PATIENCE_S = 90.0
PODS = "/api/v1/namespaces/default/pods"
QUOTA = "quotaEnabled=true"
SETTINGS = (
    QUOTA,
    "minRunTime=0",
    "protectAfter=0",
    # Each life begins when the lease of the one before has run out. With 2 s a dispatcher lost its
    # lease once, on a slow machine on which all tests ran at the same time.
    "leaderElection={leaseDuration: 4, renewDeadline: 3.6, retryPeriod: 0.4}",
)
PREEMPTION = "preemption=true"


@contextmanager
def dispatching(
    plane: ControlPlane, account: Path, *more: str, flags: tuple[str, ...] = ()
) -> Iterator[Dispatcher]:
    """A dispatcher with these settings as well; nothing is left of what a test has made."""
    settings = [flag for setting in (*SETTINGS, *more) for flag in ("--set", setting)]
    with Dispatcher(plane, account, *settings, *flags) as running:
        try:
            yield running
        finally:
            plane.kubectl("delete", "quotasubtrees", "--all", "--all-namespaces")
            delete(plane)


def submit(plane: ControlPlane, name: str, cpu: str = "100m", **more: Any) -> None:
    """An AppWrapper with a pod of its name; ``slots`` are those that it takes, ``team`` its leaf,
    ``seconds`` how long it runs, ``linger`` how many seconds it takes to end once it is deleted,
    ``rank`` the pod's PriorityClass, and ``annotations`` are its own. The rest is of the spec."""
    slots, team, rank = more.pop("slots", 0), more.pop("team", ""), more.pop("rank", "")
    one = pod(name, cpu, more.pop("seconds", None), {SLOT: str(slots)} if slots else None)
    if rank:
        one["spec"]["priorityClassName"] = rank
    if linger := more.pop("linger", 0):
        one["spec"]["terminationGracePeriodSeconds"] = linger
        one["metadata"]["annotations"] = {"controlplane.test/lingers": "true"}
    notes = more.pop("annotations", {})
    made = components(name, one, **more)
    made["metadata"] |= {
        "namespace": "default",
        "labels": {"teams": team} if team else {},
        "annotations": notes,
    }
    create(plane, made)


def until(plane: ControlPlane, **wanted: str) -> None:
    """Wait until these AppWrappers are in these states, and there are no others."""
    named = {name.replace("_", "-"): state for name, state in wanted.items()}
    plane.wait_for(lambda: states(plane) == named, PATIENCE_S, f"{named}")


def told(plane: ControlPlane, name: str, kind: str) -> tuple[str, str, str]:
    """Status, reason and message of a condition."""
    found = conditions_of(plane, name).get(kind, {})
    return tuple(found.get(key, "") for key in ("status", "reason", "message"))


def events(plane: ControlPlane, name: str) -> list[str]:
    """The reasons of the Events about an AppWrapper."""
    found = items(plane, "/api/v1/namespaces/default/events")
    return [one["reason"] for one in found if one["involvedObject"].get("name") == name]


def until_told(plane: ControlPlane, name: str, *reasons: str) -> None:
    """Wait for Events with these reasons: each is written after the status that it is about."""
    missing = set(reasons)
    plane.wait_for(lambda: missing <= set(events(plane, name)), PATIENCE_S, f"Events {reasons}")


def eviction(plane: ControlPlane, name: str) -> tuple[int, str, str]:
    """How often, why and for whom it was evicted."""
    found = status_of(plane, name).get("eviction", {})
    return found.get("count", 0), found.get("reason", ""), found.get("title", "")


def check_room(sights: list[Sight], of: Callable[[Json], float], most: float) -> None:
    """Never do all pods that exist together take more than there is."""
    taken: dict[str, float] = {}
    for sight in sights:
        if sight.kind == "Pod":
            taken[sight.uid] = 0 if sight.type == "DELETED" else of(sight.object)
            assert sum(taken.values()) <= most, sight.name


def slots_of(one: Json) -> float:
    requests = one["spec"]["containers"][0]["resources"]["requests"]
    return 0 if one["status"].get("phase") == "Succeeded" else float(requests.get(SLOT, 0))


def cpus_of(one: Json) -> float:
    return float(one["spec"]["containers"][0]["resources"]["requests"]["cpu"])
