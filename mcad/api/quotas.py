"""QuotaSubtrees as the core sees them, and the labels by which an AppWrapper names its leaves.

Nothing is refused here: what cannot be read of a node is its flaw, which the core tells (facts:
MCAD, section 5).
"""

from msgspec import Struct

from mcad.api.labels import QUEUE_NAME, TREE
from mcad.api.podspec import quantity, quantity_fault
from mcad.api.wire import Map, as_list, as_map, as_text, parse_instant
from mcad.core.quota import QuotaChild, QuotaSubtree


def read_quota(obj: Map) -> QuotaSubtree | None:
    """A QuotaSubtree; None if it has no label ``tree``, for then it is of no tree."""
    meta, spec = as_map(obj.get("metadata")), as_map(obj.get("spec"))
    tree = as_text(as_map(meta.get("labels")).get(TREE))
    if not tree:
        return None
    return QuotaSubtree(
        uid=as_text(meta.get("uid")),
        namespace=as_text(meta.get("namespace")),
        name=as_text(meta.get("name")),
        created=parse_instant(meta.get("creationTimestamp")),
        tree=tree,
        parent=as_text(spec.get("parent")),
        children=tuple(_child(as_map(each)) for each in as_list(spec.get("children"))),
    )


def _child(child: Map) -> QuotaChild:
    name, quotas = as_text(child.get("name")), as_map(child.get("quotas"))
    requests = as_map(quotas.get("requests"))
    faults = (
        f"{resource}: {fault}"
        for resource, amount in requests.items()
        if (fault := quantity_fault(resource, amount))
    )
    flaw = next(faults, "") if name else "name: a node of a quota tree needs one"
    nominal = sorted((resource, quantity(resource, n) or 0) for resource, n in requests.items())
    return QuotaChild(name, () if flaw else tuple(nominal), quotas.get("hardLimit") is True, flaw)


class LeafLabels(Struct, frozen=True):
    """Whether labels of AppWrappers name leaves, and in which tree Kueue's queue name is one."""

    count: bool = False
    queue_tree: str = ""

    def read(self, labels: Map) -> tuple[tuple[str, str], ...]:
        """The labels as (tree, leaf); none if they mean nothing."""
        return quota_labels(labels, self.queue_tree) if self.count else ()


def quota_labels(labels: Map, queue_tree: str = "") -> tuple[tuple[str, str], ...]:
    """Labels of an AppWrapper as (tree, leaf). Kueue's queue name is the leaf in the tree
    ``queue_tree``, unless a label of that name says another one."""
    told = {key: as_text(value) for key, value in labels.items() if as_text(value)}
    if queue_tree and QUEUE_NAME in told:
        told.setdefault(queue_tree, told[QUEUE_NAME])
    return tuple(sorted(told.items()))
