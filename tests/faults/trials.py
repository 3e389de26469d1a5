"""Trials: one history drawn by a seed, with all that goes wrong in it, as a list of parts.

A trial that fails is shrunk: parts are left out as long as it fails in the same way. What is left
is told with the line that plays it alone.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from math import inf
from random import Random
from typing import NamedTuple, TypeVar

from tests.faults import two_processes, world
from tests.faults.histories import GUEST, History, arrive, contested, history, leave, visit
from tests.faults.injection import Befalling, Gap, Plan
from tests.faults.moods import moods
from tests.faults.scenarios import Action, Scenario
from tests.faults.troubles import AtEvent, AtWrite, Trouble, clouds, faults, upheavals
from tests.faults.upheavals import GUESTS
from tests.faults.weather import Weather
from tests.faults.world import Outcome

T = TypeVar("T")
TRIES = 150
KINDS: dict[str, Callable[[Random], tuple[History, Scenario]]] = {
    "plain": history,
    "contested": contested,
}
VISITED = 0.4  # that many of all histories have guests
REPLAY = "python -m tests.faults.trials"


class Act(NamedTuple):
    """What a user does at a time."""

    at_s: float
    act: Action
    said: str


@dataclass(frozen=True, slots=True)
class Trial:
    """One history; ``parts`` are what can be left out of it, ``ending`` brings it to rest."""

    kind: str
    seed: int
    scenario: Scenario
    parts: tuple[Act | Trouble, ...]
    ending: tuple[Act, ...]
    is_pair: bool

    def play(self, kept: Collection[int] | None = None) -> Outcome:
        """The outcome with these parts, or all; raises what went wrong."""
        parts = [one for number, one in enumerate(self.parts) if kept is None or number in kept]
        acts = [(one.at_s, one.act) for one in (*parts, *self.ending) if isinstance(one, Act)]
        scenario = replace(self.scenario, acts=tuple(sorted(acts, key=lambda one: one[0])))
        plan = _plan([one for one in parts if not isinstance(one, Act)])
        return two_processes.run(scenario, plan)[0] if self.is_pair else world.run(scenario, plan)

    def replayed_by(self, kept: Collection[int]) -> str:
        """The command that plays it with these parts."""
        return f"{REPLAY} {self.kind} {self.seed} --only {','.join(map(str, kept))}"

    def told(self, kept: Collection[int] | None = None) -> list[str]:
        """What happens in it, one line for each part."""
        settings = self.scenario.config.model_dump(exclude_defaults=True)
        head = f"cpus={self.scenario.cpus} pair={self.is_pair} {settings}"
        parts = [
            f"{number}: {one.said if isinstance(one, Act) else one}"
            for number, one in enumerate(self.parts)
            if kept is None or number in kept
        ]
        return [head, *parts, *(one.said for one in self.ending)]


def drawn(kind: str, seed: int) -> Trial:
    """The trial of a seed."""
    rng = Random(seed)
    told, scenario = KINDS[kind](rng)
    is_pair = rng.random() < 0.2
    acts = [Act(*one, said) for one, said in zip(told.acts, told.said, strict=True)]
    times = [at_s for at_s, _ in told.acts if at_s < told.ends_s]
    troubles = faults(rng, is_pair=is_pair), clouds(Random(f"{kind} {seed}"), times)
    others = Random(f"{kind} {seed} upheavals")
    if others.random() < VISITED:
        at_s, guest = others.choice(times), visit(others)
        acts.append(Act(at_s, partial(arrive, guest), f"{at_s:.2f} {GUEST} comes"))
        if told.ends_s < inf:
            acts.append(Act(told.ends_s, leave, f"{told.ends_s:.2f} {GUESTS} end"))
    ending = tuple(one for one in acts if one.at_s >= told.ends_s)
    troubles = (*troubles, upheavals(others), moods(Random(f"{kind} {seed} moods")))
    parts = (*(one for one in acts if one not in ending), *chain(*troubles))
    return Trial(kind, seed, scenario, parts, ending, is_pair)


def judged(trial: Trial, tries: int = TRIES) -> Outcome:
    """The outcome; raises what went wrong with a note of the fewest parts that still do."""
    try:
        return trial.play()
    except Exception as error:
        fault = gist(error)

        def fails(kept: Sequence[int]) -> bool:
            try:
                trial.play(kept)
            except Exception as other:  # noqa: BLE001 - whatever a run ends with is compared
                return gist(other) == fault
            return False

        kept = shrink(range(len(trial.parts)), fails, tries)
        error.add_note("\n".join((trial.replayed_by(kept), *trial.told(kept))))
        raise


def gist(error: Exception) -> str:
    """How it failed, without the names and figures of the case."""
    text = re.sub(r"\b[a-e](-\w+)*\b|\b\w*\d\w*\b", "*", str(error))
    return f"{type(error).__name__}: {text.split(chr(39))[1:2] or text[:60]}"


def _plan(troubles: Sequence[Trouble]) -> Plan:
    writes: dict[int, Befalling] = {}
    events: dict[int, Gap] = {}
    weather = []
    for one in troubles:
        match one:
            case AtWrite():
                writes.setdefault(one.number, one.fault)
            case AtEvent():
                events.setdefault(one.number, one.gap)
            case _:
                weather.append(one)
    return Plan(
        writes.get, lambda number, line: events.get(number), weather=Weather(tuple(weather))
    )


def shrink(
    parts: Sequence[T], fails: Callable[[Sequence[T]], bool], tries: int = TRIES
) -> Sequence[T]:
    """The parts without those that the failure does not need, after so many tries at most: delta
    debugging (Zeller, ddmin).

    ``fails`` plays some of the parts. With enough tries no single part of the result can go.
    """
    size = len(parts)
    while parts and tries > 0:
        size = min(size, len(parts))
        begin = 0
        is_smaller = False
        while begin < len(parts) and tries > 0:
            rest = [*parts[:begin], *parts[begin + size :]]
            tries -= 1
            if fails(rest):
                parts, is_smaller = rest, True
            else:
                begin += size
        if size == 1 and not is_smaller:
            break
        size = max(1, size // 2)
    return parts


# -- python -m tests.faults.trials contested 17 --only 3,5 ---------------------------------------


def main() -> None:
    """Ends with the failure of the trial, or with what came up in it."""
    parser = argparse.ArgumentParser(description="Play one trial alone.")
    parser.add_argument("kind", choices=tuple(KINDS))
    parser.add_argument("seed", type=int)
    parser.add_argument("--only", help="the numbers of the parts to play")
    parser.add_argument("--shrink", action="store_true")
    given = parser.parse_args()
    trial = drawn(given.kind, given.seed)
    kept = None if given.only is None else [int(one) for one in given.only.split(",") if one]
    print(*trial.told(kept), sep="\n", flush=True)
    outcome = judged(trial) if given.shrink else trial.play(kept)
    print(dict(outcome.cases), outcome.states)


if __name__ == "__main__":
    main()
