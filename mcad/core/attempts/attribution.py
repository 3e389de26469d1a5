"""Which objects and pods belong to an AppWrapper (protocol P7, C3). The right to create an object
is enough to write labels and owner references, so these alone prove nothing.

An object is an AppWrapper's own if its kind, namespace and name are those of an item, of the
present attempt or of an attempt that this process has seen. The API server keeps names unique, so
no other object can pass for it. A pod is an AppWrapper's own if it is in the same namespace and its
chain of controllers ends in such an object. While that object is not known, the pod belongs to no
AppWrapper (``Objects.unproven``).
"""

from __future__ import annotations

from mcad.core.cluster import Cluster
from mcad.core.state.entry import Entry
from mcad.core.state.model import Child, ObjectRef, Pod, Remnant
from mcad.core.state.records import replace


def own_child(entry: Entry, child: Child) -> Child | None:
    """The object with its attempt and item as the AppWrapper attributes it; None if it is not its
    own. An object known by uid as an item of the present attempt stays that, with any labels."""
    if entry.rebuilt:
        return child
    item = _item_at(entry, child.ref)
    if item is not None:
        is_known = entry.creation.created.get(item) == child.uid
        return replace(child, attempt=entry.attempt if is_known else child.attempt, item=item)
    if child.ref.key in entry.former:
        return replace(child, attempt=min(child.attempt, entry.attempt - 1))
    return None


def _item_at(entry: Entry, ref: ObjectRef) -> int | None:
    """The number of the item with this kind and name; before the first attempt, of the spec."""
    refs = entry.inventory or [item.ref for item in entry.workload.items]
    key = ref.key
    return next((number for number, one in enumerate(refs) if one.key == key), None)


def is_own_pod(cluster: Cluster, pod: Pod) -> bool:
    """Whether the pod belongs to the AppWrapper that it names. True if that AppWrapper is unknown,
    or known by its remains only."""
    entry = cluster.entries.get(pod.workload)
    if entry is None or entry.rebuilt:
        return True
    root = cluster.objects.by_uid.get(pod.root)
    is_below = root is not None and root.workload == entry.uid
    return is_below and pod.namespace == entry.workload.namespace


def own_remains(cluster: Cluster, entry: Entry, found: tuple[Remnant, ...]) -> tuple[Remnant, ...]:
    """The objects of a live list by label that a teardown has to wait for. A pod counts unless it
    is known to belong to another owner."""
    return tuple(one for one in found if _remains(cluster, entry, one))


def _remains(cluster: Cluster, entry: Entry, one: Remnant) -> bool:
    if one.ref.kind == "Pod" and not one.ref.group:
        is_disowned = one.uid in cluster.objects.disowned
        return not is_disowned and not cluster.capacity.pods.is_foreign(one.uid)
    return _item_at(entry, one.ref) is not None or one.ref.key in entry.former
