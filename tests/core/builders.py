"""Small builders for nodes, pods and pod sets, in the words and quantities of manifests."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from mcad.core.capacity import Capacity
from mcad.core.capacity.placement import admits
from mcad.core.capacity.resources import resources, with_pod_slot
from mcad.core.model import (
    Constraint,
    Fit,
    Node,
    Pod,
    PodPhase,
    PodSet,
    Refusal,
    Requirement,
    Resources,
    Settings,
    Taint,
    Toleration,
)
from mcad.core.quantity import amount

GPU = "nvidia.com/gpu"
AGGREGATE = Settings(fit=Fit.AGGREGATE)


def wants(cpu: str = "0", memory: str = "0", gpu: int = 0, **more: str) -> Resources:
    """Amounts as a manifest writes them: ``wants("500m", "1Gi", gpu=1)``."""
    written = {"cpu": cpu, "memory": memory, GPU: str(gpu), **more}
    return resources({name: amount(name, text) for name, text in written.items()})


def node(
    name: str = "n1",
    cpu: str = "4",
    memory: str = "16Gi",
    gpu: int = 0,
    *,
    pods: int = 110,
    ready: bool = True,
    cordoned: bool = False,
    taints: Iterable[Taint] = (),
    labels: dict[str, str] | None = None,
) -> Node:
    """A node that is ready and admits everybody, unless told otherwise."""
    return Node(
        name,
        wants(cpu, memory, gpu, pods=str(pods)),
        ready=ready,
        unschedulable=cordoned,
        taints=tuple(taints),
        labels=tuple(sorted((labels or {}).items())),
    )


def taint(key: str, effect: str = "NoSchedule", value: str = "") -> Taint:
    """A taint that keeps pods away."""
    return Taint(key, value, effect)


def tolerates(key: str = "", effect: str = "", value: str | None = None) -> Toleration:
    """A toleration: of everything without a key, of any value without one."""
    operator = "Exists" if value is None else "Equal"
    return Toleration(key, operator, value or "", effect)


def needs(key: str, operator: str, *values: str, field: bool = False) -> Requirement:
    """One line of a node selector term."""
    return Requirement(key, operator, values, field)


def on(
    *terms: tuple[Requirement, ...],
    tolerating: Iterable[Toleration] = (),
    node_name: str = "",
    **selector: str,
) -> Constraint:
    """A placement constraint; without terms there is no node affinity."""
    return Constraint(
        selector=tuple(sorted(selector.items())),
        affinity=terms or None,
        tolerations=tuple(tolerating),
        node_name=node_name,
    )


def pods(
    replicas: int,
    cpu: str = "1",
    memory: str = "0",
    gpu: int = 0,
    *,
    item: int = 0,
    index: int = 0,
    where: Constraint = Constraint(),
    cap: int = 0,
    per_node: bool = False,
    counts_pods: bool = False,
    unmodelled: tuple[str, ...] = (),
) -> PodSet:
    """A pod set of so many replicas."""
    path = f"items[{item}].sets[{index}]"
    return PodSet(
        item,
        index,
        path,
        replicas,
        wants(cpu, memory, gpu),
        where,
        cap=cap,
        per_node=per_node,
        counts_pods=counts_pods,
        unmodelled=unmodelled,
    )


def pod(
    uid: str,
    on_node: str = "",
    cpu: str = "1",
    memory: str = "0",
    gpu: int = 0,
    *,
    of: str = "",
    item: int = -1,
    index: int = -1,
    attempt: int = 0,
    phase: PodPhase | None = None,
    terminating: bool = False,
) -> Pod:
    """A pod, pending until it has a node; ``of`` is the uid of its AppWrapper."""
    default = PodPhase.RUNNING if on_node else PodPhase.PENDING
    return Pod(
        uid,
        "default",
        uid,
        on_node,
        phase or default,
        wants(cpu, memory, gpu),
        terminating=terminating,
        workload=of,
        item=item,
        index=index,
        attempt=attempt,
    )


def cluster(*nodes: Node, settings: Settings = Settings()) -> Capacity:
    """A Capacity that has seen these nodes."""
    capacity = Capacity(settings)
    for each in nodes:
        capacity.node_seen(each)
    return capacity


def hold(capacity: Capacity, uid: str, *sets: PodSet, attempt: int = 1) -> None:
    """Reserve; the gang must fit."""
    assert capacity.reserve(uid, attempt, capacity.shape(sets), sets) is None
    capacity.check()


def adopt(capacity: Capacity, uid: str, *sets: PodSet, attempt: int = 1) -> None:
    """Take up what a predecessor dispatched."""
    capacity.adopt(uid, attempt, capacity.shape(sets), sets)
    capacity.check()


def fits(capacity: Capacity, *sets: PodSet) -> bool:
    """Whether the queue could go on with such a gang."""
    return capacity.refusal(capacity.shape(sets)) is None


def reserved(capacity: Capacity) -> dict[str, Resources]:
    """What is reserved on each node that has something reserved."""
    return {n.name: n.reserved for n in capacity.totals().nodes if n.reserved}


def free_on(capacity: Capacity, name: str) -> Resources:
    """What is free on the node."""
    return next(n.free for n in capacity.totals().nodes if n.name == name)


def refusal(capacity: Capacity, *sets: PodSet) -> Refusal | None:
    """Why a gang of these sets does not fit."""
    return capacity.refusal(capacity.shape(sets))


def figures(found: Refusal | None) -> list[tuple[str, int, int]]:
    """(resource, requested, available) of a refusal, the binding one first."""
    assert found is not None
    return [(s.resource, s.requested, s.available) for s in found.shortages]


def fits_by_brute_force(nodes: dict[str, tuple[Node, Resources]], sets: Iterable[PodSet]) -> bool:
    """Whether all pods can be placed, by trying every way; nodes are (node, free) by name.

    Deliberately naive: one pod at a time, no slots, no sums. Equal pods share a cap per node.
    """
    rows = [(each, dict(free)) for each, free in nodes.values()]
    singles: list[PodSet] = []
    for pod_set in sets:
        if pod_set.per_node:
            hosts = [free for each, free in rows if admits(each, pod_set.constraint)]
            if not all(_take(free, pod_set) for free in hosts):
                return False
        else:
            singles += [pod_set] * pod_set.replicas
    return _place(rows, singles, [])


def _place(
    rows: list[tuple[Node, dict[str, int]]], left: list[PodSet], placed: list[tuple[PodSet, str]]
) -> bool:
    if not left:
        return True
    first, rest = left[0], left[1:]
    for each, free in rows:
        here = sum(_same_pods(first, other) for other, name in placed if name == each.name)
        if first.cap and here >= first.cap:
            continue
        if admits(each, first.constraint) and _take(free, first):
            if _place(rows, rest, [*placed, (first, each.name)]):
                return True
            for name, n in with_pod_slot(first.request):
                free[name] += n
    return False


def _same_pods(one: PodSet, other: PodSet) -> bool:
    return (one.request, one.constraint, one.cap) == (other.request, other.constraint, other.cap)


def _take(free: dict[str, int], pod_set: PodSet) -> bool:
    request = with_pod_slot(pod_set.request)
    if any(free.get(name, 0) < n for name, n in request):
        return False
    for name, n in request:
        free[name] -= n
    return True


def every(*choices: Iterable[object]) -> list[tuple[object, ...]]:
    """All combinations: small worlds are enumerated, not sampled."""
    return list(product(*choices))
