"""Renders the object to create: the user's template with name, owner and labels."""

import json
from collections.abc import Iterator, Mapping

from mcad.api import labels
from mcad.api.affinity import keep_off, lean_to, stay_in
from mcad.api.kinds import KINDS
from mcad.api.located_fields import Part, join
from mcad.api.operators import image_of
from mcad.api.podsets import family_parts
from mcad.api.scale_up.objects import consuming
from mcad.api.templates import PathError, find_templates, follow, set_path
from mcad.api.ttl import leave_out_ttl
from mcad.api.wire import Map, as_map
from mcad.core.state.model import (
    NO_NODE_RULES,
    Dialect,
    NodeRules,
    ObjectRef,
    PodSet,
    Workload,
)

NO_REQUESTS: Mapping[int, str] = {}

SERVER_FIELDS = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generateName",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
"""Metadata that an object exported from a cluster has; the server refuses or ignores it."""


def render(  # noqa: PLR0913 - each is known in another place
    manifest: bytes,
    workload: Workload,
    item: int,
    attempt: int,
    rules: NodeRules = NO_NODE_RULES,
    *,
    requests: Mapping[int, str] = NO_REQUESTS,
) -> bytes:
    """The body of a POST for item number ``item`` of this attempt. The rules say where its pods
    may go; ``requests`` are the ProvisioningRequests whose nodes pods use, by index of the set."""
    obj: Map = json.loads(manifest)
    ref = workload.items[item].ref
    sets = [one for one in workload.sets if one.item == item]
    ours = _item_labels(workload, item, attempt)
    legacy = _legacy_labels(workload, item)
    _write_out(obj, ref)
    leave_out_ttl(obj, ref.group, ref.kind)
    if workload.dialect is Dialect.V1BETA1:
        _copy_labels(obj)
    for path, holder in _label_maps(obj, ref, sets):
        _label_pod(holder, _pod_labels(path, sets, ours), legacy)
        if named := next((requests[one.index] for one in _at(path, sets, requests)), ""):
            holder["annotations"] = consuming(named) | _own_map(holder, "annotations")
    for spot in find_templates(obj) if any(rules) else ():
        keep_off(spot.template, rules, set_path(spot.path))
        if rules.prefers is not None:
            lean_to(spot.template, rules.prefers)
    for one in rules.domains:
        for template in _templates_at(one.path, obj):
            stay_in(template, one.domain)
    meta = _own_map(obj, "metadata")
    for key in SERVER_FIELDS:
        meta.pop(key, None)
    obj.pop("status", None)
    _own_map(meta, "labels").update(ours | legacy)
    meta |= {
        "name": ref.name,
        "namespace": ref.namespace,
        "ownerReferences": [_owner_reference(workload)],
    }
    return json.dumps(obj, separators=(",", ":")).encode()


def _at(path: str, sets: list[PodSet], requests: Mapping[int, str]) -> Iterator[PodSet]:
    """The pod sets at a path that use the nodes of a request."""
    return (one for one in sets if one.path in (path, "") and one.index in requests)


def _templates_at(path: str, obj: Map) -> list[Map]:
    """The pod templates of a pod set; of one that was declared without a path all."""
    if path:
        return [follow(path, obj)]
    return [spot.template for spot in find_templates(obj)]


def _write_out(obj: Map, ref: ObjectRef) -> None:
    """Write out the templates of pods that an operator would add by itself: without a template they
    would have no labels, and could not be distinguished from other pods."""
    row, root = KINDS.get((ref.group, ref.kind)), Part(obj, "", [])
    for family in row.families if row else ():
        if not (family.implied and family.build):
            continue
        for part in family_parts(family, root):
            template = family.build(part, root.deep(family.owner))
            if image_of(template):
                part.value[family.template] = template


def _copy_labels(obj: Map) -> None:
    """Copy the labels of the object into those of ``spec.template``, if that has any. MCAD does so
    (``genericresource.go``), and manifests rely on it: a Deployment may select by labels that only
    the Deployment itself has."""
    template = as_map(as_map(obj.get("spec")).get("template"))
    given = as_map(template.get("metadata")).get("labels")
    if isinstance(given, dict):
        given.update(labels.labels_of(obj))


def _owner_reference(workload: Workload) -> Map:
    """In the version that discovery prefers, whatever that of the AppWrapper is: the garbage
    collector watches AppWrappers in that version, and where a reference has another one it reads
    the object and its owner from the API server (ADR 56)."""
    return {
        "apiVersion": f"{labels.GROUP}/{Dialect.V1BETA2}",
        "kind": labels.KIND,
        "name": workload.name,
        "uid": workload.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _label_maps(obj: Map, ref: ObjectRef, sets: list[PodSet]) -> Iterator[tuple[str, Map]]:
    """(pod set path, map with the ``labels`` of its pods) for all pod templates."""
    seen: set[int] = set()
    for path, holder in _pod_metadata(obj, ref, sets):
        if id(holder) not in seen:
            seen.add(id(holder))
            yield path, holder


def _pod_metadata(obj: Map, ref: ObjectRef, sets: list[PodSet]) -> Iterator[tuple[str, Map]]:
    for one in sets:
        try:
            yield one.path, _own_map(follow(one.path, obj), "metadata")
        except PathError:
            continue  # declared without a place, or made by the operator
    for spot in find_templates(obj):
        yield set_path(spot.path), _own_map(spot.template, "metadata")
    row = KINDS.get((ref.group, ref.kind))
    for family in row.families if row else ():
        if family.labels:
            for part in family_parts(family, Part(obj, "", [])):
                holder = part.deep(family.template).value
                yield set_path(join(part.path, family.template)), holder


def _pod_labels(path: str, sets: list[PodSet], ours: dict[str, str]) -> dict[str, str]:
    """The dispatcher's labels, with that of the pod set if the template belongs to exactly one."""
    mine = [one for one in sets if one.path in (path, "")]
    if len(mine) != 1:
        return ours
    return ours | {labels.PODSET: labels.podset_value(mine[0].item, mine[0].index)}


def _label_pod(holder: Map, ours: dict[str, str], legacy: dict[str, str]) -> None:
    """Add labels; the user's take precedence over MCAD's, as a selector may depend on them."""
    given = _own_map(holder, "labels")
    holder["labels"] = legacy | given | ours


def _own_map(owner: Map, key: str) -> Map:
    """The map under a key, added if the value is missing or not a map."""
    value = as_map(owner.get(key))
    owner[key] = value
    return value


def _item_labels(workload: Workload, item: int, attempt: int) -> dict[str, str]:
    """The labels of item number ``item`` and of its pods."""
    return {
        labels.APPWRAPPER: labels.label_value(workload.name),
        labels.APPWRAPPER_UID: workload.uid,
        labels.ATTEMPT: str(attempt),
        labels.ITEM: str(item),
    }


def _legacy_labels(workload: Workload, item: int) -> dict[str, str]:
    """MCAD's labels of item number ``item``; v1beta2 does not have them."""
    if workload.dialect is not Dialect.V1BETA1:
        return {}
    return {
        labels.LEGACY_APPWRAPPER: labels.label_value(workload.name),
        labels.LEGACY_RESOURCE: labels.label_value(workload.items[item].ref.name),
    }
