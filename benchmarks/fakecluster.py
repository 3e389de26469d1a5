"""An API server that only makes bytes: pages and watch lines of as many objects as one likes.

It stands behind ``mcad.kube.port.Api``, so what is measured is our own process and no socket.
``spent_s`` is the CPU time that it took itself, to be subtracted. Objects have the size and the
fields of real ones, managed fields included.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import contextmanager
from typing import Any

import yaml

from mcad.kube.port import Request, Response, nothing

Json = dict[str, Any]
GROUP = "workload.codeflare.dev"
KINDS = [
    ("", "v1", "pods", "Pod"),
    ("", "v1", "nodes", "Node"),
    ("batch", "v1", "jobs", "Job"),
    (GROUP, "v1beta2", "appwrappers", "AppWrapper"),
]
PODS_PER_NODE = 10
SETTINGS = 165
"""Environment variables of an AppWrapper's container: its manifest has 8.6 kB, all of it 10.7."""
BOOKMARK_S = 60.0  # of silence, as a real server has it
STAMP = "2026-01-01T00:00:00Z"
MICRO = "2026-01-01T00:00:00.000000Z"


def _fields(*names: str) -> list[Json]:
    """managedFields as two managers leave them."""
    tree = {"f:" + name: {"f:" + inner: {} for inner in names} for name in names}
    rest = {"operation": "Update", "apiVersion": "v1", "time": STAMP, "fieldsType": "FieldsV1"}
    managers = ("kubectl-client-side-apply", "kubelet")
    return [{"manager": manager} | rest | {"fieldsV1": tree} for manager in managers]


def _container(cpu: str, env: int) -> Json:
    found: Json = yaml.safe_load(CONTAINER)
    found["env"] = [{"name": f"SETTING_{n}", "value": f"value number {n}"} for n in range(env)]
    found["resources"] = {"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
    return found


CONTAINER = """
name: main
image: registry.example/team/trainer:1.4.2
command: [python, -m, trainer, --steps, "1000"]
volumeMounts: [{name: token, mountPath: /var/run/secrets, readOnly: true}]
terminationMessagePath: /dev/termination-log
imagePullPolicy: IfNotPresent
"""
POD = f"""
metadata:
  name: foreign-@N@-x7k2p
  generateName: foreign-@N@-
  namespace: team-@M@
  uid: 00000000-0000-4000-8000-pod00@N@
  resourceVersion: "@V@"
  creationTimestamp: "{STAMP}"
  labels: {{app: foreign, pod-template-hash: 5d8f7c9b6d}}
  annotations: {{checksum/config: "{"0" * 64}"}}
  ownerReferences:
  - apiVersion: apps/v1
    kind: ReplicaSet
    name: foreign-@M@
    uid: 00000000-0000-4000-8000-rs0000@M@
    controller: true
    blockOwnerDeletion: true
spec:
  nodeName: node-@NODE@
  volumes: [{{name: token, projected: {{sources: [{{configMap: {{name: c}}}}]}}}}]
  restartPolicy: Always
  serviceAccountName: default
  schedulerName: default-scheduler
status:
  phase: Running
  hostIP: 10.0.0.1
  podIP: 10.1.0.1
  startTime: "{STAMP}"
  qosClass: Burstable
  containerStatuses:
  - name: main
    state: {{running: {{startedAt: "{STAMP}"}}}}
    ready: true
    restartCount: 0
    image: registry.example/team/trainer:1.4.2
    imageID: registry.example/team/trainer@sha256:{"0" * 64}
    containerID: containerd://{"0" * 64}
    allocatedResources: {{cpu: 3200m, memory: 1Gi}}
    resources: {{requests: {{cpu: 3200m, memory: 1Gi}}}}
"""
NODE = f"""
metadata:
  name: node-@E@
  uid: 00000000-0000-4000-8000-node@N@
  resourceVersion: "@V@"
  creationTimestamp: "{STAMP}"
  annotations: {{node.alpha.kubernetes.io/ttl: "0"}}
spec: {{podCIDR: 10.1.0.0/24}}
status: {{}}
"""
APPWRAPPER = f"""
metadata:
  name: aw-@N@
  namespace: team-@M@
  uid: 00000000-0000-4000-8000-aw000@N@
  generation: 1
  resourceVersion: "@V@"
  creationTimestamp: "{STAMP}"
spec:
  components:
  - template:
      apiVersion: batch/v1
      kind: Job
      metadata: {{name: job-@N@, labels: {{app: job-@N@}}}}
      spec:
        parallelism: 2
        completions: 2
        template: {{metadata: {{labels: {{app: job-@N@}}}}, spec: {{restartPolicy: Never}}}}
"""


def _pod() -> Json:
    made: Json = yaml.safe_load(POD)
    fields = ("labels", "spec", "status", "conditions", "containers")
    made["metadata"]["managedFields"] = _fields(*fields)
    made["spec"]["containers"] = [_container("3200m", 10)]
    taint = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    made["spec"]["tolerations"] = [
        {"key": f"node.kubernetes.io/{name}"} | taint for name in ("not-ready", "unreachable")
    ]
    so = {"status": "True", "lastTransitionTime": STAMP, "observedGeneration": 1}
    kinds = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    made["status"]["conditions"] = [{"type": kind} | so for kind in kinds]
    return made


def _node() -> Json:
    made: Json = yaml.safe_load(NODE)
    labels = {f"label-{n}.example/name": f"value-{n}" for n in range(18)}
    made["metadata"]["labels"] = labels | {"kubernetes.io/hostname": "node-@E@"}
    made["metadata"]["managedFields"] = _fields("labels", "spec", "status", "conditions")
    has = {"cpu": "32", "memory": "128Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    states = {"MemoryPressure": "False", "DiskPressure": "False", "Ready": "True"}
    so = {"lastHeartbeatTime": STAMP, "reason": "KubeletHasIt"}
    made["status"] = {
        "allocatable": has,
        "capacity": has,
        "conditions": [{"type": kind, "status": state} | so for kind, state in states.items()],
        "images": [
            {"names": [f"registry.example/image-{n}:1"], "sizeBytes": 10**8} for n in range(50)
        ],
    }
    return made


def _appwrapper(shapes: int, settings: int) -> Json:
    made: Json = yaml.safe_load(APPWRAPPER)
    made["metadata"]["managedFields"] = _fields("labels", "spec", "status")
    (component,) = made["spec"]["components"]
    pod = component["template"]["spec"]["template"]["spec"]
    pod["containers"] = [_container("@SHAPE@" if shapes > 1 else "1", settings)]
    return made


def _waiting(message: str) -> Json:
    """The status of an AppWrapper that a process before us refused."""
    times = dict.fromkeys(
        ("lastUpdateMicroTime", "lastTransitionMicroTime", "lastTransitionTime"), MICRO
    )
    conditions = [
        {"type": kind, "status": "True", "reason": reason, "message": words} | times
        for kind, reason, words in (
            ("Init", "", ""),
            ("Queueing", "AwaitingHeadOfLine", ""),
            ("HeadOfLine", "FrontOfQueue.", ""),
            ("Backoff", "AppWrapperNotRunnable.", message),
        )
    ]
    return {
        "state": "Pending",
        "phase": "Suspended",
        "queuejobstate": "Backoff",
        "controllerfirsttimestamp": "2026-01-01T00:00:00.@N@Z",
        "conditions": conditions,
        "filterignore": True,
        "sender": "before ScheduleNext - Backoff",
    }


class Template:
    """An object as JSON text with its places to fill in."""

    def __init__(self, obj: Json, shapes: int = 1) -> None:
        self._text = json.dumps(obj, separators=(",", ":")).encode()
        self._shapes = shapes

    def fill(self, number: int, version: int) -> bytes:
        """Object ``number`` at a resourceVersion."""
        text = self._text
        for place, value in (
            (b"@NODE@", b"%05d" % (number // PODS_PER_NODE)),
            (b"@N@", b"%06d" % number),
            (b"@M@", b"%03d" % (number % 100)),
            (b"@V@", b"%d" % version),
            (b"@SHAPE@", b"%dm" % (1000 + number % self._shapes)),
        ):
            text = text.replace(place, value)
        return text


class FakeCluster:
    """``Api`` of a cluster with so many objects, which all stay as they are unless told.

    Every node is full but the ``roomy`` last ones. ``echo`` sends watch events for our writes.
    """

    def __init__(
        self,
        *,
        appwrappers: int,
        nodes: int,
        shapes: int = 100,
        settings: int = SETTINGS,
        roomy: int = 0,
        queued: bool = True,
        echo: bool = True,
    ) -> None:
        self.spent_s = 0.0
        self.writes: list[str] = []
        self.wrote: Callable[[str], None] = lambda _: None
        self._echo = echo
        self._version = 1_000_000
        aw = _appwrapper(shapes, settings)
        if queued:
            aw["status"] = _waiting("Insufficient resources to dispatch AppWrapper.")
        self.templates = {
            "appwrappers": Template(aw, shapes),
            "pods": Template(_pod()),
            "nodes": _NodeTemplate(_node()),
        }
        self._counts = {
            "appwrappers": appwrappers,
            "nodes": nodes,
            "pods": (nodes - roomy) * PODS_PER_NODE,
        }
        self._watches: dict[str, asyncio.Queue[bytes]] = {}

    @contextmanager
    def _not_ours(self) -> Any:
        began = time.process_time()
        try:
            yield
        finally:
            self.spent_s += time.process_time() - began

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        """One exchange."""
        await asyncio.sleep(0)
        with self._not_ours():
            return self._answer(request)

    async def stream(
        self, request: Request, idle_timeout: float, opened: Callable[[], None] = nothing
    ) -> AsyncGenerator[bytes, None]:
        """A watch: whatever ``send`` is given, and bookmarks while it is silent."""
        queue = self._watches.setdefault(request.path.rsplit("/", 1)[-1], asyncio.Queue())
        opened()
        while True:
            try:
                yield await asyncio.wait_for(queue.get(), BOOKMARK_S)
            except TimeoutError:
                yield self._bookmark()

    def _bookmark(self) -> bytes:
        meta = {"metadata": {"resourceVersion": str(self._version)}}
        return _bytes({"type": "BOOKMARK", "object": meta})

    def send(self, plural: str, line: bytes) -> None:
        """Send a line on the watch of a kind."""
        self._watches.setdefault(plural, asyncio.Queue()).put_nowait(line)

    def event(self, plural: str, number: int) -> bytes:
        """A line: an object has changed without any difference that matters to us."""
        self._version += 1
        text = self.templates[plural].fill(number, self._version)
        return b'{"type":"MODIFIED","object":' + text + b"}"

    def _answer(self, request: Request) -> Response:
        path = request.path
        if path in ("/api", "/apis"):
            return Response(200, _bytes(_discovery(path)))
        if request.method == "GET":
            return Response(200, self._page(path.rsplit("/", 1)[-1], request.params))
        self._version += 1
        self.writes.append(request.method + " " + path)
        self.wrote(self.writes[-1])
        if path.endswith("/status") and self._echo:
            self._echo_status(path, request.body)
        metadata = {"uid": f"uid-{self._version}", "resourceVersion": str(self._version)}
        return Response(200, _bytes({"metadata": metadata}))

    def _echo_status(self, path: str, body: Any) -> None:
        number = int(path.split("/")[-2].removeprefix("aw-"))
        status = body[body.index(b',"status":') : -1]
        text = self.templates["appwrappers"].fill(number, self._version)
        text = text.partition(b',"status":')[0].removesuffix(b"}")
        self.send("appwrappers", b'{"type":"MODIFIED","object":' + text + status + b"}}")

    def _page(self, plural: str, params: Any) -> bytes:
        count = self._counts.get(plural, 0)
        begin = int(params.get("continue", "0"))
        end = min(count, begin + int(params.get("limit", count)))
        meta: Json = {"resourceVersion": "1000000"}
        if end < count:
            meta["continue"] = str(end)
        items = b",".join(self.templates[plural].fill(n, 1000 + n) for n in range(begin, end))
        return b'{"kind":"List","metadata":' + _bytes(meta) + b',"items":[' + items + b"]}"


class _NodeTemplate(Template):
    def fill(self, number: int, version: int) -> bytes:
        """A node's number is its own, that of a pod's node is by tens."""
        return super().fill(number, version).replace(b"@E@", b"%05d" % number)


def _bytes(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _discovery(root: str) -> Json:
    groups: dict[tuple[str, str], list[Json]] = {}
    for group, version, plural, kind in KINDS:
        scope = "Cluster" if plural == "nodes" else "Namespaced"
        one = {"resource": plural, "responseKind": {"kind": kind}, "scope": scope}
        if (root == "/api") is (group == ""):
            groups.setdefault((group, version), []).append(one)
    items = [
        {"metadata": {"name": group}, "versions": [{"version": version, "resources": found}]}
        for (group, version), found in groups.items()
    ]
    return {"kind": "APIGroupDiscoveryList", "items": items}
