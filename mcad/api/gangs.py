"""Warns of gangs that need more pods than the AppWrapper has: they would wait forever.

A PodGroup is an item without pods. Pods name one of the coscheduler by a label, and one of
Kubernetes (KEP-4671) by ``schedulingGroup``; the scheduler binds none of them until there are
``minMember``, or ``minCount``, of them. Neither field is ever added (ADR 54).
"""

import json
from collections.abc import Iterator, Sequence

from mcad.api import labels
from mcad.api.podsets import infer, template_of
from mcad.api.wire import Json, Map, as_int, as_text, dig
from mcad.api.wrapped_kinds import makes_pods
from mcad.core.state.model import Item, PodSet

NATIVE_GROUP = "scheduling.k8s.io"
"""The API group of the kind PodGroup of Kubernetes."""

POD_GROUPS = frozenset({NATIVE_GROUP, "scheduling.x-k8s.io", "scheduling.sigs.k8s.io"})
"""API groups of the kind PodGroup: also the coscheduler's, and that of manifests from before 2022.
"""

POD_GROUP_LABELS = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")


def too_few_pods(least: int, items: Sequence[Item], sets: Sequence[PodSet]) -> Iterator[str]:
    """A warning if ``minAvailable`` is more than the number of pods, unless that is unknown."""
    counted = {one.item for one in sets}
    known = all(
        number in counted or not makes_pods(item.ref.group, item.ref.resource)
        for number, item in enumerate(items)
    )
    there = sum(one.replicas for one in sets)
    if least > there and known and not any(one.per_node for one in sets):
        yield (
            f"schedulingSpec.minAvailable: is {least}, but the items have {there} pods; unless "
            "there are more, the AppWrapper is requeued again and again."
        )


def too_small_gangs(
    items: Sequence[Item], sets: Sequence[PodSet], manifests: Sequence[bytes]
) -> Iterator[str]:
    """A warning for each PodGroup that waits for more pods than name it."""
    numbers = [n for n, item in enumerate(items) if _is_pod_group(item)]
    if not numbers:
        return
    objs: list[Map] = [json.loads(manifest) for manifest in manifests]
    named = _members(items, sets, objs)
    for number in numbers:
        native, name = items[number].ref.group == NATIVE_GROUP, items[number].ref.name
        wanted, there = _least(objs[number], native=native), named.get((native, name), 0)
        if there < wanted:
            least, mark = _words(native=native)
            yield (
                f"PodGroup {name} has {least} {wanted}, but {there} pods of this AppWrapper have "
                f"{mark}: {name}, so none of them may ever be scheduled."
            )


def _is_pod_group(item: Item) -> bool:
    return item.ref.kind == "PodGroup" and item.ref.group in POD_GROUPS


def _least(group: Map, *, native: bool) -> int:
    """How many pods the group waits for; 0 for a native one that is no gang."""
    where = ("schedulingPolicy", "gang", "minCount") if native else ("minMember",)
    return as_int(dig(group, "spec", *where))


def _words(*, native: bool) -> tuple[str, str]:
    """The field with the number of pods, and that by which they name their group."""
    if native:
        return "minCount", "schedulingGroup.podGroupName"
    return "minMember", f"the label {POD_GROUP_LABELS[0]}"


def _members(
    items: Sequence[Item], sets: Sequence[PodSet], objs: Sequence[Map]
) -> dict[tuple[bool, str], int]:
    """The number of pods that name each group, by whether it is a native one and its name."""
    found: dict[tuple[bool, str], int] = {}
    for one in sets:
        obj, ref = objs[one.item], items[one.item].ref
        template = template_of(obj, ref, one)
        spots = [each.template for each in infer(obj, ref.group, ref.kind).found]
        named = {key for each in ([template] if template else spots) for key in _groups_of(each)}
        for key in named:
            found[key] = found.get(key, 0) + one.replicas
    return found


def _groups_of(template: Json) -> Iterator[tuple[bool, str]]:
    """The groups that a pod template names."""
    given = labels.labels_of(template)
    coscheduled = next((as_text(given[key]) for key in POD_GROUP_LABELS if key in given), "")
    native = as_text(dig(template, "spec", "schedulingGroup", "podGroupName"))
    yield from ((key, name) for key, name in ((False, coscheduled), (True, native)) if name)
