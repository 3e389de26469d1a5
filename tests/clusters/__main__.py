"""``python -m tests.clusters``: what happens without each rule, and that nothing does with all."""

from __future__ import annotations

import argparse
import sys
from random import Random

from tests.clusters.accept import accepts
from tests.clusters.cases import (
    DRAWN,
    ENDLESS,
    GAPS,
    HARMS,
    LARGE,
    SMALL,
    WASTES,
    Case,
    wasted,
)
from tests.clusters.explore import endless, history, search
from tests.clusters.model import ALL, Model, Step, World, harm
from tests.clusters.observe import observed


def main() -> int:
    """Print all tables; 1 if anything differs from what ``cases`` says."""
    parser = argparse.ArgumentParser(prog="python -m tests.clusters", description=__doc__)
    parser.add_argument("--traces", action="store_true", help="print the steps to each harm")
    parser.add_argument("--depth", type=int, default=14, help="of worlds with two leaders")
    parser.add_argument("--histories", type=int, default=2000, help="that are drawn, of each world")
    options = parser.parse_args()
    wrong = 0
    print("One rule off: the shortest harm")
    for case in HARMS:
        wrong += not _harm(case, with_trace=options.traces)
    print("\nOne rule off: no harm, but work is lost or nothing ends")
    for case in WASTES:
        lost, with_all = wasted(case.rules, case.world), wasted(ALL, case.world)
        wrong += not lost or bool(with_all)
        print(
            f"  {case!s:32} {lost} needless deletes of running attempts; with the rule {with_all}"
        )
    for case in ENDLESS:
        found = endless(Model(case.rules, case.world))
        wrong += not found.without
        print(f"  {case!s:32} {found.without} of {found.states} states without an ending")
        _show(found.trace, options.traces)
    print("\nAll rules on: every state, and an ending in reach of each")
    for name, world in SMALL.items():
        wrong += not _small(name, world)
    print(f"\nAll rules on, two leaders: every state up to {options.depth} steps")
    for name, world in LARGE.items():
        wrong += not _large(name, world, options.depth)
    print(f"\nAll rules on: {options.histories} histories of each world")
    for name, world in DRAWN.items():
        wrong += not _drawn(name, world, options.histories)
    print("\nAll rules on: what they do not cover")
    for name, world in GAPS.items():
        found = search(Model(ALL, world))
        wrong += not found.harm
        print(f"  {name}: {found.harm} in {len(found.trace)} steps")
        _show(found.trace, options.traces)
    return wrong > 0


def _harm(case: Case, *, with_trace: bool) -> bool:
    found = search(Model(case.rules, case.world))
    print(f"  {case!s:32} {found.harm} in {len(found.trace)} steps ({found.states} states)")
    _show(found.trace, with_trace)
    return len(found.trace) == case.steps


def _show(trace: tuple[Step, ...], is_wanted: bool) -> None:
    for number, step in enumerate(trace if is_wanted else (), 1):
        print(f"    {number:3}. {step}")


def _small(name: str, world: World) -> bool:
    found, ends = search(Model(ALL, world)), endless(Model(ALL, world))
    waiting = f", {ends.waiting} wait for a person to fence" if ends.waiting else ""
    print(f"  {name:32} {found.states} states, {found.steps} steps: {_verdict(found.harm)}", end="")
    print(f"; {ends.without} without an ending{waiting}")
    return not found.harm and not ends.without


def _large(name: str, world: World, depth: int) -> bool:
    found = search(Model(ALL, world), depth=depth)
    print(f"  {name:32} {found.states} states, {found.steps} steps: {_verdict(found.harm)}")
    return not found.harm


def _drawn(name: str, world: World, count: int) -> bool:
    harms, refused, steps = 0, 0, 0
    for seed in range(count):
        played = list(history(Model(ALL, world), Random(seed), 100))
        steps += len(played)
        harms += any(harm(*one) for one in played)
        refused += not accepts(observed(played), is_over=not world.clones).is_allowed
    print(f"  {name:32} {steps} steps: {harms} with harm, {refused} not accepted")
    return not harms and not refused


def _verdict(harm: str) -> str:
    return harm or "no harm"


if __name__ == "__main__":
    sys.exit(main())
