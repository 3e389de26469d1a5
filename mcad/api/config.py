"""The configuration: one frozen record of all settings with their defaults and bounds.

Settings that MCAD had keep MCAD's names and units.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Self

from msgspec.structs import replace
from pydantic import Field, StrictInt, ValidationInfo, field_validator, model_validator

from mcad.api.additions import Additions, Injection
from mcad.api.autopilot import AutopilotSettings
from mcad.api.catalog import Resource, StaticCatalog
from mcad.api.evictions import EVERYWHERE
from mcad.api.identity import Impersonate, LeaderElection, is_name, is_namespace
from mcad.api.labels import key_fault
from mcad.api.quotas import LeafLabels
from mcad.api.scale_up.settings import ScaleUpSettings
from mcad.api.strict import MILLISECONDS, SECONDS, Strict
from mcad.api.tolerance import FaultToleranceSettings, Tolerances
from mcad.api.wrapped_kinds import DEFAULT_WRAPPED, WrappedGroup
from mcad.core.queue.priority_ceiling import OTHERS
from mcad.core.state.settings import Fairness, Fit, Policy, Settings
from mcad.core.state.units import SECOND

MILLISECOND = SECOND // 1000
SYSTEM_NAMESPACES = ("kube-node-lease", "kube-public", "kube-system")
"""Namespaces of Kubernetes itself: a right to create objects there is a right over the cluster."""

MAX_SECONDS = 7 * 24 * 3600


class Config(Strict):
    """Every setting, with its default."""

    backoff_time: Annotated[float, SECONDS] = Field(
        default=20,
        alias="backoffTime",
        ge=0,
        le=MAX_SECONDS,
        description=(
            "The longest time until an AppWrapper that does not fit is tested again. Room that "
            "becomes free is offered at once, without waiting for this time."
        ),
    )
    head_of_line_holding_time: Annotated[float, SECONDS] = Field(
        default=0,
        alias="headOfLineHoldingTime",
        ge=0,
        le=MAX_SECONDS,
        description=(
            "How long the head of the line, if it does not fit, holds back all AppWrappers behind "
            "it."
        ),
    )
    dispatch_resource_reservation_timeout: Annotated[float, MILLISECONDS] = Field(
        default=300_000,
        alias="dispatchResourceReservationTimeout",
        ge=0,
        le=MAX_SECONDS * 1000,
        description="How long room is kept for pods that are not created.",
    )
    ignore_resource_claims: bool = Field(
        default=False,
        alias="ignoreResourceClaims",
        description=(
            "If true, pods with resourceClaims (dynamic resource allocation) are dispatched "
            "whether their devices are free or not. If false, such AppWrappers are refused with "
            "UnsupportedDRA."
        ),
    )
    placement_timeout: Annotated[float, SECONDS] = Field(
        default=300,
        alias="placementTimeout",
        ge=0,
        le=MAX_SECONDS,
        description=(
            "How long pods of a v1beta1 AppWrapper may be without a node; v1beta2 has its warm-up "
            "grace period. After that the AppWrapper is taken back and queues again after a "
            "pause, which doubles each time. Use more where an autoscaler adds nodes; 0 is no "
            "limit."
        ),
    )
    quota_enabled: bool = Field(
        default=False,
        alias="quotaEnabled",
        description="QuotaSubtrees limit what may run. If false, quota trees have no effect.",
    )
    queue_name_tree: str = Field(
        default="",
        alias="queueNameTree",
        description=(
            "The quota tree in which the label kueue.x-k8s.io/queue-name names a leaf, for "
            "manifests written for Kueue."
        ),
    )
    quota_grace_period: Annotated[float, SECONDS] = Field(
        default=300,
        alias="quotaGracePeriod",
        ge=0,
        le=MAX_SECONDS,
        description=(
            "How long a deleted QuotaSubtree counts as before, because it may be created again. 0 "
            "is not at all."
        ),
    )
    preemption: bool = Field(
        default=False,
        description=(
            "AppWrappers of lower priority are evicted for one that would not fit otherwise."
        ),
    )
    reclaim: bool = Field(
        default=True,
        description=(
            "With quota: an AppWrapper that asks within its own share gets it back, and "
            "AppWrappers that borrow from it are evicted."
        ),
    )
    protect_after: Annotated[float, SECONDS] = Field(
        default=600,
        alias="protectAfter",
        ge=0,
        le=MAX_SECONDS,
        description=(
            "How long an AppWrapper may be first in line until room is reserved for it, so that "
            "AppWrappers behind it do not get that room. 0 is never."
        ),
    )
    min_run_time: Annotated[float, SECONDS] = Field(
        default=300,
        alias="minRunTime",
        ge=0,
        le=MAX_SECONDS,
        description="Minimum run time before an AppWrapper may be evicted.",
    )
    max_evictions_per_minute: int = Field(
        default=10,
        alias="maxEvictionsPerMinute",
        ge=0,
        le=60_000,
        description=(
            "How many AppWrappers of the whole cluster are evicted in a minute at most, after as "
            "many at once. 0 is no limit."
        ),
    )
    preemption_grace_period: Annotated[float, SECONDS] = Field(
        default=0,
        alias="preemptionGracePeriod",
        ge=0,
        le=MAX_SECONDS,
        description=(
            "How long before its eviction an AppWrapper has the condition PreemptCandidate."
        ),
    )
    never_preempt: tuple[str, ...] = Field(
        default=(),
        alias="neverPreempt",
        description=(
            "Namespaces in which the annotation workload.codeflare.dev/never-preempt keeps an "
            "AppWrapper from being evicted; * is all."
        ),
    )
    fit: Fit = Field(
        default=Fit.NODES,
        description=(
            "nodes: all pods of an AppWrapper must find places on nodes. aggregate: only the sum "
            "of free room counts, as in MCAD."
        ),
    )
    policy: Policy = Field(
        default=Policy.BEST_EFFORT_FIFO,
        description=(
            "BestEffortFIFO: an AppWrapper that does not fit is overtaken by any that does. "
            "StrictFIFO: not by one that competes with it. Backfill: only by one whose "
            "dispatchDuration.limit ends before it can start."
        ),
    )
    fairness: Fairness = Field(
        default=Fairness.NONE,
        description=(
            "Order among equal priorities. none: first come, first served. namespace or leaf: the "
            "namespace, or the leaf of a quota tree, with the smaller dominant share in use goes "
            "first."
        ),
    )
    wrapped_resources: tuple[WrappedGroup, ...] = Field(
        default=DEFAULT_WRAPPED,
        alias="wrappedResources",
        description=(
            "The kinds that may be wrapped, by API group and plural name; mcad rbac prints them."
        ),
    )
    watch_namespaces: tuple[str, ...] = Field(
        default=(),
        alias="watchNamespaces",
        description="The namespaces whose AppWrappers are served; [] is all.",
    )
    excluded_namespaces: tuple[str, ...] = Field(
        default=SYSTEM_NAMESPACES,
        alias="excludedNamespaces",
        description="Namespaces in which nothing is wrapped; the chart adds its own.",
    )
    autopilot: AutopilotSettings = Field(
        default=AutopilotSettings(),
        description=(
            "Labels of Autopilot on nodes, which are read as taints for pods that request a "
            "resource."
        ),
    )
    inject: Injection = Field(
        default=Injection(),
        description=(
            "Added to every pod template of every AppWrapper. A template with another value is "
            "refused, never overwritten."
        ),
    )
    scheduler_name: str = Field(
        default="",
        alias="schedulerName",
        description="The scheduler of pod templates that name none.",
    )
    fault_tolerance: FaultToleranceSettings = Field(
        default=FaultToleranceSettings(),
        alias="faultTolerance",
        description=(
            "How failures are handled. Annotations of an AppWrapper override it up to the ceilings."
        ),
    )
    topology_levels: tuple[str, ...] = Field(
        default=(),
        alias="topologyLevels",
        description=(
            "Labels of nodes that name their topology domains, the widest first: block, rack, "
            "kubernetes.io/hostname. A preferred topology without room at its level is tried at "
            "the next wider one, and AppWrappers without topology prefer the domain with the least "
            "room that fits. []: none."
        ),
    )
    max_priority: dict[str, StrictInt] = Field(
        default_factory=dict,
        alias="maxPriority",
        description=(
            "By namespace, the highest priority that counts; * is all others. A higher priority "
            "is cut to it, with a warning, and priorityslope adds no more."
        ),
    )
    scale_up: ScaleUpSettings = Field(
        default=ScaleUpSettings(),
        alias="scaleUp",
        description="Requests for nodes, in clusters that an autoscaler grows.",
    )
    impersonate: Impersonate | None = Field(
        default=None,
        description=(
            "Create items as the service account serviceAccount in the namespace of the "
            "AppWrapper; needs watchNamespaces."
        ),
    )
    leader_election: LeaderElection = Field(
        default=LeaderElection(),
        alias="leaderElection",
        description=(
            "The Lease that the leading dispatcher holds. Dispatchers with different Leases do "
            "not know of each other."
        ),
    )

    @field_validator("queue_name_tree")
    @classmethod
    def _tree(cls, value: str) -> str:
        if value and (message := key_fault(value)):
            raise ValueError(f'{message}; "" names no tree')
        return value

    @field_validator("scheduler_name")
    @classmethod
    def _scheduler(cls, value: str) -> str:
        if value and not is_name(value):
            raise ValueError(f'{value!r} is not the name of a scheduler; "" names none')
        return value

    @field_validator("watch_namespaces", "excluded_namespaces")
    @classmethod
    def _namespaces(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        for name in value:
            if not is_namespace(name):
                meaning = "all" if info.field_name == "watch_namespaces" else "none"
                raise ValueError(f"{name!r} is not the name of a namespace; [] means {meaning}")
        return tuple(sorted(set(value)))

    @field_validator("never_preempt")
    @classmethod
    def _permitted(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name != EVERYWHERE and not is_namespace(name):
                raise ValueError(
                    f"{name!r} is not the name of a namespace; {EVERYWHERE!r} means all, [] none"
                )
        return tuple(sorted(set(value)))

    @field_validator("topology_levels")
    @classmethod
    def _levels(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for label in value:
            if message := key_fault(label):
                raise ValueError(f"{label!r} is not a label of nodes: {message}")
        if len({*value}) < len(value):
            raise ValueError("names a label twice; remove one")
        return value

    @field_validator("max_priority")
    @classmethod
    def _ceilings(cls, value: dict[str, int]) -> dict[str, int]:
        for name in value:
            if name != OTHERS and not is_namespace(name):
                raise ValueError(
                    f"{name!r} is not the name of a namespace; {OTHERS!r} means all others"
                )
        return value

    @model_validator(mode="after")
    def _impersonates_only_where_it_watches(self) -> Self:
        """Impersonation needs ``watchNamespaces``: the right is granted per namespace, never for
        the cluster. That would include any account of this name, in kube-system for example."""
        if self.impersonate is not None and not self.watch_namespaces:
            raise ValueError(
                "impersonate needs watchNamespaces: the right to impersonate is granted in each "
                "of them, never cluster-wide; list the namespaces, or remove impersonate"
            )
        return self

    @model_validator(mode="after")
    def _watches_only_what_it_serves(self) -> Self:
        both = sorted({*self.watch_namespaces} & {*self.excluded_namespaces})
        if both:
            raise ValueError(
                f"{', '.join(both)} is in both watchNamespaces and excludedNamespaces; remove it "
                "from one of them"
            )
        return self

    @model_validator(mode="after")
    def _asks_for_nodes_only_where_they_count(self) -> Self:
        if self.scale_up.is_on and self.fit is not Fit.NODES:
            raise ValueError(
                "scaleUp needs fit: nodes, because with aggregate no pod lacks a node; set "
                "scaleUp.via to off, or fit to nodes"
            )
        return self

    @property
    def allowed(self) -> frozenset[tuple[str, str]]:
        """(group, plural) of everything that may be wrapped."""
        groups = self.wrapped_resources
        return frozenset((group.api_group, name) for group in groups for name in group.resources)


def catalog_of(config: Config, served: Iterable[Resource]) -> StaticCatalog:
    """The catalog of these kinds under this configuration."""
    found = StaticCatalog.of(served, config.allowed, config.excluded_namespaces)
    return replace(
        found,
        ignores_claims=config.ignore_resource_claims,
        tolerances=Tolerances.of(config.fault_tolerance),
        additions=Additions.of(config.inject, config.scheduler_name, config.autopilot),
        leaves=LeafLabels(config.quota_enabled, config.queue_name_tree),
        never_preempt=frozenset(config.never_preempt),
    )


def to_settings(config: Config) -> Settings:
    """The settings that decisions depend on, in the core's units."""
    return Settings(
        fit=config.fit,
        policy=config.policy,
        fairness=config.fairness,
        backoff=round(config.backoff_time * SECOND),
        head_of_line_holding=round(config.head_of_line_holding_time * SECOND),
        reservation_timeout=round(config.dispatch_resource_reservation_timeout * MILLISECOND),
        placement_timeout=round(config.placement_timeout * SECOND),
        protect_after=round(config.protect_after * SECOND),
        preemption=config.preemption,
        reclaim=config.reclaim,
        min_run_time=round(config.min_run_time * SECOND),
        preemption_grace=round(config.preemption_grace_period * SECOND),
        max_evictions_per_minute=config.max_evictions_per_minute,
        quota_grace=round(config.quota_grace_period * SECOND) if config.quota_enabled else 0,
        topology_levels=config.topology_levels,
        max_priority=tuple(sorted(config.max_priority.items())),
        scale_up=config.scale_up.is_on,
        scale_up_concurrent=config.scale_up.concurrent,
        scale_up_timeout=round(config.scale_up.timeout * SECOND),
        startup_taints=config.scale_up.startup_taints,
    )


_NAMED_OTHERWISE = {
    "backoff_time": ("backoff",),
    "head_of_line_holding_time": ("head_of_line_holding",),
    "dispatch_resource_reservation_timeout": ("reservation_timeout",),
    "preemption_grace_period": ("preemption_grace",),
    "scale_up": ("scale_up", "scale_up_concurrent", "scale_up_timeout", "startup_taints"),
}
"""Fields of ``Config`` that have another name, or several fields, in ``Settings``."""

DECISIVE: Mapping[str, tuple[str, ...]] = {
    field.alias or name: _NAMED_OTHERWISE.get(name, (name,))
    for name, field in Config.model_fields.items()
    if _NAMED_OTHERWISE.get(name, (name,))[0] in Settings.__struct_fields__
}
"""The settings that decisions depend on, by the name that users know, and their ``Settings``
fields. ``quotaEnabled`` is not one of them: labels that name leaves are read before."""


def overridden(settings: Settings, config: Config) -> Settings:
    """The settings with those of the configuration that are given; ``ValueError`` for one that no
    decision depends on."""
    names = {name: field.alias or name for name, field in Config.model_fields.items()}
    given = [names[name] for name in config.model_fields_set]
    for name in given:
        if name not in DECISIVE:
            raise ValueError(
                f"{name}: no decision depends on it; these can be set: {', '.join(DECISIVE)}"
            )
    new = to_settings(config)
    fields = [field for name in given for field in DECISIVE[name]]
    return replace(settings, **{field: getattr(new, field) for field in fields})
