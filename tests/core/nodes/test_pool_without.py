"""Pools that are another without a few nodes: in each answer like a pool of all admitted nodes."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from mcad.core.fit import shape_cache
from mcad.core.fit.shape_cache import Memory
from mcad.core.nodes import pools
from mcad.core.nodes.filters import admits
from mcad.core.nodes.ledger import Ledger
from mcad.core.nodes.pod_signature import PodClass, slots
from mcad.core.nodes.pool_without import PoolWithout, unwanted, without_not_in
from mcad.core.nodes.pools import KeptPool, Pool, largest, meet, pools_sharing
from mcad.core.nodes.resources import resources
from mcad.core.nodes.shape import ClassKey
from mcad.core.state.model import Constraint, Node, Requirement
from tests.core.builders import needs, node, on, taint, tolerates, wants

NAMES = [f"n{i}" for i in range(5)]
KEYS, VALUES = ("zone", "kind", "kubernetes.io/hostname"), ("a", "b", "")


@st.composite
def labelled(draw: st.DrawFn, name: str) -> Node:
    """A node with some of the labels; tainted, cordoned or not ready now and then."""
    labels = draw(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=3))
    return node(
        name,
        str(draw(st.integers(0, 4))),
        labels=labels,
        taints=draw(st.sampled_from([(), (), (taint("team"),)])),
        ready=draw(st.sampled_from([True] * 5 + [False])),
        cordoned=draw(st.sampled_from([False] * 5 + [True])),
    )


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    """Mostly ``NotIn``; sometimes without values, which is an error, or of a field."""
    operator = draw(st.sampled_from(["NotIn"] * 5 + ["In", "Exists", "DoesNotExist"]))
    if draw(st.sampled_from([False] * 7 + [True])):
        return needs("metadata.name", operator, draw(st.sampled_from(NAMES)), field=True)
    has_values = operator in ("In", "NotIn")
    values = draw(st.lists(st.sampled_from(VALUES), max_size=2)) if has_values else []
    return needs(draw(st.sampled_from(KEYS)), operator, *values)


@st.composite
def constraints(draw: st.DrawFn) -> Constraint:
    """Up to three terms of up to three requirements, with a selector or a toleration at times."""
    terms = draw(st.lists(st.lists(requirements(), max_size=3).map(tuple), max_size=3))
    return on(
        *terms,
        tolerating=draw(st.sampled_from([(), (tolerates("team"),)])),
        node_name=draw(st.sampled_from([""] * 8 + NAMES[:1])),
        **draw(st.sampled_from([{}, {}, {}, {"zone": "a"}])),
    )


REQUESTS = (wants("1"), wants("2"), wants("1", gpu=1), wants("0"))


def rebuilt(ledger: Ledger, where: Constraint) -> KeptPool:
    """A pool of the nodes of now, each of them looked at."""
    pool = KeptPool(lambda each: admits(each, where))
    for row in sorted(ledger.rows.values(), key=lambda row: row.rank):
        pool.offer(row, ledger.log.now)
    for row in pool.rows.values():
        del row.pools[pool]
    return pool


def compare(pool: Pool, plain: KeptPool) -> None:
    """Everything that can be asked of both."""
    assert dict(pool.rows) == plain.rows
    assert list(pool.rows.values()) == list(plain.rows.values())
    assert len(pool.rows) == len(plain.rows)
    assert all((rank in pool.rows) == (rank in plain.rows) for rank in range(60))
    assert resources(dict(pool.total)) == resources(plain.total)
    assert dict(pool.profiles) == plain.profiles
    assert largest(pool) == largest(plain)


def compare_class(pods: PodClass) -> None:
    """The slots that the class finds are those of all its nodes."""
    there = {row.rank: slots(row.free, pods.request, pods.cap) for row in pods.pool.rows.values()}
    there = {rank: n for rank, n in there.items() if n}
    everything = sum(there.values())
    assert pods.remembers_truly()
    if len(pods.request) == 1 and not pods.request[0][1]:
        return
    for wanted in (1, everything, everything + 1):
        missing = pods.missing(wanted, closely=True)
        assert (missing == 0) == (everything >= wanted)
    assert pods.at_most() >= everything
    found = {row.rank for row in pods.places()}
    assert there.keys() <= found <= pods.pool.rows.keys()
    if known := pods.rows_with_room():
        assert there.keys() <= {row.rank for row in known}
    fits_empty = any(slots(row.profile.amounts, pods.request) for row in pods.pool.rows.values())
    assert pods.too_large() != fits_empty


def change(data: st.DataObject, ledger: Ledger) -> None:
    """A node comes, changes or goes, or what is used on it does."""
    name = data.draw(st.sampled_from(NAMES))
    if name not in ledger.rows:
        ledger.add(data.draw(labelled(name)))
        return
    what = data.draw(st.sampled_from(["replace", "remove", "resize", "use", "use", "free"]))
    event(what)
    match what:
        case "replace":
            ledger.replace(data.draw(labelled(name)))
        case "remove":
            ledger.remove(name)
        case "resize":
            known = ledger.rows[name].node
            cpu = str(data.draw(st.integers(0, 4)))
            taken = {key: getattr(known, key) for key in ("labels", "taints", "ready")}
            new = node(name, cpu, labels=dict(taken["labels"]), taints=taken["taints"])
            if (new.labels, new.taints, known.ready, known.unschedulable) == (
                known.labels,
                known.taints,
                True,
                False,
            ):
                ledger.resize(new)
        case "use":
            ledger.note(name, wants("1"), 1)
        case "free":
            ledger.note(name, wants("1"), -1)
    ledger.post()


@settings(max_examples=200)
@given(st.data())
def test_pools_without_nodes_answer_as_pools_of_all_others(data: st.DataObject) -> None:
    ledger = Ledger()
    memory = Memory(ledger, on_nodes=True)
    for name in NAMES[: data.draw(st.integers(0, 5))]:
        ledger.add(data.draw(labelled(name)))
    wanted = data.draw(st.lists(constraints(), min_size=1, max_size=3))
    held = [
        memory.hold_class(ClassKey(data.draw(st.sampled_from(REQUESTS)), one, 0)) for one in wanted
    ]
    event(f"{sum(isinstance(pods.pool, PoolWithout) for pods in held)} are without nodes")
    for _ in range(data.draw(st.integers(0, 6))):
        change(data, ledger)
        plain = [rebuilt(ledger, one) for one in wanted]
        for one, pods in zip(plain, held, strict=True):
            compare(pods.pool, one)
            compare_class(pods)
            for other, more in zip(plain, held, strict=True):
                both = len(one.rows.keys() & other.rows.keys())
                assert pods.pool.shared(more.pool) == both
            kept = ledger.pools()
            assert set(pools_sharing(pods.pool, kept)) == {
                each for each in kept if meet(pods.pool, each)
            }


def test_pools_that_take_too_long_to_compare_all_count_as_pools_sharing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = Ledger()
    for name, zone in (("a", "a"), ("b", "a"), ("c", "b")):
        ledger.add(node(name, "1", labels={"zone": zone}))
    first, second = (
        ledger.pool(lambda one, to=to: admits(one, to)) for to in (on(zone="a"), on(zone="b"))
    )
    assert set(pools_sharing(first, ledger.pools())) == {first}
    monkeypatch.setattr(pools, "MEMBERSHIPS_PER_POOL", 0.5)  # one pair of a node and a pool
    assert set(pools_sharing(first, ledger.pools())) == {first, second}


@given(constraints(), st.data())
def test_a_node_that_only_not_in_keeps_out_has_an_unwanted_label(
    where: Constraint, data: st.DataObject
) -> None:
    one = data.draw(labelled("n0"))
    wider = admits(one, without_not_in(where))
    if admits(one, where):
        assert wider
    elif wider:
        assert not set(unwanted(where)).isdisjoint(one.labels)


def test_a_list_of_unwanted_hosts_costs_no_look_at_every_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = Ledger()
    memory = Memory(ledger, on_nodes=True)
    for number in range(200):
        ledger.add(node(f"n{number}", "2", labels={"host": f"n{number}"}))
    memory.hold_class(ClassKey(wants("1"), on(), 0))
    asked = 0

    def counted(each: Node, constraint: Constraint) -> bool:
        nonlocal asked
        asked += 1
        return admits(each, constraint)

    monkeypatch.setattr("mcad.core.nodes.pool_without.admits", counted)
    monkeypatch.setattr(shape_cache, "admits", counted)
    for number in range(100):
        unwanted_hosts = needs("host", "NotIn", f"n{number}", f"n{number + 1}")
        pods = memory.hold_class(ClassKey(wants("2"), on((unwanted_hosts,)), 0))
        assert pods.missing(199, closely=True) == 1
        assert len(pods.pool.rows) == 198
    assert asked == 200

    ledger.remove("n0")
    ledger.add(node("n0", labels={"host": "n0"}))
    assert [len(pool.rows) for pool in ledger.pools_without()] == [198] * 100
    assert asked <= 210


def test_a_long_list_of_unwanted_nodes_has_a_pool_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shape_cache, "WITHOUT_MAX", 1)
    ledger = Ledger()
    memory = Memory(ledger, on_nodes=True)
    for name in NAMES:
        ledger.add(node(name, labels={"host": name}))

    def pool_of(*hosts: str) -> Pool:
        return memory.hold_class(
            ClassKey(wants("1"), on((needs("host", "NotIn", *hosts),)), 0)
        ).pool

    assert isinstance(pool_of("n0"), PoolWithout)
    assert isinstance(pool_of("n0", "n1"), KeptPool)


def test_nodes_are_offered_to_pools_that_may_admit_them_only() -> None:
    ledger = Ledger()
    memory = Memory(ledger, on_nodes=True)
    asked: list[str] = []

    class Selects:
        def __init__(self, where: Constraint) -> None:
            self.where = where

        def __call__(self, each: Node) -> bool:
            asked.append(str(self.where))
            return admits(each, self.where)

    for zone in "abcd":
        where = on((needs("zone", "In", zone),), kind="x")
        ledger.pool(Selects(where), ledger.demanded(where))
    ledger.pool(Selects(on(node_name="n7")), ledger.demanded(on(node_name="n7")))
    ledger.add(node("n7", labels={"zone": "a"}))
    assert memory.everywhere.rows
    assert asked == [str(on(node_name="n7"))]
