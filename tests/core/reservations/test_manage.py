"""Reservations: their owners, their nodes, and how they end (ADR 28)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mcad.core.cluster import Cluster
from mcad.core.events import NodeGone, NodeSeen, PodGone
from mcad.core.reservations import release_set
from mcad.core.snapshot.snapshot import ANYWHERE, Snapshot, Where
from mcad.core.state.entry import Entry
from mcad.core.state.model import Workload
from mcad.core.state.records import replace
from mcad.core.state.reservation import ReservationReason
from mcad.core.state.settings import Policy, Settings
from mcad.core.state.units import SECOND
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.quotas import GOLD, child, subtree

PROTECTING = replace(PATIENT, protect_after=100 * SECOND)


def zone(name: str, where: str, milli: int = 1000) -> object:
    return replace(node(name, milli), labels=(("zone", where),))


def there(work: Workload, where: str) -> Workload:
    """Its pods go to one zone."""
    sets = (
        replace(one, constraint=replace(one.constraint, selector=(("zone", where),)))
        for one in work.sets
    )
    return replace(work, sets=tuple(sets))


def reservations(bench: Bench) -> dict[str, tuple[str, ...]]:
    """The nodes of each reservation, by the name of its owner."""
    cluster = bench.dispatcher.cluster
    found = {uid: owner.reservation for uid, owner in cluster.reservations.items()}
    return {uid.removeprefix("uid-"): one.nodes for uid, one in found.items() if one is not None}


def names_of_plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The name of an AppWrapper for each plan that is made for it from now on."""
    asked: list[str] = []
    real = release_set.what_if

    def counted(
        cluster: Cluster, entry: Entry, lifted: Sequence[str] = (), where: Where = ANYWHERE
    ) -> Snapshot:
        asked.append(entry.workload.name)
        return real(cluster, entry, lifted, where)

    monkeypatch.setattr(release_set, "what_if", counted)
    return asked


def starving(settings: Settings = PROTECTING, nodes: int = 2) -> Bench:
    """One service on each node, and a gang that needs all of them."""
    bench = Bench(settings, nodes=[node(f"n{i}") for i in range(nodes)])
    bench.start(*(workload(f"s{i}", 600) for i in range(nodes)))
    bench.submit(workload("gang", *[900] * nodes))
    bench.advance(130)
    return bench


def test_each_set_of_nodes_has_a_first_in_line_of_its_own() -> None:
    bench = Bench(PROTECTING, nodes=[zone("a", "a"), zone("b", "b")])
    bench.start(there(workload("ra", 500), "a"), there(workload("rb", 500), "b"))
    bench.submit(*(there(workload(f"w{z}{i}", 800), z) for z in "ab" for i in range(2)))
    bench.advance(130)
    assert reservations(bench) == {"wa0": ("a",), "wb0": ("b",)}


def test_only_as_many_nodes_as_it_needs_are_kept() -> None:
    bench = Bench(PROTECTING, nodes=[node(f"n{i}") for i in range(5)])
    for i in range(5):
        bench.submit(workload(f"s{i}", 600))
        bench.advance(1)
    bench.submit(workload("gang", 900, 900))
    bench.advance(130)
    # of those without a limit, the last dispatched is the likeliest to end
    reservation = bench.entry("gang").reserved
    assert reservation.waits_for == ("default/s3", "default/s4")
    assert len(reservations(bench)["gang"]) == 2


def test_a_node_that_goes_is_replaced_by_another_one() -> None:
    bench = starving()
    assert reservations(bench) == {"gang": ("n0", "n1")}
    bench.feed(NodeSeen(node("n2")))
    bench.feed(NodeGone("n1"))
    bench.settle()
    assert reservations(bench) == {"gang": ("n0", "n2")}
    for name in ("uid-s0", "uid-s1"):  # the second had to move to n2 as well
        assert "gang" not in bench.order
        bench.delete(name)
        bench.settle()
    assert "gang" in bench.order


def test_without_another_node_the_reservation_ends() -> None:
    bench = starving()
    bench.feed(NodeGone("n1"))
    bench.settle()
    assert not reservations(bench)
    (note,) = [event.note for event in bench.events if event.reason == "ReservationEnded"]
    assert note == (
        "Room is not kept for it any more. A node is gone. There is no room for it elsewhere."
    )
    bench.dispatcher.cluster.admission.check()


def test_room_that_comes_up_elsewhere_is_taken() -> None:
    bench = starving()
    for name in ("n8", "n9"):
        bench.feed(NodeSeen(node(name)))
    bench.advance(10)
    assert "gang" in bench.order
    assert not reservations(bench)


def test_no_reservation_is_needed_where_none_overtakes() -> None:
    assert not reservations(starving(replace(PROTECTING, policy=Policy.STRICT_FIFO)))


def test_an_appwrapper_that_waits_for_quota_gets_it_as_well() -> None:
    """A stream of small ones in the same quota starves it as on nodes."""
    bench = Bench(PROTECTING, nodes=[node("n1", 4000)])
    bench.share(subtree("root", child("root", cpu=1000)))
    mine = ((GOLD, "root"),)
    bench.start(*(workload(f"s{i}", 300, quota=mine) for i in range(3)))
    bench.submit(workload("large", 900, quota=mine))
    bench.advance(130)
    assert reservations(bench) == {"large": ("n1",)}
    bench.submit(workload("s3", 100, quota=mine))
    for i in range(3):
        bench.delete(f"uid-s{i}")
        bench.settle()
    assert bench.order[3:] == ["large", "s3"]


def test_a_reservation_without_a_date_ends_and_the_next_one_lasts_twice_as_long() -> None:
    bench = starving()
    lasted = []
    before = None
    for _ in range(5000):
        reservation = bench.entry("gang").reservation
        if reservation is not None and (before is None or reservation.since != before.since):
            assert reservation.reason is ReservationReason.STARVED
            lasted.append((reservation.until - reservation.since) // SECOND)
        before = reservation or before
        if len(lasted) == 5:
            break
        bench.advance(10)
    assert lasted == [100, 200, 400, 800, 1600]


def test_after_a_restart_a_reservation_is_planned_before_any_dispatch() -> None:
    bench = starving()
    bench.submit(workload("small", 100))
    bench.restart()
    assert reservations(bench) == {"gang": ("n0", "n1")}
    assert "small" not in bench.order
    bench.dispatcher.cluster.admission.check()


def test_a_reservation_stands_while_a_lost_pod_there_may_be_replaced() -> None:
    bench = starving()
    for number in range(2):
        bench.bind(f"s{number}-0", on=f"n{number}")
    bench.settle()
    bench.delete("uid-s0")
    (thing,) = (thing for ref, thing in bench.things.items() if ref.name == "s1-0")
    bench.feed(PodGone(thing.child.uid))  # and its controller has not said anything yet
    bench.submit(workload("small", 300))
    bench.advance(10)
    assert reservations(bench) == {"gang": ("n0", "n1")}
    assert bench.order == ["s0", "s1"]
    bench.delete("uid-s1")
    bench.settle()
    assert bench.order[2:] == ["gang"]


def test_an_edit_that_wants_the_same_room_keeps_the_reservation() -> None:
    bench = starving()
    since = bench.entry("gang").reservation
    bench.edit("uid-gang", run_expected=60 * SECOND, payload="other")
    bench.settle()
    assert bench.entry("gang").reservation == since
    assert bench.entry("gang").workload.run_expected == 60 * SECOND


@pytest.mark.parametrize("change", [{"suspended": True}, {"sets": ()}])
def test_an_edit_that_wants_something_else_ends_it(change: dict[str, object]) -> None:
    bench = starving()
    bench.edit("uid-gang", **change)
    bench.decide()
    assert not reservations(bench)
