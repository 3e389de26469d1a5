"""Verdicts against brute force in small worlds."""

from hypothesis import event, given, settings
from hypothesis import strategies as st

from mcad.core.capacity import Capacity
from mcad.core.fit import greedy
from mcad.core.state.model import Node, PodSet
from mcad.core.state.waiting_reason import WaitingReason
from tests.core import strategies
from tests.core.builders import (
    Host,
    cluster,
    fits_by_brute_force,
    hosts_of,
    pod,
    refusal,
)

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


@settings(max_examples=250)
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


@settings(max_examples=250)
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


@settings(max_examples=100)
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
