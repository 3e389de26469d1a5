"""Start, use and stop one Kubernetes control plane on 127.0.0.1.

etcd, kube-apiserver, kube-controller-manager and kube-scheduler are the real ones; KWOK plays the
kubelets, by the rules in stages.yaml. Everything that one control plane writes is in one folder.
"""

from __future__ import annotations

import http.client
import json
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tests.controlplane import audit, binaries, commands
from tests.controlplane.audit import AuditEntry
from tests.controlplane.commands import Layout, Ports
from tests.controlplane.processes import ProcessDiedError, ProcessGroup, free_ports, listens, tail
from tests.controlplane.rest import Reply, Rest, decoded

T = TypeVar("T")
Object = dict[str, Any]

START_ATTEMPTS = 3  # a port that was free can be taken before its process binds it
START_SECONDS = 60.0
POLL_SECONDS = 0.05
SELDOM_SECONDS = 0.25
USER_AGENT = "controlplane-test"

# An API server that has lost its etcd ignores SIGTERM, so the last two end one after the other.
STOP_ORDER = ("kwok", "kube-scheduler", "kube-controller-manager"), ("kube-apiserver",), ("etcd",)


class KubectlError(Exception):
    """kubectl ended with an error; the message is what it wrote."""


class RefusedError(Exception):
    """The API server refused a request that a helper here made."""


class ControlPlane:
    """A control plane of one's own, ready a few seconds after `start`.

    `start_delay_ms` is how long a scheduled pod stays Pending (an annotation of the pod,
    `controlplane.test/start-delay: 3s`, overrides it). `lease_seconds` is how long a node lives
    without a sign of life; KWOK gives four in that time. `extra_args` are flags per process
    name. With `folder`, everything stays there; without, it is a temporary one. `kinds` are the
    CRDs (YAML) that are there before the garbage collector, which looks for new ones every 30 s.
    `environment` is added to that of every process.
    """

    def __init__(
        self,
        *,
        start_delay_ms: int = 1000,
        lease_seconds: int = 40,
        extra_args: Mapping[str, Sequence[str]] | None = None,
        folder: Path | None = None,
        kinds: str = "",
        environment: Mapping[str, str] | None = None,
        scheduler: Mapping[str, Any] | None = None,
    ) -> None:
        self._start_delay_ms = start_delay_ms
        self._lease_seconds = lease_seconds
        self._extra_args = dict(extra_args or {})
        self._kept_folder = folder
        self.kinds = kinds
        self._environment = dict(environment or {})
        self._scheduler = dict(scheduler or {})
        self._group: ProcessGroup | None = None
        self._rest: Rest | None = None

    # Start and stop

    def start(self) -> ControlPlane:
        bin_folder = binaries.ensure()
        for attempt in range(1, START_ATTEMPTS + 1):
            try:
                self._start(bin_folder)
            except ProcessDiedError:
                self.stop()
                if attempt == START_ATTEMPTS:
                    raise
            except BaseException:
                self.stop()
                raise
            else:
                break
        return self

    def stop(self) -> None:
        """End everything, clients first. Does no harm twice, or after half a start."""
        if self._rest is not None:
            self._rest.close()
            self._rest = None
        if self._group is not None:
            ours = {name for step in STOP_ORDER for name in step}
            for step in ([name for name in self._group if name not in ours], *STOP_ORDER):
                self._group.end(step)
            self._group.close()
            self._group = None
            if self._kept_folder is None:
                shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> ControlPlane:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self, bin_folder: Path) -> None:
        self.folder = self._new_folder()
        self._group = ProcessGroup(self.folder, remove=self._kept_folder is None)
        tokens = {user: secrets.token_hex(16) for user in commands.USERS}
        self.layout = layout = Layout(self.folder, bin_folder, Ports(*free_ports(5)), tokens)
        self.url, self.ca_file, self.audit_log = layout.url, layout.certificate, layout.audit_log
        self.admin_kubeconfig = layout.kubeconfig(commands.ADMIN)
        commands.write_files(layout, start_delay_ms=self._start_delay_ms)
        self._spawn("etcd", commands.etcd(layout))
        self._until(lambda: listens(layout.ports.etcd), "etcd listens")
        self._spawn("kube-apiserver", commands.apiserver(layout))
        self._until(lambda: listens(layout.ports.apiserver), "kube-apiserver listens")
        # Another process may have taken the port meanwhile; then ours ends without one.
        self._until(layout.certificate.exists, "kube-apiserver has a certificate")
        self._rest = Rest(layout.url, layout.certificate, layout.tokens[commands.ADMIN], USER_AGENT)
        self._until(self.ready, "kube-apiserver is ready")
        if self.kinds:
            self.apply(self.kinds)
        self._spawn("kube-controller-manager", commands.controller_manager(layout))
        self._spawn("kube-scheduler", commands.scheduler(layout, self._scheduler))
        self._spawn("kwok", commands.kwok(layout, lease_seconds=self._lease_seconds))
        self._until(lambda: listens(layout.ports.scheduler), "kube-scheduler listens")
        self._until(lambda: self._takes_pods("default"), "the controller manager works")
        self._until(lambda: self._takes_pods("kube-system"), "the controller manager works")

    def _new_folder(self) -> Path:
        if self._kept_folder is None:
            return Path(tempfile.mkdtemp(prefix="mcad-controlplane-"))
        self._kept_folder.mkdir(parents=True, exist_ok=True)
        return self._kept_folder.resolve()

    def _spawn(self, name: str, command: list[str]) -> None:
        self.spawn(name, [*command, *self._extra_args.get(name, ())])

    def _until(self, predicate: Callable[[], object], what: str) -> None:
        """Like wait_for, but gives up as soon as a process has ended."""

        def checked() -> object:
            self._running.check()
            return predicate()

        self.wait_for(checked, START_SECONDS, what)

    # Processes

    @property
    def _running(self) -> ProcessGroup:
        assert self._group is not None, "the control plane is not running"
        return self._group

    def process(self, name: str) -> subprocess.Popen[bytes]:
        """To kill or to pause: etcd, kube-apiserver, kube-scheduler, kwok, ..."""
        return self._running[name]

    def log(self, name: str) -> Path:
        return self._running.log(name)

    def spawn(
        self, name: str, command: Sequence[str], env: Mapping[str, str] | None = None
    ) -> None:
        """Run one more process that ends with the control plane, before its own processes."""
        environment = {**self.layout.environment(), **self._environment, **(env or {})}
        self._running.spawn(name, command, environment)

    def end(self, name: str) -> None:
        self._running.end([name])

    def restart(self, name: str) -> None:
        """Start a process again, at its old address; end it first if it still runs."""
        self._running.end([name])
        self._running.respawn(name)

    def ready(self) -> bool:
        try:
            return self.request("GET", "/readyz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    # Rights

    def kubeconfig_for_token(self, token: str, name: str) -> Path:
        path = self.layout.kubeconfig(name)
        commands.write_kubeconfig(self.layout, path, token=token, user=name)
        return path

    def service_account(self, namespace: str, name: str) -> str:
        """A token of that ServiceAccount, good for a day. Makes the account if need be."""
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        self.create_namespace(namespace)
        self._ensure(accounts, {"metadata": {"name": name}})
        wish = {"spec": {"expirationSeconds": 24 * 3600}}
        answer = self.ask("POST", f"{accounts}/{name}/token", wish)
        token: str = answer["status"]["token"]
        return token

    # Requests

    def request(self, method: str, path: str, body: object = None, **options: str) -> Reply:
        """Status and decoded body, as the admin. Options are those of `Rest.send`."""
        status, raw = self.raw(method, path, body, **options)
        return status, decoded(raw)

    def raw(self, method: str, path: str, body: object = None, **options: str) -> tuple[int, bytes]:
        """Status and body as it came."""
        assert self._rest is not None, "the control plane is not running"
        return self._rest.send(method, path, body, **options)

    def warned(self, path: str, body: object) -> tuple[int, list[str]]:
        """Status and warnings of the answer to a POST."""
        assert self._rest is not None, "the control plane is not running"
        status, headers, _ = self._rest.exchange("POST", path, body)
        return status, [_text_of(one) for one in headers.get_all("Warning", [])]

    def ask(self, method: str, path: str, body: object = None, **options: str) -> Object:
        """The decoded body; RefusedError for a status of 400 and more."""
        status, answer = self.request(method, path, body, **options)
        if status >= 400:
            raise RefusedError(f"{method} {path}: {status}: {answer.get('message', answer)}")
        return answer

    def get(self, path: str, accept: str = "application/json") -> Object:
        """What is at this path."""
        return self.ask("GET", path, accept=accept)

    def kubectl(
        self,
        *args: str,
        stdin: str | None = None,
        kubeconfig: Path | None = None,
        check: bool = True,
    ) -> str:
        """What kubectl prints. Without `check`, what it complains of comes after that."""
        done = subprocess.run(
            [
                str(self.layout.bin / "kubectl"),
                f"--kubeconfig={kubeconfig or self.admin_kubeconfig}",
                f"--cache-dir={self.folder / 'kubectl-cache'}",
                *args,
            ],
            input=stdin,
            env=self.layout.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if not check:
            return done.stdout + done.stderr
        if done.returncode != 0:
            raise KubectlError(f"kubectl {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def apply(self, objects: str | Object | Iterable[Object], *, namespace: str = "") -> str:
        """Apply YAML, one object or several, server-side.

        `namespace` is for objects that do not name one; they go to `default` otherwise.
        """
        if isinstance(objects, str):
            text = objects
        else:
            items = [objects] if isinstance(objects, dict) else list(objects)
            text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        how = ["--server-side", "--force-conflicts", f"--field-manager={USER_AGENT}"]
        where = [f"--namespace={namespace}"] if namespace else []
        return self.kubectl("apply", *how, *where, "-f", "-", stdin=text)

    def create_namespace(self, name: str) -> None:
        """Make a namespace, if it is missing, and wait until pods can be created in it."""
        self._ensure("/api/v1/namespaces", {"metadata": {"name": name}})
        self.wait_for(lambda: self._takes_pods(name), 30, f"{name} has its default account")

    def _takes_pods(self, namespace: str) -> bool:
        """Every pod needs the account that the controller manager makes in each namespace."""
        account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
        return self.request("GET", account)[0] == 200

    def wait_for_crd(self, name: str) -> None:
        """Until its objects can be created. kubectl's own wait gives up before there are any
        conditions."""
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"

        def is_established() -> bool:
            conditions = self.get(path).get("status", {}).get("conditions") or []
            return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

        self.wait_for(is_established, what=f"{name} is established")

    def _ensure(self, collection: str, thing: Object) -> None:
        status, answer = self.request("POST", collection, thing)
        if status >= 400 and status != 409:
            raise RefusedError(f"POST {collection}: {status}: {answer.get('message', answer)}")

    # Nodes

    def add_node(
        self,
        name: str,
        cpu: str = "4",
        memory: str = "16Gi",
        pods: int = 110,
        *,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] | None = None,
        extended: Mapping[str, str] | None = None,
        wait: bool = True,
    ) -> None:
        """Add a node; wait until pods can go there. `extended` are more resources, as GPUs."""
        capacity = {"cpu": cpu, "memory": memory, "pods": str(pods), **(extended or {})}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
                | dict(labels or {}),
            },
            "spec": {"taints": list(taints or [])},
            "status": {"capacity": capacity, "allocatable": capacity},
        }
        self.ask("POST", "/api/v1/nodes", node)
        if wait:
            self.wait_for_nodes([name])

    def wait_for_nodes(self, names: Iterable[str], timeout: float = 60) -> None:
        """For nodes that were added with wait=False."""
        wanted = set(names)

        def all_ready() -> bool:
            nodes = self.get("/api/v1/nodes")["items"]
            return wanted <= {node["metadata"]["name"] for node in nodes if _is_ready(node)}

        self.wait_for(all_ready, timeout, f"{len(wanted)} nodes are ready")

    def spoil_node(self, name: str) -> None:
        """Let a node be NotReady, whatever its lease says. Pods on it go on; those with the
        annotation `controlplane.test/hangs` do not end when they are deleted."""
        path, patch = f"/api/v1/nodes/{name}", "application/merge-patch+json"
        mark = {"metadata": {"annotations": {"controlplane.test/not-ready": "true"}}}
        self.ask("PATCH", path, mark, content_type=patch)
        ready = {"type": "Ready", "status": "False", "reason": "KubeletNotReady"}
        said = {"status": {"conditions": [ready]}}
        self.ask("PATCH", f"{path}/status", said, content_type=patch)

    def remove_node(self, name: str) -> None:
        self.ask("DELETE", f"/api/v1/nodes/{name}")

    # Observation

    def audit(self, since: int = 0) -> list[AuditEntry]:
        """Every request so far; with a mark, those after it."""
        return audit.read(self.audit_log, since)

    def audit_mark(self) -> int:
        """A position for `audit`. Entries come just after the responses that they are about."""
        return audit.end(self.audit_log)

    def wait_for(self, predicate: Callable[[], T], timeout: float = 30, what: str = "") -> T:
        """The first true answer of `predicate`."""
        began = time.monotonic()
        while True:
            asked_at = time.monotonic()
            if answer := predicate():
                return answer
            answered_at = time.monotonic()
            if answered_at > began + timeout:
                break
            # The longer the wait, the less often the question: nineteen questions a second for a
            # minute cost as much processor time as the start of a control plane. An expensive
            # question is asked half of the time, not all of it.
            pace = min(SELDOM_SECONDS, (answered_at - began) / 20)
            time.sleep(max(POLL_SECONDS, pace, answered_at - asked_at))
        raise TimeoutError(f"not within {timeout:g} s: {what or predicate}{self._obituary()}")

    def _obituary(self) -> str:
        dead = self._group.dead() if self._group is not None else []
        return "".join(f"\n{name} has ended:\n{tail(self.log(name), 1000)}" for name in dead)


def _text_of(warning: str) -> str:
    """The text in the value of a header Warning: ``299 - "text"``."""
    return warning.split(" ", 2)[2].strip('"').replace('\\"', '"')


def _is_ready(node: Object) -> bool:
    """Ready, and the scheduler may know it: the controller manager has taken the taint away."""
    ready = any(
        one["type"] == "Ready" and one["status"] == "True"
        for one in node.get("status", {}).get("conditions", [])
    )
    taints = node["spec"].get("taints", [])
    return ready and not any(one["key"].startswith("node.kubernetes.io/") for one in taints)
