"""What the API server fills in when a Job is created.

The generated selector and labels are after ``pkg/registry/batch/job/strategy.go``.
"""

from typing import Any

from mcad.sim.objects.defaults import JOB_UID, default_job

Json = dict[str, Any]

JOB_NAME = "batch.kubernetes.io/job-name"
LEGACY_JOB_NAME, LEGACY_JOB_UID = "job-name", "controller-uid"


def job_defaults(job: Json) -> Json:
    """The Job, the caller's own copy, with a uid already, completed in place."""
    default_job(job)
    if not job["spec"]["manualSelector"]:
        _select_by_uid(job)
    default_job(job)  # a template without labels has some now
    return job


def _select_by_uid(job: Json) -> None:
    """Labels that no other Job's pods have; what the user gave stays, and is checked later."""
    spec, name, uid = job["spec"], job["metadata"].get("name", ""), job["metadata"]["uid"]
    template = spec["template"]
    metadata = template["metadata"] = template.get("metadata") or {}
    labels = metadata["labels"] = metadata.get("labels") or {}
    for key, value in (
        (LEGACY_JOB_NAME, name),
        (JOB_NAME, name),
        (LEGACY_JOB_UID, uid),
        (JOB_UID, uid),
    ):
        labels.setdefault(key, value)
    selector = spec["selector"] = spec.get("selector") or {}
    pairs = selector["matchLabels"] = selector.get("matchLabels") or {}
    pairs.setdefault(JOB_UID, uid)
