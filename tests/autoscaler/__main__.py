"""Plays the stories, and counts what issues are judged by.

    python -m tests.autoscaler [--stories 500] [--first 0] [--jobs 2]
    python -m tests.autoscaler --writes [--jobs 2]

Of each seed it plays two worlds: a story with stock-outs, late and lost nodes, users and one fault
(``stories.story``), and gangs that run for ever, of which every second world has stock-outs and
orders without an answer, to compare the nodes made with the nodes needed (``stories.lasting``).
With ``--writes`` it kills the dispatcher at every write of a short story, for each way to ask
(``crashes``). Some ten minutes of two cores each. The exit code is 1 if a bound does not hold.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby

from tests.autoscaler import crashes
from tests.autoscaler.growing import GrowingWorld, grow
from tests.autoscaler.stories import lasting, story
from tests.autoscaler.waits import Cause

LATE = 0.002
EXACT = 0.99


@dataclass
class Figures:
    """What was counted, and what is to be said of single worlds."""

    counts: Counter[str] = field(default_factory=Counter)
    said: list[str] = field(default_factory=list)

    def add(self, other: Figures) -> None:
        """Sum up."""
        self.counts.update(other.counts)
        self.said += other.said

    def missed(self) -> Iterator[str]:
        """The bounds that do not hold."""
        counts = self.counts
        for name in ("gangs dispatched without their nodes", "requests left", "other troubles"):
            if counts[name]:
                yield f"{name}: {counts[name]}"
        if counts["late: ours"] > LATE * counts["pods"]:
            yield f"late pods: {counts['late: ours']} of {counts['pods']}"
        if counts["exact"] < EXACT * counts["lasting"]:
            yield f"worlds with exactly the nodes needed: {counts['exact']} of {counts['lasting']}"
        if counts["ordered in vain"] > (1 - EXACT) * counts["ordered"]:
            yield f"ordered in vain: {counts['ordered in vain']} of {counts['ordered']}"

    def __str__(self) -> str:
        counts = self.counts
        share = 100 * counts["late: ours"] / max(counts["pods"], 1)
        return "\n".join(
            (
                f"{counts['stories']} stories, {counts['gangs']} dispatches, {counts['pods']} pods",
                f"gangs dispatched without their nodes: "
                f"{counts['gangs dispatched without their nodes']}",
                f"requests left at the end: {counts['requests left']}",
                f"other troubles: {counts['other troubles']}",
                f"pods without a node for more than 5 s, where no node went: "
                f"{counts['late: ours']} ({share:.2f} %)",
                f"  besides: in the place of pods whose node went: {counts['late: replaces']}; "
                f"node gone between dispatch and binding: {counts['late: robbed']}",
                f"nodes ordered: {counts['ordered']}, of these for no AppWrapper that waits: "
                f"{counts['ordered in vain']}",
                f"nodes that came: {counts['made']}; taken back by the cloud: {counts['lost']}; "
                f"without a pod to the end: {counts['unused']}",
                f"{counts['lasting']} worlds of gangs that stay: {counts['lasting made']} nodes "
                f"made, {counts['lasting needed']} needed; exactly as many as needed in "
                f"{counts['exact']}; late pods: {counts['lasting late']}",
            )
        )


def of_story(seed: int) -> Figures:
    """The figures of one story."""
    told, worlds = story(seed), list[GrowingWorld]()
    found = Figures(Counter(stories=1))
    trouble = ""
    try:
        grow(told.scenario, told.groups, told.moods, told.plan, worlds.append)
    except AssertionError as error:
        trouble = str(error)
    world = worlds[0]
    figures, waits, judged = world.autoscaler.figures, world.waits, world.dispatches
    found.counts.update(
        {
            "gangs": len(judged.nodes),
            "pods": len(waits.pods),
            "gangs dispatched without their nodes": len(judged.without_nodes),
            "requests left": len(world.left),
            "other troubles": bool(trouble and not (judged.without_nodes or world.left)),
            "ordered": figures.ordered,
            "ordered in vain": len(world.unneeded),
            "made": figures.made,
            "lost": figures.lost,
            "unused": len(world.wasted),
            **{f"late: {one.name.lower()}": len(waits.of(one)) for one in Cause},
        }
    )
    lines = [*map(str, waits.late), *judged.without_nodes, *world.left]
    lines += [f"ordered in vain for {one}" for one in world.unneeded]
    found.said = [f"story {seed}, {told.via}: {one}" for one in (*lines, trouble) if one]
    return found


def of_lasting(seed: int) -> Figures:
    """The figures of one world of gangs that run for ever."""
    told, worlds = lasting(seed), list[GrowingWorld]()
    found = Figures(Counter(lasting=1))
    try:
        grow(told.scenario, told.groups, told.moods, seen=worlds.append)
    except AssertionError as error:
        found.counts["other troubles"] += 1
        found.said.append(f"lasting {seed}: {error}")
    world = worlds[0]
    made = len(world.autoscaler.figures.ready_s)
    late = len(world.waits.late)
    found.counts.update(
        {
            "lasting made": made,
            "lasting needed": told.needed,
            "exact": made == told.needed,
            "lasting late": late,
        }
    )
    if made != told.needed or late:
        found.said.append(f"lasting {seed}: {made} nodes for {told.needed}, {late} pods late")
    return found


def of_seed(seed: int) -> Figures:
    """Both."""
    found = of_story(seed)
    found.add(of_lasting(seed))
    return found


def play_stories(pool: Executor, seeds: range) -> bool:
    """Whether a bound does not hold."""
    whole = Figures()
    for found in pool.map(of_seed, seeds):
        whole.add(found)
        print(*found.said, sep="\n", end="\n" if found.said else "", flush=True)
    missed = [f"MISSED {one}" for one in whole.missed()]
    print(whole, *missed, sep="\n")
    return bool(missed)


def play_crashes(pool: Executor) -> bool:
    """Whether a crash changes how the story ends."""
    cases = list(crashes.cases())
    total = 0
    ends = zip(cases, pool.map(crashes.broken, *zip(*cases, strict=True)), strict=True)
    for (via, fault), group in groupby(ends, lambda one: one[0][:2]):
        found = [wrong for _, wrong in group]
        wrong = list(filter(None, found))
        total += len(wrong)
        print(*wrong, f"{via}, {fault.name}: {len(found)} writes, {len(wrong)} wrong", sep="\n")
        sys.stdout.flush()
    print(f"{len(cases)} crashes, {total} with another end")
    return bool(total)


def main() -> int:
    """Play and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stories", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="seed")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--writes", action="store_true", help="a crash at every write")
    options = parser.parse_args()
    with ProcessPoolExecutor(options.jobs) as pool:
        if options.writes:
            return play_crashes(pool)
        return play_stories(pool, range(options.first, options.first + options.stories))


if __name__ == "__main__":
    sys.exit(main())
