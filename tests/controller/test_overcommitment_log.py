"""Nodes whose pods request more than they have are reported once, and again when that is over."""

from __future__ import annotations

import logging

import pytest

from mcad.cli.log_format import KeyValue
from mcad.controller.metrics.leader import Metrics
from mcad.controller.overcommitment_log import OvercommitmentLog
from mcad.core.events import PodSeen
from mcad.core.state.model import Pod, PodPhase
from mcad.kube.clock import RealClock
from tests.core.bench import Bench, cpu, node, workload


def bound_twice() -> Bench:
    """Two nodes with room for one pod each, and kube-scheduler binds both pods to the first."""
    cluster = Bench(nodes=[node("n1", 1000), node("n2", 1000)])
    cluster.submit(*(workload(name, 900) for name in "abc"))
    cluster.settle()
    cluster.bind("a-0", "n1")
    cluster.bind("b-0", "n1")
    cluster.settle()
    return cluster


def test_an_overcommitted_node_is_reported_once_and_when_that_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    cluster = bound_twice()
    log = OvercommitmentLog(cluster.dispatcher.cluster)
    assert [log.log_changes(), log.log_changes()] == [1, 0]
    cluster.advance(60)
    cluster.change("a-0", phase=PodPhase.SUCCEEDED)
    assert log.log_changes() == 0
    assert [KeyValue().format(one).partition("msg=")[2] for one in caplog.records] == [
        '"node is overcommitted" node=n1 requested="cpu=1800m" allocatable="cpu=1"',
        '"node is no longer overcommitted" node=n1 after_s=60',
    ]


def test_assumed_pods_alone_make_no_node_overcommitted() -> None:
    """Pods of others are bound where slots are assumed: those slots move on."""
    cluster = Bench(nodes=[node("n1", 1000)])
    cluster.submit(workload("a", 900))
    cluster.settle()
    cluster.feed(PodSeen(Pod("foreign", "default", "foreign", "n1", PodPhase.RUNNING, cpu(900, 1))))
    assert cluster.dispatcher.cluster.capacity.report.sums().reserved
    assert [*cluster.dispatcher.cluster.capacity.report.overcommitted()] == []


async def test_overcommitted_nodes_are_counted() -> None:
    cluster = bound_twice()
    metrics = Metrics(cluster.dispatcher.cluster, {}, {}, RealClock())
    log = OvercommitmentLog(cluster.dispatcher.cluster)
    metrics.count_overcommitments(log.log_changes())
    page = (await metrics.page()).decode()
    assert "mcad_overcommitted_nodes 1.0" in page
    assert "mcad_node_overcommitments_total 1.0" in page
