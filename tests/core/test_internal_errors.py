"""An error about one AppWrapper holds that one: what it keeps, and what ends that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mcad.core import internal_errors
from mcad.core.commands import WriteStatus
from mcad.core.cycle import cycle
from mcad.core.events import AppWrapperSeen, Decide, Errored, PodSeen
from mcad.core.running import monitor
from mcad.core.state import internal_error
from mcad.core.state.internal_error import InternalError, describe
from mcad.core.state.lifecycle import Phase
from mcad.core.state.reasons import ConditionType, State
from mcad.core.state.records import replace
from mcad.core.state.units import SECOND
from mcad.core.state.violations import InvariantViolated
from tests import errors_held
from tests.core.bench import Bench, node, workload

ERROR = InternalError("E0", "It broke. mcad 0")
KIND = ConditionType.INTERNAL_ERROR


@pytest.fixture(autouse=True)
def held() -> Iterator[None]:
    with errors_held():
        yield


def error_about(bench: Bench, name: str) -> None:
    bench.feed(Errored(f"uid-{name}", describe(ValueError("secret"))))
    bench.settle()


def running() -> Bench:
    """One that runs, and one that waits for its room."""
    return Bench(nodes=[node(milli=100)]).start(workload("a", 100), workload("b", 100))


def test_one_that_runs_keeps_its_room_its_objects_and_its_state() -> None:
    bench = running()

    error_about(bench, "a")

    assert bench.entry("a").phase is Phase.HELD
    assert bench.state("a") == State.RUNNING
    assert bench.condition("a", KIND) is not None
    assert bench.dispatcher.cluster.capacity.gangs.exists("uid-a")
    assert bench.state("b") == State.PENDING
    bench.advance(3600)
    assert len(bench.things) == 1
    assert bench.state("b") == State.PENDING


def test_one_that_waits_leaves_the_line_to_the_others() -> None:
    bench = Bench(nodes=[node(milli=100)]).submit(workload("a", 100), workload("b", 100))

    error_about(bench, "a")

    assert (bench.state("a"), bench.state("b")) == (State.PENDING, State.RUNNING)


def test_the_message_names_the_place_and_quotes_nothing() -> None:
    bench = running()
    error_about(bench, "a")

    shown = bench.condition("a", KIND)

    assert shown is not None
    assert "ValueError in" in shown[2]
    error = bench.entry("a").error
    assert error is not None
    assert f"Please report {error.id} of mcad" in shown[2]
    assert "secret" not in shown[2]


def test_a_deletion_frees_its_room() -> None:
    bench = running()
    error_about(bench, "a")

    bench.delete("uid-a")
    bench.settle()

    assert bench.state("b") == State.RUNNING


def test_an_edit_of_its_spec_goes_on_from_its_record() -> None:
    bench = running()
    error_about(bench, "a")

    bench.edit("uid-a")
    bench.settle()

    assert bench.entry("a").phase is Phase.RUNNING
    assert bench.condition("a", KIND) is None
    assert bench.created[("uid-a", 1, 0)] == 1


def test_any_other_change_of_it_does_not() -> None:
    bench = running()
    error_about(bench, "a")

    bench.feed(AppWrapperSeen(replace(bench.observed("uid-a"), quota=(("team", "x"),))))
    bench.settle()

    assert bench.entry("a").phase is Phase.HELD


def test_a_restart_of_this_version_does_not_repeat_it(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = running()
    error_about(bench, "a")

    bench.restart()

    assert bench.entry("a").phase is Phase.HELD
    assert bench.state("a") == State.RUNNING
    assert bench.dispatcher.cluster.capacity.gangs.exists("uid-a")
    monkeypatch.setattr(internal_error, "_MARK", "mcad 999")
    bench.restart()
    assert bench.entry("a").phase is Phase.RUNNING
    assert bench.condition("a", KIND) is None


def test_an_edit_that_no_dispatcher_saw_counts_at_the_next_start() -> None:
    bench = running()
    error_about(bench, "a")
    old = bench.works["uid-a"]
    bench.works["uid-a"] = replace(old, generation=old.generation + 1)

    bench.restart()

    assert bench.entry("a").phase is Phase.RUNNING


def test_an_event_about_one_holds_that_one(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = running()

    def broken(*_: Any) -> None:
        raise KeyError("x")

    monkeypatch.setattr(bench.dispatcher.cluster.capacity, "pod_seen", broken)
    bench.bind("a-0")
    bench.settle()

    assert bench.entry("a").phase is Phase.HELD


def test_an_error_about_none_in_particular_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = running()

    def broken(*_: Any) -> None:
        raise KeyError("x")

    monkeypatch.setattr(bench.dispatcher.cluster.capacity, "place_unplaced", broken)

    with pytest.raises(KeyError):
        bench.feed(Decide())


def test_the_first_sight_of_one_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(nodes=[node(milli=100)])
    line_up = bench.dispatcher.cluster.line_up

    def broken(entry: Any) -> None:
        if entry.workload.name == "a":
            raise KeyError("x")
        line_up(entry)

    monkeypatch.setattr(bench.dispatcher.cluster, "line_up", broken)
    bench.start(workload("a", 100), workload("b", 100))

    assert bench.entry("a").phase is Phase.HELD
    assert bench.state("b") == State.RUNNING


def test_broken_books_end_the_process_when_the_hold_is_on_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = running()
    bench.submit(workload("c", 50))
    broken = InvariantViolated("a-book", "two figures differ")

    def differs() -> None:
        raise broken

    monkeypatch.setattr(bench.dispatcher.cluster.admission, "check", differs)
    commands = bench.feed(Errored("uid-a", describe(KeyError())))
    writes = [one for one in commands if isinstance(one, WriteStatus)]

    assert [one.uid for one in writes] == ["uid-a"]
    assert bench.feed(Decide()) == ()
    answer = bench.apply(writes[0])
    assert answer is not None
    with pytest.raises(InvariantViolated, match="a-book"):
        bench.feed(answer)
    bench.restart()
    assert bench.entry("a").error is not None


def test_broken_books_end_the_process_in_the_end_if_the_hold_cannot_be_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = running()

    def differs() -> None:
        raise InvariantViolated("a-book", "two figures differ")

    monkeypatch.setattr(bench.dispatcher.cluster.admission, "check", differs)
    bench.feed(Errored("uid-a", ERROR))
    bench.now += internal_errors.RECORD_WITHIN - SECOND
    bench.feed(Decide())
    bench.now += SECOND

    with pytest.raises(InvariantViolated):
        bench.feed(Decide())


def test_many_errors_compare_the_books_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    works = [workload(f"w{number}", 10) for number in range(20)]
    bench = Bench(nodes=[node(milli=1000)]).start(*works)
    compared: list[int] = []
    check = bench.dispatcher.cluster.admission.check

    def counted() -> None:
        compared.append(bench.now)
        check()

    monkeypatch.setattr(bench.dispatcher.cluster.admission, "check", counted)
    for work in works:
        bench.feed(Errored(work.uid, ERROR))
    assert len(compared) == 1
    bench.wishes = [at for at in bench.wishes if at > bench.now]
    bench.now += internal_errors.CHECK_EVERY
    bench.feed(Decide())

    assert len(compared) == 2


def test_the_others_of_a_loop_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(nodes=[node(milli=1000)])
    report = cycle._report_one

    def broken(cluster: Any, entry: Any, **more: Any) -> None:
        if entry.workload.name == "b":
            raise KeyError("x")
        report(cluster, entry, **more)

    monkeypatch.setattr(cycle, "_report_one", broken)
    bench.start(workload("a", 2000), workload("b", 2000), workload("c", 2000))

    assert bench.entry("b").phase is Phase.HELD
    for name in ("a", "c"):
        assert bench.condition(name, ConditionType.BACKOFF) is not None


def test_the_same_error_again_changes_nothing() -> None:
    bench = running()
    bench.feed(Errored("uid-a", ERROR))
    bench.settle()
    before = bench.writes["uid-a"]

    bench.feed(Errored("uid-a", ERROR))
    bench.settle()

    assert bench.writes["uid-a"] == before


def test_a_pod_of_no_appwrapper_is_about_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = running()

    def broken(*_: Any) -> None:
        raise KeyError("x")

    monkeypatch.setattr(bench.dispatcher.cluster.capacity, "pod_seen", broken)
    (pod,) = bench.dispatcher.cluster.capacity.pods.all()

    with pytest.raises(KeyError):
        bench.feed(PodSeen(replace(pod, uid="other", workload="")))


def test_the_others_that_a_loop_took_are_judged_in_the_same_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    works = [workload(name, 10) for name in "abc"]
    bench = Bench(nodes=[node(milli=1000)]).start(*works)
    judged: list[str] = []

    def noted(_: Any, entry: Any) -> None:
        judged.append(entry.workload.name)
        if entry.workload.name == "a":
            raise KeyError("x")

    monkeypatch.setattr(monitor, "_judge", noted)
    bench.dispatcher.cluster.agenda.to_judge.update(dict.fromkeys(one.uid for one in works))
    bench.feed(Decide())

    assert judged == ["a", "b", "c"]
    assert bench.entry("a").phase is Phase.HELD
