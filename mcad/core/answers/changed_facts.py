"""The facts of a cluster with a change, to see the effect of the change."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mcad.core.answers.changes import with_shares
from mcad.core.answers.dry_run import Facts
from mcad.core.events import AppWrapperSeen, ChildSeen, Event, NodeSeen, PodSeen, QuotaSeen
from mcad.core.state.model import Node
from mcad.core.state.records import replace


def without(facts: Facts, uids: Collection[str]) -> Facts:
    """The facts without these AppWrappers, their objects and their pods."""
    return replace(facts, events=[one for one in facts.events if _owner(one) not in uids])


def with_nodes(facts: Facts, nodes: Iterable[Node]) -> Facts:
    """The facts with further nodes."""
    return replace(facts, events=[*map(NodeSeen, nodes), *facts.events])


def with_share(facts: Facts, tree: str, node: str, shares: dict[str, int]) -> Facts | None:
    """The facts with other shares of these resources at a node of a quota tree, None without it."""
    events, found = list[Event](), False
    for event in facts.events:
        if isinstance(event, QuotaSeen) and event.subtree.tree == tree:
            found = found or node in [child.name for child in event.subtree.children]
            events.append(QuotaSeen(with_shares(event.subtree, node, shares), event.shown))
        else:
            events.append(event)
    return replace(facts, events=events) if found else None


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
