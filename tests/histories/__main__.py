"""``python -m tests.histories --count 10000`` plays many, ``--seed 17`` one with its story.

With ``--whole`` all of the controller takes part, and each takes several times as long.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import traceback
from collections import Counter

from tests.histories.drawing import drawn
from tests.histories.oracle import Violation, judge
from tests.histories.world import World, play

PLAYS_ALONE = "python -m tests.histories --seed"


def played(seed: int, *, is_whole: bool = False) -> tuple[World | None, list[Violation]]:
    """The world after a history, and what is wrong in it; a crash is a violation."""
    history = drawn(seed)
    try:
        world = play(history, is_whole=is_whole)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported with its seed
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"
        return None, [Violation("crash", 0.0, "-", text)]
    return world, judge(world)


def tell(seed: int, *, is_whole: bool) -> bool:
    """Play one history, and print it; whether it is as it should be."""
    print(*drawn(seed).told(), sep="\n")
    world, violations = played(seed, is_whole=is_whole)
    if world is not None:
        for end in world.chronicle.ends():
            name = end.obj["metadata"]["name"]
            print(f"  {end.at_s:.1f} s: attempt {end.attempt} of {name} ends", end="")
            print(f" ({end.was}): {end.reason}: {end.message}")
    print(*violations, sep="\n")
    return not violations


def play_all(seeds: range, *, is_whole: bool) -> bool:
    """Play many histories; prints what is wrong in each, and sums; whether nothing was."""
    rules: Counter[str] = Counter()
    failing, begun_s = 0, time.process_time()
    for seed in seeds:
        violations = played(seed, is_whole=is_whole)[1]
        rules.update({one.rule for one in violations})
        failing += bool(violations)
        for one in violations[:3]:
            print(f"{PLAYS_ALONE} {seed}  # {one}", flush=True)
    each_ms = (time.process_time() - begun_s) / len(seeds) * 1000
    print(f"{len(seeds)} histories, {failing} with violations, {each_ms:.0f} ms of CPU time each")
    print(*(f"{number:6} {rule}" for rule, number in rules.most_common()), sep="\n")
    return not failing


def main() -> None:
    """Exit with 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description="Play random histories of running work.")
    parser.add_argument("--seed", type=int, help="play this one alone, and tell what happens")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--whole", action="store_true")
    given = parser.parse_args()
    logging.getLogger("mcad").setLevel(logging.ERROR)  # the figures are what is read
    if given.seed is not None:
        sys.exit(not tell(given.seed, is_whole=given.whole))
    seeds = range(given.first, given.first + given.count)
    sys.exit(not play_all(seeds, is_whole=given.whole))


if __name__ == "__main__":
    main()
