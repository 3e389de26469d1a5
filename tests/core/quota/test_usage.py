"""Quota through the dispatcher: what goes, what waits for which share, and what statuses say."""

from __future__ import annotations

import pytest

from mcad.core.events import AppWrapperGone, AppWrapperSeen, Decide, NodeSeen
from mcad.core.running.requeue import Requeuing
from mcad.core.state.answer import Answer
from mcad.core.state.bounds import RESTATED_PER_SHAPE
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import (
    Dialect,
    DispatchPhase,
    DispatchRecord,
    Persisted,
    PodPhase,
    Workload,
)
from mcad.core.state.records import replace
from mcad.core.state.run_policy import TOLERANT
from mcad.core.state.settings import Policy, Settings
from mcad.core.state.units import SECOND
from mcad.core.views.rows import Picture
from tests.core.bench import PATIENT, START, Bench, node, workload
from tests.core.quotas import GOLD, SILVER, child, subtree, teams


def of(team: str, name: str, *milli: int, **changes: object) -> Workload:
    """An AppWrapper of a team of the tree ``gold``."""
    return workload(name, *milli, quota=((GOLD, team),), **changes)


def bench(cpu: int, settings: Settings = PATIENT, **shares: int) -> Bench:
    """A cluster with more room than quota."""
    made = Bench(settings, nodes=[node(milli=100_000)])
    made.share(*teams(cpu, **shares))
    return made


def used(made: Bench, name: str, tree: str = GOLD) -> int:
    """Milli-CPU that is charged to a node of the tree."""
    grown = made.dispatcher.cluster.forest.trees[tree]
    return grown.nodes[name].usage.get("cpu", 0)


def why(made: Bench, name: str) -> str:
    """What the condition of an AppWrapper that waits says."""
    return made.condition(name, "Backoff")[2]


# -- shares --------------------------------------------------------------------------------------


def test_without_a_tree_nothing_is_limited() -> None:
    made = Bench(nodes=[node()])
    made.submit(of("red", "a", 600)).settle()

    assert made.state("a") == "Running"
    assert made.status["uid-a"].dispatch.quota == ()


def test_a_team_borrows_what_others_leave_idle_and_no_more_than_the_root_has() -> None:
    made = bench(1000, red=300, blue=700)
    made.submit(*(of("red", f"r{n}", 250) for n in range(5))).settle()

    assert made.order == ["r0", "r1", "r2", "r3"]
    assert used(made, "red") == used(made, "root") == 1000
    assert made.status["uid-r0"].dispatch.quota == ((GOLD, "red"),)


def test_a_hard_limit_is_not_exceeded_although_the_root_has_room() -> None:
    made = bench(1000)
    made.share(subtree("teams", child("red", hard=True, cpu=300), parent="root"))
    made.submit(of("red", "a", 250), of("red", "b", 250)).settle()

    assert made.order == ["a"]
    _, reason, message = made.condition("b", "Backoff")
    assert reason == "AppWrapperNotRunnable."
    assert message == (
        "Insufficient quota to dispatch AppWrapper. "
        'Quota tree "gold", node "red": cpu: 250m requested, 250m of 300m used.'
    )


def test_a_refusal_names_the_borrowers() -> None:
    made = bench(1000, red=100, green=200, blue=700)
    made.submit(of("red", "r", 300), of("green", "g", 500), of("blue", "b", 700)).settle()

    assert why(made, "b").endswith(
        'node "root": cpu: 700m requested, 800m of 1 used. '
        "Borrowing there: green (300m), red (200m)."
    )
    assert [row.waits_for for row in made.queue()] == ["gold/root:cpu"]


def test_a_demand_beyond_the_whole_share_is_explained() -> None:
    made = bench(1000, red=1000)
    made.submit(of("red", "a", 600, 600)).settle()

    assert "1200m requested, its whole share is 1." in why(made, "a")


def test_what_a_tree_does_not_name_it_does_not_limit_and_what_it_names_elsewhere_is_zero() -> None:
    made = Bench(PATIENT, nodes=[node(milli=1000)])
    made.share(subtree("root", child("root", gpu=4)))
    made.share(subtree("teams", child("red", hard=True), parent="root"))
    made.submit(of("red", "a", 100)).settle()
    assert made.state("a") == "Running"  # of CPU the tree says nothing

    made.share(subtree("root", child("root", cpu=1000, gpu=4)))
    made.submit(of("red", "b", 100)).settle()
    assert "its whole share is 0" in why(made, "b")


def test_every_tree_has_to_agree() -> None:
    made = bench(1000, red=1000)
    made.share(subtree("root", child("silver", cpu=200), tree=SILVER))
    work = workload("a", 100, quota=((GOLD, "red"), (SILVER, "silver")))
    other = replace(work, uid="uid-b", name="b", payload="sha-b", items=workload("b", 100).items)
    more = replace(work, uid="uid-c", name="c", payload="sha-c", items=workload("c", 100).items)
    made.submit(work, other, more).settle()

    assert made.order == ["a", "b"]
    assert 'tree "silver"' in why(made, "c")
    assert used(made, "red") == used(made, "silver", SILVER) == 200  # all or nothing


# -- leaves --------------------------------------------------------------------------------------


def test_an_appwrapper_that_names_no_leaf_is_of_the_leaf_default() -> None:
    made = bench(1000, default=100, red=900)
    made.submit(workload("a", 100)).settle()

    assert used(made, "default") == 100


def test_without_a_leaf_default_one_has_to_be_named() -> None:
    made = bench(1000, red=1000)
    made.submit(workload("a", 100)).settle()

    assert why(made, "a").endswith(
        'Quota tree "gold" has no leaf "default": set the label gold to one of its leaves.'
    )


def test_an_unknown_leaf_is_told_with_those_like_it_and_waits_until_it_is_there() -> None:
    made = bench(1000, research=500)
    made.submit(of("reserach", "a", 100)).settle()
    assert why(made, "a").endswith(
        'has no leaf "reserach"; it waits until there is one. Did you mean "research"?'
    )

    made.share(subtree("more", child("reserach", cpu=100), parent="root")).settle()
    assert made.state("a") == "Running"


def test_an_inner_node_is_no_leaf() -> None:
    made = bench(1000, red=1000)
    made.submit(of("root", "a", 100)).settle()

    assert "has nodes below it" in why(made, "a")


# -- C7: how long it is charged --------------------------------------------------------------------


def test_room_is_charged_from_the_intent_until_nothing_is_left() -> None:
    made = bench(1000, red=1000)
    made.submit(of("red", "a", 1000), of("red", "b", 1000))
    made.feed(Decide())
    assert made.entry("a").phase is Phase.INTENDING
    assert used(made, "red") == 1000

    made.settle()
    made.bind("a-0")
    made.stubborn.add("a-0")
    made.edit("uid-a", suspended=True).settle()
    assert made.entry("a").phase is Phase.VERIFYING
    assert used(made, "red") == 1000
    assert made.order == ["a"]

    made.remove(next(ref for ref in made.things if ref.name == "a-0"))
    made.settle()
    assert made.order == ["a", "b"]


def test_what_has_succeeded_holds_no_share() -> None:
    made = bench(1000, red=1000)
    done = of("red", "a", 1000)
    done = replace(done, items=tuple(replace(i, completion=("succeeded",)) for i in done.items))
    made.submit(done).settle()
    made.bind("a-0")
    made.change("a-0", phase=PodPhase.SUCCEEDED).settle()

    assert made.state("a") == "Completed"
    assert used(made, "red") == 0


def test_a_reset_keeps_its_share_and_a_requeue_gives_it_back() -> None:
    made = bench(1000, red=1000)
    made.submit(of("red", "a", 1000, dialect=Dialect.V1BETA2, tolerance=TOLERANT)).settle()
    made.bind("a-0")
    made.submit(of("red", "b", 1000))
    made.change("a-0", phase=PodPhase.FAILED).advance(70)
    assert made.entry("a").phase is Phase.PAUSING
    assert used(made, "red") == 1000
    assert made.order == ["a"]

    made.crash().settle()
    assert used(made, "red") == 1000

    made.delete("uid-a").settle()
    assert made.order == ["a", "b"]
    made.edit("uid-b", suspended=True).settle()
    assert used(made, "red") == 0


def test_one_that_is_deleted_in_a_reset_holds_its_share_until_its_objects_are_gone() -> None:
    made = bench(1000, red=1000)
    made.submit(of("red", "a", 1000, dialect=Dialect.V1BETA2, tolerance=TOLERANT)).settle()
    made.bind("a-0")
    made.stubborn.add("a-0")
    made.change("a-0", phase=PodPhase.FAILED).advance(70)
    assert made.entry("a").phase is Phase.VERIFYING
    del made.works["uid-a"]
    made.feed(AppWrapperGone("uid-a"))
    made.settle()
    assert used(made, "red") == 1000

    made.remove(next(iter(made.things)))
    made.settle()
    assert used(made, "red") == 0


def test_a_restart_charges_what_was_dispatched_where_it_was() -> None:
    made = bench(1000, red=300, blue=700)
    made.submit(of("red", "a", 600), of("blue", "b", 400)).settle()
    made.submit(of("blue", "c", 100)).settle()
    made.works["uid-a"] = replace(made.works["uid-a"], quota=((GOLD, "blue"),))  # a label is edited
    made.crash().settle()

    assert (used(made, "red"), used(made, "blue")) == (600, 400)
    assert made.state("c") == "Pending"


def test_a_label_that_is_edited_moves_what_waits_and_not_what_runs() -> None:
    made = bench(1000, red=300, blue=700)
    made.submit(of("red", "a", 300)).settle()
    made.edit("uid-a", quota=((GOLD, "blue"),)).settle()
    assert (used(made, "red"), used(made, "blue")) == (300, 0)


def test_another_leaders_intent_that_its_share_does_not_admit_is_taken_back() -> None:
    made = bench(1000, red=1000)
    made.submit(of("red", "a", 600)).settle()
    work = of("red", "b", 600)
    record = DispatchRecord(
        1, 0, DispatchPhase.CREATING, work.payload, tuple(i.ref for i in work.items), START
    )
    made.works[work.uid] = work
    made.feed(AppWrapperSeen(replace(work, persisted=Persisted("Pending", START, dispatch=record))))
    made.settle()

    assert made.entry("b").dispatch.reason == "Superseded"


# -- live trees ------------------------------------------------------------------------------------


def test_a_node_that_shrank_evicts_nothing_and_does_not_grow() -> None:
    made = bench(1000, red=1000)
    made.submit(*(of("red", f"r{n}", 300) for n in range(4))).settle()
    made.share(*teams(500, red=500))
    made.delete("uid-r0").settle()
    assert made.order == ["r0", "r1", "r2"]
    assert used(made, "red") == 600  # overcommitted

    made.delete("uid-r1").settle()
    assert made.state("r3") == "Pending"  # 300 of 500 used, and 300 more do not fit
    made.delete("uid-r2").settle()
    assert made.state("r3") == "Running"


def test_more_quota_lets_in_what_waited_for_it() -> None:
    made = bench(300, red=300)
    made.submit(of("red", "a", 300), of("red", "b", 300)).settle()
    assert made.order == ["a"]
    made.share(*teams(600, red=300)).settle()

    assert made.order == ["a", "b"]


def test_a_leaf_is_deleted_and_comes_back_while_room_is_held_there() -> None:
    made = bench(1000, red=500, blue=500)
    made.submit(of("red", "a", 400)).settle()
    made.share(subtree("teams", child("blue", cpu=500), parent="root")).settle()
    assert used(made, "root") == 400  # what has no leaf any more counts at the root

    made.share(*teams(1000, red=500, blue=500)).settle()
    assert used(made, "red") == 400


def test_a_tree_that_comes_later_charges_what_runs_already() -> None:
    made = Bench(PATIENT, nodes=[node(milli=1000)])
    made.submit(of("red", "a", 400), workload("b", 300)).settle()
    made.share(*teams(500, red=400, default=100))
    made.submit(of("red", "c", 100)).settle()

    assert (used(made, "red"), used(made, "default"), used(made, "root")) == (400, 300, 700)
    assert made.state("c") == "Pending"
    made.unshare(*list(made.quotas)).settle()
    assert made.state("c") == "Running"


# -- order -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [Policy.BEST_EFFORT_FIFO, Policy.STRICT_FIFO])
def test_waiting_for_a_share_blocks_none_that_keeps_within_its_own(policy: Policy) -> None:
    settings = replace(PATIENT, policy=policy, head_of_line_holding=60 * SECOND)
    made = bench(1000, settings, red=400, blue=600)
    made.submit(of("red", "r0", 600), of("red", "r1", 500), of("blue", "b0", 400)).settle()

    assert made.order == ["r0", "b0"]  # r1 would have to borrow what is not there


@pytest.mark.parametrize("leaf", ["red", "unknown"])
def test_what_can_never_go_by_quota_blocks_nothing(leaf: str) -> None:
    """It demands more than the whole tree has, or names a leaf that there is not."""
    settings = replace(PATIENT, policy=Policy.STRICT_FIFO, head_of_line_holding=60 * SECOND)
    made = bench(1000, settings, red=1000)
    made.submit(of(leaf, "huge", 5000), of("red", "r1", 500)).settle()

    assert made.order == ["r1"]


def test_strict_order_holds_among_demands_of_the_same_share() -> None:
    made = bench(1000, replace(PATIENT, policy=Policy.STRICT_FIFO), red=400, blue=600)
    made.submit(of("red", "r0", 700), of("red", "r1", 500), of("red", "r2", 100)).settle()
    assert made.order == ["r0"]

    made.delete("uid-r0").settle()
    assert made.order == ["r0", "r1", "r2"]


def test_strict_order_holds_among_borrowers_of_the_same_node() -> None:
    made = bench(1000, replace(PATIENT, policy=Policy.STRICT_FIFO), red=100, blue=100, green=800)
    made.submit(of("red", "r0", 700), of("red", "r1", 500), of("blue", "b0", 200)).settle()

    assert made.order == ["r0"]  # b0 has 100 of its own, and is behind r1 for the rest


def test_the_hold_of_a_head_that_waits_for_a_share_ends() -> None:
    settings = replace(PATIENT, head_of_line_holding=60 * SECOND)
    made = bench(1000, settings, red=1000)
    made.submit(of("red", "r0", 700), of("red", "r1", 500), of("red", "r2", 100)).settle()
    assert made.order == ["r0"]
    made.advance(61)
    assert made.order == ["r0", "r2"]


def test_what_waits_for_one_share_goes_in_order_whatever_its_leaf() -> None:
    made = bench(300, red=100, green=100, blue=100)
    made.submit(of("red", "first", 300)).settle()
    names = ("red", "green", "blue", "red", "green", "blue")
    made.submit(*(of(team, f"w{n}", 100) for n, team in enumerate(names))).settle()
    made.submit(of("blue", "urgent", 100, priority=5)).settle()
    made.delete("uid-first").settle()

    assert made.order == ["first", "urgent", "w0", "w1"]


def test_only_what_waits_for_what_was_given_back_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = bench(1_000_000, red=0)
    shares = [child(f"t{n}", hard=True, cpu=100) for n in range(50)]
    made.share(subtree("teams", *shares, parent="root"))
    made.submit(*(of(f"t{n}", f"w{n}-{m}", 100) for n in range(50) for m in range(2))).settle()
    assert len(made.order) == 50
    asked: list[object] = []
    admission = made.dispatcher.cluster.admission
    inner = admission.quota_refusal

    def counted(shape, path):
        asked.append(path)
        return inner(shape, path)

    monkeypatch.setattr(admission, "quota_refusal", counted)
    made.delete("uid-w7-0").settle()

    assert made.order[50:] == ["w7-1"]
    assert set(asked) == {((GOLD, "t7"),)}


def test_of_all_that_wait_for_the_same_only_the_first_is_looked_at() -> None:
    made = bench(100, **{f"t{n}": 0 for n in range(50)})
    made.submit(*(of(f"t{n}", f"w{n}", 100) for n in range(50))).settle()
    assert made.order == ["w0"]
    cluster = made.dispatcher.cluster
    before = cluster.admission.steps
    made.delete("uid-w0").settle()

    assert made.order == ["w0", "w1"]
    assert cluster.admission.steps - before < 20 * 10


def test_of_leaves_that_wait_for_nodes_only_the_first_is_looked_at() -> None:
    made = Bench(PATIENT, nodes=[node(milli=100)])
    made.share(*teams(10_000, **{f"t{n}": 100 for n in range(50)}))
    made.submit(*(of(f"t{n}", f"w{n}", 100) for n in range(50))).settle()
    assert made.order == ["w0"]
    made.bind("w0-0").settle()
    cluster = made.dispatcher.cluster
    before = cluster.capacity.steps
    made.delete("uid-w0").settle()

    assert made.order == ["w0", "w1"]
    assert cluster.capacity.steps - before < 20 * 15


def test_requeuing_gives_the_share_to_the_next() -> None:
    made = bench(1000, red=1000)
    impatient = Requeuing(wait=10 * SECOND)
    made.submit(of("red", "a", 1000, min_available=1, requeuing=impatient), of("red", "b", 1000))
    made.settle()
    made.advance(30)

    assert made.order[:2] == ["a", "b"]


def test_a_daemon_set_that_its_share_refuses_keeps_no_other_leaf_from_going() -> None:
    made = Bench(PATIENT, nodes=[node(milli=100), node("n2", 1000)])
    made.share(subtree("root", child("root", cpu=100_000)))
    made.share(subtree("teams", child("red", True, cpu=900), child("blue", cpu=0), parent="root"))
    for name, team in (("a", "red"), ("b", "blue")):
        work = of(team, name, 200)
        made.submit(replace(work, sets=tuple(replace(s, per_node=True) for s in work.sets)))
    made.settle()
    assert made.order == []  # no room on n1
    made.share(subtree("teams", child("red", True, cpu=0), child("blue", cpu=0), parent="root"))
    made.settle()
    made.nodes[0] = node(milli=1000)
    made.feed(NodeSeen(made.nodes[0]))
    made.settle()

    assert made.order == ["b"]
    assert "its whole share is 0" in made.queue()[0].why


def test_a_picture_outlives_the_tree_that_it_was_taken_with() -> None:
    made = bench(1000, red=1000)
    made.submit(of("red", "a", 1000), of("red", "b", 1000)).settle()
    picture = Picture(made.dispatcher.cluster, made.now)
    made.unshare(*list(made.quotas))
    made.decide()
    picture.renew()

    assert [row.name for row in picture.rows() if row is not None] == ["b", "a"]


# -- where it counts, in its status --------------------------------------------------------------


def counts_at(made: Bench, name: str) -> dict[str, str]:
    return dict(made.status[f"uid-{name}"].quota)


def test_its_status_names_its_leaves_while_it_waits_and_while_it_holds_them() -> None:
    made = bench(1000, red=500)
    done = of("red", "a", 1000)
    done = replace(done, items=tuple(replace(i, completion=("succeeded",)) for i in done.items))
    made.submit(done, of("red", "b", 600), of("rde", "c", 1)).settle()
    assert [counts_at(made, name) for name in "abc"] == [
        {GOLD: "red"},
        {GOLD: "red"},
        {GOLD: "rde"},
    ]
    made.edit("uid-c", quota=((GOLD, "red"),)).settle()
    assert counts_at(made, "c") == {GOLD: "red"}
    made.bind("a-0")
    made.change("a-0", phase=PodPhase.SUCCEEDED).settle()
    assert made.state("a") == "Completed"
    assert counts_at(made, "a") == {}


def test_what_has_failed_counts_nowhere() -> None:
    made = bench(1000, red=500)
    made.refuse("CreateItem", Answer(422, "Invalid", "spec: Required value"))
    made.submit(of("red", "a", 1000)).settle()
    assert made.state("a") == "Failed"
    assert counts_at(made, "a") == {}


def test_the_status_of_what_is_held_says_where_it_would_count() -> None:
    made = bench(1000, red=500)
    made.submit(of("red", "a", 1000, suspended=True)).settle()
    assert counts_at(made, "a") == {GOLD: "red"}


def test_a_restart_does_not_rewrite_where_it_counts() -> None:
    made = bench(1000, red=500)
    made.submit(of("red", "a", 1000), of("red", "b", 600)).advance(5)
    made.writes.clear()
    made.crash().advance(5)
    assert made.writes["status"] == 0


def test_a_new_tree_does_not_rewrite_the_whole_line() -> None:
    """Those in front are told of it, the others when they are nearer."""
    made = bench(1000, red=500)
    made.submit(
        of("red", "a", 1000), *(of("red", f"b{n}", 600) for n in range(RESTATED_PER_SHAPE + 20))
    ).advance(40)
    made.writes.clear()
    made.share(subtree("root", child("root", cpu=9000), tree=SILVER))
    made.share(subtree("rest", child("default"), parent="root", tree=SILVER)).advance(300)
    assert made.writes["status"] == RESTATED_PER_SHAPE
    assert counts_at(made, "b0") == {GOLD: "red", SILVER: "default"}


def test_waiting_for_a_share_costs_one_status_write() -> None:
    made = bench(1000, red=500)
    made.submit(of("red", "a", 1000)).advance(5)
    made.writes.clear()
    made.submit(of("red", "b", 600)).advance(5)
    assert made.writes["status"] == 1
    assert counts_at(made, "b") == {GOLD: "red"}
