"""Verdicts against brute force in small worlds."""

from hypothesis import event, given, settings
from hypothesis import strategies as st

from mcad.core.capacity import Capacity
from mcad.core.fit import greedy
from mcad.core.nodes.resources import book
from mcad.core.state.model import Node, PodSet
from mcad.core.state.waiting_reason import WaitingReason
from tests import budget
from tests.core import strategies
from tests.core.builders import (
    Host,
    cluster,
    fits_by_brute_force,
    hosts_of,
    node,
    pod,
    pods,
    refusal,
    waiting,
    wants,
)
from tests.core.fit.oracles import figures_add_up

KIND = WaitingReason


def _filled(draw: st.DataObject, nodes: dict[str, Node]) -> tuple[Capacity, dict[str, Host]]:
    capacity = cluster(*nodes.values())
    hosts = {one.node.name: one for one in hosts_of(nodes.values())}
    for i in range(draw.draw(st.integers(0, 4))):
        name = draw.draw(st.sampled_from(sorted(nodes)))
        cpu, gpu = str(draw.draw(st.integers(0, 3))), draw.draw(st.integers(0, 1))
        foreign = pod(f"p{i}", name, cpu, gpu=gpu, ports=draw.draw(strategies.PORTS))
        capacity.pod_seen(foreign)
        hosts[name].ports += foreign.ports
        for resource, n in (*foreign.request, ("pods", 1)):
            hosts[name].free[resource] = hosts[name].free.get(resource, 0) - n
    return capacity, hosts


@settings(max_examples=budget.examples(250))
@given(strategies.clusters(), strategies.gangs(most=3), st.data())
def test_a_gang_fits_if_and_only_if_brute_force_places_it(
    nodes: dict[str, Node], sets: tuple[PodSet, ...], data: st.DataObject
) -> None:
    capacity, hosts = _filled(data, nodes)
    expected = fits_by_brute_force(hosts.values(), sets)

    found = refusal(capacity, *sets)
    event("fits" if expected else f"refused: {found.reason if found else None}")
    assert (found is None) is expected
    assert found is None or found.reason is not KIND.UNDECIDED
    assert capacity.would_fit_emptied(capacity.shape(sets)) is expected
    assert (capacity.assume("w", 1, capacity.shape(sets), sets) is None) is expected


@settings(max_examples=budget.examples(250))
@given(strategies.tight())
def test_a_mixed_gang_at_the_edge_fits_if_and_only_if_brute_force_places_it(
    found: tuple[dict[str, Node], tuple[PodSet, ...]],
) -> None:
    nodes, sets = found
    capacity = cluster(*nodes.values())
    shape = capacity.shape(sets)
    expected = fits_by_brute_force(hosts_of(nodes.values()), sets)
    prospect = capacity._memory.hold(shape)
    free = greedy.Nodes(capacity._ledger.free)
    is_packed = greedy.pack(prospect, free, 0, {"cpu": 1}).plan is not None

    found = capacity.refusal(shape)
    event(f"brute force {expected}, greed {is_packed}, {found.reason if found else 'fits'}")
    assert (found is None) is expected
    assert (capacity.assume("w", 1, shape, sets) is None) is expected


@settings(max_examples=budget.examples(200))
@given(strategies.tight(), st.data())
def test_a_pod_without_a_node_counts_in_every_verdict_and_in_its_figures(
    found: tuple[dict[str, Node], tuple[PodSet, ...]], data: st.DataObject
) -> None:
    """C6. No node could hold the lost pods, so none is set aside for them: whether the gang fits is
    a matter of brute force and of the sum, after each fall or rise."""
    nodes, sets = found
    small = [node(f"small-{n}", "1", gpu=1, labels={"zone": "ab"[n % 2]}) for n in range(4)]
    nodes |= {one.name: one for one in small}
    hosts = {one.node.name: one for one in hosts_of(nodes.values())}
    capacity = cluster(*nodes.values())
    capacity.gangs.adopt("lost", 1, (pods(data.draw(st.integers(0, 3)), "100m", "99Ti"),))
    shape, there = waiting(capacity, *sets), dict.fromkeys(sorted(nodes), 0)
    for _ in range(data.draw(st.integers(1, 6))):
        capacity.place_unplaced()
        refused, fits = capacity.refusal(shape), fits_by_brute_force(hosts.values(), sets)
        event(f"{refused.reason if refused else 'fits'}, lost: {bool(capacity.report.unplaced())}")
        assert fits or refused is not None
        if refused is not None:
            assert not fits or refused.reason is KIND.INSUFFICIENT
            figures_add_up(capacity, nodes, shape, refused)
        name = data.draw(st.sampled_from(list(there)))
        rises = there[name] > 0 and data.draw(st.integers(0, 3)) > 0
        if rises:
            capacity.pod_gone(f"{name}-{there[name]}")
        there[name] += -1 if rises else 1
        if not rises:
            capacity.pod_seen(pod(f"{name}-{there[name]}", name, "1"))
        book(hosts[name].free, wants("1", pods="1"), 1 if rises else -1)


@settings(max_examples=budget.examples(100))
@given(strategies.clusters(least=2), strategies.gangs(most=6))
def test_a_refusal_of_the_sum_is_a_matter_of_arithmetic(
    nodes: dict[str, Node], sets: tuple[PodSet, ...]
) -> None:
    """Where the sum is short there is a shortage, elsewhere there is none."""
    found = refusal(cluster(*nodes.values()), *sets)

    if found is not None and found.reason in (KIND.INSUFFICIENT, KIND.TOO_LARGE):
        assert found.reason is KIND.TOO_LARGE or found.shortages[0].missing
    if found is not None and found.reason is KIND.FRAGMENTED:
        assert found.missing
    if found is not None:
        ratios = [s.missing * 10**6 // s.requested for s in found.shortages]
        assert ratios == sorted(ratios, reverse=True)
        assert all(s.available >= 0 for s in found.shortages)
