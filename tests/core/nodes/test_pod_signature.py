"""Pod classes and pools: what they remember is what a look at every node would find."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from mcad.core.nodes import ledger as ledgers
from mcad.core.nodes import node_events, sorted_nodes
from mcad.core.nodes import pod_signature as classes
from mcad.core.nodes.filters import admits
from mcad.core.nodes.ledger import ChangeLog, Ledger
from mcad.core.nodes.pod_signature import UNBOUNDED, PodClass, slots
from mcad.core.nodes.pools import Pool, joint_total, largest, rough_total, sum_of, widest
from mcad.core.nodes.resources import resources
from mcad.core.nodes.shape import ClassKey
from mcad.core.state.model import Constraint, Node, Resources
from mcad.core.state.work_bounds import LOST_STEPS
from tests.core import strategies
from tests.core.builders import GPU, node, on, wants

NAMES = ["n0", "n1", "n2"]


def alike(request: Resources, cap: int = 0) -> ClassKey:
    return ClassKey(request, Constraint(), cap)


def pool_of(ledger: Ledger, **selector: str) -> Pool:
    where = on(**selector)
    return ledger.pool(lambda each: admits(each, where))


@pytest.fixture(params=[(50_000, 8, 64, 64), (2, 1, 1, 0), (6, 0, 0, 1)], ids=str)
def bounds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    told, fallen, room, short = request.param
    monkeypatch.setattr(node_events, "NEWS_MAX", told)
    monkeypatch.setattr(sorted_nodes, "FALLEN_PER_NODE", fallen)
    monkeypatch.setattr(sorted_nodes, "RISEN_SHARE", 1 if short else 8)
    monkeypatch.setattr(sorted_nodes, "TAIL_SHORT", short)
    monkeypatch.setattr(classes, "ROOM_MAX", room)
    monkeypatch.setattr(classes, "SCAN_STEP", 1 if room < 64 else 16)


# -- slots ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("free", "request_", "cap", "expected"),
    [
        ({"cpu": 10, "pods": 9}, (("cpu", 3), ("pods", 1)), 99, 3),
        ({"cpu": 10, "pods": 2}, (("cpu", 3), ("pods", 1)), 99, 2),
        ({"cpu": 10, "pods": 9}, (("cpu", 3), ("pods", 1)), 1, 1),
        ({"cpu": 2, "pods": 9}, (("cpu", 3), ("pods", 1)), 99, 0),
        ({"cpu": -9, "pods": 9}, (("cpu", 3), ("pods", 1)), 99, 0),
        ({"cpu": -9, "pods": 9}, (("pods", 1),), 99, 9),
        ({"pods": 9}, (("cpu", 3), ("pods", 1)), 99, 0),
        ({}, (("pods", 1),), 99, 0),
    ],
)
def test_slots(
    free: dict[str, int], request_: tuple[tuple[str, int], ...], cap: int, expected: int
) -> None:
    assert slots(free, request_, cap) == expected


def test_what_only_some_nodes_have_is_asked_for_first() -> None:
    ledger = Ledger()
    pods = PodClass(alike(wants("1", "1Gi", 2)), pool_of(ledger), ledger.log)

    assert [name for name, _ in pods.request] == [GPU, "cpu", "memory", "pods"]


# -- the memory of a class -----------------------------------------------------------------------


@pytest.mark.usefixtures("bounds")
@settings(max_examples=60)
@given(st.data())
def test_a_class_finds_what_a_look_at_every_node_finds_through_any_history(
    data: st.DataObject,
) -> None:
    """``missing`` is exact at zero and a lower bound beyond; ``places`` has all nodes with room."""
    ledger = Ledger()
    pool = pool_of(ledger)
    keys = [alike(wants("1")), alike(wants("3", gpu=1)), alike(wants("2"), cap=1)]
    classes_of_pods = [PodClass(key, pool, ledger.log) for key in keys]
    for step in range(data.draw(st.integers(3, 25))):
        _change(ledger, data, f"n{data.draw(st.integers(0, 5))}")
        for pods in classes_of_pods if data.draw(st.booleans()) else ():
            room = {rank: n for rank, row in pool.rows.items() if (n := pods.slots(row))}
            exact = sum(room.values())
            edge = st.integers(exact, exact + 1)
            asked = data.draw(st.integers(0, 40) if step % 2 else edge)
            missing = pods.missing(asked)
            event("fits" if not missing else "refused")
            assert (missing == 0) == (exact >= asked)
            assert missing <= max(0, asked - exact)
            if data.draw(st.booleans()):
                assert room.keys() <= {row.rank for row in pods.places()}


@pytest.mark.usefixtures("bounds")
@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 1)), min_size=1, max_size=6), st.data())
def test_followers_are_informed_in_parts_while_nodes_change(
    requests: list[tuple[int, int]], data: st.DataObject
) -> None:
    ledger = Ledger()
    pool = pool_of(ledger)
    followers = [
        PodClass(alike(wants(str(cpu), gpu=gpu), number), pool, ledger.log)
        for number, (cpu, gpu) in enumerate(requests)
    ]
    for name in NAMES:
        ledger.add(data.draw(strategies.nodes(name)))
    for follower in followers:
        follower.alarm = 1 + data.draw(st.integers(0, 3))
        follower.missing(UNBOUNDED - 1, closely=True)
        if follower.missing(follower.alarm) == 0:
            follower.alarm = UNBOUNDED  # it has enough, and waits for nothing
    for _ in range(data.draw(st.integers(1, 20))):
        if data.draw(st.booleans()):
            _change(ledger, data, data.draw(st.sampled_from(NAMES)))
        work = pool.news.report(data.draw(st.integers(1, 3)))
        assert work <= 3 + max(LOST_STEPS, len(ledger.rows)), "one more than asked for at most"
        if data.draw(st.booleans()):
            follower = data.draw(st.sampled_from(followers))
            exact = sum(follower.slots(row) for row in pool.rows.values())
            assert follower.at_most() >= exact
        assert all(follower.remembers_truly() for follower in followers)
    while pool.news.since(-1) or not pool.news.is_reported:
        pool.news.report(1)
    for follower in followers:
        exact = sum(follower.slots(row) for row in pool.rows.values())
        assert exact < follower.alarm or follower in pool.rung, "it does not know of room"


def test_what_rose_during_a_report_is_in_the_next_one() -> None:
    ledger = Ledger()
    pool = pool_of(ledger)
    followers = [PodClass(alike(wants("3"), cap), pool, ledger.log) for cap in (7, 8, 9)]
    for name in ("a", "b"):
        ledger.add(node(name, "2"))
    for follower in followers:
        assert follower.missing(9, closely=True) == 9
        follower.alarm = 1
    totals = []
    for name in ("a", "b"):
        ledger.resize(node(name, "4"))
        ledger.post()
        pool.news.report(1)
        totals.append([follower._total for follower in followers])
    assert totals == [[1, 0, 0], [1, 2, 0]], "one after the other, of all that rose by then"
    while not pool.news.is_reported:
        pool.news.report(1)
    assert [row.node.name for row in pool.news.since(0)] == ["b"], "which is news to the first"
    assert pool.news.report(50) == 1
    assert [follower._total for follower in followers] == [2, 2, 2]
    assert [follower.looked for follower in followers] == [2, 2, 2], "each node was reported once"


def test_a_follower_that_was_asked_is_not_informed_again_of_what_it_has_read() -> None:
    ledger = Ledger()
    pool = pool_of(ledger)
    follower = PodClass(alike(wants("3")), pool, ledger.log)
    assert follower.missing(9, closely=True) == 9
    ledger.add(node("a", "4"))
    assert follower.at_most() == 1
    ledger.add(node("b", "4"))
    before = follower.looked
    pool.news.report(50)
    assert follower.looked == before + 1
    assert follower.at_most() == 2


def test_no_node_is_kept_for_followers_that_have_gone() -> None:
    ledger = Ledger()
    pool = pool_of(ledger)
    follower = PodClass(alike(wants("3")), pool, ledger.log)
    assert follower.missing(9, closely=True) == 9
    ledger.add(node("a", "4"))
    assert len(pool.news.since(0)) == 1
    follower.retire()
    assert pool.news.since(0) == []


def _change(ledger: Ledger, data: st.DataObject, name: str) -> None:
    if name not in ledger.rows:
        ledger.add(data.draw(strategies.nodes(name)))
        return
    match data.draw(st.integers(0, 6)):
        case 0:
            ledger.remove(name)
        case 1:
            ledger.replace(data.draw(strategies.nodes(name)))
        case _:
            taken = wants(str(data.draw(st.integers(0, 4))), gpu=data.draw(st.integers(0, 2)))
            ledger.note(name, taken, data.draw(st.sampled_from([1, 1, -1])))
            ledger.post()


def test_a_class_that_saw_everything_looks_only_at_what_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = Ledger()
    pods = PodClass(alike(wants("3")), pool_of(ledger), ledger.log)
    for i in range(40):
        ledger.add(node(f"n{i}", "4" if i < 10 else "2"))
    assert pods.missing(11) == 1
    looked: list[int] = []
    monkeypatch.setattr(classes, "slots", lambda *a: looked.append(1) or slots(*a))  # type: ignore[func-returns-value]

    assert pods.missing(10) == 0
    assert pods.missing(11) == 1
    assert looked == []
    ledger.note("n3", wants("2"), 1)
    ledger.post()
    assert pods.missing(10) == 1
    assert len(looked) == 1


def test_a_scan_goes_on_where_the_last_one_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred gangs of one class, one after the other, look at every node once."""
    monkeypatch.setattr(classes, "SCAN_STEP", 1)
    ledger = Ledger()
    pods = PodClass(alike(wants("4")), pool_of(ledger), ledger.log)
    for i in range(60):
        ledger.add(node(f"n{i}", "4"))
    looked: list[int] = []
    monkeypatch.setattr(classes, "slots", lambda *a: looked.append(1) or slots(*a))  # type: ignore[func-returns-value]
    for _ in range(60):
        assert pods.missing(1) == 0
        row = next(iter(pods.places()))
        ledger.note(row.node.name, pods.request, 1)
        ledger.post()

    assert pods.missing(1) == 1
    assert len(looked) <= 2 * 60, "once in the scan, once when it was taken"


# -- too large -----------------------------------------------------------------------------------


def test_too_large_is_a_matter_of_one_node_not_of_each_resource() -> None:
    ledger = Ledger()
    pods = PodClass(alike(wants("4", gpu=2)), pool_of(ledger), ledger.log)
    assert pods.too_large()
    ledger.add(node("cpus", "8"))
    ledger.add(node("gpus", "2", gpu=4))
    assert pods.too_large()
    ledger.add(node("both", "4", gpu=2))
    assert not pods.too_large()
    ledger.resize(node("both", "4", gpu=1))
    assert pods.too_large()
    ledger.replace(node("gpus", "4", gpu=2, labels={"a": "b"}))
    assert not pods.too_large()
    ledger.remove("gpus")
    assert pods.too_large()


# -- pools ---------------------------------------------------------------------------------------


def _zones() -> tuple[Ledger, Pool, Pool, Pool]:
    ledger = Ledger()
    pools = pool_of(ledger), pool_of(ledger, zone="a"), pool_of(ledger, kind="x")
    for i, (zone, kind) in enumerate([("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]):
        ledger.add(node(f"n{i}", "1", labels={"zone": zone, "kind": kind}))
    return ledger, *pools


def test_the_sum_of_pools_counts_every_node_once() -> None:
    ledger, everything, a, x = _zones()
    b = pool_of(ledger, zone="b")

    assert widest((a,)) == (a,)
    assert widest((a, everything)) == (everything,)
    assert widest((everything, a, x)) == (everything,)
    assert widest((a, b)) == (a, b)
    assert widest((a, x)) is None
    assert dict(sum_of([a, b]))["cpu"] == 4000
    assert joint_total([a, x])["cpu"] == 3000
    assert rough_total([a, x])["cpu"] == 2000


def test_pools_know_how_many_nodes_they_share_as_nodes_come_and_go() -> None:
    ledger, everything, a, x = _zones()
    assert (a.shared(x), x.shared(a), a.shared(everything), a.shared(a)) == (1, 1, 2, 2)

    ledger.replace(node("n2", "1", labels={"zone": "a", "kind": "x"}))
    assert (a.shared(x), x.shared(a), a.shared(everything)) == (2, 2, 3)
    ledger.remove("n0")
    assert (a.shared(x), x.shared(a), a.shared(everything)) == (1, 1, 2)


def test_a_dropped_pool_is_no_neighbour_any_more() -> None:
    ledger, everything, a, x = _zones()
    assert a.shared(x) == 1
    ledger.keep_pools({everything: None, a: None})

    assert a.neighbours == {}
    assert ledger.pools() == [everything, a]
    assert [len(row.pools) for row in ledger.rows.values()] == [2, 2, 1, 1]


# -- the log -------------------------------------------------------------------------------------


def test_the_log_names_what_changed_since_the_latest_first() -> None:
    log = ChangeLog()
    for rank in (1, 2, 3, 1):
        log.touch(rank)

    assert log.since(0) == [1, 3, 2]
    assert log.since(2) == [1, 3]
    assert log.since(4) == []


def test_the_log_knows_when_it_has_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "CATCH_UP_MAX", 2)
    log = ChangeLog()
    for rank in (1, 2, 3):
        log.touch(rank)

    assert log.since(0) is None
    assert log.since(1) == [3, 2]
    log.tick()
    assert log.since(3) == []


def test_entries_that_cancel_out_are_no_change() -> None:
    ledger = Ledger()
    pool = pool_of(ledger)
    ledger.add(node("a"))
    before = (ledger.log.now, pool.risen, resources(pool.total))
    ledger.note("a", wants("1"), 1)
    ledger.note("a", wants("1"), -1)
    ledger.post()

    assert (ledger.log.now, pool.risen, resources(pool.total)) == before


def test_a_resource_that_the_node_does_not_have_can_be_overcommitted_and_given_back() -> None:
    ledger = Ledger()
    pool = pool_of(ledger)
    ledger.add(node("a"))
    ledger.note("a", wants(gpu=2), 1)
    ledger.post()
    assert ledger.rows["a"].free[GPU] == -2
    assert list(ledger.overcommitted) == ["a"]
    assert pool.total[GPU] == 0

    ledger.note("a", wants(gpu=2), -1)
    ledger.post()
    assert ledger.overcommitted == {}


@given(st.lists(st.sampled_from([node("a"), node("a", "2"), node("a", gpu=1)]), max_size=5))
def test_profiles_are_counted_by_kind(seen: list[Node]) -> None:
    ledger = Ledger()
    pool = pool_of(ledger)
    for each in seen:
        if "a" in ledger.rows:
            ledger.resize(each)
        else:
            ledger.add(each)

    assert [dict(p.amounts) for p in pool.profiles] == [dict(e.allocatable) for e in seen[-1:]]
    assert largest(pool) == (dict(seen[-1].allocatable) if seen else {})
