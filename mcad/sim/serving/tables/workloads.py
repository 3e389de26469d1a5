"""Rows of everything that makes pods: apps and batch, without kinds that are never wrapped."""

from __future__ import annotations

from typing import Any

from mcad.kube.types import Json
from mcad.sim import times
from mcad.sim.serving.tables.printer import (
    age,
    condition,
    containers,
    human,
    labels,
    name,
    printer,
    selector,
    since,
    status,
    template,
)

_WIDE = "Containers+, Images+, Selector+"
_JOB_STATES = (  # the first that holds; a deletion comes between the first two and the others
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _count(obj: Json, field: str) -> int:
    count: int = status(obj).get(field) or 0
    return count


def _deployment(obj: Json, now_us: int) -> list[Any]:
    return [
        name(obj),
        f"{_count(obj, 'readyReplicas')}/{obj['spec'].get('replicas', 1)}",
        _count(obj, "updatedReplicas"),
        _count(obj, "availableReplicas"),
        age(obj, now_us),
        *containers(template(obj)),
        selector(obj["spec"].get("selector"), ""),
    ]


def _replicas(obj: Json, now_us: int) -> list[Any]:
    return [
        name(obj),
        obj["spec"].get("replicas", 1),
        _count(obj, "replicas"),
        _count(obj, "readyReplicas"),
        age(obj, now_us),
        *containers(template(obj)),
        selector(obj["spec"].get("selector")),
    ]


def _stateful_set(obj: Json, now_us: int) -> list[Any]:
    ready = f"{_count(obj, 'readyReplicas')}/{obj['spec'].get('replicas', 1)}"
    return [name(obj), ready, age(obj, now_us), *containers(template(obj))]


def _daemon_set(obj: Json, now_us: int) -> list[Any]:
    return [
        name(obj),
        _count(obj, "desiredNumberScheduled"),
        _count(obj, "currentNumberScheduled"),
        _count(obj, "numberReady"),
        _count(obj, "updatedNumberScheduled"),
        _count(obj, "numberAvailable"),
        labels(template(obj).get("nodeSelector")),
        age(obj, now_us),
        *containers(template(obj)),
        selector(obj["spec"].get("selector")),
    ]


def _job(obj: Json, now_us: int) -> list[Any]:
    return [
        name(obj),
        _job_state(obj),
        _completions(obj),
        _job_duration(obj, now_us),
        age(obj, now_us),
        *containers(template(obj)),
        selector(obj["spec"].get("selector")),
    ]


def _job_state(obj: Json) -> str:
    for kind, word in _JOB_STATES:
        if not kind and obj["metadata"].get("deletionTimestamp"):
            return word
        if kind and condition(obj, kind).get("status") == "True":
            return word
    return "Running"


def _completions(obj: Json) -> str:
    spec, succeeded = obj["spec"], _count(obj, "succeeded")
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(obj: Json, now_us: int) -> str:
    began, ended = status(obj).get("startTime"), status(obj).get("completionTime")
    if not began:
        return ""
    if not ended:
        return since(began, now_us)
    return human(times.parse_us(ended) - times.parse_us(began))


DEPLOYMENTS = printer(f"Name, Ready, Up-to-date, Available, Age, {_WIDE}", _deployment)
REPLICAS = printer(
    f"Name, Desired:integer, Current:integer, Ready:integer, Age, {_WIDE}", _replicas
)
STATEFUL_SETS = printer("Name, Ready, Age, Containers+, Images+", _stateful_set)
DAEMON_SETS = printer(
    "Name, Desired:integer, Current:integer, Ready:integer, Up-to-date:integer, "
    f"Available:integer, Node Selector, Age, {_WIDE}",
    _daemon_set,
)
JOBS = printer(f"Name, Status, Completions, Duration, Age, {_WIDE}", _job)
