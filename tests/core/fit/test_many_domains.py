"""A verdict on a gang in many racks takes several passes, and is that of brute force."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mcad.core.capacity import LEFT_OFF, Capacity
from mcad.core.fit import domains, fit, greedy
from mcad.core.fit.exact import exact
from mcad.core.nodes.shape import Shape
from mcad.core.state.model import Node, PodSet, Topology
from mcad.core.state.refusal import Refusal
from mcad.core.state.settings import Settings
from mcad.core.state.waiting_reason import WaitingReason
from tests import budget
from tests.core.builders import cluster, hold, node, pods, waiting
from tests.core.racks import has_placement

WORLDS = 20_000 if budget.SOAK else 150
RACKED = Topology(("rack",), group="g")

_CPUS = st.lists(st.tuples(*2 * [st.integers(3, 6)]), min_size=1, max_size=12)
_EVENTS = st.lists(st.tuples(st.integers(0, 23), st.integers(2, 6), st.booleans()), max_size=8).map(
    tuple
)


def _gang(*demands: tuple[int, str], required: bool = True) -> tuple[PodSet, ...]:
    topology = replace(RACKED, required=required)
    return tuple(
        replace(pods(replicas, cpu, item=number), topology=topology)
        for number, (replicas, cpu) in enumerate(demands)
    )


NEARLY = _gang((2, "3"), (1, "2"))
"""Two nodes of 4 CPUs suffice in sum, and for each set by itself."""


def _in_rack(number: int, cpu: int) -> Node:
    return node(f"n{number:04}", str(cpu), labels={"rack": f"r{number // 2:03}"})


def _find(capacity: Capacity, shape: Shape, passes: int = 1000) -> Refusal | None:
    for _ in range(passes):
        refused = capacity.refusal(shape)
        if refused is not LEFT_OFF:
            return refused
        capacity.place_unplaced()
    raise AssertionError("the verdict never ends")


@settings(max_examples=budget.examples(WORLDS))
@given(_CPUS, _EVENTS, st.sampled_from([1, 30, 100]))
def test_a_verdict_of_several_passes_is_that_of_brute_force_whatever_happens_between_them(
    racks: list[tuple[int, int]], events: tuple[tuple[int, int, bool], ...], work: int
) -> None:
    nodes = {2 * n + i: cpu for n, pair in enumerate(racks) for i, cpu in enumerate(pair)}
    capacity = cluster(*(_in_rack(number, cpu) for number, cpu in nodes.items()))
    shape = waiting(capacity, *NEARLY)
    left_off = 0
    with mock.patch.object(domains, "DOMAINS_WORK", work):
        for number, cpu, waits in (*events, (0, nodes[0], True)):
            if number in nodes:
                nodes[number] = cpu
                capacity.node_seen(_in_rack(number, cpu))
            refused = capacity.refusal(shape)
            left_off += refused is LEFT_OFF
            capacity.place_unplaced()
            if waits:
                refused = _find(capacity, shape)
                seen = [_in_rack(number, cpu) for number, cpu in nodes.items()]
                assert (refused is None) is has_placement(seen, NEARLY)
                assert refused is None or refused.reason is not WaitingReason.UNDECIDED
    event(f"left off {min(left_off, 3)} times")
    capacity.check()


@settings(max_examples=budget.examples(WORLDS // 3))
@given(_CPUS, st.sampled_from([1, 30]))
def test_a_test_on_emptied_nodes_that_takes_several_passes_is_that_of_brute_force(
    racks: list[tuple[int, int]], work: int
) -> None:
    nodes = [_in_rack(2 * n + i, cpu) for n, pair in enumerate(racks) for i, cpu in enumerate(pair)]
    capacity = cluster(*nodes)
    hold(capacity, "holder", pods(len(nodes), "3"))
    shape = waiting(capacity, *NEARLY)
    with mock.patch.object(domains, "DOMAINS_WORK", work):
        answers = [capacity.would_fit_emptied(shape) for _ in range(2 * len(racks) + 2)]
    assert answers[-1] is has_placement(nodes, NEARLY)
    assert {*answers[: answers.index(answers[-1])]} <= {None}


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One number for each exact search."""
    found: list[int] = []

    def counted(*args: Any) -> object:
        found.append(len(found))
        return exact(*args)

    monkeypatch.setattr(greedy, "exact", counted)
    return found


def test_each_rack_is_searched_once_and_so_many_in_one_pass(searches: list[int]) -> None:
    """A rack that gained room is searched again, and no other."""
    capacity = cluster(*(_in_rack(number, 4) for number in range(512)))
    shape = waiting(capacity, *NEARLY)
    each = []
    while True:
        before = len(searches)
        refused = capacity.refusal(shape)
        each.append(len(searches) - before)
        if refused is not LEFT_OFF:
            break
        capacity.place_unplaced()
    assert sum(each) == 256
    assert max(each) <= domains.DOMAINS_WORK // 40
    assert refused is not None
    assert refused.reason is WaitingReason.NO_DOMAIN

    searches.clear()
    assert capacity.questions().refusal(shape) == refused
    capacity.node_gone("n0007")
    capacity.node_seen(_in_rack(7, 4))
    assert capacity.refusal(shape) == refused
    assert len(searches) == 1
    capacity.node_seen(_in_rack(7, 8))
    assert capacity.refusal(shape) is None


def test_people_hear_that_a_verdict_that_was_left_off_is_undecided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(domains, "DOMAINS_WORK", 1)
    capacity = cluster(*(_in_rack(number, 4) for number in range(8)))
    shape = waiting(capacity, *NEARLY)
    assert capacity.refusal(shape) is LEFT_OFF
    asked = capacity.questions().refusal(shape)
    assert asked is not None
    assert asked.reason is WaitingReason.UNDECIDED
    assert capacity.questions().would_fit_emptied(shape), "for all that is known"


def test_beyond_all_its_work_a_verdict_is_undecided_and_a_preference_counts_as_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(domains, "DOMAINS_WORK", 1)
    monkeypatch.setattr(domains, "DOMAINS_WORK_MAX", 4)
    capacity = cluster(*(_in_rack(number, 4) for number in range(20)))
    verdicts = []
    for sets in (NEARLY, _gang((2, "3"), (1, "2"), required=False)):
        shape = waiting(capacity, *sets)
        passes = [capacity.refusal(shape) for _ in range(4)]
        assert [one is LEFT_OFF for one in passes] == [True, True, True, False]
        verdicts.append(passes[-1])
    refused, preferring = verdicts
    assert refused is not None
    assert refused.reason is WaitingReason.UNDECIDED
    assert preferring is None


def test_the_work_of_one_verdict_does_not_count_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(domains, "DOMAINS_WORK", 100)
    monkeypatch.setattr(domains, "DOMAINS_WORK_MAX", 1600)
    capacity = cluster(*(_in_rack(number, 4) for number in range(40)))
    shape = waiting(capacity, *NEARLY)
    for _ in range(4):
        refused = _find(capacity, shape)
        assert refused is not None
        assert refused.reason is WaitingReason.NO_DOMAIN
        for number in range(40):
            capacity.node_gone(f"n{number:04}")
            capacity.node_seen(_in_rack(number, 4))


def test_a_rack_whose_search_was_put_off_is_searched_in_the_next_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No greedy order finds the places in it: 4, 4 and 3 on one node, 3 and 3 on the other."""
    monkeypatch.setattr(fit, "EXACT_WORK_PER_PASS_MAX", 3)
    capacity = cluster(_in_rack(0, 11), _in_rack(1, 6), node("elsewhere", "20"))
    shape = waiting(capacity, *_gang((3, "3"), (2, "4")))
    capacity.place_unplaced()
    refused = capacity.refusal(shape)
    assert refused is not None
    assert refused.reason is WaitingReason.UNDECIDED
    monkeypatch.setattr(fit, "EXACT_WORK_PER_PASS_MAX", 300_000)
    capacity.place_unplaced()
    assert capacity.refusal(shape) is None


def test_a_gang_without_topology_is_put_together_as_far_as_a_pass_gets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It does not wait for that; the next one of its kind goes on where this one ended."""
    monkeypatch.setattr(domains, "DOMAINS_WORK", 300)
    nodes = [_in_rack(number, 4) for number in range(16)]
    whole = [node(f"z{n}", "8", labels={"rack": "z"}) for n in (0, 1)]
    capacity = cluster(*nodes, *whole, settings=Settings(topology_levels=("rack",)))
    sets = tuple(replace(one, topology=None) for one in NEARLY)
    shape = waiting(capacity, *sets)
    found = []
    for number in range(6):
        assert capacity.assume(f"w{number}", 1, shape, sets) is None
        found.append(capacity.preferred_domain(f"w{number}"))
        capacity.gangs.release(f"w{number}")
    assert found[0] is None
    assert found[-1] == ("rack", "z")
