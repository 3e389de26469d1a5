"""A read-only view of the cluster and the configuration, as far as parsing depends on them."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from msgspec import Struct

from mcad.api.additions import NO_ADDITIONS, Additions
from mcad.api.quotas import LeafLabels
from mcad.api.tolerance import BY_DEFAULT, Tolerances


class Resource(Struct, frozen=True):
    """A kind as the API server serves it: the parts of an ObjectRef without namespace and name."""

    group: str
    version: str
    resource: str
    kind: str
    namespaced: bool = True


class Catalog(Protocol):
    """Which kinds are served, which may be wrapped, and how the configuration changes them."""

    def find(self, group: str, version: str, kind: str) -> Resource | None:
        """The served kind, None if it is not installed."""

    def wrapped(self, group: str, resource: str) -> bool:
        """Whether ``wrappedResources`` lists the plural name."""

    def serves(self, namespace: str) -> bool:
        """Whether AppWrappers of the namespace are served (``excludedNamespaces``)."""

    @property
    def ignores_claims(self) -> bool:
        """Whether pods with ``resourceClaims`` may be wrapped (``ignoreResourceClaims``)."""

    @property
    def tolerances(self) -> Tolerances:
        """Defaults and bounds of fault tolerance (``faultTolerance``)."""

    @property
    def additions(self) -> Additions:
        """Additions to pod templates (``inject``, ``schedulerName``, ``autopilot``)."""

    @property
    def leaves(self) -> LeafLabels:
        """Which labels name leaves of quota trees (``quotaEnabled``, ``queueNameTree``)."""

    @property
    def never_preempt(self) -> frozenset[str]:
        """Namespaces whose AppWrappers may opt out of eviction (``neverPreempt``)."""


class StaticCatalog(Struct, frozen=True):
    """A catalog in memory: the result of discovery, or a fixed list."""

    installed: Mapping[tuple[str, str, str], Resource]
    allowed: frozenset[tuple[str, str]] = frozenset()
    excluded: frozenset[str] = frozenset()
    ignores_claims: bool = False
    tolerances: Tolerances = BY_DEFAULT
    additions: Additions = NO_ADDITIONS
    leaves: LeafLabels = LeafLabels()
    never_preempt: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        resources: Iterable[Resource],
        allowed: Iterable[tuple[str, str]],
        excluded: Iterable[str] = (),
    ) -> "StaticCatalog":
        """Index served kinds; ``allowed`` holds pairs of (group, plural), ``excluded`` the
        namespaces whose AppWrappers are not served."""
        served = {(one.group, one.version, one.kind): one for one in resources}
        return cls(served, frozenset(allowed), frozenset(excluded))

    def find(self, group: str, version: str, kind: str) -> Resource | None:
        """The served kind, None if it is not installed."""
        return self.installed.get((group, version, kind))

    def wrapped(self, group: str, resource: str) -> bool:
        """Whether the plural name may be wrapped."""
        return (group, resource) in self.allowed

    def serves(self, namespace: str) -> bool:
        """Whether AppWrappers of the namespace are served."""
        return namespace not in self.excluded


_OF_KUBERNETES = "coordination discovery events networking rbac.authorization resource scheduling"
BUILT_IN = frozenset({"", "apps", "autoscaling", "batch", "policy"}) | {
    f"{name}.k8s.io" for name in _OF_KUBERNETES.split()
}
"""The API groups of Kubernetes itself that have namespaced kinds. These need no CRD, but some of
their versions have to be enabled (``kube-apiserver --runtime-config``)."""


def _served(group: str, version: str, *kinds: str, namespaced: bool = True) -> list[Resource]:
    """Kinds written as ``plural/Kind``."""
    pairs = (pair.split("/") for pair in kinds)
    return [Resource(group, version, plural, kind, namespaced) for plural, kind in pairs]


WELL_KNOWN: tuple[Resource, ...] = (
    *_served("", "v1", "pods/Pod", "services/Service", "configmaps/ConfigMap", "secrets/Secret"),
    *_served("", "v1", "persistentvolumeclaims/PersistentVolumeClaim"),
    *_served("", "v1", "serviceaccounts/ServiceAccount", "podtemplates/PodTemplate"),
    *_served("", "v1", "replicationcontrollers/ReplicationController"),
    *_served("", "v1", "namespaces/Namespace", "nodes/Node", namespaced=False),
    *_served("apps", "v1", "deployments/Deployment", "replicasets/ReplicaSet"),
    *_served("apps", "v1", "statefulsets/StatefulSet", "daemonsets/DaemonSet"),
    *_served("batch", "v1", "jobs/Job", "cronjobs/CronJob"),
    *_served("networking.k8s.io", "v1", "ingresses/Ingress", "networkpolicies/NetworkPolicy"),
    *_served("gateway.networking.k8s.io", "v1", "httproutes/HTTPRoute"),
    *_served("gateway.networking.k8s.io", "v1beta1", "httproutes/HTTPRoute"),
    *_served("autoscaling", "v2", "horizontalpodautoscalers/HorizontalPodAutoscaler"),
    *_served("autoscaling", "v1", "horizontalpodautoscalers/HorizontalPodAutoscaler"),
    *_served("policy", "v1", "poddisruptionbudgets/PodDisruptionBudget"),
    *_served("ray.io", "v1", "rayclusters/RayCluster", "rayjobs/RayJob", "rayservices/RayService"),
    *_served("kubeflow.org", "v1", "pytorchjobs/PyTorchJob", "tfjobs/TFJob", "mpijobs/MPIJob"),
    *_served("kubeflow.org", "v1", "xgboostjobs/XGBoostJob", "paddlejobs/PaddleJob"),
    *_served("kubeflow.org", "v1", "jaxjobs/JAXJob", "notebooks/Notebook"),
    *_served("kubeflow.org", "v2beta1", "mpijobs/MPIJob"),
    *_served("trainer.kubeflow.org", "v1alpha1", "trainjobs/TrainJob"),
    *_served("jobset.x-k8s.io", "v1alpha2", "jobsets/JobSet"),
    *_served("leaderworkerset.x-k8s.io", "v1", "leaderworkersets/LeaderWorkerSet"),
    *_served("scheduling.k8s.io", "v1alpha2", "podgroups/PodGroup"),  # of Kubernetes 1.36
    *_served("scheduling.k8s.io", "v1beta1", "podgroups/PodGroup"),  # of 1.37
    *_served("scheduling.x-k8s.io", "v1alpha1", "podgroups/PodGroup"),
    *_served("scheduling.sigs.k8s.io", "v1alpha1", "podgroups/PodGroup"),
    *_served("sparkoperator.k8s.io", "v1beta2", "sparkapplications/SparkApplication"),
    *_served("serving.kserve.io", "v1beta1", "inferenceservices/InferenceService"),
)
"""Kinds that the command line and the simulator know without asking a cluster."""
