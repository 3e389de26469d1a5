"""A cluster that grows from zero, with Kueue's check of ProvisioningRequests and the dispatcher.

    MCAD_CLUSTER_AUTOSCALER=... python -m benchmarks.kueue_scale_up [--rounds 2]
        [--arms kueue mcad jobs] [--impossible] [--set scaleUp.concurrent=20]

Each run has a control plane of its own, no nodes, and the real cluster-autoscaler with the node
groups of tests/e2e/test_autoscaler.py. Its gangs come at once: a gang of one kind of pod is a Job,
one of two kinds a JobSet. Kueue gets them suspended, with the admission check
``kueue.x-k8s.io/provisioning-request`` of the class ``best-effort-atomic-scale-up``; the dispatcher
gets them in AppWrappers, with ``scaleUp.via: ProvisioningRequest``. ``jobs`` are the same without a
queue: pods are created at once, and the autoscaler serves pods. ``--impossible`` creates two gangs
before all others that no node group can serve.

Reported are the seconds from the creation of a gang to the binding of its last pod, the pods that
had no node for more than five seconds, and the nodes made, and needed for the gangs that started. A
run ends when all have, or after three minutes.

Kueue is its own minimalkueue with three controllers more (kueue_scale_up.go): the check, Jobs and
JobSets.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.kueue_arms import EDITS, WORKLOADS, minimal_kueue, module
from tests.controlplane.autoscaler import BINARY, GROUP, autoscaler, kinds
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.operators import JOBSET, Operators
from tests.e2e.process import ACCOUNT, NAMESPACE, Dispatcher, install, printed
from tests.e2e.support import appwrapper, appwrappers_path, items
from tests.e2e.test_autoscaler import (
    GPU,
    GPUS,
    LARGE,
    NEVER,
    SHAPES,
    SMALL,
    TOO_MANY,
    needed,
)

Json = dict[str, Any]
Shape = Sequence[tuple[int, str]]
GO = Path(__file__).with_suffix(".go")
CALL = """\
\tif err := setupScaleUp(ctx, mgr, cCache, queues); err != nil {
\t\tlog.Error(err, "scale-up setup")
\t\treturn 1
\t}

"""
SCHEDULER = "\tsched := scheduler.New(\n"
KUEUE_EDITS = {**EDITS, SCHEDULER: CALL + EDITS[SCHEDULER]}
GANG = "example.com/gang"
"""The label of a pod with the name of its gang."""
QUEUE = "all"
CHECK = "scale-up"
ENOUGH = "10000"
LOOK_S, LATE_S, WAIT_S = 0.2, 5.0, 180.0
JOBS = "/apis/batch/v1/namespaces/default/jobs"
JOB_SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"


# -- the gangs -------------------------------------------------------------------------------------


def gangs(*, impossible: bool) -> dict[str, Shape]:
    """By name, in the order of their creation."""
    never: dict[str, Shape] = {"never": NEVER, "too-many": TOO_MANY} if impossible else {}
    return never | {f"gang-{number}": shape for number, shape in enumerate(SHAPES)}


def written(name: str, shape: Shape) -> Json:
    """A Job, or a JobSet of several kinds of pods; both run until they are deleted."""
    if len(shape) == 1:
        head = {"apiVersion": "batch/v1", "kind": "Job"}
        return head | {"metadata": {"name": name}, "spec": _job(name, *shape[0])}
    replicated = [
        {"name": f"set-{number}", "replicas": 1, "template": {"spec": _job(name, *one)}}
        for number, one in enumerate(shape)
    ]
    head = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    return head | {"metadata": {"name": name}, "spec": {"replicatedJobs": replicated}}


def _job(name: str, count: int, cpu: str) -> Json:
    gpus = {GPU: "8"} if cpu == "gpu" else {}
    requests = {"cpu": "1" if gpus else cpu, **gpus}
    container = {"name": "main", "image": "busybox:1.36", "command": ["sleep", "infinity"]}
    spec: Json = {
        "restartPolicy": "Never",
        "containers": [{**container, "resources": {"requests": requests, "limits": gpus}}],
    }
    if gpus:
        spec["tolerations"] = [{"key": GPU, "operator": "Exists"}]
    template = {"metadata": {"labels": {GANG: name}}, "spec": spec}
    return {"parallelism": count, "completions": count, "template": template}


def _path(obj: Json) -> str:
    return JOBS if obj["kind"] == "Job" else JOB_SETS


# -- the arms --------------------------------------------------------------------------------------


class Jobs:
    """No queue: what the autoscaler does with the pods alone."""

    kinds = ""

    @contextmanager
    def running(self, plane: ControlPlane) -> Iterator[None]:
        """Nothing runs."""
        yield

    def created(self, plane: ControlPlane, name: str, shape: Shape) -> None:
        """Create a gang."""
        obj = self.of(written(name, shape))
        code, answer = plane.request("POST", _path(obj), obj)
        assert code == 201, answer

    def of(self, obj: Json) -> Json:
        """The gang as it is given to this arm."""
        return obj


class Kueue(Jobs):
    """One queue with quota for all, and the check."""

    @property
    def kinds(self) -> str:  # type: ignore[override]
        """Its CRDs."""
        folder = module() / "config/components/crd/bases"
        return "\n---\n".join(one.read_text() for one in sorted(folder.glob("*.yaml")))

    def of(self, obj: Json) -> Json:
        """Suspended, in the queue."""
        obj["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": QUEUE}
        obj["spec"]["suspend"] = True
        return obj

    @contextmanager
    def running(self, plane: ControlPlane) -> Iterator[None]:
        """Run it with its queue."""
        plane.apply(queue())
        kubeconfig = _with_all_rights(plane)
        command = [str(minimal_kueue(KUEUE_EDITS, GO)), "--scale-up", f"--kubeconfig={kubeconfig}"]
        plane.spawn("minimalkueue", command)
        plane.wait_for(lambda: _is_active(plane), 60, "the ClusterQueue is active")
        yield
        plane.end("minimalkueue")


class Mcad(Jobs):
    """The dispatcher."""

    def __init__(self, settings: Sequence[str]) -> None:
        """More ``settings`` are ``key=value``."""
        given = ("scaleUp.via=ProvisioningRequest", *settings)
        self._flags = [flag for one in given for flag in ("--set", one)]

    @property
    def kinds(self) -> str:  # type: ignore[override]
        """Its CRDs."""
        return printed("crd")

    def created(self, plane: ControlPlane, name: str, shape: Shape) -> None:
        """Create an AppWrapper."""
        made = appwrapper(name, written(name, shape))
        code, answer = plane.request("POST", appwrappers_path(), made)
        assert code == 201, answer

    @contextmanager
    def running(self, plane: ControlPlane) -> Iterator[None]:
        """Run it with the rights of its chart."""
        account = install(plane)
        rights = ("--namespace", NAMESPACE, "--service-account", ACCOUNT)
        plane.apply(printed("rbac", *rights, *self._flags))
        with Dispatcher(plane, account, *self._flags):
            yield


def queue() -> list[Json]:
    """A flavor of all nodes, a queue with quota for all gangs, and its check."""
    api = {"apiVersion": WORKLOADS.api_version}
    group = api["apiVersion"].partition("/")[0]
    config = {"apiGroup": group, "kind": "ProvisioningRequestConfig", "name": CHECK}
    check = {"controllerName": "kueue.x-k8s.io/provisioning-request", "parameters": config}
    shares = [{"name": name, "nominalQuota": ENOUGH} for name in ("cpu", GPU)]
    spec = {
        "namespaceSelector": {},
        "queueingStrategy": "BestEffortFIFO",
        "resourceGroups": [
            {"coveredResources": ["cpu", GPU], "flavors": [{"name": "rf", "resources": shares}]}
        ],
        "admissionChecksStrategy": {"admissionChecks": [{"name": CHECK}]},
    }
    best_effort = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
    made = (
        ("ProvisioningRequestConfig", CHECK, {"provisioningClassName": best_effort}),
        ("AdmissionCheck", CHECK, check),
        ("ResourceFlavor", "rf", {}),
        ("ClusterQueue", QUEUE, spec),
    )
    objs = [api | {"kind": kind, "metadata": {"name": name}, "spec": s} for kind, name, s in made]
    local = {"metadata": {"name": QUEUE, "namespace": "default"}, "spec": {"clusterQueue": QUEUE}}
    return [*objs, api | {"kind": "LocalQueue"} | local]


def _with_all_rights(plane: ControlPlane) -> Path:
    token = plane.service_account("kueue-system", "kueue")
    rbac = "rbac.authorization.k8s.io"
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "kueue"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "kueue-system", "name": "kueue"}],
    }
    plane.apply([binding])
    return plane.kubeconfig_for_token(token, "kueue")


def _is_active(plane: ControlPlane) -> bool:
    found = items(plane, "/apis/kueue.x-k8s.io/v1beta2/clusterqueues")
    told = [one for cq in found for one in cq.get("status", {}).get("conditions", [])]
    return any((one["type"], one["status"]) == ("Active", "True") for one in told)


# -- one run ---------------------------------------------------------------------------------------


@dataclass
class Course:
    """What looks have shown, in seconds of one clock."""

    shapes: dict[str, Shape]
    created: dict[str, float] = field(default_factory=dict)  # by gang
    seen: dict[str, float] = field(default_factory=dict)  # by uid of a pod: first look
    bound: dict[str, float] = field(default_factory=dict)  # by uid of a pod
    started: dict[str, float] = field(default_factory=dict)  # by gang: all pods are bound
    groups: dict[str, str] = field(default_factory=dict)  # node -> its group

    def look(self, plane: ControlPlane) -> None:
        """Note what is there."""
        now, there = time.monotonic(), Counter[str]()
        for node in items(plane, "/api/v1/nodes"):
            self.groups[node["metadata"]["name"]] = node["metadata"]["labels"][GROUP]
        for pod in items(plane, "/api/v1/namespaces/default/pods"):
            uid, gang = pod["metadata"]["uid"], pod["metadata"].get("labels", {}).get(GANG)
            if gang is None:
                continue
            self.seen.setdefault(uid, now)
            if pod["spec"].get("nodeName"):
                self.bound.setdefault(uid, now)
                there[gang] += 1
        for gang, shape in self.shapes.items():
            if there[gang] == sum(count for count, _ in shape):
                self.started.setdefault(gang, now)

    @property
    def waits(self) -> list[float]:
        """Seconds from the creation of a gang to its last pod's binding."""
        return sorted(at - self.created[gang] for gang, at in self.started.items())

    @property
    def late(self) -> int:
        """How many pods had no node for more than ``LATE_S``."""
        end = time.monotonic()
        return sum(self.bound.get(uid, end) - at > LATE_S for uid, at in self.seen.items())


def run(arm: Jobs, *, impossible: bool) -> Course:
    """One run on a control plane of its own."""
    both = "\n---\n".join(one for one in (kinds(), arm.kinds) if one)
    course = Course(gangs(impossible=impossible))
    wanted = {name for name in course.shapes if name.startswith("gang-")}
    with (
        ControlPlane(kinds=both) as plane,
        Operators(plane, JOBSET),
        autoscaler(plane, SMALL, LARGE, GPUS, unneeded="10m"),
        arm.running(plane),
    ):
        for name, shape in course.shapes.items():
            course.created[name] = time.monotonic()
            arm.created(plane, name, shape)
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end and not wanted <= course.started.keys():
            time.sleep(LOOK_S)
            course.look(plane)
    return course


def tell(course: Course) -> None:
    """What a run has shown, for people."""
    waits, nodes = course.waits, Counter(course.groups.values())
    missing = sorted(course.shapes.keys() - course.started.keys())
    words = f", not started: {', '.join(missing)}" if missing else ""
    print(
        f"  all pods bound after p50 {statistics.median(waits):.1f} s, most {waits[-1]:.1f} s; "
        f"{len(course.started)} of {len(course.shapes)} gangs{words}"
    )
    print(f"  pods without a node for more than {LATE_S:g} s: {course.late} of {len(course.seen)}")
    least = needed(course.groups, [course.shapes[gang] for gang in course.started])
    print(f"  nodes made {sum(nodes.values())} ({dict(sorted(nodes.items()))}), needed {least}")
    print("  seconds: " + " ".join(f"{one:.1f}" for one in waits), flush=True)


def main() -> None:
    """Run the arms by turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--arms", nargs="+", choices=("kueue", "mcad", "jobs"), default=None)
    parser.add_argument("--impossible", action="store_true")
    parser.add_argument("--set", action="append", default=[], help="of the dispatcher")
    options = parser.parse_args()
    if not os.environ.get(BINARY):
        sys.exit(f"{BINARY} names no cluster-autoscaler")
    arms = {"kueue": Kueue(), "mcad": Mcad(options.set), "jobs": Jobs()}
    for number in range(options.rounds):
        for name in options.arms or arms:
            print(f"round {number}, {name}", flush=True)
            tell(run(arms[name], impossible=options.impossible))


if __name__ == "__main__":
    main()
