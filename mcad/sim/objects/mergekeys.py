"""Which lists of built-in types a strategic merge patch merges, and by which key.

Facts from the struct tags ``patchStrategy`` and ``patchMergeKey`` of ``k8s.io/api`` v0.36. Lists
that are not named here are replaced as a whole. A test compares with what a real server publishes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

MERGE = "merge"
REPLACE = "replace"
RETAIN = "retainKeys"


@dataclass(frozen=True, slots=True)
class MergeKeys:
    """What is known of one field, and of the fields below it; ``key`` is empty for scalars.

    ``component`` is the end of the OpenAPI name of the type (``core.v1.PodSpec``), for the fields
    below it.
    """

    strategy: str = ""
    key: str = ""
    component: str = ""
    fields: Mapping[str, MergeKeys] = field(default_factory=dict)

    def child(self, name: str) -> MergeKeys:
        """The field of that name; one without rules if nothing is known."""
        return self.fields.get(name, UNKNOWN)

    def __or__(self, other: MergeKeys) -> MergeKeys:
        """The rule of one, with the type of the other."""
        return MergeKeys(self.strategy, self.key, other.component, other.fields)


UNKNOWN = MergeKeys()


def _type(component: str, /, **fields: MergeKeys) -> MergeKeys:
    return MergeKeys(component=component, fields=fields)


def _by(key: str = "", *, retain: bool = False) -> MergeKeys:
    return MergeKeys(f"{MERGE},{RETAIN}" if retain else MERGE, key)


_METADATA = _type("meta.v1.ObjectMeta", finalizers=_by(), ownerReferences=_by("uid"))
_MOUNTS = {"volumeDevices": _by("devicePath"), "volumeMounts": _by("mountPath")}
_CONTAINER = _type("core.v1.Container", env=_by("name"), ports=_by("containerPort"), **_MOUNTS)
_EPHEMERAL = _type(
    "core.v1.EphemeralContainer", env=_by("name"), ports=_by("containerPort"), **_MOUNTS
)
_CONTAINER_STATUS = _type(
    "core.v1.ContainerStatus",
    allocatedResourcesStatus=_by("name"),
    volumeMounts=_by("mountPath"),
)
_POD_SPEC = _type(
    "core.v1.PodSpec",
    containers=_by("name") | _CONTAINER,
    ephemeralContainers=_by("name") | _EPHEMERAL,
    hostAliases=_by("ip"),
    imagePullSecrets=_by("name"),
    initContainers=_by("name") | _CONTAINER,
    resourceClaims=_by("name", retain=True),
    schedulingGates=_by("name"),
    topologySpreadConstraints=_by("topologyKey"),
    volumes=_by("name", retain=True),
)
_POD_STATUS = _type(
    "core.v1.PodStatus",
    conditions=_by("type"),
    hostIPs=_by("ip"),
    podIPs=_by("ip"),
    resourceClaimStatuses=_by("name", retain=True),
    # The lists of container statuses are replaced, so what is inside is never merged.
    containerStatuses=_CONTAINER_STATUS,
)
_TEMPLATE = _type("core.v1.PodTemplateSpec", metadata=_METADATA, spec=_POD_SPEC)
_CONDITIONS = {"conditions": _by("type")}
_JOB_SPEC = _type("batch.v1.JobSpec", template=_TEMPLATE)


def _workload(name: str, /, **fields: MergeKeys) -> dict[str, MergeKeys]:
    return {
        "spec": _type(f"{name}Spec", template=_TEMPLATE, **fields),
        "status": _type(f"{name}Status", **_CONDITIONS),
    }


_STRATEGY = MergeKeys(RETAIN)
_KINDS: dict[tuple[str, str], dict[str, MergeKeys]] = {
    ("v1", "Pod"): {"spec": _POD_SPEC, "status": _POD_STATUS},
    ("v1", "PodTemplate"): {"template": _TEMPLATE},
    ("v1", "Node"): {
        "spec": _type("core.v1.NodeSpec", podCIDRs=_by()),
        "status": _type("core.v1.NodeStatus", addresses=_by("type"), **_CONDITIONS),
    },
    ("v1", "Namespace"): {"status": _type("core.v1.NamespaceStatus", **_CONDITIONS)},
    ("v1", "Service"): {
        "spec": _type("core.v1.ServiceSpec", ports=_by("port")),
        "status": _type("core.v1.ServiceStatus", **_CONDITIONS),
    },
    ("v1", "ServiceAccount"): {"secrets": _by("name")},
    ("v1", "PersistentVolumeClaim"): {
        "status": _type("core.v1.PersistentVolumeClaimStatus", **_CONDITIONS)
    },
    ("v1", "ReplicationController"): _workload("core.v1.ReplicationController"),
    ("apps/v1", "Deployment"): _workload("apps.v1.Deployment", strategy=_STRATEGY),
    ("apps/v1", "ReplicaSet"): _workload("apps.v1.ReplicaSet"),
    ("apps/v1", "StatefulSet"): _workload("apps.v1.StatefulSet"),
    ("apps/v1", "DaemonSet"): _workload("apps.v1.DaemonSet"),
    ("batch/v1", "Job"): {
        "spec": _JOB_SPEC,
        "status": _type("batch.v1.JobStatus", **_CONDITIONS),
    },
}
_OF_KIND = {
    (version, kind): MergeKeys(
        component=f"{'core.v1' if version == 'v1' else version.replace('/', '.')}.{kind}",
        fields={"metadata": _METADATA, **fields},
    )
    for (version, kind), fields in _KINDS.items()
}
_ANY = MergeKeys(fields={"metadata": _METADATA})


def merge_keys(api_version: str, kind: str) -> MergeKeys:
    """The rules for a built-in kind; for one without lists to merge, those of its metadata."""
    return _OF_KIND.get((api_version, kind), _ANY)


def by_component() -> dict[str, dict[str, MergeKeys]]:
    """The fields with a rule, by the end of the OpenAPI name of the type that has them."""
    found: dict[str, dict[str, MergeKeys]] = {}
    for keys in _OF_KIND.values():
        for component, name, one in _walk(keys):
            found.setdefault(component, {})[name] = one
    return found


def _walk(keys: MergeKeys) -> Iterator[tuple[str, str, MergeKeys]]:
    for name, one in keys.fields.items():
        if one.strategy:
            yield keys.component, name, one
        yield from _walk(one)
