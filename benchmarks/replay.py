"""Weeks of submissions in virtual time on the core alone.

A ``Replay`` submits jobs, answers every command of the dispatcher at once, binds pods as
kube-scheduler spreads them, lets them run for as long as they really do and end when they are
deleted, and measures. No cluster, no JSON, no clock: a week of 10,000 AppWrappers takes about a
minute of CPU time, and the same jobs have the same lives in every run.

A job is an AppWrapper with one object that makes its pods, equal ones or of several sets. They are
a gang: the work begins when all of them have nodes, and all of it is lost if they are taken back.
An AppWrapper that has finished or failed is deleted by its user at once.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from typing import NamedTuple

from benchmarks.builders import item
from mcad.core.commands import (
    Command,
    CreateItem,
    DeleteItem,
    InspectItem,
    LookForRemains,
    ReadWarnings,
    RecordEvent,
    WakeAt,
    WriteQuota,
    WriteStatus,
)
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import (
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
    NodeSeen,
    PodGone,
    PodSeen,
    QuotaSeen,
    QuotaWritten,
    Remaining,
    StatusWritten,
    WarningsRead,
)
from mcad.core.state.answer import Answer
from mcad.core.state.model import (
    Child,
    DispatchPhase,
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
from mcad.core.state.quota_records import QuotaSubtree
from mcad.core.state.reasons import TeardownReason
from mcad.core.state.records import replace
from mcad.core.state.settings import Settings
from mcad.core.state.status_view import StatusView
from mcad.core.state.units import SECOND, Duration, Instant
from tests.core.builders import START, appwrapper

MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
DAY = 24 * HOUR
FOREVER: Duration = 0
"""The ``run`` of a job that does not end by itself."""
COUNTED = "cpu"
"""The resource whose use is measured."""


class Job(NamedTuple):
    """One submission: so many equal pods that run for ``run`` once all of them have nodes.

    ``more`` are further sets of pods, made before these. ``at`` counts from START. ``limit`` is
    enforced by the dispatcher, 0 is none; ``expected`` is what its user says. ``team`` is its
    namespace, and its leaf in every quota tree.
    """

    name: str
    at: Duration
    pods: int
    request: Resources
    run: Duration
    limit: Duration = 0
    expected: Duration = 0
    priority: int = 0
    team: str = "default"
    more: tuple[tuple[int, Resources], ...] = ()

    @property
    def sets(self) -> tuple[tuple[int, Resources], ...]:
        """(pods, request of each) in the order in which they are made."""
        return (*self.more, (self.pods, self.request))

    @property
    def counted(self) -> int:
        """What all of its pods ask for of the resource that is measured."""
        return sum(pods * _counted(request) for pods, request in self.sets)


class Evicted(NamedTuple):
    """One eviction: when its condition was set, the uid of the preemptor, and the reason."""

    at: Instant
    by: str
    reason: str


class Promise(NamedTuple):
    """What status said at ``at``: it starts at ``start`` at the latest, 0 if that is not known."""

    at: Instant
    start: Instant


@dataclass(slots=True)
class Life:
    """What became of a job; an instant is 0 if it never came.

    ``starts`` is when all of its pods had nodes (once per attempt that came so far). ``lost`` and
    ``cut`` are pod-microseconds of work that evictions and its own limit threw away.
    """

    job: Job
    submitted: Instant
    promises: list[Promise] = field(default_factory=list)
    starts: list[Instant] = field(default_factory=list)
    evictions: list[Evicted] = field(default_factory=list)
    ended: Instant = 0
    failed: bool = False
    dispatches: int = 0
    lost: int = 0
    cut: int = 0

    @property
    def wait(self) -> Duration:
        """From its submission to its last start."""
        return self.starts[-1] - self.submitted if self.starts else 0

    @property
    def slowdown(self) -> float:
        """The bounded slowdown (Feitelson et al. 1997): runs count as 10 s at least."""
        ran = self.ended - self.starts[-1] if self.starts else 0
        return max(1.0, (self.ended - self.submitted) / max(ran, 10 * SECOND))


def workload(job: Job, trees: Iterable[str] = ()) -> Workload:
    """The AppWrapper of a job."""
    only = item("Job", job.name, job.team, completion=("complete",), tells_end=True)
    return appwrapper(
        job.name,
        [only],
        [
            PodSet(0, index, template(index), pods, request)
            for index, (pods, request) in enumerate(job.sets)
        ],
        namespace=job.team,
        created=START + job.at,
        priority=job.priority,
        run_limit=job.limit,
        run_expected=job.expected,
        quota=tuple((tree, job.team) for tree in trees),
    )


def template(index: int) -> str:
    """The path of the pod template of a set."""
    return f"spec.template{index or ''}"


def uid_of(name: str) -> str:
    """The uid of the AppWrapper of a job."""
    return f"uid-{name}"


# -- the cluster ---------------------------------------------------------------------------------


class Spread:
    """kube-scheduler in short: the node of which the greatest share is free (LeastAllocated), and
    one that a pod should avoid only if no other has room."""

    def __init__(self, nodes: list[Node]) -> None:
        self._has = [dict(node.allocatable) for node in nodes]
        self.free = [dict(has) for has in self._has]
        self._order = sorted(self._key(number) for number in range(len(nodes)))

    def _key(self, number: int) -> tuple[int, int]:
        has, free = self._has[number], self.free[number]
        return -sum(1000 * free[name] // has[name] for name in has if name != "pods"), number

    def take(
        self, request: Resources, avoid: frozenset[int], exclude: frozenset[int]
    ) -> int | None:
        """The number of the node that gets the pod, None if no node has room for it."""
        last = None
        for _, number in self._order:
            free = self.free[number]
            if number not in exclude and all(
                free.get(name, 0) >= amount for name, amount in request
            ):
                last = number
                if number not in avoid:
                    break
        if last is not None:
            self._change(last, request, -1)
        return last

    def give(self, number: int, request: Resources) -> None:
        """A pod is gone."""
        self._change(number, request, 1)

    def _change(self, number: int, request: Resources, sign: int) -> None:
        free = self.free[number]
        del self._order[bisect_left(self._order, self._key(number))]
        for name, amount in request:
            free[name] += sign * amount
        insort(self._order, self._key(number))


class Meter:
    """What is in use, summed over time: resource-microseconds by team, since the last reset.

    ``asked`` is what those have asked for in all that have been submitted and have not ended.
    """

    def __init__(self) -> None:
        self.sums: Counter[str] = Counter()
        self.using: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self.since = self._at = START

    def advance(self, now: Instant) -> None:
        """Nothing has changed until now."""
        if now > self._at:
            for team, amount in self.using.items():
                self.sums[team] += amount * (now - self._at)
            self._at = now

    def reset(self, now: Instant) -> None:
        """What was before does not count."""
        self.advance(now)
        self.sums.clear()
        self.since = now

    @property
    def span(self) -> Duration:
        """How long was measured."""
        return self._at - self.since


@dataclass(slots=True)
class Member:
    """One pod: where it is, -1 if no node has room for it yet, and since when."""

    pod: Pod
    exclude: frozenset[int] = frozenset()
    node: int = -1
    since: Instant = 0


@dataclass(slots=True)
class Gang:
    """The objects of one attempt that exist."""

    job: Job
    child: Child
    members: list[Member]
    avoid: frozenset[int] = frozenset()
    started: Instant = 0


# -- the replay ----------------------------------------------------------------------------------


class Replay:
    """Jobs, a cluster and a dispatcher; ``lives`` by uid is what came of it.

    ``shutdown`` is how long pods take to end when they are deleted.
    """

    def __init__(
        self,
        jobs: Iterable[Job],
        nodes: list[Node],
        settings: Settings | None = None,
        *,
        quotas: Iterable[QuotaSubtree] = (),
        shutdown: Duration = 0,
        brain: Dispatcher | None = None,
        meter: Meter | None = None,
    ) -> None:
        self.now: Instant = START
        self.nodes, self.shutdown = nodes, shutdown
        self.brain = brain or Dispatcher(settings or Settings())
        self.lives: dict[str, Life] = {}
        self.gangs: dict[str, Gang] = {}
        self.meter = meter or Meter()
        self.capacity = sum(dict(node.allocatable)[COUNTED] for node in nodes)
        self.open = 0  # jobs that have not ended, those to come included
        self._placing = Spread(nodes)
        self._numbers = {node.name: number for number, node in enumerate(nodes)}
        self._agenda: list[tuple[Instant, int, Callable[[], None]]] = []
        self._pending: list[Command] = []
        self._unbound: dict[str, None] = {}  # uids of gangs with pods that have no node
        self._over: list[str] = []  # uids of those whose user deletes them next
        self._shown: dict[str, StatusView] = {}
        self._serial = 0
        quotas = list(quotas)
        self._trees = sorted({one.tree for one in quotas})
        for node in nodes:
            self._feed(NodeSeen(node))
        for one in quotas:
            self._feed(QuotaSeen(one))
        for job in jobs:
            self.open += 1
            self.plan(START + job.at, partial(self._submit, job))

    # -- time

    def plan(self, at: Instant, act: Callable[[], None]) -> None:
        """Let something happen then, after whatever else was planned for then before."""
        self._serial += 1
        heappush(self._agenda, (at, self._serial, act))

    def run(self, until: Duration | None = None) -> Replay:
        """Let time pass until then (from START), or until every job has ended."""
        while self._agenda and (self.open if until is None else self._next <= START + until):
            self.now = self._next
            self.meter.advance(self.now)
            while self._agenda and self._next == self.now:
                heappop(self._agenda)[2]()
            self._settle()
        if until is not None:
            self.now = START + until
            self.meter.advance(self.now)
        return self

    @property
    def _next(self) -> Instant:
        return self._agenda[0][0]

    def _feed(self, event: Event) -> None:
        for command in self.brain.step(event, self.now):
            match command:
                case WakeAt():
                    self.plan(max(command.at, self.now), _decides)
                case RecordEvent():
                    pass
                case _:
                    self._pending.append(command)

    def _settle(self) -> None:
        """Decide and answer until nothing is asked for any more."""
        while True:
            self._feed(Decide())
            pending, self._pending = self._pending, []
            for command in pending:
                answer = self._execute(command)
                if answer is not None:
                    self._feed(answer)
            self._bind()
            over, self._over = self._over, []
            for uid in over:
                self._delete(uid)
            if not (pending or over or self._pending):
                return

    # -- users

    def _submit(self, job: Job) -> None:
        self.lives[uid_of(job.name)] = Life(job, self.now)
        self.meter.asked[job.team] += job.counted
        self._feed(AppWrapperSeen(workload(job, self._trees)))

    def _delete(self, uid: str) -> None:
        """Its user deletes what has ended."""
        life = self.lives[uid]
        life.ended = life.ended or self.now
        self.open -= 1
        self.meter.asked[life.job.team] -= life.job.counted
        self._shown.pop(uid, None)
        self._feed(AppWrapperGone(uid))
        if uid in self.gangs:
            self._vanish(uid)

    # -- the API server

    def _execute(self, command: Command) -> Event | None:
        match command:
            case WriteStatus():
                if command.uid not in self.lives or self.lives[command.uid].ended:
                    return None
                self._show(command.uid, command.status)
                return StatusWritten(command.uid, command.serial)
            case WriteQuota():
                return QuotaWritten(command.uid, command.serial)
            case CreateItem():
                return self._create(command)
            case InspectItem():
                return ItemInspected(
                    command.uid, command.attempt, command.item, self._holder(command.ref)
                )
            case ReadWarnings():
                return WarningsRead(command.uid, command.attempt, command.item, "")
            case DeleteItem():
                self._stop(command.uid)
                return ItemDeleted(command.uid, command.attempt, command.item)
            case LookForRemains():
                gang = self.gangs.get(command.uid)
                left = (Remnant(gang.child.ref, gang.child.uid, terminating=True),) if gang else ()
                return Remaining(command.uid, command.attempt, left)
        raise AssertionError(command)

    def _show(self, uid: str, status: StatusView) -> None:
        """Measured by the status, as users see it."""
        life, before = self.lives[uid], self._shown.get(uid)
        self._shown[uid] = status
        reservation = status.reservation
        if reservation is not None and (before is None or before.reservation != reservation):
            life.promises.append(Promise(self.now, reservation.start))
        record = status.dispatch
        if record is not None and record.phase is DispatchPhase.UNDEPLOYING:
            told = before.dispatch if before is not None else None
            is_new = told is None or told.phase is not DispatchPhase.UNDEPLOYING
            if is_new and record.preemptor:
                life.evictions.append(Evicted(self.now, record.preemptor, record.reason))
        if status.state == "Failed" and uid not in self.gangs:  # its objects are gone, too
            life.failed = True
            self._over.append(uid)

    def _holder(self, ref: ObjectRef) -> Holder | None:
        gang = self.gangs.get(uid_of(ref.name))
        if gang is None:
            return None
        child = gang.child
        return Holder(
            child.uid, child.workload, True, True, ref.name, child.attempt, child.terminating
        )

    def _create(self, command: CreateItem) -> Event:
        uid, attempt = command.uid, command.attempt
        if uid in self.gangs:
            exists = Answer(409, "AlreadyExists", "already exists")
            return ItemRefused(uid, attempt, command.item, exists)
        life = self.lives[uid]
        life.dispatches += 1
        job = life.job
        ref = item("Job", job.name, job.team).ref
        wants = tuple(Wanted(pods) for pods, _ in job.sets)
        child = Child(f"{job.name}.{attempt}", ref, uid, attempt, 0, wants=wants)
        rules = command.node_rules
        members = [
            Member(pod, self._numbered(rules.excluded_at(template(pod.index))))
            for pod in self._pods(child, job)
        ]
        self.gangs[uid] = Gang(job, child, members, self._numbered(rules.avoid))
        self._unbound[uid] = None
        self._feed(ChildSeen(child))
        return ItemCreated(uid, attempt, 0, child.uid)

    def _numbered(self, names: Iterable[str]) -> frozenset[int]:
        return frozenset(map(self._numbers.__getitem__, names))

    def _pods(self, child: Child, job: Job) -> Iterable[Pod]:
        asked = [(at, request) for at, (pods, request) in enumerate(job.sets) for _ in range(pods)]
        for number, (index, request) in enumerate(asked):
            name = f"{child.uid}.{number}"
            yield Pod(
                name,
                job.team,
                name,
                "",
                PodPhase.PENDING,
                request,
                workload=child.workload,
                item=0,
                index=index,
                attempt=child.attempt,
                created=self.now,
                root=child.uid,
            )

    # -- the nodes

    def _bind(self) -> None:
        """Every pod without a node gets one if there is room, in the order of their creation."""
        for uid in list(self._unbound):
            gang = self.gangs[uid]
            if not self._place(gang):
                continue  # the others find no room either: they are equal
            self._begin_work(uid, gang)

    def _begin_work(self, uid: str, gang: Gang) -> None:
        """All of its pods have nodes."""
        self._unbound.pop(uid, None)
        gang.started = self.now
        self.lives[uid].starts.append(self.now)
        if gang.job.run != FOREVER:
            self.plan(self.now + gang.job.run, partial(self._finish, uid, gang))

    def _place(self, gang: Gang) -> bool:
        """Whether all of its pods have nodes now."""
        for member in gang.members:
            if member.node < 0 and not self._bind_one(gang, member):
                self._tell_unbound(gang)
                return False
        return True

    def _bind_one(self, gang: Gang, member: Member) -> bool:
        """Whether the pod has a node now."""
        request = member.pod.request
        number = self._placing.take(request, gang.avoid, member.exclude)
        if number is None:
            return False
        member.node, member.since = number, self.now
        self.meter.using[gang.job.team] += _counted(request)
        name = self.nodes[number].name
        member.pod = replace(member.pod, node=name, phase=PodPhase.RUNNING, ready=True)
        self._feed(PodSeen(member.pod))
        return True

    def _tell_unbound(self, gang: Gang) -> None:
        """A new pod without a node is reported once."""
        for member in gang.members:
            if member.node < 0 and member.pod.created == self.now:
                self._feed(PodSeen(member.pod))

    def _finish(self, uid: str, gang: Gang) -> None:
        """The work is done, unless it was stopped."""
        if self.gangs.get(uid) is not gang or gang.child.terminating:
            return
        done = replace(
            gang.child,
            wants=tuple(Wanted(0) for _ in gang.job.sets),
            met=frozenset({"complete"}),
            state=ItemState.SUCCEEDED,
        )
        gang.child = done
        self._feed(ChildSeen(done))
        self._empty(gang)
        self.lives[uid].ended = self.now
        self._over.append(uid)

    def _stop(self, uid: str) -> None:
        """Its objects are deleted: pods take their time to end, and nothing is kept of the work."""
        gang = self.gangs.get(uid)
        if gang is None or gang.child.terminating:
            return
        gang.child = replace(gang.child, terminating=True)
        if not self.shutdown:
            self._vanish(uid)
            return
        self._unbound.pop(uid, None)
        self._feed(ChildSeen(gang.child))
        for member in gang.members:
            member.pod = replace(member.pod, terminating=True)
            self._feed(PodSeen(member.pod))
        self.plan(self.now + self.shutdown, partial(self._vanish, uid))

    def _vanish(self, uid: str) -> None:
        """The objects of an attempt are no more."""
        gang = self.gangs.pop(uid, None)
        if gang is None:
            return
        self._unbound.pop(uid, None)
        if gang.child.terminating:
            self._account_for(uid, gang)
        self._empty(gang)
        self._feed(ChildGone(gang.child.uid))

    def _account_for(self, uid: str, gang: Gang) -> None:
        """Work that came to nothing: on account of an eviction, or of its own limit."""
        life, record = self.lives[uid], self._shown[uid].dispatch
        spent = sum(self.now - member.since for member in gang.members if member.node >= 0)
        if record is not None and record.preemptor:
            life.lost += spent
        elif record is not None and record.reason == TeardownReason.DEADLINE_EXCEEDED:
            life.cut += spent

    def _empty(self, gang: Gang) -> None:
        for member in gang.members:
            if member.node >= 0:
                self._placing.give(member.node, member.pod.request)
                self.meter.using[gang.job.team] -= _counted(member.pod.request)
            self._feed(PodGone(member.pod.uid))
        gang.members = []

    # -- what came of it

    @property
    def utilisation(self) -> float:
        """The share of the cluster's CPU that bound pods had asked for, over what was measured."""
        return self.meter.sums.total() / (self.capacity * self.meter.span)

    def share(self, team: str) -> float:
        """A team's part of the cluster's CPU, over what was measured."""
        return self.meter.sums[team] / (self.capacity * self.meter.span)

    def life(self, name: str) -> Life:
        """What became of the job of this name."""
        return self.lives[uid_of(name)]

    def check(self) -> None:
        """The gate of every figure: no node is given more than it has, and the books agree."""
        for node, free in zip(self.nodes, self._placing.free, strict=True):
            if min(free.values()) < 0:
                raise AssertionError(f"node {node.name} is given more than it has")
        self.brain.cluster.capacity.check()


def _decides() -> None:
    """Whatever happens, they decide after it."""


def _counted(request: Resources) -> int:
    return next((amount for name, amount in request if name == COUNTED), 0)
