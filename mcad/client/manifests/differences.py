"""What a manifest of MCAD, or of AppWrapper with Kueue, does here that it did not do there.

The rules are those of docs/coming-from/mcad.md and docs/coming-from/appwrapper.md that a manifest
can show; a field that is not named here does what it did.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from mcad.api.appwrapper import Parsed
from mcad.api.defaults import first_priority_class
from mcad.api.labels import PRIORITY_CLASS
from mcad.api.tolerance import PREFIX
from mcad.api.wire import as_int, as_list, as_map, as_text
from mcad.core.state.model import Dialect, PodSet

Json = dict[str, Any]

QUEUE_NAME = "kueue.x-k8s.io/queue-name"
MINUTE = 60
GPU = "nvidia.com/gpu"
COUNTED_BY_MCAD = {"cpu", "memory", GPU, "pods"}
POD_SETS_MAX = 8
"""Of the chart's policy, as the controller has it because of Kueue."""


class Difference(Struct, frozen=True):
    """A field, what it did before, and what it does here: two sentences."""

    path: str
    before: str
    here: str


def differences(obj: Json, parsed: Parsed) -> list[Difference]:
    """The differences that this manifest shows, in the order of its fields."""
    found = _of_mcad if parsed.workload.dialect is Dialect.V1BETA1 else _of_the_controller
    return [*found(obj, parsed)]


def _of_mcad(obj: Json, parsed: Parsed) -> Iterator[Difference]:
    spec = as_map(obj.get("spec"))
    if as_int(spec.get("priority")) or spec.get("priorityslope"):
        yield Difference(
            "spec.priority",
            "Did not order the queue.",
            "Higher goes first, then first come first served.",
        )
    if name := _class_of(parsed):
        yield Difference(
            "spec.priority",
            f"PriorityClass {name} of its pods did not order the queue.",
            "It gives the AppWrapper its priority; set spec.priority to have another one.",
        )
    yield from _of_scheduling(as_map(spec.get("schedulingSpec")))
    for number, item in enumerate(as_list(as_map(spec.get("resources")).get("GenericItems"))):
        path = f"spec.resources.GenericItems[{number}]"
        yield from _of_an_item(path, as_map(item), _sets_of(parsed, number))


def _of_scheduling(scheduling: Json) -> Iterator[Difference]:
    path = "spec.schedulingSpec"
    requeuing = as_map(scheduling.get("requeuing"))
    if as_int(scheduling.get("minAvailable")) and not requeuing:
        yield Difference(
            f"{path}.minAvailable",
            "Was checked at the first minute.",
            "Too few pods are requeued after 300 s, the documented default; see requeuing.",
        )
    seconds = as_int(requeuing.get("timeInSeconds"))
    if 0 < seconds < MINUTE:
        yield Difference(
            f"{path}.requeuing.timeInSeconds",
            "Counted as 60 below 60.",
            f"Too few pods are requeued after {seconds} s.",
        )
    if times := as_int(requeuing.get("maxNumRequeuings")):
        yield Difference(
            f"{path}.requeuing.maxNumRequeuings",
            "Had no effect.",
            f"After {times} requeues its objects are deleted, and its state is Deleted.",
        )
    if limit := as_int(as_map(scheduling.get("dispatchDuration")).get("limit")):
        yield Difference(
            f"{path}.dispatchDuration.limit",
            "Failed at the first minute, and started again.",
            f"It fails after {limit} s, for good.",
        )


def _of_an_item(path: str, item: Json, sets: list[PodSet]) -> Iterator[Difference]:
    template = as_map(item.get("generictemplate"))
    pods = sum(one.replicas for one in sets)
    if template.get("kind") == "Job" and not item.get("custompodresources") and pods > 1:
        yield Difference(
            f"{path}.generictemplate.spec.parallelism",
            "Counted as one pod.",
            f"It is dispatched when {pods} pods fit.",
        )
    names = {name for one in sets for name, _ in one.request}
    if others := sorted(names - COUNTED_BY_MCAD):
        yield Difference(
            f"{path}.generictemplate",
            "Only cpu, memory and nvidia.com/gpu counted.",
            f"{', '.join(others)} counts as well.",
        )
    if GPU in names:
        yield Difference(
            f"{path}.generictemplate",
            "Pods with GPUs could be put on nodes that Autopilot has found bad.",
            "They are kept off these nodes (setting autopilot).",
        )


def _of_the_controller(obj: Json, parsed: Parsed) -> Iterator[Difference]:
    metadata, spec = as_map(obj.get("metadata")), as_map(obj.get("spec"))
    queue = as_text(as_map(metadata.get("labels")).get(QUEUE_NAME))
    if queue:
        yield Difference(
            f"metadata.labels.{QUEUE_NAME}",
            f"Chose the LocalQueue {queue}.",
            "There is one queue; with queueNameTree it names a leaf of that quota tree.",
        )
    label = parsed.workload.priority_label
    if label and not parsed.workload.has_priority:
        yield Difference(
            f"metadata.labels.{PRIORITY_CLASS}",
            f"Gave it the priority of WorkloadPriorityClass {label}.",
            "It does where Kueue's CRD of these classes is installed; else a PriorityClass counts: "
            f"{_class_of(parsed) or 'the global default'}. spec.priority overrides both.",
        )
    if spec.get("suspend") is True:
        yield Difference(
            "spec.suspend",
            "Kueue set it to false when there was room.",
            "It is on hold until you set it to false or omit it; `mcad release` does that.",
        )
    for number, component in enumerate(as_list(spec.get("components"))):
        path = f"spec.components[{number}]"
        yield from _of_a_component(path, as_map(component), _sets_of(parsed, number))
    yield from _of_pod_sets(parsed)
    if f"{PREFIX}retryLimit" in as_map(metadata.get("annotations")):
        yield Difference(
            f"metadata.annotations.{PREFIX}retryLimit",
            "An evacuation of a node counted as a retry.",
            "It does not count, and fails no AppWrapper.",
        )


def _of_a_component(path: str, component: Json, sets: list[PodSet]) -> Iterator[Difference]:
    template = as_map(component.get("template"))
    spec = as_map(template.get("spec"))
    completions, parallelism = (as_int(spec.get(key)) for key in ("completions", "parallelism"))
    if template.get("kind") == "Job" and completions > max(parallelism, 1):
        yield Difference(
            f"{path}.template.spec.completions",
            f"It succeeded after the first {max(parallelism, 1)} pods.",
            "It succeeds when the Job says so.",
        )
    if template.get("kind") == "RayJob" and len(sets) > 1:
        yield Difference(
            f"{path}.template",
            "The pod that submits the RayJob was not counted.",
            "It is, so it needs room as well.",
        )


def _of_pod_sets(parsed: Parsed) -> Iterator[Difference]:
    sets = parsed.workload.sets
    if not sets and parsed.workload.items:
        yield Difference(
            "spec.components",
            "Without pods it succeeded at once.",
            "It runs until it is deleted.",
        )
    if len(sets) > POD_SETS_MAX:
        yield Difference(
            "spec.components",
            f"At most {POD_SETS_MAX} pod sets were allowed.",
            f"It has {len(sets)}: the chart's maxPodSets allows so many.",
        )


def _class_of(parsed: Parsed) -> str:
    """The PriorityClass of its pods, "" if they name none or ``spec.priority`` counts."""
    if parsed.workload.has_priority:
        return ""
    return first_priority_class(parsed.workload, parsed.manifests)


def _sets_of(parsed: Parsed, item: int) -> list[PodSet]:
    return [one for one in parsed.workload.sets if one.item == item]
