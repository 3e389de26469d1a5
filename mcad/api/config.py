"""The configuration: one frozen record of all settings with their defaults and bounds.

Settings that MCAD had keep MCAD's names and units.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Self

from msgspec.structs import replace
from pydantic import Field, StrictInt, ValidationInfo, field_validator, model_validator

from mcad.api.additions import Additions, Injection
from mcad.api.autopilot import AutopilotSettings
from mcad.api.catalog import Resource, StaticCatalog
from mcad.api.evictions import EVERYWHERE
from mcad.api.labels import LEASE_NAME, LEASE_NAMESPACE, key_fault
from mcad.api.podspec import quantity, quantity_fault
from mcad.api.quotas import LeafLabels
from mcad.api.strict import Strict
from mcad.api.tolerance import FaultToleranceSettings, Tolerances
from mcad.core.queue.priority_ceiling import OTHERS
from mcad.core.state.settings import Fairness, Fit, Policy, Settings
from mcad.core.state.units import SECOND

MILLISECOND = SECOND // 1000
MAX_SECONDS = 7 * 24 * 3600
LEASE_SECONDS_MAX = 3600

_PLURAL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_ACCOUNT = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_ACCOUNT_MAX = 253
_NAMESPACE_MAX = 63
_GROUP = re.compile(r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?")


SYSTEM_NAMESPACES = ("kube-node-lease", "kube-public", "kube-system")
"""Namespaces of Kubernetes itself: a right to create objects there is a right over the cluster."""

DANGEROUS: Mapping[str, frozenset[str]] = {
    "": frozenset({"namespaces", "nodes", "persistentvolumes", "serviceaccounts"}),
    "admissionregistration.k8s.io": frozenset(),
    "apiextensions.k8s.io": frozenset(),
    "apiregistration.k8s.io": frozenset(),
    "authentication.k8s.io": frozenset(),
    "certificates.k8s.io": frozenset(),
    "rbac.authorization.k8s.io": frozenset(),
}
"""Kinds that carry rights or change what the API server does, by API group; no names mean all."""


def is_dangerous(group: str, plural: str) -> bool:
    """Whether the right to wrap this kind gives further rights."""
    kinds = DANGEROUS.get(group)
    return kinds is not None and (not kinds or plural in kinds)


class KindGroup(Strict):
    """Kinds of one API group, by plural name."""

    api_group: str = Field(alias="apiGroup")
    resources: tuple[str, ...]

    @field_validator("api_group")
    @classmethod
    def _group(cls, value: str) -> str:
        if not _GROUP.fullmatch(value):
            raise ValueError(f'{value!r} is not an API group; the core group is "", never "*"')
        return value

    @field_validator("resources")
    @classmethod
    def _plurals(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not _PLURAL.fullmatch(name):
                raise ValueError(f"{name!r} is not a plural name; list each kind, never a pattern")
        return value


class WrappedGroup(KindGroup):
    """Kinds that may be wrapped; ``dangerous`` confirms that some of them carry rights."""

    dangerous: bool = False

    @field_validator("resources")
    @classmethod
    def _not_itself(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if "appwrappers" in value:
            raise ValueError("an AppWrapper cannot wrap another one; remove appwrappers")
        return value

    @model_validator(mode="after")
    def _no_rights_by_accident(self) -> Self:
        found = [name for name in self.resources if is_dangerous(self.api_group, name)]
        if found and not self.dangerous:
            group = f" of {self.api_group}" if self.api_group else ""
            raise ValueError(
                f"{', '.join(found)}{group}: users can gain rights by wrapping these; remove them, "
                "or set dangerous: true beside them"
            )
        return self


class Impersonate(Strict):
    """The service account, in the namespace of each AppWrapper, that creates its items."""

    service_account: str = Field(alias="serviceAccount")

    @field_validator("service_account")
    @classmethod
    def _account(cls, value: str) -> str:
        if not _ACCOUNT.fullmatch(value) or len(value) > _ACCOUNT_MAX:
            raise ValueError(
                f"{value!r} is not the name of a service account; write it without a namespace"
            )
        return value

    def user(self, namespace: str) -> str:
        """The user name of the account (Kubernetes docs, Authenticating)."""
        return f"system:serviceaccount:{namespace}:{self.service_account}"


class LeaderElection(Strict):
    """The Lease that the leading dispatcher of a cluster holds, and its times in seconds.

    The duration is a whole number because it is one in the Lease.
    """

    namespace: str = LEASE_NAMESPACE
    name: str = LEASE_NAME
    lease_duration: int = Field(default=15, alias="leaseDuration", ge=1, le=LEASE_SECONDS_MAX)
    renew_deadline: float = Field(default=10, alias="renewDeadline", gt=0, le=LEASE_SECONDS_MAX)
    retry_period: float = Field(default=2, alias="retryPeriod", gt=0, le=LEASE_SECONDS_MAX)

    @field_validator("namespace")
    @classmethod
    def _namespace(cls, value: str) -> str:
        if not _is_namespace(value):
            raise ValueError(f"{value!r} is not the name of a namespace")
        return value

    @field_validator("name")
    @classmethod
    def _name(cls, value: str) -> str:
        if not _ACCOUNT.fullmatch(value) or len(value) > _ACCOUNT_MAX:
            raise ValueError(f"{value!r} is not the name of a Lease")
        return value

    @model_validator(mode="after")
    def _in_time(self) -> Self:
        """A holder stops before another one can begin; a renewal that fails can be retried."""
        if self.renew_deadline >= self.lease_duration:
            raise ValueError(
                f"renewDeadline ({self.renew_deadline:g}) must be less than leaseDuration "
                f"({self.lease_duration}): a holder must stop before another one begins"
            )
        if 2 * self.retry_period > self.renew_deadline:
            raise ValueError(
                f"retryPeriod ({self.retry_period:g}) must be at most half of renewDeadline "
                f"({self.renew_deadline:g}): there must be time to retry a failed renewal"
            )
        return self


def _group(api_group: str, *resources: str) -> WrappedGroup:
    return WrappedGroup(apiGroup=api_group, resources=resources)


# ServiceAccounts, Roles and RoleBindings are left out on purpose: the right to create AppWrappers
# must not give further rights.
DEFAULT_WRAPPED = (
    _group("", "pods", "services", "configmaps", "secrets", "persistentvolumeclaims"),
    _group("apps", "deployments", "replicasets", "statefulsets", "daemonsets"),
    _group("batch", "jobs", "cronjobs"),
    _group("ray.io", "rayclusters", "rayjobs", "rayservices"),
    _group(
        "kubeflow.org", "pytorchjobs", "tfjobs", "mpijobs", "xgboostjobs", "paddlejobs", "jaxjobs"
    ),
    _group("jobset.x-k8s.io", "jobsets"),
    _group("leaderworkerset.x-k8s.io", "leaderworkersets"),
    _group("scheduling.x-k8s.io", "podgroups"),
    _group("scheduling.sigs.k8s.io", "podgroups"),
)


DEFAULT_WITHOUT_PODS = tuple(
    KindGroup(apiGroup=group, resources=tuple(names.split()))
    for group, names in {
        "": "configmaps endpoints limitranges persistentvolumeclaims podtemplates resourcequotas "
        "secrets serviceaccounts services",
        "autoscaling": "horizontalpodautoscalers",
        "discovery.k8s.io": "endpointslices",
        "networking.k8s.io": "ingresses networkpolicies",
        "policy": "poddisruptionbudgets",
        "rbac.authorization.k8s.io": "rolebindings roles",
        "scheduling.sigs.k8s.io": "podgroups",
        "scheduling.x-k8s.io": "podgroups",
    }.items()
)


class Config(Strict):
    """Every setting, with its default."""

    backoff_time: float = Field(default=20, alias="backoffTime", ge=0, le=MAX_SECONDS)
    head_of_line_holding_time: float = Field(
        default=0, alias="headOfLineHoldingTime", ge=0, le=MAX_SECONDS
    )
    dispatch_resource_reservation_timeout: float = Field(
        default=300_000, alias="dispatchResourceReservationTimeout", ge=0, le=MAX_SECONDS * 1000
    )
    ignore_resource_claims: bool = Field(default=False, alias="ignoreResourceClaims")
    placement_timeout: float = Field(default=300, alias="placementTimeout", ge=0, le=MAX_SECONDS)
    pod_counts_interval: float = Field(default=30, alias="podCountsInterval", ge=0, le=MAX_SECONDS)
    quota_enabled: bool = Field(default=False, alias="quotaEnabled")
    queue_name_tree: str = Field(default="", alias="queueNameTree")
    quota_grace_period: float = Field(default=300, alias="quotaGracePeriod", ge=0, le=MAX_SECONDS)
    preemption: bool = False
    reclaim: bool = True
    protect_after: float = Field(default=600, alias="protectAfter", ge=0, le=MAX_SECONDS)
    min_run_time: float = Field(default=300, alias="minRunTime", ge=0, le=MAX_SECONDS)
    max_evictions_per_minute: int = Field(
        default=10, alias="maxEvictionsPerMinute", ge=0, le=60_000
    )
    preemption_grace_period: float = Field(
        default=0, alias="preemptionGracePeriod", ge=0, le=MAX_SECONDS
    )
    never_preempt: tuple[str, ...] = Field(default=(), alias="neverPreempt")
    fit: Fit = Fit.NODES
    policy: Policy = Policy.BEST_EFFORT_FIFO
    fairness: Fairness = Fairness.NONE
    potential_capacity: dict[str, Any] = Field(default_factory=dict, alias="potentialCapacity")
    wrapped_resources: tuple[WrappedGroup, ...] = Field(
        default=DEFAULT_WRAPPED, alias="wrappedResources"
    )
    resources_without_pods: tuple[KindGroup, ...] = Field(
        default=DEFAULT_WITHOUT_PODS, alias="resourcesWithoutPods"
    )
    watch_namespaces: tuple[str, ...] = Field(default=(), alias="watchNamespaces")
    excluded_namespaces: tuple[str, ...] = Field(
        default=SYSTEM_NAMESPACES, alias="excludedNamespaces"
    )
    autopilot: AutopilotSettings = AutopilotSettings()
    inject: Injection = Injection()
    scheduler_name: str = Field(default="", alias="schedulerName")
    fault_tolerance: FaultToleranceSettings = Field(
        default=FaultToleranceSettings(), alias="faultTolerance"
    )
    max_priority: dict[str, StrictInt] = Field(default_factory=dict, alias="maxPriority")
    impersonate: Impersonate | None = None
    leader_election: LeaderElection = Field(default=LeaderElection(), alias="leaderElection")

    @field_validator("queue_name_tree")
    @classmethod
    def _tree(cls, value: str) -> str:
        if value and (message := key_fault(value)):
            raise ValueError(f'{message}; "" names no tree')
        return value

    @field_validator("scheduler_name")
    @classmethod
    def _scheduler(cls, value: str) -> str:
        if value and (not _ACCOUNT.fullmatch(value) or len(value) > _ACCOUNT_MAX):
            raise ValueError(f'{value!r} is not the name of a scheduler; "" names none')
        return value

    @field_validator("potential_capacity")
    @classmethod
    def _quantities(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name, one in value.items():
            if message := quantity_fault(name, one):
                raise ValueError(f"{name}: {message}")
        return value

    @field_validator("watch_namespaces", "excluded_namespaces")
    @classmethod
    def _namespaces(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        for name in value:
            if not _is_namespace(name):
                meaning = "all" if info.field_name == "watch_namespaces" else "none"
                raise ValueError(f"{name!r} is not the name of a namespace; [] means {meaning}")
        return tuple(sorted(set(value)))

    @field_validator("never_preempt")
    @classmethod
    def _permitted(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name != EVERYWHERE and not _is_namespace(name):
                raise ValueError(
                    f"{name!r} is not the name of a namespace; {EVERYWHERE!r} means all, [] none"
                )
        return tuple(sorted(set(value)))

    @field_validator("max_priority")
    @classmethod
    def _ceilings(cls, value: dict[str, int]) -> dict[str, int]:
        for name in value:
            if name != OTHERS and not _is_namespace(name):
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

    @property
    def allowed(self) -> frozenset[tuple[str, str]]:
        """(group, plural) of everything that may be wrapped."""
        return _pairs(self.wrapped_resources)


def _pairs(groups: Iterable[KindGroup]) -> frozenset[tuple[str, str]]:
    return frozenset((group.api_group, name) for group in groups for name in group.resources)


def _is_namespace(name: str) -> bool:
    return bool(_PLURAL.fullmatch(name)) and len(name) <= _NAMESPACE_MAX


def catalog_of(config: Config, served: Iterable[Resource]) -> StaticCatalog:
    """The catalog of these kinds under this configuration."""
    podless = _pairs(config.resources_without_pods)
    found = StaticCatalog.of(served, config.allowed, config.excluded_namespaces, podless)
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
    capacity = (
        (name, quantity(name, value) or 0) for name, value in config.potential_capacity.items()
    )
    return Settings(
        fit=config.fit,
        policy=config.policy,
        fairness=config.fairness,
        backoff=round(config.backoff_time * SECOND),
        head_of_line_holding=round(config.head_of_line_holding_time * SECOND),
        reservation_timeout=round(config.dispatch_resource_reservation_timeout * MILLISECOND),
        placement_timeout=round(config.placement_timeout * SECOND),
        pod_counts_interval=round(config.pod_counts_interval * SECOND),
        protect_after=round(config.protect_after * SECOND),
        preemption=config.preemption,
        reclaim=config.reclaim,
        min_run_time=round(config.min_run_time * SECOND),
        preemption_grace=round(config.preemption_grace_period * SECOND),
        max_evictions_per_minute=config.max_evictions_per_minute,
        quota_grace=round(config.quota_grace_period * SECOND) if config.quota_enabled else 0,
        max_priority=tuple(sorted(config.max_priority.items())),
        potential_capacity=tuple(sorted((name, value) for name, value in capacity if value)),
    )


_NAMED_OTHERWISE = {
    "backoff_time": "backoff",
    "head_of_line_holding_time": "head_of_line_holding",
    "dispatch_resource_reservation_timeout": "reservation_timeout",
    "preemption_grace_period": "preemption_grace",
}
"""Fields of ``Config`` that have another name in ``Settings``."""

DECISIVE: Mapping[str, str] = {
    field.alias or name: _NAMED_OTHERWISE.get(name, name)
    for name, field in Config.model_fields.items()
    if _NAMED_OTHERWISE.get(name, name) in Settings.__struct_fields__
}
"""The settings that decisions depend on, by the name that users know, and their ``Settings`` field.
``quotaEnabled`` is not one of them: labels that name leaves are read before."""


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
    return replace(settings, **{DECISIVE[name]: getattr(new, DECISIVE[name]) for name in given})
