"""AppWrappers are removed from a snapshot: against a capacity that they have really left, and in
small tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcad.core.capacity import Capacity
from mcad.core.nodes.ledger import Plan
from mcad.core.nodes.shape import Shape
from mcad.core.snapshot.snapshot import Snapshot, Where
from mcad.core.state.model import Node, Pod, PodPhase, PodSet
from mcad.core.state.settings import Fit, Settings
from mcad.core.state.work_bounds import SHIFT_STEPS
from tests import budget
from tests.core import strategies
from tests.core.builders import AGGREGATE, cluster, hold, node, on, pod, pods, port

Step = Callable[[Capacity], object]


def placed(plan: Plan | None) -> dict[tuple[int, str], int]:
    """By part and node, how many pods."""
    return {(sets[0], row.node.name): times for sets, row, times in plan or []}


def what_if(capacity: Capacity, *sets: PodSet, lifted: tuple[str, ...] = ()) -> Snapshot:
    return capacity.what_if(capacity.shape(sets), lifted)


def bound(capacity: Capacity, uid: str, name: str, cpu: str = "1", **more: object) -> None:
    """One pod of an AppWrapper."""
    capacity.pod_seen(pod(f"{uid}-{name}", name, cpu, of=uid, **more))


# -- tables --------------------------------------------------------------------------------------


def test_what_leaves_gives_back_its_pods_and_its_reservation() -> None:
    capacity = cluster(node("n1", "4"), node("n2", "4"))
    hold(capacity, "a", pods(2, "3"))
    capacity.pod_seen(pod("a0", "n1", "3", of="a", item=0, index=0, attempt=1))
    asked = what_if(capacity, pods(2, "4"))

    assert not asked.fits()
    assert asked.plan() is None
    assert asked.remove("a")
    assert placed(asked.plan()) == {(0, "n1"): 1, (0, "n2"): 1}
    asked.restore("a")
    assert not asked.fits()
    capacity.check()


def test_an_appwrapper_without_pods_there_does_not_matter() -> None:
    capacity = cluster(node("n1", "4", labels={"zone": "a"}), node("n2", "4", labels={"zone": "b"}))
    hold(capacity, "a", pods(1, "4", where=on(zone="a")))
    hold(capacity, "b", pods(1, "4", where=on(zone="b")))
    asked = what_if(capacity, pods(1, "4", where=on(zone="b")))

    assert not asked.remove("a")
    assert not asked.remove("unknown")
    assert asked.remove("b")
    assert placed(asked.plan()) == {(0, "n2"): 1}


def test_of_a_node_that_is_too_small_even_if_empty_none_is_removed() -> None:
    capacity = cluster(node("n1", "2"), node("n2", "4"))
    hold(capacity, "a", pods(1, "2"))
    hold(capacity, "b", pods(1, "4"))
    where = {uid: capacity.gangs.nodes_of(uid) for uid in "ab"}
    asked = what_if(capacity, pods(1, "3"))

    assert where == {"a": ["n1"], "b": ["n2"]}
    assert not asked.remove("a")
    assert asked.remove("b")
    assert asked.fits()


def test_what_foreign_pods_hold_is_not_given_back() -> None:
    capacity = cluster(node("n1", "4"))
    capacity.pod_seen(pod("foreign", "n1", "2"))
    hold(capacity, "a", pods(1, "2"))

    assert what_if(capacity, pods(1, "3")).hopeless
    assert not what_if(capacity, pods(1, "2")).hopeless


def test_a_terminating_pod_is_given_back_and_a_terminal_one_has_nothing() -> None:
    capacity = cluster(node("n1", "2"))
    bound(capacity, "a", "n1", terminating=True)
    bound(capacity, "b", "n1")
    bound(capacity, "c", "n1", phase=PodPhase.SUCCEEDED)
    asked = what_if(capacity, pods(1, "2"))

    assert not asked.remove("c")
    assert asked.remove("b")
    assert not asked.fits()
    assert asked.remove("a")
    assert asked.fits()


def test_a_daemon_set_needs_each_of_its_nodes() -> None:
    capacity = cluster(node("n1", "2"), node("n2", "2"))
    bound(capacity, "a", "n1", "2")
    bound(capacity, "b", "n2", "2")
    asked = what_if(capacity, pods(0, "1", per_node=True))

    asked.remove("a")
    assert not asked.fits()
    asked.remove("b")
    assert placed(asked.plan()) == {(0, "n1"): 1, (0, "n2"): 1}


def test_a_daemon_set_and_workers_are_judged_together() -> None:
    capacity = cluster(node("n1", "2"), node("n2", "2"))
    bound(capacity, "a", "n1", "1")
    bound(capacity, "b", "n2", "1")
    asked = what_if(capacity, pods(0, "1", per_node=True), pods(1, "1", item=1))

    assert not asked.fits()
    asked.remove("b")
    assert placed(asked.plan()) == {(0, "n1"): 1, (0, "n2"): 1, (1, "n2"): 1}


def test_a_cap_per_node_counts_only_the_gangs_own_pods() -> None:
    capacity = cluster(node("n1", "4"), node("n2", "4"))
    spread = pods(2, "2", cap=1)
    hold(capacity, "a", spread)
    bound(capacity, "c", "n1", "2")
    asked = what_if(capacity, spread)

    assert not asked.fits()
    asked.remove("c")
    assert placed(asked.plan()) == {(0, "n1"): 1, (0, "n2"): 1}


def test_a_host_port_is_given_back() -> None:
    capacity = cluster(node("n1", "4"))
    capacity.pod_seen(pod("a0", "n1", "1", of="a", ports=[port(80)]))
    wanted = pods(1, "1", ports=[port(80)])
    capacity.remember(capacity.shape((wanted,)))
    asked = what_if(capacity, wanted)

    assert not asked.fits()
    asked.remove("a")
    assert asked.fits()


def test_one_node_is_in_one_claim() -> None:
    capacity = cluster(node("n1", "4"), node("n2", "2"))
    sets = (pods(1, "2"),)
    bound(capacity, "a", "n1", "4")
    theirs = what_if(capacity, *sets)
    theirs.remove("a")
    plan = [one for one in theirs.plan() or [] if one[1].node.name == "n1"]
    capacity.reserve("owner", 1, capacity.shape(sets), sets, plan or _on(capacity, "n1"))

    asked = what_if(capacity, pods(1, "4"))
    assert asked.hopeless
    assert not asked.remove("a")
    lifting = what_if(capacity, pods(1, "4"), lifted=("owner",))
    assert not lifting.fits()
    assert lifting.remove("a")
    assert placed(lifting.plan()) == {(0, "n1"): 1}
    capacity.check()


def test_room_on_other_nodes_than_the_named_ones_is_of_no_use() -> None:
    capacity = cluster(node("n1", "4"), node("n2", "4"))
    bound(capacity, "a", "n1", "4")
    asked = capacity.what_if(capacity.shape((pods(1, "3"),)), where=Where(("n1", "gone")))

    assert not asked.fits()
    assert asked.remove("a")
    assert placed(asked.plan()) == {(0, "n1"): 1}


def _on(capacity: Capacity, name: str) -> Plan:
    return [((0,), capacity._ledger.rows[name], 1)]


def test_while_something_without_a_node_could_go_there_nothing_is_planned() -> None:
    """Not even on the small node, which is not set aside for it."""
    capacity = cluster(node("n1", "4"), node("n2", "4"), node("n3", "2"))
    hold(capacity, "lost", pods(2, "3"))
    capacity.node_gone("n2")
    capacity.place_unplaced()
    assert capacity.gangs.unplaced("lost")
    assert what_if(capacity, pods(1, "1")).hopeless


def test_a_node_is_set_aside_until_the_next_pass() -> None:
    capacity = cluster(node("n1", "4"), node("n2", "4"))
    hold(capacity, "lost", pods(2, "3"))
    capacity.node_gone("n2")
    capacity.place_unplaced()
    capacity.gangs.release("lost")
    assert not what_if(capacity, pods(1, "1")).fits()
    capacity.place_unplaced()
    assert what_if(capacity, pods(1, "1")).fits()


def test_in_a_sum_what_has_no_node_counts_as_well() -> None:
    capacity = cluster(node("n1", "4"), settings=AGGREGATE)
    sets = (pods(2, "3"),)
    capacity.gangs.adopt("a", 1, sets)
    capacity.place_unplaced()
    asked = what_if(capacity, pods(1, "4"))

    assert not asked.fits()
    assert asked.remove("a")
    assert placed(asked.plan()) == {(0, "n1"): 1}
    asked.restore("a")
    assert not asked.fits()


def test_in_a_sum_the_plan_may_hold_fewer_pods() -> None:
    capacity = cluster(node("n1", "3"), node("n2", "3"), settings=AGGREGATE)
    bound(capacity, "a", "n1", "3")
    asked = what_if(capacity, pods(3, "2"))

    assert not asked.fits()
    asked.remove("a")
    assert placed(asked.plan()) == {(0, "n1"): 1, (0, "n2"): 1}


def test_no_search_where_one_part_lacks_room_by_itself() -> None:
    capacity = cluster(node("n1", "4"), node("n2", "4"))
    bound(capacity, "a", "n2", "4")
    asked = what_if(capacity, pods(2, "3"), pods(1, "1", item=1))
    before = asked.steps

    assert not asked.suffices()
    assert not asked.fits()
    assert asked.steps == before
    asked.remove("a")
    assert asked.fits()
    assert asked.steps > before + SHIFT_STEPS


def test_a_search_that_costs_too_much_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcad.core.snapshot.way.WHAT_IF_WORK_MAX", 1)
    asked = _whose_pods_have_to_change_places()

    asked.remove("a")
    assert asked.fits()
    asked.restore("a")
    assert not asked.fits()
    asked.remove("b")
    assert asked.suffices()
    assert not asked.fits()
    asked.remove("a")
    assert asked.fits(), "what was found before has room again"


def _whose_pods_have_to_change_places() -> Snapshot:
    """Without a, the larger pod is where a was, and the smaller one on n3; with a and without b, it
    has to be on n3 and the smaller one where b was."""
    capacity = cluster(node("n1", "3"), node("n2", "2"), node("n3", "3"))
    bound(capacity, "a", "n1", "3")
    bound(capacity, "b", "n2", "2")
    return what_if(capacity, pods(1, "3"), pods(1, "2", item=1))


def test_a_plan_stands_while_its_nodes_have_room_and_else_it_is_made_anew() -> None:
    asked = _whose_pods_have_to_change_places()
    asked.remove("a")
    assert placed(asked.plan()) == {(0, "n1"): 1, (1, "n3"): 1}
    asked.restore("a")
    asked.remove("b")
    assert placed(asked.plan()) == {(0, "n3"): 1, (1, "n2"): 1}
    before = asked.steps
    asked.remove("a")
    assert placed(asked.plan()) == {(0, "n3"): 1, (1, "n2"): 1}
    assert asked.steps == before + SHIFT_STEPS, "no search"


def test_a_pod_whose_node_is_taken_again_moves_without_a_search() -> None:
    capacity = cluster(node("n1", "4"), node("n2", "2"), node("n3", "3"))
    bound(capacity, "a", "n1", "4")
    bound(capacity, "b", "n2", "2")
    asked = what_if(capacity, pods(1, "3"), pods(1, "2", item=1))
    asked.remove("b")
    assert asked.fits()
    assert placed(asked.plan()) == {(0, "n3"): 1, (1, "n2"): 1}
    before = asked.steps

    asked.remove("a")
    asked.restore("b")
    assert asked.fits()
    assert placed(asked.plan()) == {(0, "n3"): 1, (1, "n1"): 1}
    assert asked.steps == before + 2 * SHIFT_STEPS


# -- against a capacity that they have really left ----------------------------------------------


def _history(data: st.DataObject, nodes: dict[str, Node], uids: list[str]) -> list[Step]:
    """Reservations, of which some pods are bound, and pods of no known attempt."""
    steps: list[Step] = []
    for uid in uids:
        sets = data.draw(strategies.gangs(most=2))
        steps.append(partial(_reserve, uid=uid, sets=sets))
        bound = range(data.draw(st.integers(0, 3)))
        steps += [partial(_bind, uid=uid, number=number) for number in bound]
    for number in range(data.draw(st.integers(0, 3))):
        name, owner = (
            data.draw(st.sampled_from(sorted(nodes))),
            data.draw(st.sampled_from(["", *uids])),
        )
        stray = pod(
            f"p{number}",
            name,
            str(data.draw(st.integers(0, 2))),
            gpu=data.draw(st.integers(0, 1)),
            of=owner,
            attempt=9,
            ports=data.draw(strategies.PORTS),
        )
        steps.append(partial(Capacity.pod_seen, pod=stray))
    return steps


def _reserve(capacity: Capacity, uid: str, sets: tuple[PodSet, ...]) -> None:
    capacity.assume(uid, 1, capacity.shape(sets), sets)


def _bind(capacity: Capacity, uid: str, number: int) -> None:
    """A pod of one of its sets is bound where a slot is reserved for it."""
    reservation = capacity._assumed.by_uid.get(uid)
    for one in reservation.allotments if reservation is not None else ():
        for name in list(one.at)[:1]:
            work = one.pod_set
            capacity.pod_seen(
                Pod(
                    f"{uid}-{number}",
                    "default",
                    f"{uid}-{number}",
                    name,
                    PodPhase.RUNNING,
                    work.request,
                    workload=uid,
                    item=work.item,
                    index=work.index,
                    attempt=1,
                    ports=work.ports,
                )
            )
            capacity.place_unplaced()
            return


def _made(nodes: dict[str, Node], steps: list[Step], fit: Fit) -> Capacity:
    made = cluster(*nodes.values(), settings=Settings(fit=fit))
    for step in steps:
        step(made)
    made.place_unplaced()
    return made


def _really_leave(capacity: Capacity, uid: str) -> None:
    for use in list(capacity._pod_index.uses.values()):
        if use.pod.workload == uid:
            capacity.pod_gone(use.pod.uid)
    capacity.gangs.release(uid)


@pytest.mark.drawn
@pytest.mark.parametrize("fit", [*Fit])
def test_it_fits_if_and_only_if_it_does_when_they_have_left(fit: Fit) -> None:
    uids = ["a", "b", "c"]
    seen: Counter[str] = Counter()

    @settings(max_examples=budget.examples(500))
    @given(strategies.clusters(), strategies.gangs(most=2), st.data())
    def check(nodes: dict[str, Node], sets: tuple[PodSet, ...], data: st.DataObject) -> None:
        steps = _history(data, nodes, uids)
        capacity, other = _made(nodes, steps, fit), _made(nodes, steps, fit)
        shape = capacity.shape(sets)
        for each in (capacity, other):
            each.remember(shape)
        asked = capacity.what_if(shape)
        few = data.draw(st.permutations(uids))[: data.draw(st.integers(0, 3))]
        moves = [*few, *data.draw(st.lists(st.sampled_from(uids), max_size=3))]
        gone: set[str] = set()
        for uid in moves:
            if uid in gone:
                asked.restore(uid)
                gone.discard(uid)
            else:
                useful = asked.remove(uid)
                gone.update([uid] if useful else [])
                seen["leaves" if useful else "has nothing of use"] += 1
        seen[_compare((capacity, other), shape, asked, gone)] += 1

    check()
    assert {"leaves", "has nothing of use", "fits because", "does not fit"} <= seen.keys(), seen


def _compare(
    twins: tuple[Capacity, Capacity], shape: Shape, asked: Snapshot, gone: set[str]
) -> str:
    capacity, other = twins
    before = capacity.refusal(shape)
    fits = asked.fits()
    plan = asked.plan()
    for uid in gone:
        _really_leave(other, uid)
    other.place_unplaced()
    expected = other.refusal(shape) is None
    if capacity._on_nodes and capacity._unplaced_pods.by_class:
        assert expected or not fits  # the nodes set aside may be free again when some have left
        return "adrift"
    assert fits is expected
    assert (plan is not None) is expected
    assert asked.suffices() or not fits
    for uid in gone:
        asked.restore(uid)
    assert asked.fits() is (before is None)
    capacity.check()
    if plan and capacity._on_nodes:
        assert sum(n for _, _, n in plan) == sum(
            part.replicas for part in other._memory.remembered(shape).parts
        )
        there = [(sets, other._ledger.rows[row.node.name], n) for sets, row, n in plan]
        other._assumed.place(other.gangs.begin("w", 1, shape.sets), there)
        overcommitted = set(other._ledger.overcommitted)
        other._ledger.post()
        assert set(other._ledger.overcommitted) == overcommitted
        assert not other.gangs.unplaced("w")
    return "does not fit" if not expected else "fits because" if before else "fits"
