"""Warns of gangs that need more pods than the AppWrapper has: they would wait forever.

A PodGroup of the coscheduler is an item without pods; pods name it by a label. scheduler-plugins
binds none of them until there are ``minMember`` of them.
"""

import json
from collections.abc import Iterator, Sequence

from mcad.api import labels
from mcad.api.catalog import Catalog
from mcad.api.podsets import infer, template_of
from mcad.api.wire import Json, Map, as_int, as_text, dig
from mcad.core.state.model import Item, PodSet

POD_GROUPS = frozenset({"scheduling.x-k8s.io", "scheduling.sigs.k8s.io"})
"""API groups of the kind PodGroup: today's, and that of manifests from before 2022."""

POD_GROUP_LABELS = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")


def too_few_pods(
    least: int, items: Sequence[Item], sets: Sequence[PodSet], catalog: Catalog
) -> Iterator[str]:
    """A warning if ``minAvailable`` is more than the number of pods, unless that is unknown."""
    counted = {one.item for one in sets}
    known = all(
        number in counted or not catalog.makes_pods(item.ref.group, item.ref.resource)
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
        name, wanted = items[number].ref.name, as_int(dig(objs[number], "spec", "minMember"))
        there = named.get(name, 0)
        if there < wanted:
            yield (
                f"PodGroup {name} has minMember {wanted}, but {there} pods of this AppWrapper have "
                f"the label {POD_GROUP_LABELS[0]}: {name}, so none of them may ever be scheduled."
            )


def _is_pod_group(item: Item) -> bool:
    return item.ref.kind == "PodGroup" and item.ref.group in POD_GROUPS


def _members(items: Sequence[Item], sets: Sequence[PodSet], objs: Sequence[Map]) -> dict[str, int]:
    """The number of pods that name each group."""
    found: dict[str, int] = {}
    for one in sets:
        obj, ref = objs[one.item], items[one.item].ref
        template = template_of(obj, ref, one)
        spots = [each.template for each in infer(obj, ref.group, ref.kind).found]
        for name in {_group_of(each) for each in ([template] if template else spots)} - {""}:
            found[name] = found.get(name, 0) + one.replicas
    return found


def _group_of(template: Json) -> str:
    given = labels.labels_of(template)
    return next((as_text(given[key]) for key in POD_GROUP_LABELS if key in given), "")
