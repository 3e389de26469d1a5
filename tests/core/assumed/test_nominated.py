"""Pods that kube-scheduler nominated to a node hold their room there (C1)."""

from __future__ import annotations

from msgspec.structs import replace

from mcad.core.capacity import Capacity
from mcad.core.state.model import PodPhase
from tests.core.builders import cluster, node, pod, pods


def fits(capacity: Capacity, cpu: str) -> bool:
    """Whether one pod of so many CPUs fits now."""
    return capacity.refusal(capacity.shape((pods(1, cpu),))) is None


def test_a_nominated_pod_holds_its_room_until_it_is_bound_or_goes() -> None:
    capacity = cluster(node("n1", cpu="2"), node("n2", cpu="1"))
    waits = pod("guest", cpu="1500m")
    capacity.pod_seen(waits)
    assert fits(capacity, "2")
    capacity.pod_seen(replace(waits, nominated="n1"))
    assert not fits(capacity, "2")
    assert fits(capacity, "1")
    capacity.pod_seen(replace(waits, node="n2", phase=PodPhase.RUNNING))
    assert fits(capacity, "2")
    assert not fits(capacity, "2001m")
    capacity.pod_seen(replace(waits, nominated="n1"))
    capacity.pod_gone("guest")
    assert fits(capacity, "2")
    capacity.check()


def test_a_pod_is_nominated_to_a_node_that_comes_later() -> None:
    capacity = cluster(node("n1", cpu="1"))
    capacity.pod_seen(pod("guest", cpu="1500m", nominated="n2"))
    capacity.node_seen(node("n2", cpu="2"))
    assert not fits(capacity, "2")
    assert fits(capacity, "1")


def test_the_room_of_a_pod_of_an_appwrapper_is_that_of_its_reservation() -> None:
    capacity = cluster(node("n1", cpu="2"))
    capacity.pod_seen(pod("own", of="w", cpu="1500m", attempt=1, nominated="n1"))
    assert fits(capacity, "2")


def test_a_node_is_not_overcommitted_by_pods_that_are_not_bound_yet() -> None:
    capacity = cluster(node("n1", cpu="2"))
    capacity.pod_seen(pod("guest", "n1", "1500m"))
    capacity.pod_seen(pod("daemon", cpu="1", nominated="n1"))
    assert not fits(capacity, "1m")
    assert not list(capacity.report.overcommitted())
    (told,) = capacity.report.nodes()
    assert not told.is_overcommitted
    capacity.pod_seen(pod("daemon", "n1", "1"))
    assert [one.name for one in capacity.report.overcommitted()] == ["n1"]
    (told,) = capacity.report.nodes()
    assert told.is_overcommitted


def test_a_pod_that_is_nominated_to_a_node_that_is_gone_counts_nowhere() -> None:
    capacity = cluster(node("n1", cpu="2"), node("n2", cpu="2"))
    capacity.pod_seen(pod("daemon", cpu="1", nominated="n1"))
    capacity.node_gone("n1")
    assert fits(capacity, "2")
    capacity.check()
