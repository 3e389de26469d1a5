"""The kinds that the dispatcher and its command line read and write themselves."""

from mcad.api import labels
from mcad.kube.resource import Resource

APPWRAPPERS = Resource(labels.GROUP, "v1beta2", "appwrappers", labels.KIND)
OLD_APPWRAPPERS = Resource(labels.GROUP, "v1beta1", "appwrappers", labels.KIND)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
CRDS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")
QUOTA_SUBTREES = Resource(
    labels.QUOTA_GROUP, labels.QUOTA_VERSION, "quotasubtrees", labels.QUOTA_KIND
)
