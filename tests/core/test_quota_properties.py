"""The forest against a model that is slow and plain, over random trees, edits and charges.

``MCAD_EXAMPLES=100000 pytest tests/core/test_quota_properties.py`` takes its time and looks harder.
"""

from __future__ import annotations

import os

from hypothesis import event, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from mcad.core.quota import Designation, Forest, Path
from mcad.core.verdicts import Refusal
from tests.core.quotas import DEMANDS, DESIGNATIONS, Model, subtrees

EXAMPLES = int(os.environ.get("MCAD_EXAMPLES", "300"))
UIDS = [f"w{number}" for number in range(6)]

STEPS = st.one_of(
    st.tuples(st.just("see"), subtrees()),
    st.tuples(st.just("see"), subtrees()),
    st.tuples(st.just("lose"), st.integers(0, 9)),
    st.tuples(st.just("ask"), st.sampled_from(UIDS), DESIGNATIONS, DEMANDS),
    st.tuples(st.just("ask"), st.sampled_from(UIDS), DESIGNATIONS, DEMANDS),
    st.tuples(st.just("ask"), st.sampled_from(UIDS), DESIGNATIONS, DEMANDS),
    st.tuples(st.just("adopt"), st.sampled_from(UIDS), DESIGNATIONS, DEMANDS),
    st.tuples(st.just("release"), st.sampled_from(UIDS)),
)


class Play:
    """A forest and its model, side by side."""

    def __init__(self) -> None:
        self.forest, self.model = Forest(), Model()
        self.refused: dict[tuple[Designation, Path, tuple], Refusal] = {}

    def step(self, what: str, *how: object) -> None:
        forest, model = self.forest, self.model
        match what, *how:
            case "see", subtree:
                model.subtrees[subtree.uid] = subtree
                forest.seen(subtree)
            case "lose", int(pick):
                if model.subtrees:
                    uid = sorted(model.subtrees)[pick % len(model.subtrees)]
                    del model.subtrees[uid]
                    forest.gone(uid)
            case "ask", str(uid), designation, demand:
                self.ask(uid, designation, demand)
            case "adopt", str(uid), designation, demand:
                model.charges[uid] = (designation, demand)
                forest.charge(uid, designation, demand)
            case "release", str(uid):
                model.charges.pop(uid, None)
                forest.release(uid)
        self.look()

    def ask(self, uid: str, designation: Designation, demand: tuple) -> None:
        """Take room if there is any, as the dispatcher does."""
        forest, model = self.forest, self.model
        model.charges.pop(uid, None)
        forest.release(uid)
        path = forest.path(designation)
        refusal, fits = forest.refusal(path, demand), model.fits(designation, demand)
        event(f"fits: {fits}, trees: {len(path)}")
        assert (refusal is None) == fits, refusal
        if refusal is not None:
            self.refused[designation, path, demand] = refusal
            return
        model.charges[uid] = (designation, demand)
        forest.charge(uid, designation, demand)
        for tree in model.trees():
            placed = model.placed(tree)
            named = {name for _, one in placed.values() for name, _ in one.nominal}
            for node in model.limits(tree, designation.leaf(tree)):
                for resource in dict(demand).keys() & named:
                    share = dict(placed[node][1].nominal).get(resource, 0)
                    assert model.usage(tree, node, resource) <= share

    def look(self) -> None:
        """The books, and whether everybody who sleeps is woken who could go (R4)."""
        forest, model = self.forest, self.model
        replanted = forest.refresh()
        forest.check()
        assert [name for name, _ in forest.path(Designation())] == model.trees()
        for name in model.trees():
            tree, placed = forest.tree(name), model.placed(name)
            assert tree is not None
            assert set(tree.nodes) == set(placed)
            for at, node in tree.nodes.items():
                for resource in {*node.usage, "cpu"}:
                    assert node.usage.get(resource, 0) == model.usage(name, at, resource)
        news = forest.take_news()
        if replanted:
            self.refused.clear()
        for key, refusal in list(self.refused.items()):
            designation, path, demand = key
            limit = refusal.quota
            assert limit is not None
            at = (limit.tree, limit.node)
            woken = not news.rerouted.isdisjoint(path) or (
                at in news.risen and forest.room(*at, limit.resource) >= limit.requested
            )
            if woken:
                del self.refused[key]
            else:
                assert not model.fits(designation, demand), f"{refusal} sleeps on"


@profile(max_examples=EXAMPLES, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_the_forest_says_what_the_model_says(steps: list[tuple]) -> None:
    play = Play()
    for step in steps:
        play.step(*step)
    for uid in UIDS:
        play.step("release", uid)
    for name in play.model.trees():
        tree = play.forest.tree(name)
        assert tree is not None
        assert not tree.held
        assert not any(amount for node in tree.nodes.values() for amount in node.usage.values())


@profile(max_examples=EXAMPLES, deadline=None)
@given(st.lists(subtrees(), max_size=6))
def test_whatever_is_not_in_force_is_told_why(known: list) -> None:
    forest, model = Forest(), Model()
    for one in known:
        forest.seen(one)
        model.subtrees[one.uid] = one
    forest.refresh()
    for name in {one.tree for one in known}:
        placed = model.placed(name)
        told = {(fault.uid, fault.child) for fault in forest.faults(name)}
        for one in (each for each in model.subtrees.values() if each.tree == name):
            for child in one.children:
                in_force = placed.get(child.name, ("", None))[1] is child
                if not in_force:
                    assert (one.uid, child.name) in told
