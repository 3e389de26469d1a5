"""How much of each enumeration one run of the suite plays.

A push plays one representative of each kind of case, drawn by its commit, so that pushes play
different ones; ``make soak`` (``MCAD_SOAK=1``) plays every case. ``MCAD_SEED`` repeats a draw.

Of what hypothesis draws, and of the seeds of a history, ``make test`` plays a part. ``make
test-all`` plays all of it, and so does pytest without ``-m``.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

SOAK = os.environ.get("MCAD_SOAK", "") not in ("", "0")
"""Whether everything is played."""


def _commit() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):  # an unpacked archive has no commit
        return "none"


IS_PART = False
"""Whether this run is ``make test``; tests/conftest.py knows it before any test is imported."""
OF_EXAMPLES = 4
"""One example in so many is drawn by ``make test``."""


def examples(count: int) -> int:
    """So many examples of hypothesis, or the part of ``make test``."""
    return max(1, count // OF_EXAMPLES) if IS_PART and not SOAK else count


SEED = os.environ.get("MCAD_SEED") or _commit()
"""What is drawn depends on this and on nothing else."""


def rng(*salt: object) -> Random:
    """The generator of one draw; ``salt`` is what it is about."""
    return Random(" ".join(map(str, (SEED, *salt))))


def draw(cases: Sequence[T], count: int, *salt: object) -> list[T]:
    """So many of the cases in their order, or all in a soak."""
    if SOAK or count >= len(cases):
        return list(cases)
    numbers = sorted(rng(*salt).sample(range(len(cases)), count))
    return [cases[number] for number in numbers]


def slow_by_turns(cases: Sequence[tuple[object, ...]], of: int = 2) -> list[Any]:
    """The parameters of a test: ``make test`` plays one in so many cases, and leaves the others to
    ``make test-all``."""
    return [
        pytest.param(*case, marks=[pytest.mark.slow] * (number % of > 0))
        for number, case in enumerate(cases)
    ]


def slow_but_first(cases: Sequence[object]) -> list[Any]:
    """The parameters of a test: ``make test`` plays the first one alone."""
    return slow_by_turns([(case,) for case in cases], max(1, len(cases)))


PART = 0.2
"""How much of the longest enumerations a push plays."""


def half(cases: Sequence[T], *salt: object) -> list[T]:
    """Half of the cases in their order, or all in a soak."""
    return draw(cases, (len(cases) + 1) // 2, *salt)


def in_part(*salt: object) -> bool:
    """Whether this one is in the part that a push plays; in a soak all are."""
    return SOAK or rng("part", *salt).random() < PART


def header() -> str:
    """The line at the head of a run."""
    if SOAK:
        return "budget: every case (MCAD_SOAK)"
    return f"budget: cases drawn by MCAD_SEED={SEED}; MCAD_SOAK=1 plays all"
