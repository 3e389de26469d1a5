"""Starts that a reservation promised, with a kube-scheduler that spreads and binds late (R9)."""

from __future__ import annotations

from itertools import product

import pytest

from tests.core.reservations.promises import Cluster, promised

WORLDS = [
    Cluster(seed, load, mixed, late)
    for (seed, load), mixed, late in product(((0, 0.8), (2, 0.9)), (False, True), (False, True))
]


@pytest.mark.parametrize("cluster", WORLDS, ids=str)
def test_every_promised_start_is_kept(cluster: Cluster) -> None:
    found = list(promised(cluster))
    assert found
    assert [life.job.name for life, is_kept in found if not is_kept] == []
