"""The history of one AppWrapper from the steps of a journal (``mcad replay --aw``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcad.api.wire import format_instant
from mcad.core.commands import (
    Command,
    CreateItem,
    DeleteItem,
    ForceDeletion,
    InspectItem,
    LookForRemains,
    ReadWarnings,
    RecordEvent,
    WriteStatus,
)
from mcad.core.events import AppWrapperGone, AppWrapperSeen, Event
from mcad.core.state.status_view import StatusView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcad.core.cluster import Cluster
    from mcad.core.state.model import Condition, Workload
    from mcad.journal.replay import Made


def named(event: Event) -> str:
    """The type of an event and the name of its object."""
    about: Any = event
    for part in ("workload", "node", "pod", "child", "subtree"):
        about = getattr(event, part, about)
    name = getattr(about, "name", "") or getattr(about, "uid", "")
    return f"{type(event).__name__} {name}".rstrip()


class AppWrapperHistory:
    """Lines about observations of an AppWrapper and commands for it."""

    def __init__(self, title: str, seen: dict[str, None]) -> None:
        """``title`` is NAMESPACE/NAME; those of all AppWrappers are added to ``seen``."""
        self._title = title
        self._all = seen
        self._cluster: Cluster | None = None  # of the latest step
        self._works: dict[str, Workload] = {}  # by uid: a name may be reused
        self._reported: dict[str, tuple[str, ...]] = {}

    def lines(self, made: Made) -> Iterator[str]:
        """The lines of a step; empty for most steps."""
        lines = [*self._seen(made.step.event)]
        if made.cluster is not self._cluster:  # the first step, or a file is missing before it
            self._cluster = made.cluster
            lines += self._known(made.cluster)
        for command in made.commands:
            work = self._works.get(getattr(command, "uid", ""))
            if work is not None:
                lines += self._commanded(command, work)
        at = format_instant(made.step.now)
        yield from (f"{at}  {line}" for line in lines)

    def _seen(self, event: Event) -> Iterator[str]:
        if isinstance(event, AppWrapperSeen):
            work = event.workload
            if not self._is_meant(work):
                return
            before = self._works.get(work.uid)
            self._works[work.uid] = work
            if before is None:
                yield f"seen, priority {work.priority}, {_demand(work)}"
            elif before.generation != work.generation:
                yield f"edited, generation {work.generation}"
            elif work.deleting and not before.deleting:
                yield "deletion requested"
        elif isinstance(event, AppWrapperGone) and event.uid in self._works:
            yield "deleted"

    def _known(self, cluster: Cluster) -> Iterator[str]:
        """A line for an AppWrapper that was seen before the first step of the journal."""
        for uid, entry in cluster.entries.items():
            if self._is_meant(entry.workload) and uid not in self._works:
                self._works[uid] = entry.workload
                yield f"known, priority {entry.workload.priority}, {_demand(entry.workload)}"

    def _is_meant(self, work: Workload) -> bool:
        title = f"{work.namespace}/{work.name}"
        self._all[title] = None
        return title == self._title

    def _commanded(self, command: Command, work: Workload) -> Iterator[str]:
        match command:
            case WriteStatus():
                yield from self._status(work.uid, command.status)
            case CreateItem():
                yield f"create {_item(work, command.item)} (attempt {command.attempt})"
            case DeleteItem() | ForceDeletion():
                forced = " by force" if isinstance(command, ForceDeletion) else ""
                yield f"delete {command.ref}{forced}"
            case InspectItem():
                yield f"look at {command.ref}"
            case ReadWarnings():
                yield f"read the Events about {command.ref}"
            case LookForRemains():
                yield f"look for what is left of attempt {command.attempt}"
            case RecordEvent():
                yield f"event {command.reason}: {command.note}"
            case _:
                pass

    def _status(self, uid: str, view: StatusView) -> Iterator[str]:
        state = "/".join(filter(None, (view.phase, view.state, view.queue_job_state)))
        lines = [f"status {state}"]
        lines += [f"  {_condition(one)}" for one in view.conditions]
        if view.dispatch is not None:
            record = view.dispatch
            lines.append(f"  attempt {record.attempt} {record.phase} {record.reason}".rstrip())
        before = self._reported.get(uid, ())
        self._reported[uid] = tuple(lines)
        changed = [line for line in lines[1:] if line not in before]
        if changed or lines[0] not in before:
            yield lines[0]
            yield from changed


def _condition(one: Condition) -> str:
    return f"{one.type}={one.status} " + ": ".join(filter(None, (one.reason, one.message)))


def _item(work: Workload, number: int) -> str:
    return str(work.items[number].ref) if number < len(work.items) else f"item {number}"


def _demand(work: Workload) -> str:
    sets = (f"{one.replicas} x ({_amounts(one.request)})" for one in work.sets)
    return " + ".join(sets) or "no pods"


def _amounts(request: tuple[tuple[str, int], ...]) -> str:
    return ", ".join(
        f"{name}={amount}m" if name == "cpu" else f"{name}={amount}"
        for name, amount in request
        if name != "pods"
    )
