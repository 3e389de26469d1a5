"""Events for a dispatcher in benchmarks: nodes, AppWrappers that run already, and their pods."""

from __future__ import annotations

from mcad.core.commands import Command, CreateItem, WriteQuota, WriteStatus
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Event, ItemCreated, QuotaWritten, StatusWritten
from mcad.core.state.model import (
    Child,
    DispatchPhase,
    DispatchRecord,
    Item,
    Node,
    ObjectRef,
    Persisted,
    Pod,
    PodPhase,
    Resources,
    Wanted,
    Workload,
)
from mcad.core.state.records import replace
from mcad.core.state.settings import Settings
from mcad.core.state.units import Instant
from tests.core.builders import START

_APIS = {
    "Pod": ("", "v1", "pods"),
    "Job": ("batch", "v1", "jobs"),
    "Deployment": ("apps", "v1", "deployments"),
}


def item(kind: str, name: str, namespace: str = "default", **changes: object) -> Item:
    """A wrapped object."""
    group, version, resource = _APIS[kind]
    return replace(Item(ObjectRef(group, version, resource, kind, namespace, name)), **changes)


def with_attempt(work: Workload, since: Instant, confirmed: Instant) -> Workload:
    """The same with an attempt on record: begun ``since``, and it runs."""
    refs = tuple(item.ref for item in work.items)
    phase, quota = DispatchPhase.DISPATCHED, work.quota
    record = DispatchRecord(1, 1, phase, work.payload, refs, since, confirmed, quota=quota)
    saved = Persisted("Running", since, dispatch=record, quota=quota)
    return replace(work, persisted=saved)


def own_child(work: Workload) -> Child:
    """The first item as a live object, in the first attempt."""
    ref = work.items[0].ref
    wants = tuple(Wanted(one.replicas) for one in work.sets if one.item == 0)
    return Child(f"child-{ref.name}", ref, work.uid, 1, 0, wants=wants)


def own_pod(work: Workload, name: str, node: str) -> Pod:
    """A running pod of the first pod set, in the first attempt, below ``own_child``."""
    first = work.sets[0]
    return Pod(
        f"pod-{name}",
        work.namespace,
        name,
        node,
        PodPhase.RUNNING,
        first.request,
        workload=work.uid,
        item=first.item,
        index=first.index,
        attempt=1,
        root=own_child(work).uid,
    )


def machines(count: int, cpus: int, **more: int) -> list[Node]:
    """Equal nodes of so many CPUs, 110 pods, and whatever else."""
    has = {"cpu": 1000 * cpus, "pods": 110, **more}
    return [Node(f"n{number:04}", tuple(sorted(has.items()))) for number in range(count)]


def cores(count: int) -> Resources:
    """The request of a pod."""
    return (("cpu", 1000 * count), ("pods", 1))


class Fed:
    """A dispatcher that gets one event every microsecond, and whose writes succeed at once;
    ``created`` are the uids of creates in their order."""

    def __init__(self, settings: Settings) -> None:
        self.now = START
        self.dispatcher = Dispatcher(settings)
        self.created: list[str] = []

    def step(self, event: Event) -> tuple[Command, ...]:
        """One step of the core."""
        return self.dispatcher.step(event, self.now)

    def feed(self, event: Event) -> None:
        """One step, and what comes of its commands."""
        self.now += 1
        for command in self.step(event):
            match command:
                case WriteStatus():
                    self.feed(StatusWritten(command.uid, command.serial))
                case WriteQuota():
                    self.feed(QuotaWritten(command.uid, command.serial))
                case CreateItem():
                    self.created.append(command.uid)
                    self.feed(ItemCreated(command.uid, command.attempt, command.item, command.uid))
