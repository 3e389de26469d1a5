"""The dispatcher dies at any write of a reclaim: it evicts no more than without that (ADR 29)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mcad.core.commands import WriteStatus
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Dialect, Next, PodPhase, Workload
from mcad.core.state.records import replace
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.quotas import GOLD, child, subtree

RECLAIMS = replace(PATIENT, min_run_time=0, protect_after=0)
GRACE = replace(RECLAIMS, preemption_grace=30 * SECOND)
WRITES_MAX = 60


def of(leaf: str, name: str, milli: int) -> Workload:
    made = workload(name, milli, quota=((GOLD, leaf),), dialect=Dialect.V1BETA2)
    return replace(made, tolerance=replace(made.tolerance, failure_grace=0, retry_pause=SECOND))


class Reclaim:
    """Blue borrows what red owns, until red asks for it. The dispatcher dies at the given status
    write of that: before it is stored, or after, so that only its answer is lost."""

    def __init__(self, settings: Settings, dies_at: int, *, is_stored: bool) -> None:
        self.writes, self.dies_at, self.is_stored = 0, 0, is_stored
        bench = self.bench = Bench(settings, nodes=[node(f"n{n}") for n in range(4)])
        shares = (child("red", cpu=1800), child("blue", cpu=1800))
        root = subtree("root", child("root", cpu=3600))
        bench.share(root, subtree("teams", *shares, parent="root"))
        for number in range(6):
            bench.submit(of("blue", f"b{number}", 900)).settle()
        for number in range(4):
            if f"b{number}" in bench.order:
                bench.bind(f"b{number}-0", f"n{number}")
        bench.settle()
        bench.submit(of("red", "r0", 900), of("red", "r1", 900))

    def fail(self, name: str) -> None:
        """Its pod runs and fails, so it is reset."""
        bench = self.bench
        [node] = bench.dispatcher.cluster.capacity.gangs.nodes_of(f"uid-{name}")
        bench.bind(f"{name}-0", node).change(f"{name}-0", phase=PodPhase.FAILED)
        self.pump()
        assert bench.status[f"uid-{name}"].dispatch.next is Next.RESET

    def run(self, seconds: int) -> None:
        for _ in range(seconds):
            self.pump()
            self.tick()

    def tick(self) -> None:
        """A second passes, and each command is carried out by itself."""
        bench = self.bench
        until = bench.now + SECOND
        while moments := [at for at in bench.wishes if at <= until]:
            bench.now = max(bench.now, min(moments))
            bench.wishes = [at for at in bench.wishes if at > bench.now]
            self.pump()
        bench.now = max(bench.now, until)

    def pump(self) -> None:
        bench = self.bench
        for _ in range(200):
            bench.decide()
            if not bench.pending and bench.now not in bench.wishes:
                return
            while bench.pending:
                command = bench.pending.pop(0)
                self.writes += isinstance(command, WriteStatus)
                if isinstance(command, WriteStatus) and self.writes == self.dies_at:
                    if self.is_stored:
                        bench.apply(command)
                    bench.crash()
                else:
                    bench.execute(command)

    @property
    def evicted(self) -> dict[str, int]:
        """How often each AppWrapper was evicted."""
        status = self.bench.status.items()
        return {uid: one.eviction.count for uid, one in status if one.eviction is not None}

    @property
    def running(self) -> set[str]:
        entries = self.bench.dispatcher.cluster.entries.values()
        return {one.workload.name for one in entries if one.phase is Phase.RUNNING}


@pytest.mark.parametrize("settings", [RECLAIMS, GRACE], ids=["at once", "grace"])
@pytest.mark.parametrize("first", [600, 900])
def test_a_team_that_is_about_to_be_within_its_share_loses_no_more(
    settings: Settings, first: int
) -> None:
    """Blue has 2400 of 2000. The first preemptor takes back what it borrows; the second one finds
    no borrower, also while the victim of the first has not left yet."""
    bench = Bench(settings, nodes=[node(f"n{n}") for n in range(4)])
    shares = (child("red", cpu=2000), child("blue", cpu=2000))
    root = subtree("root", child("root", cpu=4000))
    bench.share(root, subtree("teams", *shares, parent="root"))
    bench.submit(*(of("blue", f"b{number}", 600) for number in range(6))).settle()
    for number in range(4):
        bench.bind(f"b{number}-0", f"n{number}")
    bench.settle()
    bench.submit(of("red", "r0", first), of("red", "r1", 900)).advance(90)
    assert sum(one.eviction is not None for one in bench.status.values()) == 1
    assert bench.order == ["b0", "b1", "b2", "b3", "r0"]


def crashes() -> Iterator[tuple[int, bool]]:
    yield from ((n, stored) for n in range(1, WRITES_MAX + 1) for stored in (False, True))


@pytest.mark.parametrize("settings", [RECLAIMS, GRACE], ids=["at once", "grace"])
def test_a_crash_at_any_write_of_a_reclaim_evicts_no_more(settings: Settings) -> None:
    plain = Reclaim(settings, 10**9, is_stored=True)
    plain.run(90)
    assert {"r0", "r1"} <= plain.running
    assert sum(plain.evicted.values()) == len(plain.evicted) > 0
    assert plain.writes < WRITES_MAX, "a crash at each of them"
    for dies_at, is_stored in crashes():
        if dies_at > plain.writes:
            break
        crashed = Reclaim(settings, dies_at, is_stored=is_stored)
        crashed.run(90)
        where = f"at write {dies_at}, stored: {is_stored}"
        assert {"r0", "r1"} <= crashed.running, where
        assert sum(crashed.evicted.values()) == sum(plain.evicted.values()), where


@pytest.mark.parametrize("settings", [RECLAIMS, GRACE], ids=["at once", "grace"])
def test_an_owner_that_is_reset_evicts_no_more(settings: Settings) -> None:
    """Its share and its room stay with the next attempt, whatever crashes meanwhile."""
    plain = Reclaim(settings, 10**9, is_stored=True)
    plain.run(90)
    writes, evicted = plain.writes, plain.evicted
    plain.fail("r0")
    plain.run(30)
    assert "r0" in plain.running
    assert plain.evicted == evicted
    assert plain.bench.status["uid-r0"].dispatch.attempt == 2
    assert plain.writes < writes + WRITES_MAX, "a crash at each of them"
    for dies_at, is_stored in crashes():
        if writes + dies_at > plain.writes:
            break
        crashed = Reclaim(settings, writes + dies_at, is_stored=is_stored)
        crashed.run(90)
        assert crashed.writes == writes
        crashed.fail("r0")
        crashed.run(30)
        where = f"at write {dies_at}, stored: {is_stored}"
        assert "r0" in crashed.running, where
        assert crashed.evicted == evicted, where
