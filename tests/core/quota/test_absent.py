"""QuotaSubtrees that are gone for a while: replaced, or their CRD created anew."""

from __future__ import annotations

import pytest

from mcad.core.commands import RecordQuotaEvent
from mcad.core.events import QuotaGone, QuotaSeen
from mcad.core.state.bounds import RESTATE_INTERVAL
from mcad.core.state.quota_records import QuotaSubtree
from mcad.core.state.reasons import EventReason
from mcad.core.state.records import replace
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from tests.core.bench import PATIENT, Bench, node
from tests.core.quota.test_usage import of, why
from tests.core.quotas import GOLD, child, subtree, teams

GRACE = 60
SETTINGS = replace(PATIENT, quota_grace=GRACE * SECOND)
FULL = ["r0", "r1", "b0"]
LONG = replace(SETTINGS, quota_grace=300 * SECOND)
RESTATED = RESTATE_INTERVAL / SECOND + 1
WAITING = [*(f"r{n}" for n in range(2, 6)), *(f"b{n}" for n in range(1, 5))]


def full(settings: Settings = SETTINGS) -> Bench:
    """Two teams of 500m with a hard limit have all that they may, and 8 AppWrappers wait."""
    made = Bench(settings, nodes=[node(milli=100_000)])
    made.share(*forest())
    made.submit(*(of("red", f"r{n}", 250) for n in range(6)))
    made.submit(*(of("blue", f"b{n}", 500) for n in range(5))).settle()
    assert made.order == FULL
    return made


def forest(generation: str = "") -> list[QuotaSubtree]:
    """The root, a hard node in the middle, and the teams; each generation has other uids."""
    shares = (child("red", cpu=500), child("blue", cpu=500))
    made = (
        subtree("root", child("root", cpu=4000)),
        subtree("middle", child("middle", cpu=1000, hard=True), parent="root"),
        subtree("teams", *shares, parent="middle"),
    )
    hard = replace(made[2], children=tuple(replace(one, hard=True) for one in made[2].children))
    return [replace(one, uid=one.uid + generation) for one in (*made[:2], hard)]


def events(made: Bench) -> list[tuple[str, str]]:
    """(reason, QuotaSubtree) of the Events about quota."""
    return [(one.reason, one.subtree.name if one.subtree else "") for one in made.quota_events]


@pytest.mark.parametrize("names", [("root",), ("middle",), ("teams",), ("root", "middle", "teams")])
def test_while_a_subtree_is_absent_its_tree_admits_no_more_than_before(
    names: tuple[str, ...],
) -> None:
    made = full()
    made.unshare(*(f"uid-gold-{name}" for name in names)).advance(GRACE - 1)
    assert made.order == FULL
    assert events(made) == [(EventReason.QUOTA_ABSENT, name) for name in names]

    made.delete("uid-r0")  # what comes free is given to the next one of the team
    made.settle()
    assert made.order == [*FULL, "r2"]
    made.share(*(one for one in forest("+") if one.name in names)).advance(2 * GRACE)
    assert made.order == [*FULL, "r2"]
    assert len(made.quota_events) == len(names)


def test_the_subtrees_of_a_crd_that_is_created_anew_return_one_by_one() -> None:
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
        made = full()
        made.unshare(*list(made.quotas)).settle()
        for number in order:
            made.share(forest("+")[number]).advance(5)
            assert made.order == FULL
        made.advance(2 * GRACE)
        assert made.order == FULL
        assert {reason for reason, _ in events(made)} == {EventReason.QUOTA_ABSENT}


def test_a_replacement_that_is_told_in_one_moment_is_no_absence() -> None:
    made = full()
    made.unshare("uid-gold-root")
    made.share(forest("+")[0]).settle()
    assert (made.order, made.quota_events) == (FULL, [])


def test_a_late_watch_tells_of_the_successor_first() -> None:
    made = full()
    made.share(forest("+")[0])  # a list of one namespace tells it before another one tells the end
    made.settle()
    made.unshare("uid-gold-root").advance(2 * GRACE)
    assert (made.order, made.quota_events) == (FULL, [])


def test_after_the_grace_period_it_counts_no_more_and_that_is_told() -> None:
    made = full()
    made.unshare(*list(made.quotas)).advance(GRACE - 1)
    assert made.order == FULL
    assert made.quota_events[0] == RecordQuotaEvent(
        forest()[0],
        True,
        EventReason.QUOTA_ABSENT,
        "Limit",
        'QuotaSubtree quota/root of tree "gold" is gone: it counts as before until it is back, or '
        "until 22:14:20Z.",
    )
    made.advance(2)
    assert sorted(made.order) == sorted([*FULL, *WAITING])
    dropped = [one for one in made.quota_events if one.reason == EventReason.QUOTA_DROPPED]
    assert len(dropped) == 3
    assert dropped[0].note.endswith("did not come back: it does not count any more.")
    assert {status.quota for status in made.status.values()} == {()}


def test_a_subtree_that_returns_as_part_of_another_tree_is_absent_no_more() -> None:
    made = full()
    made.unshare("uid-gold-root")
    made.share(replace(forest("+")[0], tree="silver")).settle()
    assert made.dispatcher.cluster.forest.trees.keys() == {"silver"}
    assert made.quota_events == []


def test_a_live_subtree_counts_before_an_absent_one() -> None:
    made = full()
    made.unshare("uid-gold-teams")
    other = subtree("crew", child("red", cpu=750, hard=True), parent="middle", created=9)
    made.share(other).settle()
    trees = made.dispatcher.cluster.forest
    tree = trees.trees[GOLD]
    assert {name: node.nominal["cpu"] for name, node in tree.nodes.items()} == {
        "root": 4000,
        "middle": 1000,
        "red": 750,
        "blue": 500,
    }
    assert trees.faults(GOLD) == []
    assert made.order == FULL


def test_a_refusal_names_the_absent_subtree() -> None:
    made = full()
    made.unshare("uid-gold-root")
    made.submit(of("red", "late", 250)).settle()
    assert why(made, "late").endswith(
        'QuotaSubtree quota/root of tree "gold" is gone: it counts as before until it is back, or '
        "until 22:14:20Z."
    )


@pytest.mark.parametrize("returns", [True, False])
def test_after_a_restart_what_waited_in_an_absent_tree_waits_on(returns: bool) -> None:
    made = full()
    gone = list(made.quotas)
    made.unshare(*gone).advance(1)
    made.crash()
    made.submit(of("red", "late", 250)).advance(GRACE - 1)
    assert made.order == FULL
    assert "was in force before the restart" in why(made, "late")
    if returns:
        made.share(*forest("+"))
        made.delete("uid-r0").advance(2 * GRACE)
        assert made.order == [*FULL, "r2"]
    else:
        made.advance(2)
        assert len(made.order) == 12
        made.crash()  # nothing names the tree any more
        made.submit(of("red", "later", 250)).settle()
        assert made.order[-1] == "later"


def test_after_a_restart_with_all_trees_nothing_is_absent() -> None:
    made = full()
    made.crash().advance(2 * GRACE)
    assert (made.order, made.quota_events) == (FULL, [])


def test_without_a_grace_period_a_subtree_that_is_gone_does_not_count() -> None:
    made = full(replace(SETTINGS, quota_grace=0))
    made.unshare("uid-gold-root").settle()
    assert len(made.order) == 11


def test_absence_evicts_nothing() -> None:
    """Without its leaf an AppWrapper would borrow all that it holds, and reclaim would take it."""
    settings = replace(SETTINGS, min_run_time=0)
    made = Bench(settings, nodes=[node(milli=100_000)])
    made.share(subtree("root", child("root", cpu=1000)))
    made.share(subtree("red", child("red", cpu=500), parent="root"))
    made.share(subtree("blue", child("blue", cpu=500), parent="root"))
    made.submit(of("red", "r0", 500), of("blue", "b0", 250), of("blue", "b1", 500)).settle()
    assert made.order == ["r0", "b0"]
    gone = made.quotas["uid-gold-red"]
    made.feed(QuotaGone(gone.uid))
    made.delete("uid-b1")
    made.submit(of("blue", "b2", 250), of("blue", "b3", 0)).advance(5)
    made.feed(QuotaSeen(replace(gone, uid="uid-other"), None))
    made.settle()
    assert made.state("r0") == "Running"
    assert made.order[:3] == ["r0", "b0", "b2"]


def test_the_root_with_teams_of_one_object_may_be_replaced_again_and_again() -> None:
    made = Bench(SETTINGS, nodes=[node(milli=100_000)])
    made.share(*teams(1000, red=500, blue=500))
    made.submit(*(of("red", f"r{n}", 500) for n in range(4))).settle()
    for number in range(5):
        one = next(one for one in made.quotas.values() if one.name == "root")
        made.unshare(one.uid).advance(GRACE - 1)
        made.share(replace(one, uid=f"uid-root-{number}")).advance(1)
    assert made.order == ["r0", "r1"]


@pytest.mark.parametrize("name", ["root", "middle", "teams"])
def test_what_waits_already_is_told_of_the_absence_and_of_its_end(name: str) -> None:
    made = full(LONG)
    before = why(made, "r2"), why(made, "b1")
    made.unshare(f"uid-gold-{name}").advance(RESTATED)
    assert all(f"quota/{name}" in why(made, one) for one in ("r2", "b1"))
    made.share(*(one for one in forest("+") if one.name == name)).advance(RESTATED)
    assert (why(made, "r2"), why(made, "b1")) == before


@pytest.mark.parametrize("crashes", [1, 2])
def test_what_waits_already_is_told_after_a_restart(crashes: int) -> None:
    made = full(LONG)
    made.unshare(*list(made.quotas)).advance(1)
    for _ in range(crashes):
        made.crash().advance(RESTATED)
        assert "was in force before the restart" in why(made, "r2")
    made.share(*forest("+")).advance(RESTATED)
    assert "500m of 500m used" in why(made, "r2")
    assert "restart" not in why(made, "r2")


def test_after_a_restart_no_record_of_an_absence_stays() -> None:
    made = full(LONG)
    made.unshare("uid-gold-root").advance(RESTATED)
    assert "is gone" in why(made, "r2")
    made.share(forest("+")[0])
    made.crash().advance(RESTATED)
    assert "is gone" not in why(made, "r2")


def test_an_absence_that_is_over_soon_writes_nothing() -> None:
    made = full(LONG)
    made.advance(40)
    before = made.writes["status"]
    for number in range(5):
        one = next(one for one in made.quotas.values() if one.name == "root")
        made.unshare(one.uid).advance(1)
        made.share(replace(one, uid=f"uid-root-{number}")).advance(1)
    made.advance(RESTATED)
    assert made.writes["status"] == before


def test_a_tree_that_is_emptied_before_it_is_deleted_limits_no_more() -> None:
    """How to take a tree out of force at once (docs/use/quotas.md)."""
    made = full()
    made.share(*(replace(one, children=()) for one in forest())).settle()
    assert sorted(made.order) == sorted([*FULL, *WAITING])
    made.unshare(*list(made.quotas)).advance(2 * GRACE)
    assert made.quota_events == []


def test_a_root_that_is_emptied_during_a_restart_limits_no_more() -> None:
    made = full()
    made.share(replace(forest()[0], children=()))
    made.crash().settle()
    assert sorted(made.order) == sorted([*FULL, *WAITING])
