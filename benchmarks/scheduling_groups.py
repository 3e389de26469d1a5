"""Which kinds keep the `schedulingGroup` of a pod template, so that native gangs work for them?

    python -m benchmarks.scheduling_groups [--kinds Job,JobSet] [--widened] [--gates-off] [--next]
    python -m benchmarks.scheduling_groups --crds FILE...      # does a CRD have the field?

Native gangs are KEP-4671 in Kubernetes 1.36, behind feature gates: a pod names a PodGroup, and
kube-scheduler binds the pods of the group together. For each kind this creates a PodGroup of three
pods and an object whose pod templates name it, with the real operators, and looks where the field
is: in the stored object, in what the operator makes of it, in the pods. The nodes have room for two
of the three pods: a gang is held if none is bound, and all are once there is one node more.

A CRD prunes fields that it does not know. ``--widened`` adds this one to the CRDs, as they would be
with newer types, to see whether the operator itself keeps it. ``--next`` runs versions of JobSet
and LeaderWorkerSet that were built with the types of Kubernetes 1.36. ``--gates-off`` is a control
plane as it is by default.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane import binaries
from tests.controlplane.controlplane import ControlPlane, RefusedError
from tests.controlplane.native_gangs import API, NATIVE_GANGS, pod_group
from tests.controlplane.operators import (
    CRD_NAME,
    JOBSET,
    KUBERAY,
    LEADER_WORKER_SET,
    TRAINING,
    Operator,
    Operators,
)

Json = dict[str, Any]

FIELD = "schedulingGroup"
LABEL = "gang"
PODS = "/api/v1/namespaces/default/pods"
GROUPS = f"/apis/{API}/namespaces/default/podgroups"
JOBS, SETS = "apis/batch/v1/jobs", "apis/apps/v1/statefulsets"
REPLICA_SETS, CLUSTERS = "apis/apps/v1/replicasets", "apis/ray.io/v1/rayclusters"
NAMES = {JOBS: "Job", SETS: "StatefulSet", REPLICA_SETS: "ReplicaSet", CLUSTERS: "RayCluster"}
SIZE, ROOM = 3, 2
"""Pods of each gang, and for how many there is room at first."""

DISK = {"ephemeral-storage": "100Gi"}  # the launcher of an MPIJob asks for some
APPEAR_S, SETTLE_S, BIND_S = 30.0, 3.0, 20.0


# -- what is created -------------------------------------------------------------------------------


def template(gang: str, container: str = "main") -> Json:
    """A pod template of one CPU that names the gang."""
    requests = {"cpu": "1", "memory": "64Mi"}
    main = {"name": container, "image": "busybox:1.36", "resources": {"requests": requests}}
    spec = {"containers": [main], FIELD: {"podGroupName": gang}}
    return {"metadata": {"labels": {LABEL: gang}}, "spec": spec}


def for_jobs(gang: str) -> Json:
    """A template of pods that end."""
    made = template(gang)
    made["spec"]["restartPolicy"] = "Never"
    return made


def _job(gang: str) -> Json:
    return {"parallelism": SIZE, "completions": SIZE, "template": for_jobs(gang)}


def _replicated(gang: str) -> Json:
    selector = {"matchLabels": {LABEL: gang}}
    return {"replicas": SIZE, "selector": selector, "template": template(gang)}


def _parallel(gang: str) -> Json:
    return {**_replicated(gang), "serviceName": gang, "podManagementPolicy": "Parallel"}


def _ordered(gang: str) -> Json:
    return {**_replicated(gang), "serviceName": gang}


def _job_set(gang: str) -> Json:
    return {"replicatedJobs": [{"name": "main", "replicas": 1, "template": {"spec": _job(gang)}}]}


def _leader_workers(gang: str) -> Json:
    return {
        "replicas": 1,
        "leaderWorkerTemplate": {"size": SIZE, "workerTemplate": template(gang)},
    }


def _ray_cluster(gang: str) -> Json:
    head = {"rayStartParams": {}, "template": template(gang, "ray-head")}
    counts = {"replicas": SIZE - 1, "minReplicas": SIZE - 1, "maxReplicas": SIZE - 1}
    worker = {"groupName": "workers", **counts, "rayStartParams": {}}
    worker["template"] = template(gang, "ray-worker")
    return {"rayVersion": "2.46.0", "headGroupSpec": head, "workerGroupSpecs": [worker]}


def _ray_job(gang: str) -> Json:
    return {"entrypoint": "true", "rayClusterSpec": _ray_cluster(gang)}


def _ray_service(gang: str) -> Json:
    return {"serveConfigV2": "applications: []", "rayClusterConfig": _ray_cluster(gang)}


def _training(field: str, container: str, **replicas: int) -> Callable[[str], Json]:
    def spec(gang: str) -> Json:
        parts = {
            role: {"replicas": n, "template": template(gang, container)}
            for role, n in replicas.items()
        }
        return {field: parts}

    return spec


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind, and how an object of it has three pods. ``between`` are the collections of what its
    operator makes on the way to the pods; ``appear`` is how many pods there are while none is
    bound."""

    name: str
    api: str
    plural: str
    spec: Callable[[str], Json]
    operator: Operator | None = None
    between: tuple[str, ...] = ()
    appear: int = SIZE
    title: str = ""

    @property
    def gang(self) -> str:
        """The name of its object and PodGroup."""
        return (self.title or self.name).lower().replace(", ", "-")

    def objects(self) -> list[Json]:
        """Three pods, or one object that has them."""
        if self.name == "Pod":
            made = [for_jobs(self.gang) for _ in range(SIZE)]
            for number, one in enumerate(made):
                one["metadata"]["name"] = f"{self.gang}-{number}"
        else:
            made = [{"metadata": {"name": self.gang}, "spec": self.spec(self.gang)}]
        return [{"apiVersion": self.api, "kind": self.name, **one} for one in made]

    def path(self, *, under: str = "") -> str:
        """Of its objects, or of those of another collection."""
        prefix = "api" if "/" not in self.api else "apis"
        group, _, plural = (under or f"{prefix}/{self.api}/{self.plural}").rpartition("/")
        return f"/{group}/namespaces/default/{plural}"


RAY, KUBEFLOW = "ray.io/v1", "kubeflow.org/v1"
KINDS = (
    Kind("Pod", "v1", "pods", for_jobs),
    Kind("Job", "batch/v1", "jobs", _job),
    Kind("Deployment", "apps/v1", "deployments", _replicated, None, (REPLICA_SETS,)),
    Kind("StatefulSet", "apps/v1", "statefulsets", _parallel, title="StatefulSet, Parallel"),
    Kind("StatefulSet", "apps/v1", "statefulsets", _ordered, appear=1, title="StatefulSet"),
    Kind("JobSet", "jobset.x-k8s.io/v1alpha2", "jobsets", _job_set, JOBSET, (JOBS,)),
    Kind(
        "LeaderWorkerSet",
        "leaderworkerset.x-k8s.io/v1",
        "leaderworkersets",
        _leader_workers,
        LEADER_WORKER_SET,
        (SETS,),
    ),
    Kind("RayCluster", RAY, "rayclusters", _ray_cluster, KUBERAY),
    Kind("RayJob", RAY, "rayjobs", _ray_job, KUBERAY, (CLUSTERS,)),
    Kind("RayService", RAY, "rayservices", _ray_service, KUBERAY, (CLUSTERS,)),
    *(
        Kind(name, KUBEFLOW, f"{name.lower()}s", _training(field, container, **roles), TRAINING)
        for name, field, container, roles in (
            ("PyTorchJob", "pytorchReplicaSpecs", "pytorch", {"Master": 1, "Worker": 2}),
            ("TFJob", "tfReplicaSpecs", "tensorflow", {"Chief": 1, "Worker": 2}),
            ("MPIJob", "mpiReplicaSpecs", "mpi", {"Launcher": 1, "Worker": 2}),
            ("XGBoostJob", "xgbReplicaSpecs", "xgboost", {"Master": 1, "Worker": 2}),
            ("PaddleJob", "paddleReplicaSpecs", "paddle", {"Master": 1, "Worker": 2}),
            ("JAXJob", "jaxReplicaSpecs", "jax", {"Worker": 3}),
        )
    ),
)


# -- schemas ---------------------------------------------------------------------------------------


def pod_specs(schema: Any) -> Iterator[Json]:
    """The schemas of pod specs inside a schema: they have containers and tolerations."""
    if isinstance(schema, list):
        for one in schema:
            yield from pod_specs(one)
    elif isinstance(schema, dict):
        fields = schema.get("properties")
        if isinstance(fields, dict) and {"containers", "tolerations"} <= fields.keys():
            yield schema
        for one in schema.values():
            yield from pod_specs(one)


def widen(schema: Any) -> None:
    """Let every pod spec inside a schema have the field."""
    name = {"podGroupName": {"type": "string"}}
    for one in pod_specs(schema):
        one["properties"].setdefault(FIELD, {"type": "object", "properties": name})


def read_crds(files: list[Path]) -> Iterator[str]:
    """For each version of each CRD, in how many of its pod specs the field is."""
    for file in files:
        for crd in yaml.load_all(file.read_text(), yaml.CSafeLoader):
            for version in crd["spec"]["versions"]:
                specs = list(pod_specs(version["schema"]))
                have = sum(FIELD in one["properties"] for one in specs)
                kind = crd["spec"]["names"]["kind"]
                yield f"{kind} {version['name']}: {have} of {len(specs)} pod specs have {FIELD}"


def _widen_installed(plane: ControlPlane, operators: list[Operator]) -> None:
    built = binaries.ensure_operators()
    for operator in operators:
        for name in CRD_NAME.findall((built / f"crds-{operator.name}.yaml").read_text()):
            path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
            crd = plane.get(path)
            widen(crd["spec"])
            plane.ask("PUT", path, crd)


# -- what is found ---------------------------------------------------------------------------------


def count_field(thing: Any) -> int:
    """How often the field is in an object."""
    if isinstance(thing, list):
        return sum(map(count_field, thing))
    if not isinstance(thing, dict):
        return 0
    here = sum(bool(thing[key]) for key in thing if key == FIELD)
    return here + sum(count_field(value) for key, value in thing.items() if key != "metadata")


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one kind: where the field was, by kind of object, and how many of its pods
    were bound with too little room and with enough."""

    links: Mapping[str, bool]
    appeared: int
    bound: int
    bound_later: int

    @property
    def lost_in(self) -> str:
        """The first kind of object without the field, "" if all have it."""
        return next((name for name, kept in self.links.items() if not kept), "")

    @property
    def is_held(self) -> bool:
        """Whether none was bound before all could be."""
        return not self.bound and self.appeared == self.bound_later > 0

    def row(self, title: str) -> str:
        """Of the table."""
        kept = [name for name, kept in self.links.items() if kept]
        stored = "yes" if next(iter(self.links.values())) else "no"
        cells = (
            title,
            stored,
            "yes" if "Pod" in kept else "no",
            f"{self.bound}, {self.bound_later} of {self.appeared}",
            "yes" if self.is_held else "no",
            self.lost_in or "-",
        )
        return f"| {' | '.join(cells)} |"


HEAD = (
    "| kind | kept in the stored object | in the pods | bound with room for two, for all | held "
    "| first without it |\n|---|---|---|---|---|---|"
)


class Trial:
    """The kinds on one control plane."""

    def __init__(self, plane: ControlPlane, *, gates: bool) -> None:
        self._plane = plane
        self._gates = gates
        plane.add_node("node-1", cpu=str(ROOM), extended=DISK)

    def of(self, kind: Kind) -> Finding:
        """Create objects of it, look, make room, look again, and take all away."""
        if self._gates:
            self._plane.ask("POST", GROUPS, pod_group(kind.gang, SIZE))
        submitted = kind.objects()
        wanted = count_field(submitted)
        stored = [self._plane.ask("POST", kind.path(), one) for one in submitted]
        self._wait(lambda: len(self._pods(kind)) >= kind.appear, APPEAR_S)
        time.sleep(SETTLE_S)
        links = {kind.name: count_field(stored) >= wanted}
        if kind.operator and links[kind.name]:
            written = self._counted(kind.path(), kind) >= wanted
            links[f"{kind.name}, as the operator has updated it"] = written
        for under in kind.between:
            links[NAMES[under]] = self._counted(kind.path(under=under), kind) > 0
        pods = self._pods(kind)
        links["Pod"] = bool(pods) and all(count_field(one["spec"]) for one in pods)
        bound = self._bound(kind)
        self._plane.add_node("node-2", cpu=str(SIZE), extended=DISK)
        self._wait(lambda: self._bound(kind) >= SIZE, BIND_S)
        later = self._bound(kind)
        self._clear(kind)
        return Finding(links, len(pods), bound, later)

    def _counted(self, path: str, kind: Kind) -> int:
        """How often the field is in the objects of a collection, all of which are of this kind's
        trial."""
        found = self._plane.get(path)["items"]
        if path == PODS:
            found = [one for one in found if one["metadata"]["name"].startswith(kind.gang)]
        return count_field(found)

    def _pods(self, kind: Kind) -> list[Json]:
        found: list[Json] = self._plane.get(f"{PODS}?labelSelector={LABEL}={kind.gang}")["items"]
        return found

    def _bound(self, kind: Kind) -> int:
        return sum("nodeName" in one["spec"] for one in self._pods(kind))

    def _wait(self, predicate: Callable[[], bool], seconds: float) -> None:
        """Until it is so, or the time is over: what is there then is the finding."""
        until = time.monotonic() + seconds
        while not predicate() and time.monotonic() < until:
            time.sleep(0.1)

    def _clear(self, kind: Kind) -> None:
        for one in kind.objects():
            path = f"{kind.path()}/{one['metadata']['name']}"
            self._plane.ask("DELETE", path, {"propagationPolicy": "Foreground"})
        self._plane.wait_for(lambda: not self._pods(kind), 60, f"{kind.name} has no pods")
        if self._gates:
            self._plane.ask("DELETE", f"{GROUPS}/{kind.gang}")
        self._plane.remove_node("node-2")


@contextmanager
def trial(
    kinds: list[Kind], *, gates: bool = True, widened: bool = False, newer: bool = False
) -> Iterator[Trial]:
    """A control plane with the operators of these kinds."""
    operators = list(dict.fromkeys(one.operator for one in kinds if one.operator))
    with ExitStack() as stack:
        plane = stack.enter_context(ControlPlane(extra_args=NATIVE_GANGS if gates else None))
        if operators:
            built = binaries.ensure_next_operators() if newer else None
            stack.enter_context(Operators(plane, *operators, built=built))
        if widened:
            _widen_installed(plane, operators)
            _wait_until_widened(plane, kinds)
        yield Trial(plane, gates=gates)


def _wait_until_widened(plane: ControlPlane, kinds: list[Kind]) -> None:
    """Until the API server prunes the field no more."""
    for kind in kinds:

        def is_kept(kind: Kind = kind) -> bool:
            try:
                answer = plane.ask("POST", f"{kind.path()}?dryRun=All", kind.objects()[0])
            except RefusedError as error:
                print(f"{kind.name}: {error}", file=sys.stderr)
                return True  # a webhook that has to say something
            return count_field(answer) > 0

        deadline = time.monotonic() + 10
        while not is_kept() and time.monotonic() < deadline:
            time.sleep(0.2)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kinds", default="", help="only these, comma-separated")
    parser.add_argument("--widened", action="store_true", help="CRDs that have the field")
    parser.add_argument("--gates-off", action="store_true", help="without native gangs")
    parser.add_argument("--next", action="store_true", help="newer operators")
    parser.add_argument("--crds", type=Path, nargs="+", help="read these files, and no more")
    return parser.parse_args()


def main() -> None:
    """Print the table."""
    options = _options()
    if options.crds:
        print("\n".join(read_crds(options.crds)))
        return
    chosen = set(filter(None, options.kinds.split(",")))
    kinds = [one for one in KINDS if not chosen or one.name in chosen]
    if options.widened or options.next:
        kinds = [one for one in kinds if one.operator]
    if options.next:
        kinds = [one for one in kinds if one.operator and one.operator.name in binaries.NEXT]
    print(HEAD)
    gates = not options.gates_off
    with trial(kinds, gates=gates, widened=options.widened, newer=options.next) as running:
        for kind in kinds:
            print(running.of(kind).row(kind.title or kind.name), flush=True)


if __name__ == "__main__":
    main()
