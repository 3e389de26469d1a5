"""Stories in which nodes have room for all, and shares of the cluster have not: who waits, and for
how long, is up to the quota trees alone.

Between a change of a tree and whatever rests on it there is more time than a gap in a watch lasts.
"""

from __future__ import annotations

from mcad.api.config import Config
from mcad.kube.kinds import QUOTA_SUBTREES
from tests.faults.scenarios import (
    NAMESPACE,
    Action,
    Json,
    Scenario,
    complete,
    create,
    delete,
    deployment,
    edit,
    job,
    scheduled,
    starting,
)
from tests.manifests import bearing, components, config_map, failing, generic, subtree

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
    "a reset keeps its share until it fails, and who queues again gives it back at once",
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
