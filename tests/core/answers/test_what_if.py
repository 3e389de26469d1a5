"""What the next cycles do with changed facts."""

from __future__ import annotations

from mcad.core.answers.changed_facts import with_nodes, with_share, without
from mcad.core.answers.outcome import Evicted, outcome
from mcad.core.events import NodeSeen, PodSeen, QuotaSeen
from mcad.core.state.records import replace
from mcad.core.state.units import SECOND
from tests.core.answers.test_carried_out import facts, runs
from tests.core.answers.worlds import gang
from tests.core.bench import PATIENT, node
from tests.core.builders import START
from tests.core.quotas import child, subtree

FULL = facts(
    NodeSeen(node("n1", 1000)),
    *runs(gang("a", [(2, 400)]), "n1"),
    gang("w", [(2, 300)], priority=1, created=START + 10 * SECOND),
    gang("x", [(1, 300)], created=START + 11 * SECOND),
)


def test_without_an_appwrapper_others_start() -> None:
    assert not outcome(FULL).starting
    changed = without(FULL, {"uid-a"})
    assert not any(isinstance(one, PodSeen) for one in changed.events)
    assert list(outcome(changed).starting) == ["uid-w", "uid-x"]


def test_with_a_node_more_the_first_starts() -> None:
    assert list(outcome(with_nodes(FULL, [node("n2", 600)])).starting) == ["uid-w"]


def test_other_settings_evict() -> None:
    eager = replace(FULL, settings=replace(PATIENT, preemption=True, min_run_time=0))
    assert outcome(eager).evicted == {"uid-a": Evicted("Preempting", "default/w")}
    slow = replace(eager, settings=replace(eager.settings, preemption_grace=60 * SECOND))
    assert outcome(slow).evicted == {"uid-a": Evicted("Preempting", "default/w")}
    assert outcome(FULL).evicted == {}


def test_another_share_lets_in_what_it_refused() -> None:
    known = facts(
        NodeSeen(node("n1", 1000)),
        QuotaSeen(subtree("root", child("root", cpu=100))),
        gang("w", [(1, 300)], quota=(("gold", "root"),)),
    )
    assert not outcome(known).starting
    changed = with_share(known, "gold", "root", {"cpu": 300})
    assert changed is not None
    assert list(outcome(changed).starting) == ["uid-w"]
    assert with_share(known, "gold", "blue", {"cpu": 300}) is None
    assert with_share(known, "silver", "root", {"cpu": 300}) is None
