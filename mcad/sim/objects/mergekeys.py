"""Which lists of built-in types a strategic merge patch merges, and by which key.

Facts from the struct tags ``patchStrategy`` and ``patchMergeKey`` of ``k8s.io/api`` v0.36. Lists
that are not named here are replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MERGE = "merge"
REPLACE = "replace"
RETAIN = "retainKeys"


@dataclass(frozen=True, slots=True)
class MergeKeys:
    """What is known of one field, and of the fields below it; ``key`` is empty for scalars."""

    strategy: str = ""
    key: str = ""
    fields: Mapping[str, MergeKeys] = field(default_factory=dict)

    def child(self, name: str) -> MergeKeys:
        """The field of that name; one without rules if nothing is known."""
        return self.fields.get(name, UNKNOWN)

    def __or__(self, other: MergeKeys) -> MergeKeys:
        """The rule of one, with the type of the other."""
        return MergeKeys(self.strategy, self.key, other.fields)


UNKNOWN = MergeKeys()


def _type(**fields: MergeKeys) -> MergeKeys:
    return MergeKeys(fields=fields)


def _by(key: str = "", *, retain: bool = False) -> MergeKeys:
    return MergeKeys(f"{MERGE},{RETAIN}" if retain else MERGE, key)


_METADATA = _type(finalizers=_by(), ownerReferences=_by("uid"))
_MOUNTS = {"volumeDevices": _by("devicePath"), "volumeMounts": _by("mountPath")}
_CONTAINER = _type(env=_by("name"), ports=_by("containerPort"), **_MOUNTS)
_POD_SPEC = _type(
    containers=_by("name") | _CONTAINER,
    hostAliases=_by("ip"),
    imagePullSecrets=_by("name"),
    initContainers=_by("name") | _CONTAINER,
    resourceClaims=_by("name", retain=True),
    schedulingGates=_by("name"),
    topologySpreadConstraints=_by("topologyKey"),
    volumes=_by("name", retain=True),
)
_POD_STATUS = _type(
    conditions=_by("type"),
    hostIPs=_by("ip"),
    podIPs=_by("ip"),
    resourceClaimStatuses=_by("name", retain=True),
)
_TEMPLATE = _type(metadata=_METADATA, spec=_POD_SPEC)
_CONDITIONS = {"conditions": _by("type")}
_JOB_SPEC = _type(template=_TEMPLATE)


def _workload(**fields: MergeKeys) -> dict[str, MergeKeys]:
    return {"spec": _type(template=_TEMPLATE, **fields), "status": _type(**_CONDITIONS)}


_STRATEGY = MergeKeys(RETAIN)
_KINDS: dict[tuple[str, str], dict[str, MergeKeys]] = {
    ("v1", "Pod"): {"spec": _POD_SPEC, "status": _POD_STATUS},
    ("v1", "PodTemplate"): {"template": _TEMPLATE},
    ("v1", "Node"): {
        "spec": _type(podCIDRs=_by()),
        "status": _type(addresses=_by("type"), **_CONDITIONS),
    },
    ("v1", "Namespace"): {"status": _type(**_CONDITIONS)},
    ("v1", "Service"): {"spec": _type(ports=_by("port")), "status": _type(**_CONDITIONS)},
    ("v1", "ServiceAccount"): {"secrets": _by("name")},
    ("v1", "PersistentVolumeClaim"): {"status": _type(**_CONDITIONS)},
    ("v1", "ReplicationController"): _workload(),
    ("apps/v1", "Deployment"): _workload(strategy=_STRATEGY),
    ("apps/v1", "ReplicaSet"): _workload(),
    ("apps/v1", "StatefulSet"): _workload(),
    ("apps/v1", "DaemonSet"): _workload(),
    ("batch/v1", "Job"): {"spec": _JOB_SPEC, "status": _type(**_CONDITIONS)},
}
_OF_KIND = {
    names: MergeKeys(fields={"metadata": _METADATA, **fields}) for names, fields in _KINDS.items()
}
_ANY = MergeKeys(fields={"metadata": _METADATA})


def merge_keys(api_version: str, kind: str) -> MergeKeys:
    """The rules for a built-in kind; for one without lists to merge, those of its metadata."""
    return _OF_KIND.get((api_version, kind), _ANY)
