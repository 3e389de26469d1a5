"""The figures of a quota tree for people."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcad.core.quota.report import figures, overcommitted
from mcad.core.quota.usage import Forest
from mcad.core.state.quota_records import Designation, NodeStatus
from mcad.core.state.refusal import QuotaLimit, Refusal
from mcad.core.state.waiting_reason import WaitingReason
from tests.core.quotas import GOLD, child, subtree, teams


def forest(*subtrees, **used: int) -> Forest:
    made = Forest()
    for one in subtrees:
        made.seen(one)
    made.refresh(0)
    for leaf, cpu in used.items():
        made.charge(leaf, Designation(((GOLD, leaf),)), (("cpu", cpu),))
    return made


def told(made: Forest, waiting: dict | None = None) -> dict[str, list[int]]:
    """The milli-CPU of each node: nominal, allocated, borrowed, lent, waiting."""
    tree = made.trees[GOLD]
    lines = figures(tree, waiting or {})
    return {name: [dict(book).get("cpu", 0) for book in _books(one)] for name, one in lines.items()}


def _books(one: NodeStatus) -> tuple:
    return (one.nominal, one.allocated, one.borrowed, one.lent, one.waiting)


def test_what_one_borrows_others_lend_in_proportion_to_what_they_leave_idle() -> None:
    made = forest(*teams(1000, red=200, green=500, blue=300), red=600, green=200)

    assert told(made, {"red": (("cpu", 70),), "blue": (("cpu", 5),)}) == {
        "root": [1000, 800, 0, 0, 75],
        "red": [200, 600, 400, 0, 70],
        "green": [500, 200, 0, 200, 0],
        "blue": [300, 0, 0, 200, 5],
    }


def test_what_the_parent_has_besides_is_borrowed_first() -> None:
    made = forest(*teams(1000, red=200, green=300), red=700)

    assert (told(made)["red"][2], told(made)["green"][3]) == (500, 0)


def test_what_is_charged_to_an_unknown_leaf_is_lent_as_well() -> None:
    made = forest(*teams(1000, red=500, green=500), gone=300)

    assert [told(made)[name][3] for name in ("root", "red", "green")] == [0, 150, 150]


def test_children_above_their_parent_are_told_and_no_others() -> None:
    made = forest(
        *teams(1000, red=600, green=500),
        subtree("of-red", child("r1", cpu=300), child("r2", cpu=300), parent="red"),
        subtree("of-green", child("g1", gpu=1), parent="green"),
    )
    tree = made.trees[GOLD]
    assert overcommitted(tree) == {
        "root": 'The shares below "root" come to more than its own (cpu: 1100m of 1): they '
        "cannot all be used at once.",
        "green": 'The shares below "green" come to more than its own (gpu: 1 of 0): they '
        "cannot all be used at once.",
    }


@given(
    root=st.integers(0, 30),
    figures=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=5),
)
def test_no_node_lends_more_than_is_idle_or_than_is_borrowed(
    root: int, figures: list[tuple[int, int]]
) -> None:
    below = [child(f"t{n}", cpu=share) for n, (share, _) in enumerate(figures)]
    made = forest(
        subtree("root", child("root", cpu=root)),
        subtree("teams", *below, parent="root"),
        **{f"t{n}": used for n, (_, used) in enumerate(figures)},
    )
    rows = [one for name, one in told(made).items() if name != "root"]
    for nominal, allocated, _, lent, _ in rows:
        assert lent <= max(0, nominal - allocated)
    assigned, in_use, borrowed, lent, _ = map(sum, zip(*rows, strict=True))
    assert lent <= borrowed
    if root == assigned and in_use <= root:
        assert lent == borrowed


def test_of_a_share_that_is_used_beyond_itself_nothing_is_available() -> None:
    limit = QuotaLimit("t", "leaf", "node", "cpu", requested=1000, nominal=4000, used=6000)
    (figure,) = Refusal(WaitingReason.QUOTA, quota=limit).figures
    assert (figure.requested, figure.available, figure.missing) == (1000, 0, 1000)
