"""Which kinds the simulated API server serves: a table of built-in ones, and those of CRDs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mcad.kube.resource import Resource
from mcad.kube.types import Json

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CRDS = ("apiextensions.k8s.io", "customresourcedefinitions")
EVENTS = ("", "events")


@dataclass(frozen=True, slots=True)
class Column:
    """One additional printer column of a CRD."""

    name: str
    type: str
    json_path: str = ""
    description: str = ""
    priority: int = 0
    format: str = ""


@dataclass(frozen=True, eq=False)
class Kind:
    """One kind in one served version; two are never equal, so that a changed CRD is a new one."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()  # of "status", "scale", "finalize"
    verbs: tuple[str, ...] = ALL_VERBS
    columns: tuple[Column, ...] = ()
    schema: Json | None = None
    scale: Json | None = None  # paths of a CRD's scale
    is_custom: bool = False
    deprecation: str = ""  # what requests to it are warned with

    @cached_property
    def resource(self) -> Resource:
        """What clients call it, with its paths."""
        return Resource(self.group, self.version, self.plural, self.kind, self.namespaced)

    @cached_property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def storage(self) -> tuple[str, str]:
        """Group and plural under which its objects are kept, the same for all its versions.

        The Events of both groups are the same objects in two forms.
        """
        return EVENTS if self.plural == "events" else (self.group, self.plural)

    @cached_property
    def has_status(self) -> bool:
        """Whether status is written by the subresource only."""
        return "status" in self.subresources


class KindTable:
    """Everything that is served now."""

    def __init__(self) -> None:
        self._builtin = {(kind.group, kind.version, kind.plural): kind for kind in BUILTIN}
        self._custom: dict[str, list[Kind]] = {}  # by name of the CRD
        self._by_path = dict(self._builtin)
        self._by_kind: dict[tuple[str, str], Kind] = {}
        self._reindex()

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """By the path under which it is served."""
        return self._by_path.get((group, version, plural))

    def by_kind(self, api_version: str, kind: str) -> Kind | None:
        """By what manifests say."""
        return self._by_kind.get((api_version, kind))

    def is_builtin_group(self, group: str) -> bool:
        """Whether a group belongs to Kubernetes and not to a CRD."""
        return any(kind.group == group for kind in BUILTIN)

    def all(self) -> list[Kind]:
        """Built-in ones first; within a group the preferred version first."""
        return list(self._by_path.values())

    def set_crd(self, crd: Json) -> None:
        """Serve what a CustomResourceDefinition describes, instead of what it described before."""
        self._custom[crd["metadata"]["name"]] = list(kinds_of_crd(crd))
        self._reindex()

    def remove_crd(self, name: str) -> None:
        """Serve its kinds no longer."""
        self._custom.pop(name, None)
        self._reindex()

    def custom(self, name: str) -> list[Kind]:
        """The served kinds of one CRD."""
        return self._custom.get(name, [])

    def _reindex(self) -> None:
        custom = [kind for kinds in self._custom.values() for kind in kinds]
        custom.sort(key=lambda kind: version_priority(kind.version), reverse=True)
        self._by_path = dict(self._builtin)
        self._by_path |= {(kind.group, kind.version, kind.plural): kind for kind in custom}
        self._by_kind = {(kind.api_version, kind.kind): kind for kind in self._by_path.values()}


def kinds_of_crd(crd: Json) -> Iterator[Kind]:
    """One Kind per served version, the highest first as Kubernetes orders versions."""
    spec = crd["spec"]
    names = spec["names"]
    versions = [version for version in spec["versions"] if version.get("served")]
    for version in sorted(versions, key=lambda one: version_priority(one["name"]), reverse=True):
        subresources = version.get("subresources") or {}
        yield Kind(
            spec["group"],
            version["name"],
            names["plural"],
            names["kind"],
            spec["scope"] == "Namespaced",
            names.get("singular") or names["kind"].lower(),
            tuple(names.get("shortNames") or ()),
            tuple(names.get("categories") or ()),
            tuple(name for name in ("status", "scale") if name in subresources),
            columns=tuple(_columns(version.get("additionalPrinterColumns") or ())),
            schema=(version.get("schema") or {}).get("openAPIV3Schema"),
            scale=subresources.get("scale"),
            is_custom=True,
            deprecation=_deprecation(spec, version, versions),
        )


def _deprecation(spec: Json, version: Json, served: Iterable[Json]) -> str:
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning"):
        return str(version["deprecationWarning"])
    kind = spec["names"]["kind"]
    text = f"{spec['group']}/{version['name']} {kind} is deprecated"
    rank = version_priority(version["name"])
    others = [one["name"] for one in served if not one.get("deprecated")]
    better = max(
        (one for one in others if version_priority(one) > rank), key=version_priority, default=""
    )
    return f"{text}; use {spec['group']}/{better} {kind}" if better else text


def version_priority(version: str) -> tuple[int, int, int]:
    """Sort key: v2 > v1 > v1beta2 > v1beta1 > v1alpha1 (CRD versioning, "Version priority")."""
    for stability, mark in ((1, "beta"), (0, "alpha")):
        major, found, minor = version.removeprefix("v").partition(mark)
        if found:
            return (stability, int(major or 0), int(minor or 0))
    return (2, int(version.removeprefix("v")), 0)


def _columns(columns: Iterable[Mapping[str, Any]]) -> Iterator[Column]:
    for one in columns:
        yield Column(
            one["name"],
            one["type"],
            one["jsonPath"],
            one.get("description", ""),
            one.get("priority", 0),
            one.get("format", ""),
        )


def _core(plural: str, kind: str, *rest: Any, **more: Any) -> Kind:
    return Kind("", "v1", plural, kind, *rest, **more)


_STATUS = ("status",)
_WORKLOAD = ("status", "scale")
_ALL = ("all",)
_CREATE = ("create",)

BUILTIN: tuple[Kind, ...] = tuple(
    Kind(**{**vars(kind), "singular": kind.singular or kind.kind.lower()})
    for kind in (
        _core("configmaps", "ConfigMap", short_names=("cm",)),
        _core("endpoints", "Endpoints", short_names=("ep",)),
        _core("events", "Event", short_names=("ev",)),
        _core("limitranges", "LimitRange", short_names=("limits",)),
        _core(
            "namespaces",
            "Namespace",
            False,
            short_names=("ns",),
            subresources=("status", "finalize"),
            verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
        ),
        _core("nodes", "Node", False, short_names=("no",), subresources=_STATUS),
        _core(
            "persistentvolumeclaims",
            "PersistentVolumeClaim",
            short_names=("pvc",),
            subresources=_STATUS,
        ),
        _core(
            "persistentvolumes",
            "PersistentVolume",
            False,
            short_names=("pv",),
            subresources=_STATUS,
        ),
        _core("pods", "Pod", short_names=("po",), categories=_ALL, subresources=_STATUS),
        _core("podtemplates", "PodTemplate"),
        _core(
            "replicationcontrollers",
            "ReplicationController",
            short_names=("rc",),
            categories=_ALL,
            subresources=_WORKLOAD,
        ),
        _core("resourcequotas", "ResourceQuota", short_names=("quota",), subresources=_STATUS),
        _core("secrets", "Secret"),
        _core("serviceaccounts", "ServiceAccount", short_names=("sa",)),
        _core("services", "Service", short_names=("svc",), categories=_ALL, subresources=_STATUS),
        Kind("apps", "v1", "daemonsets", "DaemonSet", True, "", ("ds",), _ALL, _STATUS),
        Kind("apps", "v1", "deployments", "Deployment", True, "", ("deploy",), _ALL, _WORKLOAD),
        Kind("apps", "v1", "replicasets", "ReplicaSet", True, "", ("rs",), _ALL, _WORKLOAD),
        Kind("apps", "v1", "statefulsets", "StatefulSet", True, "", ("sts",), _ALL, _WORKLOAD),
        Kind("events.k8s.io", "v1", "events", "Event", True, "", ("ev",)),
        Kind(
            "authorization.k8s.io",
            "v1",
            "selfsubjectaccessreviews",
            "SelfSubjectAccessReview",
            False,
            verbs=_CREATE,
        ),
        Kind("batch", "v1", "cronjobs", "CronJob", True, "", ("cj",), _ALL, _STATUS),
        Kind("batch", "v1", "jobs", "Job", True, "", (), _ALL, _STATUS),
        Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", True, "", ("netpol",)),
        Kind(
            "policy",
            "v1",
            "poddisruptionbudgets",
            "PodDisruptionBudget",
            True,
            "",
            ("pdb",),
            (),
            _STATUS,
        ),
        Kind("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", False),
        Kind("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False),
        Kind("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"),
        Kind("rbac.authorization.k8s.io", "v1", "roles", "Role"),
        Kind("storage.k8s.io", "v1", "storageclasses", "StorageClass", False, "", ("sc",)),
        Kind(
            CRDS[0],
            "v1",
            CRDS[1],
            "CustomResourceDefinition",
            False,
            "",
            ("crd", "crds"),
            ("api-extensions",),
            _STATUS,
        ),
        Kind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, "", ("pc",)),
        Kind("coordination.k8s.io", "v1", "leases", "Lease"),
        Kind("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", False),
        Kind("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"),
    )
)
