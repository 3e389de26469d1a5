"""Reservations and evictions under what is awkward: restarts at the wrong moment, odd settings."""

from __future__ import annotations

import pytest

from mcad.core.events import KindWatched
from mcad.core.reservations import release_set
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import POD_GRACE, Cascade, Dialect, PodPhase
from mcad.core.state.records import replace
from mcad.core.state.reservation import ReservationReason
from mcad.core.state.run_policy import FaultTolerance
from mcad.core.state.settings import Fit, Policy
from mcad.core.state.units import SECOND
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.preemption.test_search import EAGER, GRACE, crowded, of, phase
from tests.core.quotas import teams
from tests.core.reservations.test_manage import PROTECTING, names_of_plans, reservations, starving


def test_passes_end_while_the_owner_of_free_room_cannot_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its name is taken, and to plan for it takes a whole pass: ``advance`` counts the passes."""
    monkeypatch.setattr("mcad.core.state.agenda.WORK_PER_PASS", 4)
    bench = Bench(EAGER, nodes=[node(f"n{number}") for number in range(6)])
    bench.stubborn.add("b5-0")
    for number in range(6):
        bench.submit(workload(f"b{number}", 600))
        bench.advance(1)
    wanting = workload("w", 900, priority=5)
    bench.submit(wanting)
    bench.advance(3)
    assert "uid-w" in bench.dispatcher.cluster.reservations
    bench.start(workload("x", 10, items=wanting.items, priority=9))
    bench.remove(next(ref for ref in bench.things if ref.name == "b5-0"))
    bench.settle()
    bench.advance(5)
    assert bench.state("w") == "Pending"
    bench.delete("uid-x")
    bench.advance(2)
    assert bench.state("w") == "Running"


def reclaiming() -> Bench:
    """Red has both nodes; blue wants its share back."""
    bench = Bench(replace(EAGER, preemption=False), nodes=[node("n1"), node("n2")])
    bench.share(*teams(2000, red=1000, blue=1000))
    for name in "ab":
        bench.submit(of("red", workload(name, 600)))
        bench.advance(1)
    bench.submit(of("blue", workload("w", 900, created=bench.now)))
    return bench


def test_a_restart_while_pods_of_the_evicted_end_keeps_the_reservation() -> None:
    """Pods that are being deleted are not replaced: they hold their room once and not twice."""
    bench = crowded()
    bench.bind("a-0", on="n1")
    bench.bind("b-0", on="n2")
    bench.stubborn.add("b-0")
    bench.submit(workload("w", 900, priority=5))
    bench.advance(3)
    assert phase(bench, "b") is Phase.VERIFYING
    until = bench.entry("w").reserved.until

    bench.restart()
    cluster = bench.dispatcher.cluster
    assert not cluster.capacity.report.unplaced()
    reservation = bench.entry("w").reserved
    assert (reservation.waits_for, reservation.until) == (("default/b",), until)


def test_a_restart_before_the_reservation_is_written_wastes_no_eviction() -> None:
    """The teardown of the victim is on record, and its preemptor: that is as good."""
    bench = reclaiming()
    while not bench.entry("b").eviction:
        bench.decide()
        while bench.pending and not bench.entry("b").eviction:
            bench.execute(bench.pending.pop(0))
        bench.now += SECOND
    for command in bench.pending:
        if command.uid == "uid-b":  # type: ignore[union-attr]
            bench.apply(command)
    assert "uid-w" not in bench.status
    bench.crash()
    bench.advance(60)
    assert bench.order == ["a", "b", "w"]
    assert phase(bench, "a") is Phase.RUNNING
    assert bench.entry("a").eviction is None


@pytest.mark.parametrize("wanted", [800, 901])
def test_an_edit_of_the_winner_leaves_it_the_room_that_others_left(wanted: int) -> None:
    """They stand before it, and it may not have them evicted again."""
    bench = reclaiming()
    bench.stubborn.add("b-0")
    bench.advance(3)
    reservation = bench.entry("w").reserved
    bench.edit("uid-w", sets=workload("w", wanted).sets)
    bench.advance(3)
    renewed = bench.entry("w").reserved
    assert (renewed.reason, renewed.until) == (reservation.reason, reservation.until)
    [ref] = [ref for ref in bench.things if ref.name == "b-0"]
    bench.remove(ref)
    bench.advance(10)
    assert bench.order == ["a", "b", "w"]
    assert phase(bench, "a") is Phase.RUNNING


def test_a_winner_that_is_edited_beyond_the_room_that_others_left_gives_it_up() -> None:
    bench = reclaiming()
    bench.stubborn.add("b-0")
    bench.advance(3)
    bench.edit("uid-w", sets=workload("w", 1001).sets)
    bench.advance(3)
    assert not reservations(bench)


def test_an_eviction_of_long_ago_has_made_no_room() -> None:
    bench = reclaiming()
    bench.advance(3)
    assert bench.order == ["a", "b", "w"]
    bench.now += bench.settings.reservation_timeout + POD_GRACE
    bench.crash()
    assert not bench.dispatcher.cluster.reservations.on_record


def test_a_teardown_outlives_a_reservation_timeout_of_nothing() -> None:
    """The evicted needs a while to go whatever is said of pods that are not created."""
    bench = crowded(replace(EAGER, reservation_timeout=0))
    bench.bind("b-0", on="n2")
    bench.stubborn.add("b-0")
    bench.submit(workload("w", 900, priority=5))
    bench.advance(20)
    reservation = bench.entry("w").reserved
    assert reservation.reason is ReservationReason.PREEMPTING


def test_a_deleted_appwrapper_waits_for_no_pods() -> None:
    """What is declared and never came is given up in time, but not of what goes anyway: to try
    that would be tried again at once, and for ever."""
    bench = Bench(replace(PATIENT, reservation_timeout=60 * SECOND), nodes=[node("n1")])
    bench.start(workload("a", 100))
    bench.bind("a-0")
    (ref,) = bench.things
    bench.stubborn.add("a-0")
    bench.delete_object(ref)  # another client does, so that its pod is missed
    bench.settle()
    bench.edit("uid-a", deleting=True, cascade=Cascade.FOREGROUND)
    bench.advance(200)


def decisions(bench: Bench, seconds: int) -> int:
    """How many there are while time passes."""
    made, decide = 0, bench.decide

    def counted() -> None:
        nonlocal made
        made += 1
        decide()

    bench.decide = counted  # type: ignore[method-assign]
    bench.advance(seconds)
    bench.decide = decide  # type: ignore[method-assign]
    return made


def test_the_first_in_line_is_not_looked_for_all_the_time() -> None:
    bench = Bench(replace(PATIENT, protect_after=SECOND), nodes=[node("n1")])
    bench.start(workload("service", 600))
    bench.submit(workload("gang", 900))
    bench.advance(600)
    assert decisions(bench, 600) <= 2 * 600


def test_a_victim_that_cannot_be_evicted_yet_is_tried_once_a_second() -> None:
    """Each pass wished another one a second later, and each of these did as well."""
    bench = crowded(GRACE)
    bench.submit(workload("w", 900, priority=5))
    bench.advance(5)
    bench.edit("uid-b", never_preempted=True)
    bench.advance(30)
    for _ in range(50):  # the loop is busy elsewhere
        bench.advance(0.3)
    assert bench.dispatcher.cluster.evictions
    assert decisions(bench, 100) <= 3 * 100


def test_no_reservation_counts_on_room_of_a_reset_after_a_restart() -> None:
    """Its objects go, and its room is that of its next attempt."""
    bench = Bench(PROTECTING, nodes=[node("n1")])
    again = FaultTolerance(failure_grace=0, retry_pause=3600 * SECOND, retry_limit=5)
    bench.start(workload("a", 600, dialect=Dialect.V1BETA2, tolerance=again))
    bench.bind("a-0")
    bench.submit(workload("gang", 900))
    bench.advance(130)
    assert reservations(bench) == {"gang": ("n1",)}
    bench.stubborn.add("a-0")
    bench.change("a-0", phase=PodPhase.FAILED)
    bench.settle()
    assert bench.entry("a").keeps_room
    assert release_set.releasing_soon(bench.dispatcher.cluster) == []


def test_of_those_that_outrank_a_reservation_few_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each costs a look at every node, and most want more than there is."""
    bench = starving()
    bench.submit(*(workload(f"h{i}", 950, 950, 950 + i, priority=5) for i in range(50)))
    bench.start(*(workload(f"e{i}", 850 - i, 700, 10, 440, priority=4) for i in range(50)))
    asked = names_of_plans(monkeypatch)
    bench.delete("uid-s0")
    bench.delete("uid-s1")
    bench.decide()
    outranking = [name for name in asked if name.startswith("e")]
    assert outranking == [f"e{i}" for i in range(20)]  # in the order of the line
    assert not any(name.startswith("h") for name in asked)
    bench.settle()
    assert bench.order == ["s0", "s1", "gang"]


def test_nothing_is_kept_for_an_appwrapper_that_could_not_go_anyway() -> None:
    bench = Bench(PROTECTING, nodes=[node("n1")]).start(workload("service", 600))
    bench.submit(workload("gang", 900))
    bench.feed(KindWatched("", "pods", watched=False, message="no such kind"))
    bench.advance(300)
    assert not reservations(bench)
    bench.feed(KindWatched("", "pods", watched=True))
    bench.advance(20)
    assert reservations(bench) == {"gang": ("n1",)}


@pytest.mark.parametrize(("away_s", "first"), [(100, "w"), (400, "b")])
def test_while_a_kind_cannot_be_watched_the_winner_keeps_the_room_until_its_reservation_ends(
    away_s: int, first: str
) -> None:
    bench = reclaiming()
    bench.stubborn.add("b-0")
    bench.advance(3)
    bench.feed(KindWatched("", "pods", watched=False, message="no news"))
    [ref] = [ref for ref in bench.things if ref.name == "b-0"]
    bench.remove(ref)
    bench.advance(away_s)
    bench.feed(KindWatched("", "pods", watched=True))
    bench.advance(10)
    assert bench.order[2] == first


def test_where_only_sums_count_reservations_of_another_time_end() -> None:
    """A plan of sums has no place for all pods, so the reservation would have been planned for
    ever."""
    bench = starving()
    bench.nodes += [node(f"small{i}", 500) for i in range(3)]  # seen from the restart on
    assert reservations(bench) == {"gang": ("n0", "n1")}
    bench.settings = replace(PROTECTING, fit=Fit.AGGREGATE)
    bench.restart()
    assert not reservations(bench)
    assert bench.order == ["s0", "s1", "gang"]


def test_in_strict_order_a_reservation_blocks_those_behind_and_none_ahead() -> None:
    bench = crowded(replace(EAGER, policy=Policy.STRICT_FIFO))
    bench.bind("b-0", on="n2")
    bench.stubborn.add("b-0")
    bench.submit(workload("w", 900, priority=5))
    bench.advance(5)
    assert reservations(bench) == {"w": ("n2",)}
    bench.submit(workload("behind", 300, priority=5, created=bench.now))
    bench.submit(workload("ahead", 300, priority=9, created=bench.now))
    bench.advance(5)
    assert bench.order == ["a", "b", "ahead"]


def test_an_appwrapper_with_a_used_reservation_may_hold_the_line_again() -> None:
    bench = starving(replace(PROTECTING, head_of_line_holding=50 * SECOND))
    assert bench.entry("gang").wait.head_for
    for name in ("uid-s0", "uid-s1"):
        bench.delete(name)
    bench.settle()
    assert phase(bench, "gang") is Phase.RUNNING
    assert not bench.entry("gang").wait.head_for
