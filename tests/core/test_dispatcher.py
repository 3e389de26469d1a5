"""The way of an AppWrapper through the dispatcher: order, budgets, refusals, completion."""

from typing import Any, get_args

import pytest
from msgspec.structs import replace

from mcad.core import dispatcher as module
from mcad.core.commands import CreateItem, WriteStatus
from mcad.core.dispatcher import ClockWentBackError, Dispatcher
from mcad.core.events import (
    AccessReviewed,
    AppWrapperSeen,
    Decide,
    Event,
    KindWatched,
    Leading,
    NodeSeen,
    QuotaGone,
    QuotaRefused,
    QuotaSeen,
    QuotaWritten,
    StrayRefused,
)
from mcad.core.state.answer import Answer
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Dialect, Item, ObjectRef, Persisted, PodPhase, Problem
from mcad.core.state.settings import Policy, Settings
from mcad.core.state.status_view import Urgency
from mcad.core.state.units import SECOND
from mcad.core.state.waiting_reason import WaitingReason
from tests.core.bench import PATIENT, START, Bench, node, workload


def test_one_that_fits_costs_an_intent_a_create_and_a_confirmation() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 100))
    bench.settle()

    assert dict(bench.writes) == {"status": 2, "create": 1}
    assert [e.reason for e in bench.events] == ["Dispatched"]
    assert bench.state("a") == "Running"
    view = bench.status["uid-a"]
    assert [c.type for c in view.conditions] == ["Init", "Queueing", "HeadOfLine", "Dispatched"]
    assert view.can_run
    assert view.queue_job_state == "Dispatched"


def test_what_the_api_server_warns_of_an_item_is_announced() -> None:
    bench = Bench(nodes=[node()])
    bench.warnings = ('unknown field "spec.a"', *(f"w{number}" for number in range(4)))
    bench.submit(workload("a", 100))
    bench.settle()
    (told,) = [one for one in bench.events if one.reason == "ManifestWarning"]
    words = 'Pod default/a-0: the API server warns: unknown field "spec.a", w0, w1 and 2 more.'
    assert (told.warning, told.note) == (True, words)


def test_nothing_is_created_before_the_intent_is_persisted() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 100))
    bench.decide()

    assert [type(c) for c in bench.pending] == [WriteStatus]
    bench.execute(bench.pending.pop(0))
    assert bench.status["uid-a"].dispatch is not None
    assert [type(c) for c in bench.pending] == [CreateItem]


def test_every_event_is_an_observation_an_answer_or_has_a_case_of_its_own() -> None:
    quota = (QuotaSeen, QuotaGone, QuotaWritten, QuotaRefused)
    own = (Leading, Decide, AccessReviewed, StrayRefused, *quota)
    routed = [*module._OBSERVED, *module._ANSWERS, *own]
    assert len(routed) == len(set(routed))
    assert set(routed) == set(get_args(Event))


def test_observations_decide_nothing() -> None:
    dispatcher = Dispatcher(Settings())
    assert dispatcher.step(NodeSeen(node()), START) == ()
    assert dispatcher.step(AppWrapperSeen(workload("a", 1)), START + 1) == ()


def test_what_does_not_fit_waits_without_objects_and_says_why() -> None:
    bench = Bench(nodes=[node(milli=1000)])
    bench.submit(workload("a", 800), workload("b", 150, 150))
    bench.settle()

    assert bench.names() == ["a-0"]
    view = bench.status["uid-b"]
    assert view.state == "Pending"
    assert not view.can_run
    assert view.queue_job_state == "Backoff"
    status, reason, message = bench.condition("b", "Backoff")
    assert status
    assert reason == "AppWrapperNotRunnable."
    assert message.startswith("Insufficient resources to dispatch AppWrapper.")
    assert "cpu: 300m requested, 200m available, 100m missing." in message
    assert [c.type for c in view.conditions] == ["Init", "Queueing", "HeadOfLine", "Backoff"]
    assert bench.writes["status"] == 3  # two for a, one for b
    assert [e.reason for e in bench.events if e.uid == "uid-b"] == ["Queued"]


def test_at_rest_nothing_is_written() -> None:
    bench = Bench(replace(PATIENT, protect_after=0), nodes=[node()])
    bench.submit(*(workload(f"w{i}", 700) for i in range(20)))
    bench.advance(60)
    before = dict(bench.writes)
    bench.advance(3600)

    assert dict(bench.writes) == before


@pytest.mark.slow
def test_a_head_that_waits_for_long_is_written_ever_more_rarely() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(*(workload(f"w{i}", 700) for i in range(3)))
    bench.settle()
    before = bench.writes["status"]
    for _ in range(2 * 24):
        bench.advance(3600)

    # A reservation, and its end, of seven doublings.
    assert 8 <= bench.writes["status"] - before <= 14


def test_released_room_dispatches_the_next() -> None:
    bench = Bench(nodes=[node(milli=1000)])
    bench.submit(workload("a", 800), workload("b", 800))
    bench.settle()
    bench.bind("a-0")
    bench.delete("uid-a")
    bench.settle()

    assert bench.names() == ["b-0"]
    assert bench.condition("b", "Backoff") == (False, "AppWrapperRunnable", "")


@pytest.mark.parametrize(
    ("works", "order"),
    [
        pytest.param(
            [workload("a", 1), workload("b", 1), workload("c", 1)], ["a", "b", "c"], id="FIFO"
        ),
        pytest.param(
            [workload("a", 1), workload("b", 1, priority=5), workload("c", 1, priority=9)],
            ["c", "b", "a"],
            id="priority first",
        ),
        pytest.param(
            [workload("a", 1, priority=1), workload("b", 2), workload("c", 1, priority=1)],
            ["a", "c", "b"],
            id="FIFO within a priority, across shapes",
        ),
    ],
)
def test_order(works: list, order: list[str]) -> None:
    bench = Bench(nodes=[node()])
    bench.submit(*works)
    bench.settle()

    assert bench.order == order


def test_a_slope_lets_the_older_one_overtake() -> None:
    bench = Bench(nodes=[node(milli=0)])
    bench.submit(workload("old", 100, slope=1_000_000))
    bench.advance(100)
    bench.submit(workload("new", 100, priority=50))
    bench.feed(NodeSeen(node(milli=100)))
    bench.settle()

    assert bench.order == ["old"]


def test_among_equals_a_slope_lets_age_outweigh_a_little_priority() -> None:
    bench = Bench(nodes=[node(milli=0)])
    bench.submit(workload("old", 100, slope=1_000_000))
    bench.advance(100)
    for name, priority in (("new", 50), ("urgent", 150)):
        late = workload(name, 100, slope=1_000_000, priority=priority, created=bench.now)
        bench.submit(late)
    for milli, order in ((100, ["urgent"]), (200, ["urgent", "old"])):
        bench.feed(NodeSeen(node(milli=milli)))
        bench.settle()
        assert bench.order == order


def a_small_one_behind_a_big_one(settings: Settings) -> Bench:
    """There is room for the small one only."""
    bench = Bench(settings, nodes=[node(milli=1000)])
    bench.submit(workload("first", 700))
    bench.settle()
    bench.bind("first-0")
    bench.submit(workload("big", 900), workload("small", 100))
    bench.settle()
    return bench


@pytest.mark.parametrize(
    ("policy", "order"),
    [(Policy.BEST_EFFORT_FIFO, ["first", "small"]), (Policy.STRICT_FIFO, ["first"])],
)
def test_best_effort_lets_a_small_one_overtake_and_strict_does_not(
    policy: Policy, order: list[str]
) -> None:
    assert a_small_one_behind_a_big_one(Settings(policy=policy)).order == order


def test_the_impossible_never_blocks_under_strict_fifo() -> None:
    bench = Bench(settings=Settings(policy=Policy.STRICT_FIFO), nodes=[node(milli=1000)])
    bench.submit(workload("huge", 5000), workload("small", 100))
    bench.settle()

    assert bench.order == ["small"]


def test_the_head_of_line_holds_the_rest_for_its_holding_time_only() -> None:
    bench = a_small_one_behind_a_big_one(Settings(head_of_line_holding=30 * SECOND))
    assert bench.order == ["first"]
    bench.advance(31)
    assert bench.order == ["first", "small"]


def test_intents_are_in_flight_together_in_the_order_of_the_line() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(*(workload(f"w{i}", 1) for i in range(5)))
    bench.decide()

    assert [c.uid for c in bench.pending] == [f"uid-w{i}" for i in range(5)]
    assert {c.urgency for c in bench.pending} == {Urgency.DISPATCH}


def test_a_dispatched_one_keeps_its_room_however_late_its_pod_is_bound() -> None:
    bench = Bench(nodes=[node(milli=1000)])
    bench.submit(workload("a", 600))
    bench.settle()
    bench.submit(workload("b", 600))
    bench.settle()
    bench.advance(100)
    assert bench.order == ["a"]
    bench.bind("a-0")
    bench.settle()
    assert bench.order == ["a"]
    bench.change("a-0", phase=PodPhase.SUCCEEDED)
    bench.settle()
    assert bench.order == ["a", "b"]


def never_placed() -> Bench:
    """What runs keeps room for a pod that its operator never makes."""
    bench = Bench(nodes=[node(milli=1000)])
    work = workload("a", 600)
    operated = Item(ObjectRef("ray.io", "v1", "rayclusters", "RayCluster", "default", "a"))
    sets = (replace(work.sets[0], counts_pods=True),)
    bench.submit(replace(work, items=(operated,), sets=sets))
    bench.settle()
    # The bench makes a pod for every item; this item's pod never came.
    bench.dispatcher.cluster.capacity.pod_gone(bench.things[operated.ref].child.uid)
    return bench


def test_room_of_pods_that_do_not_come_is_given_up_with_a_warning() -> None:
    bench = never_placed()
    bench.submit(workload("b", 600))
    bench.settle()
    assert bench.order == ["a"]
    bench.advance(301)

    assert bench.order == ["a", "b"]
    assert "PodsNotAttributed" in [e.reason for e in bench.events]


def test_a_failed_status_write_does_not_give_up_room_early() -> None:
    """The timer of the room and the one of the write know nothing of each other."""
    bench = never_placed()
    bench.refuse("WriteStatus", Answer(503, "ServiceUnavailable", "later"))
    bench.edit("uid-a", priority=1)
    bench.settle()
    bench.submit(workload("b", 600))
    bench.advance(250)
    assert bench.refusals["WriteStatus"] == []
    assert bench.order == ["a"]
    bench.advance(51)
    assert bench.order == ["a", "b"]


def test_completion_waits_for_flagged_items_and_their_pods() -> None:
    bench = Bench(nodes=[node()])
    work = workload("a", 100, 100)
    items = (replace(work.items[0], completion=("succeeded",)), work.items[1])
    bench.submit(replace(work, items=items))
    bench.settle()
    bench.bind("a-0")
    bench.bind("a-1")
    bench.change("a-0", phase=PodPhase.SUCCEEDED)
    bench.settle()
    assert bench.state("a") == "RunningHoldCompletion"
    bench.change("a-1", phase=PodPhase.SUCCEEDED)
    bench.settle()
    assert bench.state("a") == "Completed"
    assert bench.condition("a", "Completed") == (True, "PodsCompleted", "")
    assert not bench.status["uid-a"].can_run


def test_completed_stays_completed_over_a_restart_and_holds_no_room() -> None:
    bench = Bench(nodes=[node(milli=1000)])
    work = workload("a", 900)
    bench.submit(replace(work, items=(replace(work.items[0], completion=("succeeded",)),)))
    bench.settle()
    bench.bind("a-0")
    bench.change("a-0", phase=PodPhase.SUCCEEDED)
    bench.settle()
    bench.crash()
    bench.submit(workload("b", 900))
    bench.settle()

    assert bench.state("a") == "Completed"
    assert bench.order == ["a", "b"]


def test_the_later_dialect_succeeds_when_its_pods_do() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 100, 100, dialect=Dialect.V1BETA2))
    bench.settle()
    assert bench.status["uid-a"].phase == "Running"
    for name in ("a-0", "a-1"):
        bench.bind(name)
        bench.change(name, phase=PodPhase.SUCCEEDED)
    bench.settle()

    assert bench.status["uid-a"].phase == "Succeeded"
    assert bench.state("a") == "Completed"


def test_a_faulty_manifest_says_so_and_the_line_goes_on() -> None:
    bench = Bench(nodes=[node()])
    problem = Problem(WaitingReason.INVALID, "spec.resources", "is empty; add an item")
    bench.submit(workload("bad", problem=problem), workload("good", 100))
    bench.settle()

    assert bench.order == ["good"]
    assert bench.condition("bad", "Backoff") == (
        True,
        "InvalidAppWrapper",
        "spec.resources: is empty; add an item",
    )
    assert [e.warning for e in bench.events if e.uid == "uid-bad"] == [True]
    bench.edit("uid-bad", problem=None)
    bench.settle()
    assert bench.state("bad") == "Running"


@pytest.mark.parametrize("restarts", [False, True])
def test_a_copy_waits_until_it_is_granted_and_then_runs_whatever_comes(restarts: bool) -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 100, granted=False))
    bench.settle()
    if restarts:
        bench.restart()
    assert bench.names() == []
    assert bench.entry("a").wait.hold.reason == "NotGranted"
    bench.edit("uid-a", granted=True).settle()
    assert bench.names() == ["a-0"]
    bench.edit("uid-a", granted=False).settle()
    assert bench.names() == ["a-0"]


def test_suspend_holds_what_is_queued_and_takes_back_what_runs() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 100, suspended=True))
    bench.settle()
    assert bench.names() == []
    bench.edit("uid-a", suspended=False)
    bench.settle()
    assert bench.names() == ["a-0"]
    bench.edit("uid-a", suspended=True)
    bench.settle()
    assert bench.names() == []
    assert bench.state("a") == "Pending"
    bench.edit("uid-a", suspended=False)
    bench.settle()
    assert bench.names() == ["a-0"]
    assert bench.status["uid-a"].dispatch.attempt == 2


@pytest.mark.parametrize("edit", [{"suspended": True}, {"payload": "another"}])
@pytest.mark.parametrize("crash", [False, True])
def test_what_cannot_be_created_for_now_is_taken_back_when_it_is_wanted_no_more(
    edit: dict[str, Any], *, crash: bool
) -> None:
    """Without the patience that a server which takes nothing is met with."""
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 100, 100))
    bench.refuse("CreateItem", *[Answer(429, "TooManyRequests", "later")] * 5)
    bench.advance(1)
    assert bench.entry("a").phase is Phase.CREATING
    if crash:
        bench.crash()
    bench.edit("uid-a", **edit)
    bench.decide()
    assert bench.entry("a").phase is Phase.UNDEPLOYING
    bench.refusals.clear()
    bench.advance(80)  # the predecessor's create may be under way for so long
    assert bench.names() == ([] if edit.get("suspended") else ["a-0", "a-1"])
    assert bench.entry("a").past.in_vain == 1


def test_a_create_under_way_is_waited_for_before_it_is_taken_back() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 100, 100))
    while not any(isinstance(one, CreateItem) for one in bench.pending):
        bench.decide()
        if not any(isinstance(one, CreateItem) for one in bench.pending):
            bench.execute(bench.pending.pop(0))
    bench.edit("uid-a", suspended=True)
    bench.decide()
    assert bench.entry("a").phase is Phase.CREATING
    bench.settle()
    assert (bench.names(), bench.created) == ([], {("uid-a", 1, 0): 1})


def test_edits_count_while_it_waits() -> None:
    bench = Bench(nodes=[node(milli=1000)])
    bench.submit(workload("a", 2000))
    bench.settle()
    assert bench.state("a") == "Pending"
    bench.edit("uid-a", sets=workload("a", 500).sets, payload="other")
    bench.settle()

    assert bench.state("a") == "Running"


def test_an_unwatched_kind_blocks_only_those_that_contain_it() -> None:
    bench = Bench(nodes=[node()])
    bench.feed(KindWatched("ray.io", "rayclusters", False, "forbidden"))
    ray = Item(ObjectRef("ray.io", "v1", "rayclusters", "RayCluster", "default", "r"))
    bench.submit(replace(workload("ray"), items=(ray,)), workload("pod", 1))
    bench.settle()
    assert bench.order == ["pod"]
    assert bench.condition("ray", "Backoff")[1] == "KindNotWatched"
    bench.feed(KindWatched("ray.io", "rayclusters", True))
    bench.settle()
    assert bench.order == ["pod", "ray"]


def test_a_name_that_is_still_taken_is_waited_for_before_the_intent() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 100))
    bench.settle()
    twin = replace(workload("a", 100), uid="uid-twin", name="twin")
    bench.submit(twin)
    bench.settle()
    assert bench.status["uid-twin"].dispatch is None
    assert bench.condition("twin", "Backoff")[1:] == (
        "WaitingForName",
        "Pod default/a-0 belongs to AppWrapper default/a; this one waits until it is gone.",
    )
    bench.delete("uid-a")
    bench.settle()
    assert bench.state("twin") == "Running"


def test_what_another_controller_dispatched_is_left_alone() -> None:
    bench = Bench(nodes=[node()])
    saved = Persisted("Running", START, foreign=True)
    bench.submit(workload("theirs", 100, persisted=saved))
    bench.settle()

    assert dict(bench.writes) == {}
    assert [e.reason for e in bench.events] == ["LeftAlone"]


def test_another_manager_is_ignored() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("theirs", 100, managed=False))
    bench.settle()

    assert dict(bench.writes) == {}


def test_silent_streams_hold_new_dispatches_and_not_begun_ones() -> None:
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 100))
    bench.decide()
    bench.submit(workload("b", 100))
    while bench.pending:
        bench.execute(bench.pending.pop(0))
        bench.feed(Decide(may_dispatch=False))

    assert bench.order == ["a"]
    assert bench.state("a") == "Running"


def test_the_queue_report_tells_position_and_why() -> None:
    bench = Bench(nodes=[node(milli=1000)])
    bench.submit(workload("a", 900))
    bench.settle()
    bench.submit(workload("b", 500), workload("c", 5000, priority=3), workload("d", 50, 51))
    bench.settle()
    rows = bench.queue()

    assert [(r.name, r.position, r.head) for r in rows] == [
        ("c", 1, False),  # larger than any node: it never blocks, so it is not the head
        ("b", 2, True),
        ("d", 3, False),
    ]
    assert [r.waits_for for r in rows] == ["cpu", "cpu", "cpu"]


def test_a_clock_that_goes_back_is_refused() -> None:
    dispatcher = Dispatcher(Settings())
    dispatcher.step(Decide(), START)
    with pytest.raises(ClockWentBackError):
        dispatcher.step(Decide(), START - 1)


def test_what_was_never_seen_comes_after_what_was_seen_in_the_same_second() -> None:
    bench = Bench(nodes=[node(milli=0)])
    seen = Persisted("Pending", START + 200_000)
    bench.works["uid-seen"] = workload("seen", 100, persisted=seen)
    for name, saved in (("seen", seen), ("new", None)):
        bench.feed(AppWrapperSeen(workload(name, 100, persisted=saved), listed=True))

    assert bench.entry("new").first_seen > bench.entry("seen").first_seen == START + 200_000


def test_a_waiting_one_is_looked_at_again_by_one_timer_however_much_happens() -> None:
    bench = Bench(nodes=[node("n1", 1000)])
    bench.submit(workload("large", 2000))
    bench.settle()
    for number in range(50):  # each of which is a reason to decide, and none to dispatch
        bench.now += SECOND // 10
        bench.feed(NodeSeen(node(f"small-{number}", 10)))
        bench.settle()
    bench.wishes = [at for at in bench.wishes if at > bench.now]
    assert len(bench.wishes) == 1
    began = bench.now
    decisions = 0
    while bench.now < began + 100 * SECOND:
        bench.now = min(bench.wishes)
        bench.wishes.remove(bench.now)
        bench.settle()
        decisions += 1
    assert decisions <= 13  # twice in backoffTime, and ten times in protectAfter


def test_a_refused_shape_is_tested_again_within_backoff_time() -> None:
    bench = Bench(nodes=[node("n1", 1000)])
    bench.submit(workload("large", 2000))
    bench.settle()
    (eqclass,) = bench.dispatcher.cluster.waiting.queue.eqclasses()
    for _ in range(40):
        bench.advance(1.7)
        assert bench.now - eqclass.tested_at <= bench.settings.backoff
