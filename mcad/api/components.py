"""``componentStatus``: what v1beta2 tells of each wrapped object.

Upstream says the same here. Its pods by phase are beside it, in MCAD's words and for all items
together (ADR 22); whether an object itself exists is shown by ``mcad describe``.
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
    """One element per item, in their order, with its pod sets as they were declared or inferred."""
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
    """One, as soon as there was an attempt. All items have the same, as all of them are made and
    taken away together."""
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
