"""Random histories in which shares and places change hands: AppWrappers are requeued, evicted and
deleted, their objects and pods go in any order, and pods outlive their objects."""

from __future__ import annotations

from mcad.core.commands import Command
from mcad.core.state.entry import Entry
from mcad.core.state.lifecycle import Phase
from mcad.core.state.milestones import Milestone
from mcad.core.state.model import Dialect, Next, Node, PodPhase
from mcad.core.state.settings import Settings
from mcad.core.state.units import SECOND
from tests.core.bench import node, workload
from tests.core.histories import ENDED, Act, History
from tests.core.quotas import GOLD, child, subtree

SHARE = 400
LEAVES = ("red", "blue")

_Alike = tuple[str, int, int]
"""Leaf, demand and priority: AppWrappers that start in the order in which they came."""


class Handovers(History):
    """Two teams with hard shares. ``started`` counts dispatches, ``requeued`` AppWrappers that
    are in line again, ``outlived`` deleted AppWrappers whose pods were the last to go."""

    started = requeued = outlived = 0

    def settings(self) -> Settings:
        draw = self.random
        return Settings(
            placement_timeout=0,
            binding_wait=0,
            preemption=draw.random() < 0.5,
            min_run_time=0,
            backoff=6 * SECOND,
            protect_after=0,
        )

    def nodes(self) -> list[Node]:
        return [node("n1", self.random.choice((600, 10_000)))]

    def begin(self) -> None:
        self._demand: dict[str, int] = {}
        self._leaf: dict[str, str] = {}
        self._released: dict[str, None] = {}  # nothing is left of their attempts
        self._reserved: set[str] = set()  # room is reserved for them
        self.bench.outliving = True
        self.bench.heard = self._heard
        teams = (child(name, hard=True, cpu=SHARE) for name in LEAVES)
        self.bench.share(
            subtree("root", child("root", cpu=2 * SHARE)), subtree("teams", *teams, parent="root")
        )

    def acts(self) -> list[Act]:
        return [
            *[self.submit] * 3,
            *[self.bind] * 3,
            *[self.requeue] * 3,
            self.delete,
            self.delete_late,
            self.objects_go_first,
            self.object_goes,
            self.pod_ends,
            *[self.left_pod_ends] * 2,
            *[self.one_command] * 8,
            self.conflict,
            self.time_passes,
        ]

    def end(self) -> None:
        """All pods run; then all that are on the way go."""
        for _ in range(30):
            self.bind()
            for uid in list(self.bench.left):
                self.bench.end_pod(uid)
            self.bench.advance(10)

    # -- what may happen -----------------------------------------------------------------------

    def submit(self) -> None:
        if len(self.bench.works) >= 8:
            return
        draw = self.random
        self.made += 1
        pods = draw.choice(((200,), (200,), (100, 100), (400,)))
        work = workload(
            f"w{self.made}",
            *pods,
            dialect=draw.choice((Dialect.V1BETA1, Dialect.V1BETA2)),
            priority=draw.choice((0, 0, 0, 1)),
            created=self.bench.now // SECOND * SECOND,
            quota=((GOLD, draw.choice(LEAVES)),),
        )
        self._demand[work.uid], self._leaf[work.uid] = sum(pods), dict(work.quota)[GOLD]
        self.bench.submit(work)

    def bind(self) -> None:
        for ref, thing in list(self.bench.things.items()):
            if not thing.node and not thing.child.terminating:
                self.bench.bind(ref.name)

    def requeue(self) -> None:
        """Held, and released once the end of its attempt is on record, as ``mcad requeue`` does."""
        uid = self.any_work()
        entry = self.bench.dispatcher.cluster.entries.get(uid)
        if entry is None or entry.phase is not Phase.RUNNING:
            return
        self.bench.edit(uid, suspended=True)
        for _ in range(20):
            self.one_command()
            if entry.phase in (Phase.DELETING, Phase.GONE):
                break
        if uid in self.bench.works:
            self.bench.edit(uid, suspended=False)

    def delete_late(self) -> None:
        """No garbage collector takes what the AppWrapper leaves."""
        if uid := self.any_work():
            things, self.bench.things = self.bench.things, {}
            self.bench.delete(uid)
            self.bench.things = things

    def objects_go_first(self) -> None:
        """Another client deletes the objects of an AppWrapper, then the AppWrapper."""
        uid = self.any_work()
        refs = [ref for ref, one in self.bench.things.items() if one.child.workload == uid]
        for ref in self.random.sample(refs, len(refs)):
            self.bench.remove(ref)
        if uid:
            self.bench.delete(uid)

    def object_goes(self) -> None:
        if (ref := self.any_object()) and self.chance(0.3):
            self.bench.remove(ref)

    def pod_ends(self) -> None:
        if ref := self.any_object(running=True):
            self.bench.change(ref.name, phase=PodPhase.SUCCEEDED)

    def left_pod_ends(self) -> None:
        if self.bench.left:
            uid = self.random.choice(sorted(self.bench.left))
            owner = self.bench.left[uid][1].child.workload
            self.outlived += owner not in self.bench.works
            self.bench.end_pod(uid)

    def time_passes(self) -> None:
        self.bench.advance(self.random.choice((1, 1, 31, 200, 700)))

    # -- what has to hold at each step ---------------------------------------------------------

    def _heard(self, _: tuple[Command, ...]) -> None:
        for one in self.bench.dispatcher.cluster.passed:
            uid = one.entry.uid
            if one.milestone is not Milestone.MOVED:
                continue
            if one.before is Phase.VERIFYING and one.after in (Phase.SETTLING, Phase.WAITING):
                if one.entry.record.next is Next.QUEUED:
                    self._released[uid] = None
                    self.requeued += 1
            elif one.after in (Phase.INTENDING, Phase.GONE):
                self._released.pop(uid, None)
            if (one.before, one.after) == (Phase.WAITING, Phase.INTENDING):
                self.started += 1
                self._starts(one.entry)
        self._reserved = set(self.bench.dispatcher.cluster.reservations)

    def _starts(self, entry: Entry) -> None:
        """No AppWrapper starts beside pods that use up its share, or before an equal older one, but
        for a preemptor: an older one that is in line again gets nothing of what was evicted."""
        leaf, demand, _ = alike = self._alike(entry)
        used = sum(self._demand[uid] for uid in self._users(leaf) - {entry.uid})
        assert used + demand <= SHARE, f"{entry.title} starts beside {self._users(leaf)} in {leaf}"
        for uid in self._released if entry.uid not in self._reserved else ():
            other = self.bench.dispatcher.cluster.entries.get(uid)
            if other is None or other is entry or self._alike(other) != alike:
                continue
            is_held = (
                other.wait.pause is not None
                or other.wait.hold is not None
                or other.workload.deleting
            )
            if is_held or self.bench.works[uid].suspended or other.first_seen > entry.first_seen:
                continue
            raise AssertionError(f"{entry.title} starts before {other.title}")

    def _alike(self, entry: Entry) -> _Alike:
        work = entry.workload
        return self._leaf[entry.uid], self._demand[entry.uid], work.priority

    def _users(self, leaf: str) -> set[str]:
        """The uids of the AppWrappers, deleted ones included, with pods that have not ended."""
        things = (*self.bench.things.values(), *(one for _, one in self.bench.left.values()))
        uids = {one.child.workload for one in things if one.phase not in ENDED}
        return {uid for uid in uids if self._leaf[uid] == leaf}

    def check(self) -> None:
        assert not self.bench.left
