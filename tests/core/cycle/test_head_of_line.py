"""With StrictFIFO a refused AppWrapper holds its whole demand, and later ones do not overtake."""

from __future__ import annotations

from mcad.core.state.model import Node, Workload
from mcad.core.state.records import replace
from mcad.core.state.settings import Policy
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.builders import needs, on
from tests.core.quotas import GOLD, child, subtree

STRICT = replace(PATIENT, policy=Policy.STRICT_FIFO)
WHOLE = 1000
"""A pod takes a node."""


def in_zone(name: str, zone: str) -> Node:
    return replace(node(name, WHOLE), labels=(("zone", zone),))


def job(name: str, leaf: str, zones: str, pods: int = 1) -> Workload:
    work = workload(name, *[WHOLE] * pods, quota=((GOLD, leaf),))
    where = on((needs("zone", "In", *zones),))
    return replace(work, sets=tuple(replace(one, constraint=where) for one in work.sets))


def bench_of(zones: str, *, whole: int = 20, **shares: int) -> Bench:
    """A node for each letter, and hard shares of so many nodes."""
    bench = Bench(STRICT, nodes=[in_zone(f"n{at}", zone) for at, zone in enumerate(zones)])
    below = [child(leaf, hard=True, cpu=WHOLE * n) for leaf, n in shares.items()]
    root = subtree("root", child("root", cpu=WHOLE * whole))
    return bench.share(root, subtree("teams", *below, parent="root"))


def test_a_head_that_lacks_a_share_and_nodes_in_turn_starts() -> None:
    """Each time one of both comes free a later one would take it."""
    bench = bench_of("ab", red=1, green=9)
    bench.start(job("r0", "red", "b"), job("g0", "green", "a"), job("head", "red", "a"))
    for number in range(1, 6):
        bench.submit(job(f"r{number}", "red", "b"), job(f"g{number}", "green", "a"))
        bench.delete(f"uid-{next(name for name in bench.order if f'uid-{name}' in bench.works)}")
        bench.settle()
        if "head" in bench.order:
            break
    assert bench.order == ["r0", "g0", "head"]


def test_a_head_that_lacks_a_share_leaves_to_others_the_nodes_that_it_does_not_need() -> None:
    bench = bench_of("aaaaa", red=3, green=9)
    bench.start(job("r0", "red", "a", 2), job("head", "red", "a", 2))
    bench.start(job("g0", "green", "a"), job("g1", "green", "a"))
    assert bench.order == ["r0", "g0"], "two of the three free nodes are for the head"
    bench.delete("uid-r0").settle()
    assert bench.order == ["r0", "g0", "head", "g1"]


def test_a_head_that_lacks_nodes_leaves_to_others_what_it_does_not_need_of_its_share() -> None:
    bench = bench_of("ab", red=2, green=9)
    bench.start(job("g0", "green", "a"), job("head", "red", "a"))
    bench.start(job("beside", "red", "b"))
    assert bench.order == ["g0", "beside"], "the share has room for both"


def test_one_that_is_held_up_is_not_overtaken_at_the_nodes_that_it_waits_for() -> None:
    bench = bench_of("abc", red=9)
    bench.start(job("a0", "red", "a"), job("head", "red", "ab", 2))
    bench.start(job("second", "red", "bc"), job("late", "red", "c"))
    assert bench.order == ["a0"], "the second fits on c, and is behind the head at b"
    bench.delete("uid-head").settle()
    assert bench.order == ["a0", "second", "late"]


def test_one_that_is_held_up_is_not_overtaken_within_its_leaf() -> None:
    """The second would borrow at the root, where the head waits; the late one would not."""
    bench = bench_of("aaaaaaaa", whole=4, red=4)
    soft = [child("red", cpu=0), child("blue", cpu=WHOLE)]
    bench.share(subtree("teams", *soft, parent="root"))
    bench.start(job("r0", "red", "a", 2), job("head", "red", "a", 3))
    bench.start(job("second", "blue", "a", 2), job("late", "blue", "a", 1))
    assert bench.order == ["r0"]
    bench.delete("uid-head").settle()
    assert bench.order == ["r0", "second"]


def test_one_that_is_held_up_and_can_never_fit_holds_nothing() -> None:
    bench = bench_of("abc", red=9)
    bench.start(job("a0", "red", "a"), job("head", "red", "ab", 2))
    bench.start(job("second", "red", "bc", 5), job("late", "red", "c"))
    assert bench.order == ["a0", "late"]
