"""Which pods of AppWrappers have to move when nodes are drained, and where they fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from mcad.core.answers.dry_run import Facts, fed
from mcad.core.cluster import Cluster
from mcad.core.events import Decide, Event, NodeSeen, PodSeen
from mcad.core.state.model import TERMINAL_PHASES, Pod
from mcad.core.state.records import replace


class Move(NamedTuple):
    """One AppWrapper (namespace/name): how many of its pods leave the drained nodes, how many of
    them fit on which other node, and how many on none. ``bare`` pods have no controller that
    creates them anew: they end."""

    appwrapper: str
    pods: int
    places: dict[str, int]
    unplaced: int
    bare: int = 0


class Drain(NamedTuple):
    """The moves, the highest priority first, and how many pods of no AppWrapper leave: no places
    are planned for these."""

    moves: list[Move]
    others: int


def drain(facts: Facts, nodes: Collection[str]) -> Drain:
    """Plan a drain. The AppWrappers go on running, and the owners of the pods create them anew. The
    dispatcher keeps room for them, as after the loss of a node (C6)."""
    leaving = [pod for pod in _live_pods(facts) if pod.node in nodes]
    counts = Counter(pod.workload for pod in leaving)
    others = counts.pop("", 0)
    before, after = _cluster(facts), _cluster(_drained(facts, nodes))
    known = [after.entries[uid] for uid in counts if uid in after.entries]
    known.sort(key=lambda entry: (-entry.workload.priority, entry.title))
    bare = Counter(pod.workload for pod in leaving if pod.root == pod.uid)
    moves = []
    for one in known:
        pods, ending = counts[one.uid], bare[one.uid]
        places, unplaced = _placed(before, after, one.uid) if ending < pods else ({}, 0)
        moves.append(Move(one.title, pods, places, unplaced, ending))
    return Drain(moves, others)


def _live_pods(facts: Facts) -> list[Pod]:
    pods = [event.pod for event in facts.events if isinstance(event, PodSeen)]
    return [pod for pod in pods if pod.phase not in TERMINAL_PHASES]


def _drained(facts: Facts, nodes: Collection[str]) -> Facts:
    """The facts with these nodes cordoned and without their pods."""
    events: list[Event] = []
    for event in facts.events:
        if isinstance(event, NodeSeen) and event.node.name in nodes:
            events.append(NodeSeen(replace(event.node, unschedulable=True)))
        elif not (isinstance(event, PodSeen) and event.pod.node in nodes):
            events.append(event)
    return replace(facts, events=events)


def _cluster(facts: Facts) -> Cluster:
    """The cluster after a pass that places pods without nodes, and dispatches nothing."""
    dispatcher = fed(facts)
    dispatcher.step(Decide(may_dispatch=False), facts.now)
    return dispatcher.cluster


def _placed(before: Cluster, after: Cluster, uid: str) -> tuple[dict[str, int], int]:
    """Where its pods go, and how many find no place. Pods without a node before are not counted."""
    places = Counter(_assumed(after, uid))
    places.subtract(_assumed(before, uid))
    unplaced = after.capacity.gangs.unplaced(uid) - before.capacity.gangs.unplaced(uid)
    return {name: n for name, n in places.items() if n > 0}, max(unplaced, 0)


def _assumed(cluster: Cluster, uid: str) -> dict[str, int]:
    return {name: sum(counts) for name, counts in cluster.capacity.gangs.places_of(uid).items()}
