"""The figures of a quota tree for people."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcad.core.nodes.shape import Shape
from mcad.core.quota.explain import Words
from mcad.core.quota.report import figures, overcommitted
from mcad.core.quota.usage import ChargedAs, Forest
from mcad.core.state.model import PodSet
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


def told(made: Forest, **waiting: int) -> dict[str, list[int]]:
    """The milli-CPU of each node: nominal, allocated, borrowed, lent, waiting."""
    for leaf, cpu in waiting.items():
        made.in_line.join(((GOLD, leaf),), Shape.of((PodSet(0, 0, "", 1, (("cpu", cpu),)),)))
    lines = figures(made, made.trees[GOLD], lambda shape: shape.fixed)
    return {name: _books(one, *BOOKS) for name, one in lines.items()}


BOOKS = ("nominal", "allocated", "borrowed", "lent", "waiting")


def _books(one: NodeStatus, *books: str) -> list[int]:
    return [dict(getattr(one, each)).get("cpu", 0) for each in books]


def test_what_one_borrows_others_lend_in_proportion_to_what_they_leave_idle() -> None:
    made = forest(*teams(1000, red=200, green=500, blue=300), red=600, green=200)

    assert told(made, red=70, blue=5) == {
        "root": [1000, 800, 0, 0, 75],
        "red": [200, 600, 400, 0, 70],
        "green": [500, 200, 0, 200, 0],
        "blue": [300, 0, 0, 200, 5],
    }


def test_what_is_used_what_leaves_and_what_is_reserved_are_three_figures() -> None:
    """Victims leave a share for which their preemptor has a reservation: the share is not used
    twice, and none of it is borrowed."""
    made = forest(
        subtree("root", child("root", cpu=16)),
        subtree("teams", child("red", cpu=9), child("blue", cpu=7), parent="root"),
        red=9,
        blue=7,
    )
    made.mark("blue", ChargedAs.LEAVING)
    made.charge("urgent", Designation(((GOLD, "red"),)), (("cpu", 7),), ChargedAs.RESERVED)

    lines = figures(made, made.trees[GOLD], lambda shape: shape.fixed)
    shown = ("nominal", "allocated", "leaving", "reserved", "borrowed", "lent")
    assert {name: _books(one, *shown) for name, one in lines.items()} == {
        "root": [16, 16, 7, 7, 0, 0],
        "red": [9, 9, 0, 7, 0, 0],
        "blue": [7, 7, 7, 0, 0, 0],
    }
    made.charge("urgent", Designation(((GOLD, "red"),)), (("cpu", 7),))
    made.release("blue")
    (root, *_) = figures(made, made.trees[GOLD], lambda shape: shape.fixed).values()
    assert _books(root, *shown) == [16, 16, 0, 0, 0, 0]


def test_a_refusal_tells_what_is_reserved_apart_from_what_is_used() -> None:
    made = forest(*teams(16, red=9, blue=7), red=10, blue=6)
    made.charge("urgent", Designation(((GOLD, "blue"),)), (("cpu", 7),), ChargedAs.RESERVED)
    refusal = made.refusal(((GOLD, "red"),), (("cpu", 4),))

    assert refusal is not None
    assert Words(made).explain(refusal) == (
        'Quota tree "gold", node "root": cpu: 4m requested, 16m of 16m used, 7m reserved. '
        "Borrowing there: red (1m)."
    )


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
