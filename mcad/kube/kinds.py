"""The kinds that the dispatcher and its command line read and write themselves."""

from mcad.api import labels
from mcad.kube.resource import Resource

APPWRAPPERS = Resource(labels.GROUP, "v1beta2", "appwrappers", labels.KIND)
OLD_APPWRAPPERS = Resource(labels.GROUP, "v1beta1", "appwrappers", labels.KIND)
APPWRAPPER_REPORTS = Resource(
    labels.VISIBILITY_GROUP, "v1beta1", "appwrapperreports", "AppWrapperReport"
)
CAPACITY_REPORTS = Resource(
    labels.VISIBILITY_GROUP, "v1beta1", "capacityreports", "CapacityReport", namespaced=False
)
CLUSTER_REPORT = "cluster"
"""The name of the only report of a kind that is about the whole cluster."""
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
CRDS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
DISPATCH_PAUSES = Resource(
    labels.GROUP, labels.PAUSE_VERSION, "dispatchpauses", labels.PAUSE_KIND, namespaced=False
)
EVENTS = Resource("", "v1", "events", "Event")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
POD_TEMPLATES = Resource("", "v1", "podtemplates", "PodTemplate")
PODS = Resource("", "v1", "pods", "Pod")
QUOTA_REPORTS = Resource(
    labels.VISIBILITY_GROUP, "v1beta1", "quotareports", "QuotaReport", namespaced=False
)
QUOTA_SUBTREES = Resource(
    labels.QUOTA_GROUP, labels.QUOTA_VERSION, "quotasubtrees", labels.QUOTA_KIND
)
WHAT_IFS = Resource(labels.VISIBILITY_GROUP, "v1beta1", "whatifs", "WhatIf")
SERVICES = Resource("", "v1", "services", "Service")
