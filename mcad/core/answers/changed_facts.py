"""The facts of a cluster with a change, to see what would happen then."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mcad.core.answers.dry_run import Facts
from mcad.core.events import AppWrapperSeen, ChildSeen, Event, NodeSeen, PodSeen, QuotaSeen
from mcad.core.state.model import Node
from mcad.core.state.quota_records import QuotaChild
from mcad.core.state.records import replace


def without(facts: Facts, uids: Collection[str]) -> Facts:
    """Without these AppWrappers, their objects and their pods."""
    return replace(facts, events=[one for one in facts.events if _owner(one) not in uids])


def with_nodes(facts: Facts, nodes: Iterable[Node]) -> Facts:
    """With further nodes."""
    return replace(facts, events=[*map(NodeSeen, nodes), *facts.events])


def with_share(facts: Facts, tree: str, node: str, shares: dict[str, int]) -> Facts | None:
    """With other amounts of these resources at a node of a quota tree; None without that node."""
    events: list[Event] = []
    found = False
    for event in facts.events:
        if isinstance(event, QuotaSeen) and event.subtree.tree == tree:
            names = [child.name for child in event.subtree.children]
            found = found or node in names
            children = tuple(_with(one, node, shares) for one in event.subtree.children)
            subtree = replace(event.subtree, children=children)
            events.append(QuotaSeen(subtree, event.shown))
        else:
            events.append(event)
    return replace(facts, events=events) if found else None


def _with(child: QuotaChild, node: str, shares: dict[str, int]) -> QuotaChild:
    if child.name != node:
        return child
    return replace(child, nominal=tuple(sorted((dict(child.nominal) | shares).items())))


def _owner(event: Event) -> str:
    """The uid of the AppWrapper that an event is about, "" if it is about something else."""
    match event:
        case AppWrapperSeen():
            return event.workload.uid
        case ChildSeen():
            return event.child.workload
        case PodSeen():
            return event.pod.workload
    return ""
