"""The EndpointSlice of the visibility API, written by the leader.

The Service has no selector, because only the leader has current figures. The slice is deleted with
the Service. The address of a dead leader stays until the next one writes its own; meanwhile the API
server answers 503, and the CLI computes figures itself.
"""

from __future__ import annotations

from ipaddress import ip_address

from msgspec import Struct

from mcad.kube.client import Client
from mcad.kube.kinds import ENDPOINT_SLICES, SERVICES

MANAGER = "mcad-dispatcher"
PORT_NAME = "https"
"""Of the Service's port in the chart: a slice is matched by the name."""


class Endpoint(Struct, frozen=True):
    """The Service, and the address of this process for its slice."""

    namespace: str
    service: str
    ip: str

    async def announce(self, client: Client, port: int) -> None:
        """Write the slice; raises ``KubeError``."""
        service = await client.get(SERVICES, self.namespace, self.service)
        family = f"IPv{ip_address(self.ip).version}"
        name = f"{self.service}-{family.lower()}"  # the family of a slice cannot be changed
        owner = {
            "apiVersion": "v1",
            "kind": "Service",
            "name": self.service,
            "uid": service["metadata"]["uid"],
        }
        metadata = {
            "name": name,
            "labels": {
                "kubernetes.io/service-name": self.service,
                "endpointslice.kubernetes.io/managed-by": MANAGER,
            },
            "ownerReferences": [owner],
        }
        body = {
            "metadata": metadata,
            "addressType": family,
            "endpoints": [{"addresses": [self.ip], "conditions": {"ready": True}}],
            "ports": [{"name": PORT_NAME, "port": port, "protocol": "TCP"}],
        }
        await client.apply(ENDPOINT_SLICES, self.namespace, name, body, MANAGER)
