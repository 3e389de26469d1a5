"""Which AppWrappers are evicted for another: in small tables, and against all subsets in random
small worlds.

``MCAD_EXAMPLES=100000 pytest -n 2 --dist load tests/core/preemption/test_targets.py`` takes its
time and looks harder, in parts of ``PART`` examples.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from mcad.core.admission import Admission, Gang
from mcad.core.capacity import Capacity
from mcad.core.preemption import targets
from mcad.core.preemption.targets import Evictions, Precedence, evictions
from mcad.core.queue.ordering import Turns
from mcad.core.quota.usage import Forest
from mcad.core.snapshot.snapshot import Snapshot
from mcad.core.state.model import Node, PodSet, Workload
from mcad.core.state.quota_records import Designation, QuotaChild, QuotaSubtree
from mcad.core.state.reservation import ReservationReason
from mcad.core.state.settings import Fit, Settings
from tests.core.builders import Host, appwrapper, fits_by_brute_force, on
from tests.core.preemption.rights import Rank, Rights
from tests.core.quotas import (
    GOLD,
    TREES,
    Edit,
    Model,
    child,
    designation,
    edited,
    leaf_of,
    planted,
    subtree,
    teams,
)

EXAMPLES = int(os.environ.get("MCAD_EXAMPLES", "600"))
PART = 2_000
PARTS = [range(begin, min(begin + PART, EXAMPLES)) for begin in range(0, EXAMPLES, PART)]
UIDS = "abcde"
RECLAIM, PREEMPT = ReservationReason.RECLAIMING, ReservationReason.PREEMPTING
REASONS = {Rank.RECLAIM: RECLAIM, Rank.PRIORITY: PREEMPT, Rank.OWN_SHARE: PREEMPT}


def bare(cpu: int, replicas: int = 1, gpu: int = 0, item: int = 0, zone: str = "") -> PodSet:
    """A pod set in single units, so that figures of quota trees and nodes are alike."""
    request = tuple((name, n) for name, n in (("cpu", cpu), ("gpu", gpu)) if n)
    where = on(zone=zone) if zone else on()
    return PodSet(item, 0, f"items[{item}]", replicas, request, where)


def host(name: str, cpu: int, gpu: int = 0, zone: str = "a") -> Node:
    amounts = (("cpu", cpu), ("gpu", gpu), ("pods", 20))
    return Node(name, tuple(one for one in amounts if one[1]), labels=(("zone", zone),))


class Scene:
    """A small cluster with trees, AppWrappers that run in it, and one that waits."""

    def __init__(
        self, *nodes: Node, trees: list[QuotaSubtree] | None = None, fit: Fit = Fit.NODES
    ) -> None:
        self.nodes = nodes
        self.fit = fit
        self.capacity = Capacity(Settings(fit=fit))
        for each in nodes:
            self.capacity.node_seen(each)
        self.forest, self.model = Forest(), Model()
        for one in trees or []:
            self.see(one)
        turns = Turns(Settings(), self.capacity, self.forest)
        self.admission = Admission(self.capacity, self.forest, turns)
        self.running: dict[str, Workload] = {}

    def see(self, one: QuotaSubtree) -> None:
        self.forest.seen(one)
        self.model.see(one)
        self.forest.refresh(0)

    def run(
        self, uid: str, sets: tuple[PodSet, ...], where: Designation, priority: int = 0
    ) -> bool:
        """It is dispatched, if it fits."""
        gang = Gang(uid, "default", 1, self.capacity.shape(sets), sets)
        if self.admission.assume(gang, where) is not None:
            return False
        self.running[uid] = workload(uid, sets, where, priority)
        self.model.charges[uid] = (where, self.admission.demand(gang.shape))
        return True

    def ask(self, preemptor: Workload) -> Snapshot:
        path = self.forest.path(Designation(preemptor.quota))
        return self.admission.what_if(self.capacity.shape(preemptor.sets), path)

    def evict(self, preemptor: Workload, settings: Settings, order: list[str]) -> Evictions | None:
        candidates = {uid: self.running[uid] for uid in order}
        found = evictions(preemptor, candidates, self.ask(preemptor), settings)
        self.capacity.check()
        self.forest.check()
        return found


def workload(uid: str, sets: tuple[PodSet, ...], where: Designation, priority: int = 0) -> Workload:
    return appwrapper(uid, (), sets, uid=uid, priority=priority, quota=where.labels)


# -- random worlds -------------------------------------------------------------------------------


def _shared(rng: Random) -> list[QuotaSubtree]:
    """One to three trees in which teams, some of them of two leaves, share a root."""
    made = []
    for tree in TREES[: rng.choice([1, 1, 1, 2, 3])]:
        root, below = 0, []
        for team in ("a", "b", "c")[: rng.randint(2, 3)]:
            share = rng.randint(1, 4)
            root += share
            below.append(_team(rng, team, share))
            if rng.random() < 0.4:
                first = rng.randint(0, share)
                leaves = (_team(rng, f"{team}1", first), _team(rng, f"{team}2", share - first))
                made.append(subtree(f"below-{team}", *leaves, parent=team, tree=tree))
        whole = child("root", cpu=root, gpu=2) if rng.random() < 0.5 else child("root", cpu=root)
        made.append(subtree("root", whole, tree=tree))
        made.append(subtree("teams", *below, parent="root", tree=tree))
    return made


def _team(rng: Random, name: str, share: int) -> QuotaChild:
    gpus = {"gpu": rng.randint(0, 1)} if rng.random() < 0.4 else {}
    return child(name, hard=rng.random() < 0.15, cpu=share, **gpus)


class Play:
    """One world, and what has to be true of the evictions in it."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = Random(seed)
        self.cases: Counter[str] = Counter()
        trees = rng.choice([[], planted(rng), *[_shared(rng)] * 6])
        fit = rng.choice([Fit.NODES] * 5 + [Fit.AGGREGATE])
        self.scene = scene = Scene(*self._nodes(), trees=trees, fit=fit)
        crowded = self._somewhere()
        for uid in UIDS:
            where = crowded if rng.random() < 0.5 else self._somewhere()
            scene.run(uid, self._gang(1), where, rng.randint(0, 2))
        if trees and rng.random() < 0.15:
            edit = rng.choice([Edit.RESIZED, Edit.HARDENED, Edit.MOVED, Edit.GREW])
            scene.see(edited(rng, rng.choice(trees), edit))
        where = self._somewhere()
        where = self._somewhere() if where == crowded else where
        self.preemptor = workload("w", self._gang(2), where, rng.randint(0, 4))
        self.settings = Settings(
            reclaim=rng.random() < 0.85, preemption=rng.random() < 0.65 or not trees
        )
        self.order = sorted(scene.running)
        rng.shuffle(self.order)
        self.demand = scene.admission.demand(scene.capacity.shape(self.preemptor.sets))
        self.where = Designation(self.preemptor.quota)
        self.rights = Rights(
            scene.model,
            self.where,
            self.demand,
            self.preemptor.priority,
            {uid: one.priority for uid, one in scene.running.items()},
            self._free,
            self.fits,
            self.settings.reclaim,
            self.settings.preemption,
        )
        self._known: dict[frozenset[str], bool] = {}

    def _nodes(self) -> list[Node]:
        rng = self.rng
        return [
            host(f"n{i}", rng.randint(2, 6), rng.choice([0, 0, 2, 3]), rng.choice("ab"))
            for i in range(rng.randint(1, 3))
        ]

    def _gang(self, most: int) -> tuple[PodSet, ...]:
        rng = self.rng
        return tuple(
            bare(
                rng.randint(1, 3),
                rng.randint(1, most),
                rng.choice([0, 0, 1]),
                item,
                rng.choice(["", "", "", "a"]),
            )
            for item in range(rng.choice([1, 1, 1, 2]))
        )

    def _somewhere(self) -> Designation:
        return designation(self.rng, self.scene.model)

    # -- nodes, as plainly as can be -----------------------------------------------------------

    def fits(self, gone: frozenset[str]) -> bool:
        if gone not in self._known:
            self._known[gone] = self._fits(gone)
        return self._known[gone]

    def _fits(self, gone: frozenset[str]) -> bool:
        model = self.scene.model
        left = Model(model.subtrees, {u: c for u, c in model.charges.items() if u not in gone})
        left.found = model.found
        if not left.fits(self.where, self.demand):
            return False
        hosts = self._hosts(gone)
        if self.scene.fit is Fit.NODES:
            return fits_by_brute_force(hosts, self.preemptor.sets)
        return self._fits_in_sum(hosts, gone)

    def _hosts(self, gone: frozenset[str]) -> list[Host]:
        hosts = {each.name: Host(each, dict(each.allocatable)) for each in self.scene.nodes}
        for uid, reservation in self.scene.capacity._assumed.by_uid.items():
            for one in reservation.allotments if uid not in gone else ():
                for name, count in one.at.items():
                    for resource, n in (*one.pod_set.request, ("pods", 1)):
                        hosts[name].free[resource] -= n * count
        return list(hosts.values())

    def _free(self, resource: str) -> int:
        """In sum, on the nodes that any of its pods may use."""
        sets, on_nodes = self.preemptor.sets, self.scene.fit is Fit.NODES
        free = 0
        for one in self._hosts(frozenset()):
            zone, size = dict(one.node.labels)["zone"], dict(one.node.allocatable)
            may = any(
                dict(each.constraint.selector).get("zone", zone) == zone
                and (not on_nodes or all(size.get(r, 0) >= n for r, n in each.request))
                for each in sets
            )
            free += max(0, one.free.get(resource, 0)) if may else 0
        for reservation in self.scene.capacity._assumed.by_uid.values():
            for allotment in reservation.allotments:
                free -= dict(allotment.pod_set.request).get(resource, 0) * allotment.unplaced
        return free

    def _fits_in_sum(self, hosts: list[Host], gone: frozenset[str]) -> bool:
        """MCAD's rule: what is free on all nodes, less what has no node."""
        left: Counter[str] = Counter()
        for one in hosts:
            left.update({name: max(0, n) for name, n in one.free.items()})
        for uid, reservation in self.scene.capacity._assumed.by_uid.items():
            for allotment in reservation.allotments if uid not in gone else ():
                for name, n in (*allotment.pod_set.request, ("pods", 1)):
                    left[name] -= n * allotment.unplaced
        return all(left[name] >= n for name, n in self.demand)

    # -- what has to be true -----------------------------------------------------------------

    def play(self) -> None:
        found = self._found()
        self._count(found)
        if found is None:
            assert self.rights.victims(self.order) is None
            return
        some = tuple(uid for uid, _ in found.victims)
        assert self.fits(frozenset(some)), "over-admission"
        for uid in some:
            assert not self.fits(frozenset(some) - {uid}), f"{uid} could be spared"
        ranks = [self.rights.right(uid, frozenset(some[:i])) for i, uid in enumerate(some)]
        assert None not in ranks
        assert [by for _, by in found.victims] == [
            REASONS[rank] for rank in ranks if rank is not None
        ]
        worst = max((rank for rank in ranks if rank is not None), default=Rank.RECLAIM)
        if worst:
            assert self.rights.victims(self.order, Rank(worst - 1)) is None, "by a better right"
        self.cases[f"by {worst.name}"] += bool(some)
        self._is_looked_for(found)
        self._really(found, some)

    def _is_looked_for(self, found: Evictions) -> None:
        """What is asked first, because it is cheap, keeps no winner from reclaiming."""
        if all(by is RECLAIM for _, by in found.victims) and found.victims:
            forest = self.scene.forest
            path = forest.path(self.where)
            assert forest.may_reclaim(path, self.demand)
            names = [name for name, _ in self.demand]
            assert any(not unspent.isdisjoint(names) for unspent in forest.unspent(path))
            self.cases["reclaims beyond a leaf"] += not forest.is_nominal(path, self.demand)
            is_all_owned = any(forest.is_nominal((one,), self.demand) for one in path)
            self.cases["reclaims one, borrows another"] += not is_all_owned

    def _found(self) -> Evictions | None:
        """What the product says; and by which way it came to that."""
        with pytest.MonkeyPatch.context() as patch:
            for room, name in ((targets, "_among_few"), (Precedence, "in_turn")):
                patch.setattr(room, name, self._noting(name, getattr(room, name)))
            return self.scene.evict(self.preemptor, self.settings, self.order)

    def _noting(self, name: str, real: Callable[..., object]) -> Callable[..., object]:
        def noted(*args: object) -> object:
            result = real(*args)
            self.cases[f"{name} finds {'nothing' if result is None else 'some'}"] += 1
            return result

        return noted

    def _really(self, found: Evictions, some: tuple[str, ...]) -> None:
        """They leave, and the winner goes where the plan says."""
        scene, sets = self.scene, self.preemptor.sets
        shape = scene.capacity.shape(sets)
        gang = Gang("w", "default", 1, shape, sets)
        scene.admission.reserve(gang, self.where, found.plan)
        for uid in some:
            assert not scene.admission.is_free("w"), f"{uid} leaves in vain"
            scene.admission.release(uid)
        assert scene.admission.is_free("w")
        assert not scene.capacity.gangs.unplaced("w")
        scene.admission.check()
        self.cases[f"{scene.fit.value}: {len(some)} leave"] += 1

    def _one_by_one(self) -> list[str]:
        """Which would be removed when it fitted first, if none was restored."""
        gone: list[str] = []
        for uid in self.order:
            right = self.rights.right(uid, frozenset(gone))
            if right is not None and not self.fits(frozenset(gone)):
                gone.append(uid)
        return gone

    def _count(self, found: Evictions | None) -> None:
        cases, model = self.cases, self.scene.model
        cases[f"{len(model.trees())} trees"] += 1
        cases["none" if found is None else f"{len(found.victims)} leave"] += 1
        everybody = frozenset(self.order)
        cases["protected"] += found is None and self.fits(everybody)
        if not found:
            return
        cases.update({by for _, by in found.victims})
        cases["comes back"] += self._one_by_one() != [uid for uid, _ in found.victims]
        cases["mixed gang"] += len(self.preemptor.sets) > 1
        cases["both rights"] += len({by for _, by in found.victims}) > 1
        refusal = self.scene.forest.refusal(self.scene.forest.path(self.where), self.demand)
        nodes = self.scene.capacity.refusal(self.scene.capacity.shape(self.preemptor.sets))
        cases["for quota alone"] += refusal is not None and nodes is None
        cases["for nodes alone"] += refusal is None and nodes is not None
        cases["for both"] += refusal is not None and nodes is not None
        if refusal is not None and refusal.quota is not None:
            _, one = model.placed(refusal.quota.tree)[refusal.quota.node]
            parent = model.placed(refusal.quota.tree)[refusal.quota.node][0]
            reclaims = any(by is RECLAIM for _, by in found.victims)
            cases["reclaim below a hard node"] += one.hard and bool(parent) and reclaims
        for uid, by in found.victims:
            where = model.charges[uid][0]
            if any(leaf_of(where, t) not in model.placed(t) for t in model.trees()):
                cases[f"of no leaf: {by}"] += 1


def played(seed: int) -> Play:
    """The world of this number; what fails tells it."""
    play = Play(seed)
    try:
        play.play()
    except AssertionError as error:
        told = [f"{seed=}", *map(str, play.scene.model.subtrees.values())]
        told += [f"{uid}: {one}" for uid, one in play.scene.model.charges.items()]
        told += [str(play.preemptor), str(play.order), str(play.settings)]
        error.add_note("\n".join(told))
        raise
    return play


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_none_is_evicted_in_vain_and_each_right_is_granted(part: range) -> None:
    for seed in part:
        played(seed)


CASES = {
    *(RECLAIM, PREEMPT, "0 trees", "1 trees", "2 trees", "3 trees", "both rights"),
    *("none", "0 leave", "1 leave", "2 leave", "3 leave", "comes back", "protected", "mixed gang"),
    *("for both", "for nodes alone", "for quota alone", "reclaim below a hard node"),
    *("of no leaf: Preempting", "of no leaf: Reclaiming", "in_turn finds some"),
    *("_among_few finds nothing", "reclaims beyond a leaf"),
    "reclaims one, borrows another",
    *("by RECLAIM", "by PRIORITY", "by OWN_SHARE"),
    *("aggregate: 1 leave", "aggregate: 2 leave"),
}


@pytest.mark.slow
def test_the_worlds_have_every_case() -> None:
    """Else the property would hold of what never happens."""
    cases: Counter[str] = Counter()
    for seed in range(6_000):
        cases.update({case: 1 for case, count in played(seed).cases.items() if count})
    assert {case for case in CASES if not cases[case]} == set(), cases


# -- in small tables -----------------------------------------------------------------------------

BOTH = Settings(reclaim=True, preemption=True)
TEAMS = {"red": 4, "blue": 4}


def at(leaf: str, tree: str = GOLD) -> Designation:
    return Designation(((tree, leaf),))


def shared(cpu: int = 8) -> Scene:
    return Scene(host("n1", cpu), trees=teams(8, **TEAMS))


def told(found: Evictions | None) -> list[tuple[str, ReservationReason]] | None:
    return None if found is None else list(found.victims)


def test_a_request_within_the_share_gets_it_back_whatever_the_priorities() -> None:
    scene = shared()
    for uid in "abc":
        scene.run(uid, (bare(2),), at("blue"), priority=9)
    preemptor = workload("w", (bare(4),), at("red"))

    found = scene.evict(preemptor, Settings(preemption=False), ["a", "b", "c"])
    assert told(found) == [("a", RECLAIM)]
    assert found is not None
    assert found.reason is RECLAIM
    assert scene.evict(preemptor, Settings(reclaim=False, preemption=True), ["a", "b", "c"]) is None


def test_a_borrower_reclaims_nothing() -> None:
    scene = shared()
    scene.run("a", (bare(6),), at("blue"))

    assert scene.evict(workload("w", (bare(5),), at("red"), 9), BOTH, ["a"]) is not None
    assert told(scene.evict(workload("w", (bare(4),), at("red")), BOTH, ["a"])) == [("a", RECLAIM)]
    assert scene.evict(workload("w", (bare(5),), at("red")), BOTH, ["a"]) is None


def test_no_priority_entitles_to_what_is_another_teams_own() -> None:
    scene = shared()
    scene.run("a", (bare(4),), at("blue"))
    scene.run("b", (bare(4),), at("red"), priority=1)
    preemptor = workload("w", (bare(2),), at("red"), priority=2)

    assert told(scene.evict(preemptor, BOTH, ["a", "b"])) == [("b", PREEMPT)]
    equal = workload("w", (bare(2),), at("red"), priority=1)
    assert scene.evict(equal, BOTH, ["a", "b"]) is None


@pytest.mark.parametrize("searched", [0, 10])
def test_a_team_that_is_back_within_its_share_loses_no_more(
    searched: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(targets, "SEARCHED_MAX", searched)
    scene = Scene(host("n1", 12), trees=teams(12, red=4, blue=4, green=4))
    for uid, leaf in (("a", "blue"), ("b", "blue"), ("c", "blue"), ("d", "green"), ("e", "green")):
        assert scene.run(uid, (bare(2 + (leaf == "green")),), at(leaf))
    preemptor = workload("w", (bare(4),), at("red"))

    found = scene.evict(preemptor, BOTH, ["a", "b", "c", "d", "e"])
    assert told(found) == [("a", RECLAIM), ("d", RECLAIM)]


def test_a_candidate_of_no_use_on_the_nodes_does_not_use_up_what_its_team_borrows() -> None:
    scene = Scene(host("n1", 2, zone="a"), host("n2", 6, zone="b"), trees=teams(8, **TEAMS))
    assert scene.run("a", (bare(4, zone=""),), at("blue"))
    assert scene.run("b", (bare(2, zone="a"),), at("blue"))
    preemptor = workload("w", (bare(2, zone="a"),), at("red"))

    assert told(scene.evict(preemptor, BOTH, ["a", "b"])) == [("b", RECLAIM)]


def test_where_sparing_most_would_take_too_many_of_one_team_another_team_gives() -> None:
    scene = Scene(
        host("n1", 3, zone="a"), host("n2", 2, zone="b"), trees=teams(5, red=2, blue=2, green=1)
    )
    for uid, leaf, zone in (
        ("b1", "blue", "b"),
        ("b2", "blue", "a"),
        ("b3", "blue", "a"),
        ("g1", "green", "a"),
        ("g2", "green", "b"),
    ):
        assert scene.run(uid, (bare(1, zone=zone),), at(leaf))
    preemptor = workload("w", (bare(2, zone="a"),), at("red"))

    found = scene.evict(preemptor, BOTH, ["b1", "b2", "b3", "g1", "g2"])
    assert told(found) == [("b2", RECLAIM), ("g1", RECLAIM)]


def test_where_the_first_of_each_team_are_of_no_use_others_of_them_go() -> None:
    """Either team may lose one. The order takes both of blue, then one of each that do not help."""
    scene = Scene(
        host("n1", 4, zone="a"),
        host("n2", 4, zone="b"),
        host("n3", 2, zone="c"),
        trees=teams(10, red=4, blue=4, green=2),
    )
    for uid, leaf, zone in (
        ("b1", "blue", "a"),
        ("b2", "blue", "a"),
        ("b3", "blue", "b"),
        ("g1", "green", "c"),
        ("g2", "green", "b"),
    ):
        assert scene.run(uid, (bare(2, zone=zone),), at(leaf))
    preemptor = workload("w", (bare(4),), at("red"))

    found = scene.evict(preemptor, BOTH, ["b1", "b2", "b3", "g1", "g2"])
    assert told(found) == [("b3", RECLAIM), ("g2", RECLAIM)]


def test_a_candidate_with_nothing_of_what_its_team_borrows_is_let_be() -> None:
    trees = [
        subtree("root", child("root", cpu=9, gpu=2)),
        subtree("teams", child("red", cpu=4, gpu=1), child("blue", cpu=5, gpu=1), parent="root"),
    ]
    scene = Scene(host("n1", 5, gpu=2), trees=trees)
    assert scene.run("a", (bare(2),), at("blue"))
    assert scene.run("b", (bare(1, gpu=2),), at("blue"))

    # Blue borrows a GPU, of which a has none; what a has is blue's own.
    less = workload("w", (bare(3, gpu=1),), at("red"))
    assert told(scene.evict(less, BOTH, ["a", "b"])) == [("b", RECLAIM)]
    assert scene.evict(workload("w", (bare(4, gpu=1),), at("red")), BOTH, ["a", "b"]) is None


def test_without_trees_priority_alone_decides() -> None:
    scene = Scene(host("n1", 4))
    scene.run("a", (bare(2),), Designation(), priority=1)
    scene.run("b", (bare(2),), Designation(), priority=0)
    preemptor = workload("w", (bare(2),), Designation(), priority=1)

    assert told(scene.evict(preemptor, BOTH, ["b", "a"])) == [("b", PREEMPT)]
    assert scene.evict(preemptor, BOTH, ["a"]) is None
    assert scene.evict(preemptor, Settings(reclaim=True), ["b", "a"]) is None


# -- right first, then priority ------------------------------------------------------------------

THREE = [
    subtree("root", child("root", cpu=8)),
    subtree(
        "teams", child("own", cpu=3), child("safe", cpu=3), child("over", cpu=0), parent="root"
    ),
]


def test_work_within_its_own_share_stays_while_a_borrower_suffices() -> None:
    scene = Scene(host("n1", 8), trees=THREE)
    assert scene.run("safe", (bare(3),), at("safe"), priority=-5)
    assert scene.run("over", (bare(5),), at("over"), priority=100)
    preemptor = workload("w", (bare(3),), at("own"))

    found = scene.evict(preemptor, BOTH, ["safe", "over"])
    assert told(found) == [("over", RECLAIM)]


def test_a_borrower_of_lower_priority_goes_before_work_within_its_own_share() -> None:
    scene = Scene(host("n1", 8), trees=THREE)
    assert scene.run("safe", (bare(3),), at("safe"), priority=-5)
    assert scene.run("over", (bare(5),), at("over"), priority=-1)
    preemptor = workload("w", (bare(3),), at("own"))

    settings = Settings(reclaim=False, preemption=True)
    assert told(scene.evict(preemptor, settings, ["safe", "over"])) == [("over", PREEMPT)]


def test_where_no_borrower_suffices_a_priority_takes_work_within_its_own_share() -> None:
    """A node is lost: there is less than all shares."""
    scene = Scene(host("n1", 4), trees=THREE)
    assert scene.run("safe", (bare(3),), at("safe"), priority=-5)
    preemptor = workload("w", (bare(3),), at("own"))

    assert told(scene.evict(preemptor, BOTH, ["safe"])) == [("safe", PREEMPT)]
    assert scene.evict(preemptor, Settings(reclaim=True), ["safe"]) is None


def test_two_borrowers_of_which_one_would_be_back_within_its_share_go_after_a_third() -> None:
    """The first two free enough, but the second of them would be evicted within its own share."""
    trees = [
        subtree("root", child("root", cpu=12)),
        subtree(
            "teams", child("own", cpu=4), child("one", cpu=3), child("two", cpu=1), parent="root"
        ),
    ]
    scene = Scene(host("n1", 12), trees=trees)
    for uid, leaf, cpu, priority in (("a", "one", 2, -9), ("b", "one", 2, -8), ("c", "two", 8, 9)):
        assert scene.run(uid, (bare(cpu),), at(leaf), priority)
    preemptor = workload("w", (bare(4),), at("own"))

    assert told(scene.evict(preemptor, BOTH, ["a", "b", "c"])) == [("c", RECLAIM)]


# -- each resource by its own share --------------------------------------------------------------


def both_kinds(**own: int) -> list[QuotaSubtree]:
    teams = (QuotaChild("own", tuple(own.items())), child("lent", cpu=4, gpu=2))
    return [subtree("root", child("root", cpu=8, gpu=4)), subtree("teams", *teams, parent="root")]


@pytest.mark.parametrize("own", [{"cpu": 2, "gpu": 2}, {"gpu": 2}], ids=["used up", "no figure"])
def test_a_share_of_gpus_comes_back_although_that_of_cpus_is_used_up(own: dict[str, int]) -> None:
    scene = Scene(host("n1", 8, gpu=4), trees=both_kinds(**own))
    if "cpu" in own:
        assert scene.run("mine", (bare(2),), at("own"))
    assert scene.run("other", (bare(2, gpu=2),), at("lent"))
    assert scene.run("borrower", (bare(1, gpu=2),), at("lent"), priority=9)
    preemptor = workload("w", (bare(2, gpu=2),), at("own"))

    order = sorted(scene.running, reverse=True)
    settings = Settings(reclaim=True)
    assert told(scene.evict(preemptor, settings, ["borrower", *order])) == [("borrower", RECLAIM)]
    path = scene.forest.path(Designation(preemptor.quota))
    demand = scene.admission.demand(scene.capacity.shape(preemptor.sets))
    assert scene.forest.may_reclaim(path, demand)


@pytest.mark.parametrize("where", ["tree", "nodes"])
def test_what_is_not_its_own_is_borrowed_only_where_it_is_idle(where: str) -> None:
    """The borrower of GPUs has a right to its CPUs: they are not taken with them."""
    scene = Scene(host("n1", 8 if where == "tree" else 4, gpu=4), trees=both_kinds(gpu=2))
    assert scene.run("borrower", (bare(4, gpu=4),), at("lent"))
    if where == "tree":
        assert scene.run("more", (bare(4),), at("lent"), priority=9)
    preemptor = workload("w", (bare(2, gpu=2),), at("own"))

    settings = Settings(reclaim=True)
    assert scene.evict(preemptor, settings, ["borrower"]) is None


def test_a_borrower_of_what_the_preemptor_does_not_own_stays() -> None:
    """There are CPUs enough in sum, but not on one node; the preemptor owns GPUs alone."""
    scene = Scene(host("n1", 4, gpu=2), host("n2", 4, gpu=2), trees=both_kinds(gpu=2))
    assert scene.run("a", (bare(3),), at("lent"))
    assert scene.run("b", (bare(3),), at("lent"))
    preemptor = workload("w", (bare(2, gpu=2),), at("own"))

    assert scene.evict(preemptor, Settings(reclaim=True), ["a", "b"]) is None


# -- in whatever order ---------------------------------------------------------------------------


def test_victims_may_go_in_another_order_than_that_of_the_candidates() -> None:
    """Without the first, the team borrows no CPU any more, so the second, which has none of its
    GPUs, goes before it."""
    trees = [
        subtree("root", child("root", cpu=9, gpu=2)),
        subtree("teams", child("red", cpu=5, gpu=1), child("blue", cpu=4, gpu=1), parent="root"),
    ]
    scene = Scene(host("n1", 6, gpu=2), trees=trees)
    assert scene.run("a", (bare(3, gpu=2),), at("blue"), priority=0)
    assert scene.run("b", (bare(2),), at("blue"), priority=1)
    preemptor = workload("w", (bare(5, gpu=1),), at("red"))

    found = scene.evict(preemptor, BOTH, ["a", "b"])
    assert told(found) == [("b", RECLAIM), ("a", RECLAIM)]
