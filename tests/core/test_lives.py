"""Random lives of both dialects: every line of the table is walked, and the books always agree.

Users, kubelets, nodes and the dispatcher's end are drawn from a seed; requests may be answered late
or not at all. What is checked holds at any moment, or whenever everything has come to rest.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from msgspec.structs import replace

from mcad.core.cluster import AWAITED
from mcad.core.commands import WriteStatus
from mcad.core.events import AppWrapperSeen, NodeSeen, StatusRefused
from mcad.core.state.answer import Answer
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import RETAINING, TABLE, TEARING_DOWN, Phase, Signal
from mcad.core.state.model import (
    Dialect,
    DispatchPhase,
    DispatchRecord,
    Persisted,
    PodPhase,
    Workload,
)
from mcad.core.state.run_policy import FaultTolerance, Growth, Requeuing
from mcad.core.state.settings import Policy, Settings
from mcad.core.state.timers import Timer
from mcad.core.state.units import SECOND, Instant
from mcad.core.status import pod_counts
from tests.core.bench import Bench, node, workload
from tests.core.quotas import GOLD, teams

SEEDS = (*range(270), 345)  # in 345 an object of a kept v1beta1 AppWrapper goes, which is rare
STEPS = 120
NAMES = "abcd"
CONFLICT = Answer(409, "Conflict", "the object has been modified")

Walked = set[tuple[Dialect, Phase, Signal]]


class Life:
    """One random life; ``walked`` are the lines of the table that it went along."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        settings = Settings(
            placement_timeout=self.random.choice((0, 50 * SECOND)),
            protect_after=self.random.choice((0, 30 * SECOND)),
            policy=self.random.choice((Policy.BEST_EFFORT_FIFO, Policy.BACKFILL)),
            pod_counts_interval=self.random.choice((10 * SECOND, 30 * SECOND)),
            backoff=5 * SECOND,
            preemption=self.random.random() < 0.4,
            min_run_time=self.random.choice((0, 30 * SECOND)),
            preemption_grace=self.random.choice((0, 0, 20 * SECOND)),
        )
        self.bench = Bench(settings, nodes=[node("n1", 300), node("n2", 200)])
        if self.random.random() < 0.4:
            self.bench.share(*teams(500, red=250, blue=250))

    def run(self) -> None:
        """All of it."""
        for _ in range(STEPS):
            act = self.random.choice(self.acts())
            act()
            if self.random.random() < 0.25:
                self.bench.settle()
                self.check()
        self.bench.settle()
        self.check()

    def acts(self) -> list[Callable[[], None]]:
        """What may happen; what happens often is there more than once."""
        return [
            self.submit,
            self.submit,
            self.submit_foreign,
            self.suspend,
            self.delete,
            self.delete,
            self.pod_changes,
            self.pod_changes,
            self.pod_changes,
            self.time_passes,
            self.time_passes,
            self.time_passes,
            self.one_command,
            self.one_command,
            self.one_command,
            self.one_command,
            self.one_command,
            self.one_decision,
            self.one_decision,
            self.conflict,
            self.conflict,
            self.interrupted,
            self.interrupted,
            self.item_vanishes,
            self.crash,
            self.node_changes,
            self.tolerance_changes,
            self.another_leader,
        ]

    # -- users ---------------------------------------------------------------------------------

    def submit(self) -> None:
        name = self.random.choice(NAMES)
        if f"uid-{name}" not in self.bench.works and not self._remains(name):
            self.bench.submit(self._drawn(name))

    def submit_foreign(self) -> None:
        """Another controller dispatched it before we came."""
        if self.random.random() < 0.1 and "uid-theirs" not in self.bench.works:
            saved = Persisted("Running", self.bench.now, foreign=True)
            self.bench.submit(replace(self._drawn("theirs"), persisted=saved))

    def _remains(self, name: str) -> bool:
        return f"uid-{name}" in self.bench.dispatcher.cluster.entries

    def _drawn(self, name: str) -> Workload:
        draw = self.random
        dialect = draw.choice((Dialect.V1BETA1, Dialect.V1BETA2))
        pods = [draw.choice((50, 100, 200)) for _ in range(draw.choice((1, 2)))]
        work = workload(
            name,
            *pods,
            dialect=dialect,
            created=self.bench.now // SECOND * SECOND,
            tolerance=self._tolerance(),
            priority=draw.choice((0, 0, 1, 2)),
            quota=((GOLD, draw.choice(("red", "blue"))),),
            min_available=draw.choice((0, 0, 1, 2)),
            run_limit=draw.choice((0, 0, 40 * SECOND)),
            requeuing=Requeuing(30 * SECOND, draw.choice(list(Growth)), 0, draw.choice((0, 1))),
        )
        word = ("succeeded",) if draw.random() < 0.5 else ()
        return replace(work, items=tuple(replace(i, completion=word) for i in work.items))

    def _tolerance(self) -> FaultTolerance:
        draw = self.random
        return FaultTolerance(
            admission_grace=20 * SECOND,
            warmup_grace=40 * SECOND,
            failure_grace=draw.choice((0, 20)) * SECOND,
            retry_pause=draw.choice((0, 30)) * SECOND,
            retry_limit=draw.choice((0, 1, 3)),
            forceful_deletion_grace=draw.choice((None, 30 * SECOND)),
            deletion_on_failure_grace=draw.choice((0, 50)) * SECOND,
            success_ttl=draw.choice((None, 40 * SECOND)),
            terminal_exit_codes=(),
        )

    def suspend(self) -> None:
        if uid := self._any_work():
            self.bench.edit(uid, suspended=not self.bench.works[uid].suspended)

    def tolerance_changes(self) -> None:
        if uid := self._any_work():
            work = replace(self.bench.works[uid], tolerance=self._tolerance())
            self.bench.works[uid] = work
            self.bench.feed(AppWrapperSeen(work))

    def delete(self) -> None:
        if self.random.random() < 0.6 and (uid := self._any_work()):
            self.bench.delete(uid)

    def _any_work(self) -> str:
        return self.random.choice(sorted(self.bench.works)) if self.bench.works else ""

    # -- the cluster ---------------------------------------------------------------------------

    def pod_changes(self) -> None:
        if not self.bench.things:
            return
        ref = self.random.choice(sorted(self.bench.things, key=str))
        thing = self.bench.things[ref]
        if thing.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED):
            return
        if not thing.node:
            self.bench.bind(ref.name, on=self.random.choice(("n1", "n2")))
        else:
            phases = (PodPhase.SUCCEEDED, PodPhase.SUCCEEDED, PodPhase.FAILED)
            self.bench.change(ref.name, phase=self.random.choice(phases))
        if self.random.random() < 0.2:
            self.bench.stubborn.add(ref.name)

    def item_vanishes(self) -> None:
        if self.bench.things and self.random.random() < 0.3:
            self.bench.remove(self.random.choice(sorted(self.bench.things, key=str)))

    def node_changes(self) -> None:
        if self.random.random() < 0.4:
            self.bench.feed(NodeSeen(node("n1", self.random.choice((50, 300, 300)))))

    def time_passes(self) -> None:
        self.bench.advance(self.random.choice((1, 15, 25, 45, 120)))
        self.check()

    # -- requests ------------------------------------------------------------------------------

    def one_command(self) -> None:
        """A command is carried out, alone."""
        self.bench.decide()
        if self.bench.pending:
            self.bench.execute(self.bench.pending.pop(0))

    def one_decision(self) -> None:
        """Time passes, and nothing of what is decided then is carried out yet."""
        self.bench.now += self.random.choice((1, 30, 60)) * SECOND
        self.bench.decide()

    def conflict(self, of: str = "") -> None:
        """Somebody else has changed the object before a write of ours."""
        writes = [one for one in self.bench.pending if isinstance(one, WriteStatus)]
        writes = [one for one in writes if of in ("", one.uid)]
        if writes:
            lost = self.random.choice(writes)
            self.bench.pending.remove(lost)
            self.bench.feed(StatusRefused(lost.uid, lost.serial, CONFLICT))

    def interrupted(self) -> None:
        """Things go on to one of the writes that are waited for, which are soon over; there the
        object is changed or deleted."""
        for _ in range(30):
            self.bench.decide()
            awaited = self._awaited()
            if awaited and self.random.random() < 0.3:
                uid = self.random.choice(awaited)
                act = self.random.choice((self.bench.delete, self.conflict, self.intent_found))
                act(uid)
                return
            if not self.bench.pending:
                self.bench.now += self.random.choice((1, 30)) * SECOND
            else:
                self.bench.execute(self.bench.pending.pop(0))

    def _awaited(self) -> list[str]:
        """Those whose writes move them on."""
        uids = {one.uid for one in self.bench.pending if isinstance(one, WriteStatus)}
        entries_of = self.bench.dispatcher.cluster.entries
        return [u for u in sorted(uids & self.bench.works.keys()) if entries_of[u].phase in AWAITED]

    def crash(self) -> None:
        if self.random.random() < 0.4:
            self.bench.crash()

    def another_leader(self) -> None:
        """Somebody who believes to lead has recorded an intent (P12)."""
        cluster = self.bench.dispatcher.cluster
        waiting = [
            e for e in cluster.entries.values() if e.phase in (Phase.WAITING, Phase.INTENDING)
        ]
        if not waiting or self.random.random() < 0.5:
            return
        self.intent_found(self.random.choice(waiting).uid)

    def intent_found(self, uid: str) -> None:
        """It is another one than ours, if there is one of ours."""
        found, work = self.bench.dispatcher.cluster.entries[uid], self.bench.works[uid]
        if uid not in self.bench.status or found.phase not in (Phase.WAITING, Phase.INTENDING):
            return
        record = DispatchRecord(
            found.attempt + 1 - (found.phase is Phase.INTENDING) + 1,
            0,
            DispatchPhase.CREATING,
            work.payload,
            tuple(item.ref for item in work.items),
            self.bench.now,
        )
        view = replace(self.bench.status[found.uid], dispatch=record)
        self.bench.status[found.uid] = view
        self.bench.feed(AppWrapperSeen(self.bench.observed(found.uid)))

    # -- what has to hold ----------------------------------------------------------------------

    def check(self) -> None:
        """Call it at rest."""
        cluster = self.bench.dispatcher.cluster
        cluster.capacity.check()
        for uid, one in cluster.entries.items():
            assert one.phase is Phase.GONE or uid in self.bench.works
            keeps = one.phase in RETAINING or one.phase in TEARING_DOWN or one.phase is Phase.GONE
            mine = [ref for ref, t in self.bench.things.items() if t.child.workload == uid]
            assert keeps or not mine, f"{one.title} is {one.phase} and has {mine}"
            if one.phase in (Phase.WAITING, Phase.FAILED, Phase.DELETED, Phase.COMPLETED):
                assert cluster.capacity.holds(uid) == (uid in cluster.reservations), (
                    f"{one.title}: room"
                )
            assert (one.reservation is not None) == (uid in cluster.reservations)
            assert one.reservation is None or (one.phase is Phase.WAITING and one.hold is not None)
            pending = cluster.evictions.get(uid)
            if pending is not None and not one.workload.deleting:
                assert uid in cluster.reservations[pending.by].waits_for
            assert one.dispatch is None or one.dispatch.preemptor in ("", self._evicted_by(one))
            if one.phase is Phase.PAUSING:
                assert cluster.capacity.holds(uid)
            if one.phase in pod_counts.LIVE and not one.workload.deleting:
                told = pod_counts.are_right(one, cluster.capacity)
                assert told or Timer.COUNTS in one.timers, f"{one.title}: pods nobody tells of"
            if one.phase in (Phase.KEEPING, Phase.PAUSING) and not one.workload.deleting:
                assert one.timers, f"{one.title} is {one.phase} for ever"

    def _evicted_by(self, entry: Entry) -> str:
        return entry.eviction.by if entry.eviction is not None else ""


def walk(seed: int, monkeypatch: pytest.MonkeyPatch) -> Walked:
    """The lines of the table that this life goes along."""
    walked: Walked = set()

    def noted(entry: Entry, signal: Signal, now: Instant) -> None:
        walked.add((entry.workload.dialect, entry.phase, signal))
        move(entry, signal, now)

    move = Entry.move
    with monkeypatch.context() as patched:
        patched.setattr(Entry, "move", noted)
        Life(seed).run()
    return walked


RESETS = {
    (Phase.SETTLING, Signal.SETTLED_RESET),
    (Phase.INTENDING, Signal.RETRY_REFUSED),
    *((Phase.PAUSING, signal) for phase, signal in TABLE if phase is Phase.PAUSING),
}
"""What MCAD's dialect does not have."""


def test_every_line_of_the_table_is_walked_in_both_dialects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    walked = {line for seed in SEEDS for line in walk(seed, monkeypatch)}
    lines = {(Dialect.V1BETA1, *line) for line in TABLE.keys() - RESETS}
    lines |= {(Dialect.V1BETA2, *line) for line in TABLE}
    assert walked == lines, sorted(walked ^ lines)
