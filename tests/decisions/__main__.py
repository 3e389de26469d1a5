"""``python -m tests.decisions --count 2000 --against DIR``: two trees, side by side.

DIR is another checkout. Each history is played in both, and the first difference of each that
differs is printed. Without ``--against`` the decisions themselves are, with ``--digests`` the file
that the suite compares with.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path

from tests.decisions.record import KINDS, digest

HEAD = "== "


def told(numbers: range) -> Iterator[str]:
    """The decisions of these worlds, each after a line with its kind and number."""
    for kind, decide in KINDS.items():
        for number in numbers:
            yield f"{HEAD}{kind} {number}"
            yield from decide(number)


def blocks(stream: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """The same, a world at a time."""
    head, lines = "", []
    for line in map(str.rstrip, stream):
        if line.startswith(HEAD):
            if head:
                yield head, lines
            head, lines = line, []
        else:
            lines.append(line)
    if head:
        yield head, lines


def compare(numbers: range, other: Path) -> int:
    """How many worlds differ from those of the other tree, after their first differences."""
    count, different = 0, 0
    with _tree(Path.cwd(), numbers) as here, _tree(other, numbers) as there:
        assert here.stdout is not None
        assert there.stdout is not None
        for ours, theirs in zip_longest(blocks(here.stdout), blocks(there.stdout)):
            count += 1
            if ours == theirs:
                continue
            different += 1
            print(*_difference(ours, theirs), sep="\n", flush=True)
    if here.returncode or there.returncode:
        raise SystemExit("one of the trees failed")
    print(f"{different} of {count} differ")
    return different


def _tree(where: Path, numbers: range) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.decisions"]
    command += ["--from", str(numbers.start), "--count", str(len(numbers))]
    environment = os.environ | {"PYTHONPATH": str(where)}
    return subprocess.Popen(command, cwd=where, env=environment, stdout=subprocess.PIPE, text=True)


def _difference(
    ours: tuple[str, list[str]] | None, theirs: tuple[str, list[str]] | None
) -> Iterator[str]:
    if ours is None or theirs is None:
        yield "one of the trees has no more"
        return
    yield ours[0]
    for ours_line, their_line in zip_longest(ours[1], theirs[1], fillvalue="(nothing)"):
        if ours_line != their_line:
            yield f"  here  {ours_line}"
            yield f"  there {their_line}"
            return


def main() -> None:
    """Exit with 1 if anything differs."""
    parser = argparse.ArgumentParser(description="Compare what two trees decide.")
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--digests", action="store_true")
    given = parser.parse_args()
    numbers = range(given.first, given.first + given.count)
    if given.against is not None:
        sys.exit(bool(compare(numbers, given.against)))
    for line in digests(numbers) if given.digests else told(numbers):
        print(line)


def digests(numbers: range) -> Iterator[str]:
    """A line for each world: its kind, its number, and the digest of its decisions."""
    for kind, decide in KINDS.items():
        yield from (f"{kind} {number} {digest(decide(number))}" for number in numbers)


if __name__ == "__main__":
    main()
