"""What must hold of Jobs (``k8s.io/kubernetes/pkg/apis/batch/validation``)."""

from __future__ import annotations

from collections.abc import Iterator

from mcad.kube.types import Json
from mcad.sim.failures import Cause
from mcad.sim.objects.causes import invalid, not_supported, required
from mcad.sim.objects.defaults import JOB_UID
from mcad.sim.objects.metavalidation import selector_faults
from mcad.sim.objects.podvalidation import not_negative
from mcad.sim.objects.templatevalidation import match_faults, template_faults

_RESTART = ("OnFailure", "Never")


def job_faults(obj: Json) -> Iterator[Cause]:
    """Faults of a defaulted Job, whose selector is generated already."""
    spec, uid = obj["spec"], (obj.get("metadata") or {}).get("uid")
    selector, template = spec.get("selector"), spec.get("template") or {}
    yield from _job_spec(spec, "spec")
    if selector is None:
        yield required("spec.selector")
    else:
        yield from selector_faults(selector, "spec.selector")
        if not spec.get("manualSelector") and selector != {"matchLabels": {JOB_UID: uid}}:
            yield invalid("spec.selector", selector, "`selector` not auto-generated")
    yield from match_faults(selector, template)


def _job_spec(spec: Json, field: str) -> Iterator[Cause]:
    counts = (
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    )
    yield from not_negative(spec, counts, field)
    yield from _indexed(spec, field)
    replacement = spec.get("podReplacementPolicy")
    policies = ("Failed", "TerminatingOrFailed")
    if replacement is not None and replacement not in policies:
        yield not_supported(f"{field}.podReplacementPolicy", replacement, policies)
    template = spec.get("template") or {}
    yield from template_faults(template, f"{field}.template")
    restart = (template.get("spec") or {}).get("restartPolicy")
    field_of_restart = f"{field}.template.spec.restartPolicy"
    if restart == "Always":
        listed = ", ".join(f'"{one}"' for one in _RESTART)
        yield required(field_of_restart, f"valid values: {listed}")
    elif restart not in _RESTART:
        yield not_supported(field_of_restart, restart, _RESTART)
    if spec.get("podFailurePolicy") is not None:
        yield from _failure_policy(spec["podFailurePolicy"], restart, field)


def _indexed(spec: Json, field: str) -> Iterator[Cause]:
    mode = spec.get("completionMode")
    if mode not in {"Indexed", "NonIndexed"}:
        yield not_supported(f"{field}.completionMode", mode, ("NonIndexed", "Indexed"))
    elif mode == "Indexed" and spec.get("completions") is None:
        yield required(f"{field}.completions", "when completion mode is Indexed")
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        detail = "when maxFailedIndexes is specified"
        yield required(f"{field}.backoffLimitPerIndex", detail)
    if mode == "NonIndexed":
        for key in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(key) is not None:
                yield invalid(f"{field}.{key}", spec[key], "requires indexed completion mode")


def _failure_policy(policy: Json, restart: str | None, field: str) -> Iterator[Cause]:
    if restart != "Never":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        yield invalid(f"{field}.template.spec.restartPolicy", restart, detail)
    actions = ("Count", "FailIndex", "FailJob", "Ignore")
    for index, rule in enumerate(policy.get("rules") or ()):
        place = f"{field}.podFailurePolicy.rules[{index}]"
        if rule.get("action") not in actions:
            yield not_supported(f"{place}.action", rule.get("action") or "", actions)
        if rule.get("onExitCodes") is None and not rule.get("onPodConditions"):
            detail = "Invalid value: specifying one of OnExitCodes and OnPodConditions is required"
            yield Cause("FieldValueInvalid", detail, place)
