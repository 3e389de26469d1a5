"""Which AppWrappers have to be removed: none in vain, in order, on nodes and in shares; against all
subsets."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from random import Random

import pytest

from mcad.core.admission import Admission, Gang
from mcad.core.capacity import Capacity
from mcad.core.queue.ordering import Turns
from mcad.core.quota.usage import Forest
from mcad.core.snapshot.removal import Room, fewest, soonest
from mcad.core.snapshot.snapshot import Snapshot
from mcad.core.state.model import Node, PodSet
from mcad.core.state.quota_records import Designation, QuotaSubtree
from mcad.core.state.settings import Fit, Settings
from tests.core.builders import cluster, node, on, pods
from tests.core.quotas import child, subtree, teams


class Cluster:
    """Nodes and shares in which AppWrappers have room."""

    def __init__(
        self, *nodes: Node, shares: tuple[QuotaSubtree, ...] = (), fit: Fit = Fit.NODES
    ) -> None:
        self.capacity: Capacity = cluster(*nodes, settings=Settings(fit=fit))
        self.forest = Forest()
        for one in shares:
            self.forest.seen(one)
        self.forest.refresh(0)
        turns = Turns(Settings(), self.capacity, self.forest)
        self.admission = Admission(self.capacity, self.forest, turns)

    def run(self, uid: str, *sets: PodSet, leaf: str = "") -> None:
        assert self.may_run(uid, *sets, leaf=leaf)

    def may_run(self, uid: str, *sets: PodSet, leaf: str = "") -> bool:
        gang = Gang(uid, "default", 1, self.capacity.shape(sets), sets)
        return self.admission.assume(gang, _of(leaf)) is None

    def ask(self, *sets: PodSet, leaf: str = "") -> Snapshot:
        path = self.forest.path(_of(leaf))
        return self.admission.what_if(self.capacity.shape(sets), path)


def _of(leaf: str) -> Designation:
    return Designation((("gold", leaf),)) if leaf else Designation()


def leaving(room: Room | None) -> list[str] | None:
    return None if room is None else list(room.leaving)


def test_none_is_removed_if_it_fits_anyway() -> None:
    cluster = Cluster(node("n1", "4"))
    cluster.run("a", pods(1, "2"))

    assert fewest(cluster.ask(pods(1, "2")), "a") == Room(
        (), cluster.ask(pods(1, "2")).plan() or []
    )


def test_they_are_removed_in_order_and_those_not_needed_are_restored() -> None:
    cluster = Cluster(*(node(f"n{i}", "4", labels={"n": str(i)}) for i in range(3)))
    for i, uid in enumerate("abc"):
        cluster.run(uid, pods(1, str(2 + i), where=on(n=str(i))))
    asked = cluster.ask(pods(1, "3"))

    found = fewest(asked, "abc")
    assert leaving(found) == ["a"]
    assert found is not None
    assert [(row.node.name, n) for _, row, n in found.plan] == [("n0", 1)]
    asked.restore("a")
    assert leaving(fewest(asked, "cba")) == ["c"]
    asked.restore("c")
    both = cluster.ask(pods(1, "4", where=on(n="1")))
    assert leaving(fewest(both, "abc")) == ["b"]
    assert leaving(soonest(cluster.ask(pods(1, "4", where=on(n="1"))), "abc")) == ["b"]


def test_none_stays_removed_if_it_does_not_help() -> None:
    cluster = Cluster(node("n1", "4"), node("n2", "4"))
    cluster.run("a", pods(1, "4"))
    cluster.run("b", pods(1, "4"))
    asked = cluster.ask(pods(2, "4"))

    assert fewest(asked, "a") is None
    assert leaving(fewest(asked, "ab")) == ["a", "b"]
    assert fewest(cluster.ask(pods(3, "4")), "ab") is None


def test_none_is_removed_when_no_search_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sums suffice for two sets only a search tells whether they fit, and each costs work."""
    cluster = Cluster(node("n1", "4"), node("n2", "4"))
    cluster.run("a", pods(1, "3"))
    cluster.run("b", pods(1, "3"))
    gang = pods(1, "3"), pods(1, "1", item=1)
    assert leaving(fewest(cluster.ask(*gang), iter("ab"))) == ["a"]

    monkeypatch.setattr("mcad.core.snapshot.way.WHAT_IF_WORK_MAX", 0)
    candidates = iter("ab")
    assert fewest(cluster.ask(*gang), candidates) is None
    assert list(candidates) == ["a", "b"], "none was asked for"


def test_as_soon_as_possible_is_not_with_the_fewest() -> None:
    cluster = Cluster(node("n1", "4"))
    cluster.run("a", pods(1, "1"))
    cluster.run("b", pods(1, "3"))

    assert leaving(fewest(cluster.ask(pods(1, "3")), "ab")) == ["b"]
    assert leaving(soonest(cluster.ask(pods(1, "3")), "ab")) == ["a", "b"]


def test_shares_and_nodes_have_to_suffice_together() -> None:
    nodes = [node("n1", "4", labels={"n": "1"}), node("n2", "4")]
    cluster = Cluster(*nodes, shares=tuple(teams(6000, red=3000, blue=3000)))
    cluster.run("a", pods(1, "2", where=on(n="1")), leaf="red")
    cluster.run("b", pods(1, "4"), leaf="blue")

    # Without a there is room on the node and too little of the share, without b the reverse.
    for order in ("ab", "ba"):
        asked = cluster.ask(pods(1, "3", where=on(n="1")), leaf="red")
        assert leaving(fewest(asked, order)) == list(order)
    assert fewest(cluster.ask(pods(1, "3", where=on(n="1")), leaf="red"), "a") is None
    assert fewest(cluster.ask(pods(1, "3", where=on(n="1")), leaf="red"), "b") is None


def test_what_was_removed_before_stays_removed() -> None:
    cluster = Cluster(*(node(f"n{i}", "4", labels={"n": str(i)}) for i in range(3)))
    cluster.run("gone", pods(1, "4", where=on(n="0")))
    cluster.run("a", pods(1, "4", where=on(n="1")))
    cluster.run("b", pods(1, "2", where=on(n="2")))
    cluster.run("c", pods(1, "2", where=on(n="2")))
    asked = cluster.ask(pods(2, "4"))
    asked.remove("gone")

    assert leaving(fewest(asked, "ba")) == ["a"]
    assert asked.fits()
    asked.restore("gone")
    assert not asked.fits()
    assert leaving(fewest(asked, "bc")) == ["b", "c"]


def test_a_victim_that_takes_as_much_where_other_pods_may_go_is_tried_all_the_same() -> None:
    cluster = Cluster(node("n1", "4", labels={"zone": "a"}), node("n2", "6"))
    cluster.run("a", pods(1, "4", where=on(zone="a")))
    cluster.run("b", pods(1, "6"))
    asked = cluster.ask(pods(1, "1", where=on(zone="a")), pods(1, "3", item=1))

    assert leaving(fewest(asked, "ba")) == ["a"]


def test_a_leaf_that_is_none_is_hopeless_and_so_is_more_than_the_whole_share() -> None:
    cluster = Cluster(node("n1", "9"), shares=tuple(teams(4000, red=4000)))

    assert cluster.ask(pods(1, "1"), leaf="green").hopeless
    assert cluster.ask(pods(1, "5"), leaf="red").hopeless
    assert not cluster.ask(pods(1, "4"), leaf="red").hopeless


# -- against all subsets -------------------------------------------------------------------------


def _world(rng: Random) -> tuple[Cluster, list[str]]:
    hard = rng.random() < 0.5
    children = [child("red", hard=hard, cpu=6000), child("blue", cpu=5000)]
    shares = [
        subtree("root", child("root", cpu=12000)),
        subtree("leaves", *children, parent="root"),
    ]
    alike = rng.random() < 0.5  # nodes that are, so that many victims are as good as others
    nodes = [
        node(
            f"n{i}",
            "4" if alike else str(rng.randint(2, 6)),
            labels={"zone": "a" if alike else rng.choice("ab")},
        )
        for i in range(3)
    ]
    fit = rng.choice([Fit.NODES, Fit.NODES, Fit.NODES, Fit.AGGREGATE])
    cluster = Cluster(*nodes, shares=tuple(shares) if rng.random() < 0.6 else (), fit=fit)
    leaves = ["red", "blue"]
    return cluster, [
        u for u in "abcdef" if cluster.may_run(u, *_gang(rng, 1), leaf=rng.choice(leaves))
    ]


def _brimful(rng: Random) -> tuple[Cluster, list[str], tuple[PodSet, ...]]:
    """Nodes that a gang of several sizes would fill to the brim, or just not; one more of them; and
    the AppWrappers that run there."""
    sizes = rng.sample(range(2, 6), rng.choice([2, 3]))
    counts, cores = [0] * len(sizes), []
    for _ in range(3):
        on_it = rng.choices(range(len(sizes)), k=rng.choice([1, 2]))
        cores.append(sum(sizes[kind] for kind in on_it) - rng.choice([0, 0, 0, 1]))
        for kind in on_it:
            counts[kind] += 1
    cores.append(rng.choice(cores))
    cores = rng.choice([cores, [max(cores)] * 4])
    nodes = [node(f"n{i}", str(n), labels={"zone": "aab"[i % 3]}) for i, n in enumerate(cores)]
    cluster, highest = Cluster(*nodes), max(cores)
    run = [u for u in "abcdefg" if cluster.may_run(u, pods(1, str(rng.randint(1, highest))))]
    wheres = rng.choice([[on()], [on(), on(zone="a")]])
    needed = [(n, size) for n, size in zip(counts, sizes, strict=True) if n]
    gang = [
        pods(n, str(size), item=i, where=rng.choice(wheres)) for i, (n, size) in enumerate(needed)
    ]
    return cluster, run, tuple(gang)


def _gang(rng: Random, least: int) -> tuple[PodSet, ...]:
    return tuple(
        pods(
            rng.randint(1, 2),
            str(rng.randint(least, rng.choice([least, 4]))),
            item=item,
            where=rng.choice([on(), on(), on(zone="a")]),
            per_node=rng.random() < 0.05,
        )
        for item in range(rng.choice([1, 1, 2]))
    )


@pytest.mark.parametrize("begin", range(0, 1600, 400))
def test_the_result_fits_and_is_inclusion_minimal(begin: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(begin, begin + 400):
        rng = Random(seed)
        leaf = ""
        if rng.random() < 0.5:
            cluster, uids, sets = _brimful(rng)
        else:
            cluster, uids = _world(rng)
            sets, leaf = _gang(rng, 2), rng.choice(["red", "blue"])
        rng.shuffle(uids)

        enough = {
            some: _fits(cluster.ask(*sets, leaf=leaf), some)
            for n in range(len(uids) + 1)
            for some in combinations(uids, n)
        }
        asked = cluster.ask(*sets, leaf=leaf)
        found = fewest(asked, uids)
        first = soonest(cluster.ask(*sets, leaf=leaf), uids)
        seen["none" if found is None else f"{len(found.leaving)} leave"] += 1
        if found is None:
            assert not any(enough.values())
            assert first is None
            continue
        assert enough[found.leaving]
        for n in range(len(found.leaving)):
            assert not any(enough[some] for some in combinations(found.leaving, n))
        assert first is not None
        needed = min(n for n in range(len(uids) + 1) if enough[tuple(uids[:n])])
        assert set(first.leaving) <= set(uids[:needed])
        assert enough[first.leaving]
        assert list(found.leaving) == _one_by_one(enough, uids[:needed])
        seen["comes back"] += len(found.leaving) < needed
        cluster.capacity.check()
        cluster.forest.check()
    assert {"none", "0 leave", "1 leave", "2 leave"} <= seen.keys(), seen
    assert seen["comes back"] > 5, seen


def _fits(asked: Snapshot, some: tuple[str, ...]) -> bool:
    for uid in some:
        asked.remove(uid)
    fits = asked.fits()
    assert (asked.plan() is not None) is fits
    return fits


def _one_by_one(enough: dict[tuple[str, ...], bool], first: list[str]) -> list[str]:
    """The rule itself: from the last on, each that can be spared is restored."""
    left = list(first)
    for uid in reversed(first):
        without = tuple(one for one in left if one != uid)
        if enough[without]:
            left.remove(uid)
    return left
