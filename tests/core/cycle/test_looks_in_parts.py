"""Random lives in which each look takes several passes, with snapshots of a journal in between."""

from __future__ import annotations

import pickle
from random import Random

import pytest

from mcad.core.cycle import admit
from mcad.core.events import NodeSeen
from mcad.core.queue import waiting
from mcad.core.reservations import backfill
from mcad.core.state.bounds import (
    JUDGE_STEPS,
    JUDGED_PER_PASS,
    WORK_PER_PASS,
)
from mcad.core.state.lifecycle import Phase
from mcad.core.state.records import replace
from mcad.core.state.settings import Policy, Settings
from mcad.core.state.units import SECOND
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.preemption.test_search import EAGER

SETTINGS = [
    EAGER,
    replace(EAGER, protect_after=20 * SECOND),
    replace(EAGER, policy=Policy.BACKFILL),
    replace(PATIENT, policy=Policy.BACKFILL),
]
APPWRAPPERS = 30


class Life:
    """AppWrappers come, are edited and deleted, and nodes change, between passes of little work."""

    def __init__(self, settings: Settings, rng: Random) -> None:
        self._rng = rng
        self.bench = Bench(settings, nodes=[node(f"n{number}", 700) for number in range(4)])

    def run(self) -> None:
        for number in range(APPWRAPPERS):
            self._submit(f"w{number}")
            self._rng.choice([self.bench.settle, self.bench.decide, self._passes])()
            self._rng.choice([self._node, self._delete, self._edit, self._snapshot])()
        self.bench.settle()
        self.bench.advance(90)

    def _submit(self, name: str) -> None:
        rng = self._rng
        sizes = [rng.randint(10, 400) for _ in range(rng.randint(1, 3))]
        limit, slope = rng.choice([0, 100, 1000]), rng.choice([0, 0, 10**6])
        changes = {"priority": rng.randint(0, 2), "slope": slope, "run_limit": limit * SECOND}
        self.bench.submit(workload(name, *sizes, **changes))

    def _passes(self) -> None:
        self.bench.advance(self._rng.randint(1, 40))

    def _node(self) -> None:
        name, size = f"n{self._rng.randint(0, 5)}", self._rng.randint(200, 900)
        self.bench.feed(NodeSeen(node(name, size)))

    def _delete(self) -> None:
        self.bench.delete(self._rng.choice(sorted(self.bench.works)))

    def _edit(self) -> None:
        uid = self._rng.choice(sorted(self.bench.works))
        entry = self.bench.dispatcher.cluster.entries.get(uid)
        if entry is not None and entry.phase is Phase.WAITING:
            count = len(self.bench.works[uid].sets)
            sizes = [self._rng.choice([100, 200, 300, 400]) for _ in range(count)]
            self.bench.edit(uid, sets=workload(entry.workload.name, *sizes).sets)

    def _snapshot(self) -> None:
        self.bench.dispatcher = pickle.loads(pickle.dumps(self.bench.dispatcher))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("settings", SETTINGS, ids=["evict", "protect", "both", "backfill"])
def test_looks_in_parts_break_nothing(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, seed: int
) -> None:
    """Invariants are audited after each pass (bench.py), and the dispatcher comes to rest."""
    rng = Random(seed)
    monkeypatch.setattr(waiting, "REFUSED_STEPS", WORK_PER_PASS // rng.choice([1, 2, 3]))
    monkeypatch.setattr(backfill, "BACKFILL_TEST_STEPS", WORK_PER_PASS // rng.choice([1, 2, 5]))
    monkeypatch.setattr(admit, "WORK_PER_PASS", rng.choice([60, 200, 1000]))
    Life(settings, rng).run()


def test_a_pass_that_judges_all_it_may_has_work_left_for_every_look() -> None:
    """After the brief round of hints before it; else only the first look had its turn."""
    assert JUDGED_PER_PASS * JUDGE_STEPS + WORK_PER_PASS // 4 < WORK_PER_PASS
