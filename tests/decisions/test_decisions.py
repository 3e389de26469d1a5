"""What is decided stays as it is, unless a change means to change it.

``python -m tests.decisions --against DIR`` says what differs from another checkout; when that is
meant, ``python -m tests.decisions --digests > tests/decisions/digests.txt`` records it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import budget
from tests.decisions.__main__ import blocks
from tests.decisions.record import KINDS, PROFILES, digest

RECORDED = Path(__file__).with_name("digests.txt").read_text().splitlines()
BLOCK = 12
BLOCKS = range(0, len(RECORDED), BLOCK)


@pytest.mark.parametrize("begin", budget.draw(BLOCKS, 3, "decisions"))
def test_the_decisions_are_those_on_record(begin: int) -> None:
    for line in RECORDED[begin : begin + BLOCK]:
        kind, number, recorded = line.split()
        assert digest(KINDS[kind](int(number))) == recorded, f"{kind} {number}"


def test_a_history_decides_everything_that_is_compared() -> None:
    lines = [line for number in range(2 * len(PROFILES)) for line in KINDS["history"](number)]
    text = "\n".join(lines)
    for word in ("starts, attempt 1, on", "is evicted for", "room for", "no-node", "no-domain"):
        assert word in text, word


def test_text_falls_into_worlds() -> None:
    told = ["== history 1", "a", "b", "== answers 2", "== answers 3", "c"]
    assert list(blocks(iter(told))) == [
        ("== history 1", ["a", "b"]),
        ("== answers 2", []),
        ("== answers 3", ["c"]),
    ]
