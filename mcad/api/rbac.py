"""The RBAC rules that the dispatcher needs with a given configuration.

Wrapped kinds are created, watched and deleted, never updated or patched; pods that do not terminate
are deleted, of whatever owner. No rule has a wildcard. With ``watchNamespaces``, rights on
namespaced objects are granted in these namespaces only; the Lease has Roles in its own. With
``impersonate``, objects are created only as the named account, in the watched namespaces.
"""

from collections.abc import Iterable, Iterator

import yaml

from mcad.api.config import Config
from mcad.api.labels import GROUP, QUOTA_GROUP
from mcad.api.scale_up.objects import priority_class
from mcad.api.scale_up.settings import Via
from mcad.api.wire import Map

NAME = "mcad"
RBAC_GROUP = "rbac.authorization.k8s.io"
LEASE_GROUP = "coordination.k8s.io"

WATCH = ("list", "watch")
READ = ("get", *WATCH)
WRAPPED_VERBS = ("create", "delete", *READ)
STATUS_VERBS = ("patch", "update")
"""The release before this one patches statuses; it may lead during an upgrade or a rollback."""

WRAPPED_BY_OTHERS = ("delete", *READ)

WEBHOOKS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
"""Listed to find another controller of AppWrappers, under whatever name it is installed."""

Pair = tuple[str, str]

PODS: Pair = ("", "pods")
_POD_TEMPLATES: Pair = ("", "podtemplates")
_JOBS: Pair = ("batch", "jobs")
_REPLICA_SETS: Pair = ("apps", "replicasets")
_STATEFUL_SETS: Pair = ("apps", "statefulsets")
_RAY_CLUSTERS: Pair = ("ray.io", "rayclusters")
_JOB_SETS: Pair = ("jobset.x-k8s.io", "jobsets")

OWNED_THROUGH: dict[Pair, tuple[Pair, ...]] = {
    ("apps", "deployments"): (_REPLICA_SETS,),
    ("batch", "cronjobs"): (_JOBS,),
    _JOB_SETS: (_JOBS,),
    ("kubeflow.org", "mpijobs"): (_JOBS,),
    ("kubeflow.org", "notebooks"): (_STATEFUL_SETS,),
    ("leaderworkerset.x-k8s.io", "leaderworkersets"): (_STATEFUL_SETS,),
    ("ray.io", "rayjobs"): (_RAY_CLUSTERS, _JOBS),
    ("ray.io", "rayservices"): (_RAY_CLUSTERS,),
    ("serving.kserve.io", "inferenceservices"): (("apps", "deployments"), _REPLICA_SETS),
    ("trainer.kubeflow.org", "trainjobs"): (_JOB_SETS, _JOBS),
}
"""Kinds between a wrapped object and its pods, read to find the AppWrapper of a pod (C3)."""


def namespaced_rules(config: Config) -> list[Map]:
    """Rules for every namespace with AppWrappers."""
    between = {pair for one in config.allowed for pair in OWNED_THROUGH.get(one, ())}
    return [
        _rule(GROUP, ["appwrappers"], (*READ, "patch")),  # to remove upstream's finalizer
        _rule(GROUP, ["appwrappers/status"], STATUS_VERBS),
        *_quota_rules(config),
        *_creation_rules(config),
        *_scale_up_rules(config),
        *_by_group({PODS} - config.allowed, ("delete",)),  # by force, if they do not terminate
        *_by_group(between - config.allowed, ("get",)),
        _rule("", ["limitranges"], WATCH),  # default requests of containers
        _rule("events.k8s.io", ["events"], ("create",)),
        _rule("", ["events"], ("list",)),  # why pods of an item are not created
    ]


def _quota_rules(config: Config) -> Iterator[Map]:
    """Rules for quota trees: read, and write their status; never change their spec."""
    if config.quota_enabled:
        yield _rule(QUOTA_GROUP, ["quotasubtrees"], WATCH)
        yield _rule(QUOTA_GROUP, ["quotasubtrees/status"], STATUS_VERBS)


def _creation_rules(config: Config) -> Iterator[Map]:
    """Rules to create wrapped objects, as the dispatcher or as an impersonated account.

    With OwnerReferencesPermissionEnforcement, to create with blockOwnerDeletion needs the right to
    ``update`` the owner's finalizers; an impersonated account gets that from its administrator.
    """
    if config.impersonate is None:
        yield _rule(GROUP, ["appwrappers/finalizers"], ("update",))
        yield from _by_group(config.allowed, WRAPPED_VERBS)
        return
    one = _rule("", ["serviceaccounts"], ("impersonate",))
    yield one | {"resourceNames": [config.impersonate.service_account]}
    yield from _by_group(config.allowed, WRAPPED_BY_OTHERS)


def _scale_up_rules(config: Config) -> Iterator[Map]:
    """Rules for requests to an autoscaler, and for the pods that they are for."""
    own = ("create", "delete", "get", "list")
    if config.scale_up.via is Via.PLACEHOLDER_PODS:
        yield from _by_group([PODS], own)  # pods of the cluster are watched anyway
    elif config.scale_up.is_on:
        yield from _by_group([_POD_TEMPLATES], own)
        yield from _by_group(config.scale_up.kinds, WRAPPED_VERBS)


def cluster_rules(config: Config) -> list[Map]:
    """Rules for the whole cluster: its capacity, and the checks before the start.

    Pods use capacity in every namespace, so all are read even with ``watchNamespaces``.
    """
    crd = _rule("apiextensions.k8s.io", ["customresourcedefinitions"], ("get",))
    ours = [f"appwrappers.{GROUP}"]
    if config.quota_enabled:
        ours.append(f"quotasubtrees.{QUOTA_GROUP}")
    return [
        _rule("", ["nodes", "pods"], WATCH),
        _rule(GROUP, ["dispatchpauses"], WATCH),
        _rule("node.k8s.io", ["runtimeclasses"], WATCH),
        _rule("scheduling.k8s.io", ["priorityclasses"], WATCH),  # priorities, and policy Never
        _rule("kueue.x-k8s.io", ["workloadpriorityclasses"], WATCH),
        crd | {"resourceNames": ours},
        _rule("apiextensions.k8s.io", ["customresourcedefinitions"], WATCH),  # metadata only
        _rule("admissionregistration.k8s.io", list(WEBHOOKS), ("list",)),
        _rule("authorization.k8s.io", ["selfsubjectaccessreviews"], ("create",)),
    ]


def pause_reader_rules() -> list[Map]:
    """Rules for all users: to see that dispatch is paused, and why."""
    return [_rule(GROUP, ["dispatchpauses"], READ)]


def lease_rules(config: Config) -> list[Map]:
    """Rules for the Lease, by name; ``create`` cannot be limited to a name."""
    return [_named_lease(config, ("get", "patch")), _rule(LEASE_GROUP, ["leases"], ("create",))]


def lease_reader_rules(config: Config) -> list[Map]:
    """Rules for all users: to read which process holds the Lease."""
    return [_named_lease(config, ("get",))]


def _named_lease(config: Config, verbs: tuple[str, ...]) -> Map:
    return _rule(LEASE_GROUP, ["leases"], verbs) | {"resourceNames": [config.leader_election.name]}


def rules(config: Config, namespace: str = "mcad-system", service_account: str = NAME) -> list[Map]:
    """ServiceAccount, roles and bindings, in the order to apply them, and the PriorityClass of
    placeholder pods, if those are used."""
    subject = {"kind": "ServiceAccount", "name": service_account, "namespace": namespace}
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": service_account, "namespace": namespace},
    }
    everyone = {"apiGroup": RBAC_GROUP, "kind": "Group", "name": "system:authenticated"}
    lease_home = config.leader_election.namespace
    everywhere = not config.watch_namespaces
    shared = cluster_rules(config) + (namespaced_rules(config) if everywhere else [])
    has_placeholders = config.scale_up.via is Via.PLACEHOLDER_PODS
    return [
        account,
        *([priority_class()] if has_placeholders else []),
        *_role_and_binding("", shared, subject),
        *(
            one
            for name in config.watch_namespaces
            for one in _role_and_binding(name, namespaced_rules(config), subject)
        ),
        *_role_and_binding(lease_home, lease_rules(config), subject, f"{NAME}-leader"),
        *_role_and_binding("", pause_reader_rules(), everyone, f"{NAME}-pause-viewer"),
        *_role_and_binding(
            lease_home, lease_reader_rules(config), everyone, f"{NAME}-leader-viewer"
        ),
    ]


def rbac_yaml(config: Config, namespace: str, service_account: str) -> str:
    """The same as YAML."""
    documents: str = yaml.safe_dump_all(
        rules(config, namespace, service_account), sort_keys=False, explicit_start=True
    )
    return documents


def _by_group(pairs: Iterable[Pair], verbs: tuple[str, ...]) -> Iterator[Map]:
    """One rule per API group, in order."""
    groups: dict[str, list[str]] = {}
    for group, resource in sorted(pairs):
        groups.setdefault(group, []).append(resource)
    return (_rule(group, names, verbs) for group, names in groups.items())


def _rule(group: str, resources: list[str], verbs: tuple[str, ...]) -> Map:
    return {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}


def _role_and_binding(
    namespace: str, granted: list[Map], subject: Map, name: str = NAME
) -> Iterator[Map]:
    """A Role in a namespace, or a ClusterRole without one, and its binding."""
    kind = "Role" if namespace else "ClusterRole"
    meta = {"name": name} | ({"namespace": namespace} if namespace else {})
    yield {"apiVersion": f"{RBAC_GROUP}/v1", "kind": kind, "metadata": dict(meta), "rules": granted}
    yield {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": f"{kind}Binding",
        "metadata": dict(meta),
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": name},
        "subjects": [subject],
    }
