"""What must hold of the template of pods, whatever makes pods from it."""

from __future__ import annotations

from collections.abc import Iterator

from mcad.kube.selectors import label_selector
from mcad.kube.types import Json
from mcad.sim.failures import Cause
from mcad.sim.objects.causes import invalid
from mcad.sim.objects.metavalidation import annotation_faults, label_faults
from mcad.sim.objects.podvalidation import pod_spec_faults

_MISMATCH = "`selector` does not match template `labels`"


def match_faults(selector: Json | None, template: Json) -> Iterator[Cause]:
    """A selector that does not select the pods of its template."""
    labels = (template.get("metadata") or {}).get("labels")
    if not label_selector(selector)(labels or {}):
        yield invalid("spec.template.metadata.labels", labels, _MISMATCH)


def template_faults(template: Json, field: str) -> list[Cause]:
    """Faults of a pod template."""
    metadata = template.get("metadata") or {}
    return [
        *label_faults(metadata.get("labels"), f"{field}.labels"),
        *annotation_faults(metadata.get("annotations"), f"{field}.annotations"),
        *pod_spec_faults(template.get("spec") or {}, f"{field}.spec"),
    ]
