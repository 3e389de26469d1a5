"""The oracle finds what it is there to find."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcad.core.commands import Command, CreateItem
from mcad.core.dispatcher import Dispatcher
from mcad.core.events import Event
from tests.core.bench import Bench, node, workload
from tests.oracle import comparing
from tests.oracle.comparing import compare
from tests.oracle.recording import Plugin


def record(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short life, recorded."""
    with monkeypatch.context() as patched:
        patched.setattr(Dispatcher, "__init__", Dispatcher.__init__)  # put back what is patched
        patched.setattr(Dispatcher, "step", Dispatcher.step)
        plugin = Plugin(folder)
        bench = Bench(nodes=[node("n1", 300)])
        bench.submit(workload("a", 200), workload("b", 200))
        bench.settle()
        bench.delete("uid-a")
        bench.settle()
        plugin.pytest_runtest_logfinish()
        plugin.pytest_sessionfinish()


def test_an_unchanged_core_decides_what_was_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path, monkeypatch)
    result = compare(tmp_path)
    assert (result.dispatchers, result.differing) == (1, {})
    assert result.steps > 10
    assert result.commands > 5


def test_another_decision_is_found_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path, monkeypatch)
    step = Dispatcher.step

    def mutated(self: Dispatcher, event: Event, now: int) -> tuple[Command, ...]:
        return tuple(one for one in step(self, event, now) if not isinstance(one, CreateItem))

    monkeypatch.setattr(Dispatcher, "step", mutated)
    (told,) = compare(tmp_path).differing.values()
    assert "test_another_decision_is_found_and_told" in told
    assert "is now 'nothing'" in told


def test_what_is_raised_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(tmp_path, monkeypatch)

    def broken(self: Dispatcher, event: Event, now: int) -> tuple[Command, ...]:
        raise KeyError("lost")

    monkeypatch.setattr(Dispatcher, "step", broken)
    (told,) = compare(tmp_path).differing.values()
    assert "KeyError: 'lost'" in told


def test_renamed_words_are_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "FIELDS", {"old": "new"})
    monkeypatch.setattr(comparing, "_ARE_NAMES_OLD", True)
    monkeypatch.setattr(comparing, "WORDS", {"RoomClaimed": "RoomReserved"})
    then = {"old": ["RoomClaimed", {"kept": 1}]}
    assert comparing.renamed(then) == {"new": ["RoomReserved", {"kept": 1}]}
