"""When what runs is finished, by the rules of either dialect."""

from __future__ import annotations

from mcad.core import teardown
from mcad.core.commands import Urgency
from mcad.core.entry import Entry
from mcad.core.lifecycle import Phase, Signal
from mcad.core.model import Child, Dialect, PodCounts
from mcad.core.reasons import (
    PODS_COMPLETED,
    SOME_ITEMS_COMPLETED,
    ConditionType,
    EventReason,
    TeardownReason,
)
from mcad.core.world import World

_FINISHED = frozenset({"complete", "completed", "succeeded"})
"""Conditions and pod phases that mean success whatever the kind (v1beta2 completion)."""


def judge(world: World) -> None:
    """Complete what is finished, and take back what runs although it is suspended.

    The spec counts, not its change: that may have come during the creation, or before a restart.
    """
    for uid in world.to_judge:
        entry = world.entries.get(uid)
        if entry is None or entry.phase is not Phase.RUNNING or entry.workload.deleting:
            continue
        _judge_one(world, entry)
        if entry.phase is Phase.RUNNING and entry.workload.suspended:
            teardown.take_back(world, entry, TeardownReason.SUSPENDED, "spec.suspend is true.")
    world.to_judge.clear()


def hear(entry: Entry, child: Child) -> None:
    """What an object of the present attempt says of its end; that it said so outlives it."""
    items = entry.workload.items
    if not 0 <= child.item < len(items):
        return
    is_v1beta2 = entry.workload.dialect is Dialect.V1BETA2
    if child.met.intersection(_FINISHED if is_v1beta2 else items[child.item].completion):
        entry.finished.add(child.item)


def remember(entry: Entry) -> None:
    """After a restart: what has gone since it was on record that every item had said so."""
    if entry.shows(ConditionType.RUNNING_HOLD_COMPLETION):
        entry.finished.update(
            item for item in _flagged(entry) if item not in entry.creation.created
        )


def _judge_one(world: World, entry: Entry) -> None:
    """Completed is what says so and wants no pod any more; a count of pods never tells it.

    A word may be said before any pod exists (a Deployment's Progressing), and between two waves of
    a Job no pod does.
    """
    is_v1beta2 = entry.workload.dialect is Dialect.V1BETA2
    if not (_has_succeeded(world, entry) if is_v1beta2 else _has_said_so(entry)):
        return
    pods = world.capacity.pod_counts(entry.uid)
    if not (pods.running or pods.pending or world.capacity.wanted(entry.uid)):
        _complete(world, entry, pods)
    elif not is_v1beta2 and not entry.shows(ConditionType.RUNNING_HOLD_COMPLETION):
        entry.set_condition(
            ConditionType.RUNNING_HOLD_COMPLETION, world.now, reason=SOME_ITEMS_COMPLETED
        )
        world.settle(entry)


def _flagged(entry: Entry) -> list[int]:
    return [number for number, item in enumerate(entry.workload.items) if item.completion]


def _has_said_so(entry: Entry) -> bool:
    """v1beta1: every item with ``completionstatus`` was seen with one of its words."""
    flagged = _flagged(entry)
    return bool(flagged) and entry.finished.issuperset(flagged)


def _has_succeeded(world: World, entry: Entry) -> bool:
    """v1beta2: every item with pods says that it succeeded; of a kind that cannot say, all pods.

    Without declared pods nothing can succeed; upstream calls that an instant success.
    """
    declared: dict[int, int] = {}
    for one in entry.workload.sets:
        if one.replicas or one.per_node:
            declared[one.item] = declared.get(one.item, 0) + max(1, one.replicas)
    return bool(declared) and all(
        item in entry.finished or _have_pods_succeeded(world, entry, item, pods)
        for item, pods in declared.items()
    )


def _have_pods_succeeded(world: World, entry: Entry, item: int, declared: int) -> bool:
    if entry.workload.items[item].tells_end:
        return False
    return world.capacity.succeeded(entry.uid, item) >= declared


def _complete(world: World, entry: Entry, pods: PodCounts) -> None:
    now, entry.pods = world.now, pods
    entry.unset_condition(ConditionType.RUNNING_HOLD_COMPLETION, now, reason=PODS_COMPLETED)
    entry.set_condition(ConditionType.COMPLETED, now, reason=PODS_COMPLETED)
    world.release(entry)
    entry.move(Signal.COMPLETE, now)
    world.settle(entry, Urgency.DISPATCH)
    world.announce(entry, EventReason.COMPLETED, "All items are finished.", action="Complete")
