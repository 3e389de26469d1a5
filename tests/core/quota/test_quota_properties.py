"""The forest against a model that is slow and plain, over random trees, edits and charges.

``MCAD_EXAMPLES=100000 pytest -n 2 --dist load tests/core/quota/test_quota_properties.py`` takes its
time and looks harder, in parts of ``PART`` examples.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest

from mcad.core.quota.absent import RETURN_TIME
from mcad.core.quota.tree import Flaw
from mcad.core.quota.usage import Forest, HeldShare
from mcad.core.state.quota_records import NOBODYS, Designation, Path, QuotaSubtree
from mcad.core.state.records import replace
from mcad.core.state.refusal import Refusal
from mcad.core.state.units import SECOND
from mcad.core.state.violations import InvariantViolated
from mcad.core.state.waiting_reason import WaitingReason
from tests.core.quotas import (
    RESOURCES,
    TREES,
    Edit,
    Model,
    Waits,
    demand,
    designation,
    edited,
    leaf_of,
    planted,
    stranger,
    waits,
)

EXAMPLES = int(os.environ.get("MCAD_EXAMPLES", "300"))
PART = 5_000
PARTS = [range(begin, min(begin + PART, EXAMPLES)) for begin in range(0, EXAMPLES, PART)]
UIDS = [f"w{number}" for number in range(9)]
STEPS = (10, 40)
ODDS = {
    "ask": 40,
    "edit": 20,
    "see": 5,
    "lose": 6,
    "return": 6,
    "vie": 8,
    "adopt": 8,
    "release": 7,
    "replace": 4,
    "overtake": 2,
    "fall": 3,
    "wait": 5,
}
GRACES = (0, 0, 1, 30, 30)
EVERYTHING = HeldShare(set(), dict.fromkeys(RESOURCES, 10**9))


class Play:
    """A forest and its model, side by side; ``told`` says what happened, ``cases`` how often."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.told: list[object] = []
        grace = rng.choice(GRACES) * SECOND
        self.forest, self.model, self.now = Forest(grace), Model(grace=grace), 1
        self.lost: list[QuotaSubtree] = []
        self.refused: dict[tuple[Designation, Path, tuple], Refusal] = {}
        self.cases: Counter[str] = Counter()

    def play(self, sown: list[QuotaSubtree], steps: int) -> None:
        """A whole history; in the end nothing is held."""
        for one in sown:
            self.see(one)
        self.look()
        for what in self.rng.choices([*ODDS], [*ODDS.values()], k=steps):
            before = self.outlines()
            self.step(what)
            self.look()
            self.cases.update(self.changes(before))
        for uid in UIDS:
            self.model.charges.pop(uid, None)
            self.forest.release(uid)
        self.look()

    def step(self, what: str) -> None:
        forest, model, rng = self.forest, self.model, self.rng
        known = [model.subtrees[uid] for uid in sorted(model.subtrees)]
        uid = rng.choice(UIDS)
        self.told.append(what)
        match what:
            case "see":
                self.see(stranger(rng))
            case "edit" if known:
                edit = rng.choice([*Edit])
                self.cases[edit.name] += bool(model.charges)
                self.see(edited(rng, rng.choice(known), edit))
            case "lose" if known:
                one = rng.choice(known)
                self.lose(one)
                self.lost.append(one)
            case "fall" if known:  # a whole tree, for longer than a replacement takes
                self.fall([one for one in known if one.tree == known[0].tree])
            case "return" if self.lost:  # by its name, as another object
                one = self.lost.pop(rng.randrange(len(self.lost)))
                self.cases["absent and back"] += one.title in model.absent
                self.see(_successor(one))
            case "replace" if known:  # before the next refresh
                one = rng.choice(known)
                self.lose(one)
                self.see(_successor(one))
            case "overtake" if known:  # a late watch tells of the successor first
                one = rng.choice(known)
                self.see(_successor(one))
                self.look()
                self.lose(one)
            case "wait":
                self.now += rng.choice((1, 10, 31)) * SECOND
                self.cases["absent for good"] += bool(model.absent)
            case "ask":
                self.ask(uid, self.whose(), demand(rng))
            case "vie":
                self.vie(designation(rng, model), demand(rng), waits(rng))
            case "adopt":
                model.charges[uid] = (self.whose(), demand(rng))
                forest.charge(uid, *model.charges[uid])
                self.told.append((uid, *model.charges[uid]))
            case "release":
                model.charges.pop(uid, None)
                forest.release(uid)
                self.told.append(uid)

    def fall(self, subtrees: list[QuotaSubtree]) -> None:
        for one in subtrees:
            self.lose(one)
        self.lost += subtrees
        self.look()
        self.now += RETURN_TIME

    def whose(self) -> Designation:
        """The leaves that an AppWrapper names; now and then none in a tree without ``default``."""
        one = designation(self.rng, self.model)
        if one == NOBODYS or self.rng.random() < 0.8:
            return one
        return Designation(tuple(at for at in one.labels if self.rng.random() < 0.5))

    def lose(self, one: QuotaSubtree) -> None:
        self.model.lose(one.uid)
        self.forest.gone(one.uid)
        self.told.append(("gone", one))

    def see(self, one: QuotaSubtree) -> None:
        self.model.see(one)
        self.forest.seen(one)
        self.told.append(one)

    def ask(self, uid: str, designation: Designation, demand: tuple) -> None:
        """Take room if there is any, as the dispatcher does."""
        forest, model = self.forest, self.model
        self.told.append((uid, designation, demand))
        model.charges.pop(uid, None)
        forest.release(uid)
        path = forest.path(designation)
        refusal = forest.refusal(path, demand)
        self.judge(designation, demand, refusal)
        if refusal is not None:
            self.refused[designation, path, demand] = refusal
            return
        model.charges[uid] = (designation, demand)
        forest.charge(uid, designation, demand)
        for tree in model.trees():
            for node in model.limits(tree, leaf_of(designation, tree)):
                if not model.counts(designation, tree):
                    continue
                for resource in dict(demand).keys() & model.named(tree):
                    assert model.room(tree, node, resource) >= 0

    def judge(self, designation: Designation, demand: tuple, refusal: Refusal | None) -> None:
        """Whether the verdict is that of the model, with true figures."""
        in_the_way = list(self.model.hindrances(designation, demand))
        self.cases[f"{len(self.model.trees())} trees"] += 1
        self.cases[str(refusal.reason) if refusal is not None else "fits"] += 1
        if refusal is None:
            assert in_the_way == []
            borrows = self.model.vies(designation, demand, dict.fromkeys(self.nodes(), EVERYTHING))
            self.cases["borrows"] += borrows
            self.cases["unnamed"] += any(
                not {*dict(demand)} <= self.model.named(tree) for tree in self.model.trees()
            )
            return
        told = refusal.quota
        assert tuple(told) in {tuple(one) for one in in_the_way}
        self.cases["absent refuses"] += told.is_absent
        self.cases["nothing of its own"] += told.nominal == 0 and bool(told.node)
        match refusal.reason:
            case WaitingReason.NO_LEAF:
                assert not told.node
                self.cases["no default"] += told.leaf == "default"
            case WaitingReason.ABOVE_QUOTA:
                assert told.node
                assert told.requested > told.nominal
            case _:
                assert refusal.reason is WaitingReason.QUOTA
                assert not any(one.is_lasting for one in in_the_way)

    def nodes(self) -> list[tuple[str, str]]:
        return [(tree, node) for tree in self.model.trees() for node in self.model.placed(tree)]

    def vie(self, designation: Designation, demand: tuple, waits: Waits) -> None:
        """Which AppWrappers want what others wait for (R6)."""
        self.told.append((designation, demand, waits))
        vies = self.forest.vies(self.forest.path(designation), demand, waits)
        assert (vies is not None) == self.model.vies(designation, demand, waits)
        self.cases["vies"] += vies is not None

    def look(self) -> None:
        """The books, what has no place, and whether all that could go are requeued (R4)."""
        forest, model = self.forest, self.model
        replanted = forest.refresh(self.now)
        model.wait(self.now)
        forest.check()
        trees = model.trees()
        assert [name for name, _ in forest.path(NOBODYS)] == trees
        assert [name for name in trees if model.is_deleted(name)] == [*forest.deleted]
        assert [name for name, _ in forest.path(Designation())] == model.trees_of(Designation())
        for uid, (whose, _) in model.charges.items():
            path = tuple((name, leaf_of(whose, name)) for name in model.trees_of(whose))
            self.cases["not of a deleted tree"] += len(path) < len(trees)
            assert forest.path_of(uid) == path
        for name in trees:
            self.look_at(name)
        for name in (*TREES, ""):
            told = [(fault.uid, fault.child, str(fault.flaw)) for fault in forest.faults(name)]
            assert sorted(told) == model.faults(name)
        news = forest.take_news()
        if replanted:
            self.refused.clear()
        for key, refusal in list(self.refused.items()):
            designation, path, demand = key
            limit = refusal.quota
            assert limit is not None
            at = (limit.tree, limit.node)
            requeued = any(tree in news.regrown for tree, _ in path) or (
                at in news.risen and forest.room(*at, limit.resource) >= limit.requested
            )
            if requeued:
                self.cases["requeued"] += 1
                del self.refused[key]
            else:
                assert not model.fits(designation, demand), f"{refusal} sleeps on"

    def look_at(self, name: str) -> None:
        """One tree: its nodes, and what they hold."""
        tree, placed = self.forest.trees.get(name), self.model.placed(name)
        assert tree is not None
        assert {at: (node.hard, node.nominal) for at, node in tree.nodes.items()} == {
            at: (one.hard, dict(one.nominal)) for at, (_, one) in placed.items()
        }
        for at, node in tree.nodes.items():
            for resource in {*node.usage, "cpu"}:
                assert node.usage.get(resource, 0) == self.model.usage(name, at, resource)
        if not self.model.charges:
            assert not tree.held
            assert not any(any(node.usage.values()) for node in tree.nodes.values())

    def outlines(self) -> dict[str, dict[str, str]]:
        """Per tree the parents of its nodes."""
        model = self.model
        return {
            name: {node: parent for node, (parent, _) in model.placed(name).items()}
            for name in model.trees()
        }

    def changes(self, before: dict[str, dict[str, str]]) -> set[str]:
        """What became of trees and nodes that hold something."""
        model, after, found = self.model, self.outlines(), set()
        if model.charges:
            found |= {"a tree came"} if after.keys() - before.keys() else set()
            found |= {"a tree went"} if before.keys() - after.keys() else set()
        for whose, _ in model.charges.values():
            for tree in before.keys() & after.keys():
                leaf = leaf_of(whose, tree)
                was, now = before[tree].get(leaf), after[tree].get(leaf)
                if was != now:
                    found.add("leaf went" if now is None else "leaf came" if was is None else "")
                    found |= {"leaf moved"} if was is not None and now is not None else set()
                elif leaf in model.placed(tree) and not model.is_leaf(tree, leaf):
                    found.add("charged above leaves")
                if whose == NOBODYS:
                    found.add("of no leaf")
                if any(model.room(tree, model.above(tree, leaf)[-1], one) < 0 for one in ("cpu",)):
                    found.add("overcommitted")
        return {*found, *(flaw for tree in (*TREES, "") for _, _, flaw in model.faults(tree))} - {
            ""
        }


def _successor(one: QuotaSubtree) -> QuotaSubtree:
    children = tuple(replace(child) for child in one.children)  # the model knows them by identity
    return replace(one, uid=f"{one.uid}+", created=one.created + 1, children=children)


def played(seed: int) -> Play:
    """The history of this number; what fails tells it."""
    rng = Random(seed)
    play = Play(rng)
    try:
        play.play(planted(rng), rng.randint(*STEPS))
    except (AssertionError, InvariantViolated) as error:
        error.add_note("\n".join((f"{seed=}", *map(str, play.told))))
        raise
    return play


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_the_forest_says_what_the_model_says(part: range) -> None:
    for seed in part:
        played(seed)


CASES = {
    *Flaw,
    *(edit.name for edit in Edit),
    *("0 trees", "1 trees", "2 trees", "3 trees", "a tree came", "a tree went"),
    *("fits", "borrows", "unnamed", "vies", "requeued", "of no leaf", "no default"),
    *("quota", "above-quota", "no-leaf", "nothing of its own", "overcommitted"),
    *("not of a deleted tree", "absent and back", "absent for good", "absent refuses"),
    *("leaf went", "leaf came", "leaf moved", "charged above leaves"),
}


def test_the_histories_have_every_case() -> None:
    """Else the property would hold of what never happens."""
    cases: Counter[str] = Counter()
    for seed in range(200):
        cases.update({case: 1 for case, count in played(seed).cases.items() if count})
    assert {case for case in CASES if cases[case] < 5} == set()
