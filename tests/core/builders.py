"""Small builders for nodes, pods and pod sets, in the words and quantities of manifests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from msgspec.structs import replace

from mcad.core.assumed.node_report import NodeReport
from mcad.core.capacity import Capacity
from mcad.core.nodes.filters import admits
from mcad.core.nodes.resources import resources, with_pod_slot
from mcad.core.nodes.shape import Shape
from mcad.core.state.model import (
    Constraint,
    Dialect,
    HostPort,
    Item,
    Node,
    Pod,
    PodPhase,
    PodSet,
    Requirement,
    Resources,
    Taint,
    Toleration,
    Workload,
)
from mcad.core.state.quantity import amount
from mcad.core.state.refusal import Refusal
from mcad.core.state.settings import Fit, Settings
from mcad.core.state.units import SECOND, Instant

START: Instant = 1_700_000_000 * SECOND
GPU = "nvidia.com/gpu"
AGGREGATE = Settings(fit=Fit.AGGREGATE)


def appwrapper(
    name: str, items: Iterable[Item], sets: Iterable[PodSet], **changes: object
) -> Workload:
    """An AppWrapper of v1beta1 in the namespace ``default``, created at START."""
    work = Workload(
        uid=f"uid-{name}",
        namespace="default",
        name=name,
        generation=1,
        dialect=Dialect.V1BETA1,
        created=START,
        payload=f"sha-{name}",
        items=tuple(items),
        sets=tuple(sets),
    )
    return replace(work, **changes)


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
    """A node that is ready and admits all pods, unless told otherwise."""
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
    ports: Iterable[HostPort] = (),
    repels: tuple[int, ...] = (),
    repelled: tuple[int, ...] = (),
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
        ports=tuple(ports),
        repels=repels,
        repelled=repelled,
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
    ports: Iterable[HostPort] = (),
    root: str = "",
    nominated: str = "",
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
        ports=tuple(ports),
        root=root,
        nominated=nominated,
    )


def _audited(act: str) -> Callable[..., object]:
    def audited(capacity: Capacity, *args: object, **named: object) -> object:
        found = getattr(Capacity, act)(capacity, *args, **named)
        capacity.check()
        return found

    return audited


ACTS = ("node_gone", "pod_seen", "pod_gone", "place_unplaced", "assume", "adopt", "want", "release")
Audited = type("Audited", (Capacity,), {act: _audited(act) for act in ACTS})
"""A Capacity that audits its books after all that changes them but new nodes, which may be many."""


def cluster(*nodes: Node, settings: Settings = Settings()) -> Capacity:
    """A Capacity that has seen these nodes."""
    capacity = Audited(settings)
    for each in nodes:
        capacity.node_seen(each)
    return capacity


def hold(capacity: Capacity, uid: str, *sets: PodSet, attempt: int = 1) -> None:
    """Reserve; the gang must fit."""
    assert capacity.assume(uid, attempt, capacity.shape(sets), sets) is None


def adopt(capacity: Capacity, uid: str, *sets: PodSet, attempt: int = 1) -> None:
    """Take up what a predecessor dispatched."""
    capacity.gangs.adopt(uid, attempt, sets)


def waiting(capacity: Capacity, *sets: PodSet) -> Shape:
    """An AppWrapper waits with such a gang: its shape, which the capacity remembers from now on."""
    shape = capacity.shape(sets)
    capacity.remember(shape)
    return shape


def expire(capacity: Capacity, uid: str) -> int:
    """Give up what is wanted and not seen, however short a time it has been so (C4)."""
    return capacity.gangs.give_up(uid)


def fits(capacity: Capacity, *sets: PodSet) -> bool:
    """Whether the queue could go on with such a gang."""
    return capacity.refusal(capacity.shape(sets)) is None


def reserved(capacity: Capacity) -> dict[str, Resources]:
    """What is reserved on each node that has something reserved."""
    return {n.name: n.reserved for n in capacity.report.nodes() if n.reserved}


class Reported(NamedTuple):
    """All that a report says."""

    nodes: tuple[NodeReport, ...]
    sums: NodeReport
    unplaced: Resources


def report_of(capacity: Capacity) -> Reported:
    """The books of a capacity, as people see them."""
    report = capacity.report
    return Reported(tuple(report.nodes()), report.sums(), report.unplaced())


def free_on(capacity: Capacity, name: str) -> Resources:
    """What is free on the node."""
    return next(n.free for n in capacity.report.nodes() if n.name == name)


def refusal(capacity: Capacity, *sets: PodSet) -> Refusal | None:
    """Why a gang of these sets does not fit."""
    return capacity.refusal(capacity.shape(sets))


def refused(capacity: Capacity, *sets: PodSet) -> Refusal:
    """The refusal of a gang of these sets; it must not fit."""
    found = refusal(capacity, *sets)
    assert found is not None
    return found


def figures(found: Refusal | None) -> list[tuple[str, int, int]]:
    """(resource, requested, available) of a refusal, the binding one first."""
    assert found is not None
    return [(s.resource, s.requested, s.available) for s in found.shortages]


def port(number: int, address: str = "0.0.0.0", protocol: str = "TCP") -> HostPort:
    """A host port, at every address unless told otherwise."""
    return HostPort(protocol, number, address)


@dataclass
class Host:
    """A node for brute force: what is free on it, and the host ports in use."""

    node: Node
    free: dict[str, int]
    ports: list[HostPort] = field(default_factory=list)


def hosts_of(nodes: Iterable[Node]) -> list[Host]:
    """Empty nodes for brute force."""
    return [Host(each, dict(each.allocatable)) for each in nodes]


def fits_by_brute_force(hosts: Iterable[Host], sets: Iterable[PodSet]) -> bool:
    """Whether all pods can be placed, by trying every way.

    Deliberately naive: one pod at a time, no slots, no sums.
    """
    rows = [Host(one.node, dict(one.free), list(one.ports)) for one in hosts]
    singles: list[PodSet] = []
    for pod_set in sets:
        if pod_set.per_node:
            admitted = [one for one in rows if admits(one.node, pod_set.constraint)]
            if not all(_take(one, pod_set) for one in admitted):
                return False
        else:
            singles += [pod_set] * pod_set.replicas
    return _place(rows, singles, [])


def _place(rows: list[Host], left: list[PodSet], placed: list[tuple[PodSet, str]]) -> bool:
    if not left:
        return True
    first, rest = left[0], left[1:]
    for host in rows:
        there = [other for other, name in placed if name == host.node.name]
        if first.cap and sum(other is first for other in there) >= first.cap:
            continue
        if not all(may_share(first, other) for other in there):
            continue
        if admits(host.node, first.constraint) and _take(host, first):
            if _place(rows, rest, [*placed, (first, host.node.name)]):
                return True
            for name, n in with_pod_slot(first.request):
                host.free[name] += n
            for one in first.ports:
                host.ports.remove(one)
    return False


def may_share(one: PodSet, other: PodSet) -> bool:
    """Whether pods of these sets may be on one node, by their terms of anti-affinity: no term of a
    pod selects the other."""
    terms = [(term, other) for term in one.repels] + [(term, one) for term in other.repels]
    return not any(term in selected.repelled for term, selected in terms)


def _take(host: Host, pod_set: PodSet) -> bool:
    request = with_pod_slot(pod_set.request)
    if any(host.free.get(name, 0) < n for name, n in request):
        return False
    if any(ports_conflict(one, other) for one in pod_set.ports for other in host.ports):
        return False
    for name, n in request:
        host.free[name] -= n
    host.ports += pod_set.ports
    return True


def ports_conflict(one: HostPort, other: HostPort) -> bool:
    """kube-scheduler's ``HostPortInfo.CheckConflict``, in its words."""
    if (one.protocol, one.number) != (other.protocol, other.number):
        return False
    everywhere = "0.0.0.0"
    return everywhere in (one.address, other.address) or one.address == other.address


def every(*choices: Iterable[object]) -> list[tuple[object, ...]]:
    """All combinations: small worlds are enumerated, not sampled."""
    return list(product(*choices))
