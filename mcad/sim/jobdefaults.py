"""What the API server fills in when a Job is created.

Defaults after ``pkg/apis/batch/v1/defaults.go`` (they are also those of the Jobs that a CronJob
makes), the generated selector and labels after ``pkg/registry/batch/job/strategy.go``.
"""

from typing import Any

Json = dict[str, Any]

JOB_NAME, CONTROLLER_UID = "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"
LEGACY_JOB_NAME, LEGACY_CONTROLLER_UID = "job-name", "controller-uid"
NO_BACKOFF_LIMIT = (1 << 31) - 1  # the default if there is a limit per index
BACKOFF_LIMIT = 6


def job_defaults(job: Json) -> Json:
    """The Job, the caller's own copy, with a uid already, completed in place."""
    spec = job.setdefault("spec", {})
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    per_index = spec.get("backoffLimitPerIndex") is not None
    strict = spec.get("podFailurePolicy") is not None
    for name, value in (
        ("parallelism", 1),
        ("backoffLimit", NO_BACKOFF_LIMIT if per_index else BACKOFF_LIMIT),
        ("completionMode", "NonIndexed"),
        ("suspend", False),
        ("podReplacementPolicy", "Failed" if strict else "TerminatingOrFailed"),
        ("manualSelector", False),
    ):
        if spec.get(name) is None:
            spec[name] = value
    if not spec["manualSelector"]:
        _select_by_uid(job)
    labels = (spec.get("template") or {}).get("metadata", {}).get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)
    return job


def _select_by_uid(job: Json) -> None:
    """Labels that no other Job's pods have; what the user gave stays, and is checked later."""
    spec, name, uid = job["spec"], job["metadata"].get("name", ""), job["metadata"]["uid"]
    template = spec.setdefault("template", {})
    metadata = template["metadata"] = template.get("metadata") or {}
    labels = metadata["labels"] = metadata.get("labels") or {}
    for key, value in (
        (LEGACY_JOB_NAME, name),
        (JOB_NAME, name),
        (LEGACY_CONTROLLER_UID, uid),
        (CONTROLLER_UID, uid),
    ):
        labels.setdefault(key, value)
    selector = spec["selector"] = spec.get("selector") or {}
    pairs = selector["matchLabels"] = selector.get("matchLabels") or {}
    pairs.setdefault(CONTROLLER_UID, uid)
