"""The line of a pass against a plain reference, which sorts all that are left again and again."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st

from mcad.core.nodes.shape import Shape
from mcad.core.queue.equivalence import EquivalenceClass, Turn
from mcad.core.queue.line import Line
from mcad.core.queue.ordering import Turns
from mcad.core.state.refusal import Refusal
from mcad.core.state.settings import Fairness, Settings
from mcad.core.state.waiting_reason import WaitingReason
from tests import budget

NONE = cast("Any", None)
FIFO = Turns(Settings(reclaim=False), NONE, NONE)
VERDICTS = (None, *map(Refusal, (WaitingReason.INSUFFICIENT, WaitingReason.BINDING)))
SLOPES, NOW = (0, 3, 250), 7_000_000


def class_of(number: int, slope: int, at: int) -> EquivalenceClass:
    """A class with a head of that place; each number has a key of its own."""
    made = EquivalenceClass(Shape.of(()), slope, (), "")
    made.rank((at, number, f"uid-{number}"))
    return made


def turn(eqclass: EquivalenceClass) -> Turn:
    return FIFO.of(eqclass, NOW)


@st.composite
def eqclasses(draw: st.DrawFn) -> list[EquivalenceClass]:
    places = st.tuples(st.sampled_from(SLOPES), st.integers(-4000, 4000))
    drawn = draw(st.lists(places, max_size=30))
    made = [class_of(number, slope, at) for number, (slope, at) in enumerate(drawn)]
    for eqclass in made:
        eqclass.refusal = draw(st.sampled_from(VERDICTS))
    return made


@profile(max_examples=budget.examples(300))
@given(left=eqclasses(), data=st.data())
def test_a_pass_tries_all_in_order_whatever_becomes_of_them(
    left: list[EquivalenceClass], data: st.DataObject
) -> None:
    line = Line(FIFO, NOW, left)
    for _ in range(data.draw(st.integers(0, 40))):
        expected = min(left, key=turn, default=None)
        if expected is None:
            assert line.first() is None
            return
        assert line.first() == (turn(expected), expected)
        until = (False, data.draw(st.sampled_from((-2000, 0, 4000))), 0, 0, "")
        match data.draw(st.sampled_from(("tried", "goes on", "later", "leave"))):
            case "tried":
                left.remove(expected)
                line.pop()
            case "goes on":  # with another head, which is behind the last one
                line.pop()
                _move(expected, data.draw(st.integers(1, 50)))
                line.push(expected)
            case "later":  # the share of its group has grown
                _move(expected, data.draw(st.integers(1, 50)))
                line.renew(turn(expected))
            case _:
                kept = [one for one in left if turn(one) >= until or not one.may_keep_verdict]
                assert line.leave(until) == len(left) - len(kept)
                left = kept


def _move(eqclass: EquivalenceClass, by: int) -> None:
    at, number, uid = eqclass.key
    eqclass.rank((at + by, number, uid))


def test_classes_that_are_not_left_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """10,000 classes that wait for bindings asked for 10,000 looks each: 2 s in one pass."""
    looks = 0

    def counted(_: EquivalenceClass) -> bool:
        nonlocal looks
        looks += 1
        return False

    made = [class_of(number, 0, number) for number in range(100)]
    line = Line(FIFO, NOW, made)
    monkeypatch.setattr(EquivalenceClass, "may_keep_verdict", property(counted))
    for _ in range(50):
        line.pop()
        assert line.leave(turn(made[90])) == 0
    assert looks == 89


def test_turns_that_may_change_are_more_work() -> None:
    fair = Turns(Settings(reclaim=False, fairness=Fairness.NAMESPACE), NONE, NONE)
    fair._known[("", "")] = 0
    made = [class_of(number, 0, number) for number in range(6)]
    assert Line(FIFO, NOW, made).steps == 3
    assert Line(fair, NOW, made).steps == 12
