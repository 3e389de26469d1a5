"""The resources that an autoscaler reads, and their CRDs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from mcad.kube.resource import Resource
from tests.controlplane.autoscaler import KINDS

GROUP = "autoscaling.x-k8s.io"
REQUESTS = Resource(GROUP, "v1", "provisioningrequests", "ProvisioningRequest")
BUFFERS = Resource(GROUP, "v1beta1", "capacitybuffers", "CapacityBuffer")
TEMPLATES = Resource("", "v1", "podtemplates", "PodTemplate")

CLASS = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
CONSUMES = "autoscaling.x-k8s.io/consume-provisioning-request"


def crds() -> Iterator[dict[str, Any]]:
    """The CRDs as cluster-autoscaler ships them."""
    for file in sorted(KINDS.glob("*.yaml")):
        yield from (one for one in yaml.safe_load_all(file.read_text()) if one)
