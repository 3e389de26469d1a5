"""The line of a pass against a plain reference, which sorts all that are left again and again."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st

from mcad.core.nodes.shape import Shape
from mcad.core.queue import line as line_module
from mcad.core.queue.active import ActiveClasses
from mcad.core.queue.equivalence import MS, EquivalenceClass, InadmissibleList, Key, Turn
from mcad.core.queue.line import ActiveLine, WholeLine
from mcad.core.queue.ordering import Turns
from mcad.core.queue.queue import Queue
from mcad.core.state.refusal import Refusal
from mcad.core.state.settings import Fairness, Settings
from mcad.core.state.waiting_reason import WaitingReason

NONE = cast("Any", None)
FIFO = Turns(Settings(reclaim=False), NONE, NONE)
BLOCKED = Refusal(WaitingReason.BLOCKED)
NO_ROOM, BINDING = Refusal(WaitingReason.INSUFFICIENT), Refusal(WaitingReason.BINDING)
VERDICTS = (None, NO_ROOM, BINDING)
SLOPES, NOW = (0, 3, 250), 7_000_000


def class_of(number: int, slope: int, at: int) -> EquivalenceClass:
    """A class with a head of that place; each number has a key of its own."""
    series = FIFO.series(slope, (), "", Shape.of(()))
    made = EquivalenceClass(Shape.of(()), slope, (), "", InadmissibleList(), series=series)
    made.rank((at, number, f"uid-{number}"))
    return made


def turn(eqclass: EquivalenceClass) -> Turn:
    return FIFO.of(eqclass, NOW)


@st.composite
def lines(draw: st.DrawFn) -> tuple[list[EquivalenceClass], list[EquivalenceClass]]:
    """Classes that need a verdict, and some that may need one later."""
    places = st.tuples(st.sampled_from(SLOPES), st.integers(-4000, 4000))
    drawn = draw(st.lists(places, max_size=30))
    made = [class_of(number, slope, at) for number, (slope, at) in enumerate(drawn)]
    for eqclass in made:
        eqclass.refusal = draw(st.sampled_from(VERDICTS))
    cut = draw(st.integers(0, len(made)))
    return made[:cut], made[cut:]


class Reference:
    """All classes that a pass still has to try."""

    def __init__(self, classes: list[EquivalenceClass]) -> None:
        self.left = list(classes)

    def next(self) -> EquivalenceClass | None:
        return min(self.left, key=turn, default=None)

    def leave(self, first: EquivalenceClass, until: Turn, lined_up: set[EquivalenceClass]) -> None:
        """All of its slope that may keep their verdict are tried no more, but for those that are
        lined up already."""
        self.left = [
            one
            for one in self.left
            if one in lined_up
            or not (first.may_keep_verdict and one.may_keep_verdict)
            or one.slope != first.slope
            or turn(one) >= until
        ]


OUTCOMES = ("refused", "stays", "has another verdict", "is left", "goes on", "requeues")


@pytest.fixture(params=[1, 3, 32])
def read_ahead(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "READ_AHEAD", request.param)


@pytest.mark.usefixtures("read_ahead")
@profile(max_examples=150)
@given(drawn=lines(), data=st.data())
def test_a_pass_tries_all_in_order_whatever_becomes_of_them(
    drawn: tuple[list[EquivalenceClass], list[EquivalenceClass]], data: st.DataObject
) -> None:
    """Several passes, each of which may end before its line does."""
    waiting, resting = drawn
    active = ActiveClasses(is_ordered=True)
    for eqclass in waiting:
        active.add(eqclass)
    for _ in range(3):
        line, reference = ActiveLine(FIFO, NOW, active), Reference(list(active._places))
        until = (False, data.draw(st.integers(-4000, 4000)), 0, 0, "")
        for _ in range(data.draw(st.integers(0, 20))):
            first, expected = line.find_first(), reference.next()
            if expected is None:
                assert first is None
                break
            assert first == (turn(expected), expected)
            outcome = data.draw(st.sampled_from(OUTCOMES))
            reference.left.remove(expected)
            if outcome == "is left" and turn(expected) < until:
                lined_up = {eqclass for _, eqclass in line._heap}
                line.leave(until)
                reference.leave(expected, until, lined_up)
                continue
            line.pop()
            if outcome == "refused":
                active.remove(expected)
                resting.append(expected)
            elif outcome == "has another verdict":
                expected.refusal = data.draw(st.sampled_from(VERDICTS))
                active.move(expected)
            elif outcome == "goes on":  # with another head, which is behind the last one
                at, number, uid = expected.key
                expected.rank((at + data.draw(st.integers(1, 50)), number, uid))
                active.move(expected)
                line.push(expected)
                reference.left.append(expected)
            elif outcome == "requeues":
                behind = [one for one in resting if turn(one) > turn(expected)]
                for one in behind[:2]:
                    one.refusal = data.draw(st.sampled_from(VERDICTS))
                    resting.remove(one)
                    active.add(one)
                    line.push(one)
                    reference.left.append(one)
        for eqclass in data.draw(st.permutations(list(active._places)))[
            :2
        ]:  # another head comes or goes
            at, number, uid = eqclass.key
            eqclass.rank((at + data.draw(st.integers(-50, 50)), number, uid))
            active.move(eqclass)
        active.check([*active._places, *resting])


def test_what_was_passed_and_needs_a_verdict_is_in_the_line_of_the_next_pass() -> None:
    active, one, two = ActiveClasses(is_ordered=True), class_of(1, 0, 0), class_of(2, 0, 0)
    for eqclass in (one, two):
        active.add(eqclass)
    line = ActiveLine(FIFO, NOW, active)
    line.pop()
    active.add(one)  # requeued once more
    assert line.find_first() == (turn(two), two)
    line.pop()
    assert line.find_first() is None
    assert ActiveLine(FIFO, NOW, active).find_first() == (turn(one), one)


def test_one_that_goes_on_is_in_the_line_once() -> None:
    active, one = ActiveClasses(is_ordered=True), class_of(1, 0, 0)
    active.add(one)
    line = ActiveLine(FIFO, NOW, active)
    for at in (1, 2, 3):
        line.pop()
        assert line.find_first() is None
        one.rank((at, *one.key[1:]))
        active.move(one)
        line.push(one)
    assert order(line) == [1]


def order(line: ActiveLine) -> list[int]:
    """The numbers of the classes that are tried next."""
    found = []
    while (first := line.find_first()) is not None:
        found.append(first[1].key[1])
        line.pop()
    return found


def test_of_one_series_only_the_first_is_put_in_the_line() -> None:
    """Ten thousand shapes are as many classes."""
    active = ActiveClasses(is_ordered=True)
    for number in range(10_000):
        active.add(class_of(number, SLOPES[number % 2], number))
    line = ActiveLine(FIFO, NOW, active)
    assert line.seen == 2
    line.pop()
    assert line.seen == 3


@pytest.mark.parametrize("has_read_ahead", [False, True])
def test_all_that_keep_their_verdict_are_left_out_at_once(has_read_ahead: bool) -> None:
    """Room rose for thousands that are ahead, and a pass has no time for them."""
    active, rng = ActiveClasses(is_ordered=True), range(10_000)
    classes = [class_of(number, 0, number) for number in rng]
    for eqclass in classes:
        eqclass.refusal = None if eqclass.key[1] % 4_000 == 10 else NO_ROOM
        active.add(eqclass)
    line = ActiveLine(FIFO, NOW, active)
    if has_read_ahead:
        line.pop()
    line.leave((False, 9_990, 0, 0, ""))
    assert order(line) == [10, 4_010, 8_010, *range(9_990, 10_000)]
    assert line.seen < 20


def test_turns_that_change_take_longer_to_find() -> None:
    active = ActiveClasses(is_ordered=True)
    for number in range(6):
        active.add(class_of(number, number, number))
    fair = Turns(Settings(reclaim=False, fairness=Fairness.LEAF), NONE, NONE)
    assert ActiveLine(FIFO, NOW, active).steps == 3
    assert ActiveLine(fair, NOW, active).steps == 12


def test_those_that_leave_before_their_turn_are_not_tried() -> None:
    active = ActiveClasses(is_ordered=True)
    classes = [class_of(number, 0, number) for number in range(100)]
    for eqclass in classes:
        active.add(eqclass)
    line = ActiveLine(FIFO, NOW, active)
    line.pop()
    for eqclass in classes[2:99]:  # some of them have been read ahead
        active.remove(eqclass)
    assert order(line) == [1, 99]
    for eqclass in (classes[0], classes[1], classes[99]):
        active.remove(eqclass)
    assert active.firsts() == []
    assert not active._parts


@profile(max_examples=50)
@given(drawn=lines())
def test_the_whole_line_is_in_order_without_what_is_skipped(
    drawn: tuple[list[EquivalenceClass], list[EquivalenceClass]],
) -> None:
    classes, more = drawn
    queue = Queue(NONE, NONE, NONE)
    for eqclass in classes:
        queue._by_path.setdefault(eqclass.path, {})[eqclass] = None
        eqclass.refusal = BLOCKED if eqclass.key[1] % 2 else None
    line = WholeLine(FIFO, NOW, queue, BLOCKED, lambda eqclass: eqclass.key[1] % 3 == 0)
    assert list(queue.eqclasses()) == sorted(classes, key=turn)
    expected = [one for one in classes if not (one.key[1] % 2 and one.key[1] % 3 == 0)]
    for one in more[:2]:  # pushed while it is passed
        line.push(one)
        expected.append(one)
    expected.sort(key=turn)
    for eqclass in expected:
        assert line.find_first() == (turn(eqclass), eqclass)
        line.pop()
    assert line.find_first() is None


KEYS = st.tuples(st.integers(-2, 2), st.integers(0, 2), st.sampled_from(["a", "b", "c"]))


@given(
    key=KEYS,
    until=st.tuples(
        st.booleans(),
        st.integers(-2, 2),
        st.integers(0, 2),
        st.integers(0, 2),
        st.sampled_from("abc"),
    ),
    borrows=st.booleans(),
    share=st.integers(0, 2),
    slope=st.sampled_from(SLOPES),
)
def test_where_those_begin_in_a_series_that_are_not_before_a_turn(
    key: Key, until: Turn, borrows: bool, share: int, slope: int
) -> None:
    series, another = FIFO.series(slope, (), "", Shape.of(())), (borrows, 0, share, 0, "z")
    until = (until[0], until[1] - slope * (NOW // MS), *until[2:])
    of_key = FIFO.alike(another, key, series, NOW)
    assert of_key == (borrows, key[0] - slope * (NOW // MS), share, *key[1:])
    assert (key >= FIFO.first_key(another, series, until, NOW)) == (of_key >= until)
