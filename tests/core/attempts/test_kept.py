"""AppWrappers that a finalizer keeps after their deletion: no attempt of them stands (M12)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mcad.core.state.lifecycle import Phase
from mcad.core.state.model import Cascade, DispatchPhase, PodPhase
from mcad.core.state.units import SECOND
from tests.core.bench import Bench, node, workload
from tests.core.running.test_health import QUICK, running, wrapper

KEEPER = "example.com/archive"
CRASHES = pytest.mark.parametrize("crashes", [False, True])


def delete(bench: Bench, cascade: Cascade = Cascade.BACKGROUND, *, crashes: bool = False) -> None:
    """A user deletes ``a``, which the finalizer keeps."""
    changes = {"deleting": True, "cascade": cascade, "kept_by": KEEPER}
    if crashes:
        bench.works["uid-a"] = replace(bench.works["uid-a"], **changes)
        bench.crash()
    else:
        bench.edit("uid-a", **changes)


def two(**tolerance: int) -> Bench:
    """``a`` runs, ``b`` waits for its room."""
    work = wrapper("a", 500, 400, tolerance=replace(QUICK, **tolerance))
    bench = running(work, workload("b", 900))
    assert bench.names() == ["a-0", "a-1"]
    return bench


def fail(bench: Bench) -> None:
    """A pod of ``a`` fails, and is given time to recover."""
    bench.change("a-0", phase=PodPhase.FAILED)
    bench.advance(60)


def stands(bench: Bench) -> bool:
    """Whether an attempt is on record."""
    record = bench.status["uid-a"].dispatch
    return record is not None and record.phase is not DispatchPhase.RELEASED


@CRASHES
@pytest.mark.parametrize("cascade", [Cascade.BACKGROUND, Cascade.FOREGROUND])
def test_what_runs_is_taken_back_and_its_room_is_free(cascade: Cascade, crashes: bool) -> None:
    bench = two()
    delete(bench, cascade, crashes=crashes)
    bench.settle()
    assert (bench.order, bench.names()) == (["a", "b"], ["b-0"])
    assert not stands(bench)
    record = bench.status["uid-a"].dispatch
    assert (record.reason, KEEPER in record.message) == ("Terminating", True)
    bench.advance(10_000)
    assert bench.order.count("a") == 1, "dispatched again"


@pytest.mark.parametrize("step", range(8))
@CRASHES
def test_at_no_step_of_its_creation_anything_stays_or_comes(step: int, crashes: bool) -> None:
    bench = Bench(nodes=[node(milli=1000)])
    bench.submit(workload("a", 500, 400))
    bench.decide()
    for _ in range(step):
        if bench.pending:
            bench.execute(bench.pending.pop(0))
    delete(bench, crashes=crashes)
    for _ in range(40):
        bench.decide()
        if not bench.pending:
            break
        command = bench.pending.pop(0)
        made = len(bench.things)
        bench.execute(command)
        if crashes:
            assert len(bench.things) <= made, "created after the deletion was known"
    bench.advance(100)
    assert bench.names() == []
    assert "uid-a" not in bench.status or not stands(bench)


@CRASHES
def test_in_the_pause_of_a_reset_its_room_is_given_up(crashes: bool) -> None:
    bench = two()
    fail(bench)
    assert bench.entry("a").phase is Phase.PAUSING
    delete(bench, crashes=crashes)
    bench.settle()
    assert bench.order == ["a", "b"]
    assert not stands(bench)


@CRASHES
def test_a_failure_that_is_kept_for_inspection_goes(crashes: bool) -> None:
    bench = two(retry_limit=0, deletion_on_failure_grace=6000 * SECOND)
    fail(bench)
    assert bench.entry("a").phase is Phase.KEEPING
    delete(bench, crashes=crashes)
    bench.settle()
    assert bench.names() == ["b-0"]
    assert (bench.state("a"), stands(bench)) == ("Failed", False)


def test_what_completed_is_left_as_it_is() -> None:
    work = workload("a", 900)
    bench = Bench(nodes=[node(milli=1000)])
    bench.start(replace(work, items=(replace(work.items[0], completion=("succeeded",)),)))
    bench.bind("a-0")
    bench.change("a-0", phase=PodPhase.SUCCEEDED)
    bench.settle()
    delete(bench)
    bench.advance(100)
    assert (bench.state("a"), bench.names()) == ("Completed", ["a-0"])


def test_when_the_finalizer_goes_nothing_is_left_to_do() -> None:
    bench = two()
    delete(bench)
    bench.settle()
    bench.delete("uid-a").settle()
    assert "uid-a" not in bench.dispatcher.cluster.entries
    assert bench.writes["stray"] == 0


def test_without_a_finalizer_of_others_nothing_is_taken_back() -> None:
    """The garbage collector deletes the objects, or leaves them to others."""
    bench = two()
    bench.edit("uid-a", deleting=True)
    bench.decide()
    bench.settle()
    assert bench.names() == ["a-0", "a-1"]
    assert stands(bench)
