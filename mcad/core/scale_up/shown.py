"""The condition ScaleUp: what was asked for, and what the autoscaler says.

It has no figure that grows by itself: the times of the condition say since when it holds.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcad.core.cluster import Cluster
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Resources
from mcad.core.state.quantity import format_amount
from mcad.core.state.reasons import RUNNABLE, SCALE_UP_WITHDRAWN, ConditionType
from mcad.core.state.scale_up import Pods, ScaleUpRequest

_SETS_NAMED = 3
_NAMES = {"cpu": "CPU"}


def show(cluster: Cluster, owners: Iterable[Entry]) -> None:
    """Let the status of every AppWrapper that waits for nodes say so, and of no other."""
    waiting = {one.uid: one for one in owners}
    for entry in waiting.values():
        request = cluster.scale_ups.get(entry.uid, entry.attempt + 1)
        if request is not None and not request.withdrawn:
            show_one(cluster, entry, request)
    shown = cluster.scale_ups.shown
    for uid in [uid for uid in shown if uid not in waiting]:
        del shown[uid]
        for entry in cluster.known((uid,)):
            reason = SCALE_UP_WITHDRAWN if entry.phase is Phase.WAITING else RUNNABLE
            entry.unset_condition(ConditionType.SCALE_UP, cluster.now, reason=reason)
            cluster.settle(entry)


def show_one(cluster: Cluster, entry: Entry, request: ScaleUpRequest) -> None:
    """Let the status say what was asked for, and how far that is."""
    cluster.scale_ups.shown[entry.uid] = None
    before, kind = entry.conditions.get(ConditionType.SCALE_UP), ConditionType.SCALE_UP
    message = _words(cluster, entry, request)
    entry.set_condition(kind, cluster.now, reason=request.state.value, message=message)
    if entry.conditions[kind] is not before:
        cluster.settle(entry)


def _words(cluster: Cluster, entry: Entry, request: ScaleUpRequest) -> str:
    pods = request.lacking or cluster.capacity.gangs.unplaced_pods(entry.uid)
    asked = f"Asked for nodes for {describe(entry, pods)}"
    if not request.seen:
        return f"{asked}."
    said = f": {request.message.rstrip('.')}" if request.message else ""
    return f"{asked}; {request.object}: {request.state.value}{said}."


def describe(entry: Entry, pods: Pods) -> str:
    """``12 pods of 3 CPU and 4Gi memory``, for the first few pod sets."""
    requests = {(one.item, one.index): one.request for one in entry.workload.sets}
    named = [_of_set(count, requests.get((item, index), ())) for item, index, count in pods]
    more = len(named) - _SETS_NAMED
    listed = ", ".join(named[:_SETS_NAMED])
    return f"{listed} and more of {more} other pod sets" if more > 0 else listed


def _of_set(count: int, request: Resources) -> str:
    amounts = [
        f"{format_amount(name, n)} {_NAMES.get(name, name)}"
        for name, n in request
        if name != "pods"
    ]
    of = f" of {' and '.join(amounts)}" if amounts else ""
    return f"{count} pod{'' if count == 1 else 's'}{of}"
