"""What no fit test looks at is named: in a verdict, in a condition, in `why`, and at a requeue."""

from __future__ import annotations

import pytest

from mcad.core.answers.dry_run import DryRun
from mcad.core.answers.why import why
from mcad.core.events import NodeSeen, PodSeen
from mcad.core.state.model import PodSet, Topology, Unscheduled, Workload
from mcad.core.state.not_checked import OTHERS_PODS, not_checked
from mcad.core.state.records import replace
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from mcad.core.state.waiting_reason import WaitingReason
from tests.core.answers.test_carried_out import facts
from tests.core.bench import Bench, node, workload
from tests.core.builders import cluster, waiting
from tests.core.builders import node as node_of

TOLD = "Its anti-affinity towards pods of other AppWrappers is left to kube-scheduler."
RULES = "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules"


def _apart(name: str, milli: int, *more: str) -> Workload:
    """A bare Pod with a term of anti-affinity that may select pods of others."""
    work = workload(name, milli)
    sets = tuple(replace(one, cap=1, unmodelled=(OTHERS_PODS, *more)) for one in work.sets)
    return replace(work, sets=sets)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ((), ""),
        (("volumes", "volumes"), "Not checked: volumes."),
        ((OTHERS_PODS,), TOLD),
        ((OTHERS_PODS, "volumes", "podAffinity"), f"Not checked: volumes, podAffinity. {TOLD}"),
    ],
)
def test_sentences_about_what_is_not_checked(names: tuple[str, ...], told: str) -> None:
    assert not_checked(names) == told


def test_a_refusal_by_capacity_says_so_in_the_condition_and_in_why() -> None:
    work = _apart("big", 2000, "volumes")
    bench = Bench(nodes=[node(milli=1000)]).start(work)
    entry = bench.dispatcher.cluster.entries[work.uid]
    refusal = bench.dispatcher.cluster.waiting.queue.refusal_of(entry)
    assert refusal is not None
    shown = [one.message for one in entry.conditions.values() if "Not checked" in one.message]
    answer = why(DryRun(facts(*map(NodeSeen, bench.nodes), work)), work.uid)
    for text in (refusal.message, *shown, answer.text):
        assert text.endswith(f"Not checked: volumes. {TOLD}"), text
    assert shown


def _in_racks(*cpus: str, groups: str = "gg") -> tuple[PodSet, ...]:
    work = workload("w", *(int(cpu) for cpu in cpus))
    return tuple(
        replace(one, unmodelled=(OTHERS_PODS,), topology=Topology(("rack",), group=group))
        for one, group in zip(work.sets, groups, strict=True)
    )


@pytest.mark.parametrize("groups", ["gg", "gh"])
def test_a_refusal_by_topology_says_so_too(groups: str) -> None:
    racks = [node_of(f"n{n}", "1", labels={"rack": f"r{n}"}) for n in range(2)]
    sets = _in_racks("600", "600", groups=groups)
    if groups == "gh":  # each group fits in the one rack, and not both of them
        racks = [node_of("n0", "1", labels={"rack": "r0"}), node_of("n1", "1")]
    capacity = cluster(*racks)
    refused = capacity.refusal(waiting(capacity, *sets))
    assert refused is not None
    assert refused.reason is WaitingReason.NO_DOMAIN
    assert refused.message.endswith(TOLD)


def test_a_gang_that_kube_scheduler_does_not_place_is_taken_back_with_these_words() -> None:
    settings = Settings(placement_timeout=60 * SECOND, binding_wait=0)
    bench = Bench(settings, nodes=[node(milli=1000)]).start(_apart("a", 400))
    (pod,) = (one for one in bench.dispatcher.cluster.capacity.pods.live("uid-a"))
    bench.feed(PodSeen(replace(pod, unscheduled=Unscheduled(RULES, bench.now))))
    bench.advance(62)
    dispatched = bench.condition("a", "Dispatched")
    assert dispatched is not None
    told = f"Without a node for 60 s: a-0 ({RULES}). {TOLD}"
    assert dispatched[1:] == ("PlacementTimeout", told)
    backoff = bench.condition("a", "Backoff")
    assert backoff is not None
    assert TOLD in backoff[2]
