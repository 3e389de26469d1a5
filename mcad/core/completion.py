"""When what runs is finished, by the rules of either dialect."""

from __future__ import annotations

from mcad.core import teardown
from mcad.core.commands import Urgency
from mcad.core.entry import Entry
from mcad.core.lifecycle import Phase, Signal
from mcad.core.model import Dialect, PodCounts
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


def _judge_one(world: World, entry: Entry) -> None:
    pods = world.capacity.pod_counts(entry.uid)
    busy = bool(pods.running or pods.pending)
    if entry.workload.dialect is Dialect.V1BETA2:
        if not busy and _succeeded(world, entry, pods):
            _complete(world, entry)
        return
    flagged = [i for i, item in enumerate(entry.workload.items) if item.completion]
    if not flagged or not entry.finished.issuperset(flagged):
        return
    if not busy:
        _complete(world, entry)
    elif ConditionType.RUNNING_HOLD_COMPLETION not in entry.conditions:
        entry.set_condition(
            ConditionType.RUNNING_HOLD_COMPLETION, world.now, reason=SOME_ITEMS_COMPLETED
        )
        world.settle(entry)


def _succeeded(world: World, entry: Entry, pods: PodCounts) -> bool:
    """v1beta2: every item with pods says that it succeeded, or all declared pods did.

    Without declared pods nothing can succeed; upstream calls that an instant success.
    """
    with_pods = {s.item for s in entry.workload.sets if s.replicas or s.per_node}
    said = {c.item for c in world.children_for(entry) if c.met & _FINISHED}
    if not with_pods or with_pods <= said:
        return bool(with_pods)
    declared = sum(s.replicas for s in entry.workload.sets)
    return not pods.failed and pods.succeeded >= declared


def _complete(world: World, entry: Entry) -> None:
    now = world.now
    entry.unset_condition(ConditionType.RUNNING_HOLD_COMPLETION, now, reason=PODS_COMPLETED)
    entry.set_condition(ConditionType.COMPLETED, now, reason=PODS_COMPLETED)
    world.capacity.release(entry.uid)
    entry.move(Signal.COMPLETE, now)
    world.settle(entry, Urgency.DISPATCH)
    world.announce(entry, EventReason.COMPLETED, "All items are finished.", action="Complete")
