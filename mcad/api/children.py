"""Reads live wrapped objects for the core: their AppWrapper, and what they say (live/)."""

from collections.abc import Sequence

from mcad.api import labels, live
from mcad.api.catalog import Resource
from mcad.api.owner import controller_of
from mcad.api.wire import Map, as_map, as_text
from mcad.core.state.model import Child, ObjectRef, PodSet
from mcad.core.state.quotation import quoted


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
    meta = as_map(obj.get("metadata"))
    tags = as_map(meta.get("labels"))
    owner = controller_of(obj)
    told = live.read(obj, resource.group, resource.kind)
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
        wants=tuple(told.wants.get(one.path) for one in sets),
        state=told.state,
        suspended=told.suspended,
        words=quoted(told.words),
        ended=told.ended,
        met=told.met,
        labelled=bool(as_text(tags.get(labels.APPWRAPPER_UID))) and labels.ATTEMPT in tags,
    )
