"""Nodes that pods of a gang leave to each other, after the reason has ended (ADR 48)."""

from __future__ import annotations

import pytest

from mcad.core.commands import CreateItem
from mcad.core.events import ChildSeen, NodeGone, PodGone, PodSeen
from mcad.core.state.model import KeptApart, PodPhase, Unscheduled, Wanted, Workload
from mcad.core.state.records import replace
from tests.core.bench import PATIENT, Bench, node, workload


def gang(*, lasting: bool) -> Workload:
    """A small pod and a large one, of items that end or that may run for ever."""
    made = workload("a", 1000, 8000)
    return replace(made, items=tuple(replace(one, tells_end=not lasting) for one in made.items))


@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_template_that_outlives_the_reason_prefers_other_nodes(
    lasting: bool, restarts: bool
) -> None:
    bench = Bench(PATIENT, nodes=[node("whole", 8000), node("part", 7000)])
    seen: list[CreateItem] = []
    bench.heard = lambda commands: seen.extend(o for o in commands if isinstance(o, CreateItem))
    bench.submit(gang(lasting=lasting)).decide()
    bench.execute(bench.pending.pop(0))
    if restarts:
        bench.crash()
        bench.decide()
    kept = KeptApart(0, "template", ("whole",), preferred=lasting)
    assert bench.status["uid-a"].dispatch.apart == (kept,)
    rules = next(one.node_rules for one in seen if one.item == 0)
    assert rules.excluded_at("template") == (() if lasting else ("whole",))
    assert rules.avoided_at("template") == (("whole",) if lasting else ())


@pytest.mark.parametrize("lasting", [False, True])
def test_a_replacement_that_has_room_on_an_excluded_node_only_is_told_what_to_do(
    lasting: bool,
) -> None:
    bench = Bench(PATIENT, nodes=[node("whole", 8000), node("part", 7000)])
    bench.submit(gang(lasting=lasting)).settle()
    bench.bind("a-0", "part").bind("a-1", "whole").settle()
    pods = {one.name: one for one in bench.dispatcher.cluster.capacity.pods.live("uid-a")}
    large = next(one for one in bench.things.values() if one.child.item == 1)
    bench.feed(ChildSeen(replace(large.child, wants=(Wanted(0),))))  # scaled down
    bench.feed(PodGone(pods["a-1"].uid))
    words = Unscheduled("0/1 nodes are available: 1 node affinity.", bench.now)
    lost = replace(pods["a-0"], node="", phase=PodPhase.PENDING, unscheduled=words)
    bench.feed(NodeGone("part"))
    bench.feed(PodSeen(lost))
    bench.settle()
    capacity = bench.dispatcher.cluster.capacity
    assert capacity.gangs.left_with_room("uid-a") == ([] if lasting else ["whole"])
    assert capacity.gangs.unplaced("uid-a") == (0 if lasting else 1)
    bench.advance(60)
    said = bench.condition("a", "Stalled")[2]
    told = "; whole has room, and this attempt excludes it; requeue to place pods anew)"
    assert (told in said) is not lasting
