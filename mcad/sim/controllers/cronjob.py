"""CronJobs: Jobs by the clock. After ``pkg/controller/cronjob/cronjob_controllerv2.go``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from mcad.sim.controllers import cron
from mcad.sim.controllers.index import OwnedIndex
from mcad.sim.controllers.jobpods import finished_condition
from mcad.sim.controllers.pods import controller_of, is_deleting, reference_to
from mcad.sim.controllers.workload import Workload, is_namespace_going
from mcad.sim.deletion import Deletion
from mcad.sim.failures import Failure
from mcad.sim.registry import Registry, key_of
from mcad.sim.store import Change, Key
from mcad.sim.times import parse_us, seconds

Json = dict[str, Any]

SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
LATE_S = 0.1  # the controller looks a little after the time, not a little before
MANY = 100  # missed times that are worth a warning


class CronJobController(Workload):
    """Creates a Job when it is time, and deletes old ones."""

    def __init__(self, registry: Registry, jobs: OwnedIndex) -> None:
        """``jobs`` is the index that all controllers share."""
        kind = registry.kind("batch/v1", "CronJob")
        super().__init__(registry, kind, jobs, "cronjob-controller")

    def on_owner(self, change: Change) -> None:
        """With another schedule nothing is due before that says so."""
        before, now = change.previous, change.obj
        if change.type == "MODIFIED" and before is not None:
            if before["metadata"].get("generation") == now["metadata"].get("generation"):
                return
            names = ("schedule", "timeZone")
            if any(before["spec"].get(name) != now["spec"].get(name) for name in names):
                self._wait(now)
                return
        if change.type != "DELETED":
            self.enqueue(change.key)

    def on_any(self, _change: Change) -> None:
        """Jobs are never adopted."""

    def reconcile(self, key: Key) -> None:
        """Take note of Jobs that have ended, and create one if it is time."""
        owner = self.registry.find(self.kind, key)
        if owner is None:
            return
        jobs = self.owned.owned(owner["metadata"]["uid"])
        status = dict(owner.get("status") or {})
        status["active"] = list(status.get("active") or ())
        self._note_jobs(owner, jobs, status)
        if not is_deleting(owner):
            try:
                self._run(owner, status)
            finally:
                self._write(owner, status)
            self._clean_up(owner, jobs, status)
        self._write(owner, status)

    def _write(self, owner: Json, status: Json) -> None:
        told = {name: value for name, value in status.items() if value}
        live = self.registry.find(self.kind, key_of(owner))
        if live is not None:
            self.write_status(live, told)

    # -- looking -------------------------------------------------------------------------------

    def _note_jobs(self, owner: Json, jobs: list[Json], status: Json) -> None:
        for job in jobs:
            metadata, end = job["metadata"], finished_condition(job)
            known = any(one["uid"] == metadata["uid"] for one in status["active"])
            if end is None:
                if not known:
                    text = "Saw a job that the controller did not create or forgot: "
                    self.recorder.warning(owner, "UnexpectedJob", text + metadata["name"])
                continue
            if known:
                _forget(status, metadata["uid"])
                text = f"Saw completed job: {metadata['name']}, condition: {end['type']}"
                self.recorder.normal(owner, "SawCompletedJob", text)
            completed = (job.get("status") or {}).get("completionTime") or ""
            if end["type"] == "Complete" and completed > status.get("lastSuccessfulTime", ""):
                status["lastSuccessfulTime"] = completed
        present = {job["metadata"]["uid"] for job in jobs}
        for one in list(status["active"]):
            if one["uid"] not in present:
                self.recorder.normal(owner, "MissingJob", f"Active job went missing: {one['name']}")
                _forget(status, one["uid"])

    # -- running -------------------------------------------------------------------------------

    def _run(self, owner: Json, status: Json) -> None:
        """Create the Job that is due, if there is one; raises Failure."""
        spec, now_us = owner["spec"], self.registry.clock.now_us()
        schedule = self._parsed(owner)
        if schedule is None or spec.get("suspend"):
            return
        due_us, missed = _due(owner, status, schedule, now_us)
        if missed > MANY:
            text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds"
            text += " or check clock skew"
            self.recorder.warning(owner, "TooManyMissedTimes", text)
        if due_us is not None and self._may_start(owner, status, due_us):
            self._start(owner, status, due_us)
        self._wait(owner | {"status": status})

    def _parsed(self, owner: Json) -> cron.Schedule | None:
        spec = owner["spec"]
        try:
            return cron.parse(spec["schedule"], spec.get("timeZone") or "")
        except cron.UnknownZoneError as error:
            text = f'invalid timeZone: "{spec["timeZone"]}": {error}'
            self.recorder.warning(owner, "UnknownTimeZone", text)
            return None
        except ValueError as error:
            text = f'unparseable schedule: "{spec["schedule"]}" : {error}'
            self.recorder.warning(owner, "UnparseableSchedule", text)
            return None

    def _wait(self, owner: Json) -> None:
        """Look again at the next time of the schedule."""
        schedule, now_us = self._parsed(owner), self.registry.clock.now_us()
        next_us = schedule.next_us(now_us) if schedule is not None else None
        if next_us is not None:
            self.enqueue_after(key_of(owner), (next_us - now_us) / 1e6 + LATE_S)

    def _may_start(self, owner: Json, status: Json, due_us: int) -> bool:
        spec, now_us = owner["spec"], self.registry.clock.now_us()
        deadline_s = spec.get("startingDeadlineSeconds")
        if deadline_s is not None and due_us + deadline_s * 1_000_000 < now_us:
            at = datetime.fromtimestamp(due_us / 1e6, UTC).strftime("%a, %d %b %Y %H:%M:%S %z")
            text = f"Missed scheduled time to start a job: {at}"
            self.recorder.warning(owner, "MissSchedule", text)
            return False
        name = _job_name(owner, due_us)
        if any(one["name"] == name for one in status["active"]):
            return False
        if status.get("lastScheduleTime") == seconds(due_us):
            return False
        policy = spec.get("concurrencyPolicy", "Allow")
        if policy == "Forbid" and status["active"]:
            text = "Not starting job because prior execution is running and concurrency policy is"
            self.recorder.normal(owner, "JobAlreadyActive", f"{text} Forbid")
            return False
        if policy == "Replace":
            for one in list(status["active"]):
                job = self.registry.get(self.owned.kind, (one["namespace"], one["name"]))
                self._delete(owner, job, status)
        return True

    def _start(self, owner: Json, status: Json, due_us: int) -> None:
        namespace = owner["metadata"]["namespace"]
        try:
            job = self.registry.create(self.owned.kind, namespace, _job(owner, due_us))
        except Failure as failure:
            if failure.reason == "AlreadyExists":
                job = self.registry.get(self.owned.kind, (namespace, _job_name(owner, due_us)))
                if (controller_of(job) or {}).get("uid") != owner["metadata"]["uid"]:
                    return
            else:
                if not is_namespace_going(failure):
                    text = f"Error creating job: {failure.message}"
                    self.recorder.warning(owner, "FailedCreate", text)
                raise
        else:
            name = job["metadata"]["name"]
            self.recorder.normal(owner, "SuccessfulCreate", f"Created job {name}")
        status["active"].append(_reference(job))
        status["lastScheduleTime"] = seconds(due_us)

    # -- deleting ------------------------------------------------------------------------------

    def _clean_up(self, owner: Json, jobs: list[Json], status: Json) -> None:
        spec = owner["spec"]
        for end, name, default in (
            ("Complete", "successfulJobsHistoryLimit", 3),
            ("Failed", "failedJobsHistoryLimit", 1),
        ):
            ended = [job for job in jobs if (finished_condition(job) or {}).get("type") == end]
            ended = [job for job in ended if not is_deleting(job)]
            ended.sort(key=_by_start)
            for job in ended[: max(len(ended) - spec.get(name, default), 0)]:
                self._delete(owner, job, status)

    def _delete(self, owner: Json, job: Json, status: Json) -> None:
        name = job["metadata"]["name"]
        try:
            self.registry.delete(self.owned.kind, key_of(job), Deletion(propagation="Background"))
        except Failure as failure:
            self.recorder.warning(owner, "FailedDelete", f"Deleted job: {failure.message}")
            raise
        _forget(status, job["metadata"]["uid"])
        self.recorder.normal(owner, "SuccessfulDelete", f"Deleted job {name}")


def _due(owner: Json, status: Json, schedule: cron.Schedule, now_us: int) -> tuple[int | None, int]:
    """The last time that has passed without a Job, and about how many there were."""
    metadata, spec = owner["metadata"], owner["spec"]
    since_us = parse_us(status.get("lastScheduleTime") or metadata["creationTimestamp"])
    deadline_s = spec.get("startingDeadlineSeconds")
    if deadline_s is not None:
        since_us = max(since_us, now_us - deadline_s * 1_000_000)
    first = schedule.next_us(since_us)
    if first is None or first > now_us:
        return None, 0
    second = schedule.next_us(first)
    if second is None or second > now_us:
        return first, 1
    missed = (now_us - first) // (second - first) + 1
    # Near the end, because one after the other would take long after a long pause.
    last, following = first, schedule.next_us(first + (missed - 2) * (second - first))
    while following is not None and following <= now_us:
        last, following = following, schedule.next_us(following)
    return last, missed


def _job_name(owner: Json, due_us: int) -> str:
    return f"{owner['metadata']['name']}-{due_us // 60_000_000}"


def _job(owner: Json, due_us: int) -> Json:
    template = owner["spec"].get("jobTemplate") or {}
    metadata = template.get("metadata") or {}
    zone = owner["spec"].get("timeZone") or ""
    local = datetime.fromtimestamp(due_us // 1_000_000, UTC)
    if zone not in {"", "UTC"}:
        local = local.astimezone(ZoneInfo(zone))
    at = local.isoformat().replace("+00:00", "Z")
    return {
        "metadata": {
            "name": _job_name(owner, due_us),
            "labels": metadata.get("labels") or {},
            "annotations": (metadata.get("annotations") or {}) | {SCHEDULED_AT: at},
            "ownerReferences": [reference_to(owner)],
        },
        "spec": template.get("spec") or {},
    }


def _reference(job: Json) -> Json:
    metadata = job["metadata"]
    names = ("namespace", "name", "uid", "resourceVersion")
    kind = {"apiVersion": job["apiVersion"], "kind": job["kind"]}
    return kind | {name: metadata[name] for name in names}


def _forget(status: Json, uid: str) -> None:
    status["active"] = [one for one in status["active"] if one["uid"] != uid]


def _by_start(job: Json) -> tuple[bool, str, str]:
    start = (job.get("status") or {}).get("startTime") or ""
    return not start, start, job["metadata"]["name"]
