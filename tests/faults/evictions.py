"""Stories in which somebody waits for room that others have: they are evicted for it, or end.

Whoever would overtake is there in each of them, and would run for ever on what is reserved.
"""

from __future__ import annotations

from mcad.api.config import Config
from mcad.kube.kinds import PODS
from tests.faults.scenarios import (
    Scenario,
    complete,
    create,
    delete,
    deployment,
    edit,
    job,
    pod,
    scheduled,
)
from tests.faults.shares import define, of
from tests.manifests import components, config_map, generic, subtree

PREEMPTING = Config(preemption=True, minRunTime=0, preemptionGracePeriod=2, protectAfter=0)
IMPATIENT = Config(
    preemption=True, minRunTime=0, dispatchResourceReservationTimeout=40_000, protectAfter=0
)

PREEMPTED = Scenario(
    "a higher priority evicts one that comes back to its old place",
    cpus=(2,),
    acts=(
        (0.0, create(components("b", config_map("b"), deployment("b", 2)))),
        (20.0, create(generic("d", deployment("d", 1)))),
        (40.0, create(generic("c", deployment("c", 2), priority=5))),
        (160.0, delete("c")),
    ),
    ends={"b": "Running", "c": "", "d": "Pending"},
    config=PREEMPTING,
)

RECLAIMED = Scenario(
    "a team takes back its share from one that borrows it, and lends it again",
    cpus=(6,),
    acts=(
        (0.0, define(subtree("root", "gold", root=4))),
        (0.0, define(subtree("teams", "gold", "root", red=2, blue=2))),
        (90.0, create(of("red", components("a", config_map("a"), deployment("a", 3))))),
        (140.0, create(of("blue", generic("b", config_map("b"), deployment("b", 2))))),
        (300.0, delete("b")),
    ),
    ends={"a": "Running", "b": ""},
    config=Config(quotaEnabled=True, minRunTime=10, preemptionGracePeriod=2, protectAfter=0),
)

PROTECTED = Scenario(
    "one that waits for long gets room where another one ends, and nobody goes ahead",
    cpus=(2,),
    acts=(
        (0.0, create(scheduled(complete("a", job("a", 1, 150)), dispatchDuration={"limit": 220}))),
        (1.0, create(complete("b", job("b", 2, 20)))),
        (100.0, create(generic("c", deployment("c", 1)))),
    ),
    ends={"a": "Completed", "b": "Completed", "c": "Running"},
    config=Config(protectAfter=20),
)

UNMOVED = Scenario(
    "a pod of one that is evicted does not go, and whoever waits for it gives up its reservation",
    cpus=(2,),
    acts=(
        (0.0, create(generic("a", pod("a-0"), pod("a-1")))),
        (10.0, edit("a-0", {"metadata": {"finalizers": ["example.com/keep"]}}, PODS)),
        (20.0, create(generic("c", deployment("c", 2), priority=5))),
        (200.0, edit("a-0", {"metadata": {"finalizers": None}}, PODS)),
    ),
    ends={"a": "Pending", "c": "Running"},
    config=IMPATIENT,
)

CLAIMED = (RECLAIMED, PROTECTED)
"""These have every step of a reservation, and the suites play them with every fault of theirs; the
other ones, whose steps are mostly the same, have a kill or two."""
