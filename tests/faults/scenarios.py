"""Small stories in which everything that a dispatcher does happens once: a few dozen writes each.

A pod asks for one CPU and nodes have whole ones, so that there is no question of where pods go: if
a pod ever finds no room, then too much was admitted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from mcad.api.config import Config
from mcad.kube.client import Client, DeleteOptions, Propagation
from mcad.kube.kinds import APPWRAPPERS, CONFIG_MAPS, DEPLOYMENTS, NODES, PODS, QUOTA_SUBTREES
from mcad.kube.resource import Resource
from tests import manifests
from tests.manifests import bearing, components, config_map, failing, generic, subtree

Json = dict[str, Any]
NAMESPACE = "default"
QUIET = Config(protectAfter=0)
"""No AppWrapper gets a reservation by waiting: where one waits for ever, that would be no rest."""
Action = Callable[[Client], Awaitable[object]]


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """What users do, and when, in virtual seconds; ``cpus`` per node.

    Pods of the ``crowded`` AppWrappers may find no room, because what they had is taken away; of
    the ``robbed`` ones others delete objects.
    """

    name: str
    cpus: tuple[int, ...]
    acts: tuple[tuple[float, Action], ...]
    ends: dict[str, str]  # state of every AppWrapper at the end, "" where it is deleted, "*" any
    crowded: tuple[str, ...] = ()
    robbed: tuple[str, ...] = ()
    config: Config = field(default=QUIET)  # where one process is alone
    later: Config | None = None  # of all lives but the first; the same if it is not given
    settles_s: float = 400.0  # after the last act: deadlines, grace periods, backoff are shorter

    def settings(self, life: int) -> Config:
        """Those that a process is started with, from 1."""
        return self.config if life == 1 or self.later is None else self.later


def pod(name: str) -> Json:
    """A bare pod that does not end."""
    return manifests.pod(name, "1")


def job(name: str, pods: int, seconds: float, waves: int = 1) -> Json:
    """So many pods at once, that end; one that is lost is replaced."""
    made = manifests.job(name, pods, "1", seconds, waves)
    made["spec"]["backoffLimit"] = 6
    return made


def deployment(name: str, replicas: int) -> Json:
    """Pods that do not end."""
    return manifests.deployment(name, replicas, "1")


def complete(name: str, *objs: Json, priority: int = 0, word: str = "Complete") -> Json:
    """An AppWrapper that is Completed when all of its objects say this word."""
    items = [{"generictemplate": one, "completionstatus": word} for one in objs]
    return manifests.wrapper(name, {"priority": priority, "resources": {"GenericItems": items}})


def items_of(obj: Json) -> list[Json]:
    """The objects that an AppWrapper wraps."""
    spec = obj["spec"]
    items = spec.get("components") or spec["resources"]["GenericItems"]
    return [one.get("template") or one["generictemplate"] for one in items]


def pods_to_come(obj: Json) -> int:
    """The pods that an object runs, or that its controller still has to make."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    match obj["kind"]:
        case "Pod":
            return int(status.get("phase") not in ("Succeeded", "Failed"))
        case "Job":
            ended = {c["type"] for c in status.get("conditions") or () if c["status"] == "True"}
            left = spec["completions"] - status.get("succeeded", 0)
            return 0 if ended & {"Complete", "Failed"} else min(spec["parallelism"], left)
        case "Deployment":
            return int(spec["replicas"])
        case _:
            return 0


def refused(name: str) -> Json:
    """A Deployment that no server takes: its selector does not select its pods."""
    made = deployment(name, 1)
    made["spec"]["selector"] = {"matchLabels": {"app": "another"}}
    return made


def create(obj: Json, **tolerance: str) -> Action:
    """A user creates an AppWrapper, with these annotations of fault tolerance."""
    if tolerance:
        bearing(obj, **tolerance)
    resource = replace(APPWRAPPERS, version=obj["apiVersion"].rpartition("/")[2])
    return lambda client: client.create(resource, NAMESPACE, obj)


def delete(name: str, kind: Resource = APPWRAPPERS, cascade: Propagation = "Background") -> Action:
    """A user deletes an AppWrapper, or an object that one has made."""
    options = DeleteOptions(propagation=cascade)
    return lambda client: client.delete(kind, NAMESPACE, name, options)


def edit(name: str, patch: Json, kind: Resource = APPWRAPPERS) -> Action:
    """A user changes an AppWrapper, or an object that one has made, by a merge patch."""
    return lambda client: client.patch(kind, NAMESPACE, name, patch)


def starting(name: str, replicas: int, seconds: float) -> Json:
    """A Deployment whose pods take so long to start."""
    made = deployment(name, replicas)
    meta = made["spec"]["template"]["metadata"]
    meta["annotations"] = {"sim.mcad.dev/start-delay": f"{seconds}s"}
    return made


def scheduled(obj: Json, **rules: Any) -> Json:
    """A v1beta1 AppWrapper with this ``schedulingSpec``."""
    obj["spec"]["schedulingSpec"] = rules
    return obj


IN_TURN = Scenario(
    "one waits until the other is deleted",
    cpus=(2, 1),
    acts=(
        (0.0, create(generic("first", config_map("first"), deployment("first", 3)))),
        (1.0, create(generic("second", deployment("second", 2), pod("second")))),
        (40.0, delete("first")),
    ),
    ends={"first": "", "second": "Running"},
)

COMPLETED = Scenario(
    "jobs complete, and what waits follows in order",
    cpus=(2, 2),
    acts=(
        (0.0, create(complete("a", job("a", 4, 20)))),
        (0.1, create(complete("b", job("b-1", 2, 15), job("b-2", 1, 25)))),
        (0.2, create(components("c", job("c", 2, 10), config_map("c")))),
        (0.3, create(complete("d", job("d", 4, 10), priority=9))),
    ),
    ends=dict.fromkeys("abcd", "Completed"),
)

ROLLED_BACK = Scenario(
    "a dispatch that the server refuses in the middle is taken back",
    cpus=(3,),
    acts=(
        (0.0, create(generic("bad", config_map("bad"), deployment("bad", 2), refused("worse")))),
        (1.1, create(generic("good", deployment("good", 3)))),
    ),
    ends={"bad": "Failed", "good": "Running"},
)

DELETED = Scenario(
    "one is deleted while it is dispatched, one while it waits, and one comes back by its name",
    cpus=(2,),
    acts=(
        (0.0, create(generic("a", config_map("x"), pod("a-0"), pod("a-1")))),
        (0.01, delete("a")),
        (0.02, create(generic("b", pod("b-0"), pod("b-1")))),
        (0.03, create(generic("c", pod("c-0")))),
        (5.0, delete("c")),
        (6.0, create(generic("a", config_map("x"), pod("a-0"), pod("a-1")))),
        (20.0, delete("b")),
    ),
    ends={"a": "Running", "b": "", "c": ""},
)

EDITED = Scenario(
    "what waits is edited until it fits",
    cpus=(2, 1),
    acts=(
        (0.0, create(generic("a", deployment("a", 2)))),
        (1.0, create(generic("b", deployment("b", 2)))),
        (2.0, create(complete("c", job("c", 1, 30)))),
        (50.0, edit("b", {"spec": generic("b", deployment("b", 1))["spec"]})),
    ),
    ends={"a": "Running", "b": "Running", "c": "Completed"},
)

SUSPENDED = Scenario(
    "one is suspended, another takes its room, and it runs again when that is over",
    cpus=(2,),
    acts=(
        (0.0, create(components("a", config_map("a"), deployment("a", 2)))),
        (5.0, create(complete("b", job("b", 2, 20)))),
        (10.0, edit("a", {"spec": {"suspend": True}})),
        (60.0, edit("a", {"spec": {"suspend": False}})),
    ),
    ends={"a": "Running", "b": "Completed"},
)

NODE_LOST = Scenario(
    "a node is taken away under a job, and what waits stays behind it",
    cpus=(2, 2),
    acts=(
        (0.0, create(complete("a", job("a", 2, 60)))),
        (1.0, create(complete("b", job("b", 2, 60)))),
        (2.0, create(complete("c", job("c", 2, 10)))),
        (20.0, lambda client: client.delete(NODES, None, "node-1")),
    ),
    ends=dict.fromkeys("abc", "Completed"),
    crowded=("a", "b"),
)

_EITHER = "Complete, Progressing"  # a Deployment says the latter before it has any pod

WAVES = Scenario(
    "jobs run in waves, and a word that is said early is not the end",
    cpus=(2,),
    acts=(
        (0.0, create(complete("a", job("a", 1, 10, waves=3)))),
        (0.1, create(components("b", job("b", 1, 10, waves=2), config_map("b")))),
        (0.2, create(complete("c", deployment("c", 1), word="Progressing"))),
        (0.3, create(complete("d", job("d", 1, 10), deployment("d", 1), word=_EITHER))),
        (90.0, edit("c", {"spec": {"replicas": 0}}, DEPLOYMENTS)),
        (120.0, create(generic("e", deployment("e", 2)))),
        (160.0, delete("d", DEPLOYMENTS)),
    ),
    ends=dict.fromkeys("abcd", "Completed") | {"e": "Running"},
)

TWINS = Scenario(
    "two want the same names at the same time, and the second waits until the first is deleted",
    cpus=(2,),
    acts=(
        (0.0, create(generic("a", config_map("x"), pod("p")))),
        (0.0, create(generic("b", config_map("x"), pod("p")))),
        (30.0, delete("a")),
    ),
    ends={"a": "", "b": "Running"},
)

CASCADES = Scenario(
    "one is deleted after its objects, and the objects of another stay",
    cpus=(1,),
    acts=(
        (0.0, create(generic("a", config_map("a"), deployment("a", 1)))),
        (1.0, create(generic("b", config_map("b"), deployment("b", 1)))),
        (15.0, delete("a", cascade="Foreground")),
        # Of the same kinds, or a kind that cannot be watched for a while would let it overtake.
        (16.0, create(generic("c", config_map("c"), deployment("c", 1)))),
        (120.0, delete("b", cascade="Orphan")),
    ),
    ends={"a": "", "b": "", "c": "Pending"},
)

KEPT = Scenario(
    "a user's finalizer keeps what is taken back",
    cpus=(1,),
    acts=(
        (0.0, create(components("a", config_map("a"), deployment("a", 1)))),
        (1.0, create(generic("b", deployment("b", 1)))),
        (20.0, edit("a", {"metadata": {"finalizers": ["example.com/keep"]}}, CONFIG_MAPS)),
        (21.0, edit("a", {"spec": {"suspend": True}})),
        (300.0, edit("a", {"metadata": {"finalizers": None}}, CONFIG_MAPS)),
    ),
    ends={"a": "Pending", "b": "Running"},
)

OUTLIVES = Scenario(
    "a user's finalizer keeps a deleted AppWrapper, and what runs of it is taken back",
    cpus=(1,),
    acts=(
        (0.0, create(components("a", config_map("a"), deployment("a", 1)))),
        (1.0, create(generic("b", deployment("b", 1)))),
        (20.0, edit("a", {"metadata": {"finalizers": ["example.com/keep"]}})),
        (21.0, delete("a")),
    ),
    ends={"a": "Pending", "b": "Running"},
)

LINGERS = Scenario(
    "a user's finalizer keeps what a foreground deletion waits for, and force does not help",
    cpus=(1,),
    acts=(
        (
            0.0,
            create(
                components("a", config_map("a"), deployment("a", 1)),
                forcefulDeletionGracePeriodDuration="20s",
            ),
        ),
        (1.0, create(generic("b", deployment("b", 1)))),
        (20.0, edit("a", {"metadata": {"finalizers": ["example.com/keep"]}}, CONFIG_MAPS)),
        (21.0, delete("a", cascade="Foreground")),
        (150.0, edit("a", {"metadata": {"finalizers": None}}, CONFIG_MAPS)),
    ),
    ends={"a": "", "b": "Running"},
)

_QUICK = {"failureGracePeriodDuration": "10s", "retryPausePeriodDuration": "15s"}

RESET = Scenario(
    "one is reset again and again by its own room until it fails, and what waits waits for that",
    cpus=(2,),
    acts=(
        (0.0, create(components("a", failing("a", "1", 20), pod("x")), retryLimit="1", **_QUICK)),
        (1.0, create(generic("b", deployment("b", 1)))),
    ),
    ends={"a": "Failed", "b": "Running"},
)

LATE = Scenario(
    "pods that do not start cost a reset; suspended in the pause it gives its room up",
    cpus=(1,),
    acts=(
        (
            0.0,
            create(
                components("a", starting("a", 1, 500), config_map("a")),
                admissionGracePeriodDuration="20s",
                warmupGracePeriodDuration="20s",
                retryPausePeriodDuration="30s",
            ),
        ),
        (5.0, create(complete("b", job("b", 1, 10)))),
        (35.0, edit("a", {"spec": {"suspend": True}})),
    ),
    ends={"a": "Pending", "b": "Completed"},
)

KEPT_AND_CLEARED = Scenario(
    "what failed is kept for a while, and so is what succeeded; what loses an item has failed",
    cpus=(3,),
    acts=(
        (
            0.0,
            create(
                components("a", failing("a", "1", 10), config_map("a")),
                retryLimit="0",
                deletionOnFailureGracePeriodDuration="60s",
                **_QUICK,
            ),
        ),
        (0.1, create(components("b", job("b", 1, 10), config_map("b")), successTTLDuration="40s")),
        (0.2, create(components("c", deployment("c", 1), config_map("c")))),
        (100.0, delete("c", CONFIG_MAPS)),
    ),
    ends={"a": "Failed", "b": "Completed", "c": "Failed"},
    robbed=("c",),
)

REQUEUED = Scenario(
    "with too few pods one queues again and is given up at last, and another's time is over",
    cpus=(2,),
    acts=(
        (
            0.0,
            create(
                scheduled(
                    generic("a", starting("a", 1, 500)),
                    minAvailable=1,
                    requeuing={"timeInSeconds": 20, "growthType": "none", "maxNumRequeuings": 1},
                )
            ),
        ),
        (0.1, create(scheduled(generic("b", deployment("b", 1)), dispatchDuration={"limit": 50}))),
    ),
    ends={"a": "Deleted", "b": "Failed"},
)


# -- nodes have room for all, and shares of the cluster have not ---------------------------------


TREE = "gold"
COUNTING = Config(quotaEnabled=True, protectAfter=0, reclaim=False)
FORGETTING = COUNTING.model_copy(update={"quota_grace_period": 0.0})
"""A QuotaSubtree that is deleted does not count any more."""


def define(obj: Json) -> Action:
    """An administrator creates a QuotaSubtree."""
    return lambda client: client.create(QUOTA_SUBTREES, NAMESPACE, obj)


def resize(name: str, made: Json) -> Action:
    """An administrator changes its nodes into those of another one."""
    return edit(name, {"spec": {"children": made["spec"]["children"]}}, QUOTA_SUBTREES)


def of(leaf: str, obj: Json) -> Json:
    """An AppWrapper of this leaf."""
    obj["metadata"]["labels"] = {TREE: leaf}
    return obj


ROOT = subtree("root", TREE, root=3)
TEAMS = subtree("teams", TREE, "root", red=1, blue=2)

BORROWED = Scenario(
    "one team borrows what another leaves idle, and the other one waits for it",
    cpus=(6,),
    acts=(
        (0.0, define(ROOT)),
        (0.0, define(TEAMS)),
        (90.0, create(of("red", complete("a", job("a", 3, 30))))),
        (91.0, create(of("blue", components("b", deployment("b", 2), config_map("b"))))),
        (92.0, create(of("red", generic("c", deployment("c", 2))))),
        (93.0, create(of("green", generic("d", config_map("d"))))),
        (160.0, delete("b")),
    ),
    ends={"a": "Completed", "b": "", "c": "Running", "d": "Pending"},
    config=COUNTING,
)

_TWO_TEAMS = (
    (0.0, define(ROOT)),
    (0.0, define(TEAMS)),
    (90.0, create(of("red", generic("a", deployment("a", 2))))),
    (91.0, create(of("blue", components("b", deployment("b", 1), config_map("b"))))),
)
"""Red borrows one CPU of the two that blue has."""

REPLANTED = Scenario(
    "a tree shrinks, loses a branch, gets it back and is gone while AppWrappers hold shares of it",
    cpus=(8,),
    acts=(
        *_TWO_TEAMS,
        (120.0, resize("root", subtree("root", TREE, root=2))),
        (200.0, delete("teams", QUOTA_SUBTREES)),
        (280.0, create(of("blue", complete("c", job("c", 1, 10))))),
        (300.0, resize("root", subtree("root", TREE, root=4))),
        (380.0, define(TEAMS)),
        (460.0, create(of("blue", generic("d", deployment("d", 2))))),
        (540.0, delete("root", QUOTA_SUBTREES)),
        (620.0, define(ROOT)),
        (700.0, create(of("red", generic("e", deployment("e", 1))))),
        (720.0, delete("a")),
    ),
    ends={"a": "", "b": "Running", "c": "Completed", "d": "Running", "e": "Pending"},
    config=FORGETTING,
)

REPLACED = Scenario(
    "a tree is deleted and made anew while some hold shares of it and others wait for one",
    cpus=(8,),
    acts=(
        *_TWO_TEAMS,
        (92.0, create(of("red", generic("c", deployment("c", 2))))),
        (160.0, delete("root", QUOTA_SUBTREES)),
        (230.0, delete("teams", QUOTA_SUBTREES)),
        (300.0, create(of("blue", complete("d", job("d", 1, 10))))),
        (320.0, define(ROOT)),
        (390.0, define(TEAMS)),
        (470.0, delete("b")),
    ),
    ends={"a": "Running", "b": "", "c": "Pending", "d": "Completed"},
    config=COUNTING,
)

KEPT_SHARE = Scenario(
    "a reset keeps its share until it fails, and a requeue gives it back at once",
    cpus=(6,),
    acts=(
        (0.0, define(subtree("root", TREE, root=2))),
        (0.0, define(subtree("teams", TREE, "root", hard=True, red=1, blue=1))),
        (
            90.0,
            create(
                of(
                    "red",
                    bearing(
                        components("a", failing("a", "1", 20)),
                        retryLimit="1",
                        failureGracePeriodDuration="10s",
                        retryPausePeriodDuration="15s",
                    ),
                )
            ),
        ),
        (
            90.0,
            create(
                of(
                    "blue",
                    scheduled(
                        generic("c", starting("c", 1, 500)),
                        minAvailable=1,
                        requeuing={"timeInSeconds": 60, "growthType": "none"},
                    ),
                )
            ),
        ),
        (91.0, create(of("red", generic("b", deployment("b", 1))))),
        (91.0, create(of("blue", generic("d", deployment("d", 1), priority=5)))),
    ),
    ends={"a": "Failed", "b": "Running", "c": "Pending", "d": "Running"},
    config=COUNTING,
)

SHARED = (BORROWED, REPLANTED, REPLACED, KEPT_SHARE)


# -- room of others: they are evicted for it, or end ---------------------------------------------


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
    "one that waits for long gets room where another one ends, and none goes ahead",
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
    "a pod of one that is evicted does not go, and the preemptor gives up its reservation",
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


# -- all that the suites play, each with every fault of theirs -----------------------------------


SCENARIOS = (
    IN_TURN,
    COMPLETED,
    ROLLED_BACK,
    DELETED,
    EDITED,
    SUSPENDED,
    NODE_LOST,
    WAVES,
    TWINS,
    CASCADES,
    KEPT,
    OUTLIVES,
    LINGERS,
    RESET,
    LATE,
    KEPT_AND_CLEARED,
    REQUEUED,
    *SHARED,
    *CLAIMED,
)
