"""The arms of ``kueue_shapes``: Kueue's own minimalkueue, the same with jobs, and the dispatcher.

minimalkueue is built from the Go module of Kueue. Its requests a second are a constant (50, burst
100), and it has no controller of jobs; here both are flags, and that is all that is changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.kueue_load import COHORT, NOMINAL, Json, Shape, Sight, Workload
from mcad.kube.client import Client
from mcad.kube.port import MERGE_PATCH, Request
from mcad.kube.resource import Resource
from tests.controlplane import binaries
from tests.controlplane.controlplane import ControlPlane
from tests.e2e.process import ACCOUNT, NAMESPACE, USER, Dispatcher, install, printed
from tests.manifests import subtree

KUEUE = "sigs.k8s.io/kueue"
KUEUE_VERSION = "v0.19.2"
MINIMAL = "test/performance/scheduler/minimalkueue"
TREE = "teams"
BEST_EFFORT = "BestEffortFIFO"
"""The strategy of the queues in Kueue's harness."""
JOB = Resource("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob")
"""The item: a kind whose pods the dispatcher knows how to count, and whose operator is not there.

Of kinds that it does not know, it counts the pods that were declared and have not succeeded (C2).
"""
APPWRAPPERS = Resource("workload.codeflare.dev", "v1beta1", "appwrappers", "AppWrapper")
WORKLOADS = Resource("kueue.x-k8s.io", "v1beta2", "workloads", "Workload")
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
JOB_CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: pytorchjobs.kubeflow.org
spec:
  group: kubeflow.org
  scope: Namespaced
  names: {plural: pytorchjobs, singular: pytorchjob, kind: PyTorchJob, listKind: PyTorchJobList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
DEFAULTS = (
    "quotaEnabled=true",
    "preemption=true",
    'wrappedResources=[{apiGroup: "", resources: [pods]},'
    " {apiGroup: kubeflow.org, resources: [pytorchjobs]}]",
    "minRunTime=0",
    "maxEvictionsPerMinute=0",
)
ACTIVE_S = 300.0
"""With 50 requests a second a thousand ClusterQueues are not active within a minute."""


class OfJobs:
    """An arm whose workloads are jobs."""

    watched = JOB

    async def finish(self, client: Client, sight: Sight) -> None:
        """The condition that the operator of a job writes when it is done; not on a successor of
        the same name."""
        namespace, name = sight.key
        patch = {
            "metadata": {"uid": sight.obj["metadata"]["uid"]},
            "status": {"conditions": [{"type": "Succeeded", "status": "True"}]},
        }
        await client.patch_status(JOB, namespace, name, patch)

    async def give_way(self, client: Client, sight: Sight) -> None:
        """A job without pods has nothing to stop."""


class Mcad(OfJobs):
    """The dispatcher; a workload is an AppWrapper with one item.

    That is one create more for each workload than Kueue makes, which only sets a flag.
    """

    user = USER

    def __init__(self, *, qps: float = 0.0, settings: tuple[str, ...] = ()) -> None:
        """More ``settings`` are ``key=value``."""
        self._qps = qps
        self._account = Path()
        self._flags = [flag for one in (*DEFAULTS, *settings) for flag in ("--set", one)]

    @property
    def kinds(self) -> str:
        """What is installed before the garbage collector starts."""
        return printed("crd") + "\n---\n" + JOB_CRD

    def prepare(self, plane: ControlPlane, shape: Shape) -> None:
        """Set up quotas and nodes."""
        self._account = install(plane)
        plane.apply(printed("rbac", "-n", NAMESPACE, "--service-account", ACCOUNT, *self._flags))
        plane.apply(quotas(shape))
        plane.add_node("node", cpu=str(2 * shape.nominal), memory="1Ti", pods=20_000)
        wait_for_collector(plane)

    @contextmanager
    def running(self, plane: ControlPlane, shape: Shape) -> Iterator[int]:
        """Run it; its process."""
        limit = {"BENCH_QPS": str(self._qps)} if self._qps else {}
        module = "benchmarks.limited" if self._qps else "mcad"
        with Dispatcher(plane, self._account, *self._flags, env=limit, module=module) as running:
            yield running.pid

    def written(self, work: Workload) -> tuple[Resource, Json]:
        """An AppWrapper."""
        item = {"generictemplate": job(work), "completionstatus": "Succeeded"}
        spec = {"priority": work.of.priority, "resources": {"GenericItems": [item]}}
        return APPWRAPPERS, _object(APPWRAPPERS, work, {TREE: work.queue}, spec)

    def seen(self, kind: str, obj: Json) -> Sight:
        """The item is there, or it is being deleted."""
        gone = kind == "DELETED" or "deletionTimestamp" in obj["metadata"]
        return _sight(obj, admitted=not gone)


class Kueue:
    """minimalkueue, with Kueue's CRDs and without its webhooks, as in its own harness."""

    watched = WORKLOADS
    user = "system:serviceaccount:kueue-system:kueue"
    flags: tuple[str, ...] = ()

    def __init__(self, *, qps: float = 50.0, strategy: str = BEST_EFFORT) -> None:
        """``qps`` requests a second of its client for each kind; 0: no limit. ``strategy`` is that
        of its queues."""
        self._qps = qps or -1.0
        self._strategy = strategy
        self._kubeconfig = Path()

    @property
    def kinds(self) -> str:
        """What is installed before the garbage collector starts."""
        folder = module() / "config/components/crd/bases"
        return "\n---\n".join(one.read_text() for one in sorted(folder.glob("*.yaml")))

    def prepare(self, plane: ControlPlane, shape: Shape) -> None:
        """Set up its queues."""
        plane.add_node("node", cpu="1", memory="1Gi")  # both arms have a node with a lease
        token = plane.service_account("kueue-system", "kueue")
        subject = {"kind": "ServiceAccount", "namespace": "kueue-system", "name": "kueue"}
        rbac = "rbac.authorization.k8s.io"
        role = {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"}
        metadata = {"name": "kueue"}
        binding = {"apiVersion": f"{rbac}/v1", "kind": "ClusterRoleBinding", "metadata": metadata}
        plane.apply(binding | {"roleRef": role, "subjects": [subject]})
        plane.apply(queues(shape, self._strategy))
        self._kubeconfig = plane.kubeconfig_for_token(token, "kueue")

    @contextmanager
    def running(self, plane: ControlPlane, shape: Shape) -> Iterator[int]:
        """Run it; its process."""
        command = [str(minimal_kueue()), f"--kubeconfig={self._kubeconfig}", f"--qps={self._qps:g}"]
        plane.spawn("minimalkueue", [*command, *self.flags])
        plane.wait_for(lambda: _all_active(plane), ACTIVE_S, "all ClusterQueues are active")
        yield plane.process("minimalkueue").pid
        plane.end("minimalkueue")

    def written(self, work: Workload) -> tuple[Resource, Json]:
        """A Workload with one pod set."""
        container = {"name": "c", "resources": work.of.requests}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        pods: Json = {"name": "main", "count": work.of.pods, "template": template}
        spec = {"queueName": work.queue, "priority": work.of.priority, "podSets": [pods]}
        return WORKLOADS, _object(WORKLOADS, work, {}, spec)

    def seen(self, kind: str, obj: Json) -> Sight:
        """Whether it is admitted and not evicted."""
        admitted = _shows(obj, "Admitted") and not _shows(obj, "Evicted")
        return _sight(obj, admitted=admitted)

    async def finish(self, client: Client, sight: Sight) -> None:
        """What Kueue's runner writes, in the same way."""
        namespace, name = sight.key
        now = {"reason": "ByTest", "message": "By test runner", "lastTransitionTime": _now()}
        done = {"type": "Finished", "status": "True", **now}
        body = {
            "apiVersion": WORKLOADS.api_version,
            "kind": WORKLOADS.kind,
            "metadata": {"name": name, "namespace": namespace, "uid": sight.obj["metadata"]["uid"]},
            "status": {"conditions": [done]},
        }
        manager = {"fieldManager": "job_controller-Finished", "force": "true"}
        path = WORKLOADS.path(namespace, name, "status")
        request = Request("PATCH", path, manager, body, "application/apply-patch+yaml")
        await _sent(client, request)

    async def give_way(self, client: Client, sight: Sight) -> None:
        """Return the quota of an evicted workload, as Kueue's runner does."""
        obj, (namespace, name) = sight.obj, sight.key
        if not (_shows(obj, "Evicted") and _shows(obj, "QuotaReserved")):
            return
        no = {"status": "False", "lastTransitionTime": _now()}
        said = {
            "QuotaReserved": no | {"reason": "Pending", "message": "Evicted by the test runner"},
            "Admitted": no | {"reason": "NoReservation", "message": "No reservation"},
        }
        conditions = [one | said.get(one["type"], {}) for one in obj["status"]["conditions"]]
        patch = {
            "metadata": {"resourceVersion": obj["metadata"]["resourceVersion"]},
            "status": {"admission": None, "conditions": conditions},
        }
        path = WORKLOADS.path(namespace, name, "status")
        await _sent(client, Request("PATCH", path, {}, patch, MERGE_PATCH))


class KueueJobs(OfJobs, Kueue):
    """minimalkueue with Kueue's own controller of PyTorchJobs, which is how it is used: the job is
    created suspended, Kueue makes a Workload of it, and an admitted job is resumed.

    Its operator is not there, as in the arm of the dispatcher, and the item is the same.
    """

    flags = ("--jobs",)

    @property
    def kinds(self) -> str:
        """What is installed before the garbage collector starts."""
        return super().kinds + "\n---\n" + JOB_CRD

    def prepare(self, plane: ControlPlane, shape: Shape) -> None:
        """Set up its queues, and a class of priority for each class of workloads."""
        super().prepare(plane, shape)
        kind = {"apiVersion": WORKLOADS.api_version, "kind": "WorkloadPriorityClass"}
        values = sorted({one.priority for one in shape.classes})
        plane.apply([kind | {"metadata": {"name": f"p{one}"}, "value": one} for one in values])
        wait_for_collector(plane)

    def written(self, work: Workload) -> tuple[Resource, Json]:
        """A suspended job."""
        spec = job(work)["spec"] | {"runPolicy": {"suspend": True}}
        labels = {QUEUE_LABEL: work.queue, PRIORITY_LABEL: f"p{work.of.priority}"}
        return JOB, _object(JOB, work, labels, spec)

    def seen(self, kind: str, obj: Json) -> Sight:
        """Whether it may run."""
        runs = kind != "DELETED" and not obj["spec"].get("runPolicy", {}).get("suspend")
        return _sight(obj, admitted=runs)


# -- objects ---------------------------------------------------------------------------------------


def _sight(obj: Json, *, admitted: bool) -> Sight:
    return Sight((obj["metadata"]["namespace"], obj["metadata"]["name"]), admitted, obj)


def _object(resource: Resource, work: Workload, labels: Json, spec: Json) -> Json:
    metadata = {"name": work.name, "namespace": work.queue, "labels": labels}
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    return kind | {"metadata": metadata, "spec": spec}


def job(work: Workload) -> Json:
    """The job of a workload."""
    container = {"name": "pytorch", "image": "none", "resources": work.of.requests}
    worker = {"replicas": work.of.pods, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "metadata": {"name": work.name},
        "spec": {"pytorchReplicaSpecs": {"Worker": worker}},
    }


def quotas(shape: Shape) -> list[Json]:
    """A tree: a leaf borrows what its cohort has, and no more."""
    names = sorted({cohort for cohort, _ in shape.leaves()})
    found = [
        subtree("root", TREE, root=shape.nominal),
        subtree("cohorts", TREE, "root", hard=True, **dict.fromkeys(names, _cohort(shape))),
    ]
    for name in names:
        leaves = {leaf: NOMINAL for cohort, leaf in shape.leaves() if cohort == name}
        found.append(subtree(name, TREE, name, **leaves))
    return found


def _cohort(shape: Shape) -> int:
    return NOMINAL * shape.queues


def queues(shape: Shape, strategy: str = BEST_EFFORT) -> list[Json]:
    """A flavor, and a ClusterQueue and a LocalQueue for each queue."""
    api = {"apiVersion": WORKLOADS.api_version}
    found: list[Json] = [api | {"kind": "ResourceFlavor", "metadata": {"name": "rf"}}]
    limits = {"nominalQuota": str(NOMINAL), "borrowingLimit": str(COHORT - NOMINAL)}
    for cohort, name in shape.leaves():
        share = {"name": "rf", "resources": [{"name": "cpu", **limits}]}
        spec = {
            "cohortName": cohort,
            "namespaceSelector": {},
            "queueingStrategy": strategy,
            "flavorFungibility": {
                "whenCanBorrow": "MayStopSearch",
                "whenCanPreempt": "TryNextFlavor",
            },
            "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [share]}],
        }
        metadata = {"name": name}
        found.append(api | {"kind": "ClusterQueue", "metadata": metadata, "spec": spec})
        local = api | {"kind": "LocalQueue", "metadata": metadata | {"namespace": name}}
        found.append(local | {"spec": {"clusterQueue": name}})
    return found


def wait_for_collector(plane: ControlPlane) -> None:
    """Until the garbage collector knows the item's kind: it looks for new kinds every 30 s, and
    ends what is deleted in the foreground."""
    path = JOB.path("default")
    kind = {"apiVersion": JOB.api_version, "kind": JOB.kind}
    plane.request("POST", path, kind | {"metadata": {"name": "probe"}})
    plane.request("DELETE", f"{path}/probe", {"propagationPolicy": "Foreground"})
    probe = f"{path}/probe"
    plane.wait_for(
        lambda: plane.request("GET", probe)[0] == 404, 90, "the garbage collector knows the kind"
    )


def _all_active(plane: ControlPlane) -> bool:
    found = plane.get("/apis/kueue.x-k8s.io/v1beta2/clusterqueues")["items"]
    return all(_shows(one, "Active") for one in found)


def _shows(obj: Json, kind: str) -> bool:
    conditions: list[Json] = obj.get("status", {}).get("conditions") or []
    return any(one["type"] == kind and one["status"] == "True" for one in conditions)


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


async def _sent(client: Client, request: Request) -> None:
    await client._send(request, lambda _: False, None)


# -- minimalkueue ----------------------------------------------------------------------------------


def module() -> Path:
    """The folder of Kueue's module, downloaded once."""
    command = ["go", "mod", "download", "-json", f"{KUEUE}@{KUEUE_VERSION}"]
    told: Any = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return Path(told["Dir"])


def minimal_kueue(edits: Mapping[str, str] | None = None, *files: Path) -> Path:
    """The program, built once, with these edits (``EDITS`` if none are given: the flags ``--qps``
    and ``--jobs``) of its main.go, and these Go files beside it."""
    edits = EDITS if edits is None else edits
    content = repr(edits) + "".join(one.read_text() for one in files)
    folder = binaries.cache_root() / f"minimalkueue-{KUEUE_VERSION}-{_digest(content)}"
    made = folder / "minimalkueue"
    if made.exists():
        return made
    source = folder / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(module(), source)
    for path in (source, *source.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    main = source / MINIMAL / "main.go"
    main.write_text(edited(main.read_text(), edits))
    for one in files:
        shutil.copy(one, main.parent)
    environment = os.environ | {"GOFLAGS": "-mod=readonly"}
    command = ["go", "build", "-p", "1", "-o", str(made), f"./{MINIMAL}"]
    subprocess.run(command, cwd=source, env=environment, check=True)
    return made


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()[:8]


EDITS = {
    "\tenableTAS = flag.Bool": """\
\tqps = flag.Float64("qps", 50, "requests a second; negative: no limit")

\twithJobs = flag.Bool("jobs", false, "a controller of PyTorchJobs")

\tenableTAS = flag.Bool""",
    "kubeConfig.QPS = 50\n": "kubeConfig.QPS = float32(*qps)\n",
    "kubeConfig.Burst = 100\n": "kubeConfig.Burst = int(2 * *qps)\n",
    '\tconfigapi "sigs.k8s.io/kueue/apis/config/v1beta2"\n': """\
\tkftraining "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
\tconfigapi "sigs.k8s.io/kueue/apis/config/v1beta2"
\t"sigs.k8s.io/kueue/pkg/controller/jobframework"
\t"sigs.k8s.io/kueue/pkg/controller/jobs/kubeflow/jobs/pytorchjob"
""",
    "\tutilruntime.Must(kueue.AddToScheme(scheme))\n": """\
\tutilruntime.Must(kueue.AddToScheme(scheme))
\tutilruntime.Must(kftraining.AddToScheme(scheme))
""",
    "\toptions := ctrl.Options{\n": """\
\tgroupKindConcurrency["PyTorchJob.kubeflow.org"] = 5

\toptions := ctrl.Options{
""",
    "\tsched := scheduler.New(\n": """\
\tif *withJobs {
\t\tif err := pytorchjob.SetupIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
\t\t\tlog.Error(err, "PyTorchJob indexer setup")
\t\t\treturn 1
\t\t}
\t\tjobs, err := pytorchjob.NewReconciler(
\t\t\tctx, mgr.GetClient(), mgr.GetFieldIndexer(), mgr.GetEventRecorder("pytorchjob"),
\t\t\tjobframework.WithCache(cCache), jobframework.WithQueues(queues))
\t\tif err == nil {
\t\t\terr = jobs.SetupWithManager(mgr)
\t\t}
\t\tif err != nil {
\t\t\tlog.Error(err, "PyTorchJob controller setup")
\t\t\treturn 1
\t\t}
\t}

\tsched := scheduler.New(
""",
}
"""What is changed in minimalkueue's main.go. Kueue's default for batch Jobs is 5 workers too."""


def edited(main: str, edits: Mapping[str, str] = EDITS) -> str:
    """minimalkueue's main.go with these edits."""
    for old, new in edits.items():
        if main.count(old) != 1:
            raise RuntimeError(f"minimalkueue has changed: {old!r}")
        main = main.replace(old, new)
    return main
