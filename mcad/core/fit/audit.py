"""The whole books recomputed from pods and allotments: the invariants of the capacity half.

For tests after every event and for ``mcad debug``, never for a decision: O(everything).
"""

from __future__ import annotations

from mcad.core.assumed.allotments import Allotment
from mcad.core.assumed.assumed import Assumed
from mcad.core.assumed.pod_index import PodIndex, Use
from mcad.core.assumed.unplaced import UnplacedPods
from mcad.core.fit.memory import Memory
from mcad.core.nodes.columns import counted, offered
from mcad.core.nodes.ledger import Ledger, Row
from mcad.core.nodes.pod_class import PodClass
from mcad.core.nodes.resources import Books, book, resources, total
from mcad.core.state.model import Resources
from mcad.core.state.violations import check


def audit(
    ledger: Ledger,
    memory: Memory,
    pod_index: PodIndex,
    assumed: Assumed,
    unplaced_pods: UnplacedPods,
) -> None:
    """Raise ``InvariantViolated`` at the first entry that differs from the recomputed value."""
    for row in ledger.rows.values():
        _check_row(row, ledger, pod_index, assumed)
    _check_vacant(ledger)
    check(ledger.constraints.check(), "constraints-hold-what-they-admit", "")
    for pods in memory.classes():
        _check_bound(pods, memory, ledger)
    _check_allotments(pod_index, assumed, ledger)
    owed = filter(assumed.counts_in_sums, assumed.by_uid.values())
    unplaced = total((each.pods.request, each.unplaced) for one in owed for each in one.allotments)
    _same("unplaced-demand-is-the-sum", "all", unplaced_pods.demand(), unplaced)
    _check_held(pod_index, assumed)


def _same(name: str, where: str, booked: object, computed: object) -> None:
    check(booked == computed, name, f"{where}: {booked} booked, {computed} computed")


def _check_row(row: Row, ledger: Ledger, pod_index: PodIndex, assumed: Assumed) -> None:
    name = row.node.name
    idle: Books = {**{key: offered(n) for key, n in row.node.allocatable}, **ledger.ports}
    left = dict(idle)
    _same("whole-is-what-the-node-has", name, resources(ledger.whole.row(row.at)), resources(idle))
    for use in pod_index.on_node.get(name, {}).values():
        if use.weighs:
            _take(left, use.request, 1)
            if not use.pod.workload:
                _take(idle, use.request, 1)
    for one in assumed.slots_on.get(name, {}):
        _take(left, one.pods.request, one.at[name])
    _same("free-is-what-is-left", name, resources(row.free), resources(left))
    _same("idle-is-what-foreign-pods-leave", name, resources(row.idle), resources(idle))
    _same("overcommitted-is-known", name, name in ledger.overcommitted, row.overcommitted)
    reservations = [one for one in assumed.slots_on.get(name, {}) if one.gang.reserved]
    owners = sorted({allotment.gang.uid for allotment in reservations})
    owner = [row.reserved_for] if row.reserved_for else []
    _same("one-reservation-at-most", name, owner, owners)
    reserved = total((one.pods.request, one.at[name]) for one in reservations)
    _same("reserved-is-what-is-reserved", name, resources(row.reserved), reserved)


def _check_vacant(ledger: Ledger) -> None:
    """A row without a node has no amounts."""
    vacant = [at for at, row in enumerate(ledger.at_row) if row is None]
    for columns in (ledger.whole, ledger.free, ledger.idle):
        for name in columns.names():
            is_empty = not columns.column(name)[vacant].any()
            check(is_empty, "rows-without-a-node-are-empty", name)


def _take(books: Books, request: Resources, times: int) -> None:
    book(books, [(name, counted(n)) for name, n in request], -times)


def _check_bound(pods: PodClass, memory: Memory, ledger: Ledger) -> None:
    """Rises are added at the beginning of a pass; until then they may be missing in a bound."""
    if not ledger.rose:
        slots = pods.slots(ledger.free).total
        check(memory.bounds[pods] >= slots, "bounds-are-bounds", f"{pods.request}: {slots}")


def _check_allotments(pod_index: PodIndex, assumed: Assumed, ledger: Ledger) -> None:
    covered: dict[Allotment, list[Use]] = {}
    for use in pod_index.uses.values():
        if use.allotment is not None:
            covered.setdefault(use.allotment, []).append(use)
    held: dict[str, dict[Allotment, None]] = {}
    for gang in assumed.by_uid.values():
        for allotment in gang.allotments:
            _check_allotment(allotment, covered.pop(allotment, []), ledger)
            for name in allotment.at:
                held.setdefault(name, {})[allotment] = None
    check(held == assumed.slots_on, "slots-are-known-by-node", f"{sorted(held)}")
    check(not covered, "allotments-are-of-known-gangs", "pods are attributed to an ended gang")


def _check_allotment(allotment: Allotment, uses: list[Use], ledger: Ledger) -> None:
    title = f"{allotment.gang.uid} set {allotment.position}: {allotment.at}"
    at = allotment.at.values()
    _same("assumed-is-the-sum-of-slots", title, allotment.assumed, sum(at))
    check(allotment.unplaced >= 0 and all(n > 0 for n in at), "slots-are-positive", title)
    _same("placed-and-unplaced-is-what-is-assumed", title, allotment.size, allotment.target)
    for name in allotment.at:
        row = ledger.rows.get(name)
        admitted = row is not None and allotment.pods.admitted_by(row)
        check(admitted, "slots-are-where-pods-may-go", title)
    bound: Books = {}
    book(bound, ((use.pod.node, 1) for use in uses if use.covers))
    _same("present-pods-are-counted", title, allotment.have, sum(bound.values()))
    _same("live-pods-are-counted", title, allotment.live, sum(use.live for use in uses))
    with_nodes = sum(use.live and bool(use.pod.node) for use in uses)
    _same("pods-with-nodes-are-counted", title, allotment.on_nodes, with_nodes)
    _same("bound-is-counted-by-node", title, allotment.bound, bound)


def _check_held(pod_index: PodIndex, assumed: Assumed) -> None:
    """The cache equals a fresh computation. It is filled completely, so that the next audit sees
    whether each change was noticed."""
    owners = (use.pod.workload for use in pod_index.uses.values())
    for uid in dict.fromkeys([*assumed.by_uid, *owners]):
        found = pod_index.held(uid)
        known = assumed.held.get(uid, found)
        _same("held-is-what-is-there", uid, sorted(known), sorted(found))
        if found:
            assumed.held[uid] = known
    for uid in assumed.held:
        check(bool(pod_index.held(uid)), "unused-charges-are-dropped", uid)
