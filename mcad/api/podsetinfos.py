"""Merging ``podSetInfos``, which a quota system writes, into the pod templates of a component."""

import copy
from collections.abc import Sequence

from mcad.api.models import PodSetInfo
from mcad.api.parts import Fault
from mcad.api.templates import PathError, follow
from mcad.api.wire import Map, as_list


def merge_infos(
    template: Map, paths: Sequence[str], infos: Sequence[PodSetInfo]
) -> tuple[Map, list[Fault]]:
    """The component's template with every info merged in; the n-th belongs to the n-th pod set.

    A value that contradicts the template is a fault, because either choice would be wrong.
    """
    if not infos:
        return template, []
    if len(infos) != len(paths):
        message = f"has {len(infos)} entries, but there are {len(paths)} pod sets."
        return template, [Fault("podSetInfos", message)]
    merged: Map = copy.deepcopy(template)
    faults: list[Fault] = []
    for index, (path, info) in enumerate(zip(paths, infos, strict=True)):
        where = f"podSetInfos[{index}]"
        try:
            _merge_info(follow(path, merged), info, where, faults)
        except PathError as error:
            faults.append(Fault(where, f"{path!r}: {error}"))
    return merged, faults


def _merge_info(pod: Map, info: PodSetInfo, where: str, faults: list[Fault]) -> None:
    spec = pod["spec"]
    if not isinstance(pod.get("metadata"), dict):
        pod["metadata"] = {}
    for owner, key, added in (
        (pod["metadata"], "annotations", info.annotations),
        (pod["metadata"], "labels", info.labels),
        (spec, "nodeSelector", info.node_selector),
    ):
        if added:
            owner[key] = _union(owner.get(key), added, f"{where}.{key}", faults)
    if info.tolerations:
        spec["tolerations"] = as_list(spec.get("tolerations")) + info.tolerations
    gates = as_list(spec.get("schedulingGates"))
    more = [{"name": gate.name} for gate in info.scheduling_gates or ()]
    if more:
        spec["schedulingGates"] = gates + [gate for gate in more if gate not in gates]


def _union(given: object, added: dict[str, str], where: str, faults: list[Fault]) -> Map:
    result: Map = dict(given) if isinstance(given, dict) else {}
    for key, value in added.items():
        if result.setdefault(key, value) != value:
            message = f"is {value!r}, but the template says {result[key]!r}."
            faults.append(Fault(f"{where}.{key}", message))
    return result
