"""Replays the AppWrappers of a journal under other settings.

A core with these settings gets the same submissions, edits, deletions, nodes, quotas and foreign
pods at the same times. The effects of its own decisions come from a model that is simpler than a
cluster: every request succeeds at once, pods are bound at once to the nodes that the core assumed,
and deleted pods are gone at once. An AppWrapper runs as long as in the journal; one that was still
running there does not end here. So compare with a replay under the recorded settings, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

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
    ReviewAccess,
    WakeAt,
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
    Event,
    Holder,
    ItemCreated,
    ItemDeleted,
    ItemInspected,
    ItemRefused,
    PodGone,
    PodSeen,
    QuotaWritten,
    Remaining,
    StatusWritten,
    WarningsRead,
)
from mcad.core.state.model import (
    TERMINAL_PHASES,
    Child,
    ItemState,
    ObjectRef,
    Pod,
    PodPhase,
    PodSet,
    Wanted,
)
from mcad.core.state.records import replace
from mcad.core.state.units import SECOND, Instant
from mcad.journal.lives import Lives

if TYPE_CHECKING:
    from mcad.core.state.model import Workload
    from mcad.core.state.settings import Settings
    from mcad.journal.script import Script

_COALESCED = SECOND // 50
"""How long the shell waits at most for more news before the core decides (core rule R5)."""

_SUCCESS = frozenset({"complete", "completed", "succeeded"})
_FAILURE = frozenset({"failed"})


def play(script: Script, settings: Settings) -> Lives:
    """The histories of all AppWrappers of the script under these settings."""
    return _Cluster(script, settings).play()


@dataclass
class _Object:
    """A wrapped object and its pods by uid; ``unbound`` are pods without a node."""

    child: Child
    pods: dict[str, Pod] = field(default_factory=dict)
    sets: dict[str, PodSet] = field(default_factory=dict)
    unbound: dict[str, None] = field(default_factory=dict)


class _Moment(NamedTuple):
    """When an AppWrapper ends an attempt, or is deleted (attempt 0); "" only decides."""

    at: Instant
    serial: int
    uid: str = ""
    attempt: int = 0


class _Cluster:
    def __init__(self, script: Script, settings: Settings) -> None:
        self._script = script
        self._core = Dispatcher(settings)
        self._lives = Lives()
        self._now = script.begun
        self._works: dict[str, Workload] = {}
        self._objects: dict[str, dict[ObjectRef, _Object]] = {}  # by the uid of the AppWrapper
        self._agenda: list[_Moment] = []
        self._serials = count(1)
        self._pending: list[Command] = []
        self._unbound: dict[str, None] = {}  # uids of AppWrappers with pods without a node
        self._is_settled = False

    def play(self) -> Lives:
        for event in self._script.start:
            self._begin_with(event)
        self._resume()
        for at, event in self._script.then:
            self._let_pass(at)
            self._from_outside(event)
        self._let_pass(self._script.ended + _COALESCED)
        self._lives.advance(self._script.ended)
        return self._lives

    # -- time

    def _let_pass(self, until: Instant) -> None:
        """Process everything that is due before then."""
        while True:
            is_next = bool(self._agenda) and self._agenda[0].at <= until
            pause = self._agenda[0].at - self._now if is_next else until - self._now
            if not self._is_settled and pause >= (1 if is_next else _COALESCED):
                self._settle()
            elif is_next:
                self._happen(heappop(self._agenda))
            else:
                break
        self._now = max(self._now, until)

    def _plan(self, at: Instant, uid: str = "", attempt: int = 0) -> None:
        heappush(self._agenda, _Moment(max(at, self._now), next(self._serials), uid, attempt))

    def _happen(self, moment: _Moment) -> None:
        self._now, self._is_settled = max(self._now, moment.at), False
        if moment.uid and moment.attempt:
            self._end(moment.uid, moment.attempt)
        elif moment.uid:
            self._delete(moment.uid)

    def _feed(self, event: Event) -> None:
        self._is_settled = False
        self._lives.observe(event, self._now)
        for command in self._core.step(event, self._now):
            match command:
                case WakeAt():
                    self._plan(command.at)
                case RecordEvent() | RecordQuotaEvent():
                    pass
                case _:
                    self._pending.append(command)

    def _settle(self) -> None:
        """Decide and answer until no more commands come."""
        while True:
            self._feed(Decide())
            pending, self._pending = self._pending, []
            for command in pending:
                self._lives.command(command, self._now)
                self._execute(command)
            if not (self._bind() or pending or self._pending):
                self._is_settled = True
                return

    # -- what the script says

    def _begin_with(self, event: Event) -> None:
        match event:
            case AppWrapperSeen():
                self._works[event.workload.uid] = event.workload
            case ChildSeen():
                self._object(event.child)
            case PodSeen() if event.pod.workload in self._objects:
                self._adopt(event.pod)
        self._feed(event)

    def _object(self, child: Child) -> _Object:
        return self._objects.setdefault(child.workload, {}).setdefault(child.ref, _Object(child))

    def _adopt(self, pod: Pod) -> None:
        for one in self._objects[pod.workload].values():
            if one.child.uid == pod.root or one.child.item == pod.item:
                one.pods[pod.uid] = pod
                return

    def _resume(self) -> None:
        """End running AppWrappers as in the journal; create objects and pods that are missing."""
        for uid, life in self._lives.by_uid.items():
            if life.runs:
                self._fill_up(self._works[uid], life.attempt)
            run = self._script.runs.get(uid)
            if life.runs and run is not None:
                self._plan(life.last + run.lasted, uid, life.attempt)

    def _fill_up(self, work: Workload, attempt: int) -> None:
        objects = self._objects.setdefault(work.uid, {})
        for number, item in enumerate(work.items):
            made = objects.get(item.ref)
            if made is None:
                self._make(work, attempt, number)
                continue
            sets = [one for one in work.sets if one.item == number]
            for one, want in zip(sets, made.child.wants, strict=False):
                live = sum(_stands_for(pod, one) for pod in made.pods.values())
                for index in range(live, want.now if want is not None else 0):
                    self._make_pod(made, one, index)
        self._unbound[work.uid] = None

    def _from_outside(self, event: Event) -> None:
        match event:
            case AppWrapperSeen():
                work = replace(event.workload, persisted=None)
                self._works[work.uid] = work
                self._feed(replace(event, workload=work, rewound=False))
            case AppWrapperGone():
                self._delete(event.uid)
            case _:
                self._feed(event)

    # -- requests

    def _execute(self, command: Command) -> None:
        match command:
            case WriteStatus():
                self._write(command)
            case WriteQuota():
                self._feed(QuotaWritten(command.uid, command.serial))
            case CreateItem():
                self._create(command)
            case ReviewAccess(ref=ref):
                self._feed(AccessReviewed(ref.namespace, ref.group, ref.resource, allowed=True))
            case InspectItem():
                holder = self._holder(command)
                self._feed(ItemInspected(command.uid, command.attempt, command.item, holder))
            case ReadWarnings():
                about = (command.uid, command.attempt, command.item)
                self._feed(WarningsRead(*about, "", command.pod))
            case DeleteItem():
                self._remove(command.uid, command.ref)
                self._feed(ItemDeleted(command.uid, command.attempt, command.item))
            case DeleteStray() | ForceDeletion():
                self._remove(command.uid, command.ref)
            case LookForRemains():
                self._feed(Remaining(command.uid, command.attempt, ()))
            case _:
                pass

    def _write(self, command: WriteStatus) -> None:
        uid = command.uid
        if uid not in self._works:
            return  # its deletion is known
        life = self._lives.by_uid.get(uid)
        run = self._script.runs.get(uid)
        if life is not None and run is not None and life.runs and life.last == self._now:
            self._plan(self._now + run.lasted, uid, life.attempt)
        self._feed(StatusWritten(uid, command.serial))

    def _create(self, command: CreateItem) -> None:
        uid, attempt, number = command.uid, command.attempt, command.item
        work = self._works.get(uid)
        if work is None:
            return
        item, answer = self._script.refused.get(uid, (-1, None))
        if number == item and answer is not None:
            self._feed(ItemRefused(uid, attempt, number, answer))
            return
        made = self._make(work, attempt, number)
        self._feed(ItemCreated(uid, attempt, number, made.child.uid))

    def _make(self, work: Workload, attempt: int, number: int) -> _Object:
        uid, ref = work.uid, work.items[number].ref
        sets = [one for one in work.sets if one.item == number]
        wants = tuple(Wanted(one.replicas) for one in sets)
        child = Child(f"{uid}/{attempt}/{number}", ref, uid, attempt, number, wants=wants)
        made = self._objects.setdefault(uid, {})[ref] = _Object(child)
        self._feed(ChildSeen(child))
        for one in sets:
            for index in range(self._pods_of(uid, one)):
                self._make_pod(made, one, index)
        self._unbound[uid] = None
        return made

    def _pods_of(self, uid: str, one: PodSet) -> int:
        if not one.per_node:
            return one.replicas
        return len(self._core.cluster.capacity.pods.assumed(uid, one))

    def _make_pod(self, made: _Object, one: PodSet, index: int) -> None:
        child = made.child
        uid = child.uid if child.ref.kind == "Pod" else f"{child.uid}/{one.index}/{index}"
        pod = Pod(
            uid,
            child.ref.namespace,
            uid,
            "",
            PodPhase.PENDING,
            one.request,
            workload=child.workload,
            item=one.item,
            index=one.index,
            attempt=child.attempt,
            ports=one.ports,
            created=self._now,
            root=child.uid,
        )
        made.pods[uid], made.sets[uid], made.unbound[uid] = pod, one, None
        self._feed(PodSeen(pod))

    def _holder(self, command: InspectItem) -> Holder | None:
        found = self._objects.get(command.uid, {}).get(command.ref)
        if found is None:
            return None
        child, exists = found.child, command.uid in self._works
        return Holder(child.uid, child.workload, True, exists, child.workload, child.attempt, False)

    # -- pods

    def _bind(self) -> bool:
        """Bind pods to assumed nodes; returns whether any was bound."""
        bound = False
        for uid in list(self._unbound):
            objects = self._objects.get(uid, {}).values()
            for one in objects:
                for pod in list(one.unbound):
                    bound |= self._bind_one(uid, one, pod)
            if not any(one.unbound for one in objects):
                del self._unbound[uid]
        return bound

    def _bind_one(self, uid: str, made: _Object, name: str) -> bool:
        node = self._node_for(uid, made.sets[name])
        if not node:
            return False
        del made.unbound[name]
        pod = made.pods[name] = replace(
            made.pods[name], node=node, phase=PodPhase.RUNNING, ready=True
        )
        self._feed(PodSeen(pod))
        return True

    def _node_for(self, uid: str, one: PodSet) -> str:
        """The assumed node; without assumed nodes, the first one with room."""
        capacity = self._core.cluster.capacity
        assumed = capacity.pods.assumed(uid, one)
        if assumed:
            return assumed[0]
        if capacity.counts_nodes:
            return ""
        need = dict(one.request)
        for node in capacity.report.nodes():
            free = dict(node.free)
            if all(free.get(name, 0) >= amount for name, amount in need.items()):
                return node.name
        return ""

    # -- ends

    def _end(self, uid: str, attempt: int) -> None:
        """The AppWrapper completes, fails, or is deleted while it runs."""
        life, run = self._lives.by_uid[uid], self._script.runs[uid]
        if uid not in self._works or life.attempt != attempt or not life.runs:
            return  # deleted, or taken back meanwhile
        if run.by_deletion:
            self._delete(uid)
            return
        for one in list(self._objects.get(uid, {}).values()):
            self._finish(one, uid, failed=run.failed)
        if run.deleted_after is not None:
            self._plan(self._now + max(run.deleted_after, 1), uid)  # its end is noticed before

    def _finish(self, one: _Object, uid: str, *, failed: bool) -> None:
        child, items = one.child, self._works[uid].items
        words = set(_FAILURE if failed else _SUCCESS)
        if not failed and child.item < len(items):
            words |= set(items[child.item].completion)
        wants = tuple(None if want is None else Wanted(0) for want in child.wants)
        state = ItemState.FAILED if failed else ItemState.SUCCEEDED
        one.child = replace(child, wants=wants, met=frozenset(words), state=state)
        phase = PodPhase.FAILED if failed else PodPhase.SUCCEEDED
        one.unbound = {}
        for pod in one.pods.values():
            if pod.phase not in TERMINAL_PHASES:
                one.pods[pod.uid] = replace(pod, phase=phase, ready=False)
                self._feed(PodSeen(one.pods[pod.uid]))
        self._feed(ChildSeen(one.child))

    def _delete(self, uid: str) -> None:
        """Delete the AppWrapper and all that it controls."""
        if self._works.pop(uid, None) is None:
            return
        self._feed(AppWrapperGone(uid))
        for ref in list(self._objects.get(uid, {})):
            self._remove(uid, ref)

    def _remove(self, uid: str, ref: ObjectRef) -> None:
        one = self._objects.get(uid, {}).pop(ref, None)
        if one is None:
            return
        for pod in one.pods:
            self._feed(PodGone(pod))
        self._feed(ChildGone(one.child.uid))


def _stands_for(pod: Pod, one: PodSet) -> bool:
    return pod.index in (one.index, -1) and pod.phase not in TERMINAL_PHASES
