"""Reservations on nodes where others run on: what is beside them, and what leaves late."""

from __future__ import annotations

import pytest

from mcad.core.events import ChildGone, PodGone
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import ObjectRef
from mcad.core.state.reasons import EventReason
from mcad.core.state.records import replace
from tests.core.bench import Bench, node, workload
from tests.core.preemption.test_search import EAGER, GRACE, conditions, phase, told


def test_pods_are_not_kept_off_the_node_that_they_were_given_before_it_was_reserved() -> None:
    """Both are judged in one pass: one goes, and the room beside it is reserved for the other."""
    bench = Bench(GRACE, nodes=[node("n1")])
    bench.submit(workload("a", 600))
    bench.advance(1)
    bench.start(workload("s", 200), workload("w", 700, priority=5))
    assert conditions(bench, "a")["PreemptCandidate"][0]
    assert bench.dispatcher.cluster.capacity.gangs.nodes_of("uid-w") == ["n1"]
    assert bench.excluded["uid-s"] == ()


@pytest.mark.parametrize("lasting", [False, True])
def test_a_template_that_outlives_the_eviction_prefers_other_nodes(lasting: bool) -> None:
    """The reservation ends within minutes; a service would be kept off the node for its life."""
    bench = Bench(GRACE, nodes=[node("n1"), node("n2", 300)])
    bench.submit(workload("a", 600))
    bench.advance(1)
    bench.bind("a-0", "n1")
    beside = workload("s", 200)
    items = tuple(replace(one, tells_end=not lasting) for one in beside.items)
    bench.start(workload("w", 700, priority=5))
    assert bench.entry("w").reservation is not None
    bench.start(replace(beside, items=items))
    assert phase(bench, "s") is Phase.RUNNING
    assert bench.excluded["uid-s"] == (() if lasting else ("n1",))
    assert bench.avoided["uid-s"] == (("n1",) if lasting else ())


class LatePods(Bench):
    """Its watch of pods tells late that one is gone."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.untold: list[str] = []

    def remove(self, ref: ObjectRef) -> None:
        uid = self.things.pop(ref).child.uid
        self.feed(ChildGone(uid))
        self.untold.append(uid)


def test_room_is_kept_until_the_watch_tells_that_the_pods_of_victims_are_gone() -> None:
    """A live list has told so before, and the victim is released; beside it another one runs on."""
    bench = LatePods(EAGER, nodes=[node("n1")])
    bench.submit(workload("c", 200, priority=5))
    bench.submit(workload("b", 600))
    bench.advance(1)
    bench.bind("c-0")
    bench.bind("b-0")
    bench.submit(workload("d", 700, priority=5))
    bench.advance(5)
    assert phase(bench, "b") is Phase.WAITING
    bench.submit(workload("s", 150))
    bench.advance(5)
    assert [phase(bench, name) for name in "ds"] == [Phase.WAITING, Phase.WAITING]
    assert bench.entry("d").reservation is not None

    [uid] = bench.untold
    bench.feed(PodGone(uid))
    bench.advance(5)
    assert phase(bench, "d") is Phase.RUNNING
    assert told(bench, EventReason.RESERVATION_ENDED) == []
