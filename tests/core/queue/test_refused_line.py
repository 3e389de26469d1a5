"""The refused classes in order, read over several passes, against one sort of them all."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st

from mcad.core.queue import refused_line
from mcad.core.queue.equivalence import EquivalenceClass
from mcad.core.queue.refused_line import RefusedLine
from mcad.core.state.agenda import Agenda
from mcad.core.state.bounds import WORK_PER_PASS
from mcad.core.state.refusal import Refusal
from mcad.core.state.waiting_reason import WaitingReason
from tests.core.queue.test_line import FIFO, NOW, SLOPES, class_of, turn

MEMBERS = cast("Any", {(0, 0, ""): None})
VERDICTS = [
    None,
    *map(Refusal, (WaitingReason.INSUFFICIENT, WaitingReason.BINDING, WaitingReason.TOO_LARGE)),
]


def read(line: RefusedLine, agenda: Agenda, *, planned: bool = False) -> int:
    """Read in passes until all are read; returns how many it took."""
    passes = 1
    while not line.read(FIFO, agenda, is_even, planned_at if planned else None):
        assert agenda.is_spent
        agenda.spent = 0
        passes += 1
    return passes


def is_even(eqclass: EquivalenceClass) -> bool:
    return eqclass.key[1] % 2 == 0


def planned_at(eqclass: EquivalenceClass) -> int:
    return eqclass.planned_at


def is_refused(eqclass: EquivalenceClass) -> bool:
    return eqclass.refusal is not None and eqclass.refusal.reason.blocks


@st.composite
def classes(draw: st.DrawFn) -> list[EquivalenceClass]:
    places = st.tuples(st.sampled_from(SLOPES), st.integers(-4000, 4000))
    drawn = draw(st.lists(places, max_size=30))
    made = [class_of(number, slope, at) for number, (slope, at) in enumerate(drawn)]
    for eqclass in made:
        eqclass.refusal = draw(st.sampled_from(VERDICTS))
        eqclass.planned_at = draw(st.integers(0, 3))
        eqclass.members = MEMBERS
    return made


@pytest.fixture(params=[1, 3, 1_000])
def at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_line, "REFUSED_AT_ONCE", request.param)


@pytest.mark.usefixtures("at_once")
@profile(max_examples=100)
@given(found=classes(), planned=st.booleans(), data=st.data())
def test_the_parts_are_merged_in_order(
    found: list[EquivalenceClass], planned: bool, data: st.DataObject
) -> None:
    line, agenda = RefusedLine(found, NOW), Agenda({})
    assert bool(line) == bool(found)
    read(line, agenda, planned=planned)
    expected = [one for one in found if is_even(one) and is_refused(one)]
    expected.sort(key=lambda one: (one.planned_at if planned else 0, turn(one)))
    assert bool(line) == bool(expected)
    gone = set(data.draw(st.lists(st.sampled_from(expected), max_size=3)) if expected else ())
    for number, eqclass in enumerate(gone):  # since it was read
        if number % 2:
            eqclass.members = cast("Any", {})
        else:
            eqclass.refusal = None
    cut = data.draw(st.integers(0, len(expected)))
    taken = [one for one in expected if one not in gone]
    assert [next(line) for _ in taken[:cut]] == taken[:cut]
    assert line.read(FIFO, agenda, is_even)  # there is no more
    assert list(line) == taken[cut:]
    assert not line


def test_a_pass_reads_no_more_than_it_has_work_for() -> None:
    many = [class_of(number, 0, number) for number in range(WORK_PER_PASS * 5 // 2)]
    for eqclass in many:
        eqclass.refusal, eqclass.members = VERDICTS[1], MEMBERS
    line, agenda = RefusedLine(many, NOW), Agenda({})
    assert not line.read(FIFO, agenda, is_even)
    assert WORK_PER_PASS <= agenda.spent < WORK_PER_PASS * 5 // 4
    assert list(line) == []  # none comes before all are read
    agenda.spent = 0
    assert read(line, agenda) == 2
    assert [eqclass.key[1] for eqclass in line] == list(range(0, len(many), 2))


def test_a_pass_that_has_no_work_left_reads_none() -> None:
    line, agenda = RefusedLine([class_of(0, 0, 0)], NOW), Agenda({})
    agenda.spent = WORK_PER_PASS
    assert not line.read(FIFO, agenda, is_even)
    assert line


def test_an_appwrapper_that_is_edited_may_be_the_head_of_two() -> None:
    """Of the class that it leaves, which was read, and of the next one."""
    one, other = class_of(0, 0, 0), class_of(0, 0, 0)
    for eqclass in (one, other):
        eqclass.refusal, eqclass.members = VERDICTS[1], MEMBERS
    line = RefusedLine([one, other], NOW)
    read(line, Agenda({}))
    assert set(line) == {one, other}


def test_a_class_that_has_gone_before_it_is_read_is_not_asked() -> None:
    gone = class_of(0, 0, 0)
    gone.refusal = VERDICTS[1]
    line, asked = RefusedLine([gone], NOW), []
    assert line.read(FIFO, Agenda({}), lambda one: asked.append(one) or True)
    assert not asked
    assert not line


def test_whether_another_comes_before_the_next_one() -> None:
    classes = [class_of(number, 0, number) for number in (0, 2, 4, 6)]
    for eqclass in classes:
        eqclass.refusal, eqclass.members = VERDICTS[1], MEMBERS
    early, listed, late = classes[0], classes[1:3], classes[3]
    line = RefusedLine(listed, NOW)
    assert not line.is_behind(FIFO, [early])  # nothing is read
    read(line, Agenda({}))
    assert line.is_behind(FIFO, [late, early])
    assert not line.is_behind(FIFO, [late])
    early.refusal = None
    assert not line.is_behind(FIFO, [early])
