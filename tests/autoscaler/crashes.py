"""One short story, in which the dispatcher is killed at any of its writes.

Two gangs get nodes one after the other, one can have none, and one is deleted while it waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from mcad.api.config import Config
from tests.autoscaler.groups import Group
from tests.autoscaler.growing import GrowingWorld, grow
from tests.autoscaler.waits import Cause
from tests.faults.injection import Fault, Plan
from tests.faults.scenarios import Scenario, complete, create, delete, job
from tests.faults.world import Outcome

WAYS = ("CapacityBuffer", "PlaceholderPods", "ProvisioningRequest")
FAULTS = (Fault.KILLED_BEFORE, Fault.KILLED_AFTER, Fault.BEQUEATHED, Fault.LATE)
"""Killed before the write, after it, while it is under way; and a write without an answer."""
GROUPS = (Group("cpus", "2", 4, 20.0),)


def scenario(via: str) -> Scenario:
    """The story for one way to ask."""
    config = Config(protectAfter=0, scaleUp={"via": via, "timeout": 120})
    acts = (
        (0.0, create(complete("a", job("a", 5, 60)))),
        (1.0, create(complete("b", job("b", 6, 30)))),
        (2.0, create(complete("too-large", job("too-large", 9, 30)))),
        (3.0, create(complete("gone", job("gone", 4, 30)))),
        (12.0, delete("gone")),
        (400.0, delete("too-large")),
    )
    ends = {"a": "Completed", "b": "Completed", "too-large": "", "gone": ""}
    return Scenario(f"in turn, {via}", (), acts, ends, config=config, settles_s=900.0)


@cache
def undisturbed(via: str) -> Outcome:
    """How it ends without a crash."""
    return grow(scenario(via), GROUPS)


def broken(via: str, fault: Fault, k: int) -> str:
    """What is wrong if the fault meets write ``k``; "" if nothing is."""
    worlds: list[GrowingWorld] = []
    plan = Plan(writes=lambda number: fault if number == k else None)
    try:
        outcome = grow(scenario(via), GROUPS, plan=plan, seen=worlds.append)
    except AssertionError as error:
        return _told(via, fault, k, str(error))
    late = worlds[0].waits.of(Cause.OURS)
    if outcome.objects != undisturbed(via).objects or late:
        return _told(via, fault, k, f"{outcome.objects}, late: {[str(one) for one in late]}")
    return ""


def cases() -> Iterator[tuple[str, Fault, int]]:
    """All of them."""
    for via in WAYS:
        for fault in FAULTS:
            yield from ((via, fault, k) for k in range(undisturbed(via).writes))


def _told(via: str, fault: Fault, k: int, words: str) -> str:
    return f"{via}, {fault.name} at write {k} ({undisturbed(via).requests[k]}): {words}"
