"""Which AppWrappers wait while a quota tree is deleted, and for how long (ADR 39)."""

from __future__ import annotations

import pytest

from mcad.core.cycle.deleted_trees import RECORDED_MAX
from mcad.core.quota.absent import RETURN_TIME
from mcad.core.state.records import replace
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.quota.test_usage import of, used
from tests.core.quotas import GOLD, SILVER, child, subtree

GRACE = 300
SETTINGS = replace(PATIENT, quota_grace=GRACE * SECOND)
RETURNS = RETURN_TIME // SECOND


def two(*, default: bool, settings: Settings = SETTINGS) -> Bench:
    """The trees gold, with or without a leaf ``default``, and silver, which has one."""
    made = Bench(settings, nodes=[node(milli=100_000)])
    leaves = [child("red", cpu=500), *([child("default", cpu=0)] if default else [])]
    colors = child("default", cpu=0), child("blue", cpu=5000)
    made.share(
        subtree("root", child("root", cpu=1000)),
        subtree("teams", *leaves, parent="root"),
        subtree("silver", child("top", cpu=5000), tree=SILVER),
        subtree("colors", *colors, parent="top", tree=SILVER),
    )
    return made


def gold_is_deleted(made: Bench) -> Bench:
    """All of its QuotaSubtrees at once."""
    return made.unshare(*(uid for uid, one in made.quotas.items() if one.tree == GOLD))


@pytest.mark.parametrize("restarts", [False, True])
def test_an_appwrapper_without_a_leaf_in_a_deleted_tree_waits_for_its_return_only(
    restarts: bool,
) -> None:
    made = two(default=False)
    made.submit(of("red", "r0", 1000), of("red", "r1", 500)).settle()
    made.submit(workload("other", 250, quota=((SILVER, "blue"),)), workload("free", 250)).settle()
    assert made.order == ["r0"]
    gold_is_deleted(made).advance(RETURNS - 2)
    assert made.order == ["r0"]
    if restarts:
        made.crash().advance(RETURNS - 2)
        assert made.order == ["r0"]
    made.advance(3)
    made.submit(workload("late", 250, quota=((SILVER, "blue"),))).settle()
    assert made.order == ["r0", "other", "free", "late"]
    assert dict(made.status["uid-other"].quota) == {SILVER: "blue"}
    made.advance(GRACE - 3 * RETURNS)
    assert "r1" not in made.order
    made.advance(2 * RETURNS)
    assert made.order[-1] == "r1"


@pytest.mark.parametrize("restarts", [False, True])
def test_the_leaf_default_makes_an_appwrapper_without_a_label_one_of_the_tree(
    restarts: bool,
) -> None:
    made = two(default=True)
    made.submit(of("red", "r0", 1000)).settle()
    made.submit(workload("other", 250, quota=((SILVER, "blue"),))).settle()
    assert dict(made.status["uid-other"].quota) == {GOLD: "default", SILVER: "blue"}
    gold_is_deleted(made).advance(2 * RETURNS)
    if restarts:
        made.crash().settle()
    made.advance(GRACE - 3 * RETURNS)
    assert made.order == ["r0"]
    made.advance(2 * RETURNS)
    assert made.order == ["r0", "other"]


def test_a_restart_knows_of_no_leaf_default_for_appwrappers_that_come_after_it() -> None:
    made = two(default=True)
    made.submit(of("red", "r0", 1000)).settle()
    gold_is_deleted(made).advance(2 * RETURNS)
    made.crash().settle()
    made.submit(workload("late", 250, quota=((SILVER, "blue"),)), of("red", "r1", 250)).settle()
    assert made.order == ["r0", "late"]


@pytest.mark.parametrize("label", ["red", "no-such-leaf"])
def test_a_label_for_the_tree_makes_an_appwrapper_one_of_it(label: str) -> None:
    made = two(default=False)
    made.submit(of("red", "r0", 1000)).settle()
    gold_is_deleted(made).advance(2 * RETURNS)
    made.submit(of(label, "late", 250)).settle()
    made.crash().settle()
    made.submit(of(label, "later", 250)).advance(GRACE - 3 * RETURNS)
    assert made.order == ["r0"]
    made.advance(2 * RETURNS)
    assert made.order == ["r0", "late", "later"]


@pytest.mark.parametrize("crashes", [(20,), (100,), (100, 250), (20, 40, 60, 80, 290), (299,)])
def test_restarts_leave_the_time_that_is_left(crashes: tuple[int, ...]) -> None:
    made = two(default=False)
    made.submit(of("red", "r0", 1000), of("red", "r1", 250)).settle()
    gold_is_deleted(made).settle()
    gone_at = made.now
    for at in crashes:
        made.advance((gone_at + at * SECOND - made.now) / SECOND)
        made.crash().settle()
    made.advance((gone_at + (GRACE - 1) * SECOND - made.now) / SECOND)
    assert ("r1" in made.order) is (crashes == (299,) and made.now > gone_at + GRACE * SECOND)
    made.advance(2)
    assert made.order == ["r0", "r1"]
    assert all(not one.deleted_trees for one in made.status.values())
    made.crash().settle()  # and nothing names the tree any more
    made.submit(of("red", "r2", 250)).settle()
    assert made.order[-1] == "r2"


def test_a_restart_after_the_time_finds_nothing_left_of_it() -> None:
    made = two(default=False)
    made.submit(of("red", "r0", 1000), of("red", "r1", 250)).settle()
    gold_is_deleted(made).advance(2 * RETURNS)
    made.now += GRACE * SECOND  # no dispatcher runs meanwhile
    made.crash().settle()
    assert made.order == ["r0", "r1"]
    assert {one.quota for one in made.status.values()} == {((SILVER, "default"),)}


def test_the_time_of_a_tree_counts_from_the_deletion_of_its_root() -> None:
    made = two(default=False)
    made.submit(of("red", "r0", 1000), of("red", "r1", 250)).settle()
    made.unshare("uid-gold-root").advance(100)
    made.unshare("uid-gold-teams").advance(100)
    made.crash().advance(GRACE - 203)
    assert made.order == ["r0"]
    made.advance(4)
    assert made.order == ["r0", "r1"]


@pytest.mark.parametrize("restarts", [False, True])
def test_two_trees_that_are_deleted_at_two_times_have_two_ends(restarts: bool) -> None:
    made = two(default=True)
    made.submit(of("red", "r0", 1000)).settle()
    blue = ((SILVER, "blue"), (GOLD, "red"))
    made.submit(of("red", "r1", 500), workload("both", 5000, quota=blue)).settle()
    gold_is_deleted(made).advance(100)
    made.unshare(*list(made.quotas)).advance(100)
    if restarts:
        made.crash().settle()
    made.advance(GRACE - 203)
    assert made.order == ["r0"]
    made.advance(5)
    assert made.order == (["r0"] if restarts else ["r0", "r1"])  # silver lost its limits
    made.advance(95)
    made.advance(5)
    assert sorted(made.order) == ["both", "r0", "r1"]


def test_the_tree_that_is_back_counts_an_appwrapper_without_a_leaf_at_its_root() -> None:
    made = two(default=False)
    gold = [one for one in made.quotas.values() if one.tree == GOLD]
    made.submit(of("red", "r0", 750), workload("other", 750)).settle()
    gold_is_deleted(made).advance(RETURNS + 1)
    assert made.order == ["r0", "other"]
    assert used(made, "root") == 750
    made.share(*(replace(one, uid=f"{one.uid}+") for one in gold)).settle()
    assert used(made, "root") == 1500
    assert all(not one.deleted_trees for one in made.status.values())


def test_a_deletion_is_recorded_in_a_few_appwrappers_once_it_lasts() -> None:
    made = two(default=False)
    made.submit(of("red", "r0", 1000), *(of("red", f"r{n}", 250) for n in range(1, 30))).settle()
    gold_is_deleted(made).advance(RETURNS - 1)
    assert all(not one.deleted_trees for one in made.status.values())
    made.advance(2)
    assert sum(bool(one.deleted_trees) for one in made.status.values()) == RECORDED_MAX
