"""Claims and evictions under what is awkward: restarts at the wrong moment, odd settings."""

from __future__ import annotations

from mcad.core.claim import ClaimReason
from mcad.core.lifecycle import Phase
from mcad.core.model import Cascade
from mcad.core.records import replace
from mcad.core.units import SECOND
from tests.core.bench import PATIENT, Bench, node, workload
from tests.core.quotas import teams
from tests.core.test_preemption import EAGER, crowded, of, phase


def reclaiming() -> Bench:
    """Red has both nodes; blue wants its share back."""
    bench = Bench(replace(EAGER, preemption=False), nodes=[node("n1"), node("n2")])
    bench.share(*teams(2000, red=1000, blue=1000))
    for name in "ab":
        bench.submit(of("red", workload(name, 600)))
        bench.advance(1)
    bench.submit(of("blue", workload("w", 900, created=bench.now)))
    return bench


def test_a_restart_while_pods_of_the_evicted_end_keeps_the_claim() -> None:
    """Nobody replaces pods that are being deleted: they hold their room once and not twice."""
    bench = crowded()
    bench.bind("a-0", on="n1")
    bench.bind("b-0", on="n2")
    bench.stubborn.add("b-0")
    bench.submit(workload("w", 900, priority=5))
    bench.advance(3)
    assert phase(bench, "b") is Phase.VERIFYING
    until = bench.entry("w").claim.until  # type: ignore[union-attr]

    bench.crash()
    bench.settle()
    world = bench.dispatcher.world
    assert not world.capacity.adrift()
    claim = bench.entry("w").claim
    assert claim is not None
    assert (claim.waits_for, claim.until) == (("default/b",), until)


def test_a_restart_before_the_claim_is_written_brings_nobody_back_in_vain() -> None:
    """The teardown of the evicted is on record, and who it is for: that is as good."""
    bench = reclaiming()
    while not bench.entry("b").eviction:
        bench.decide()
        while bench.pending and not bench.entry("b").eviction:
            bench.execute(bench.pending.pop(0))
        bench.now += SECOND
    for command in bench.pending:
        if command.uid == "uid-b":  # type: ignore[union-attr]
            bench.apply(command)
    assert "uid-w" not in bench.status
    bench.crash()
    bench.advance(60)
    assert bench.order == ["a", "b", "w"]
    assert phase(bench, "a") is Phase.RUNNING
    assert bench.entry("a").eviction is None


def test_who_was_evicted_long_ago_has_made_room_for_nobody() -> None:
    bench = reclaiming()
    bench.advance(3)
    assert bench.order == ["a", "b", "w"]
    bench.now += bench.settings.reservation_timeout
    bench.crash()
    assert not bench.dispatcher.world.claims_on_record


def test_a_teardown_outlives_a_reservation_timeout_of_nothing() -> None:
    """The evicted needs a while to go whatever is said of pods that nobody makes."""
    bench = crowded(replace(EAGER, reservation_timeout=0))
    bench.bind("b-0", on="n2")
    bench.stubborn.add("b-0")
    bench.submit(workload("w", 900, priority=5))
    bench.advance(20)
    claim = bench.entry("w").claim
    assert claim is not None
    assert claim.reason is ClaimReason.PREEMPTING


def test_who_is_deleted_waits_for_no_pods() -> None:
    """What is declared and never came is given up in time, but not of what goes anyway: to try
    that would be tried again at once, and for ever."""
    bench = Bench(replace(PATIENT, reservation_timeout=60 * SECOND), nodes=[node("n1")])
    bench.submit(workload("a", 100))
    bench.settle()
    bench.bind("a-0")
    (ref,) = bench.things
    bench.stubborn.add("a-0")
    bench.delete_object(ref)  # somebody else does, so that its pod is missed
    bench.settle()
    bench.edit("uid-a", deleting=True, cascade=Cascade.FOREGROUND)
    bench.advance(200)


def test_whoever_is_protected_at_once_is_not_looked_for_all_the_time() -> None:
    bench = Bench(replace(PATIENT, protect_after=SECOND), nodes=[node("n1")])
    bench.submit(workload("service", 600))
    bench.settle()
    bench.submit(workload("gang", 900))
    bench.advance(600)
    decisions = 0
    decide = bench.decide

    def counted() -> None:
        nonlocal decisions
        decisions += 1
        decide()

    bench.decide = counted  # type: ignore[method-assign]
    bench.advance(600)
    assert decisions <= 2 * 600
