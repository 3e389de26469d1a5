"""Same events, same commands, byte for byte: under any hash seed, and whatever people ask.

What a dispatcher remembers (which nodes had room for a class of pods, which gang was searched for
without success) depends on events alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from itertools import islice
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType

import numpy as np
import pytest

from mcad.controller.views import capacity_view, detail_view, rows_view
from tests.core.bench import Bench
from tests.core.histories import History, Lives, Places, Teams

ROOT = Path(__file__).parents[2]
PROFILES = (Lives, Teams, Places)
VERDICTS = (
    "Insufficient resources",
    "no placement on nodes does",
    "larger than any node",
    "The head of the line goes first.",
    "Borrowing there: ",
    "Evicted to make room for ",
    " can reclaim its quota",
)
"""What the histories have to tell of."""


def asked(bench: Bench) -> Iterator[object]:
    """Everything that people can ask for."""
    cluster = bench.dispatcher.cluster
    yield rows_view(cluster, bench.now, waiting_only=True, with_starts=True)
    yield rows_view(cluster, bench.now, waiting_only=False)
    yield capacity_view(cluster)
    for entry in islice(cluster.entries.values(), 3):
        yield detail_view(cluster, bench.now, entry.workload.namespace, entry.workload.name)


def told(profile: type[History], seed: int) -> Iterator[str]:
    """All commands of a history, and at its end all answers."""
    history = profile(seed)
    lines: list[str] = []
    history.bench.heard = lambda commands: lines.extend(map(repr, commands))
    history.run(60)
    yield from lines
    yield from map(repr, asked(history.bench))


def test_two_hash_seeds_give_the_same_bytes() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-m", "tests.core.test_determinism"],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in (1, 2)
    }
    (output,) = outputs
    assert [one for one in VERDICTS if one.encode() not in output] == []
    assert len(output.splitlines()) > 2000


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("seed", range(3))
def test_a_question_changes_nothing_that_is_remembered(profile: type[History], seed: int) -> None:
    def ask(_: object) -> None:
        before = digest(history.bench.dispatcher.cluster)
        list(asked(history.bench))
        assert digest(history.bench.dispatcher.cluster) == before

    history = profile(seed)
    history.bench.heard = ask
    history.run(15)


# -- everything that can be reached from an object, as text ----------------------------------------

_CACHES = frozenset({"Constraints._masks", "Constraints._sets", "Prospect._nodes", "Assumed.held"})
"""They hold only what is computed anew otherwise: the nodes that a constraint admits and those of a
gang, and what an AppWrapper has on nodes."""

_ATOMS = (type(None), bool, int, str, bytes, float, Enum, type, FunctionType, BuiltinFunctionType)


def digest(root: object) -> list[str]:
    """One line for each object that is reached, in the order of reaching.

    Identity counts, so an object that is known in two places is told from two equal ones; the
    order of dicts counts, too.
    """
    lines: list[str] = []
    reached: dict[int, object] = {}  # which also keeps them, so that no id is used twice
    todo = [root]
    while todo:
        one = todo.pop()
        if id(one) in reached:
            continue
        reached[id(one)] = one
        parts = list(_parts(one))
        todo += [part for part in parts if not isinstance(part, _ATOMS)]
        named = [repr(p) if isinstance(p, _ATOMS) else f"#{id(p)}" for p in parts]
        lines.append(f"#{id(one)} {type(one).__name__}: {' '.join(named)}")
    return lines


def _parts(one: object) -> Iterator[object]:
    if isinstance(one, dict):
        for key, value in one.items():
            yield key
            yield value
    elif isinstance(one, (list, tuple, set, frozenset)):
        yield from one
    elif isinstance(one, MethodType):
        yield one.__self__
    elif isinstance(one, np.ndarray):
        yield one.tobytes()
    else:
        slots = (name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ()))
        for name in (*getattr(one, "__dict__", ()), *slots):
            if f"{type(one).__name__}.{name}" not in _CACHES and hasattr(one, name):
                yield getattr(one, name)


if __name__ == "__main__":
    for one in PROFILES:
        for number in range(6):
            print(*told(one, number), sep="\n")
