"""What keeps pods from running is told: in a condition, by an Event, and to a reader."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mcad.core.events import ChildSeen, PodGone
from mcad.core.state.bounds import STALL_AFTER, STALL_INTERVAL
from mcad.core.state.model import Dialect, PodPhase, Wanted
from mcad.core.state.reasons import ConditionType, EventReason
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from mcad.core.views.rows import Picture
from tests.core.bench import PATIENT
from tests.core.status.test_pod_counts import GANG, Stage

DIALECTS = pytest.mark.parametrize("dialect", Dialect)
LEFT = {Dialect.V1BETA1: "4m50s", Dialect.V1BETA2: "4m51s"}  # its pods came a moment later
WORDS = "0/20 nodes are available: 17 Insufficient cpu, 3 node(s) had untolerated taint {x: y}."
SAME = "0/21 nodes are available: 2 node(s) had untolerated taint {x: y}, 19 Insufficient cpu."
MORE = f"{WORDS} no new claims to deallocate, preemption: 0/20 nodes are available: 20 Preemption."
OTHER = "0/20 nodes are available: 20 Insufficient memory."
AFTER_S, INTERVAL_S = STALL_AFTER // SECOND, STALL_INTERVAL // SECOND
TIMEOUT = Settings()


def others(stage: Stage, phase: PodPhase, words: str = "") -> None:
    """The three pods that found no node are in this phase now."""
    for number in (1, 2, 3):
        stage.pod(number, phase, words)


def stuck(dialect: Dialect = Dialect.V1BETA1, settings: Settings = TIMEOUT) -> Stage:
    """Of four pods one runs and three find no node."""
    stage = Stage(4, dialect, settings)
    stage.bench.feed(ChildSeen(replace(stage.bench.things[GANG].child, wants=(Wanted(4),))))
    stage.pod(0, PodPhase.RUNNING)
    others(stage, PodPhase.PENDING, MORE)
    stage.passes(0)
    return stage


def shown(stage: Stage) -> str:
    """The message of the condition, "" if it is not True."""
    found = [one for one in stage.view.conditions if one.type == ConditionType.STALLED]
    return "".join(one.message for one in found if one.status)


def reports(stage: Stage) -> list[str]:
    """The Events."""
    return [one.note for one in stage.bench.events if one.reason == EventReason.UNSCHEDULED]


def why(stage: Stage) -> str:
    """What ``describe`` says now."""
    bench = stage.bench
    (row,) = Picture(bench.dispatcher.cluster, bench.now).rows()
    assert row is not None
    assert row.waits_for == ""
    return row.why


@DIALECTS
def test_the_condition_and_an_event_tell_number_reason_and_deadline(dialect: Dialect) -> None:
    stage = stuck(dialect)
    stage.passes(AFTER_S - 1)
    assert (shown(stage), reports(stage)) == ("", [])
    assert stage.passes(1) == 1
    told = shown(stage)
    assert told.startswith("3 pods without a node since ")
    assert f"({WORDS[:-1]}); the attempt ends at " in told
    (event,) = reports(stage)
    ends = f"the attempt ends in {LEFT[dialect]}"
    assert event == f"3 pods without a node for 10s ({WORDS[:-1]}); {ends}."


def test_describe_counts_down_until_it_is_taken_back() -> None:
    stage = stuck()
    stage.passes(291)
    assert why(stage) == f"3 pods without a node for 4m51s ({WORDS[:-1]}); the attempt ends in 9s."
    stage.passes(10)
    assert stage.bench.status["uid-a"].dispatch is not None
    assert f"gang-003 ({WORDS[:-1]})." in stage.bench.status["uid-a"].dispatch.message


def test_without_a_deadline_none_is_told() -> None:
    stage = stuck(settings=PATIENT)
    stage.passes(3600)
    assert why(stage) == f"3 pods without a node for 1h ({WORDS[:-1]})."


@DIALECTS
def test_other_figures_are_no_news(dialect: Dialect) -> None:
    stage = stuck(dialect, PATIENT)
    stage.passes(INTERVAL_S)
    told = shown(stage)
    for _ in range(50):
        for words in (SAME, WORDS):
            others(stage, PodPhase.PENDING, words)
            assert stage.passes(1) == 0
    assert (shown(stage), len(reports(stage))) == (told, 1)


def test_other_reasons_are_told_once_a_minute_at_most() -> None:
    stage = stuck(settings=PATIENT)
    stage.passes(AFTER_S)
    writes = 0
    for turn in range(300):
        others(stage, PodPhase.PENDING, (OTHER, WORDS)[turn // 7 % 2])
        writes += stage.passes(1)
    assert writes <= 300 // INTERVAL_S
    assert len(reports(stage)) <= 1 + 300 // INTERVAL_S
    assert len({note.partition("(")[2][:60] for note in reports(stage)}) == 2


@DIALECTS
def test_once_all_have_nodes_nothing_is_told_any_more(dialect: Dialect) -> None:
    stage = stuck(dialect)
    stage.passes(AFTER_S)
    others(stage, PodPhase.RUNNING)
    stage.passes(INTERVAL_S)
    assert (shown(stage), why(stage), len(reports(stage))) == ("", "", 1)
    assert stage.passes(86_400) == 0


def test_pods_that_find_a_node_soon_are_not_reported() -> None:
    stage = stuck()
    stage.passes(AFTER_S - 1)
    others(stage, PodPhase.RUNNING)
    stage.passes(3600)
    assert (shown(stage), reports(stage)) == ("", [])


def test_a_restart_does_not_repeat_what_is_on_record() -> None:
    stage = stuck(settings=PATIENT)
    stage.passes(600)
    stage.bench.crash()
    stage.bench.feed(ChildSeen(replace(stage.bench.things[GANG].child, wants=(Wanted(4),))))
    stage.bench.feed(PodGone(stage.bench.things[GANG].child.uid))
    stage.pod(0, PodPhase.RUNNING)
    others(stage, PodPhase.PENDING, SAME)
    assert stage.passes(600) == 0
    assert len(reports(stage)) == 1
