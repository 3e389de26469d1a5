"""Reads QuotaSubtrees for the core, and the labels by which AppWrappers name their leaves.

Nothing is refused here: a malformed node has a flaw, which the core reports (facts: MCAD,
section 5).
"""

from msgspec import Struct

from mcad.api.labels import QUEUE_NAME, TREE
from mcad.api.podspec import quantity, quantity_fault
from mcad.api.wire import (
    Json,
    Map,
    as_int,
    as_list,
    as_map,
    as_text,
    format_instant,
    parse_instant,
)
from mcad.core.state.quantity import format_amount
from mcad.core.state.quota_records import (
    BOOKS,
    Figures,
    NodeStatus,
    QuotaChild,
    QuotaCondition,
    QuotaSubtree,
    QuotaView,
)


def read_quota(obj: Map) -> QuotaSubtree:
    """Read a QuotaSubtree; without the label ``tree`` it belongs to no tree."""
    meta, spec = as_map(obj.get("metadata")), as_map(obj.get("spec"))
    return QuotaSubtree(
        uid=as_text(meta.get("uid")),
        namespace=as_text(meta.get("namespace")),
        name=as_text(meta.get("name")),
        created=parse_instant(meta.get("creationTimestamp")),
        tree=as_text(as_map(meta.get("labels")).get(TREE)),
        parent=as_text(spec.get("parent")),
        children=tuple(_child(as_map(each)) for each in as_list(spec.get("children"))),
        generation=as_int(meta.get("generation")),
    )


def _child(child: Map) -> QuotaChild:
    name, quotas = as_text(child.get("name")), as_map(child.get("quotas"))
    requests = as_map(quotas.get("requests"))
    faults = (
        f"{resource}: {fault}"
        for resource, amount in requests.items()
        if (fault := quantity_fault(resource, amount))
    )
    flaw = next(faults, "") if name else "name: is required"
    nominal = sorted((resource, quantity(resource, n) or 0) for resource, n in requests.items())
    return QuotaChild(name, () if flaw else tuple(nominal), quotas.get("hardLimit") is True, flaw)


class LeafLabels(Struct, frozen=True):
    """Whether labels name leaves, and the tree in which Kueue's queue name is one."""

    count: bool = False
    queue_tree: str = ""

    def read(self, labels: Map) -> tuple[tuple[str, str], ...]:
        """The labels as (tree, leaf); none if quota is disabled."""
        return quota_labels(labels, self.queue_tree) if self.count else ()


def quota_labels(labels: Map, queue_tree: str = "") -> tuple[tuple[str, str], ...]:
    """Labels of an AppWrapper as (tree, leaf). Kueue's queue name is the leaf in the tree
    ``queue_tree``, unless the label of that tree names another one."""
    named = {key: as_text(value) for key, value in labels.items() if as_text(value)}
    if queue_tree and QUEUE_NAME in named:
        named.setdefault(queue_tree, named[QUEUE_NAME])
    return tuple(sorted(named.items()))


# -- status --------------------------------------------------------------------------------------


QUOTA_STATUS = frozenset({"observedGeneration", "conditions", "children"})
"""The fields of a status that are ours."""


def render_quota_status(view: QuotaView) -> Map:
    """The fields of ``status`` that are ours and have a value."""
    fields = {
        "observedGeneration": view.generation or None,
        "conditions": [_render_condition(one) for one in view.conditions] or None,
        "children": [_render_node(one) for one in view.children] or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _render_condition(condition: QuotaCondition) -> Map:
    rendered = {
        "type": condition.type,
        "status": "True" if condition.status else "False",
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": format_instant(condition.changed),
    }
    return {key: value for key, value in rendered.items() if value}


def _render_node(node: NodeStatus) -> Map:
    return {"name": node.name} | {
        word: {resource: format_amount(resource, n) for resource, n in figures}
        for word in BOOKS
        if (figures := getattr(node, word))
    }


def read_quota_status(status: Json) -> QuotaView | None:
    """Read a status; None if it is empty. Malformed parts count as absent."""
    status = as_map(status)
    if not status:
        return None
    return QuotaView(
        as_int(status.get("observedGeneration")),
        tuple(_read_condition(as_map(one)) for one in as_list(status.get("conditions"))),
        tuple(_read_node(as_map(one)) for one in as_list(status.get("children"))),
    )


def _read_condition(condition: Map) -> QuotaCondition:
    return QuotaCondition(
        as_text(condition.get("type")),
        condition.get("status") == "True",
        as_text(condition.get("reason")),
        as_text(condition.get("message")),
        parse_instant(condition.get("lastTransitionTime")),
    )


def _read_node(node: Map) -> NodeStatus:
    books = {word: _read_figures(node.get(word)) for word in BOOKS}
    return NodeStatus(as_text(node.get("name")), **books)


def _read_figures(value: Json) -> Figures:
    return tuple(sorted((name, quantity(name, n) or 0) for name, n in as_map(value).items()))
