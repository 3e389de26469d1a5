"""An error of the dispatcher at any place of a pass holds one AppWrapper, and all others go on.

Each seed lives through a history, and raises at one call of one function of the core in one of its
passes, while the pass works on one AppWrapper. Of two histories with one seed the first counts the
calls, so that every place can be drawn. What raises elsewhere is about the whole.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import pytest

import mcad.core
from mcad.core.cycle.cycle import verdict
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Decide, Event
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import PodPhase
from mcad.core.state.reasons import ConditionType
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND, Instant
from tests import budget, errors_held
from tests.core.bench import Bench, node, random_life

CORE = str(Path(mcad.core.__file__).parent)
ASIDE = ("dispatcher.py", "internal_errors.py", "invariants.py", "errors.py", "internal_error.py")
"""Files with the handling of errors itself."""

SEEDS = 200
AT_LEAST_IN_PLACE = 0.8
"""Of the raises, those after which the same process goes on."""

SETTINGS = Settings(
    preemption=True,
    min_run_time=0,
    placement_timeout=0,
    binding_wait=0,
    protect_after=20 * SECOND,
)


class InjectedError(Exception):
    """Raised at the place that was drawn."""


@dataclass
class Raiser:
    """Counts the calls of functions of the core in passes, and raises at number ``at``."""

    at: int = 0
    dispatcher: Dispatcher | None = None
    calls: int = 0
    place: str = ""

    def lead(self, settings: Settings) -> Dispatcher:
        """A dispatcher under its eyes."""
        self.dispatcher = _Traced(settings, self)
        return self.dispatcher

    def trace(self, frame: FrameType, event: str, _: Any) -> None:
        """For ``sys.settrace``: no line is traced."""
        code = frame.f_code
        if not code.co_filename.startswith(CORE) or code.co_filename.endswith(ASIDE):
            return
        if self.dispatcher is None or not self.dispatcher.cluster.errors.about:
            return
        self.calls += 1
        if self.calls == self.at:
            self.place = f"{code.co_filename.removeprefix(CORE)}: {code.co_name}"
            raise InjectedError(self.place)


class _Traced(Dispatcher):
    def __init__(self, settings: Settings, raiser: Raiser) -> None:
        super().__init__(settings)
        self._raiser = raiser

    def step(self, event: Event, now: Instant) -> tuple[Any, ...]:
        if not isinstance(event, Decide) or self._raiser.place:
            return super().step(event, now)
        self.cluster.errors.about = ""  # what the step before was about
        sys.settrace(self._raiser.trace)
        try:
            return super().step(event, now)
        finally:
            sys.settrace(None)


def history(bench: Bench, seed: int) -> Iterator[None]:
    """A random life in which pods find nodes and end."""
    rng = Random(seed)
    for _ in random_life(bench, rng, 12):
        for ref, thing in list(bench.things.items()):
            if not thing.node and rng.random() < 0.6:
                bench.bind(ref.name, f"n{rng.randint(0, 5)}")
            elif thing.node and rng.random() < 0.2:
                bench.change(ref.name, phase=PodPhase.SUCCEEDED)
        if rng.random() < 0.3:
            bench.advance(rng.choice((1, 5, 30)))
        yield


def live(seed: int, raiser: Raiser) -> tuple[Bench, int]:
    """The bench at the end, and how often a process ended by itself."""
    ends = 0
    nodes = [node(f"n{number}", 900) for number in range(3)]
    bench = Bench(SETTINGS, nodes, lead=raiser.lead)
    story = history(bench, seed)
    while True:
        try:
            next(story)
        except StopIteration:
            return bench, ends
        except Exception:
            if not raiser.place or ends:
                raise
            ends += 1
            bench.restart()
            bench.advance(60)
            return bench, ends


def held(bench: Bench) -> list[str]:
    """The names of the AppWrappers that are held."""
    entries = bench.dispatcher.cluster.entries.values()
    return [one.workload.name for one in entries if one.phase is Phase.HELD]


def waiting_in_vain(bench: Bench) -> list[str]:
    """The names of AppWrappers in line that fit all the same."""
    cluster = bench.dispatcher.cluster
    questions = cluster.capacity.questions()
    return [
        eqclass.first().workload.name
        for eqclass in cluster.waiting.queue.eqclasses()
        if verdict(cluster, questions, eqclass) is None
    ]


@dataclass
class Result:
    """What became of one raise: whether the process went on, and whether one was held."""

    place: str
    ends: int
    held: list[str]


def raise_once(seed: int) -> Result:
    """One history with one raise, which is checked."""
    counted = Raiser()
    live(seed, counted)
    raiser = Raiser(at=1 + Random(f"place {seed}").randrange(counted.calls))
    with errors_held():
        bench, ends = live(seed, raiser)
        result = Result(raiser.place, ends, held(bench))
        assert raiser.place
        assert len(result.held) <= 1, result
        assert ends <= 1, result
        assert result.held or not ends, "a process ended without saying why"
        assert not waiting_in_vain(bench), result
        for name in result.held:
            _check_held(bench, name)
            _check_released(bench, name)
    return result


def _check_held(bench: Bench, name: str) -> None:
    entry, cluster = bench.entry(name), bench.dispatcher.cluster
    shown = bench.condition(name, ConditionType.INTERNAL_ERROR)
    assert shown is not None
    assert shown[0]
    assert entry.error is not None
    assert entry.error.id in shown[2]
    mine = [ref for ref, thing in bench.things.items() if thing.child.workload == entry.uid]
    assert not mine or cluster.capacity.gangs.exists(entry.uid), f"{name} has objects without room"
    bench.restart()
    assert held(bench) == [name], "a restart tries again"


def _check_released(bench: Bench, name: str) -> None:
    bench.edit(bench.entry(name).uid)
    bench.settle()
    bench.advance(60)
    assert not held(bench)
    assert bench.condition(name, ConditionType.INTERNAL_ERROR) is None
    assert not waiting_in_vain(bench)


# A generator that is closed early runs once more: Python ignores what is raised in it there.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("block", budget.draw(range(0, SEEDS, 20), 2, "raises"))
def test_an_error_at_any_place_of_a_pass_holds_one_and_the_others_go_on(block: int) -> None:
    results = [raise_once(seed) for seed in range(block, block + 20)]

    found = Counter(bool(one.ends) for one in results)
    assert found[False] >= AT_LEAST_IN_PLACE * len(results), [one for one in results if one.ends]


def main() -> None:
    """`python -m tests.faults.test_raises`: all seeds, and what became of them."""
    results = [raise_once(seed) for seed in range(SEEDS)]
    ended = [one for one in results if one.ends]
    held_now = sum(bool(one.held) for one in results)
    print(f"{len(results)} raises: held at the end {held_now}, process ended {len(ended)}")
    for one in ended:
        print(f"  {one.place} {one.held}")


if __name__ == "__main__":
    main()
