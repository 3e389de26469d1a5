"""The query of a request, checked as kube-apiserver does before it looks at anything else."""

from __future__ import annotations

from collections.abc import Mapping

from mcad.sim import failures
from mcad.sim.objects import causes

_VALIDATIONS = ("", "Ignore", "Strict", "Warn")


def integer(params: Mapping[str, str], name: str) -> int:
    """A number, 0 if there is none; raises Failure 400."""
    text = params.get(name) or "0"
    try:
        return int(text)
    except ValueError:
        message = f'strconv.ParseInt: parsing "{text}": invalid syntax'
        raise failures.bad_request(message) from None


def version(params: Mapping[str, str]) -> int:
    """``resourceVersion``, 0 if there is none; raises Failure 400."""
    text = params.get("resourceVersion") or "0"
    if not text.isdecimal():
        raise failures.bad_request(f"invalid resource version: {bad_version(text)}")
    return int(text)


def bad_version(text: str) -> str:
    """What is wrong with a version that is no number."""
    return (
        f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}":'
        " invalid syntax"
    )


def check_write(params: Mapping[str, str], options: str) -> None:
    """``dryRun`` and ``fieldValidation`` of CreateOptions, UpdateOptions or PatchOptions."""
    faults = []
    dry_run = params.get("dryRun", "All")
    if dry_run != "All":
        faults.append(causes.not_supported("dryRun", [dry_run], ("All",)))
    validation = params.get("fieldValidation", "")
    if validation not in _VALIDATIONS:
        faults.append(causes.not_supported("fieldValidation", validation, _VALIDATIONS))
    if faults:
        raise failures.invalid_options(options, faults)
