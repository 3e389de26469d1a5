"""The whole books recomputed from pods and allotments: the invariants of the capacity half.

For tests after every event, for ``mcad debug``, and never on the way to a decision: O(everything).
"""

from __future__ import annotations

from mcad.core.assumed.allotments import Allotment
from mcad.core.assumed.assumed import Assumed
from mcad.core.assumed.node_report import reserved_on, used_on
from mcad.core.assumed.pod_index import PodIndex, Use
from mcad.core.assumed.unplaced import UnplacedPods
from mcad.core.fit.shape_cache import Memory
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.pod_signature import PodClass
from mcad.core.nodes.pools import Pool, Row, joint_total
from mcad.core.nodes.resources import Books, book, resources, total
from mcad.core.state.model import TERMINAL_PHASES
from mcad.core.state.violations import check


def audit(
    ledger: Ledger,
    memory: Memory,
    pod_index: PodIndex,
    assumed: Assumed,
    unplaced_pods: UnplacedPods,
) -> None:
    """Raise ``InvariantViolated`` at the first entry that is not what it should be."""
    for row in ledger.rows.values():
        _check_row(row, ledger, pod_index, assumed)
    for pool in ledger.pools():
        _check_pool(pool, ledger)
    for pods in memory.classes():
        _check_class(pods)
    _check_allotments(pod_index, assumed, ledger)
    _check_unplaced(assumed, unplaced_pods)
    _check_held(pod_index, assumed)


def _check_row(row: Row, ledger: Ledger, pod_index: PodIndex, assumed: Assumed) -> None:
    name = row.node.name
    left: Books = {**dict(row.node.allocatable), **ledger.ports}
    book(left, used_on(name, pod_index), -1)
    book(left, reserved_on(name, assumed), -1)
    check(
        resources(left) == resources(row.free),
        "free-is-what-is-left",
        f"{name}: {resources(row.free)} booked, {resources(left)} computed",
    )
    idle: Books = {**dict(row.node.allocatable), **ledger.ports}
    for use in pod_index.on_node.get(name, {}).values():
        if not use.pod.workload and use.pod.phase not in TERMINAL_PHASES:
            book(idle, use.request, -1)
    check(
        resources(idle) == resources(row.idle),
        "idle-is-what-foreign-pods-leave",
        f"{name}: {resources(row.idle)} booked, {resources(idle)} computed",
    )
    known = name in ledger.overcommitted
    check(row.overcommitted == known, "overcommitted-is-known", f"{name}: {row.overcommitted}")
    _check_reservation(row, assumed)


def _check_reservation(row: Row, assumed: Assumed) -> None:
    """A node is in one reservation at most."""
    slots = assumed.slots_on.get(row.node.name, {})
    reservations = [allotment for allotment in slots if allotment.gang.reserved]
    owners = sorted({allotment.gang.uid for allotment in reservations})
    check(
        owners == [row.reserved_for][: bool(row.reserved_for)],
        "one-reservation-at-most",
        f"{owners}",
    )
    computed = total((one.pods.request, one.at[row.node.name]) for one in reservations)
    check(computed == resources(row.reserved), "reserved-is-what-is-reserved", f"{computed}")


def _check_pool(pool: Pool, ledger: Ledger) -> None:
    admitted = {row.rank: row for row in ledger.rows.values() if pool.admits(row.node)}
    check(admitted == pool.rows, "pool-holds-what-it-admits", f"{sorted(pool.rows)}")
    computed = resources(joint_total([pool]))
    check(
        computed == resources(pool.total),
        "pool-total-is-clamped-sum",
        f"{resources(pool.total)} booked, {computed} computed",
    )
    for other, known in pool.neighbours().items():
        both = len(pool.rows.keys() & other.rows.keys())
        check(known == both, "shared-nodes-are-counted", f"{known} known, {both} computed")


def _check_class(pods: PodClass) -> None:
    """The verdict by its memory, at the edge and beyond, against a look at every node."""
    pods = pods.twin(pods.pool.twin())  # looking must not change what is looked at
    exact = sum(pods.slots(row) for row in pods.pool.rows.values())
    check(
        not pods.missing(exact) and pods.missing(exact + 1) > 0,
        "class-room-is-exact",
        f"{pods.request}: {exact} slots",
    )


def _check_allotments(pod_index: PodIndex, assumed: Assumed, ledger: Ledger) -> None:
    held: dict[str, dict[Allotment, None]] = {}
    for gang in assumed.by_uid.values():
        for allotment in gang.allotments:
            _check_allotment(allotment, ledger)
            for name in allotment.at:
                held.setdefault(name, {})[allotment] = None
    check(held == assumed.slots_on, "slots-are-known-by-node", f"{sorted(held)}")
    counted: dict[Allotment, list[Use]] = {}
    for use in pod_index.uses.values():
        if use.allotment is not None:
            counted.setdefault(use.allotment, []).append(use)
    for gang in assumed.by_uid.values():
        for allotment in gang.allotments:
            _check_counts(allotment, counted.pop(allotment, []))
    check(
        not counted, "allotments-are-of-known-gangs", "pods are attributed to an ended reservation"
    )


def _title(allotment: Allotment) -> str:
    return f"{allotment.gang.uid} set {allotment.position}"


def _check_allotment(allotment: Allotment, ledger: Ledger) -> None:
    story = f"{_title(allotment)}: {allotment.at}, {allotment.unplaced} adrift"
    check(allotment.assumed == sum(allotment.at.values()), "assumed-is-the-sum-of-slots", story)
    check(
        allotment.unplaced >= 0 and all(n > 0 for n in allotment.at.values()),
        "slots-are-positive",
        story,
    )
    check(allotment.size == allotment.target, "placed-and-unplaced-is-what-is-assumed", story)
    for name in allotment.at:
        row = ledger.rows.get(name)
        admitted = row is not None and row.rank in allotment.pods.pool.rows
        check(admitted, "slots-are-where-pods-may-go", story)


def _check_counts(allotment: Allotment, uses: list[Use]) -> None:
    covering = [use for use in uses if use.covers]
    bound: Books = {}
    for use in covering:
        book(bound, [(use.pod.node, 1)])
    story = f"{_title(allotment)}: {allotment.have} of {allotment.live}"
    check(allotment.have == len(covering), "present-pods-are-counted", story)
    check(allotment.live == sum(use.live for use in uses), "live-pods-are-counted", story)
    check(allotment.bound == bound, "bound-is-counted-by-node", story)


def _check_unplaced(assumed: Assumed, unplaced_pods: UnplacedPods) -> None:
    owed = filter(assumed.counts_in_sums, assumed.by_uid.values())
    allotments = [each for one in owed for each in one.allotments if each.unplaced]
    computed = total((allotment.pods.request, allotment.unplaced) for allotment in allotments)
    check(unplaced_pods.demand() == computed, "unplaced-demand-is-the-sum", f"{computed} computed")


def _check_held(pod_index: PodIndex, assumed: Assumed) -> None:
    """What is remembered is what would be found. All of it is remembered from then on, so that the
    next audit sees whether each change was noticed."""
    owners = (use.pod.workload for use in pod_index.uses.values())
    for uid in dict.fromkeys([*assumed.by_uid, *owners]):
        found = pod_index.held(uid)
        known = assumed.held.get(uid, found)
        check(
            sorted(known) == sorted(found),
            "held-is-what-is-there",
            f"{uid}: {known} known, {found} found",
        )
        if found:
            assumed.held[uid] = known
    for uid in assumed.held:
        check(bool(pod_index.held(uid)), "unused-charges-are-dropped", uid)
