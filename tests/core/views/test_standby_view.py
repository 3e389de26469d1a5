"""A standby takes records as they are, and leaves open what they do not say.

``tests/faults/test_onlookers.py`` compares both in random histories; these are the single cases.
"""

from __future__ import annotations

from msgspec.structs import replace

from mcad.core.events import AppWrapperSeen, LookOn
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Condition, Persisted
from mcad.core.state.reasons import ConditionType
from mcad.core.state.refusal import Doubts, Refusal
from mcad.core.state.reservation import Reservation, ReservationReason
from mcad.core.state.settings import Policy, Settings
from mcad.core.state.units import SECOND
from mcad.core.state.waiting_reason import Hold, WaitingReason
from mcad.core.views.rows import FITS_AS_STORED, FITS_NEXT, OPEN, Row
from tests.core.bench import START, Bench, cpu, node, workload

NODES = [node("n1"), node("n2")]
NONE = Doubts(room=False, shares=False)
ROOM, SHARES = Doubts(room=True, shares=False), Doubts(room=False, shares=True)


def look(bench: Bench) -> list[Row]:
    """What another process tells from what is stored."""
    bench.crash()
    bench.feed(LookOn())
    return bench.queue()


def recorded(**persisted: object) -> Bench:
    """``a`` waits, with this on record, where two nodes are free."""
    bench = Bench(nodes=NODES)
    saved = replace(Persisted("Pending", START), **persisted)
    bench.feed(AppWrapperSeen(replace(workload("a", 600), persisted=saved), listed=True))
    bench.feed(LookOn())
    return bench


def reserving(**changes: object) -> Bench:
    """``a`` waits, with a reservation on record."""
    reservation = Reservation(ReservationReason.STARVED, START, START + 600 * SECOND)
    return recorded(reservation=replace(reservation, **changes))


def one_behind_another() -> Bench:
    bench = Bench(nodes=NODES)
    bench.submit(workload("a", 600, 600), workload("b", 600, created=START + SECOND)).settle()
    return bench


def running(milli: int) -> Bench:
    bench = Bench(nodes=[node("n1", milli)])
    bench.submit(workload("a", milli)).settle()
    return bench


def test_a_reservation_is_where_its_record_says_and_not_planned_anew() -> None:
    bench = reserving(nodes=("n2",), pods=((1,),))
    cluster = bench.dispatcher.cluster
    assert cluster.capacity.gangs.places_of("uid-a") == {"n2": (1,)}
    assert cluster.doubts == NONE
    assert [row.waits_for for row in bench.queue()] == ["RoomReserved"]


def test_a_reservation_of_an_older_version_is_on_its_nodes_and_what_is_free_there_is_open() -> None:
    bench = reserving(nodes=("n2",))
    assert bench.dispatcher.cluster.capacity.gangs.nodes_of("uid-a") == ["n2"]
    assert bench.dispatcher.cluster.doubts == ROOM
    bench.crash()
    bench.feed(LookOn(is_led=False))
    assert bench.dispatcher.cluster.doubts is None, "no other process dispatches"


def test_on_a_node_that_is_gone_nothing_is_reserved() -> None:
    bench = reserving(nodes=("n2", "n9"), pods=((1,), (1,)))
    assert bench.dispatcher.cluster.capacity.gangs.nodes_of("uid-a") == ["n2"]


def test_an_appwrapper_that_fits_as_stored_may_be_held_back_for_all_a_standby_knows() -> None:
    bench = Bench(nodes=NODES).submit(workload("a", 600))
    assert [row.why for row in bench.queue()] == [FITS_NEXT]
    assert [row.why for row in look(bench)] == [FITS_AS_STORED]


def test_a_hold_on_record_stands() -> None:
    """It fits, and only the dispatcher knows how often its pods found no nodes before."""
    words, reason = "Its pods had no nodes 3 times in a row.", WaitingReason.PLACEMENT_BACKOFF
    held = Condition(ConditionType.BACKOFF, True, reason, words, START, START)
    [row] = recorded(conditions=(held,)).queue()
    assert (row.waits_for, row.why) == (reason, words)


def test_a_refusal_is_reported_in_the_words_of_the_dispatcher() -> None:
    bench = one_behind_another()
    bench.bind("a-0", "n1").bind("a-1", "n2").settle()
    told = bench.queue()
    assert [row.waits_for for row in told] == ["cpu"]
    assert look(bench) == told


def test_while_pods_have_no_node_it_is_open_what_is_free_on_which() -> None:
    bench = one_behind_another()
    (row,) = look(bench)
    assert bench.dispatcher.cluster.doubts == ROOM
    assert (row.waits_for, row.head, row.position) == (OPEN, None, 1)
    shown = bench.condition("b", ConditionType.BACKOFF)
    assert shown is not None
    assert row.why == f"Only the dispatcher can tell. {shown[2]}"


def test_a_hold_stands_as_it_was_written_until_the_spec_changes() -> None:
    bench = Bench(nodes=NODES)
    bench.submit(workload("a", 600)).settle()
    bench.submit(replace(workload("b", 100), items=bench.works["uid-a"].items)).settle()
    told = [(row.waits_for, row.why) for row in bench.queue()]
    assert [reason for reason, _ in told] == ["WaitingForName"]
    assert [(row.waits_for, row.why) for row in look(bench)] == told
    bench.works["uid-b"] = replace(workload("b", 100), generation=2)
    assert [row.position for row in look(bench)] == [1]


def test_the_declaration_of_an_edited_attempt_is_open() -> None:
    bench = running(600)
    bench.edit("uid-a", sets=workload("a", 100).sets, payload="edited").settle()
    cluster = bench.dispatcher.cluster
    look(bench)
    assert cluster.doubts is None, "the dispatcher itself has no doubts"
    assert bench.entry("a").phase is Phase.RUNNING
    assert [row.demand for row in bench.all_rows()] == [None]


def test_an_appwrapper_that_has_ended_is_shown_with_its_spec_of_now() -> None:
    bench = running(100)
    bench.entry("a").phase = Phase.COMPLETED
    bench.edit("uid-a", sets=workload("a", 50).sets, payload="edited")
    (row,) = bench.all_rows()
    assert row.demand == cpu(50, pods=1)


def test_an_appwrapper_that_lacks_room_says_so_even_behind_the_head_of_the_line() -> None:
    bench = Bench(Settings(policy=Policy.STRICT_FIFO), nodes=[node("n1")])
    for at, (name, milli) in enumerate(zip("abcd", (800, 900, 500, 100), strict=True)):
        bench.submit(workload(name, milli, created=START + at * SECOND))
    bench.settle()
    told = {row.name: row.waits_for for row in bench.queue()}
    assert told == {"b": "cpu", "c": "cpu", "d": WaitingReason.BLOCKED}


def test_doubts_concern_what_rests_on_them() -> None:
    few, never = Refusal(WaitingReason.INSUFFICIENT), Refusal(WaitingReason.TOO_LARGE)
    assert [one.concern(few) for one in (NONE, ROOM, SHARES)] == [False, True, True]
    assert [one.concern(never) for one in (NONE, ROOM, SHARES)] == [False, False, True]


def test_a_reason_of_the_spec_is_not_taken_from_the_record() -> None:
    bench = Bench(nodes=NODES)
    bench.submit(workload("a", 600, suspended=True)).settle()
    assert bench.entry("a").wait.hold == Hold(WaitingReason.SUSPENDED, bench.queue()[0].why)
    bench.works["uid-a"] = replace(bench.works["uid-a"], suspended=False)
    assert [row.position for row in look(bench)] == [1]
