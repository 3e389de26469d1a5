"""What QuotaSubtrees are told: figures, faults, and how seldom."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcad.core.cluster import Cluster
from mcad.core.commands import WriteQuota
from mcad.core.cycle import quota_reports
from mcad.core.events import Decide, NodeSeen, QuotaSeen, QuotaWritten
from mcad.core.nodes.shape import Shape
from mcad.core.quota.status import Finding, findings
from mcad.core.quota.usage import Forest
from mcad.core.state.answer import Answer
from mcad.core.state.bounds import QUOTA_INTERVAL, WORK_PER_PASS
from mcad.core.state.model import Resources, Workload
from mcad.core.state.quota_records import Designation, NodeStatus, QuotaSubtree, QuotaView
from mcad.core.state.records import replace
from mcad.core.state.units import SECOND
from tests.core.bench import Bench, node, workload
from tests.core.quota.test_usage import bench, of
from tests.core.quotas import GOLD, RESOURCES, SILVER, child, subtree, subtrees, teams

ROOT, TEAMS = "uid-gold-root", "uid-gold-teams"


def shown(made: Bench, uid: str, kind: str = "Ready") -> tuple[bool, str, str]:
    """Status, reason and message of a condition."""
    (one,) = [each for each in made.quota_status[uid].conditions if each.type == kind]
    return (one.status, one.reason, one.message)


def line(made: Bench, uid: str, name: str) -> NodeStatus:
    (found,) = [one for one in made.quota_status[uid].children if one.name == name]
    return found


def cpu(milli: int) -> tuple[tuple[str, int], ...]:
    return (("cpu", milli),) if milli else ()


# -- figures -------------------------------------------------------------------------------------


def test_every_node_shows_what_it_has_and_what_becomes_of_it() -> None:
    made = bench(2000, red=500, blue=1500)
    made.submit(of("red", "a", 1200), of("red", "b", 900), of("blue", "c", 100)).advance(3)

    red, blue = line(made, TEAMS, "red"), line(made, TEAMS, "blue")
    assert red == NodeStatus("red", cpu(500), cpu(1200), cpu(700), (), cpu(900))
    assert blue == NodeStatus("blue", cpu(1500), cpu(100), (), cpu(700), ())
    assert line(made, ROOT, "root") == NodeStatus("root", cpu(2000), cpu(1300), (), (), cpu(900))
    made.delete("uid-a").advance(3)
    assert line(made, TEAMS, "red") == NodeStatus("red", cpu(500), cpu(900), cpu(400), (), ())


def test_an_appwrapper_that_goes_to_another_leaf_waits_there() -> None:
    made = bench(1000, red=500, blue=500)
    made.submit(of("red", "a", 1000), of("red", "b", 300)).advance(2)
    assert line(made, TEAMS, "red").waiting == cpu(300)
    made.edit("uid-b", quota=((GOLD, "blue"),)).advance(2)
    assert line(made, TEAMS, "red").waiting == ()
    assert line(made, TEAMS, "blue").waiting == cpu(300)
    made.delete("uid-b").advance(2)
    assert line(made, TEAMS, "blue").waiting == ()


def test_what_is_held_does_not_wait_in_line() -> None:
    made = bench(1000, red=1000)
    made.submit(of("red", "a", 1000), of("red", "b", 300, suspended=True)).advance(2)
    assert line(made, TEAMS, "red").waiting == ()


# -- what is wrong -------------------------------------------------------------------------------

WRONG = {
    "ParentMissing": (
        [subtree("x", child("deep", cpu=1), parent="nowhere")],
        "uid-gold-x",
        '"deep" leads to "nowhere", and no node of tree "gold" has that name.',
    ),
    "Cycle": (
        [
            subtree("x", child("egg", cpu=1), parent="hen"),
            subtree("y", child("hen", cpu=1), parent="egg"),
        ],
        "uid-gold-x",
        '"egg" hangs under "hen", which leads back to',
    ),
    "NameUsedTwice": (
        [subtree("x", child("red", cpu=1), parent="root", created=9)],
        "uid-gold-x",
        '"red" of quota/x is defined in quota/teams already; rename one of them.',
    ),
    "SeveralRoots": (
        [subtree("x", child("other", cpu=1), created=9)],
        "uid-gold-x",
        '"root" of quota/root is the root of tree "gold"; it can have no other.',
    ),
    "NoRoot": (
        [subtree("x", child("lone", cpu=1), parent="root", tree=SILVER)],
        "uid-silver-x",
        'Tree "silver" has no root: one QuotaSubtree of it needs an empty spec.parent.',
    ),
    "InvalidQuota": (
        [subtree("x", child("bad", flaw="cpu: '-1' is negative"), parent="root")],
        "uid-gold-x",
        "cpu: '-1' is negative",
    ),
    "NoTree": (
        [subtree("x", child("lost", cpu=1), tree="")],
        "uid--x",
        "It has no label tree, so it counts in no quota tree: set it to the name of one.",
    ),
}


@pytest.mark.parametrize("reason", WRONG)
def test_what_is_wrong_is_told_where_it_is_wrong_and_nowhere_else(reason: str) -> None:
    wrong, uid, message = WRONG[reason]
    made = bench(1000, red=500, blue=500)
    made.share(*wrong).advance(5)

    assert [one.type for one in made.quota_status[uid].conditions] == ["Ready", "Invalid"]
    status, told, text = shown(made, uid)
    assert (status, told) == (False, reason)
    assert text.startswith(message)
    assert shown(made, uid, "Invalid") == (True, reason, text)
    assert made.quota_status[uid].children == ()
    for one in (ROOT, TEAMS):
        assert shown(made, one) == (True, "InForce", "")
        assert shown(made, one, "Invalid") == (False, "InForce", "")
    made.unshare(*(one.uid for one in wrong)).advance(5)
    assert shown(made, TEAMS) == (True, "InForce", "")


def test_what_is_mended_is_in_force() -> None:
    made = Bench(nodes=[node()])
    made.share(subtree("teams", child("red", cpu=1), parent="root")).advance(2)
    assert shown(made, TEAMS)[:2] == (False, "NoRoot")
    made.share(subtree("root", child("root", cpu=1))).advance(2)
    assert shown(made, TEAMS) == (True, "InForce", "")
    assert [one.name for one in made.quota_status[TEAMS].children] == ["red"]


def test_of_many_faults_each_is_told_once_and_the_rest_is_counted() -> None:
    made = Bench(nodes=[node()])
    names = [f"n{number}" for number in range(8)]
    made.share(subtree("root", child("root", cpu=1)))
    made.share(subtree("x", *(child(name) for name in names), parent="nowhere"))
    made.share(subtree("y", *(child(name) for name in names), parent="z", tree=SILVER)).advance(5)
    text = shown(made, "uid-gold-x")[2]
    assert text.count("leads to") == 5
    assert text.endswith(" And 3 more.")
    assert shown(made, "uid-silver-y")[2].count("has no root") == 1


def test_shares_that_come_to_more_than_their_parents_are_a_warning() -> None:
    made = bench(1000, red=800, blue=800)
    made.advance(2)
    status, reason, text = shown(made, TEAMS)
    assert (status, reason) == (True, "Overcommitted")
    assert text.startswith('The shares below "root" come to more than its own (cpu: 1600m of 1):')
    assert shown(made, ROOT) == (True, "InForce", "")


def test_a_condition_keeps_the_time_since_which_it_holds() -> None:
    made = bench(1000, red=500)
    made.advance(2)
    first = made.quota_status[TEAMS].conditions[0].changed
    made.submit(of("red", "a", 100)).advance(2)
    assert made.quota_status[TEAMS].conditions[0].changed == first
    made.crash().advance(60)
    assert made.quota_status[TEAMS].conditions[0].changed == first
    made.unshare(ROOT).advance(2)
    assert made.quota_status[TEAMS].conditions[0].changed > first


# -- how often -----------------------------------------------------------------------------------


def test_at_rest_nothing_is_written_and_no_wake_is_asked_for() -> None:
    made = bench(1000, red=500)
    made.submit(of("red", "a", 100)).advance(40)
    made.writes.clear()
    assert made.wishes == []
    made.advance(600)
    assert made.writes["quota"] == 0


def test_a_restart_writes_nothing_that_is_shown_already() -> None:
    made = bench(1000, red=500)
    made.submit(of("red", "a", 100), of("red", "b", 5000)).advance(10)
    before = dict(made.quota_status)
    made.writes.clear()
    made.crash().advance(600)
    assert made.writes["quota"] == 0
    assert made.quota_status == before


def test_a_subtree_is_written_once_a_second_however_much_happens() -> None:
    made = bench(100_000, red=500)
    made.advance(5)
    made.writes.clear()
    for number in range(100):
        made.submit(of("red", f"a{number}", 10)).advance(0.05)
    assert made.writes["quota"] <= 2 * 6  # two QuotaSubtrees, five seconds and the begun one
    made.advance(5)
    assert line(made, TEAMS, "red").allocated == cpu(1000)


def test_a_status_written_by_others_is_put_right() -> None:
    made = bench(1000, red=500)
    made.advance(5)
    right = made.quota_status[TEAMS]
    made.quota_status[TEAMS] = QuotaView(7)
    made.share(made.quotas[TEAMS]).advance(5)
    assert made.quota_status[TEAMS].children == right.children


def test_a_new_generation_is_acknowledged_even_if_nothing_changes() -> None:
    made = bench(1000, red=500)
    made.share(replace(made.quotas[TEAMS], generation=4)).advance(5)
    assert made.quota_status[TEAMS].generation == 4


@pytest.mark.parametrize("status", [403, 409, 500])
def test_a_write_that_fails_is_repeated_ever_more_slowly(status: int) -> None:
    made = Bench(nodes=[node()])
    made.refuse("WriteQuota", *[Answer(status, "no", "no")] * 4)
    made.share(*teams(1000, red=500)).advance(1)
    assert made.writes["quota"] == 0
    made.advance(120)
    assert made.writes["quota"] == 2
    assert set(made.quota_status) == {ROOT, TEAMS}


def test_without_the_right_to_dispatch_nothing_is_written() -> None:
    """Without the right to dispatch what is known may be old (P11)."""
    made = Bench(nodes=[node()])
    made.share(*teams(1000, red=500))
    made.feed(Decide(may_dispatch=False))
    assert made.pending == []


def test_an_object_that_is_gone_is_told_nothing_more() -> None:
    made = bench(1000, red=500)
    made.decide()
    (first, *_) = made.pending
    made.unshare(TEAMS, ROOT).advance(30)
    assert first.uid not in made.quota_status
    assert not made.dispatcher.cluster.quota_statuses.writes


# -- for any trees and histories -----------------------------------------------------------------


ACTS = ("share", "share", "unshare", "submit", "delete", "crash")


@given(st.data())
def test_in_the_end_every_subtree_shows_the_truth(data: st.DataObject) -> None:
    made = Bench(nodes=[node(milli=100_000)])
    works: list[Workload] = []
    for number in range(data.draw(st.integers(1, 12))):
        match data.draw(st.sampled_from(ACTS)):
            case "share":
                made.share(data.draw(subtrees()))
            case "unshare" if made.quotas:
                made.unshare(data.draw(st.sampled_from(sorted(made.quotas))))
            case "submit":
                leaf = data.draw(st.sampled_from(["a1", "b1", "default", "unknown"]))
                work = workload(f"w{number}", data.draw(st.integers(1, 4)), quota=((GOLD, leaf),))
                works.append(work)
                made.submit(work)
            case "delete" if works:
                made.delete(works.pop().uid)
            case "crash":
                made.crash()
        made.advance(data.draw(st.sampled_from([0, 0, 0.3, 2])))
    made.advance(10)
    assert set(made.quota_status) == set(made.quotas)
    for uid, one in made.quotas.items():
        _check_shown(made, uid, one)
    made.writes.clear()
    made.advance(100)
    assert made.writes["quota"] == 0


def _check_shown(made: Bench, uid: str, one: QuotaSubtree) -> None:
    """The figures as they follow from what is there, worked out anew."""
    cluster, view = made.dispatcher.cluster, made.quota_status[uid]
    tree = cluster.forest.trees.get(one.tree)
    assert view.conditions[0].status is not view.conditions[1].status
    for each in view.children:
        assert tree is not None
        below = [name for name, n in tree.nodes.items() if tree.nodes[each.name] in n.chain]
        for resource in RESOURCES:
            if resource not in tree.named:
                continue
            asked = sum(
                dict(cluster.capacity.demand(cluster.capacity.shape(e.workload.sets))).get(
                    resource, 0
                )
                for e in cluster.waiting.queue.entries()
                if dict(cluster.path(e))[one.tree] in below or (each.name == tree.root.name)
            )
            assert dict(each.waiting).get(resource, 0) == asked
            used = tree.nodes[each.name].usage.get(resource, 0)
            assert dict(each.allocated).get(resource, 0) == used


# -- one at a time -------------------------------------------------------------------------------


def said(made: Bench) -> list[str]:
    """The QuotaSubtrees that are to be written, and are not pending any more."""
    found = [one.uid for one in made.pending if isinstance(one, WriteQuota)]
    made.pending = [one for one in made.pending if not isinstance(one, WriteQuota)]
    return found


def test_a_write_under_way_is_waited_for_and_what_is_news_said_then() -> None:
    made = bench(1000, red=500)
    made.decide()
    flying = [one for one in made.pending if isinstance(one, WriteQuota)]
    assert sorted(said(made)) == [ROOT, TEAMS]
    for number in range(3):
        made.submit(of("red", f"a{number}", 100))
        made.now += 2 * QUOTA_INTERVAL
        made.decide()
        assert said(made) == []
    for one in flying:
        made.execute(one)
    made.now += 2 * QUOTA_INTERVAL
    made.decide()
    assert sorted(said(made)) == [ROOT, TEAMS]
    assert made.quota_status[TEAMS].children[0].allocated == ()


def test_an_answer_to_an_earlier_write_is_no_answer() -> None:
    made = bench(1000, red=500)
    made.decide()
    (first, *_) = [one for one in made.pending if isinstance(one, WriteQuota)]
    notice = made.dispatcher.cluster.quota_statuses.writes[first.uid]
    made.feed(QuotaWritten(first.uid, first.serial - 1))
    assert notice.flying == first.status
    made.feed(QuotaWritten("unknown", 1))
    made.execute(first)
    assert (notice.flying, notice.shown) == (None, first.status)


def test_one_that_refuses_its_status_is_left_alone_while_the_others_go_on() -> None:
    made = bench(100_000, red=500)
    made.advance(5)
    made.dispatcher.cluster.quota_statuses.writes[TEAMS].not_before = made.now + 60 * SECOND
    made.writes.clear()
    for number in range(10):
        made.submit(of("red", f"a{number}", 100)).advance(2)
    assert made.writes["quota"] == 10
    assert line(made, TEAMS, "red").allocated == ()
    made.advance(60)
    assert made.writes["quota"] == 11
    assert line(made, TEAMS, "red").allocated == cpu(1000)


def counted_trees(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The trees whose figures are counted from now on, one after the other."""
    counted: list[str] = []

    def count(forest: Forest, name: str, demand: Callable[[Shape], Resources]) -> list[Finding]:
        counted.append(name)
        return list(findings(forest, name, demand))

    monkeypatch.setattr(quota_reports, "findings", count)
    return counted


def test_a_tree_is_counted_once_a_second_and_one_of_them_in_a_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = counted_trees(monkeypatch)
    made = bench(100_000, red=500)
    made.share(subtree("root", child("root", cpu=9), tree=SILVER))
    made.decide()
    assert counted == [GOLD]
    made.decide()
    assert counted == [GOLD, SILVER]
    made.advance(5)
    counted.clear()
    for number in range(20):
        made.submit(of("red", f"a{number}", 10)).advance(0.1)
    assert counted.count(GOLD) <= 4  # in two seconds
    made.advance(5)
    counted.clear()
    made.advance(60)
    assert counted == []


@pytest.mark.parametrize(("steps", "after_each_pass"), [(8, [1, 1, 1]), (4_000, [0, 1, 1])])
def test_a_tree_that_takes_most_of_a_pass_is_counted_first_in_the_next_one(
    monkeypatch: pytest.MonkeyPatch, steps: int, after_each_pass: list[int]
) -> None:
    counted = counted_trees(monkeypatch)

    def work(cluster: Cluster) -> None:
        cluster.agenda.spent += WORK_PER_PASS * 6 // 10

    monkeypatch.setattr(quota_reports, "FIGURES_STEPS", steps)
    made = bench(100_000, red=500)
    made.advance(5)
    counted.clear()
    monkeypatch.setattr("mcad.core.cycle.cycle.orphans.sweep", work)
    made.submit(of("red", "a", 10))
    found = []
    for _ in range(3):
        made.decide()
        found.append(len(counted))
    assert found == after_each_pass


def test_to_list_what_is_ranked_anew_is_work_of_its_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes 22 ms to list 100,000."""
    made = bench(1000, red=500)
    made.submit(*(of("red", f"w{i}", 2000) for i in range(4))).advance(5)
    monkeypatch.setattr("mcad.core.state.agenda.WORK_PER_PASS", 4)
    monkeypatch.setattr(quota_reports, "LISTED_PER_STEP", 1)
    made.feed(QuotaSeen(subtree("other", child("other", cpu=1), tree=SILVER)))
    made.decide()
    assert len(made.dispatcher.cluster.agenda.to_rank) == 4
    made.advance(1)  # a pass that listed, and did no more, asks for the next one
    assert not made.dispatcher.cluster.agenda.to_rank


def test_of_a_gang_with_pods_on_every_node_each_part_is_counted_once() -> None:
    made = bench(1000, red=1000)
    made.submit(of("red", "a", 900))
    work = of("red", "b", 300, 50)
    sets = (replace(work.sets[0], per_node=True), work.sets[1])
    made.submit(replace(work, sets=sets)).advance(2)
    assert line(made, TEAMS, "red").waiting == cpu(350)
    made.feed(NodeSeen(node("n2", 100_000)))
    made.submit(of("red", "c", 7)).advance(2)
    assert line(made, TEAMS, "red").waiting == cpu(650)


def test_what_is_charged_or_given_back_moves_the_tree() -> None:
    forest = Forest()
    for one in teams(1000, red=500):
        forest.seen(one)
    forest.refresh(0)
    assert forest.take_moved() == [GOLD]
    forest.charge("a", Designation(((GOLD, "red"),)), cpu(5))
    assert forest.take_moved() == [GOLD]
    forest.release("a")
    assert forest.take_moved() == [GOLD]
    assert forest.take_moved() == []
