"""Starts that a reservation promised, with a kube-scheduler that spreads and binds late (R9)."""

from __future__ import annotations

from itertools import product

import pytest

from benchmarks.promises import World, promised

WORLDS = [
    World(seed, load, mixed, late)
    for (seed, load), mixed, late in product(((0, 0.8), (2, 0.9)), (False, True), (False, True))
]


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_every_promised_start_is_kept(world: World) -> None:
    found = list(promised(world))
    assert found
    assert [life.job.name for life, is_kept in found if not is_kept] == []
