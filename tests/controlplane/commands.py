"""How each process of a control plane is started: its files and its command line."""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests import pki
from tests.controlplane import audit, binaries

HERE = Path(__file__).parent
FRONT_PROXY = "front-proxy-client"
SERVICE_RANGE = "10.0.0.0/16"
POD_RANGE = "10.128.0.0/9"
QPS = 1000
"""Requests a second of a component: its default (20-50) would be what a benchmark measures."""
OPEN_PATHS = "/healthz,/livez,/readyz,/metrics,/metrics/resources"

# The users in RBAC and in the audit log, with their groups. RBAC knows the two components by their
# names.
ADMIN = "admin"
KWOK = "kwok"
MANAGER = "system:kube-controller-manager"
SCHEDULER = "system:kube-scheduler"
USERS = {ADMIN: "system:masters", KWOK: "system:masters", MANAGER: "", SCHEDULER: ""}


@dataclass(frozen=True, slots=True)
class Ports:
    """One of each, all on 127.0.0.1."""

    etcd: int
    etcd_peer: int
    apiserver: int
    manager: int
    scheduler: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything of one control plane is: folders, ports and tokens."""

    folder: Path
    bin: Path
    ports: Ports
    tokens: Mapping[str, str]

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.ports.apiserver}"

    @property
    def certificate(self) -> Path:
        """Written by kube-apiserver when it starts; signed by itself, so also the CA."""
        return self.folder / "certificates" / "apiserver.crt"

    @property
    def audit_log(self) -> Path:
        return self.folder / "audit.log"

    @property
    def account_key(self) -> Path:
        return self.folder / "service-accounts.key"

    @property
    def front_proxy(self) -> Path:
        """The CA and the certificate that kube-apiserver shows to servers of API groups."""
        return self.folder / "front-proxy"

    def kubeconfig(self, name: str) -> Path:
        return self.folder / f"{name.replace(':', '-')}.kubeconfig"

    def environment(self) -> dict[str, str]:
        """Nothing of the caller's, so that no kubeconfig or proxy of a person gets in."""
        # UTC, because the stages read the times that KWOK writes. GOGC, because a sixth of the API
        # server's processor time is its garbage collector's otherwise, and memory is there.
        return {"HOME": str(self.folder), "PATH": os.defpath, "TZ": "UTC", "GOGC": "400"}


def write_files(layout: Layout, *, start_delay_ms: int) -> None:
    """Everything that the processes read when they start."""
    folder = layout.folder
    layout.audit_log.touch()
    layout.account_key.write_text(_new_signing_key())
    layout.front_proxy.mkdir()
    pki.authority(layout.front_proxy, "ca")
    pki.issue(layout.front_proxy, "ca", FRONT_PROXY)
    (folder / "audit-policy.yaml").write_text(yaml.safe_dump(audit.POLICY))
    (folder / "tokens.csv").write_text(_token_file(layout.tokens))
    (folder / "stages.yaml").write_text(_stages(start_delay_ms))
    for user, token in layout.tokens.items():
        write_kubeconfig(layout, layout.kubeconfig(user), token=token, user=user)


def write_kubeconfig(layout: Layout, path: Path, *, token: str, user: str) -> None:
    name = "controlplane"
    cluster = {"server": layout.url, "certificate-authority": str(layout.certificate)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))


def etcd(layout: Layout) -> list[str]:
    client = f"http://127.0.0.1:{layout.ports.etcd}"
    return [
        str(layout.bin / "etcd"),
        f"--data-dir={layout.folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls=http://127.0.0.1:{layout.ports.etcd_peer}",
        "--unsafe-no-fsync",  # nothing here has to survive a power cut
        "--log-level=warn",
    ]


def apiserver(layout: Layout) -> list[str]:
    return [
        str(layout.bin / "kube-apiserver"),
        f"--etcd-servers=http://127.0.0.1:{layout.ports.etcd}",
        f"--cert-dir={layout.certificate.parent}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",  # or it looks for an interface with a default route
        f"--secure-port={layout.ports.apiserver}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--endpoint-reconciler-type=none",
        "--authorization-mode=Node,RBAC",
        f"--token-auth-file={layout.folder / 'tokens.csv'}",
        "--allow-privileged=true",
        f"--service-account-issuer={layout.url}",
        f"--service-account-key-file={layout.account_key}",
        f"--service-account-signing-key-file={layout.account_key}",
        f"--audit-policy-file={layout.folder / 'audit-policy.yaml'}",
        f"--audit-log-path={layout.audit_log}",
        "--audit-log-maxsize=0",  # one file, never rotated
        f"--requestheader-client-ca-file={layout.front_proxy / 'ca.crt'}",
        f"--requestheader-allowed-names={FRONT_PROXY}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={layout.front_proxy / FRONT_PROXY}.crt",
        f"--proxy-client-key-file={layout.front_proxy / FRONT_PROXY}.key",
        "--max-requests-inflight=3000",
        "--max-mutating-requests-inflight=1500",
    ]


def controller_manager(layout: Layout) -> list[str]:
    return [
        str(layout.bin / "kube-controller-manager"),
        *_component(layout, MANAGER, layout.ports.manager),
        "--use-service-account-credentials",
        f"--service-account-private-key-file={layout.account_key}",
        f"--root-ca-file={layout.certificate}",
    ]


def scheduler(layout: Layout, fields: Mapping[str, Any]) -> list[str]:
    """With these fields of a KubeSchedulerConfiguration."""
    command = [
        str(layout.bin / "kube-scheduler"),
        *_component(layout, SCHEDULER, layout.ports.scheduler),
    ]
    if not fields:
        return command
    # Beside a file kube-scheduler reads none of the flags that a file can hold.
    client = {"kubeconfig": str(layout.kubeconfig(SCHEDULER)), "qps": QPS, "burst": 2 * QPS}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": client,
        "leaderElection": {"leaderElect": False},
        **fields,
    }
    path = layout.folder / "scheduler.yaml"
    path.write_text(yaml.safe_dump(config))
    return [*command, f"--config={path}"]


def kwok(layout: Layout, *, lease_seconds: int) -> list[str]:
    return [
        str(layout.bin / "kwok"),
        f"--kubeconfig={layout.kubeconfig(KWOK)}",
        "--manage-all-nodes=true",
        f"--config={layout.folder / 'stages.yaml'}",
        f"--cidr={POD_RANGE}",
        f"--node-lease-duration-seconds={lease_seconds}",
    ]


def _component(layout: Layout, user: str, port: int) -> Iterable[str]:
    """What the two components of Kubernetes have in common."""
    return [
        f"--kubeconfig={layout.kubeconfig(user)}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        # The API server's, which saves the time to make one more.
        f"--tls-cert-file={layout.certificate}",
        f"--tls-private-key-file={layout.certificate.with_suffix('.key')}",
        "--authentication-skip-lookup=true",
        f"--authorization-always-allow-paths={OPEN_PATHS}",
        f"--kube-api-qps={QPS}",
        f"--kube-api-burst={2 * QPS}",
    ]


def _token_file(tokens: Mapping[str, str]) -> str:
    return "".join(f'{token},{user},{user},"{USERS[user]}"\n' for user, token in tokens.items())


def _stages(start_delay_ms: int) -> str:
    """stages.yaml with its markers filled in. Done on the parsed file: jq spans lines."""
    jq = (HERE / "pod-end.jq").read_text()
    version = binaries.kubernetes_version()

    def fill(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: fill(one) for key, one in value.items()}
        if isinstance(value, list):
            return [fill(one) for one in value]
        if value == "@start-delay-ms@":
            return start_delay_ms
        if isinstance(value, str):
            return value.replace("@jq@", jq).replace("@version@", version)
        return value

    stages = yaml.safe_load_all((HERE / "stages.yaml").read_text())
    return yaml.safe_dump_all([fill(stage) for stage in stages])


def _new_signing_key() -> str:
    """A P-256 private key as PEM (RFC 5915; the public half is optional and left out).

    By hand, so that the tests need neither `openssl` nor a cryptography package.
    """
    secret = secrets.token_bytes(31).rjust(32, b"\1")  # below the order of the curve, not zero
    curve = bytes.fromhex("a00a06082a8648ce3d030107")  # [0] { OID prime256v1 }
    fields = b"\x02\x01\x01" + b"\x04\x20" + secret + curve
    der = b"\x30" + bytes([len(fields)]) + fields
    text = base64.encodebytes(der).decode()
    return f"-----BEGIN EC PRIVATE KEY-----\n{text}-----END EC PRIVATE KEY-----\n"
