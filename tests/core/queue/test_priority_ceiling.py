"""maxPriority: a reservation above the ceiling is cut, and said."""

from __future__ import annotations

import pytest

from mcad.core.queue.priority_ceiling import cut
from mcad.core.state.settings import Settings
from tests.core.bench import Bench, node, workload

CUT = "spec.priority: 100 is above the maxPriority of namespace default; it queues with {}."


@pytest.mark.parametrize(
    ("ceilings", "asked", "given", "warnings"),
    [
        pytest.param({}, (100, 5), (100, 5), (), id="no ceiling"),
        pytest.param({"other": 1}, (100, 5), (100, 5), (), id="not this namespace"),
        pytest.param({"default": 100}, (100, 0), (100, 0), (), id="at the ceiling"),
        pytest.param({"default": 10}, (-7, 0), (-7, 0), (), id="below"),
        pytest.param({"default": 10}, (100, 0), (10, 0), (CUT.format(10),), id="above"),
        pytest.param({"default": -1}, (0, 0), (-1, 0), None, id="no reservation, below zero"),
        pytest.param({"*": 3}, (100, 0), (3, 0), (CUT.format(3),), id="the others"),
        pytest.param({"*": 3, "default": 200}, (100, 0), (100, 0), (), id="named, not others"),
        pytest.param({"default": 10}, (0, 5), (0, 5), (), id="climbing"),
        pytest.param({"default": 10}, (0, -5), (0, -5), (), id="sinking"),
        pytest.param({"*": 3}, (100, 1), (3, 1), (CUT.format(3),), id="both"),
    ],
)
def test_cut(
    ceilings: dict[str, int],
    asked: tuple[int, int],
    given: tuple[int, int],
    warnings: tuple[str, ...] | None,
) -> None:
    work = cut(workload("a", 1, priority=asked[0], slope=asked[1], warnings=("x",)), ceilings)
    assert (work.priority, work.slope) == given
    if warnings is not None:
        assert work.warnings == ("x", *warnings)


def bench(**ceilings: int) -> Bench:
    return Bench(nodes=[node(milli=0)], settings=Settings(max_priority=tuple(ceilings.items())))


def notes(where: Bench) -> list[str]:
    return [one.note for one in where.events if one.reason == "ManifestWarning"]


def test_a_priority_above_the_ceiling_stands_behind_those_first_seen() -> None:
    line = bench(default=10)
    line.submit(workload("first", 100, priority=10))
    line.submit(workload("greedy", 100, priority=100, slope=10**9))
    line.submit(workload("modest", 100, priority=5))
    line.settle()
    line.advance(3600)

    order = [row.name for row in line.queue()]
    assert order == ["first", "greedy", "modest"]
    assert notes(line) == [CUT.format(10)]
    assert line.status["uid-greedy"].system_priority == 10


def names(line: Bench) -> list[str]:
    return [row.name for row in line.queue()]


def test_a_slope_climbs_to_the_ceiling_and_no_further() -> None:
    """At 1 a second "climber" passes "middle" after 5 s, and never "top", which stands at 10."""
    line = bench(default=10)
    line.submit(workload("climber", 100, priority=0, slope=1_000_000))
    line.submit(workload("top", 100, priority=10))
    line.submit(workload("middle", 100, priority=5))
    line.submit(workload("sprinter", 100, priority=0, slope=10**9))
    line.settle()
    assert names(line) == ["top", "middle", "climber", "sprinter"]
    line.advance(1)
    line.settle()
    # At the ceiling they stand by first-seen time, however fast they came there.
    assert names(line) == ["top", "sprinter", "middle", "climber"]
    line.advance(6)
    line.settle()
    assert names(line) == ["top", "sprinter", "climber", "middle"]
    line.advance(3600)
    line.settle()
    assert names(line) == ["climber", "top", "sprinter", "middle"]
    writes = line.writes
    line.advance(3600)
    line.crash()
    line.settle()
    assert names(line) == ["climber", "top", "sprinter", "middle"]
    assert line.writes == writes


def test_a_priority_that_is_raised_later_is_said_once() -> None:
    line = bench(default=10)
    line.submit(workload("a", 100, priority=1))
    line.settle()
    assert notes(line) == []
    line.edit("uid-a", priority=100)
    line.settle()
    line.edit("uid-a", priority=100, min_available=1)
    line.settle()
    line.crash()
    line.settle()
    assert notes(line) == [CUT.format(10)]
    assert line.status["uid-a"].system_priority == 10
