"""Random lives of teams that evict each other, at any pace, with restarts and pods that stay."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from msgspec.structs import replace

from mcad.core.reservations.manage import EVICTIONS
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import ObjectRef, PodPhase
from mcad.core.state.reasons import EventReason
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from tests.core.bench import Bench, Thing, node, workload
from tests.core.quotas import GOLD, SILVER, teams

LEAVES = ("red", "blue", "green")
SIZE = 800


class Life:
    """Three teams on three nodes. Unless it is ``quiet``, things go wrong besides."""

    def __init__(self, seed: int, *, quiet: bool, minimum: tuple[int, ...] = (0, 40)) -> None:
        self.random = rng = Random(seed)
        self.quiet = quiet
        self.settings = Settings(
            preemption=rng.random() < 0.7,
            min_run_time=rng.choice(minimum) * SECOND,
            preemption_grace=rng.choice((0, 0, 15 * SECOND)),
            protect_after=0 if quiet else rng.choice((0, 60 * SECOND)),
            placement_timeout=0,
            backoff=6 * SECOND,
        )
        self.bench = Bench(self.settings, nodes=[node(f"n{i}", SIZE) for i in range(3)])
        self.trees = rng.random() < 0.8
        if self.trees:
            self.bench.share(*teams(3 * SIZE, red=SIZE, blue=SIZE, green=SIZE))
            if rng.random() < 0.3:
                other = teams(3 * SIZE, red=2 * SIZE, blue=SIZE, green=0)
                self.bench.share(*(replace(one, tree=SILVER, uid=f"{one.uid}-2") for one in other))
        self.made = 0
        self.pairs: Counter[tuple[str, str]] = Counter()
        self.known: dict[str, int] = {}
        self.changed: set[str] = set()  # winners about whom something changed meanwhile

    def run(self, steps: int) -> None:
        acts = [self.submit, self.submit, self.pods, self.time, self.time, self.commands]
        acts += [] if self.quiet else [self.delete, self.crash, self.stays, self.shrinks]
        for _ in range(steps):
            self.random.choice(acts)()
            self.watch()
        self.pass_by(200)
        self.watch()
        self.check()

    # -- what happens --------------------------------------------------------------------------

    def submit(self) -> None:
        if len(self.bench.works) >= 9:
            return
        rng, bench = self.random, self.bench
        pods = [rng.choice((200, 300, 400, 700)) for _ in range(rng.choice((1, 1, 2, 3)))]
        work = workload(f"w{self.made}", *pods, priority=rng.randint(0, 3))
        work = replace(work, created=bench.now // SECOND * SECOND)
        leaf, other = rng.choice(LEAVES), rng.choice(LEAVES)
        self.made += 1
        bench.submit(replace(work, quota=((GOLD, leaf), (SILVER, other))))

    def pods(self) -> None:
        """Each pod without a node gets one with room, and one that runs may end."""
        for ref, thing in list(self.bench.things.items()):
            if not thing.node and not thing.child.terminating:
                self.place(ref, thing)
            elif thing.phase is PodPhase.RUNNING and self.random.random() < 0.15:
                self.bench.change(ref.name, phase=PodPhase.SUCCEEDED)

    def place(self, ref: ObjectRef, thing: Thing) -> None:
        """kube-scheduler binds a pod to any node that has room and is not excluded."""
        excluded = self.bench.excluded.get(thing.child.workload, ())
        names = [name for name in ("n0", "n1", "n2") if name not in excluded]
        fit = [name for name in names if self._free(name) >= _cpu(thing)]
        if fit:
            self.bench.bind(ref.name, on=self.random.choice(fit))

    def _free(self, name: str) -> int:
        there = [t for t in self.bench.things.values() if t.node == name]
        return SIZE - sum(_cpu(t) for t in there if t.phase is not PodPhase.SUCCEEDED)

    def time(self) -> None:
        self.pass_by(self.random.choice((1, 5, 20, 50)))
        self.check()

    def pass_by(self, seconds: int) -> None:
        self.bench.advance(seconds)

    def commands(self) -> None:
        """Some of what is decided is carried out, one by one."""
        for _ in range(self.random.randint(1, 4)):
            self.bench.decide()
            if self.bench.pending:
                self.bench.execute(self.bench.pending.pop(0))

    def delete(self) -> None:
        if self.bench.works and self.random.random() < 0.5:
            self.bench.delete(self.random.choice(sorted(self.bench.works)))

    def crash(self) -> None:
        self.bench.crash()

    def stays(self) -> None:
        if self.bench.things:
            self.bench.stubborn.add(self.random.choice(sorted(r.name for r in self.bench.things)))

    def shrinks(self) -> None:
        if self.trees:
            red = self.random.choice((SIZE // 2, SIZE))
            self.bench.share(*teams(3 * SIZE, red=red, blue=SIZE, green=SIZE))

    # -- what has to hold ----------------------------------------------------------------------

    def watch(self) -> None:
        for uid, view in self.bench.status.items():
            if view.eviction is not None and self.known.get(uid, 0) != view.eviction.count:
                assert view.eviction.count == self.known.get(uid, 0) + 1
                self.known[uid] = view.eviction.count
                self.pairs[uid, view.eviction.by] += 1

    def check(self) -> None:
        cluster = self.bench.dispatcher.cluster
        cluster.admission.check()
        for uid, pending in cluster.evictions.items():
            assert uid in cluster.reservations[pending.by].waits_for
            assert cluster.entries[uid].phase in (Phase.CREATING, Phase.CONFIRMING, Phase.RUNNING)
        evicted_for = [owner for owner in cluster.reservations.values() if _evicts(owner)]
        for owner in evicted_for:
            for uid in owner.waits_for:
                others = [one for one in evicted_for if one is not owner and uid in one.waits_for]
                assert not others or uid not in cluster.evictions, "leaves for one only"
        assert set(self.pairs.values()) <= {1}, f"the same pair again: {self.pairs}"


def _evicts(owner: Entry) -> bool:
    return owner.reservation is not None and owner.reservation.reason in EVICTIONS


def _cpu(thing: Thing) -> int:
    return dict(thing.request).get("cpu", 0)


@pytest.mark.parametrize("begin", range(0, 60, 20))
def test_pairs_do_not_repeat_and_the_books_agree_whatever_happens(begin: int) -> None:
    found: Counter[str] = Counter()
    for seed in range(begin, begin + 20):
        life = Life(seed, quiet=False)
        try:
            life.run(60)
        except AssertionError as error:
            error.add_note(f"{seed=}")
            raise
        found.update(one.reason for one in life.bench.events)
        found["evicted"] += sum(life.pairs.values())
    assert found["evicted"] >= 10
    assert found[EventReason.RESERVATION_ENDED]


@pytest.mark.parametrize("begin", range(0, 60, 20))
def test_whoever_others_are_evicted_for_is_dispatched(begin: int) -> None:
    """Where nobody interferes no eviction is in vain."""
    reasons: Counter[str] = Counter()
    for seed in range(begin, begin + 20):
        life = Life(seed, quiet=True)
        life.run(60)
        gone = {f"uid-{name}" for name in life.bench.order}
        for uid, by in life.pairs:
            assert by in gone, f"{seed=}: {uid} was evicted for {by}, which was not dispatched"
        reasons.update(view.eviction.reason for view in life.bench.status.values() if view.eviction)
    assert len(reasons) == 2, reasons
