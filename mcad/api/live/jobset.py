"""JobSets (jobset.x-k8s.io/v1alpha2).

Facts from sigs.k8s.io/jobset 0.8.2: JobSetSpec.replicatedJobs (replicas, dependsOn),
startupPolicy.startupPolicyOrder, failurePolicy; JobSetStatus.conditions (types Completed, Failed),
terminalState, restarts, replicatedJobsStatus (ready, succeeded, failed, active). Acts of the
controller: dependencyReachedStatus, allReplicasStarted and failurePolicyRecreateAll of
pkg/controllers.
"""

from collections.abc import Mapping

from mcad.api.kinds import job_pods, replicas
from mcad.api.live.reading import LiveObject, LiveSet, Reading, end_of, wanted
from mcad.api.located_fields import Part
from mcad.api.wire import as_list, as_map, as_text
from mcad.core.state.model import ItemState, Wanted

_ENDS = {"Completed": ItemState.SUCCEEDED, "Failed": ItemState.FAILED}

Reports = Mapping[str, Part]
"""The status of each replicated job by its name."""


def reports_of(status: Part, field: str) -> dict[str, Part]:
    """The elements of a list of the status by their ``name``."""
    elements = map(as_map, as_list(status.value.get(field)))
    return {as_text(one.get("name")): Part(one, "", []) for one in elements}


def started(report: Part | None) -> int:
    """Jobs of a replicated job that have started: ready, succeeded or failed."""
    if report is None:
        return 0
    return sum(report.count(key, 0) for key in ("ready", "succeeded", "failed"))


def read_jobset(obj: LiveObject) -> Reading:
    """The pods of the jobs that have not succeeded; those of a later stage come later."""
    end = end_of(obj, _ENDS) or _terminal(obj)
    if end is not None:
        return end
    reports = reports_of(obj.status, "replicatedJobsStatus")
    due = {one.path: _is_due(obj, number, reports) for number, one in enumerate(obj.sets)}
    wants = {one.path: _wanted(one, reports, due=due[one.path]) for one in obj.sets}
    current = [one for one in obj.sets if due[one.path]]
    is_retrying = _is_restarting(obj, current, reports)
    return Reading(wants, ItemState.RETRYING if is_retrying else ItemState.PROGRESSING)


def _terminal(obj: LiveObject) -> Reading | None:
    state = _ENDS.get(as_text(obj.status.value.get("terminalState")))
    return Reading(obj.none(), state) if state is not None else None


def _wanted(one: LiveSet, reports: Reports, *, due: bool) -> Wanted:
    report = reports.get(_name(one.part))
    succeeded = report.count("succeeded", 0) if report is not None else 0
    left = max(0, replicas(one.part) - succeeded)
    pods = left * job_pods(one.part.deep("template.spec"))
    return wanted(pods) if due else wanted(0, pods)


def _is_due(obj: LiveObject, number: int, reports: Reports) -> bool:
    """Whether the jobs of a replicated job are created by now."""
    own = reports.get(_name(obj.sets[number].part))
    if own is not None and (started(own) or own.count("active", 0)):
        return True
    if obj.spec.at("startupPolicy").value.get("startupPolicyOrder") == "InOrder":
        before = [one.part for one in obj.sets[:number]]
        if not all(_reached(part, "Ready", reports) for part in before):
            return False
    needs = map(as_map, as_list(obj.sets[number].part.value.get("dependsOn")))
    return all(
        _reached(_named(obj, as_text(one.get("name"))), as_text(one.get("status")), reports)
        for one in needs
    )


def _named(obj: LiveObject, name: str) -> Part | None:
    return next((one.part for one in obj.sets if _name(one.part) == name), None)


def _reached(part: Part | None, status: str, reports: Reports) -> bool:
    """Whether a replicated job that others wait for is as far as that."""
    if part is None:
        return False
    report = reports.get(_name(part), Part({}, "", []))
    done = report.count("succeeded", 0) if status == "Complete" else started(report)
    return done >= replicas(part)


def _is_restarting(obj: LiveObject, due: list[LiveSet], reports: Reports) -> bool:
    """Whether a job has failed and its JobSet begins again: it makes all jobs anew."""
    is_tried_again = "failurePolicy" in obj.spec.value
    if is_tried_again and any(one.count("failed", 0) for one in reports.values()):
        return True
    return obj.status.count("restarts", 0) > 0 and not all(_runs(one.part, reports) for one in due)


def _runs(part: Part, reports: Reports) -> bool:
    """Whether each job of a replicated job has pods, or has succeeded."""
    report = reports.get(_name(part), Part({}, "", []))
    return report.count("active", 0) + report.count("succeeded", 0) >= replicas(part)


def _name(part: Part) -> str:
    return as_text(part.value.get("name"))
