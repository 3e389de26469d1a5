"""Host ports: a pod is kept away from pods with its port, and from no others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcad.core.nodes import ledger as ledgers
from mcad.core.nodes.host_ports import load
from mcad.core.state import work_bounds
from mcad.core.state.model import HostPort, PodPhase
from mcad.core.state.waiting_reason import WaitingReason
from tests.core.builders import (
    AGGREGATE,
    cluster,
    figures,
    fits,
    free_on,
    hold,
    node,
    on,
    pod,
    pods,
    port,
    ports_conflict,
    refusal,
    report_of,
    wants,
)

ADDRESSES = ("0.0.0.0", "10.0.0.1", "10.0.0.2", "::")
HOST_PORTS = st.builds(
    HostPort, st.sampled_from(["TCP", "UDP"]), st.sampled_from([80, 81]), st.sampled_from(ADDRESSES)
)
PORT_LISTS = st.lists(HOST_PORTS, max_size=4, unique=True).map(tuple)


def test_a_port_of_a_live_pod_is_taken_until_it_ends() -> None:
    capacity = cluster(node("a"))
    capacity.pod_seen(pod("x", "a", ports=[port(80)]))
    assert not fits(capacity, pods(1, ports=[port(80)]))
    capacity.pod_seen(pod("x", "a", ports=[port(80)], phase=PodPhase.SUCCEEDED))
    assert fits(capacity, pods(1, ports=[port(80)]))


def test_binding_moves_the_port_from_reservation_to_use() -> None:
    capacity = cluster(node("a"), node("b"))
    one = pods(2, ports=[port(80)])
    hold(capacity, "one", one)
    capacity.pod_seen(pod("x", "a", of="one", item=0, index=0, ports=one.ports))
    assert capacity.gangs.outstanding("one") == (1,)
    assert not fits(capacity, pods(1, ports=[port(80)]))


def test_a_node_that_comes_later_has_the_port_free() -> None:
    capacity = cluster(node("a"))
    capacity.pod_seen(pod("x", "a", ports=[port(80)]))
    capacity.pod_seen(pod("y", "b", ports=[port(81)]))
    capacity.node_seen(node("b"))
    assert fits(capacity, pods(1, ports=[port(80)]))
    assert not fits(capacity, pods(1, ports=[port(80), port(81)]))


@given(PORT_LISTS, st.lists(PORT_LISTS, max_size=3))
def test_a_pod_finds_a_node_free_exactly_where_kube_scheduler_does(
    wanted: tuple[HostPort, ...], there: list[tuple[HostPort, ...]]
) -> None:
    capacity = cluster(node("a"))
    for i, taken in enumerate(there):
        capacity.pod_seen(pod(f"p{i}", "a", "0", ports=taken))
    conflict = any(ports_conflict(one, other) for one in wanted for t in there for other in t)

    assert fits(capacity, pods(1, "0", ports=wanted)) is not conflict


def test_a_refusal_calls_a_port_by_its_number() -> None:
    capacity = cluster(node("a"), node("b"), node("c", labels={"zone": "c"}))
    for name in "ab":
        capacity.pod_seen(pod(name, name, ports=[port(8080)]))
    found = refusal(capacity, pods(2, ports=[port(8080)]))
    assert figures(found)[0] == ("host port 8080/TCP", 2, 1)
    assert found.message.startswith("Host port 8080/TCP is needed on 2 nodes and free on 1.")
    capacity.pod_seen(pod("c", "c", ports=[port(8080, "10.0.0.1")]))
    found = refusal(capacity, pods(1, ports=[port(8080)]))
    assert found.reason is WaitingReason.INSUFFICIENT
    assert found.message.startswith(
        "Host port 8080/TCP is taken on every node that admits the pods."
    )
    found = refusal(capacity, pods(1, where=on(zone="c"), ports=[port(8080, "10.0.0.1")]))
    assert "Host port 8080/TCP at 10.0.0.1 is taken on every node" in found.message


def test_a_refusal_of_something_else_does_not_speak_of_ports() -> None:
    found = refusal(cluster(node("a", "2"), node("b", "1")), pods(1, "3", ports=[port(80)]))
    assert [resource for resource, _, _ in figures(found)] == ["cpu", "pods"]


def test_ports_are_no_resource_in_reports() -> None:
    capacity = cluster(node("a", "4", "0"))
    capacity.pod_seen(pod("x", "a", ports=[port(80)]))
    hold(capacity, "one", pods(1, ports=[port(81)]))
    lost = (pods(1, "9", ports=[port(82)]),)
    capacity.gangs.adopt("two", 1, lost)
    books = report_of(capacity)

    assert free_on(capacity, "a") == wants("2", pods="108")
    assert books.nodes[0].used == books.nodes[0].reserved == wants("1", pods="1")
    assert books.sums.free == wants("2", pods="108")
    assert books.unplaced == wants("9", pods="1")


def test_only_the_sum_counts_where_only_the_sum_counts() -> None:
    capacity = cluster(node("a"), settings=AGGREGATE)
    capacity.pod_seen(pod("x", "a", ports=[port(80)]))
    assert fits(capacity, pods(2, ports=[port(80)]))


def test_ports_and_resources_that_are_not_used_any_more_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledgers, "COLUMNS_KEPT_MIN", 0)
    capacity = cluster(node("a"))
    ledger = capacity._ledger
    books = ledger.whole, ledger.free, ledger.idle
    for number in range(80, 120):
        devices = wants("4", pods="110", **{f"x.com/{number}": "1"})
        capacity.node_seen(replace(node("b"), allocatable=devices))
        capacity.pod_seen(pod("x", "a", ports=[port(number)]))
        assert not fits(capacity, pods(1, where=on(zone="nowhere"), ports=[port(number)]))
        capacity.place_unplaced()
        assert not fits(capacity, pods(2, "0", ports=[port(number)]))
        assert fits(capacity, pods(1, ports=[port(number)]))
        assert all(len(columns.names()) <= 16 for columns in books)
    assert ledger.ports.keys() <= ledger.rows["a"].free.keys()


def test_ports_beyond_what_the_books_take_are_kept_apart_within_their_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert work_bounds.PORTS_MAX == ledgers.PORTS_MAX
    monkeypatch.setattr(ledgers, "PORTS_MAX", 1)
    capacity = cluster(node("a"), node("b"))
    capacity.pod_seen(pod("x", "a", ports=[port(80)]))
    many = pods(2, ports=[port(81)])
    assert fits(capacity, many)
    assert not fits(capacity, pods(3, ports=[port(81)]))
    hold(capacity, "one", many)
    capacity.pod_gone("x")
    capacity.place_unplaced()
    capacity.pod_seen(pod("y", "a", ports=[port(82)]))
    assert not fits(capacity, pods(2, ports=[port(82)]))


def test_what_a_pod_takes() -> None:
    assert dict(load((("cpu", 1),), (port(80), port(80)))) == {
        "cpu": 1,
        "pods": 1,
        "hostPort/TCP/80": 65536,
    }
    both = load((), (port(80, "10.0.0.1"), port(80), port(80, "10.0.0.2", "UDP")))
    assert dict(both) == {
        "pods": 1,
        "hostPort/TCP/80": 65536,
        "hostPort/TCP/80/10.0.0.1": 1,
        "hostPort/UDP/80": 1,
        "hostPort/UDP/80/10.0.0.2": 1,
    }
