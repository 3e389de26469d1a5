"""The oracle finds what is wrong, in histories that were forged."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from mcad.api.config import Config
from mcad.sim.store import Change
from tests.histories import objects
from tests.histories.chronicle import Revision
from tests.histories.drawing import GRACES_S, WRAPPED, Act, History, Submitted
from tests.histories.objects import Item
from tests.histories.oracle import judge
from tests.histories.world import World, play

Json = dict[str, Any]
AT_S = 600.0


def _history(*items: Item, is_v1beta2: bool = True, cpu: int = 8) -> History:
    """One AppWrapper with these items, on one node."""
    dialect = "v1beta2" if is_v1beta2 else "v1beta1"
    obj = objects.wrapped("w", dialect, list(items))
    made = Submitted("w", obj, items, is_v1beta2, GRACES_S)
    acts = [Act(0.0, "submit", ("w",))]
    config = Config(protectAfter=0, wrappedResources=WRAPPED)
    return History(1, Random(1), config, (cpu,), [made], acts)


def _rules(world: World) -> set[str]:
    return {one.rule for one in judge(world)}


def _forged(world: World, reason: str, message: str, **spec: Any) -> set[str]:
    """What the oracle says of an end of the last attempt that is forged."""
    live = world.chronicle.wrappers[-1].change
    record = live.obj["status"]["dispatch"]
    record = record | {"phase": "undeploying", "reason": reason, "message": message}
    status = live.obj["status"] | {"dispatch": record, "conditions": [], "state": "Pending"}
    obj = live.obj | {"status": status, "spec": live.obj["spec"] | spec}
    change = Change(live.version + 1, "MODIFIED", live.key, obj, live.obj)
    world.chronicle.wrappers.append(Revision(AT_S, change))
    return _rules(world)


def _deployment() -> Item:
    return objects.deployment(Random(2), "d")


@pytest.mark.parametrize("is_v1beta2", [True, False])
@pytest.mark.parametrize("maker", sorted(set(objects.MAKERS), key=lambda one: one.__name__))
def test_every_kind_runs_and_ends_by_itself(maker: Any, is_v1beta2: bool) -> None:
    item = maker(Random(5), "i")
    world = play(_history(item, is_v1beta2=is_v1beta2, cpu=16))
    status = world.chronicle.wrappers[-1].change.obj["status"]
    assert _rules(world) == set()
    assert list(world.chronicle.ends()) == []
    for name, count in item.declared.items():
        made = [pod for pod in world.chronicle.pods.values() if pod.set == name]
        assert len(made) >= count, name
    runs_on = any(pod.lives(world.ended_s) for pod in world.chronicle.pods.values())
    state = status["state"].removesuffix("HoldCompletion")  # of a RayJob that keeps its cluster
    assert state == ("Completed" if item.ends and not runs_on else "Running")


@pytest.mark.parametrize(
    ("reason", "message", "rule"),
    [
        ("PlacementTimeout", "Without a node for 300 s: d-x.", "placementTimeout is not for"),
        ("InsufficientPodsReady", "Of 2 pods 1 exist.", "no declared pod waited"),
        ("FoundFailedPods", "Failed and not replaced: d-x.", "no pod had failed"),
        ("FailedComponent", "Deployment default/d reports", "the item has not failed"),
        ("FailedComponent", "", "the message names no item"),
        ("MissingComponent", "Deployment default/d was deleted", "no user deleted"),
        ("LostComponent", "Deployment default/d", "no pod was lost"),
        ("Suspended", "spec.suspend is true.", "the AppWrapper is not suspended"),
        ("Preempted", "", "nothing is preempted"),
        ("SomethingElse", "", "not on the list"),
    ],
)
def test_an_end_without_evidence_is_found(reason: str, message: str, rule: str) -> None:
    world = play(_history(_deployment()))
    found = _forged(world, reason, message)
    assert len(found) == 1
    assert rule in min(found)


def test_a_gang_that_was_placed_is_not_taken_back() -> None:
    world = play(_history(_deployment(), is_v1beta2=False))
    assert _forged(world, "PlacementTimeout", "Without a node") == {"all declared pods had nodes"}


def test_a_user_may_suspend() -> None:
    world = play(_history(_deployment()))
    assert _forged(world, "Suspended", "", suspend=True) == set()


def test_a_user_may_delete_an_item_and_the_message_names_it() -> None:
    world = play(_history(_deployment()))
    world.deleted.append((AT_S - 1, "Deployment", "d"))
    assert _forged(world, "MissingComponent", "Deployment default/d was deleted.") == set()


def test_a_success_that_was_deleted_between_two_dispatchers_is_unknown() -> None:
    world = play(_history(Item(objects.job(Random(4), "j").obj, {"j": 1}, ends=True)))
    world.deleted.append((AT_S - 1, "Job", "j"))
    message = "Job default/j was deleted."
    assert _forged(world, "MissingComponent", message) >= {"the item had succeeded"}
    world.gaps.append((0.0, AT_S))
    world.chronicle.wrappers.pop()
    assert "the item had succeeded" not in _forged(world, "MissingComponent", message)


def test_a_late_pod_is_evidence_if_it_is_named() -> None:
    history = _history(_deployment())
    history.moods["d"] = {"pull-fails-for": "ever"}
    history.config = Config(protectAfter=0, faultTolerance={"warmupGracePeriod": 86400})
    world = play(history)
    (name, *_) = [pod.name for pod in world.chronicle.pods.values()]
    assert _forged(world, "InsufficientPodsReady", "Not running.") == {
        "the message names no pod that is late"
    }
    world.chronicle.wrappers.pop()
    assert _forged(world, "InsufficientPodsReady", f"Not running: {name}.") == set()


def test_what_a_user_suspends_stays_suspended() -> None:
    history = _history(Item(objects.job(Random(4), "j").obj, {"j": 1}, ends=True))
    history.acts.append(Act(5.0, "suspend_item", ("Job", "j", True, "")))
    world = play(history)
    assert "resumed by the dispatcher" not in _rules(world)
    job = world.chronicle.objects["Job", "j"][-1].change
    again = job.obj | {"spec": job.obj["spec"] | {"suspend": False}}
    change = Change(job.version + 1, "MODIFIED", job.key, again, job.obj)
    world.chronicle.objects["Job", "j"].append(Revision(AT_S, change))
    assert "resumed by the dispatcher" in _rules(world)
