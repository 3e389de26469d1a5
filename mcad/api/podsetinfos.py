"""Merges additions into pod templates: ``podSetInfos`` of a quota system, and the setting
``inject``.

Values of the user are never overwritten. A contradicting value is a fault, because either choice
would be wrong; malformed values are left for their own fault.
"""

import copy
from collections.abc import Callable, Sequence

from mcad.api.located_fields import Fault, own_map
from mcad.api.models import PodSetInfo
from mcad.api.templates import PathError, follow
from mcad.api.wire import Json, Map

Contradiction = Callable[[str, str, str, Json], Fault]
"""(place in the pod, key, value to be added, what is there) as a fault."""


def merge_infos(
    template: Map, paths: Sequence[str], infos: Sequence[PodSetInfo]
) -> tuple[Map, list[Fault]]:
    """The template with all infos merged; the n-th info belongs to the n-th pod set."""
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
            faults += merge_into(follow(path, merged), info, _of_an_info(where))
        except PathError as error:
            faults.append(Fault(where, f"{path!r}: {error}"))
    return merged, faults


def _of_an_info(where: str) -> Contradiction:
    def fault(place: str, key: str, value: str, given: Json) -> Fault:
        field = place.rpartition(".")[2]
        return Fault(f"{where}.{field}.{key}", f"is {value!r}, but the template has {given!r}.")

    return fault


def merge_into(pod: Map, info: PodSetInfo, contradiction: Contradiction) -> list[Fault]:
    """Merge an info into a pod template, in place."""
    faults: list[Fault] = []
    for place, added in (
        ("metadata.annotations", info.annotations or {}),
        ("metadata.labels", info.labels or {}),
        ("spec.nodeSelector", info.node_selector or {}),
    ):
        for key, given in _union(pod, place, added).items():
            faults.append(contradiction(place, key, added[key], given))
    spec = pod["spec"]
    _append(spec, "tolerations", info.tolerations or [], doubles=True)
    gates = [{"name": gate.name} for gate in info.scheduling_gates or ()]
    _append(spec, "schedulingGates", gates, doubles=False)
    return faults


def _union(pod: Map, place: str, added: dict[str, str]) -> Map:
    """Add missing keys; return the existing ones that have another value."""
    holder: Map | None = pod if added else None
    for key in place.split("."):
        holder = own_map(holder, key) if holder is not None else None
    if holder is None:
        return {}
    return {
        key: holder[key] for key, value in added.items() if holder.setdefault(key, value) != value
    }


def _append(spec: Map, key: str, added: list[Json], *, doubles: bool) -> None:
    given = spec.get(key)
    if added and (given is None or isinstance(given, list)):
        given = given or []
        spec[key] = given + [one for one in added if doubles or one not in given]
