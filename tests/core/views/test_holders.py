"""The reservations that keep a waiting AppWrapper off room."""

from __future__ import annotations

from msgspec.structs import replace

from mcad.core.cycle import cycle
from mcad.core.state.model import Constraint
from mcad.core.state.reservation import Reservation, ReservationReason
from mcad.core.views.holders import in_the_way
from tests.core.bench import Bench, node, workload
from tests.core.quota.test_usage import bench, of


def reservations(made: Bench, **since: int) -> None:
    """So old are the reservations of these."""
    for name, at in since.items():
        owner = made.entry(name)
        reservation = Reservation(ReservationReason.STARVED, since=at, until=at + 1)
        made.dispatcher.cluster.reservations.add(owner, reservation, {})


def keepers(made: Bench, name: str) -> list[str]:
    cluster, entry = made.dispatcher.cluster, made.entry(name)
    eqclass = cluster.waiting.queue.eqclass_of(entry)
    refusal = cycle.verdict(cluster, cluster.capacity.questions(), eqclass) if eqclass else None
    return [owner.workload.name for owner, _ in in_the_way(cluster, entry, refusal)]


def test_reservations_on_nodes_are_in_the_way_of_appwrappers_that_could_go_there() -> None:
    made = Bench(nodes=[node("n1", labels=(("zone", "a"),)), node("n2", labels=(("zone", "b"),))])
    for name, zone in (("late", "a"), ("early", "a"), ("other", "b"), ("small", "a")):
        work = workload(name, 2000)
        where = Constraint(selector=(("zone", zone),))
        made.submit(replace(work, sets=tuple(replace(one, constraint=where) for one in work.sets)))
    made.submit(workload("anywhere", 3000)).settle()
    assert keepers(made, "small") == []
    reservations(made, late=9, early=5, other=7)
    assert keepers(made, "small") == ["early", "late"]
    assert keepers(made, "anywhere") == ["early", "other", "late"]
    assert keepers(made, "late") == ["early"], "its own is not in its way"


def test_reservations_on_shares_are_in_the_way_at_the_node_that_refuses() -> None:
    made = bench(2000, red=1000, blue=1000)
    made.submit(of("red", "runs", 900), of("red", "hard", 1200))
    made.submit(of("blue", "other", 1500), of("red", "mine", 1500))
    made.settle()
    reservations(made, other=1)
    assert keepers(made, "mine") == ["other"], "both would have it of the root"


def test_no_reservation_is_in_the_way_of_an_appwrapper_that_is_not_refused() -> None:
    made = Bench(nodes=[node()])
    made.submit(workload("runs", 500), workload("waits", 900))
    made.settle()
    reservations(made, waits=1)
    assert keepers(made, "runs") == []
