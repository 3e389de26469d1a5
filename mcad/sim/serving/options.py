"""The query of a request, checked as kube-apiserver does before it looks at anything else."""

from __future__ import annotations

from collections.abc import Mapping

from mcad.sim import failures
from mcad.sim.failures import Cause
from mcad.sim.objects import causes

_EXACT, _NOT_OLDER = "Exact", "NotOlderThan"
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_MATCH = "resourceVersionMatch"


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


def check_list(params: Mapping[str, str]) -> None:
    """What a list may not ask for (``ValidateListOptions``); raises Failure 422."""
    faults = []
    match, text = params.get(_MATCH), params.get("resourceVersion")
    if match:
        if not text:
            faults.append(
                causes.forbidden(
                    _MATCH, f"{_MATCH} is forbidden unless resourceVersion is provided"
                )
            )
        faults += _with_token(params)
        if match not in {_EXACT, _NOT_OLDER}:
            faults.append(causes.not_supported(_MATCH, match, (_EXACT, _NOT_OLDER, "")))
        if match == _EXACT and text == "0":
            detail = f'{_MATCH} "exact" is forbidden for resourceVersion "0"'
            faults.append(causes.forbidden(_MATCH, detail))
    if params.get("sendInitialEvents"):
        detail = "sendInitialEvents is forbidden for list"
        faults.append(causes.forbidden("sendInitialEvents", detail))
    _refuse("ListOptions", faults)


def check_watch(params: Mapping[str, str]) -> None:
    """The same for a watch."""
    faults = []
    match, initial = params.get(_MATCH), params.get("sendInitialEvents")
    if initial and match != _NOT_OLDER:
        detail = f"sendInitialEvents requires setting {_MATCH} to {_NOT_OLDER}"
        faults.append(causes.forbidden(_MATCH, detail))
    if match:
        if not initial:
            detail = f"{_MATCH} is forbidden for watch unless sendInitialEvents is provided"
            faults.append(causes.forbidden(_MATCH, detail))
        if match != _NOT_OLDER:
            faults.append(causes.not_supported(_MATCH, match, (_NOT_OLDER,)))
        faults += _with_token(params)
    _refuse("ListOptions", faults)


def check_write(params: Mapping[str, str], options: str) -> None:
    """``dryRun`` and ``fieldValidation`` of CreateOptions, UpdateOptions or PatchOptions."""
    faults = []
    dry_run = params.get("dryRun", "All")
    if dry_run != "All":
        faults.append(causes.not_supported("dryRun", [dry_run], ("All",)))
    validation = params.get("fieldValidation", "")
    if validation not in _VALIDATIONS:
        faults.append(causes.not_supported("fieldValidation", validation, _VALIDATIONS))
    _refuse(options, faults)


def _with_token(params: Mapping[str, str]) -> list[Cause]:
    if not params.get("continue"):
        return []
    return [causes.forbidden(_MATCH, f"{_MATCH} is forbidden when continue is provided")]


def _refuse(options: str, faults: list[Cause]) -> None:
    if faults:
        raise failures.invalid_options(options, faults)
