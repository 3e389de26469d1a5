"""Objects of deleted AppWrappers: the room of their pods after a change of leader (P9).

An AppWrapper may be deleted while no dispatcher leads. Its objects are found at the barrier, and
more of their pods without a node may come: room for these is kept for a while. Labels prove
nothing, so only pods count, by their own requests, and the pods of one namespace for a part of the
cluster only (ADR 9). Objects that are first seen later hold the room of their pods on nodes, like
any other pod.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from mcad.core.attempts import remains
from mcad.core.cluster import Cluster
from mcad.core.state.bounds import LEFTOVERS_PART, TOMBSTONE_GRACE
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import (
    Cascade,
    Child,
    Dialect,
    DispatchPhase,
    DispatchRecord,
    Item,
    Pod,
    PodSet,
    Remnant,
    Resources,
    Wanted,
    Workload,
)
from mcad.core.state.quantity import format_amount
from mcad.core.state.reasons import EventReason
from mcad.core.state.units import format_duration


def take_up(cluster: Cluster) -> None:
    """Take up leftovers, at the barrier. The objects are left to the garbage collector: an unknown
    AppWrapper may exist, because another dispatcher may watch other namespaces."""
    budgets: dict[str, _Budget] = {}
    for uid in [uid for uid in cluster.objects.by_workload if uid and uid not in cluster.entries]:
        left = [child for child in cluster.objects.by_workload[uid].values() if child.labelled]
        if left:
            budget = budgets.setdefault(left[0].ref.namespace, _Budget(cluster))
            _take_up_one(cluster, left, budget)


def _take_up_one(cluster: Cluster, left: list[Child], budget: _Budget) -> None:
    attempt = max(child.attempt for child in left)
    sets = tuple(_sets(cluster, left, attempt, budget))
    now, inventory = cluster.now, tuple(child.ref for child in left)
    record = DispatchRecord(attempt, 0, DispatchPhase.DISPATCHED, "", inventory, now, now)
    entry = Entry(
        _stand_in(left, sets), now, rebuilt=True, phase=Phase.GONE, step_since=now, dispatch=record
    )
    cluster.entries[entry.uid] = entry
    cluster.objects.leftovers[entry.uid] = None
    cluster.adopt(entry)
    for child in left:
        entry.creation.exists(child.item, child.uid)
    pods_changed(cluster, entry)
    held = cluster.capacity.gangs.request(entry.uid)
    if held:
        kept = ", ".join(f"{name}: {format_amount(name, n)}" for name, n in held)
        note = (
            f"Its AppWrapper (uid {entry.uid}) does not exist. Room for its pods without a node is "
            f"kept for {format_duration(TOMBSTONE_GRACE)} at most ({kept})."
        )
        first = Remnant(left[0].ref, left[0].uid)
        cluster.announce_remnant(entry, first, EventReason.OWNER_UNKNOWN, note, action="Reserve")
        remains.bury(cluster, entry)
    else:
        cluster.forget(entry)


def _sets(cluster: Cluster, left: list[Child], attempt: int, budget: _Budget) -> Iterable[PodSet]:
    """One pod set for all pods of an object with equal requests. The index matches no label: the
    request decides which pods belong to the set."""
    roots = {child.uid: child for child in left}
    pods = [
        pod
        for pod in cluster.capacity.pods.alive(left[0].workload)
        if pod.root in roots and pod.attempt == attempt
    ]
    pods.sort(key=lambda pod: (pod.root, pod.request, pod.created, pod.uid))
    alikes = groupby(pods, lambda pod: (pod.root, pod.request))
    for index, ((root, request), alike) in enumerate(alikes):
        count = sum(bool(pod.node) or budget.takes(pod) for pod in alike)
        yield PodSet(roots[root].item, -2 - index, "", count, request)


class _Budget:
    """The room that pods without a node of one namespace may hold."""

    def __init__(self, cluster: Cluster) -> None:
        has = cluster.capacity.report.sums().allocatable
        self._left = {name: amount // LEFTOVERS_PART for name, amount in has}

    def takes(self, pod: Pod) -> bool:
        """Whether there is room enough for the pod; if so, the pod takes it."""
        if any(n > self._left.get(name, 0) for name, n in pod.request):
            return False
        for name, n in pod.request:
            self._left[name] -= n
        return True


def _stand_in(left: list[Child], sets: tuple[PodSet, ...]) -> Workload:
    """A substitute for the AppWrapper, as far as its objects tell; named after the first."""
    first = left[0]
    return Workload(
        uid=first.workload,
        namespace=first.ref.namespace,
        name=f"owner-of-{first.ref.name}",
        generation=0,
        dialect=Dialect.V1BETA1,
        created=0,
        payload="",
        items=tuple(Item(child.ref) for child in left),
        sets=sets,
        deleting=True,
        cascade=Cascade.ORPHAN,
    )


def pods_changed(cluster: Cluster, entry: Entry) -> None:
    """Shrink the substitute to the needs of its pods after a pod came, went or changed."""
    for one, live in cluster.capacity.pods.live_by_set(entry.uid):
        cluster.want(entry, one.item, one.index, Wanted(live))


def by_namespace(cluster: Cluster) -> dict[str, Resources]:
    """The room kept in each namespace for pods of unknown AppWrappers."""
    sums: dict[str, dict[str, int]] = {}
    for entry in cluster.known(cluster.objects.leftovers):
        books = sums.setdefault(entry.workload.namespace, {})
        for name, n in cluster.capacity.gangs.request(entry.uid):
            books[name] = books.get(name, 0) + n
    return {namespace: tuple(sorted(one.items())) for namespace, one in sums.items() if one}
