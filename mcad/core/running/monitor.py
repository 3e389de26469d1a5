"""What is to be done about AppWrappers with an attempt that stands, whenever something about them
has changed.

The spec counts, not its change: that may have come during the creation, or before a restart.
"""

from __future__ import annotations

from mcad.core.attempts import create, remains, teardown
from mcad.core.cluster import World
from mcad.core.running import completion, health, requeue, reset, unscheduled
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Dialect
from mcad.core.state.reasons import SUSPENDED_NOTE, TeardownReason
from mcad.core.state.timers import Timer
from mcad.core.views import pod_counts


def judge(world: World) -> None:
    """Complete what is finished, take back what breaks or is not to run, and keep the times."""
    for uid in world.to_judge:
        entry = world.entries.get(uid)
        if entry is None:
            continue
        if entry.workload.deleting:
            remains.linger(world, entry)
            continue
        match entry.phase:
            case Phase.CREATING:
                create.judge(world, entry)
            case Phase.RUNNING:
                _judge_running(world, entry)
            case Phase.COMPLETED:
                completion.keep(world, entry)
            case Phase.KEEPING:
                reset.keep(world, entry)
            case Phase.PAUSING:
                reset.pause(world, entry)
            case _:
                pass
        _tell_pod_counts(world, entry)
    world.to_judge.clear()


def _tell_pod_counts(world: World, entry: Entry) -> None:
    """Pods changed and no other write tells of it: one does, when the last one is old enough."""
    interval = world.settings.pod_counts_interval
    if entry.phase not in pod_counts.LIVE or Timer.COUNTS in entry.timers or not interval:
        return
    if pod_counts.are_right(entry, world.capacity):
        return
    due = entry.counted_at + interval
    if world.now < due:
        world.wake_in(entry, Timer.COUNTS, due - world.now)
        return
    pod_counts.recount(entry, world.capacity, interval, world.now)
    world.settle(entry)


def _judge_running(world: World, entry: Entry) -> None:
    said = (entry.conditions.copy(), entry.record)
    if completion.judge(world, entry):
        return
    if entry.workload.suspended:
        teardown.take_back(world, entry, TeardownReason.SUSPENDED, SUSPENDED_NOTE)
        return
    requeue.judge(world, entry)
    if entry.phase is Phase.RUNNING and entry.workload.dialect is Dialect.V1BETA2:
        health.judge(world, entry)
    elif entry.phase is Phase.RUNNING:
        health.judge_items(world, entry)
    if entry.phase is Phase.RUNNING:
        unscheduled.report(world, entry)
    if entry.phase is Phase.RUNNING and said != (entry.conditions, entry.record):
        world.settle(entry)  # after a restart nothing is written that is on record already
