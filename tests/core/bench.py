"""A bench for the dispatcher: a cluster that fits on a page and carries out its commands.

Status is persisted, items and pods exist, requests can be applied with their answers lost, and the
dispatcher can be killed and started again from what is persisted. No clock, no network.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from msgspec.structs import replace

from mcad.core import invariants
from mcad.core.commands import (
    Command,
    CreateItem,
    DeleteItem,
    DeleteStray,
    ForceDeletion,
    InspectItem,
    LookForRemains,
    ReadWarnings,
    RecordEvent,
    RecordQuotaEvent,
    RequestScaleUp,
    ReviewAccess,
    WakeAt,
    WithdrawScaleUp,
    WriteQuota,
    WriteStatus,
)
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import (
    AccessReviewed,
    AppWrapperGone,
    AppWrapperSeen,
    ChildGone,
    ChildSeen,
    Decide,
    DeletionRefused,
    Event,
    Holder,
    ItemCreated,
    ItemDeleted,
    ItemInspected,
    ItemRefused,
    NodeGone,
    NodeSeen,
    PauseGone,
    PauseSeen,
    PodGone,
    PodSeen,
    QuotaGone,
    QuotaRefused,
    QuotaSeen,
    QuotaWritten,
    Remaining,
    ScaleUpGone,
    ScaleUpRefused,
    ScaleUpSeen,
    StatusRefused,
    StatusWritten,
    StrayRefused,
    WarningsRead,
)
from mcad.core.state.answer import Answer
from mcad.core.state.dispatch_pause import DispatchPause
from mcad.core.state.entry import Entry
from mcad.core.state.model import (
    Child,
    Item,
    ItemState,
    Node,
    ObjectRef,
    Pod,
    PodPhase,
    PodSet,
    Remnant,
    Resources,
    Wanted,
    Workload,
)
from mcad.core.state.quota_records import QuotaSubtree, QuotaView
from mcad.core.state.scale_up import Key, ScaleUpState
from mcad.core.state.settings import Settings
from mcad.core.state.status_view import StatusView
from mcad.core.state.units import SECOND, Duration, Instant
from mcad.core.status.status import persisted
from mcad.core.views.rows import Picture, Row
from tests.core.builders import START, appwrapper

PATIENT = Settings(placement_timeout=0, binding_wait=0)
"""Pods of the bench are bound where a test says so, and most do not."""

WAKES_MAX = 1000
"""Within one second: more is a timer that starts itself anew at once."""

AUDITED_MAX = 100
"""AppWrappers: larger worlds are audited where a test asks for it."""

STATES = {PodPhase.SUCCEEDED: ItemState.SUCCEEDED, PodPhase.FAILED: ItemState.FAILED}
"""What a bare Pod says of itself as an item."""

TIMERS_MAX = 10_000
"""Stale ones included."""


def cpu(milli: int, pods: int = 110) -> Resources:
    """A node's allocatable, or a request if ``pods`` is 1."""
    return (("cpu", milli), ("pods", pods))


def node(name: str = "n1", milli: int = 1000, **changes: object) -> Node:
    """A ready node."""
    return replace(Node(name, cpu(milli)), **changes)


def workload(name: str, *milli: int, **changes: object) -> Workload:
    """An AppWrapper with one bare Pod per figure."""
    items = tuple(
        Item(ObjectRef("", "v1", "pods", "Pod", "default", f"{name}-{i}"), tells_end=True)
        for i in range(len(milli))
    )
    sets = tuple(
        PodSet(i, 0, "template", 1, (("cpu", amount), ("pods", 1)))
        for i, amount in enumerate(milli)
    )
    return replace(appwrapper(name, items, sets), **changes)


@dataclass
class Thing:
    """An object in the cluster that an AppWrapper controls; a bare Pod is its own pod."""

    child: Child
    request: Resources
    node: str = ""
    phase: PodPhase = PodPhase.PENDING
    created: Instant = 0
    finalizers: tuple[str, ...] = ()
    grace: Duration = 0
    disruption: str = ""


@dataclass
class Bench:
    """The cluster and the dispatcher on it."""

    settings: Settings = PATIENT
    nodes: list[Node] = field(default_factory=list)
    now: Instant = START
    works: dict[str, Workload] = field(default_factory=dict)
    status: dict[str, StatusView] = field(default_factory=dict)
    things: dict[ObjectRef, Thing] = field(default_factory=dict)
    pending: list[Command] = field(default_factory=list)
    writes: Counter[str] = field(default_factory=Counter)
    created: Counter[tuple[str, int, int]] = field(default_factory=Counter)
    order: list[str] = field(default_factory=list)
    events: list[RecordEvent] = field(default_factory=list)
    quota_events: list[RecordQuotaEvent] = field(default_factory=list)
    warnings: tuple[str, ...] = ()  # what the API server says of every item
    adds: Resources = ()  # to each pod, as a mutating webhook
    wishes: list[Instant] = field(default_factory=list)
    bodies: dict[tuple[str, int, int], tuple[ObjectRef, Resources]] = field(default_factory=dict)
    looks: int = 0
    avoided: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by uid, at the last create
    excluded: dict[str, tuple[str, ...]] = field(default_factory=dict)
    planned: dict[str, tuple[str, ...]] = field(default_factory=dict)
    stubborn: set[str] = field(default_factory=set)  # pods that no kubelet ends
    graceful: bool = False  # deleted pods take all of their grace period
    dying: list[tuple[Instant, ObjectRef, str]] = field(default_factory=list)  # with the pod's uid
    outliving: bool = False  # pods that run outlive their objects
    left: dict[str, tuple[ObjectRef, Thing]] = field(default_factory=dict)  # by uid, such pods
    refusals: dict[str, list[Answer]] = field(default_factory=dict)
    refused_words: dict[str, str] = field(default_factory=dict)  # of Events, by name of the item
    forbidden: set[tuple[str, str]] = field(default_factory=set)  # (namespace, resource) to create
    pauses: dict[str, DispatchPause] = field(default_factory=dict)
    quotas: dict[str, QuotaSubtree] = field(default_factory=dict)
    quota_status: dict[str, QuotaView] = field(default_factory=dict)  # what QuotaSubtrees show
    lead: Callable[[Settings], Dispatcher] = Dispatcher  # makes each dispatcher, the first one too
    heard: Callable[[tuple[Command, ...]], object] = bool  # is given what each step commands
    scale_ups: dict[Key, ScaleUpSeen] = field(default_factory=dict)  # the requests that exist
    asked: list[RequestScaleUp] = field(default_factory=list)  # every request for nodes
    names_requests: bool = False  # the pods of an attempt name its request
    _serial: int = 0

    def __post_init__(self) -> None:
        self.dispatcher = self.lead(self.settings)
        for one in self.nodes:
            self.feed(NodeSeen(one))

    # -- driving -----------------------------------------------------------------------------

    def pause(self, *pauses: DispatchPause) -> None:
        """DispatchPauses are created."""
        for one in pauses:
            self.pauses[one.uid] = one
            self.feed(PauseSeen(one))

    def resume(self, *uids: str) -> None:
        """They are deleted; all without uids."""
        for uid in uids or tuple(self.pauses):
            del self.pauses[uid]
            self.feed(PauseGone(uid))

    def feed(self, event: Event) -> tuple[Command, ...]:
        """One step; what it commands is pending."""
        self.now += 1
        commands = self.dispatcher.step(event, self.now)
        for command in commands:
            match command:
                case RecordEvent():
                    self.events.append(command)
                case RecordQuotaEvent():
                    self.quota_events.append(command)
                case WakeAt():
                    self.wishes.append(command.at)
                case _:
                    self.pending.append(command)
            if isinstance(command, CreateItem):
                self._render(command)
        self.heard(commands)
        return commands

    def submit(self, *works: Workload) -> Bench:
        """Users create AppWrappers."""
        for work in works:
            self.works[work.uid] = work
            self.feed(AppWrapperSeen(work))
        return self

    def start(self, *works: Workload) -> Bench:
        """Users create AppWrappers, and everything that follows at once happens."""
        self.submit(*works)
        self.settle()
        return self

    def begin(self, *works: Workload) -> None:
        """Users create AppWrappers; the first intent is written, and its creates are under way."""
        self.submit(*works)
        self.decide()
        self.execute(self.pending.pop(0))

    def share(self, *subtrees: QuotaSubtree) -> Bench:
        """An administrator creates or edits QuotaSubtrees."""
        for one in subtrees:
            self.quotas[one.uid] = one
            self.feed(QuotaSeen(one, self.quota_status.get(one.uid)))
        return self

    def unshare(self, *uids: str) -> Bench:
        """An administrator deletes QuotaSubtrees."""
        for uid in uids:
            del self.quotas[uid]
            self.quota_status.pop(uid, None)
            self.feed(QuotaGone(uid))
        return self

    def edit(self, uid: str, **changes: object) -> Bench:
        """A user edits an AppWrapper."""
        old = self.works[uid]
        self.works[uid] = replace(old, generation=old.generation + 1, **changes)
        self.feed(AppWrapperSeen(self.observed(uid)))
        return self

    def delete(self, uid: str) -> Bench:
        """A user deletes an AppWrapper; its objects are collected at once."""
        del self.works[uid]
        self.status.pop(uid, None)
        self.feed(AppWrapperGone(uid))
        for ref in [ref for ref, thing in self.things.items() if thing.child.workload == uid]:
            self.remove(ref)
        return self

    def decide(self) -> None:
        """The inbox is drained."""
        self.feed(Decide())
        if self.dispatcher.cluster.errors.broken is not None:
            return  # the process ends as soon as it has written why
        if len(self.dispatcher.cluster.entries) <= AUDITED_MAX:
            invariants.everything(self.dispatcher.cluster)
        assert self.dispatcher.cluster.agenda.timers.lines <= TIMERS_MAX, "timers pile up"

    def settle(self, rounds: int = 200) -> None:
        """Carry out everything until nothing is pending and nothing is decided any more."""
        for _ in range(rounds):
            self.decide()
            if not self.pending and self.now not in self.wishes:
                return  # and no other pass is asked for
            while self.pending:
                self.execute(self.pending.pop(0))
        raise AssertionError("the dispatcher does not come to rest")

    def advance(self, seconds: float) -> None:
        """Time passes; the dispatcher is woken when it wished to be."""
        until = self.now + int(seconds * SECOND)
        self.settle()  # whatever was observed is decided on at once
        wakes, second = 0, 0
        while moments := [w for w in (*self.wishes, *(at for at, *_ in self.dying)) if w <= until]:
            self.now = max(self.now, min(moments))
            wakes = wakes + 1 if second == self.now // SECOND else 1
            second = self.now // SECOND
            assert wakes <= WAKES_MAX, "it wishes to be woken again and again, and nothing comes"
            self.wishes = [w for w in self.wishes if w > self.now]
            self._end_graces()
            self.settle()
        self.now = max(self.now, until)

    def crash(self) -> Bench:
        """Kill the dispatcher and start it again from what is persisted."""
        self.pending, self.wishes = [], []
        self.now += SECOND
        self.dispatcher = self.lead(self.settings)
        for one in self.nodes:
            self.feed(NodeSeen(one))
        for subtree in self.quotas.values():
            self.feed(QuotaSeen(subtree, self.quota_status.get(subtree.uid)))
        for pause in self.pauses.values():
            self.feed(PauseSeen(pause))
        for uid in sorted(self.works, key=lambda u: (self.works[u].created, u)):
            self.feed(AppWrapperSeen(self.observed(uid), listed=True))
        for ref in list(self.things):
            self.observe(ref)
        for request in self.scale_ups.values():
            self.feed(request)
        return self

    def restart(self) -> None:
        """The same, and everything that follows at once happens."""
        self.crash()
        self.settle()

    # -- the cluster -------------------------------------------------------------------------

    def execute(self, command: Command) -> None:
        """Apply a command and tell the answer."""
        answer = self.apply(command)
        if answer is not None:
            self.feed(answer)

    def apply(self, command: Command) -> Event | None:
        """What the API server does; an answer that is not fed is lost."""
        refused = self._refused(command)
        if refused is not None:
            return refused
        match command:
            case WriteStatus():
                return self._write(command)
            case WriteQuota():
                return self._write_quota(command)
            case CreateItem():
                return self._create(command)
            case InspectItem():
                self.writes["inspect"] += 1
                holder = self._holder(command.ref)
                return ItemInspected(command.uid, command.attempt, command.item, holder)
            case ReadWarnings():
                words = self.refused_words.get(command.ref.name, "")
                about = (command.uid, command.attempt, command.item)
                return WarningsRead(*about, words, command.pod)
            case ReviewAccess():
                self.writes["review"] += 1
                ref = command.ref
                allowed = (ref.namespace, ref.resource) not in self.forbidden
                return AccessReviewed(ref.namespace, ref.group, ref.resource, allowed)
            case DeleteItem():
                self.writes["delete"] += 1
                thing = self.things.get(command.ref)
                if thing is not None and thing.child.workload == command.uid:
                    self.delete_object(command.ref)  # the controller looks up whose it is
                return ItemDeleted(command.uid, command.attempt, command.item)
            case RequestScaleUp() | WithdrawScaleUp():
                return self._scale_up(command)
            case DeleteStray() | ForceDeletion():
                return self._delete_exactly(command)
            case LookForRemains():
                self.looks += 1
                left = [
                    Remnant(r, t.child.uid, t.child.terminating, t.finalizers)
                    for r, t in self.things.items()
                    if t.child.workload == command.uid
                ]
                left += [
                    Remnant(r, uid, True, ())
                    for uid, (r, t) in self.left.items()
                    if t.child.workload == command.uid
                ]
                return Remaining(command.uid, command.attempt, tuple(left))
        raise AssertionError(command)

    def _scale_up(self, command: RequestScaleUp | WithdrawScaleUp) -> Event:
        if isinstance(command, WithdrawScaleUp):
            self.scale_ups.pop((command.uid, command.attempt), None)
            return ScaleUpGone(command.uid, command.attempt)
        self.asked.append(command)
        name = f"ProvisioningRequest default/{command.uid}-{command.attempt}"
        new = ScaleUpSeen(
            *(command.uid, command.attempt, ScaleUpState.ASKED, "", self.now, name),
            until_bound=self.names_requests,
        )
        return self.scale_ups.setdefault((command.uid, command.attempt), new)

    def autoscale(self, name: str, state: ScaleUpState, message: str = "") -> Bench:
        """The autoscaler says something about the only request for an AppWrapper."""
        (key,) = [one for one in self.scale_ups if one[0] == f"uid-{name}"]
        self.scale_ups[key] = replace(self.scale_ups[key], state=state, message=message)
        self.feed(self.scale_ups[key])
        return self

    def add_node(self, *nodes: Node) -> Bench:
        """Nodes join, or change."""
        for one in nodes:
            self.nodes = [other for other in self.nodes if other.name != one.name] + [one]
            self.feed(NodeSeen(one))
        return self

    def remove_node(self, *names: str) -> Bench:
        """Nodes go."""
        self.nodes = [one for one in self.nodes if one.name not in names]
        for name in names:
            self.feed(NodeGone(name))
        return self

    def _write_quota(self, command: WriteQuota) -> Event:
        if command.uid not in self.quotas:
            answer = Answer(404, "NotFound", "gone")
            return QuotaRefused(command.uid, command.serial, answer)
        self.writes["quota"] += 1
        self.quota_status[command.uid] = command.status
        return QuotaWritten(command.uid, command.serial)

    def _delete_exactly(self, command: DeleteStray | ForceDeletion) -> None:
        """This very object; by force also if no kubelet ends it."""
        thing, forced = self.things.get(command.ref), isinstance(command, ForceDeletion)
        self.writes["force"] += forced
        if thing is None or (thing.child.workload, thing.child.uid) != (
            command.uid,
            command.object_uid,
        ):
            return
        self.writes["stray"] += not forced
        if forced and not thing.finalizers:
            self.remove(command.ref)
        else:
            self.delete_object(command.ref)

    def refuse(self, verb: str, *answers: Answer) -> None:
        """Let the next requests of this kind fail, in this order."""
        self.refusals.setdefault(verb, []).extend(answers)

    def delete_object(self, ref: ObjectRef) -> None:
        """A user deletes an object: it goes, or waits for its finalizers."""
        thing = self.things[ref]
        lasts = self.graceful and thing.grace and thing.phase is PodPhase.RUNNING
        if not (thing.finalizers or ref.name in self.stubborn or lasts):
            self.remove(ref)
        elif not thing.child.terminating:
            thing.child = replace(thing.child, terminating=True)
            if lasts:
                self.dying.append((self.now + thing.grace, ref, thing.child.uid))
            self.observe(ref)

    def _end_graces(self) -> None:
        """The kubelet has killed the pods whose grace period is over."""
        over = [one for one in self.dying if one[0] <= self.now]
        self.dying = [one for one in self.dying if one[0] > self.now]
        for _, ref, uid in over:
            if ref in self.things and self.things[ref].child.uid == uid:
                self.remove(ref)
                self.settle()  # no two pods end at the same instant

    def remove(self, ref: ObjectRef) -> None:
        """An object and its pod vanish; a pod that outlives it is about to end."""
        thing = self.things.pop(ref)
        uid = thing.child.uid
        if self.outliving and thing.phase is PodPhase.RUNNING:
            self.left[uid] = (ref, thing)
            thing.child = replace(thing.child, terminating=True)
            self.feed(PodSeen(_pod(ref, thing)))
        self.feed(ChildGone(uid))
        if uid not in self.left:
            self.feed(PodGone(uid))

    def end_pod(self, uid: str) -> None:
        """A pod that has outlived its object vanishes."""
        del self.left[uid]
        self.feed(PodGone(uid))

    def bind(self, name: str, on: str = "n1") -> Bench:
        """kube-scheduler binds a bare pod."""
        self.change(name, node=on, phase=PodPhase.RUNNING)
        return self

    def change(self, name: str, **changes: object) -> Bench:
        """Something happens to a bare pod."""
        ref = next(ref for ref in self.things if ref.name == name)
        self.things[ref] = dataclasses.replace(self.things[ref], **changes)
        self.observe(ref)
        return self

    def observe(self, ref: ObjectRef) -> None:
        """The watches tell of an object and its pod."""
        thing = self.things[ref]
        ended = thing.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED)
        met, state = frozenset({thing.phase.value.lower()}), STATES.get(thing.phase)
        wanted = Wanted(0 if ended else 1)
        child = replace(thing.child, wants=(wanted,), met=met, state=state or thing.child.state)
        self.feed(ChildSeen(child))
        self.feed(PodSeen(_pod(ref, thing)))

    # -- looking -----------------------------------------------------------------------------

    def entry(self, name: str) -> Entry:
        """What the dispatcher knows of an AppWrapper."""
        return self.dispatcher.cluster.entries[f"uid-{name}"]

    def state(self, name: str) -> str:
        """The persisted state of an AppWrapper."""
        return self.status[f"uid-{name}"].state

    def condition(self, name: str, kind: str) -> tuple[bool, str, str] | None:
        """(status, reason, message) of a persisted condition."""
        for one in self.status[f"uid-{name}"].conditions:
            if one.type == kind:
                return one.status, one.reason, one.message
        return None

    def queue(self) -> list[Row]:
        """All in line, first to last, and then those on hold."""
        picture = Picture(self.dispatcher.cluster, self.now)
        return [row for row in picture.rows(picture.waits) if row is not None]

    def all_rows(self) -> list[Row]:
        """The same, and then all others."""
        picture = Picture(self.dispatcher.cluster, self.now)
        return [row for row in picture.rows() if row is not None]

    def names(self) -> list[str]:
        """The names of the objects that exist."""
        return sorted(ref.name for ref in self.things)

    # -- inside ------------------------------------------------------------------------------

    def observed(self, uid: str) -> Workload:
        """What the watch tells of an AppWrapper: with the status that is persisted."""
        view = self.status.get(uid)
        saved = persisted(view) if view is not None else None
        return replace(self.works[uid], persisted=saved)

    def _refused(self, command: Command) -> Event | None:
        kind = type(command).__name__
        answers = self.refusals.get(kind)
        if not answers:
            return None
        answer = answers.pop(0)
        if isinstance(command, WriteStatus):
            return StatusRefused(command.uid, command.serial, answer)
        if isinstance(command, WriteQuota):
            return QuotaRefused(command.uid, command.serial, answer)
        if isinstance(command, CreateItem):
            return ItemRefused(command.uid, command.attempt, command.item, answer)
        if isinstance(command, DeleteItem):
            return DeletionRefused(command.uid, command.attempt, command.item, answer)
        if isinstance(command, RequestScaleUp):
            return ScaleUpRefused(command.uid, command.attempt, answer)
        if isinstance(command, DeleteStray):
            return StrayRefused(command.uid, command.object_uid, answer)
        raise AssertionError(f"{kind} cannot be refused here")

    def _write(self, command: WriteStatus) -> Event:
        if command.uid not in self.works:
            gone = Answer(404, "NotFound", "not found")
            return StatusRefused(command.uid, command.serial, gone)
        self.writes["status"] += 1
        self.status[command.uid] = command.status
        return StatusWritten(command.uid, command.serial)

    def _render(self, command: CreateItem) -> None:
        """What a request contains is fixed when the command is given."""
        self.avoided[command.uid] = command.node_rules.avoid
        self.excluded[command.uid] = command.node_rules.exclude
        self.planned[command.uid] = command.node_rules.planned
        work = self.works.get(command.uid)
        if work is not None:
            ref = work.items[command.item].ref
            request = next((s.request for s in work.sets if s.item == command.item), ())
            self.bodies[command.uid, command.attempt, command.item] = (ref, request)

    def _create(self, command: CreateItem) -> Event:
        uid, attempt, item = command.uid, command.attempt, command.item
        work = self.works.get(uid)
        if work is None:
            missing = Answer(404, "NotFound", "no such AppWrapper")
            return ItemRefused(uid, attempt, item, missing)
        ref, request = self.bodies[uid, attempt, item]
        if (ref.namespace, ref.resource) in self.forbidden:
            self.writes["forbidden"] += 1
            return ItemRefused(uid, attempt, item, Answer(403, "Forbidden", "mcad cannot create"))
        if ref in self.things:
            exists = Answer(409, "AlreadyExists", "already exists")
            return ItemRefused(uid, attempt, item, exists)
        self._serial += 1
        self.writes["create"] += 1
        self.created[uid, attempt, item] += 1
        if item == 0:
            self.order.append(work.name)
        child = Child(f"obj-{self._serial}", ref, uid, attempt, item)
        asks = tuple(sorted((Counter(dict(request)) + Counter(dict(self.adds))).items()))
        self.things[ref] = Thing(child, asks, created=self.now, grace=work.grace)
        self.observe(ref)
        return ItemCreated(uid, attempt, item, child.uid, self.warnings)

    def _holder(self, ref: ObjectRef) -> Holder | None:
        thing = self.things.get(ref)
        if thing is None:
            return None
        child = thing.child
        exists = child.workload in self.works
        return Holder(child.uid, child.workload, True, exists, "x", child.attempt, False)


def _pod(ref: ObjectRef, thing: Thing) -> Pod:
    child = thing.child
    return Pod(
        child.uid,
        ref.namespace,
        ref.name,
        thing.node,
        thing.phase,
        thing.request,
        terminating=child.terminating,
        workload=child.workload,
        item=child.item,
        index=0,
        attempt=child.attempt,
        created=thing.created,
        grace=thing.grace,
        ready=thing.phase is PodPhase.RUNNING,
        disruption=thing.disruption,
        root=child.uid,
    )


def random_life(bench: Bench, rng: Random, submitted: int) -> Iterator[None]:
    """Submissions, nodes that change, deletions and crashes, with a stop after each submission; at
    the end everything settles."""
    for number in range(submitted):
        sizes = [rng.randint(10, 400) for _ in range(rng.randint(1, 3))]
        bench.submit(workload(f"w{number}", *sizes, priority=rng.randint(0, 2)))
        if rng.random() < 0.3:
            bench.settle()
        if rng.random() < 0.1:
            bench.crash()
        if rng.random() < 0.2:
            bench.feed(NodeSeen(node(f"n{rng.randint(0, 5)}", rng.randint(200, 900))))
        if rng.random() < 0.2 and bench.works:
            bench.delete(rng.choice(sorted(bench.works)))
        yield
    bench.settle()
    bench.advance(60)
