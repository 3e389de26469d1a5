"""What a drain moves, and where it fits."""

from __future__ import annotations

from mcad.core.answers.node_drain import Drain, Move, drain
from mcad.core.events import NodeSeen, PodSeen
from mcad.core.state.model import Pod, PodPhase
from mcad.core.state.records import replace
from mcad.core.state.units import SECOND
from tests.core.answers.test_carried_out import facts, runs
from tests.core.answers.worlds import gang
from tests.core.bench import node
from tests.core.builders import START

NODES = [NodeSeen(node(f"n{number}", 1000)) for number in (1, 2, 3)]
OTHER = PodSeen(Pod("o", "default", "o", "n1", PodPhase.RUNNING, (("cpu", 100), ("pods", 1))))


def test_pods_fit_on_other_nodes_or_on_none() -> None:
    known = facts(
        *NODES,
        OTHER,
        *runs(gang("a", [(2, 400)], priority=1), "n1"),
        *runs(gang("b", [(1, 900)]), "n2"),
        *runs(gang("c", [(1, 500)]), "n3"),
    )
    moves = [Move("default/a", 2, {"n3": 1}, 1)]
    assert drain(known, {"n1"}) == Drain(moves, 1)
    assert drain(known, {"n2"}) == Drain([Move("default/b", 1, {}, 1)], 0)
    both = drain(known, {"n1", "n3"})
    assert [one.appwrapper for one in both.moves] == ["default/a", "default/c"]
    assert drain(known, {"n9"}) == Drain([], 0)


def test_bare_pods_end() -> None:
    known = facts(*NODES, *runs(gang("a", [(1, 400)]), "n1"))
    events = [
        PodSeen(replace(one.pod, root=one.pod.uid)) if isinstance(one, PodSeen) else one
        for one in known.events
    ]
    assert drain(replace(known, events=events), {"n1"}).moves == [Move("default/a", 1, {}, 0, 1)]


def test_what_waits_takes_no_room_from_what_moves() -> None:
    waits = gang("w", [(1, 900)], priority=9, created=START + SECOND)
    known = facts(*NODES[:2], *runs(gang("a", [(1, 400)]), "n1"), waits)
    assert drain(known, {"n1"}).moves == [Move("default/a", 1, {"n2": 1}, 0)]
