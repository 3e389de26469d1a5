"""Reads live wrapped objects for the core: their AppWrapper, and how many pods they still want."""

from collections.abc import Sequence

from mcad.api import labels
from mcad.api.catalog import Resource
from mcad.api.kinds import KINDS, Family, Kind, states_of
from mcad.api.located_fields import Part, join
from mcad.api.owner import controller_of
from mcad.api.podsets import family_parts
from mcad.api.templates import set_path
from mcad.api.wire import Map, as_map, as_text
from mcad.core.state.model import Child, ObjectRef, PodSet

_UNKNOWN = Kind()


def child_item(obj: Map) -> int:
    """The item number in an object's label, -1 if it has none."""
    return labels.parse_number(labels.labels_of(obj).get(labels.ITEM), -1)


def attempt_of(obj: Map) -> int:
    """The attempt number in an object's label, 0 if it has none."""
    return labels.parse_number(labels.labels_of(obj).get(labels.ATTEMPT), 0)


def read_child(obj: Map, resource: Resource, sets: Sequence[PodSet] = ()) -> Child:
    """Read a live object. ``sets`` are the pod sets of its item (see ``child_item``), empty if its
    AppWrapper is not known yet.

    Objects in a list have neither apiVersion nor kind, hence ``resource``.
    """
    meta, status = as_map(obj.get("metadata")), as_map(obj.get("status"))
    tags = as_map(meta.get("labels"))
    row = KINDS.get((resource.group, resource.kind), _UNKNOWN)
    met, owner = states_of(row, status), controller_of(obj)
    final = bool(met & row.final)
    wants = _wants(obj, status, row, sets, final=final)
    return Child(
        uid=as_text(meta.get("uid")),
        ref=ObjectRef(
            group=resource.group,
            version=resource.version,
            resource=resource.resource,
            kind=resource.kind,
            namespace=as_text(meta.get("namespace")),
            name=as_text(meta.get("name")),
        ),
        workload=owner.uid if owner is not None and owner.is_appwrapper else "",
        attempt=attempt_of(obj),
        item=child_item(obj),
        terminating="deletionTimestamp" in meta,
        wants=wants,
        met=met,
        labelled=bool(as_text(tags.get(labels.APPWRAPPER_UID))) and labels.ATTEMPT in tags,
    )


def _wants(
    obj: Map, status: Map, row: Kind, sets: Sequence[PodSet], *, final: bool
) -> tuple[int | None, ...]:
    """Pods per set: 0 once the object is finished, else the count at the path of the set."""
    if not sets:
        return ()
    if final:
        return (0,) * len(sets)
    live: dict[str, int] = {}
    root = Part(obj, "", [])
    for family in row.families:
        live |= _live(family, root, status)
    return tuple(live.get(one.path) for one in sets)


def _live(family: Family, root: Part, status: Map) -> dict[str, int]:
    """Pods at each path of a family in the live object."""
    return {
        set_path(join(part.path, family.template)): (
            family.left(part, status) if family.left else family.pods(part)
        )
        for part in family_parts(family, root)
        if not family.per_node
    }
