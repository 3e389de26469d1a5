"""``componentStatus``: the v1beta2 status of each wrapped object, the same as upstream's.

Pods by phase are not in it, but in MCAD's own fields, for all items together (ADR 22);
``mcad describe`` shows whether an object itself exists.
"""

from collections.abc import Iterator

from mcad.api.wire import Map, format_instant
from mcad.core.state.model import PodSet
from mcad.core.state.status_view import StatusView

DEPLOYED = "ResourcesDeployed"
INITIATED = "ComponentCreationInitiated"
CREATED = "ComponentCreatedSuccessfully"
DELETED = "CompononetDeleted"
"""Reasons of the condition, in the spelling that clients of v1beta2 know."""


def render_components(view: StatusView) -> list[Map]:
    """One element per item, in order, with its declared or inferred pod sets."""
    sets: list[list[Map]] = [[] for _ in view.items]
    for one in view.sets:
        sets[one.item].append(_pod_set(one))
    conditions = list(_conditions(view))
    return [
        {
            "name": item.ref.name,
            "kind": item.ref.kind,
            "apiVersion": item.ref.api_version,
            "podSets": own,
            "conditions": conditions,
        }
        for item, own in zip(view.items, sets, strict=True)
    ]


def _pod_set(one: PodSet) -> Map:
    return {"replicas": one.replicas, "path": one.path}


def _conditions(view: StatusView) -> Iterator[Map]:
    """One condition after the first attempt, the same for all items: they are created and deleted
    together."""
    deployed = next((one for one in view.conditions if one.type == DEPLOYED), None)
    record = view.dispatch
    if deployed is None or record is None:
        return
    if not deployed.status:
        status, reason, since = "False", DELETED, deployed.changed
    elif record.confirmed:
        status, reason, since = "True", CREATED, record.confirmed
    else:
        status, reason, since = "Unknown", INITIATED, record.since
    yield {
        "type": DEPLOYED,
        "status": status,
        "reason": reason,
        "message": "",
        "lastTransitionTime": format_instant(since),
    }
