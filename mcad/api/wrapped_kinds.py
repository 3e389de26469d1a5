"""Kinds: which may be wrapped, which carry rights, which have no pods."""

import re
from collections.abc import Mapping
from typing import Self

from pydantic import Field, field_validator, model_validator

from mcad.api.strict import Strict

_PLURAL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_GROUP = re.compile(r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?")

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


class WrappedGroup(Strict):
    """Kinds of one API group that may be wrapped, by plural name; ``dangerous`` confirms that some
    of them carry rights."""

    api_group: str = Field(alias="apiGroup")
    resources: tuple[str, ...]
    dangerous: bool = False

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


def _group(api_group: str, *resources: str) -> WrappedGroup:
    return WrappedGroup(apiGroup=api_group, resources=resources)


# ServiceAccounts, Roles and RoleBindings are left out on purpose: the right to create AppWrappers
# must not give further rights. All else that plain Helm charts bundle is there.
DEFAULT_WRAPPED = (
    _group("", "pods", "services", "configmaps", "secrets", "persistentvolumeclaims"),
    _group("apps", "deployments", "replicasets", "statefulsets", "daemonsets"),
    _group("batch", "jobs", "cronjobs"),
    _group("networking.k8s.io", "ingresses", "networkpolicies"),
    _group("gateway.networking.k8s.io", "httproutes"),
    _group("autoscaling", "horizontalpodautoscalers"),
    _group("policy", "poddisruptionbudgets"),
    _group("ray.io", "rayclusters", "rayjobs", "rayservices"),
    _group(
        "kubeflow.org", "pytorchjobs", "tfjobs", "mpijobs", "xgboostjobs", "paddlejobs", "jaxjobs"
    ),
    _group("jobset.x-k8s.io", "jobsets"),
    _group("leaderworkerset.x-k8s.io", "leaderworkersets"),
    _group("scheduling.k8s.io", "podgroups"),
    _group("scheduling.x-k8s.io", "podgroups"),
    _group("scheduling.sigs.k8s.io", "podgroups"),
)


WITHOUT_PODS = frozenset(
    (group, plural)
    for group, plurals in {
        "": "configmaps endpoints limitranges persistentvolumeclaims podtemplates resourcequotas "
        "secrets serviceaccounts services",
        "autoscaling": "horizontalpodautoscalers",
        "discovery.k8s.io": "endpointslices",
        "gateway.networking.k8s.io": "httproutes",
        "networking.k8s.io": "ingresses networkpolicies",
        "policy": "poddisruptionbudgets",
        "rbac.authorization.k8s.io": "rolebindings roles",
        "scheduling.k8s.io": "podgroups workloads",
        "scheduling.sigs.k8s.io": "podgroups",
        "scheduling.x-k8s.io": "podgroups",
    }.items()
    for plural in plurals.split()
)
"""(group, plural) of kinds of which no pods come."""


def makes_pods(group: str, plural: str) -> bool:
    """Whether an object of this kind can have pods."""
    return (group, plural) not in WITHOUT_PODS
