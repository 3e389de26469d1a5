"""The records that the core decides on: frozen, slotted, free of manifests and of Kubernetes types.

Times are those of units.py, an amount of ``cpu`` is integer milli-CPU, every other amount integer
bytes or counts. Nothing here is ever a float.
"""

from enum import StrEnum
from typing import NamedTuple

from mcad.core.state.records import Struct
from mcad.core.state.reservation import Eviction, Reservation
from mcad.core.state.run_policy import AS_DOCUMENTED, LENIENT, FaultTolerance, Requeuing
from mcad.core.state.units import SECOND, Duration, Instant
from mcad.core.state.waiting_reason import WaitingReason

Resources = tuple[tuple[str, int], ...]
"""(resource name, amount) sorted by name, without zero amounts."""


class Dialect(StrEnum):
    """Which of the two manifest shapes an AppWrapper has, told by shape, never by apiVersion."""

    V1BETA1 = "v1beta1"
    V1BETA2 = "v1beta2"


class ObjectRef(Struct, frozen=True):
    """Where one wrapped object lives in the API: one line of the inventory (protocol P1)."""

    group: str
    version: str
    resource: str
    kind: str
    namespace: str
    name: str

    @property
    def api_version(self) -> str:
        """``apps/v1``, or ``v1`` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class Taint(Struct, frozen=True):
    """A node's taint."""

    key: str
    value: str
    effect: str


class Toleration(Struct, frozen=True):
    """A pod's toleration; an empty key with ``Exists`` tolerates everything, "" any effect."""

    key: str
    operator: str
    value: str
    effect: str


class Requirement(Struct, frozen=True):
    """One line of a node selector term; ``field`` tells matchFields from matchExpressions."""

    key: str
    operator: str
    values: tuple[str, ...]
    field: bool = False


class Constraint(Struct, frozen=True):
    """Which nodes admit a pod. ``affinity`` terms are ORed, requirements within a term ANDed.

    ``affinity`` None means no required node affinity; an empty tuple matches no node, as in
    kube-scheduler.
    """

    selector: tuple[tuple[str, str], ...] = ()
    affinity: tuple[tuple[Requirement, ...], ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    node_name: str = ""


EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - what manifests say by default; nothing is bound


class HostPort(Struct, frozen=True):
    """A port that a pod binds on its node: at one address, or at every one."""

    protocol: str
    number: int
    address: str = EVERY_ADDRESS


class PodSet(Struct, frozen=True):
    """Pods of one shape within one item.

    ``replicas`` is the declared number; for ``per_node`` sets (DaemonSet) it is ignored and the
    demand is one pod per admitted node. ``cap`` bounds the pods per node (anti-affinity to itself),
    0 is no bound; ``ports`` exclude each other on a node, and those of other pods. ``unmodelled``
    names the predicates of kube-scheduler that the fit test does not look at. ``counts_pods`` is
    set where the live wish cannot be read from the child (unknown kinds, ``custompodresources``):
    there, want = declared - succeeded pods (C2).
    """

    item: int
    index: int
    path: str
    replicas: int
    request: Resources
    constraint: Constraint = Constraint()
    cap: int = 0
    per_node: bool = False
    counts_pods: bool = False
    unmodelled: tuple[str, ...] = ()
    ports: tuple[HostPort, ...] = ()


class ReservedNodes(NamedTuple):
    """The names of nodes that are reserved for others, sorted: those that pods should ``avoid`` if
    there is room elsewhere, and those to ``exclude``, to which they must not go."""

    avoid: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


NO_RESERVED_NODES = ReservedNodes()


class Item(Struct, frozen=True):
    """One wrapped object: where it will live and what makes it count as finished.

    ``completion`` holds condition types in lower case; empty means that the item does not take
    part in completion. ``tells_end`` is set for kinds that say themselves when they are finished:
    their pods do not tell it. ``guessed`` is set if the demand was found by walking an unknown
    kind.
    """

    ref: ObjectRef
    completion: tuple[str, ...] = ()
    guessed: bool = False
    tells_end: bool = False


class Cascade(StrEnum):
    """What becomes of its objects when an AppWrapper is deleted, told by its finalizers.

    ``FOREGROUND`` objects go before it does, ``ORPHAN``s stay; else they go after it.
    """

    BACKGROUND = "background"
    FOREGROUND = "foreground"
    ORPHAN = "orphan"


class Problem(Struct, frozen=True):
    """A fault of the manifest: the field, what is wrong with it, and what to do."""

    kind: WaitingReason
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class DispatchPhase(StrEnum):
    """The recorded part of an attempt, in the order of its phases (protocol P1, P3, P4).

    ``KEEPING``: failed, and its objects are kept for a while so that people can look at them.
    ``PAUSED`` and ``RELEASED``: torn down and observed absent (P4 d); of the former the room is
    kept for the next attempt. The record stays, because that must have a higher number than any
    that a late request may still carry.
    """

    CREATING = "creating"
    DISPATCHED = "dispatched"
    KEEPING = "keeping"
    UNDEPLOYING = "undeploying"
    PAUSED = "paused"
    RELEASED = "released"


class Next(StrEnum):
    """Where a teardown ends (protocol P4 d): in the queue, in another attempt by the room that is
    kept (v1beta2's reset), or for good."""

    QUEUED = "queued"
    RESET = "reset"
    COMPLETED = "completed"
    FAILED = "failed"
    DELETED = "deleted"


class DispatchRecord(Struct, frozen=True):
    """``status.dispatch``: one attempt as every observer and every successor sees it.

    ``since`` is the instant of the intent, ``confirmed`` that of the confirmation (0: not yet),
    and ``entered`` that at which a later phase began: deadlines count from there (P15).
    ``reason``, ``message`` and ``next`` are set from the teardown on. ``finished`` are the items
    that said that they are: they may be gone when another leader reads this. ``quota`` holds
    (tree, leaf) where it was charged: labels that are edited later do not move it. ``preemptor`` is
    the uid of the AppWrapper for which it is evicted. ``limit_since`` is since when
    ``dispatchDuration.limit`` counts if that is not ``confirmed``: time of earlier attempts is
    added, time in which its pods had no nodes is not (pod_timeouts.py).
    """

    attempt: int
    epoch: int
    phase: DispatchPhase
    payload: str
    inventory: tuple[ObjectRef, ...]
    since: Instant
    confirmed: Instant = 0
    entered: Instant = 0
    reason: str = ""
    message: str = ""
    next: Next = Next.QUEUED
    finished: tuple[int, ...] = ()
    quota: tuple[tuple[str, str], ...] = ()
    preemptor: str = ""
    limit_since: Instant = 0


class Condition(Struct, frozen=True):
    """One entry of ``status.conditions``; ``changed`` moves only when ``status`` does."""

    type: str
    status: bool
    reason: str
    message: str
    updated: Instant
    changed: Instant


class Unscheduled(Struct, frozen=True):
    """What kube-scheduler says of a pod that it found no node for, and since when."""

    message: str
    since: Instant


class PodCounts(Struct, frozen=True):
    """Own pods by phase, as far as they are attributed; some running ones are ``leaving``.

    As status says them, without those that leave: ``totals`` is what those that run or have
    succeeded ask for, and ``unscheduled`` the first few without a node, by name.
    """

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    leaving: int = 0
    totals: Resources = ()
    unscheduled: tuple[tuple[str, Unscheduled], ...] = ()


class Persisted(Struct, frozen=True):
    """What the core reads back from ``status`` after a restart.

    ``foreign`` is set when an upstream controller left it running: there is a state that is neither
    Pending nor terminal, and no ``status.dispatch``. What upstream left queued is ours to dispatch,
    in its old order, because MCAD wrote the same first-seen time. ``unreadable`` says what of its
    record of an attempt is not understood: a later version wrote it, or a person.
    """

    state: str
    first_seen: Instant
    conditions: tuple[Condition, ...] = ()
    dispatch: DispatchRecord | None = None
    first_dispatch: Instant = 0
    requeueings: int = 0
    requeueing_wait: Duration = 0
    resets: int = 0
    pods: PodCounts = PodCounts()
    observed_generation: int = 0
    quota: tuple[tuple[str, str], ...] = ()
    reservation: Reservation | None = None
    eviction: Eviction | None = None
    foreign: bool = False
    unreadable: str = ""


POD_GRACE: Duration = 30 * SECOND
"""What the API server sets where a pod has no ``terminationGracePeriodSeconds``."""


class Workload(Struct, frozen=True):
    """One AppWrapper as the border read it: spec, identity, and its persisted status.

    ``created`` is metadata.creationTimestamp. ``payload`` is the SHA-256 of what would be created.
    ``slope`` is priorityslope in millionths per second. With a ``problem`` the items may be
    incomplete and the AppWrapper is refused until its manifest changes. ``managed`` is False if
    another ``spec.managedBy`` reservations it: then it is ignored, but its pods count. ``cascade``
    is of interest once it is ``deleting``. ``run_limit`` is how long it may hold room
    (lifecycle.md), 0 is no limit; ``run_expected`` is how long it says that it will, 0 if it says
    nothing, and ``attempt_limit`` is when whatever it wraps ends by itself, counted from each
    dispatch, or 0. ``grace`` is the longest ``terminationGracePeriodSeconds`` of its pod templates.
    ``never_preempts`` (its PriorityClass says so) and ``never_preempted`` (its annotation, where
    that is permitted) keep it out of evictions, as the one or the other side. ``quota`` holds its
    labels as (key, value) if quotas count: a key that is the name of a tree names its leaf there.
    """

    uid: str
    namespace: str
    name: str
    generation: int
    dialect: Dialect
    created: Instant
    payload: str
    items: tuple[Item, ...]
    sets: tuple[PodSet, ...]
    priority: int = 0
    slope: int = 0
    min_available: int = 0
    requeuing: Requeuing = AS_DOCUMENTED
    run_limit: Duration = 0
    run_expected: Duration = 0
    attempt_limit: Duration = 0
    grace: Duration = POD_GRACE
    never_preempts: bool = False
    never_preempted: bool = False
    tolerance: FaultTolerance = LENIENT
    suspended: bool = False
    managed: bool = True
    deleting: bool = False
    cascade: Cascade = Cascade.BACKGROUND
    problem: Problem | None = None
    quota: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    persisted: Persisted | None = None


class Node(Struct, frozen=True):
    """A node as the fit test sees it. ``ready`` is the Ready condition, True only if "True".

    ``evicts`` names the resources whose users have to leave it (Autopilot's labels).
    """

    name: str
    allocatable: Resources
    ready: bool = True
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    evicts: tuple[str, ...] = ()


class PodPhase(StrEnum):
    """``status.phase`` of a pod."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


TERMINAL_PHASES = frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED})


class Pod(Struct, frozen=True):
    """A live pod: what it uses, where, and whose it is.

    ``node`` is "" until it is bound. ``workload`` is the uid of the AppWrapper at the end of its
    chain of controllers, "" if there is none (protocol C3), and ``root`` that of the object next to
    it in the chain, which may be the pod itself; ``item`` and ``index`` are the hint of
    the podset label, -1 if absent. ``attempt`` is the attempt label, 0 if absent. ``ports``
    are taken on the node for as long as ``request`` is. ``created`` is 0 for pods without our
    label. ``exit_codes`` are those of the containers of a failed pod, zeros left out.
    ``unscheduled`` is what kube-scheduler says of one that is pending, if it says so. ``grace`` is
    its ``terminationGracePeriodSeconds``, 0 for pods without our label.
    """

    uid: str
    namespace: str
    name: str
    node: str
    phase: PodPhase
    request: Resources
    terminating: bool = False
    workload: str = ""
    item: int = -1
    index: int = -1
    attempt: int = 0
    ports: tuple[HostPort, ...] = ()
    created: Instant = 0
    exit_codes: tuple[int, ...] = ()
    unscheduled: Unscheduled | None = None
    grace: Duration = 0
    root: str = ""


class Child(Struct, frozen=True):
    """A live wrapped object that an AppWrapper controls.

    ``wants`` is the live number of pods per set of the item (protocol C2), None where the object
    does not tell. ``met`` holds the types, in lower case, of its conditions with status True (for
    a Pod also its phase). ``labelled`` is True if it carries our uid and attempt labels: only then
    may the sweep touch it (protocol P7).
    """

    uid: str
    ref: ObjectRef
    workload: str
    attempt: int
    item: int
    terminating: bool = False
    wants: tuple[int | None, ...] = ()
    met: frozenset[str] = frozenset()
    labelled: bool = True


class HeldResource(Struct, frozen=True):
    """A wrapped resource that is not created in a namespace for now, whatever AppWrapper asks.

    ``reason`` is one word and ``message`` says to people what is missing and for whom; ``since`` is
    when the hold began.
    """

    namespace: str
    group: str
    resource: str
    reason: str
    message: str
    since: Instant

    @property
    def title(self) -> str:
        """``jobs.batch``, or ``pods`` for the core group."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


class Remnant(Struct, frozen=True):
    """An object of an attempt that should be gone: an item, or a pod of one."""

    ref: ObjectRef
    uid: str
    terminating: bool = False
    finalizers: tuple[str, ...] = ()
