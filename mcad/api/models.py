"""The AppWrapper on the wire, both dialects in one: what users may write and what we answer.

These models validate a spec and are the source of the CRD's schema (crd.py), so a field exists in
one place only. Types are strict: the API server would refuse ``replicas: "2"`` as well.
"""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from mcad.api.wire import Json

MAX_ITEMS = 256
"""Items of one AppWrapper. The inventory of all of them has to fit into status, and schedulers that
wrap every replica of a job as a pod of its own (torchx) come with a hundred."""

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
"""An object that nobody here looks into."""

Template = Annotated[Any, WithJsonSchema(EMBEDDED)]
"""A whole Kubernetes object. The API server insists on its apiVersion and kind; what else has to be
there is checked when it is read, with a better message."""

Quantities = dict[str, Annotated[Any, WithJsonSchema(QUANTITY)]]
"""Quantities are checked when they are read, against the grammar rather than a pattern."""

Time = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
Long = Annotated[int, WithJsonSchema({"type": "integer", "format": "int64"})]


CONDITION_TYPE = "What it is about."
CONDITION_STATUS = "True, False or Unknown."
CONDITION_REASON = "Why, in one word."
CONDITION_MESSAGE = "Why, in a sentence."
CONDITION_TIME = "When status last changed."
OBSERVED_GENERATION = "The metadata.generation that this answers."
UNUSED = "A field of MCAD's that keeps its place; nothing depends on it."


def _whole(value: Json) -> Json:
    """Manifests of MCAD's first generation wrote priorities as 5.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Int = Annotated[
    int, BeforeValidator(_whole), WithJsonSchema({"type": "integer", "format": "int32"})
]


class Wire(BaseModel):
    """What all parts have in common. Unknown fields are kept, to be answered with a warning."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow")


class CustomPodResource(Wire):
    """Pods of one size that the item will have."""

    replicas: Int = Field(description="How many pods of this size.")
    requests: Quantities = Field(description="What each of them requests.")
    limits: Quantities | None = Field(
        default=None, description="Stands in for a request that is absent or 0."
    )


class GenericItem(Wire):
    """One wrapped object in the v1beta1 dialect."""

    generictemplate: Template = Field(default=None, description="The object to create.")
    custompodresources: list[CustomPodResource] | None = Field(
        default=None,
        max_length=MAX_POD_SETS,
        description="The pods that come of the object. Wins over what its template shows.",
    )
    completionstatus: str | None = Field(
        default=None,
        description="Condition types, separated by commas; the item is finished once it has one.",
    )
    replicas: Int | None = Field(default=None, description="Accepted and ignored, as MCAD did.")
    minavailable: Int | None = Field(default=None, description="Accepted and ignored, as MCAD did.")
    allocated: Int | None = Field(default=None, description="Accepted and ignored, as MCAD did.")
    priority: float | None = Field(default=None, description="Accepted and ignored, as MCAD did.")
    priorityslope: float | None = Field(
        default=None, description="Accepted and ignored, as MCAD did."
    )
    metadata: Free = Field(default=None, description="Left over from old manifests; ignored.")


class WrappedResources(Wire):
    """The wrapped objects in the v1beta1 dialect."""

    generic_items: list[GenericItem] | None = Field(
        default=None,
        alias="GenericItems",
        max_length=MAX_ITEMS,
        description="The objects, in order.",
    )
    items: list[Free] | None = Field(
        default=None,
        alias="Items",
        max_length=MAX_ITEMS,
        description="Typed items of MCAD before v1.33; ignored.",
    )


class Requeuing(Wire):
    """What happens to an AppWrapper with fewer than minAvailable pods."""

    time_in_seconds: Int | None = Field(
        default=300, alias="timeInSeconds", description="The wait before it is taken back."
    )
    initial_time_in_seconds: Int | None = Field(
        default=None,
        alias="initialTimeInSeconds",
        description="The first wait, instead of timeInSeconds, if it is more than 0.",
    )
    max_time_in_seconds: Int | None = Field(
        default=0, alias="maxTimeInSeconds", description="Bound of the growing wait; 0 is none."
    )
    growth_type: str | None = Field(
        default="exponential", alias="growthType", description="exponential, linear or none."
    )
    num_requeuings: Int | None = Field(
        default=0, alias="numRequeuings", description="Not for users."
    )
    max_num_requeuings: Int | None = Field(
        default=0, alias="maxNumRequeuings", description="Give up after so many; 0 is never."
    )


class DispatchDuration(Wire):
    """How long it may run."""

    limit: Int | None = Field(
        default=None, description="Seconds from its first dispatch; then it fails."
    )
    expected: Int | None = Field(
        default=None,
        description="Seconds that it is expected to run, used for start time estimates only.",
    )
    overrun: bool | None = Field(default=None, description="Accepted and ignored.")


class SchedulingSpec(Wire):
    """Rules for the AppWrapper as a whole."""

    min_available: Int | None = Field(
        default=None,
        alias="minAvailable",
        description="Pods that must run or have succeeded; 0 is none.",
    )
    requeuing: Requeuing | None = None
    dispatch_duration: DispatchDuration | None = Field(default=None, alias="dispatchDuration")
    node_selector: dict[str, str] | None = Field(
        default=None, alias="nodeSelector", description="Accepted and ignored, as MCAD did."
    )
    cluster_scheduling: Free = Field(
        default=None, alias="clusterScheduling", description="Accepted and ignored, as MCAD did."
    )
    dispatching_window: Free = Field(
        default=None, alias="dispatchingWindow", description="Accepted and ignored, as MCAD did."
    )


class SchedulingGate(Wire):
    """A gate that holds a pod back from scheduling."""

    name: str = Field(description="The gate's name.")


class PodSetInfo(Wire):
    """What a quota system adds to the pods of one pod set."""

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
        description="Where the pod template is, like template.spec.template or template.",
    )
    replicas: Int | None = Field(default=None, description="How many pods; 1 if not given.")
    annotations: dict[str, str] | None = Field(default=None, description="Not read here.")


class Component(Wire):
    """One wrapped object in the v1beta2 dialect."""

    template: Template = Field(description="The object to create.")
    pod_sets: list[PodSetSpec] | None = Field(
        default=None,
        alias="podSets",
        max_length=MAX_POD_SETS,
        description="The pods that come of it; inferred from its kind if not given.",
    )
    pod_set_infos: list[PodSetInfo] | None = Field(
        default=None,
        alias="podSetInfos",
        max_length=MAX_POD_SETS,
        description="Written by a quota system, merged into the pod templates.",
    )
    annotations: dict[str, str] | None = Field(default=None, description="Not read here.")


class AppWrapperSpec(Wire):
    """What the user asks for: either ``resources`` (v1beta1) or ``components`` (v1beta2)."""

    resources: WrappedResources | None = Field(
        default=None, description="The wrapped objects, v1beta1 dialect."
    )
    components: list[Component] | None = Field(
        default=None, max_length=MAX_ITEMS, description="The wrapped objects, v1beta2 dialect."
    )
    priority: Int | None = Field(default=None, description="Higher goes first.")
    priorityslope: float | None = Field(
        default=None, description="How much the priority grows per second of waiting."
    )
    scheduling_spec: SchedulingSpec | None = Field(default=None, alias="schedulingSpec")
    sched_spec: Free = Field(
        default=None,
        alias="schedSpec",
        description="What schedulingSpec was called once; ignored, as MCAD did.",
    )
    suspend: bool | None = Field(
        default=None, description="True holds it in the queue, and takes it back if it runs."
    )
    managed_by: str | None = Field(
        default=None, alias="managedBy", description="Another controller's name makes us ignore it."
    )
    service: Free = Field(default=None, description="Accepted and ignored, as MCAD did.")
    selector: Free = Field(default=None, description="Accepted and ignored, as MCAD did.")


class ConditionStatus(Wire):
    """One condition; v1beta1 times have microseconds, v1beta2 adds lastTransitionTime."""

    type: str = Field(description=CONDITION_TYPE)
    status: str = Field(description=CONDITION_STATUS)
    reason: str | None = Field(default=None, description=CONDITION_REASON)
    message: str | None = Field(default=None, description=CONDITION_MESSAGE)
    last_update_micro_time: Time | None = Field(
        default=None, alias="lastUpdateMicroTime", description="When any of it last changed."
    )
    last_transition_micro_time: Time | None = Field(
        default=None, alias="lastTransitionMicroTime", description=CONDITION_TIME
    )
    last_transition_time: Time | None = Field(
        default=None, alias="lastTransitionTime", description=CONDITION_TIME
    )
    observed_generation: Long | None = Field(
        default=None, alias="observedGeneration", description=OBSERVED_GENERATION
    )


class InventoryLine(Wire):
    """One object of an attempt."""

    group: str | None = Field(default=None, description="Its API group; absent for core kinds.")
    version: str = Field(description="Its API version, without the group.")
    resource: str = Field(description="The plural of its kind, as in the API's paths.")
    kind: str = Field(description="Its kind.")
    namespace: str | None = Field(default=None, description="Its namespace.")
    name: str = Field(description="Its name.")


class QuotaLine(Wire):
    """A leaf of a quota tree that an AppWrapper, or an attempt of it, is charged to."""

    tree: str = Field(description="The quota tree.")
    leaf: str = Field(description="The leaf of it.")


class DispatchStatus(Wire):
    """The present attempt: what is being created, runs, or is taken back."""

    format: Int | None = Field(
        default=None,
        description="The format of this record; a version that does not know it leaves it alone.",
    )
    attempt: Long = Field(description="The number of the attempt; it only rises.")
    epoch: Long = Field(description="The leadership under which it began; it only rises.")
    phase: str = Field(description="Where the attempt is; absent status.dispatch means none.")
    payload_sha256: str | None = Field(
        default=None, alias="payloadSHA256", description="The hash of the spec that it is made of."
    )
    inventory: list[InventoryLine] | None = Field(
        default=None, description="The objects that it creates, in order; written before they are."
    )
    reason: str | None = Field(default=None, description="Why it is taken back.")
    message: str | None = Field(default=None, description="The same in a sentence.")
    next: str | None = Field(default=None, description="What follows once it is taken back.")
    intent_time: Time | None = Field(
        default=None, alias="intentTime", description="When the attempt began."
    )
    confirm_time: Time | None = Field(
        default=None, alias="confirmTime", description="When all of its objects existed."
    )
    phase_time: Time | None = Field(
        default=None, alias="phaseTime", description="When it entered the phase."
    )
    finished: list[Int] | None = Field(default=None, description="Numbers of finished items.")
    quota: list[QuotaLine] | None = Field(
        default=None, description="The leaves that the attempt is charged to."
    )
    preemptor: str | None = Field(
        default=None, description="The uid of the AppWrapper for which it is evicted."
    )
    limit_since: Time | None = Field(
        default=None,
        alias="limitSince",
        description="Since when dispatchDuration.limit counts, if earlier attempts count too.",
    )


class ReservedPlace(Wire):
    """One node on which room is kept."""

    node: str = Field(description="Its name.")
    pods: list[Int] = Field(description="How many pods of each pod set.")


class ReservationStatus(Wire):
    """Room that is promised to an AppWrapper before it is free; everybody else keeps off it."""

    reason: str = Field(description="Starved, Planned, Preempting or Reclaiming.")
    since: Time = Field(description="When it was made.")
    until: Time | None = Field(default=None, description="When it is given up.")
    start: Time | None = Field(
        default=None, description="When all of it is free at the latest, if declared limits hold."
    )
    node_count: Int | None = Field(
        default=None, alias="nodeCount", description="On how many nodes the room is."
    )
    nodes: list[str] | None = Field(default=None, description="The first sixteen of them.")
    placement: list[ReservedPlace] | None = Field(
        default=None, description="Where its pods go; left out if that is too many nodes."
    )
    waits_for: list[str] | None = Field(
        default=None,
        alias="waitsFor",
        description="The first sixteen AppWrappers that still have to leave.",
    )


class EvictionStatus(Wire):
    """The last time that an AppWrapper was taken back for another one."""

    count: Int = Field(description="How often this has happened.")
    reason: str = Field(description="Preempting or Reclaiming: why the other one got the room.")
    by: str | None = Field(default=None, description="The uid of the other AppWrapper.")
    title: str | None = Field(default=None, description="Its namespace/name.")
    at: Time | None = Field(default=None, description="When.")


class PodSetStatus(Wire):
    """A pod set as it was declared or inferred."""

    path: str = Field(description="Where the pod template is, like template.spec.template.")
    replicas: Int | None = Field(default=None, description="How many pods.")
    annotations: dict[str, str] | None = Field(default=None, description="As they were declared.")


class ComponentStatus(Wire):
    """One wrapped object."""

    name: str = Field(description="Its name.")
    kind: str = Field(description="Its kind.")
    api_version: str = Field(alias="apiVersion", description="Its group and version.")
    pod_sets: list[PodSetStatus] | None = Field(
        default=None, alias="podSets", description="The pods that come of it."
    )
    conditions: list[ConditionStatus] | None = Field(
        default=None, description="Whether it exists, and whether it is finished."
    )


class PendingPod(Wire):
    """A pod that kube-scheduler finds no node for."""

    podname: str | None = Field(default=None, description="Its name.")
    conditions: list[Free] | None = Field(default=None, description="Those of the pod's status.")


class AppWrapperStatus(Wire):
    """What the dispatcher answers, in MCAD's words."""

    state: str | None = Field(
        default=None,
        description="Pending, Running, RunningHoldCompletion, Completed, Failed or Deleted.",
    )
    phase: str | None = Field(default=None, description="The state in v1beta2's words.")
    queuejobstate: str | None = Field(default=None, description="The condition of the present.")
    canrun: bool | None = Field(default=None, description="It may hold capacity.")
    isdispatched: bool | None = Field(
        default=None, description="Whether its objects are created or being created."
    )
    pending: Int | None = Field(default=None, description="Pods in this phase.")
    running: Int | None = Field(default=None, description="Pods in this phase.")
    succeeded: Int | None = Field(
        default=None, alias="Succeeded", description="Pods in this phase."
    )
    failed: Int | None = Field(default=None, description="Pods in this phase.")
    template: Int | None = Field(default=None, description=UNUSED)
    message: str | None = Field(default=None, description=UNUSED)
    systempriority: float | None = Field(default=None, description="The priority it queues with.")
    controllerfirsttimestamp: Time | None = Field(default=None, description="First seen.")
    controllerfirstdispatchtimestamp: Time | None = Field(
        default=None, description="First dispatched."
    )
    filterignore: bool | None = Field(default=None, description=UNUSED)
    sender: str | None = Field(
        default=None, description="The step of MCAD that would have written this status."
    )
    local: bool | None = Field(default=None, description=UNUSED)
    conditions: list[ConditionStatus] | None = Field(
        default=None, description="What has happened, and what holds now, in both dialects."
    )
    pendingpodconditions: list[PendingPod] | None = Field(
        default=None, description="The first ten pods without a node, and why."
    )
    totalcpu: Long | None = Field(
        default=None, description="Milli-CPU of pods that run or succeeded."
    )
    totalmemory: Long | None = Field(
        default=None, description="Bytes of pods that run or succeeded."
    )
    totalgpu: Long | None = Field(
        default=None, description="nvidia.com/gpu of pods that run or succeeded."
    )
    requeueing_time_in_seconds: Int | None = Field(
        default=None,
        alias="requeueingTimeInSeconds",
        description="How long it may run with too few pods before it is taken back the next time.",
    )
    number_of_requeueings: Int | None = Field(
        default=None,
        alias="numberOfRequeueings",
        description="How often it was taken back because too few of its pods ran.",
    )
    observed_generation: Long | None = Field(
        default=None, alias="observedGeneration", description=OBSERVED_GENERATION
    )
    dispatch: DispatchStatus | None = None
    quota: list[QuotaLine] | None = Field(
        default=None, description="Where it counts: its leaf in every quota tree in force."
    )
    reservation: ReservationStatus | None = None
    eviction: EvictionStatus | None = None
    resetting_count: Int | None = Field(
        default=None,
        alias="resettingCount",
        description="How often its objects were deleted and created anew after a failure.",
    )
    component_status: list[ComponentStatus] | None = Field(
        default=None, alias="componentStatus", description="The wrapped objects, v1beta2 dialect."
    )
