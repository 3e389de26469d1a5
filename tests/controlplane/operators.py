"""Operators of others, as processes beside the control plane that they work on.

Each is its own program out of its own module (`operators/go.mod`), but for the training operator,
of which we take the part that knows its jobs (`operators/training/main.go`). Webhooks on which
an operator relies are installed as it ships them, but for the address of its process.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import re
import shutil
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from mcad.kube.types import Json
from tests.controlplane import binaries
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.processes import free_ports

NAMESPACE = "operators"
CRD_NAME = re.compile(r"^  name: (\S+)$", re.MULTILINE)  # five megabytes are not parsed for that


@dataclass(frozen=True, slots=True)
class Operator:
    """One of them: the name of its binary, and how it is told what it has to know. Of one that does
    not run there are only the kinds."""

    name: str
    runs: bool = True
    flags: tuple[str, ...] = ()
    configuration: str = ""  # the apiVersion of its configuration file, if it takes one
    pod_label: str = ""  # of the pods that its webhooks want to see


# Leader election is off: an operator would wait for the end of a lease without a holder.
KUBERAY = Operator("kuberay", flags=("--enable-leader-election=false", "--metrics-addr=0"))
KUBERAY_ALPHA = replace(
    KUBERAY, flags=(*KUBERAY.flags, "--feature-gates=RayJobDeletionPolicy=true")
)
"""Only with this gate KubeRay takes a worker group with ``suspend: true``."""
TRAINING = Operator("training")
JOBSET = Operator(
    "jobset",
    configuration="config.jobset.x-k8s.io/v1alpha1",
    pod_label="jobset.sigs.k8s.io/jobset-name",
)
LEADER_WORKER_SET = Operator(
    "lws",
    flags=("--leader-elect=false",),
    configuration="config.lws.x-k8s.io/v1alpha1",
    pod_label="leaderworkerset.sigs.k8s.io/name",
)
COSCHEDULING = Operator("coscheduling", runs=False)


class Operators:
    """Some of them with their CRDs and webhooks, ready to reconcile."""

    def __init__(self, plane: ControlPlane, *operators: Operator) -> None:
        self._plane = plane
        self._operators = operators
        self._hooks: list[Json] = []

    def __enter__(self) -> Operators:
        built = binaries.ensure_operators()
        self._install(built)
        try:
            running = [one for one in self._operators if one.runs]
            ports = [self._start(built, one) for one in running]
            for one, (health, webhooks) in zip(running, ports, strict=True):
                self._plane.wait_for(
                    lambda port=health: _answer(port, "/readyz") == 200, 60, f"{one.name} is ready"
                )
                self._hook(built, one, webhooks)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _install(self, built: Path) -> None:
        crds = [(built / f"crds-{one.name}.yaml").read_text() for one in self._operators]
        self._plane.apply("\n---\n".join(crds))
        for name in CRD_NAME.findall("\n".join(crds)):
            self._plane.wait_for_crd(name)

    def _start(self, built: Path, operator: Operator) -> tuple[int, int]:
        """Its process; returns the ports of its health and of its webhooks."""
        plane, name = self._plane, operator.name
        token = plane.service_account(NAMESPACE, name)
        plane.apply(_all_rights(name))
        health, webhooks = free_ports(2)
        command = [str(built / "bin" / name), *operator.flags]
        if operator.configuration:
            file = plane.folder / f"{name}.yaml"
            file.write_text(yaml.safe_dump(self._configuration(operator, health, webhooks)))
            command.append(f"--config={file}")
        else:
            command.append(f"--health-probe-bind-address=127.0.0.1:{health}")
        kubeconfig = plane.kubeconfig_for_token(token, name)
        hooks = str(bool(operator.pod_label)).lower()
        plane.spawn(name, command, {"KUBECONFIG": str(kubeconfig), "ENABLE_WEBHOOKS": hooks})
        return health, webhooks

    def _configuration(self, operator: Operator, health: int, webhooks: int) -> Json:
        # The API server's own certificate is one for 127.0.0.1, and its key is at hand.
        folder, ours = self._plane.folder / "webhooks", self._plane.ca_file
        folder.mkdir(exist_ok=True)
        shutil.copy(ours, folder / "tls.crt")
        shutil.copy(ours.with_suffix(".key"), folder / "tls.key")
        return {
            "apiVersion": operator.configuration,
            "kind": "Configuration",
            "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
            "metrics": {"bindAddress": "0"},
            "webhook": {"host": "127.0.0.1", "port": webhooks, "certDir": str(folder)},
            "internalCertManagement": {"enable": False},
            "leaderElection": {"leaderElect": False},
        }

    def _hook(self, built: Path, operator: Operator, port: int) -> None:
        """Install its webhooks, as soon as it answers at each of their paths."""
        if not operator.pod_label:
            return
        shipped = yaml.safe_load_all((built / f"webhooks-{operator.name}.yaml").read_text())
        objects = [_addressed(one, operator, port, self._plane.ca_file) for one in shipped]
        for path in _paths(objects):
            self._plane.wait_for(
                lambda path=path: _answer(port, path, secure=True) not in (0, 404), 60, path
            )
        self._hooks += objects
        self._plane.apply(objects)

    def _end(self) -> None:
        """The webhooks first: without their operator they would refuse what they are about."""
        for one in self._hooks:
            self._plane.kubectl("delete", one["kind"], one["metadata"]["name"])
        for operator in self._operators:
            self._plane.end(operator.name)


def _all_rights(name: str) -> Json:
    """More than it needs: its own rights are not the subject of these tests."""
    rbac = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
    }


def _addressed(hooks: Json, operator: Operator, port: int, ca_file: Path) -> Json:
    """A configuration of webhooks with the address of a process; those for pods see its own only,
    as its installation has it."""
    hooks["metadata"]["name"] = f"{operator.name}-{hooks['kind'].lower()}"
    for hook in hooks["webhooks"]:
        path = hook["clientConfig"]["service"]["path"]
        hook["clientConfig"] = {
            "url": f"https://127.0.0.1:{port}{path}",
            "caBundle": base64.b64encode(ca_file.read_bytes()).decode(),
        }
        if any("pods" in rule["resources"] for rule in hook["rules"]):
            exists = {"key": operator.pod_label, "operator": "Exists"}
            hook["objectSelector"] = {"matchExpressions": [exists]}
    return hooks


def _paths(objects: list[Json]) -> Iterator[str]:
    for one in objects:
        for hook in one["webhooks"]:
            yield "/" + hook["clientConfig"]["url"].split("/", 3)[3]


def _answer(port: int, path: str, *, secure: bool = False) -> int:
    """The code of the answer, 0 if there is none."""
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    connection = (
        http.client.HTTPSConnection("127.0.0.1", port, timeout=2, context=unverified)
        if secure
        else http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    )
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", path)
        return connection.getresponse().status
    return 0
