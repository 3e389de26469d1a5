"""What must hold of an object of a built-in kind beyond its types: the common rules.

Names and labels of everything; pods, and selectors against templates, of what makes pods. The
words were taken from the answers of a real server (tests/sim/golden/validation.json). Objects are
decoded and have their defaults. What else a real server checks, it is left to check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mcad.kube import names
from mcad.kube.selectors import label_selector
from mcad.kube.types import Json
from mcad.sim.failures import Cause
from mcad.sim.kinds import Kind
from mcad.sim.objects.causes import forbidden, invalid, not_supported, required
from mcad.sim.objects.defaults import JOB_UID
from mcad.sim.objects.immutable import change_faults
from mcad.sim.objects.metavalidation import metadata_change_faults, metadata_faults, selector_faults
from mcad.sim.objects.podvalidation import not_negative, pod_spec_faults, template_faults

PRIORITY_MAX = 1_000_000_000
_SYSTEM = "system-"
_JOB_RESTARTS = ("OnFailure", "Never")
_JOB_COUNTS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit")
_MISMATCH = "`selector` does not match template `labels`"


def validate_create(kind: Kind, obj: Json) -> list[Cause]:
    """What is wrong with a new object; of a custom kind, only its metadata is looked at."""
    return [*metadata_faults(kind, obj), *_faults(kind, obj)]


def validate_update(kind: Kind, new: Json, old: Json) -> list[Cause]:
    """What is wrong with a change of an object."""
    causes = [*metadata_faults(kind, new), *metadata_change_faults(new, old), *_faults(kind, new)]
    if not kind.is_custom:
        causes += change_faults(kind, new, old)
    return list(dict.fromkeys(causes))


def _faults(kind: Kind, obj: Json) -> Iterator[Cause]:
    check = None if kind.is_custom else _KINDS.get((kind.group, kind.kind))
    if check is not None:
        yield from check(obj)


def _pod(obj: Json) -> Iterator[Cause]:
    yield from pod_spec_faults(obj.get("spec") or {})


def _with_replicas(kind: str) -> Callable[[Json], Iterator[Cause]]:
    """What keeps pods running; ``kind`` is how messages call it."""

    def check(obj: Json) -> Iterator[Cause]:
        spec = obj.get("spec") or {}
        selector, template = spec.get("selector"), spec.get("template") or {}
        yield from not_negative(spec, ("replicas",), "spec")
        if selector is None:
            yield required("spec.selector")
        yield from _selector_faults(selector, template, kind)
        yield from template_faults(template, "spec.template")
        restart = (template.get("spec") or {}).get("restartPolicy")
        if restart != "Always":
            yield not_supported("spec.template.spec.restartPolicy", restart, ("Always",))

    return check


def _selector_faults(selector: Json | None, template: Json, kind: str) -> Iterator[Cause]:
    faults = list(selector_faults(selector, "spec.selector"))
    yield from faults
    if faults:
        yield invalid("spec.selector", selector, "invalid label selector")
    elif selector == {}:
        yield invalid("spec.selector", selector, f"empty selector is invalid for {kind}")
    else:
        yield from _match_faults(selector, template)


def _match_faults(selector: Json | None, template: Json) -> Iterator[Cause]:
    """A selector that does not select the pods of its template."""
    labels = (template.get("metadata") or {}).get("labels")
    if not label_selector(selector)(labels or {}):
        yield invalid("spec.template.metadata.labels", labels, _MISMATCH)


def _job(obj: Json) -> Iterator[Cause]:
    """A defaulted Job, whose selector is generated already."""
    spec, uid = obj["spec"], (obj.get("metadata") or {}).get("uid")
    selector, template = spec.get("selector"), spec.get("template") or {}
    yield from not_negative(spec, _JOB_COUNTS, "spec")
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        yield required("spec.completions", "when completion mode is Indexed")
    yield from template_faults(template, "spec.template")
    restart, field = (template.get("spec") or {}).get("restartPolicy"), "spec.template.spec"
    if restart == "Always":
        listed = ", ".join(f'"{one}"' for one in _JOB_RESTARTS)
        yield required(f"{field}.restartPolicy", f"valid values: {listed}")
    elif restart not in _JOB_RESTARTS:
        yield not_supported(f"{field}.restartPolicy", restart, _JOB_RESTARTS)
    yield from selector_faults(selector, "spec.selector")
    if not spec.get("manualSelector") and selector != {"matchLabels": {JOB_UID: uid}}:
        yield invalid("spec.selector", selector, "`selector` not auto-generated")
    yield from _match_faults(selector, template)


def _config(obj: Json) -> Iterator[Cause]:
    for part in ("data", "binaryData"):
        for key in obj.get(part) or ():
            for fault in names.config_key(key):
                yield invalid(f"{part}[{key}]", key, fault)


def _service(obj: Json) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    has_none = spec.get("clusterIP") == "None" or spec.get("externalName")
    if not spec.get("ports") and not has_none:
        yield required("spec.ports")


def _priority_class(obj: Json) -> Iterator[Cause]:
    name, value = (obj.get("metadata") or {}).get("name") or "", obj.get("value") or 0
    if name.startswith(_SYSTEM):
        detail = f"priority class names with '{_SYSTEM}' prefix are reserved for system use only. "
        detail += f"error: {name} is not a known system priority class"
        yield forbidden("metadata.name", detail)
    elif value > PRIORITY_MAX:
        detail = f"maximum allowed value of a user defined priority is {PRIORITY_MAX}"
        yield forbidden("value", detail)


_KINDS: dict[tuple[str, str], Callable[[Json], Iterator[Cause]]] = {
    ("", "Pod"): _pod,
    ("", "ConfigMap"): _config,
    ("", "Secret"): _config,
    ("", "Service"): _service,
    ("apps", "Deployment"): _with_replicas("deployment"),
    ("apps", "ReplicaSet"): _with_replicas("deployment"),
    ("apps", "StatefulSet"): _with_replicas("statefulset"),
    ("apps", "DaemonSet"): _with_replicas("daemonset"),
    ("batch", "Job"): _job,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
}
