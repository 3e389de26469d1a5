"""Changes of the facts that may start an AppWrapper. A dry run makes them and takes them back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from mcad.core.events import AppWrapperSeen, Event, NodeGone, NodeSeen, QuotaSeen
from mcad.core.state.model import HOSTNAME, Node, Workload
from mcad.core.state.quota_records import QuotaChild, QuotaSubtree
from mcad.core.state.records import Struct, replace

if TYPE_CHECKING:
    from mcad.core.answers.dry_run import DryRun


class Edit(Struct, frozen=True):
    """Edit a waiting AppWrapper: it is like ``work`` from now on."""

    work: Workload

    def make(self, run: DryRun) -> Callable[[], None]:
        """See ``Change``."""
        before = run.entry(self.work.uid).workload
        return _feed(run, [AppWrapperSeen(self.work)], [AppWrapperSeen(before)])


class AddNodes(Struct, frozen=True):
    """Add ``count`` empty nodes like this node."""

    like: Node
    count: int

    def nodes(self) -> list[Node]:
        """The new nodes: like the old one, each with a name of its own."""
        return [_named(self.like, f"{self.like.name}-added-{n + 1}") for n in range(self.count)]

    def make(self, run: DryRun) -> Callable[[], None]:
        """See ``Change``."""
        nodes = self.nodes()
        return _feed(run, map(NodeSeen, nodes), [NodeGone(node.name) for node in nodes])


class End(Struct, frozen=True):
    """End these AppWrappers (uids), which hold room: their pods and assumed pods are gone."""

    uids: tuple[str, ...]

    def make(self, run: DryRun) -> Callable[[], None]:
        """See ``Change``."""
        cluster = run.cluster
        namespaces = {uid: _namespace(run, uid) for uid in self.uids}
        removed = [cluster.admission.remove(uid, name) for uid, name in namespaces.items()]

        def take_back() -> None:
            for one in reversed(removed):
                cluster.admission.restore(one)

        return take_back


class Leave(Struct, frozen=True):
    """Take these waiting AppWrappers (uids) out of the line."""

    uids: tuple[str, ...]

    def make(self, run: DryRun) -> Callable[[], None]:
        """See ``Change``."""
        gone = [run.entry(uid) for uid in self.uids]
        for entry in gone:
            run.cluster.leave_line(entry)

        def take_back() -> None:
            for entry in gone:
                run.cluster.line_up(entry)

        return take_back


class RaiseQuota(Struct, frozen=True):
    """Edit QuotaSubtrees: ``after`` replaces ``before``."""

    before: tuple[QuotaSubtree, ...]
    after: tuple[QuotaSubtree, ...]

    def make(self, run: DryRun) -> Callable[[], None]:
        """See ``Change``."""
        return _feed(run, map(QuotaSeen, self.after), map(QuotaSeen, self.before))


def _feed(run: DryRun, events: Iterable[Event], undo: Iterable[Event]) -> Callable[[], None]:
    """Feed events to the dispatcher; returns a function that feeds the undoing events."""
    for event in events:
        run.feed(event)

    def take_back() -> None:
        for event in undo:
            run.feed(event)

    return take_back


def with_shares(subtree: QuotaSubtree, node: str, shares: Mapping[str, int]) -> QuotaSubtree:
    """The QuotaSubtree with other shares of these resources at a node, if it defines the node."""

    def changed(child: QuotaChild) -> QuotaChild:
        if child.name != node:
            return child
        return replace(child, nominal=tuple(sorted({**dict(child.nominal), **shares}.items())))

    return replace(subtree, children=tuple(map(changed, subtree.children)))


def resized(work: Workload, position: int, **changes: object) -> Workload:
    """The AppWrapper with another pod set at this position."""
    sets = list(work.sets)
    sets[position] = replace(sets[position], **changes)
    return replace(work, sets=tuple(sets))


def _named(node: Node, name: str) -> Node:
    labels = tuple((key, name if key == HOSTNAME else value) for key, value in node.labels)
    return replace(node, name=name, labels=labels)


def _namespace(run: DryRun, uid: str) -> str:
    entry = run.cluster.entries.get(uid)
    return entry.workload.namespace if entry is not None else ""
