"""Samples of use over time, and the charts that are drawn of them."""

from __future__ import annotations

from typing import Any

from mcad.ui.history import SAMPLE_US, SAMPLES_MAX, History, lines


def capacity(cpu: str, reserved: str = "0") -> dict[str, Any]:
    books = {"allocatable": {"cpu": "4"}, "used": {"cpu": cpu}, "reserved": {"cpu": reserved}}
    return {"nodes": [], "total": {**books, "free": {}}, "unplaced": {}}


def test_a_chart_has_a_step_for_each_sample() -> None:
    history = History()
    assert lines(history.note(0, capacity("1"))) == []
    history.note(SAMPLE_US - 1, capacity("4"))  # too soon
    history.note(SAMPLE_US, capacity("1", "1"))
    (line,) = lines(history.note(3 * SAMPLE_US, capacity("4")))
    assert (line.resource, line.least, line.most) == ("cpu", 25.0, 100.0)
    assert line.points == "0,22 100,22 100,15 300,15 300,0"


def test_there_is_no_chart_of_what_may_not_be_seen() -> None:
    history = History()
    assert [history.note(at * SAMPLE_US, None) for at in range(3)] == [()] * 3
    assert lines(()) == []


def test_samples_are_bounded_and_forgotten() -> None:
    history = History()
    for at in range(SAMPLES_MAX + 5):
        samples = history.note(at * SAMPLE_US, capacity("1"))
    assert len(samples) == SAMPLES_MAX
    history.forget()
    assert len(history.note(0, capacity("1"))) == 1
