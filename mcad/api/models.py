"""The AppWrapper in the API, with the fields of both dialects: its spec and its status.

These models validate a spec and are the source of the CRD's schema (crd.py). Types are strict: the
API server would refuse ``replicas: "2"`` as well. Descriptions are shown by ``kubectl explain``.
"""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from mcad.api.wire import Json

MAX_ITEMS = 256
"""Items of one AppWrapper. The inventory of all items has to fit into status; schedulers that wrap
each replica of a job as a pod of its own (torchx) need a hundred."""

MAX_POD_SETS = 64
"""Declared pod sets of one item."""

QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]"
    r"|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)

FREE_FORM = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
EMBEDDED = {**FREE_FORM, "x-kubernetes-embedded-resource": True}
QUANTITY = {
    "x-kubernetes-int-or-string": True,
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": QUANTITY_PATTERN,
}

Free = Annotated[Any, WithJsonSchema(FREE_FORM)]
"""An object that is not read."""

Template = Annotated[Any, WithJsonSchema(EMBEDDED)]
"""A whole Kubernetes object. The API server requires apiVersion and kind; everything else is
checked when it is read, with a better message."""

Quantities = dict[str, Annotated[Any, WithJsonSchema(QUANTITY)]]
"""Quantities are checked when they are read, by the grammar rather than by a pattern."""

Time = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
Long = Annotated[int, WithJsonSchema({"type": "integer", "format": "int64"})]


CONDITION_TIME = "The time when status last changed."
OBSERVED_GENERATION = "The metadata.generation that this status is based on."
ACCEPTED = "Accepted and ignored, as in MCAD."
UNUSED = "A field of MCAD that is kept for compatibility; it has no meaning."
IN_PHASE = "The number of pods in this phase."


def _whole(value: Json) -> Json:
    """Accept 5.0 as 5: manifests of MCAD's first generation have priorities like that."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Int = Annotated[
    int, BeforeValidator(_whole), WithJsonSchema({"type": "integer", "format": "int32"})
]


class Wire(BaseModel):
    """The base of all models. Unknown fields are kept, to be reported as warnings."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow")


class CustomPodResource(Wire):
    """Pods of the item that have the same size."""

    replicas: Int = Field(description="The number of pods of this size.")
    requests: Quantities = Field(description="The resources that each pod requests.")
    limits: Quantities | None = Field(
        default=None, description="Used instead of a request that is missing or 0."
    )


class GenericItem(Wire):
    """One wrapped object in the v1beta1 dialect."""

    generictemplate: Template = Field(default=None, description="The object to create.")
    custompodresources: list[CustomPodResource] | None = Field(
        default=None,
        max_length=MAX_POD_SETS,
        description="The pods of the object. Overrides the pods in its template.",
    )
    completionstatus: str | None = Field(
        default=None,
        description="Condition types, separated by commas; the item is finished once one is True.",
    )
    replicas: Int | None = Field(default=None, description=ACCEPTED)
    minavailable: Int | None = Field(default=None, description=ACCEPTED)
    allocated: Int | None = Field(default=None, description=ACCEPTED)
    priority: float | None = Field(default=None, description=ACCEPTED)
    priorityslope: float | None = Field(default=None, description=ACCEPTED)
    metadata: Free = Field(default=None, description="Used in old manifests; ignored.")


class WrappedResources(Wire):
    """The wrapped objects in the v1beta1 dialect."""

    generic_items: list[GenericItem] | None = Field(
        default=None,
        alias="GenericItems",
        max_length=MAX_ITEMS,
        description="The objects, in the order of creation.",
    )
    items: list[Free] | None = Field(
        default=None,
        alias="Items",
        max_length=MAX_ITEMS,
        description="Typed items of MCAD before v1.33; ignored.",
    )


class Requeuing(Wire):
    """How an AppWrapper with fewer than minAvailable pods is requeued."""

    time_in_seconds: Int | None = Field(
        default=300,
        alias="timeInSeconds",
        description="The time to wait for the pods before the AppWrapper is requeued.",
    )
    initial_time_in_seconds: Int | None = Field(
        default=None,
        alias="initialTimeInSeconds",
        description="The first wait, if it is more than 0; timeInSeconds is then not used.",
    )
    max_time_in_seconds: Int | None = Field(
        default=0,
        alias="maxTimeInSeconds",
        description="The maximum of the growing wait; 0 means no maximum.",
    )
    growth_type: str | None = Field(
        default="exponential",
        alias="growthType",
        description="How the wait grows with each requeuing: exponential, linear or none.",
    )
    num_requeuings: Int | None = Field(
        default=0, alias="numRequeuings", description="Ignored; not for users."
    )
    max_num_requeuings: Int | None = Field(
        default=0,
        alias="maxNumRequeuings",
        description=(
            "After this number of requeuings its objects are deleted, and its state is Deleted; "
            "0 means no limit."
        ),
    )


class DispatchDuration(Wire):
    """The run time of the AppWrapper."""

    limit: Int | None = Field(
        default=None,
        description="The maximum run time in seconds; the AppWrapper then fails. It counts from "
        "the dispatch of the present attempt, and includes attempts that ended for want of running "
        "pods or in a reset. A limit of 366 days or more is none.",
    )
    expected: Int | None = Field(
        default=None,
        description="The expected run time in seconds, used for start time estimates only.",
    )
    overrun: bool | None = Field(default=None, description="Accepted and ignored.")


class SchedulingSpec(Wire):
    """Rules for the AppWrapper as a whole."""

    min_available: Int | None = Field(
        default=None,
        alias="minAvailable",
        description="The number of pods that must be running or have succeeded; 0 means none.",
    )
    requeuing: Requeuing | None = None
    dispatch_duration: DispatchDuration | None = Field(default=None, alias="dispatchDuration")
    node_selector: dict[str, str] | None = Field(
        default=None, alias="nodeSelector", description=ACCEPTED
    )
    cluster_scheduling: Free = Field(default=None, alias="clusterScheduling", description=ACCEPTED)
    dispatching_window: Free = Field(default=None, alias="dispatchingWindow", description=ACCEPTED)


class SchedulingGate(Wire):
    """A gate: the pod is not scheduled until it is removed."""

    name: str = Field(description="The name of the gate.")


class PodSetInfo(Wire):
    """Additions of a quota system to the pods of one pod set."""

    annotations: dict[str, str] | None = Field(
        default=None, description="Added to the annotations of the pods."
    )
    labels: dict[str, str] | None = Field(
        default=None, description="Added to the labels of the pods."
    )
    node_selector: dict[str, str] | None = Field(
        default=None, alias="nodeSelector", description="Added to the node selector of the pods."
    )
    tolerations: list[Free] | None = Field(
        default=None, max_length=64, description="Added to the tolerations of the pods."
    )
    scheduling_gates: list[SchedulingGate] | None = Field(
        default=None,
        alias="schedulingGates",
        max_length=64,
        description="Added to the scheduling gates of the pods.",
    )


class PodSetSpec(Wire):
    """A declared pod set."""

    path: str = Field(
        max_length=1024,
        description="The path of the pod template, like template.spec.template or template.",
    )
    replicas: Int | None = Field(default=None, description="The number of pods; the default is 1.")
    annotations: dict[str, str] | None = Field(
        default=None, description="Those of topology count; others are ignored."
    )


class Component(Wire):
    """One wrapped object in the v1beta2 dialect."""

    template: Template = Field(description="The object to create.")
    pod_sets: list[PodSetSpec] | None = Field(
        default=None,
        alias="podSets",
        max_length=MAX_POD_SETS,
        description="The pods of the object; inferred from its kind if not given.",
    )
    pod_set_infos: list[PodSetInfo] | None = Field(
        default=None,
        alias="podSetInfos",
        max_length=MAX_POD_SETS,
        description="Additions of a quota system, which are merged into the pod templates.",
    )
    annotations: dict[str, str] | None = Field(default=None, description="Accepted and ignored.")


class ScaleUpSpec(Wire):
    """What the AppWrapper asks of an autoscaler."""

    keep_pods: bool | None = Field(
        default=None,
        alias="keepPods",
        description="If true, its pods get annotations that keep cluster-autoscaler and Karpenter "
        "from moving them while they run; so their nodes stay.",
    )


class AppWrapperSpec(Wire):
    """The desired objects: either ``resources`` (v1beta1) or ``components`` (v1beta2)."""

    resources: WrappedResources | None = Field(
        default=None, description="The wrapped objects in the v1beta1 dialect."
    )
    components: list[Component] | None = Field(
        default=None,
        max_length=MAX_ITEMS,
        description="The wrapped objects in the v1beta2 dialect.",
    )
    priority: Int | None = Field(
        default=None,
        description="AppWrappers with a higher priority go first. Without it the priority is that "
        "of the class that the label kueue.x-k8s.io/priority-class or the first pod set names, "
        "else of the global default PriorityClass.",
    )
    priorityslope: float | None = Field(
        default=None, description="The increase of the priority per second of waiting."
    )
    scheduling_spec: SchedulingSpec | None = Field(default=None, alias="schedulingSpec")
    sched_spec: Free = Field(
        default=None,
        alias="schedSpec",
        description="The former name of schedulingSpec; ignored, as in MCAD.",
    )
    suspend: bool | None = Field(
        default=None,
        description="If true, the AppWrapper stays in the queue; if it runs, it is requeued.",
    )
    managed_by: str | None = Field(
        default=None,
        alias="managedBy",
        description="The controller of the AppWrapper. With the name of another controller, this "
        "dispatcher ignores it.",
    )
    scale_up: ScaleUpSpec | None = Field(default=None, alias="scaleUp")
    service: Free = Field(default=None, description=ACCEPTED)
    selector: Free = Field(default=None, description=ACCEPTED)


class StandardCondition(Wire):
    """One condition, in the form of metav1.Condition."""

    type: str = Field(description="The type of the condition.")
    status: str = Field(description="True, False or Unknown.")
    reason: str | None = Field(
        default=None, description="Why the condition has this status, in one word."
    )
    message: str | None = Field(
        default=None, description="Why the condition has this status, in a sentence."
    )
    last_transition_time: Time | None = Field(
        default=None, alias="lastTransitionTime", description=CONDITION_TIME
    )


class ConditionStatus(StandardCondition):
    """One condition; times of v1beta1 have microseconds, v1beta2 adds lastTransitionTime."""

    last_update_micro_time: Time | None = Field(
        default=None,
        alias="lastUpdateMicroTime",
        description="The time when any field of the condition last changed.",
    )
    last_transition_micro_time: Time | None = Field(
        default=None, alias="lastTransitionMicroTime", description=CONDITION_TIME
    )
    observed_generation: Long | None = Field(
        default=None, alias="observedGeneration", description=OBSERVED_GENERATION
    )


class InventoryLine(Wire):
    """One object of an attempt."""

    group: str | None = Field(
        default=None, description="Its API group; missing for kinds of the core group."
    )
    version: str = Field(description="Its API version, without the group.")
    resource: str = Field(description="The plural name of its kind, as in API paths.")
    kind: str = Field(description="Its kind.")
    namespace: str | None = Field(default=None, description="Its namespace.")
    name: str = Field(description="Its name.")


class QuotaLine(Wire):
    """A leaf of a quota tree to which an AppWrapper, or its attempt, is charged."""

    tree: str = Field(description="The quota tree.")
    leaf: str = Field(description="The leaf of the tree.")


class QuotaPlace(QuotaLine):
    """The leaf of the AppWrapper in a quota tree."""

    tree_deleted: Time | None = Field(
        default=None,
        alias="treeDeleted",
        description="The time when the tree was deleted. It counts until quotaGracePeriod is over; "
        "a few AppWrappers of the tree show this.",
    )


class PreferredDomain(Wire):
    """The topology domain that the pods of an AppWrapper without topology prefer."""

    label: str = Field(description="The label of the nodes.")
    value: str = Field(description="The value of the label.")


class DomainLine(Wire):
    """The topology domain of one pod set: all nodes whose label has the value."""

    item: Int = Field(description="The number of the item.")
    index: Int = Field(description="The number of the pod set in its item.")
    path: str | None = Field(default=None, description="The path of the pod template.")
    label: str = Field(description="The label of the nodes.")
    value: str = Field(description="The value of the label.")


class ExcludedNodes(Wire):
    """Nodes on which the pods of one template must not run, because other pods of the gang need
    them."""

    item: Int = Field(description="The number of the item.")
    path: str | None = Field(default=None, description="The path of the pod template.")
    nodes: list[str] = Field(description="The names of the nodes, 128 at most.")
    preferred: bool | None = Field(
        default=None,
        description="Whether the pods may run there if there is room nowhere else: those of items "
        "that may run for ever.",
    )


class AddedRequests(Wire):
    """What admission adds to each pod of a pod set, as its pods have shown."""

    item: Int = Field(description="The number of the item.")
    index: Int = Field(description="The number of the pod set within the item.")
    requests: Quantities = Field(description="The amounts by resource.")


class DispatchStatus(Wire):
    """The current attempt: its objects are being created, exist, or are being deleted."""

    format: Int | None = Field(
        default=None,
        description="The format of this record. A version that does not know it does not change "
        "the record.",
    )
    uid: str | None = Field(
        default=None,
        description="The uid of the AppWrapper. A status with the uid of another one is ignored.",
    )
    attempt: Long = Field(description="The number of the attempt; it only increases.")
    epoch: Long = Field(
        description="The number of the leader election before the attempt; it only increases."
    )
    phase: str = Field(
        description="The phase of the attempt. Before the first attempt there is no "
        "status.dispatch; the record of one that has ended stays."
    )
    payload_sha256: str | None = Field(
        default=None,
        alias="payloadSHA256",
        description="The hash of the objects to create, as given in the spec.",
    )
    inventory: list[InventoryLine] | None = Field(
        default=None,
        description="The objects of the attempt in the order of creation, recorded before they are "
        "created.",
    )
    reason: str | None = Field(
        default=None, description="Why the objects are deleted, in one word."
    )
    message: str | None = Field(
        default=None, description="Why the objects are deleted, in a sentence."
    )
    next: str | None = Field(
        default=None, description="What follows after the objects are deleted."
    )
    intent_time: Time | None = Field(
        default=None, alias="intentTime", description="The time when the attempt began."
    )
    confirm_time: Time | None = Field(
        default=None,
        alias="confirmTime",
        description="The time when all objects of the attempt existed.",
    )
    phase_time: Time | None = Field(
        default=None, alias="phaseTime", description="The time when the phase began."
    )
    finished: list[Int] | None = Field(default=None, description="The numbers of finished items.")
    quota: list[QuotaLine] | None = Field(
        default=None, description="The leaves to which the attempt is charged."
    )
    preemptor: str | None = Field(
        default=None, description="The uid of the AppWrapper for which this one is evicted."
    )
    limit_since: Time | None = Field(
        default=None,
        alias="limitSince",
        description="The time from which dispatchDuration.limit counts, if it includes earlier "
        "attempts.",
    )
    domains: list[DomainLine] | None = Field(
        default=None,
        description="The topology domains in which the pods have to be, as required node affinity.",
    )
    preferred_domain: PreferredDomain | None = Field(
        default=None,
        alias="preferredDomain",
        description="The topology domain that the pods prefer, which has room for all of them.",
    )
    excluded_nodes: list[ExcludedNodes] | None = Field(
        default=None,
        alias="excludedNodes",
        description="The nodes that pods of a template leave to other pods of the gang, as "
        "required node affinity.",
    )
    placed_time: Time | None = Field(
        default=None,
        alias="placedTime",
        description="The time when all declared pods had nodes. From then on no pod without a node "
        "ends the attempt.",
    )
    suspended_pod_sets: list[Int] | None = Field(
        default=None,
        alias="suspendedPodSets",
        description="The numbers of pod sets that a client suspended. Their room is free for the "
        "rest of the attempt.",
    )
    added_requests: list[AddedRequests] | None = Field(
        default=None,
        alias="addedRequests",
        description="What mutating webhooks and policies add to the requests of pods. The next "
        "attempt waits for room for that as well.",
    )


class ReservedPlace(Wire):
    """The reserved room on one node."""

    node: str = Field(description="The name of the node.")
    pods: list[Int] = Field(description="The number of pods of each pod set.")


class ReservationStatus(Wire):
    """Room reserved for an AppWrapper before it is free; other AppWrappers cannot use it."""

    reason: str = Field(description="Starved, Planned, Preempting, Reclaiming or ScalingUp.")
    since: Time = Field(description="The time when the reservation was made.")
    until: Time | None = Field(default=None, description="The time when the reservation expires.")
    start: Time | None = Field(
        default=None,
        description="The latest time when all of the room is free, if no AppWrapper exceeds its "
        "declared run time.",
    )
    node_count: Int | None = Field(
        default=None, alias="nodeCount", description="The number of nodes with reserved room."
    )
    nodes: list[str] | None = Field(
        default=None, description="The first sixteen nodes with reserved room."
    )
    placement: list[ReservedPlace] | None = Field(
        default=None, description="The nodes of its pods; left out if there are too many nodes."
    )
    waits_for: list[str] | None = Field(
        default=None,
        alias="waitsFor",
        description="The first sixteen AppWrappers that still use the reserved room.",
    )


class EvictionStatus(Wire):
    """The last eviction of the AppWrapper."""

    count: Int = Field(description="The number of evictions so far.")
    reason: str = Field(description="Preempting or Reclaiming.")
    by: str | None = Field(
        default=None, description="The uid of the AppWrapper for which this one was evicted."
    )
    title: str | None = Field(default=None, description="The namespace/name of that AppWrapper.")
    at: Time | None = Field(default=None, description="The time of the eviction.")


class PrioritySourceStatus(Wire):
    """The class that gives an AppWrapper without spec.priority its priority, as it was at its
    submission."""

    kind: str = Field(description="PriorityClass or WorkloadPriorityClass.")
    name: str = Field(description="The name of the class.")
    value: Int = Field(description="The value of the class.")


class PodSetStatus(Wire):
    """A declared or inferred pod set."""

    path: str = Field(description="The path of the pod template, like template.spec.template.")
    replicas: Int | None = Field(default=None, description="The number of pods.")
    annotations: dict[str, str] | None = Field(
        default=None, description="The annotations of the declared pod set."
    )


class ComponentStatus(Wire):
    """One wrapped object."""

    name: str = Field(description="Its name.")
    kind: str = Field(description="Its kind.")
    api_version: str = Field(alias="apiVersion", description="Its API group and version.")
    pod_sets: list[PodSetStatus] | None = Field(
        default=None, alias="podSets", description="Its pod sets."
    )
    conditions: list[ConditionStatus] | None = Field(
        default=None, description="Whether the object exists, and whether it is finished."
    )


class PendingPod(Wire):
    """A pod for which kube-scheduler finds no node."""

    podname: str | None = Field(default=None, description="The name of the pod.")
    conditions: list[Free] | None = Field(
        default=None, description="The conditions of the pod's status."
    )


class AppWrapperStatus(Wire):
    """The status of the AppWrapper, with the field names of MCAD."""

    state: str | None = Field(
        default=None,
        description="Pending, Running, RunningHoldCompletion, Completed, Failed or Deleted.",
    )
    phase: str | None = Field(default=None, description="The state in the terms of v1beta2.")
    queuejobstate: str | None = Field(
        default=None, description="The type of the current condition."
    )
    canrun: bool | None = Field(default=None, description="Whether it may use capacity.")
    isdispatched: bool | None = Field(
        default=None, description="Whether its objects exist or are being created."
    )
    pending: Int | None = Field(default=None, description=IN_PHASE)
    running: Int | None = Field(default=None, description=IN_PHASE)
    succeeded: Int | None = Field(default=None, alias="Succeeded", description=IN_PHASE)
    failed: Int | None = Field(default=None, description=IN_PHASE)
    template: Int | None = Field(default=None, description=UNUSED)
    message: str | None = Field(default=None, description=UNUSED)
    systempriority: float | None = Field(
        default=None, description="The priority in the queue, which may grow while it waits."
    )
    priority_source: PrioritySourceStatus | None = Field(default=None, alias="prioritySource")
    controllerfirsttimestamp: Time | None = Field(
        default=None, description="The time when a dispatcher first saw the AppWrapper."
    )
    controllerfirstdispatchtimestamp: Time | None = Field(
        default=None, description="The time of the first dispatch."
    )
    filterignore: bool | None = Field(default=None, description=UNUSED)
    sender: str | None = Field(
        default=None, description="The function of MCAD that would have written this status."
    )
    local: bool | None = Field(default=None, description=UNUSED)
    conditions: list[ConditionStatus] | None = Field(
        default=None, description="The conditions of both dialects: the history and the present."
    )
    pendingpodconditions: list[PendingPod] | None = Field(
        default=None, description="The first ten pods without a node, with the reasons."
    )
    totalcpu: Long | None = Field(
        default=None, description="The milli-CPU of running and succeeded pods."
    )
    totalmemory: Long | None = Field(
        default=None, description="The bytes of memory of running and succeeded pods."
    )
    totalgpu: Long | None = Field(
        default=None, description="The nvidia.com/gpu of running and succeeded pods."
    )
    requeueing_time_in_seconds: Int | None = Field(
        default=None,
        alias="requeueingTimeInSeconds",
        description="The time to wait for the pods before the next requeuing.",
    )
    number_of_requeueings: Int | None = Field(
        default=None,
        alias="numberOfRequeueings",
        description="The number of requeuings because too few pods were running.",
    )
    observed_generation: Long | None = Field(
        default=None, alias="observedGeneration", description=OBSERVED_GENERATION
    )
    dispatch: DispatchStatus | None = None
    quota: list[QuotaPlace] | None = Field(
        default=None, description="The leaf of the AppWrapper in every quota tree in force."
    )
    reservation: ReservationStatus | None = None
    eviction: EvictionStatus | None = None
    resetting_count: Int | None = Field(
        default=None,
        alias="resettingCount",
        description="The number of times that its objects were deleted and created again after a "
        "failure.",
    )
    component_status: list[ComponentStatus] | None = Field(
        default=None,
        alias="componentStatus",
        description="The wrapped objects, in the v1beta2 dialect.",
    )
