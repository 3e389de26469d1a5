"""Nodes that an autoscaler has just added, or is about to remove, take no pods."""

import pytest
from msgspec.structs import replace

from mcad.core.events import PodSeen
from mcad.core.nodes.closing import LEAVING, STARTING
from mcad.core.state.model import Constraint, Node, Pod, PodPhase, Taint, Toleration, Workload
from tests.core.bench import PATIENT, Bench, cpu, node, workload

GROWS = replace(PATIENT, scale_up=True, startup_taints=("example.com/gpu-driver",))
KEYS = sorted((*LEAVING, *STARTING, "example.com/gpu-driver"))
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def _tolerates_all(name: str) -> Workload:
    work = workload(name, 1000)
    everywhere = Constraint(tolerations=(Toleration("", "Exists", "", ""),))
    return replace(work, sets=tuple(replace(one, constraint=everywhere) for one in work.sets))


def _tainted(key: str, effect: str) -> Node:
    return node("n1", 1000, taints=(Taint(key, "", effect),))


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("key", KEYS)
def test_a_node_that_starts_or_leaves_takes_no_pods_whatever_they_tolerate(
    key: str, effect: str
) -> None:
    bench = Bench(GROWS, [_tainted(key, effect)])
    bench.start(_tolerates_all("a"), workload("b", 1000))
    bench.advance(3)
    assert not bench.order
    bench.add_node(node("n1", 1000))
    bench.advance(2)
    assert bench.order == ["a"]


def test_another_taint_that_only_weighs_closes_no_node() -> None:
    bench = Bench(GROWS, [_tainted("example.com/busy", "PreferNoSchedule")])
    bench.start(workload("a", 1000))
    assert bench.order == ["a"]


def test_taints_of_an_autoscaler_are_taints_like_others_where_none_is_asked() -> None:
    bench = Bench(PATIENT, [_tainted("karpenter.sh/disrupted", "PreferNoSchedule")])
    bench.start(workload("a", 1000))
    assert bench.order == ["a"]


def test_pods_that_run_on_a_node_that_leaves_hold_their_room() -> None:
    bench = Bench(GROWS, [node("n1", 1000)])
    bench.start(workload("a", 1000))
    bench.bind("a-0")
    bench.add_node(_tainted("ToBeDeletedByClusterAutoscaler", "NoSchedule"))
    bench.advance(5)
    assert not sum(bench.dispatcher.cluster.capacity.gangs.outstanding("uid-a"))


@pytest.mark.parametrize(("nominated", "starts"), [("new", False), ("", True)])
def test_a_daemon_sets_pod_counts_on_its_new_node_before_it_is_bound(
    nominated: str, starts: bool
) -> None:
    """The books count a pod of no AppWrapper on its node, or on the node that it is meant for. A
    pod of a DaemonSet that is only pinned by its affinity counts once it is bound: the reader of
    pods has to say ``nominated``."""
    bench = Bench(GROWS)
    bench.start(workload("a", 1000))
    bench.advance(2)
    daemon = Pod("p", "kube-system", "p", "", PodPhase.PENDING, cpu(100, 1), nominated=nominated)
    bench.feed(PodSeen(daemon))
    bench.add_node(node("new", 1050))
    bench.advance(3)
    assert (bench.order == ["a"]) is starts
