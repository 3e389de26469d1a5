"""The whole books recomputed from pods and allotments: the invariants of the capacity half.

For tests after every event, for ``mcad debug``, and never on the way to a decision: O(everything).
"""

from __future__ import annotations

from mcad.core.assumed.allotments import Allotment
from mcad.core.assumed.assumed import Reservations
from mcad.core.assumed.pod_index import Roster, Use
from mcad.core.assumed.unplaced import Arrears
from mcad.core.fit.shape_cache import Memory
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.pod_signature import PodClass
from mcad.core.nodes.pools import Pool, Row, joint_total
from mcad.core.nodes.resources import Books, book, resources, total
from mcad.core.state.model import TERMINAL_PHASES
from mcad.core.state.violations import check
from mcad.core.views.node_report import reserved_on, used_on


def audit(
    ledger: Ledger, memory: Memory, roster: Roster, reservations: Reservations, arrears: Arrears
) -> None:
    """Raise ``InvariantViolated`` at the first entry that is not what it should be."""
    for row in ledger.rows.values():
        _check_row(row, ledger, roster, reservations)
    for pool in ledger.pools():
        _check_pool(pool, ledger)
    for pods in memory.classes():
        _check_class(pods)
    _check_allotments(roster, reservations, ledger)
    _check_arrears(reservations, arrears)
    _check_held(roster, reservations)


def _check_row(row: Row, ledger: Ledger, roster: Roster, reservations: Reservations) -> None:
    name = row.node.name
    left: Books = {**dict(row.node.allocatable), **ledger.ports}
    book(left, used_on(name, roster), -1)
    book(left, reserved_on(name, reservations), -1)
    check(
        resources(left) == resources(row.free),
        "free-is-what-is-left",
        f"{name}: {resources(row.free)} booked, {resources(left)} computed",
    )
    idle: Books = {**dict(row.node.allocatable), **ledger.ports}
    for use in roster.on_node.get(name, {}).values():
        if not use.pod.workload and use.pod.phase not in TERMINAL_PHASES:
            book(idle, use.request, -1)
    check(
        resources(idle) == resources(row.idle),
        "idle-is-what-foreign-pods-leave",
        f"{name}: {resources(row.idle)} booked, {resources(idle)} computed",
    )
    known = name in ledger.overdrawn
    check(row.overdrawn == known, "overdrawn-is-known", f"{name}: {row.overdrawn}")
    _check_claim(row, reservations)


def _check_claim(row: Row, reservations: Reservations) -> None:
    """A node is in one claim at most."""
    slots = reservations.slots_on.get(row.node.name, {})
    claims = [allotment for allotment in slots if allotment.reservation.claimed]
    owners = sorted({allotment.reservation.uid for allotment in claims})
    check(owners == [row.claimant][: bool(row.claimant)], "one-claim-at-most", f"{owners}")
    computed = total((one.pods.request, one.at[row.node.name]) for one in claims)
    check(computed == resources(row.claimed), "claimed-is-what-is-claimed", f"{computed}")


def _check_pool(pool: Pool, ledger: Ledger) -> None:
    admitted = {row.rank: row for row in ledger.rows.values() if pool.admits(row.node)}
    check(admitted == pool.rows, "pool-holds-whom-it-admits", f"{sorted(pool.rows)}")
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


def _check_allotments(roster: Roster, reservations: Reservations, ledger: Ledger) -> None:
    held: dict[str, dict[Allotment, None]] = {}
    for reservation in reservations.by_uid.values():
        for allotment in reservation.allotments:
            _check_allotment(allotment, ledger)
            for name in allotment.at:
                held.setdefault(name, {})[allotment] = None
    check(held == reservations.slots_on, "slots-are-known-by-node", f"{sorted(held)}")
    counted: dict[Allotment, list[Use]] = {}
    for use in roster.uses.values():
        if use.allotment is not None:
            counted.setdefault(use.allotment, []).append(use)
    for reservation in reservations.by_uid.values():
        for allotment in reservation.allotments:
            _check_counts(allotment, counted.pop(allotment, []))
    check(not counted, "allotments-of-the-living", "pods are attributed to an ended reservation")


def _title(allotment: Allotment) -> str:
    return f"{allotment.reservation.uid} set {allotment.position}"


def _check_allotment(allotment: Allotment, ledger: Ledger) -> None:
    story = f"{_title(allotment)}: {allotment.at}, {allotment.adrift} adrift"
    check(allotment.assumed == sum(allotment.at.values()), "assumed-is-the-sum-of-slots", story)
    check(
        allotment.adrift >= 0 and all(n > 0 for n in allotment.at.values()),
        "slots-are-positive",
        story,
    )
    check(allotment.size == allotment.target, "assumed-and-adrift-is-the-reservation", story)
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
    check(allotment.have == len(covering), "have-is-counted", story)
    check(allotment.live == sum(use.live for use in uses), "live-is-counted", story)
    check(allotment.bound == bound, "bound-is-counted-by-node", story)


def _check_arrears(reservations: Reservations, arrears: Arrears) -> None:
    owed = filter(reservations.is_owed, reservations.by_uid.values())
    allotments = [each for one in owed for each in one.allotments if each.adrift]
    computed = total((allotment.pods.request, allotment.adrift) for allotment in allotments)
    check(arrears.demand() == computed, "arrears-are-what-is-adrift", f"{computed} computed")


def _check_held(roster: Roster, reservations: Reservations) -> None:
    """What is remembered is what would be found. All of it is remembered from then on, so that the
    next audit sees whether each change was noticed."""
    owners = (use.pod.workload for use in roster.uses.values())
    for uid in dict.fromkeys([*reservations.by_uid, *owners]):
        found = roster.held(uid)
        known = reservations.held.get(uid, found)
        check(
            sorted(known) == sorted(found),
            "held-is-what-is-there",
            f"{uid}: {known} known, {found} found",
        )
        if found:
            reservations.held[uid] = known
    for uid in reservations.held:
        check(bool(roster.held(uid)), "held-by-nobody-is-forgotten", uid)
