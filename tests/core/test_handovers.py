"""Shares and places change hands in one step, and only when pods are gone (P4, P9, C7)."""

from __future__ import annotations

from collections import Counter

import pytest

from tests import budget
from tests.core.handovers import Handovers

BLOCK = 100
HISTORIES = 5_000


@pytest.mark.slow
@pytest.mark.parametrize("begin", budget.draw(range(0, HISTORIES, BLOCK), 1, "handovers"))
def test_no_share_is_used_twice_and_no_turn_is_lost(begin: int) -> None:
    met: Counter[str] = Counter()
    for seed in range(begin, begin + BLOCK):
        life = Handovers(seed)
        try:
            life.run(60)
        except AssertionError as error:
            error.add_note(f"{seed=}")
            raise
        met.update(started=life.started, requeued=life.requeued, outlived=life.outlived)
    assert met["started"] >= 4 * BLOCK, met
    assert met["requeued"] >= BLOCK // 4, met
    assert met["outlived"] >= BLOCK // 4, met
