"""KubeRay's operator, as a process beside the control plane that it works on."""

from __future__ import annotations

import contextlib
import http.client
from types import TracebackType

from tests.controlplane import binaries
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.processes import free_ports

NAME = "kuberay-operator"
NAMESPACE = "ray-system"
USER = f"system:serviceaccount:{NAMESPACE}:{NAME}"


class KubeRayOperator:
    """The operator with its CRDs, ready to reconcile. Its webhooks are off."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def __enter__(self) -> KubeRayOperator:
        binary, crds = binaries.ensure_kuberay()
        plane = self._plane
        plane.apply("\n---\n".join(crd.read_text() for crd in sorted(crds.glob("*.yaml"))))
        plane.wait_for_crd("rayclusters.ray.io")
        token = plane.service_account(NAMESPACE, NAME)
        plane.apply(_all_rights())
        health, metrics = free_ports(2)
        command = [
            str(binary),
            f"--health-probe-bind-address=127.0.0.1:{health}",
            f"--metrics-addr=127.0.0.1:{metrics}",
            "--enable-leader-election=false",  # it would wait for a lease of nobody
        ]
        kubeconfig = plane.kubeconfig_for_token(token, NAME)
        plane.spawn(NAME, command, {"KUBECONFIG": str(kubeconfig), "ENABLE_WEBHOOKS": "false"})
        try:
            plane.wait_for(lambda: _is_ready(health), 60, "KubeRay's operator is ready")
        except BaseException:
            plane.end(NAME)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._plane.end(NAME)


def _all_rights() -> dict[str, object]:
    """What it really needs is a chart's business; here it is somebody else's controller."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": NAME},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    }


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    with contextlib.closing(connection), contextlib.suppress(OSError):
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    return False
