"""The records on which the core decides: frozen, slotted, free of manifests and Kubernetes types.

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
    """The manifest shape of an AppWrapper, recognized by its fields, never by apiVersion."""

    V1BETA1 = "v1beta1"
    V1BETA2 = "v1beta2"


NameKey = tuple[str, str, str, str]


class ObjectRef(Struct, frozen=True):
    """The place of one wrapped object in the API: one line of the inventory (protocol P1)."""

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

    @property
    def key(self) -> NameKey:
        """The unique key by which the API server names the object."""
        return (self.group, self.resource, self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class Taint(Struct, frozen=True):
    """A node's taint."""

    key: str
    value: str
    effect: str


class Toleration(Struct, frozen=True):
    """A pod's toleration."""

    key: str  # "" with the operator ``Exists`` tolerates everything
    operator: str
    value: str
    effect: str  # "" is any effect


class Requirement(Struct, frozen=True):
    """One line of a node selector term."""

    key: str
    operator: str
    values: tuple[str, ...]
    field: bool = False  # of matchFields, else of matchExpressions


class Constraint(Struct, frozen=True):
    """Which nodes admit a pod."""

    selector: tuple[tuple[str, str], ...] = ()
    # Terms are ORed, the requirements within a term ANDed. None is no required node affinity; an
    # empty tuple matches no node, as in kube-scheduler.
    affinity: tuple[tuple[Requirement, ...], ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    node_name: str = ""


EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - what manifests say by default; nothing is bound


class HostPort(Struct, frozen=True):
    """A port that a pod binds on its node: at one address, or at every address."""

    protocol: str
    number: int
    address: str = EVERY_ADDRESS


HOSTNAME = "kubernetes.io/hostname"
"""The label of every node with its own name."""

Domain = tuple[str, str]
"""(node label, value): all nodes that have the label and value are one topology domain."""


class Topology(Struct, frozen=True):
    """How close together the pods of a set have to be (``required``), or should be."""

    levels: tuple[str, ...]  # node labels, those of the narrowest domains first
    required: bool = True  # else any nodes will do if no domain has room
    group: str = ""  # all sets of a group share one domain; "" is the set alone


class PodSet(Struct, frozen=True):
    """Pods of one shape within one item."""

    item: int
    index: int
    path: str
    replicas: int  # as declared
    request: Resources
    constraint: Constraint = Constraint()
    cap: int = 0  # of the set's pods per node (anti-affinity to itself); 0 is no bound
    per_node: bool = False  # a DaemonSet: one pod per admitted node; ``replicas`` does not count
    # The live wish cannot be read from the child (unknown kinds, ``custompodresources``), so it is
    # the declared pods less the succeeded pods (C2).
    counts_pods: bool = False
    added: Resources = ()  # part of ``request`` that admission adds to the template (ADR 61)
    unmodelled: tuple[str, ...] = ()  # predicates of kube-scheduler that the fit test leaves out
    ports: tuple[HostPort, ...] = ()  # each is free once per node, for pods of any set
    topology: Topology | None = None
    domain: Domain | None = None  # chosen for ``topology``; the ``constraint`` selects it as well
    # Numbers, within the gang, of terms of required anti-affinity by hostname that concern several
    # sets: the terms of its pods, and the terms that select its pods.
    repels: tuple[int, ...] = ()
    repelled: tuple[int, ...] = ()

    def excludes(self, other: "PodSet") -> bool:
        """Whether no pod of this set may share a node with a pod of the other, in either order."""
        return not (
            set(self.repels).isdisjoint(other.repelled)
            and set(other.repels).isdisjoint(self.repelled)
        )


class KeptApart(Struct, frozen=True):
    """Nodes that the pods of one template of an item leave to other pods of the same gang.
    ``preferred``: the pods use these nodes if there is room nowhere else."""

    item: int
    path: str
    nodes: tuple[str, ...]
    preferred: bool = False


class ChosenDomain(Struct, frozen=True):
    """The topology domain of a pod set in one attempt; ``path`` is the path of its template."""

    item: int
    index: int
    path: str
    domain: Domain


class AddedRequests(Struct, frozen=True):
    """The additions of admission to each pod of a pod set, as its pods have shown (ADR 61)."""

    item: int
    index: int
    requests: Resources


class NodeRules(NamedTuple):
    """Where the pods of an item go: off the nodes for other pods (names, sorted), to the nodes that
    are planned for them, and into their topology domains."""

    avoid: tuple[str, ...] = ()  # its pods go elsewhere if there is room
    exclude: tuple[str, ...] = ()  # its pods must not go there
    apart: tuple[KeptApart, ...] = ()  # the same for the pods of these templates
    domains: tuple[ChosenDomain, ...] = ()
    prefers: Domain | None = None  # its pods go there if there is room
    planned: tuple[str, ...] = ()  # the same for these nodes (names, sorted)

    def avoided_at(self, path: str) -> tuple[str, ...]:
        """The nodes that the pods of the template at this path should avoid."""
        return (*self.avoid, *self._apart_at(path, preferred=True))

    def excluded_at(self, path: str) -> tuple[str, ...]:
        """The nodes that the pods of the template at this path must avoid."""
        return (*self.exclude, *self._apart_at(path, preferred=False))

    def _apart_at(self, path: str, *, preferred: bool) -> tuple[str, ...]:
        known = (o.nodes for o in self.apart if o.path == path and o.preferred is preferred)
        return next(known, ())


NO_NODE_RULES = NodeRules()


class Item(Struct, frozen=True):
    """One wrapped object: its place, and when it counts as finished.

    ``ttl`` is how long its controller would keep it after its end, None for ever. The object is
    created without that field and deleted by the dispatcher, once its outcome is on record.
    """

    ref: ObjectRef
    completion: tuple[str, ...] = ()  # condition types in lower case; () takes no part in it
    guessed: bool = False  # the demand was found by walking an unknown kind
    tells_end: bool = False  # the object itself says when it is finished, not its pods
    suspended: str = ""  # the field of the manifest by which it is submitted suspended
    ttl: Duration | None = None


class Cascade(StrEnum):
    """What becomes of the objects of a deleted AppWrapper, by its finalizers.

    ``FOREGROUND`` objects go before the AppWrapper, ``ORPHAN``s stay; else they go after it.
    """

    BACKGROUND = "background"
    FOREGROUND = "foreground"
    ORPHAN = "orphan"


class Problem(Struct, frozen=True):
    """A fault of the manifest: the field, the fault, and the remedy."""

    kind: WaitingReason
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class DispatchPhase(StrEnum):
    """The recorded part of an attempt, in the order of its phases (protocol P1, P3, P4).

    The record of a released attempt stays, because the next attempt must have a higher number than
    any late request may still carry.
    """

    CREATING = "creating"
    DISPATCHED = "dispatched"
    KEEPING = "keeping"  # failed; its objects are kept for a while so that users can look at them
    UNDEPLOYING = "undeploying"
    PAUSED = "paused"  # torn down and observed absent; its room is kept for the next attempt
    RELEASED = "released"  # torn down and observed absent (P4 d)


class Next(StrEnum):
    """Where a teardown ends (protocol P4 d)."""

    QUEUED = "queued"
    RESET = "reset"  # another attempt in the room that is kept (v1beta2)
    COMPLETED = "completed"
    FAILED = "failed"
    DELETED = "deleted"


class DispatchRecord(Struct, frozen=True):
    """``status.dispatch``: one attempt as every observer and every successor sees it."""

    attempt: int
    epoch: int
    phase: DispatchPhase
    payload: str
    inventory: tuple[ObjectRef, ...]
    since: Instant  # of the intent
    confirmed: Instant = 0  # 0: not yet
    entered: Instant = 0  # when a later phase began: deadlines count from there (P15)
    reason: str = ""  # this, ``message`` and ``next`` are set from the teardown on
    message: str = ""
    next: Next = Next.QUEUED
    finished: tuple[int, ...] = ()  # items that reported their end, perhaps gone at the next start
    # (tree, leaf) where it is charged: later edits of labels do not move it.
    quota: tuple[tuple[str, str], ...] = ()
    preemptor: str = ""  # the uid of the AppWrapper for which it is evicted
    # Since when ``dispatchDuration.limit`` counts, if not since ``confirmed``: time of earlier
    # attempts is added, time in which its pods had no nodes is not (running/stage.py).
    limit_since: Instant = 0
    domains: tuple[ChosenDomain, ...] = ()  # where its pods have to be; items as in ``inventory``
    prefers: Domain | None = None  # where its pods should be, if it has no topology (ADR 53)
    apart: tuple[KeptApart, ...] = ()  # which nodes its pods leave to each other (ADR 48)
    placed: Instant = 0  # when all pods of the declared gang had had nodes
    # Positions of pod sets that a client suspended: their room is free for the rest of the attempt.
    resumed: tuple[int, ...] = ()
    added: tuple[AddedRequests, ...] = ()

    def domains_of(self, item: int) -> tuple[ChosenDomain, ...]:
        """The topology domains of the pod sets of an item."""
        return tuple(one for one in self.domains if one.item == item)

    def apart_of(self, item: int) -> tuple[KeptApart, ...]:
        """The nodes that the templates of an item leave to other pods of the gang."""
        return tuple(one for one in self.apart if one.item == item)


class Condition(Struct, frozen=True):
    """One entry of ``status.conditions``."""

    type: str
    status: bool
    reason: str
    message: str
    updated: Instant
    changed: Instant  # moves only when ``status`` does


class Unscheduled(Struct, frozen=True):
    """What kube-scheduler reports of a pod for which it found no node, and since when."""

    message: str
    since: Instant


class PodCounts(Struct, frozen=True):
    """Own pods by phase, as far as they are attributed. Status leaves out pods that leave."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    leaving: int = 0  # of the running pods
    stuck: int = 0  # with a container that cannot start or does not stay up
    totals: Resources = ()  # requested by pods that run or have succeeded
    unscheduled: tuple[tuple[str, Unscheduled], ...] = ()  # the first few without a node, by name


class PrioritySource(Struct, frozen=True):
    """The class that gives an AppWrapper without ``spec.priority`` its priority."""

    kind: str  # PriorityClass, or Kueue's WorkloadPriorityClass
    name: str
    value: int
    is_default: bool = False  # the global default, which neither it nor its pods name

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Persisted(Struct, frozen=True):
    """The part of ``status`` that the core reads back after a restart.

    AppWrappers that an upstream controller left queued are dispatched in their old order, because
    MCAD wrote the same first-seen time. AppWrappers that it left running are ``foreign``: they have
    a state that is neither Pending nor terminal, and no ``status.dispatch``.
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
    unreadable: str = ""  # the unreadable part of the record: a later version or a user wrote it
    priority_source: PrioritySource | None = None
    deleted_trees: tuple[tuple[str, Instant], ...] = ()  # as in StatusView


MAX_PRIORITY = 2**31 - 1
"""The highest priority of an AppWrapper, as of a pod in Kubernetes; the lowest is its negative."""

POD_GRACE: Duration = 30 * SECOND
"""The API server's default for a pod without ``terminationGracePeriodSeconds``."""


class Workload(Struct, frozen=True):
    """One AppWrapper as the border read it: spec, identity, and its persisted status."""

    uid: str
    namespace: str
    name: str
    generation: int
    dialect: Dialect
    created: Instant  # metadata.creationTimestamp
    payload: str  # the SHA-256 of all created objects
    items: tuple[Item, ...]  # may be incomplete if there is a ``problem``
    sets: tuple[PodSet, ...]
    priority: int = 0
    slope: int = 0  # priorityslope in millionths per second
    min_available: int = 0
    requeuing: Requeuing = AS_DOCUMENTED
    run_limit: Duration = 0  # how long it may hold room (docs/reference/lifecycle.md); 0: no limit
    run_expected: Duration = 0  # the time that it declares to run; 0 if it declares none
    attempt_limit: Duration = 0  # when its items end by themselves, from each dispatch on, or 0
    grace: Duration = POD_GRACE  # the longest terminationGracePeriodSeconds of its pod templates
    never_preempts: bool = False  # its PriorityClass says so
    never_preempted: bool = False  # its annotation says so, where that is permitted
    tolerance: FaultTolerance = LENIENT
    suspended: bool = False
    granted: bool = True  # else it is a copy that its hub has not granted (M4)
    managed: bool = True  # else spec.managedBy names another controller; only its pods count
    deleting: bool = False
    cascade: Cascade = Cascade.BACKGROUND  # matters once it is ``deleting``
    kept_by: str = ""  # the finalizer that keeps it although it is ``deleting``
    problem: Problem | None = None  # it is refused until its manifest changes
    # Its labels, if quotas count: the value of a key with a tree's name is the leaf there.
    quota: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    persisted: Persisted | None = None
    has_priority: bool = True  # ``spec.priority`` is given; else the priority is that of a class
    priority_label: str = ""  # the WorkloadPriorityClass that its label names
    priority_source: PrioritySource | None = None


class Node(Struct, frozen=True):
    """A node as the fit test sees it."""

    name: str
    allocatable: Resources
    ready: bool = True  # the Ready condition, True only if "True"
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    evicts: tuple[str, ...] = ()  # resources whose users have to leave it (Autopilot's labels)
    closed: str = ""  # the taint (a key) by which it takes no pods yet, or no more (closing.py)


class PodPhase(StrEnum):
    """``status.phase`` of a pod."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


TERMINAL_PHASES = frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED})


class StuckReason(StrEnum):
    """Why a container does not run, under any name that kubelet gives it."""

    IMAGE = "ImagePullFailed"
    CONTAINER = "ContainerCannotStart"
    CRASH = "CrashLoop"


class Stuck(Struct, frozen=True):
    """A container that kubelet cannot start or keep running, in kubelet's words."""

    reason: StuckReason
    message: str  # the container, kubelet's reason and message, cut


class Pod(Struct, frozen=True):
    """A live pod: its use, its node, and its AppWrapper."""

    uid: str
    namespace: str
    name: str
    node: str  # "" until it is bound
    phase: PodPhase
    request: Resources
    terminating: bool = False
    workload: str = ""  # the uid of the AppWrapper at the end of its chain of controllers (C3)
    item: int = -1  # this and ``index`` are the hint of the podset label, -1 without one
    index: int = -1
    attempt: int = 0  # the attempt label, 0 without one
    ports: tuple[HostPort, ...] = ()  # taken on the node for as long as ``request`` is
    created: Instant = 0  # 0 for pods without our label
    exit_codes: tuple[int, ...] = ()  # of the containers of a failed pod, without zeros
    unscheduled: Unscheduled | None = None  # what kube-scheduler reports of a pending pod
    grace: Duration = 0  # terminationGracePeriodSeconds, 0 for pods without our label
    # The remaining fields are read of pods with our label only.
    bound: Instant = 0  # when kube-scheduler found its node, 0 if unknown
    ready: bool = False  # its condition Ready
    ready_since: Instant = 0  # 0 if it is not ready
    gated: bool = False  # it has schedulingGates: kube-scheduler does not look at it yet
    edited: bool = False  # its spec is not as it was created
    amended: bool = False  # ``edited``, and without a node: it may have had gates
    stuck: Stuck | None = None  # a container that cannot start, or does not stay up
    disruption: str = ""  # reason of its condition DisruptionTarget: why it has to go
    root: str = ""  # the uid of the object next to ``workload`` in the chain, or the pod itself
    # The only node that it waits for, until it is bound: kube-scheduler made room for it there by
    # preemption, or its DaemonSet created it for that node.
    nominated: str = ""

    @property
    def charged(self) -> str:
        """The node whose room it takes (C1), "" if there is none. A pod of an AppWrapper that is
        not bound yet has its room among the assumed pods."""
        return self.node or ("" if self.workload else self.nominated)


class ItemState(StrEnum):
    """The state that a live object reports for itself as a whole."""

    UNKNOWN = "unknown"  # its kind is not in the table, or it reports nothing
    PROGRESSING = "progressing"
    SUSPENDED = "suspended"
    RETRYING = "retrying"  # it failed, and its controller begins again: that is no end
    SUCCEEDED = "succeeded"
    FAILED = "failed"


ENDED = frozenset({ItemState.SUCCEEDED, ItemState.FAILED})


class Wanted(Struct, frozen=True):
    """The pods of one set as their controller sees them. Declared pods beyond both numbers never
    come again in this run: their room is free."""

    now: int  # pods that it has, or makes now
    later: int = 0  # pods that come later in this run: their room is kept


class Child(Struct, frozen=True):
    """A live wrapped object that an AppWrapper controls."""

    uid: str
    ref: ObjectRef
    workload: str
    attempt: int
    item: int
    terminating: bool = False
    wants: tuple[Wanted | None, ...] = ()  # by set (C2), None if not reported
    state: ItemState = ItemState.UNKNOWN
    # The fields that suspend it or a part of it, and the client that set them if known.
    suspended: str = ""
    words: str = ""  # its controller's message about pods that it cannot make, "" without one
    ended: Instant = 0  # when it succeeded or failed, by its own status
    met: frozenset[str] = frozenset()  # types, in lower case, of its True conditions; a Pod's phase
    labelled: bool = True  # with our uid and attempt: only then may the sweep touch it (P7)


class HeldResource(Struct, frozen=True):
    """A wrapped resource that is not created in a namespace for now, for any AppWrapper."""

    namespace: str
    group: str
    resource: str
    reason: str  # one word
    message: str  # tells users what is missing and for which account
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
