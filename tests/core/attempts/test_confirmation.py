"""The confirmation may wait, and what comes meanwhile (P3, ADR 69)."""

from mcad.core.commands import WriteStatus
from mcad.core.events import StatusWritten
from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Dialect, DispatchPhase, PodPhase
from mcad.core.state.status_view import Urgency
from tests.core.bench import Bench, node, workload


def confirming() -> tuple[Bench, WriteStatus]:
    """All items of the AppWrapper exist, and its confirmation waits to be written."""
    bench = Bench(nodes=[node()])
    bench.submit(workload("a", 1, dialect=Dialect.V1BETA2))
    bench.decide()
    for _ in range(2):  # intent, item
        bench.execute(bench.pending.pop(0))
    (confirmation,) = bench.pending
    assert isinstance(confirmation, WriteStatus)
    assert confirmation.urgency is Urgency.CONFIRMATION
    bench.pending.clear()
    return bench, confirmation


def finish(bench: Bench, phase: PodPhase) -> None:
    """The bare pod has run and ended."""
    bench.change("a-0", node="n1", phase=phase)
    bench.decide()


def reasons(bench: Bench) -> list[str]:
    return [one.reason.value for one in bench.events]


def test_the_end_is_written_instead_of_a_confirmation_that_waits() -> None:
    bench, confirmation = confirming()
    finish(bench, PodPhase.SUCCEEDED)
    (end,) = bench.pending
    assert isinstance(end, WriteStatus)
    assert (end.urgency, end.status.phase) == (Urgency.DISPATCH, "Succeeded")
    assert end.status.dispatch is not None
    assert end.status.dispatch.phase is DispatchPhase.DISPATCHED
    assert end.status.dispatch.confirmed == confirmation.status.dispatch.confirmed
    bench.settle()
    bench.feed(StatusWritten("uid-a", confirmation.serial))  # it was under way after all
    assert bench.status["uid-a"].phase == "Succeeded"
    assert reasons(bench) == ["Completed"], "that it was dispatched is no news any more"
    assert bench.created["uid-a", 1, 0] == 1


def test_a_crash_before_the_end_is_written_repeats_nothing() -> None:
    bench, _ = confirming()
    finish(bench, PodPhase.SUCCEEDED)
    assert bench.status["uid-a"].dispatch.phase is DispatchPhase.CREATING
    bench.restart()
    assert bench.status["uid-a"].phase == "Succeeded"
    assert bench.created["uid-a", 1, 0] == 1


def test_a_failure_waits_for_the_confirmation() -> None:
    bench, confirmation = confirming()
    finish(bench, PodPhase.FAILED)
    assert bench.pending == []
    assert bench.dispatcher.cluster.entries["uid-a"].phase is Phase.CONFIRMING
    bench.execute(confirmation)
    bench.settle()
    assert reasons(bench)[:2] == ["Dispatched", "ItemFailed"]


def test_of_two_reports_both_are_written() -> None:
    """A condition that ended and began anew in between has to show both."""
    bench = Bench(nodes=[node(milli=1)])
    bench.start(workload("a", 1))
    bench.submit(workload("b", 1))
    bench.decide()
    (refusal,) = bench.pending
    assert isinstance(refusal, WriteStatus)
    bench.edit("uid-b", suspended=True)
    bench.decide()
    assert bench.pending == [refusal]
    bench.settle()
    assert bench.status["uid-b"] != refusal.status


def test_a_report_does_not_take_the_place_of_a_confirmation() -> None:
    bench, confirmation = confirming()
    cluster = bench.dispatcher.cluster
    cluster.settle(cluster.entries["uid-a"], Urgency.REPORT)
    cluster.settle(cluster.entries["uid-a"], Urgency.CONFIRMATION)
    assert cluster.take_commands() == ()
    bench.execute(confirmation)
    bench.settle()
    assert bench.state("a") == "Running"
