"""Operators of custom kinds, played after their sources as far as pods and status go.

JobSet 0.8.2 (``pkg/controllers``), LeaderWorkerSet 0.7.0, KubeRay 1.4.2 (``ray-operator/
controllers/ray``), MPI operator v2beta1 (``pkg/controller``), Job runs of CronJobs, and a kind
that no table has. Each looks at one object and at what it owns, and does what is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mcad.sim.controllers.base import Controller
from mcad.sim.controllers.events import Recorder
from mcad.sim.controllers.index import OwnedIndex
from mcad.sim.controllers.jobpods import finished_condition
from mcad.sim.controllers.pods import (
    from_template,
    is_active,
    is_deleting,
    is_finished,
    is_ready,
    phase_of,
    reference_to,
)
from mcad.sim.controllers.workload import write_status
from mcad.sim.deletion import Deletion
from mcad.sim.failures import Failure
from mcad.sim.registry import Registry, key_of
from mcad.sim.store import Key
from mcad.sim.times import parse_us, seconds

Json = dict[str, Any]
POD, JOB, STATEFUL_SET = ("v1", "Pod"), ("batch/v1", "Job"), ("apps/v1", "StatefulSet")
RAY_CLUSTER = ("ray.io/v1", "RayCluster")
ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
ROLE = "example.com/role"


class Operator(Controller):
    """A controller of one kind; it looks again when what it owns changes."""

    kind_of: tuple[str, str]
    owns: tuple[tuple[str, str], ...] = (POD,)

    def __init__(self, registry: Registry, indexes: Mapping[tuple[str, str], OwnedIndex]) -> None:
        super().__init__(registry)
        self.kind = registry.kind(*self.kind_of)
        self._indexes = {owned: indexes[owned] for owned in self.owns}
        self._recorder = Recorder(registry, f"{self.kind.kind.lower()}-controller")

    def start(self) -> None:
        """Look at what is there, and at every change."""
        self.watch(self.kind, lambda change: self.enqueue(change.key))
        for index in self._indexes.values():
            index.start()
            index.listen(self.kind.kind, lambda _, owner: self.enqueue(owner))

    def reconcile(self, key: Key) -> None:
        """Do what is due for one object."""
        owner = self.registry.find(self.kind, key)
        if owner is not None and not is_deleting(owner):
            self.sync(owner)

    def sync(self, owner: Json) -> None:
        """Bring one object closer to its spec."""
        raise NotImplementedError

    # -- for subclasses ------------------------------------------------------------------------

    def owned(self, owner: Json, kind: tuple[str, str] = POD, role: str = "") -> list[Json]:
        """What it owns, of one role if that is given."""
        every = self._indexes[kind].owned(owner["metadata"]["uid"])
        return [one for one in every if not role or _role(one) == role]

    def make(self, owner: Json, kind: tuple[str, str], name: str, role: str, body: Json) -> None:
        """Create an object that it owns; a name that ends with a dash is completed."""
        meta = dict(body.get("metadata") or {})
        meta["labels"] = dict(meta.get("labels") or {}) | {ROLE: role}
        meta["ownerReferences"] = [reference_to(owner)]
        meta["generateName" if name.endswith("-") else "name"] = name
        served = self.registry.kind(*kind)
        try:
            self.registry.create(served, owner["metadata"]["namespace"], body | {"metadata": meta})
        except Failure as failure:
            if failure.reason != "AlreadyExists":
                text = f"Error creating: {failure.message}"
                self._recorder.warning(owner, f"FailedCreate{kind[1]}", text)
            raise

    def make_pod(self, owner: Json, name: str, role: str, template: Json) -> None:
        """A pod of a template."""
        made = from_template(template, owner)
        meta = {key: value for key, value in made["metadata"].items() if key != "generateName"}
        self.make(owner, POD, name, role, made | {"metadata": meta})

    def drop(self, kind: tuple[str, str], objs: Iterable[Json]) -> None:
        """Delete objects, with all that they own."""
        served = self.registry.kind(*kind)
        for obj in objs:
            if not is_deleting(obj):
                how = Deletion(uid=obj["metadata"]["uid"], propagation="Background")
                self.registry.delete(served, key_of(obj), how)

    def write(self, owner: Json, **status: Any) -> None:
        """Change fields of the status."""
        write_status(self.registry, self.kind, owner, (owner.get("status") or {}) | status)

    def condition(self, owner: Json, kind: str, value: bool = True, reason: str = "") -> list[Json]:
        """The conditions with this one in them."""
        before = list((owner.get("status") or {}).get("conditions") or ())
        known = next((one for one in before if one["type"] == kind), None)
        status = str(value)
        if known is not None and known["status"] == status:
            return before
        at = seconds(self.registry.clock.now_us())
        news = {"type": kind, "status": status, "reason": reason or kind, "message": ""}
        news["lastTransitionTime"] = at
        return [one for one in before if one["type"] != kind] + [news]


def _role(obj: Json) -> str:
    return str((obj["metadata"].get("labels") or {}).get(ROLE, ""))


def has(obj: Json, kind: str) -> bool:
    """Whether a condition is True."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(one["type"] == kind and one["status"] == "True" for one in conditions)


def _is_failed(job: Json) -> bool:
    end = finished_condition(job)
    return end is not None and end["type"] == "Failed"


def _is_complete(job: Json) -> bool:
    end = finished_condition(job)
    return end is not None and end["type"] == "Complete"


class JobSets(Operator):
    """JobSet: child Jobs in the order that dependsOn and startupPolicy say; maxRestarts."""

    kind_of, owns = ("jobset.x-k8s.io/v1alpha2", "JobSet"), (JOB,)

    def sync(self, owner: Json) -> None:
        """One reconciliation."""
        if has(owner, "Completed") or has(owner, "Failed"):
            running = [job for job in self.owned(owner, JOB) if finished_condition(job) is None]
            self.drop(JOB, running)
            return
        spec, status = owner["spec"], owner.get("status") or {}
        attempt = str(status.get("restarts", 0))
        every = self.owned(owner, JOB)
        jobs = [job for job in every if job["metadata"]["labels"][ATTEMPT] == attempt]
        self.drop(JOB, [job for job in every if job not in jobs])
        if self._end(owner, jobs):
            return
        is_suspended = bool(spec.get("suspend"))
        for job in jobs:
            self._suspend(job, is_suspended=is_suspended)
        reports = [self._report(one, jobs) for one in spec["replicatedJobs"]]
        conditions = self.condition(owner, "Suspended", is_suspended, "SuspendedJobs")
        if not is_suspended and not has(owner, "Suspended"):
            conditions = status.get("conditions") or []
        self.write(
            owner, replicatedJobsStatus=reports, conditions=conditions, restarts=int(attempt)
        )
        live = self.registry.find(self.kind, key_of(owner))
        if live is not None:
            self._create(live, jobs, {one["name"]: one for one in reports}, attempt)

    def _end(self, owner: Json, jobs: list[Json]) -> bool:
        """Whether it ends, or begins again."""
        wanted = sum(one["replicas"] for one in owner["spec"]["replicatedJobs"])
        if any(map(_is_failed, jobs)):
            restarts = (owner.get("status") or {}).get("restarts", 0)
            if restarts < owner["spec"]["failurePolicy"]["maxRestarts"]:
                self.write(owner, restarts=restarts + 1, replicatedJobsStatus=[])
            else:
                self.write(
                    owner,
                    terminalState="Failed",
                    conditions=self.condition(owner, "Failed", reason="FailedJobs"),
                )
            return True
        if sum(map(_is_complete, jobs)) == wanted:
            conditions = self.condition(owner, "Completed", reason="AllJobsCompleted")
            self.write(owner, terminalState="Completed", conditions=conditions)
            return True
        return False

    def _suspend(self, job: Json, *, is_suspended: bool) -> None:
        if bool(job["spec"].get("suspend")) != is_suspended and finished_condition(job) is None:
            kind = self.registry.kind(*JOB)
            spec = job["spec"] | {"suspend": is_suspended}
            self.registry.patch(kind, key_of(job), lambda live: live | {"spec": spec})

    def _report(self, replicated: Json, jobs: list[Json]) -> Json:
        mine = [job for job in jobs if _role(job) == replicated["name"]]
        succeeded = sum(map(_is_complete, mine))
        status = [(job, job.get("status") or {}) for job in mine if not _is_complete(job)]
        ready = sum(
            one.get("ready", 0) + one.get("succeeded", 0) >= job["spec"].get("parallelism", 1)
            for job, one in status
        )
        return {
            "name": replicated["name"],
            "ready": ready,
            "succeeded": succeeded,
            "failed": sum(map(_is_failed, mine)),
            "active": sum(bool(one.get("active")) for _, one in status),
            "suspended": sum(bool(job["spec"].get("suspend")) for job in mine),
        }

    def _create(
        self, owner: Json, jobs: list[Json], reports: Mapping[str, Json], attempt: str
    ) -> None:
        spec, name = owner["spec"], owner["metadata"]["name"]
        policy = (spec.get("startupPolicy") or {}).get("startupPolicyOrder")
        there = {job["metadata"]["name"] for job in jobs}
        for one in spec["replicatedJobs"]:
            if not all(self._reached(owner, dep, reports) for dep in one.get("dependsOn") or ()):
                continue
            for index in range(one["replicas"]):
                child = f"{name}-{one['name']}-{index}"
                if child not in there:
                    meta = {"labels": {ATTEMPT: attempt}}
                    inner = dict(one["template"]["spec"]) | {"suspend": bool(spec.get("suspend"))}
                    self.make(owner, JOB, child, one["name"], {"metadata": meta, "spec": inner})
            report = reports[one["name"]]
            begun = report["ready"] + report["succeeded"] + report["failed"]
            if policy == "InOrder" and begun < one["replicas"] and not spec.get("suspend"):
                return

    def _reached(self, owner: Json, dependency: Json, reports: Mapping[str, Json]) -> bool:
        report = reports[dependency["name"]]
        wanted = next(
            one["replicas"]
            for one in owner["spec"]["replicatedJobs"]
            if one["name"] == dependency["name"]
        )
        reached = report["succeeded"]
        if dependency["status"] == "Ready":
            reached += report["ready"] + report["failed"]
        return bool(reached >= wanted)


class LeaderWorkerSets(Operator):
    """LeaderWorkerSet: a StatefulSet of leaders."""

    kind_of = ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
    owns = (STATEFUL_SET,)

    def sync(self, owner: Json) -> None:
        """One reconciliation."""
        spec, sets = owner["spec"], self.owned(owner, STATEFUL_SET)
        if not sets:
            made = spec["leaderWorkerTemplate"]["leaderTemplate"]
            size, policy = spec["leaderWorkerTemplate"]["size"], spec["startupPolicy"]
            notes = {"size": str(size), "policy": policy, "lws": owner["metadata"]["name"]}
            leader = _labelled(made, {"lws": owner["metadata"]["name"], "leader": "true"}, notes)
            body = _stateful(owner["metadata"]["name"], spec["replicas"], leader)
            self.make(owner, STATEFUL_SET, owner["metadata"]["name"], "leader", {"spec": body})
            return
        status = sets[0].get("status") or {}
        if sets[0]["spec"]["replicas"] != spec["replicas"]:
            kind, inner = self.registry.kind(*STATEFUL_SET), sets[0]["spec"]
            inner = inner | {"replicas": spec["replicas"]}
            self.registry.patch(kind, key_of(sets[0]), lambda live: live | {"spec": inner})
        self.write(owner, replicas=status.get("replicas", 0))


class LeaderPods(Operator):
    """The part of LeaderWorkerSet that makes the workers' StatefulSet of each leader pod."""

    kind_of, owns = POD, (STATEFUL_SET,)

    def sync(self, owner: Json) -> None:
        """One reconciliation of a leader."""
        labels = owner["metadata"].get("labels") or {}
        if labels.get("leader") != "true" or not is_active(owner):
            return
        notes = owner["metadata"]["annotations"]
        if notes["policy"] == "LeaderReady" and not is_ready(owner):
            return
        if self.owned(owner, STATEFUL_SET):
            return
        kind = self.registry.kind(*LeaderWorkerSets.kind_of)
        whole = self.registry.find(kind, (owner["metadata"]["namespace"], notes["lws"]))
        if whole is None:
            return
        name, made = owner["metadata"]["name"], whole["spec"]["leaderWorkerTemplate"]
        worker = _labelled(made["workerTemplate"], {"group": name}, {})
        body = _stateful(name, int(notes["size"]) - 1, worker, start=1)
        self.make(owner, STATEFUL_SET, name, "workers", {"spec": body})


def _labelled(template: Json, labels: Json, notes: Json) -> Json:
    meta = template.get("metadata") or {}
    more = {"labels": (meta.get("labels") or {}) | labels}
    return template | {"metadata": meta | more | ({"annotations": notes} if notes else {})}


def _stateful(name: str, replicas: int, template: Json, start: int = 0) -> Json:
    return {
        "replicas": replicas,
        "podManagementPolicy": "Parallel",
        "serviceName": name,
        "ordinals": {"start": start},
        "selector": {"matchLabels": template["metadata"]["labels"]},
        "template": template,
    }


class RayClusters(Operator):
    """RayCluster: a head and groups of workers; either may be suspended."""

    kind_of = RAY_CLUSTER

    def sync(self, owner: Json) -> None:
        """One reconciliation."""
        spec, name = owner["spec"], owner["metadata"]["name"]
        pods = self.owned(owner)
        self.drop(POD, [one for one in pods if is_finished(one)])
        if spec.get("suspend"):
            self.drop(POD, pods)
            is_over = not pods
            conditions = self.condition(owner, "RayClusterSuspended", is_over)
            self.write(owner, state="suspended" if is_over else "", conditions=conditions)
            return
        try:
            if not self.owned(owner, role="head"):
                self.make_pod(owner, f"{name}-head", "head", spec["headGroupSpec"]["template"])
            for group in spec["workerGroupSpecs"]:
                self._group(owner, group)
        finally:
            self._report(owner)

    def _group(self, owner: Json, group: Json) -> None:
        role = group["groupName"]
        pods = [one for one in self.owned(owner, role=role) if is_active(one)]
        if group.get("suspend"):
            self.drop(POD, pods)
            return
        wanted = desired(group)
        self.drop(POD, pods[wanted:])
        for _ in range(wanted - len(pods)):
            name = f"{owner['metadata']['name']}-{role}-worker-"
            self.make_pod(owner, name, role, group["template"])

    def _report(self, owner: Json) -> None:
        live = self.registry.find(self.kind, key_of(owner))
        if live is None:
            return
        head, groups = self.owned(owner, role="head"), owner["spec"]["workerGroupSpecs"]
        wanted = sum(0 if one.get("suspend") else desired(one) for one in groups)
        workers = [one for group in groups for one in self.owned(owner, role=group["groupName"])]
        ready = sum(map(is_ready, workers))
        is_up = bool(head) and is_ready(head[0]) and ready >= wanted
        state = "ready" if is_up else (live.get("status") or {}).get("state", "")
        self.write(
            live,
            state="" if state == "suspended" else state,
            desiredWorkerReplicas=wanted,
            availableWorkerReplicas=sum(phase_of(one) == "Running" for one in workers),
            readyWorkerReplicas=ready,
            conditions=self.condition(live, "RayClusterProvisioned")
            if is_up
            else (live.get("status") or {}).get("conditions") or [],
        )


def desired(group: Json) -> int:
    """Workers of a group: ``replicas`` within its bounds."""
    least, most = group.get("minReplicas", 0), group.get("maxReplicas", 2**31)
    return int(min(max(group.get("replicas", 0), least), most))


class RayJobs(Operator):
    """RayJob: a cluster, then the submitter, then the end or another try."""

    kind_of, owns = ("ray.io/v1", "RayJob"), (RAY_CLUSTER, JOB)

    def sync(self, owner: Json) -> None:
        """One step of its ``jobDeploymentStatus``."""
        state = (owner.get("status") or {}).get("jobDeploymentStatus", "")
        if owner["spec"].get("suspend") and state in ("", "Initializing", "Running"):
            self.write(owner, jobDeploymentStatus="Suspending")
            return
        steps: dict[str, Callable[[Json], None]] = {
            "": self._begin,
            "Initializing": self._submit,
            "Running": self._follow,
            "Suspending": self._clear,
            "Retrying": self._clear,
            "Suspended": self._resume,
            "Complete": self._finish,
            "Failed": self._finish,
        }
        steps[state](owner)

    def _begin(self, owner: Json) -> None:
        name = f"{owner['metadata']['name']}-raycluster-"
        if not self.owned(owner, RAY_CLUSTER):
            made = {"metadata": {"labels": owner["metadata"].get("labels") or {}}}
            made["spec"] = owner["spec"]["rayClusterSpec"]
            self.make(owner, RAY_CLUSTER, name, "cluster", made)
        self.write(owner, jobDeploymentStatus="Initializing", jobStatus="")

    def _submit(self, owner: Json) -> None:
        clusters = self.owned(owner, RAY_CLUSTER)
        if not clusters:
            self._begin(owner)
            return
        if (clusters[0].get("status") or {}).get("state") != "ready":
            return
        spec = {"template": owner["spec"]["submitterPodTemplate"], "backoffLimit": 2}
        self.make(owner, JOB, owner["metadata"]["name"], "submitter", {"spec": spec})
        name = clusters[0]["metadata"]["name"]
        self.write(owner, jobDeploymentStatus="Running", jobStatus="RUNNING", rayClusterName=name)

    def _follow(self, owner: Json) -> None:
        jobs = self.owned(owner, JOB)
        end = finished_condition(jobs[0]) if jobs else None
        status = owner.get("status") or {}
        if end is None:
            return
        if end["type"] == "Complete":
            self.write(owner, jobDeploymentStatus="Complete", jobStatus="SUCCEEDED")
            return
        failed = status.get("failed", 0) + 1
        again = failed <= owner["spec"].get("backoffLimit", 0)
        state = "Retrying" if again else "Failed"
        self.write(owner, jobDeploymentStatus=state, jobStatus="FAILED", failed=failed)

    def _clear(self, owner: Json) -> None:
        """Delete the cluster and the submitter; then go on from the beginning, or rest."""
        clusters, jobs = self.owned(owner, RAY_CLUSTER), self.owned(owner, JOB)
        self.drop(RAY_CLUSTER, clusters)
        self.drop(JOB, jobs)
        if clusters or jobs:
            return
        was = owner["status"]["jobDeploymentStatus"]
        if was == "Suspending":
            self.write(owner, jobDeploymentStatus="Suspended", jobStatus="")
        else:
            self.write(owner, jobDeploymentStatus="", jobStatus="")

    def _resume(self, owner: Json) -> None:
        if not owner["spec"].get("suspend"):
            self.write(owner, jobDeploymentStatus="", jobStatus="")

    def _finish(self, owner: Json) -> None:
        if owner["spec"].get("shutdownAfterJobFinishes"):
            self.drop(RAY_CLUSTER, self.owned(owner, RAY_CLUSTER))


class MPIJobs(Operator):
    """MPIJob: workers, and a launcher as a Job."""

    kind_of, owns = ("kubeflow.org/v2beta1", "MPIJob"), (POD, JOB)

    def sync(self, owner: Json) -> None:
        """One reconciliation."""
        if has(owner, "Succeeded") or has(owner, "Failed"):
            self._clean(owner)
            return
        spec, name = owner["spec"]["mpiReplicaSpecs"], owner["metadata"]["name"]
        workers = self.owned(owner, role="worker")
        there = {one["metadata"]["name"] for one in workers}
        for index in range(spec["Worker"]["replicas"]):
            if f"{name}-worker-{index}" not in there:
                template = spec["Worker"]["template"]
                self.make_pod(owner, f"{name}-worker-{index}", "worker", template)
        waits = owner["spec"]["launcherCreationPolicy"] == "WaitForWorkersReady"
        jobs = self.owned(owner, JOB)
        if not jobs:
            if waits and sum(map(is_ready, workers)) < spec["Worker"]["replicas"]:
                return
            body = {"template": spec["Launcher"]["template"], "backoffLimit": 2}
            self.make(owner, JOB, f"{name}-launcher", "launcher", {"spec": body})
            return
        self._report(owner, jobs[0], workers)

    def _report(self, owner: Json, launcher: Json, workers: list[Json]) -> None:
        end, status = finished_condition(launcher), launcher.get("status") or {}
        active = sum(phase_of(one) == "Running" for one in workers)
        counts = {"Launcher": {"active": status.get("active", 0)}, "Worker": {"active": active}}
        conditions = self.condition(owner, "Created")
        if end is not None:
            kind = "Succeeded" if end["type"] == "Complete" else "Failed"
            counts["Launcher"] = {kind.lower(): 1}
            conditions = self.condition(owner, kind)
        self.write(owner, replicaStatuses=counts, conditions=conditions)

    def _clean(self, owner: Json) -> None:
        policy, workers = owner["spec"]["runPolicy"]["cleanPodPolicy"], self.owned(owner)
        if policy == "All":
            self.drop(POD, workers)
        elif policy == "Running":
            self.drop(POD, [one for one in workers if not is_finished(one)])


class CronJobs(Operator):
    """CronJob: a Job every minute, whatever its schedule says."""

    kind_of, owns = ("batch/v1", "CronJob"), (JOB,)
    every_s = 60.0

    def sync(self, owner: Json) -> None:
        """Make the run that is due."""
        now_s = asyncio.get_running_loop().time()
        last_s = parse_us((owner.get("status") or {}).get("lastScheduleTime") or _birth(owner))
        wait_s = last_s / 1e6 + self.every_s - self.registry.clock.now_us() / 1e6
        if wait_s > 0:
            self.enqueue_after(key_of(owner), wait_s)
            return
        self.drop(JOB, [one for one in self.owned(owner, JOB) if finished_condition(one)])
        name = f"{owner['metadata']['name']}-{int(now_s)}"
        self.make(owner, JOB, name, "run", {"spec": owner["spec"]["jobTemplate"]["spec"]})
        self.write(owner, lastScheduleTime=seconds(self.registry.clock.now_us()))


def _birth(owner: Json) -> str:
    return str(owner["metadata"]["creationTimestamp"])


class Widgets(Operator):
    """A driver, which asks for workers when it has been ready for some time."""

    kind_of = ("example.com/v1", "Widget")

    def sync(self, owner: Json) -> None:
        """One reconciliation."""
        spec, name = owner["spec"], owner["metadata"]["name"]
        drivers = self.owned(owner, role="driver")
        if not drivers:
            self.make_pod(owner, f"{name}-driver", "driver", spec["driver"]["template"])
            return
        workers = [one for one in self.owned(owner, role="worker") if is_active(one)]
        begun = (owner.get("status") or {}).get("begun")
        if not begun and not is_ready(drivers[0]):
            return
        if not begun:
            self.write(owner, begun=seconds(self.registry.clock.now_us()))
            return
        wait_s = (parse_us(begun) - self.registry.clock.now_us()) / 1e6 + spec["afterSeconds"]
        if wait_s > 0:
            self.enqueue_after(key_of(owner), wait_s)
            return
        for _ in range(spec["worker"]["replicas"] - len(workers)):
            self.make_pod(owner, f"{name}-worker-", "worker", spec["worker"]["template"])


OPERATORS: tuple[type[Operator], ...] = (
    *(JobSets, LeaderWorkerSets, LeaderPods, RayClusters, RayJobs, MPIJobs, CronJobs, Widgets),
)


def operators(registry: Registry) -> list[Operator]:
    """All of them, not started."""
    kinds = {owned for one in OPERATORS for owned in one.owns}
    indexes = {kind: OwnedIndex(registry, registry.kind(*kind)) for kind in kinds}
    return [one(registry, indexes) for one in OPERATORS]
