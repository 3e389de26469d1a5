"""Protection of the starved: a gang at the head gets its room although small ones keep coming."""

from __future__ import annotations

import pytest

from mcad.core.events import NodeSeen
from mcad.core.state.model import Workload
from mcad.core.state.records import replace
from mcad.core.state.settings import Policy, Settings
from mcad.core.state.units import SECOND
from mcad.core.state.waiting_reason import WaitingReason
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.quotas import GOLD, child, subtree

AFTER = 600
LOOK = AFTER // 10
RUNS = 60
PROTECTING = replace(PATIENT, protect_after=AFTER * SECOND)
GANG = workload("gang", 900, 900)


class Stream:
    """Two nodes that small AppWrappers keep busy: each runs for a minute, and three more wait."""

    def __init__(self, settings: Settings = PROTECTING) -> None:
        self.bench = Bench(settings, nodes=[node("n1"), node("n2")])
        self.started: list[str] = []
        self._submitted = 0
        self._ends: dict[str, int] = {}
        self.run(RUNS)

    def submit(self, work: Workload) -> None:
        self.bench.submit(replace(work, created=self.bench.now))

    def run(self, seconds: int, until: str = "") -> int:
        """Time passes, or until this one has started; returns how many seconds."""
        bench, begun = self.bench, self.bench.now
        while bench.now < begun + seconds * SECOND and until not in self.started:
            for name, at in list(self._ends.items()):
                if at <= bench.now:
                    del self._ends[name]
                    bench.delete(f"uid-{name}")
            while self._submitted - sum(name.startswith("s") for name in self.started) < 3:
                self._submitted += 1
                self.submit(workload(f"s{self._submitted}", 200))
            bench.advance(15)
            for name in bench.order[len(self.started) :]:
                self.started.append(name)
                if name.startswith("s"):
                    self._ends[name] = bench.now + RUNS * SECOND
        bench.dispatcher.cluster.admission.check()
        return (bench.now - begun) // SECOND

    @property
    def owners(self) -> list[str]:
        """The owners of reservations."""
        return list(self.bench.dispatcher.cluster.reservations)

    def has_reservation(self, name: str) -> bool:
        hold = self.bench.entry(name).wait.hold
        reservations = hold is not None and hold.reason == WaitingReason.ROOM_RESERVED
        assert reservations == (f"uid-{name}" in self.owners)
        return reservations


def protecting() -> Stream:
    """Room is kept for the gang."""
    stream = Stream()
    stream.submit(GANG)
    stream.run(AFTER + LOOK)
    return stream


def test_without_protection_a_stream_of_small_ones_starves_a_gang() -> None:
    stream = Stream(replace(PATIENT, protect_after=0))
    stream.submit(GANG)
    stream.run(7200)
    assert "gang" not in stream.started
    assert len(stream.started) > 900


def test_a_gang_at_the_head_starts_within_the_bound() -> None:
    stream = Stream()
    stream.submit(GANG)
    assert AFTER <= stream.run(7200, until="gang") <= AFTER + LOOK + RUNS + 15
    assert not stream.owners
    before = len(stream.started)
    stream.bench.delete("uid-gang")
    stream.run(600)
    assert len(stream.started) - before > 70  # and all is as it was


@pytest.mark.parametrize("policy", [Policy.BEST_EFFORT_FIFO, Policy.STRICT_FIFO])
def test_where_none_overtakes_there_is_no_need_for_protection(policy: Policy) -> None:
    bench = Bench(replace(PROTECTING, policy=policy), nodes=[node("n1"), node("n2")])
    bench.start(workload("service", 500))
    bench.submit(replace(GANG, created=bench.now))
    bench.advance(AFTER + 2 * LOOK)
    assert bool(bench.dispatcher.cluster.reservations) == (policy is Policy.BEST_EFFORT_FIFO)


def test_time_in_which_another_one_is_first_does_not_count() -> None:
    stream = Stream()
    stream.submit(workload("urgent", 900, 900, priority=10))
    stream.submit(GANG)
    stream.run(AFTER - LOOK)
    stream.bench.delete("uid-urgent")
    stream.run(AFTER - 2 * LOOK)
    assert not stream.owners, "the gang is first for less than that"
    stream.run(3 * LOOK)
    assert stream.owners == ["uid-gang"]


def test_a_protected_appwrapper_is_told_and_so_are_those_that_ask() -> None:
    stream = protecting()
    assert stream.owners == ["uid-gang"]
    _, reason, message = stream.bench.condition("gang", "Backoff") or (0, "", "")
    told = "Room on 2 nodes is reserved for it, because it was first in line for too long; "
    assert (reason, message) == ("RoomReserved", f"{told}it starts when that is free.")
    (row,) = (row for row in stream.bench.queue() if row.name == "gang")
    assert row.waits_for == "RoomReserved"
    about_it = [event.reason for event in stream.bench.events if event.uid == "uid-gang"]
    assert about_it[-1] == "RoomReserved"


def test_what_would_not_fit_on_empty_nodes_is_not_protected_and_the_next_is() -> None:
    stream = Stream()
    stream.submit(workload("huge", 900, 900, 900))
    stream.submit(GANG)
    assert stream.run(7200, until="gang") <= AFTER + 2 * LOOK + RUNS + 15
    assert "huge" not in stream.started


def test_a_restart_keeps_the_room() -> None:
    stream = protecting()
    assert stream.has_reservation("gang")
    stream.bench.crash()
    stream.bench.decide()
    assert stream.has_reservation("gang")
    assert stream.run(7200, until="gang") <= RUNS + 30


@pytest.mark.parametrize(
    "change",
    [{"suspended": True}, {"priority": 1}, {"sets": GANG.sets[:1], "items": GANG.items[:1]}],
)
def test_an_edit_gives_the_room_back(change: dict[str, object]) -> None:
    stream = protecting()
    before = stream.bench.entry("gang").reserved
    stream.bench.now += SECOND
    stream.bench.edit("uid-gang", **change)
    stream.bench.decide()
    cluster, reservation = stream.bench.dispatcher.cluster, stream.bench.entry("gang").reservation
    # It is still first, with what it asks now.
    assert reservation is None or reservation.since > before.since
    assert stream.has_reservation("gang") == ("suspended" not in change)
    cluster.admission.check()


def test_a_deletion_gives_the_room_back() -> None:
    stream = protecting()
    stream.bench.delete("uid-gang")
    before = len(stream.started)
    stream.run(300)
    assert not stream.bench.dispatcher.cluster.capacity.gangs.exists("uid-gang")
    assert len(stream.started) - before > 30


def test_a_higher_priority_goes_first_and_the_protected_one_is_next() -> None:
    stream = protecting()
    stream.submit(workload("urgent", 900, 900, priority=10))
    assert stream.run(7200, until="urgent") <= RUNS + 15
    assert "gang" not in stream.started
    stream.bench.delete("uid-urgent")
    assert stream.run(7200, until="gang") <= 30


def test_a_higher_priority_that_can_never_fit_ends_no_protection() -> None:
    stream = protecting()
    stream.submit(workload("never", 900, 900, 900, priority=10))
    assert stream.run(7200, until="gang") <= RUNS + 30


def test_a_higher_priority_elsewhere_ends_no_protection() -> None:
    stream = protecting()
    other = replace(node("n3", 100), labels=(("pool", "other"),))
    stream.bench.feed(NodeSeen(other))
    work = workload("elsewhere", 1000, priority=10)
    there = replace(work.sets[0].constraint, selector=(("pool", "other"),))
    stream.submit(replace(work, sets=(replace(work.sets[0], constraint=there),)))
    stream.run(15)
    assert stream.has_reservation("gang") or "gang" in stream.started


def test_room_of_which_no_more_comes_is_given_up() -> None:
    bench = Bench(PROTECTING, nodes=[node("n1"), node("n2")])
    bench.start(workload("service", 500))  # it never ends
    bench.submit(replace(GANG, created=bench.now))
    bench.advance(AFTER + 2 * LOOK)
    bench.start(workload("small", 200))
    assert "small" not in bench.order
    bench.advance(6 * AFTER + LOOK)
    assert "small" in bench.order
    assert not bench.dispatcher.cluster.capacity.gangs.exists("uid-gang")


def test_an_appwrapper_that_waits_for_quota_is_not_protected() -> None:
    bench = Bench(PROTECTING, nodes=[node("n1"), node("n2")])
    bench.share(subtree("root", child("root", cpu=1000)))
    mine = ((GOLD, "root"),)
    bench.submit(replace(GANG, quota=mine), workload("small", 200, quota=mine))
    bench.advance(3 * AFTER)
    assert bench.order == ["small"]
    assert not bench.dispatcher.cluster.reservations


def test_room_that_is_kept_is_charged() -> None:
    bench = Bench(PROTECTING, nodes=[node("n1"), node("n2")])
    bench.share(subtree("root", child("root", cpu=2500)))
    bench.start(workload("service", 500, quota=((GOLD, "root"),)))
    bench.submit(replace(GANG, quota=((GOLD, "root"),)))
    bench.advance(AFTER + 2 * LOOK)
    tree = bench.dispatcher.cluster.forest.trees[GOLD]
    assert tree.root.usage["cpu"] == 2300
    bench.delete("uid-service")
    bench.settle()
    assert bench.order == ["service", "gang"]
    assert tree.root.usage["cpu"] == 1800
