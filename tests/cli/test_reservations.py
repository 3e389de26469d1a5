"""What `mcad describe` says of reservations and evictions."""

from __future__ import annotations

from typing import Any

import pytest

from mcad.cli.pages.colours import palette
from mcad.cli.pages.describe import Description, Page
from tests.cli.dispatcher import NOW_US

Json = dict[str, Any]

SINCE = "2027-01-15T07:57:00.000000Z"
UNTIL = "2027-01-15T08:07:00.000000Z"
CLAIM: Json = {
    "reason": "Starved",
    "since": SINCE,
    "until": UNTIL,
    "nodeCount": 2,
    "nodes": ["n1", "n2"],
    "waitsFor": ["team/a", "team/b"],
}
DETAIL: Json = {
    "namespace": "team",
    "name": "big",
    "uid": "uid-big",
    "dialect": "v1beta2",
    "priority": 0,
    "firstSeen": SINCE,
    "state": "Pending",
    "queuejobstate": "Backoff",
    "position": 0,
    "waitsFor": "",
    "why": "",
    "demand": {"cpu": "1"},
    "pods": {},
    "items": [],
    "podSets": [],
}


def page(**more: Any) -> list[str]:
    """All lines of ``mcad describe``."""
    return list(Page(NOW_US, palette("never")).lines(Description(None, DETAIL | more)))


def said(**more: Any) -> list[str]:
    """The lines about reservations and evictions."""
    lines = page(**more)
    begin = next(n for n, line in enumerate(lines) if line.startswith("Position:")) + 1
    end = next(n for n, line in enumerate(lines) if line.startswith("Demand:"))
    return lines[begin:end]


def test_a_start_that_limits_promise() -> None:
    lines = said(reservation=CLAIM | {"reason": "Planned", "start": UNTIL, "waitsFor": None})
    assert f"  Starts by:    {UNTIL}, if running AppWrappers keep their limits" in lines
    assert lines[-1] == "  Waits for:    nothing any more"


def test_nodes_that_an_autoscaler_is_asked_for() -> None:
    asked = "Asked for nodes for 2 pods of 3 CPU; ProvisioningRequest team/big-1: Accepted."
    scaling = CLAIM | {"reason": "ScalingUp", "start": UNTIL, "waitsFor": None}
    lines = said(reservation=scaling, scaleUp=asked)
    assert "  Reason:       ScalingUp (asks an autoscaler for nodes)" in lines
    assert f"  Starts by:    {UNTIL}, if nodes come as soon as usual" in lines
    assert f"  Given up:     {UNTIL}, if the nodes are not there by then" in lines
    assert lines[-2:] == ["  Waits for:    new nodes", f"Scale-up:     {asked}"]


@pytest.mark.parametrize(
    ("nodes", "count", "room"),
    [
        (["n1"], 1, "1 node: n1"),
        (["n1", "n2", "n3", "n4"], 4, "4 nodes: n1, n2, n3 and 1 more"),
        ([f"n{number:02d}" for number in range(16)], 40, "40 nodes: n00, n01, n02 and 37 more"),
        (None, 0, "0 nodes"),
    ],
)
def test_of_many_nodes_some_are_named(nodes: Any, count: int, room: str) -> None:
    lines = said(reservation=CLAIM | {"nodes": nodes, "nodeCount": count})
    assert f"  Room:         {room}" in lines


def test_a_reason_of_a_later_version_is_told_as_it_is() -> None:
    assert "  Reason:       Because" in said(reservation=CLAIM | {"reason": "Because"})


def test_reservations_in_the_way_are_listed() -> None:
    owners = [
        {"namespace": "team", "name": "big", "reason": "Starved", "nodeCount": 4, "start": None},
        {"namespace": "ops", "name": "x", "reason": "Planned", "nodeCount": 1, "start": UNTIL},
    ]
    assert said(keptOffBy=owners) == [
        "Kept off by:  team/big, which has reserved 4 nodes (Starved)",
        f"Kept off by:  ops/x, which has reserved 1 node (Planned, starts by {UNTIL})",
    ]


@pytest.mark.parametrize(("count", "times"), [(1, "once"), (3, "3 times, last")])
def test_the_last_eviction_names_the_preemptor(count: int, times: str) -> None:
    evicted = {"count": count, "reason": "Reclaiming", "by": "u", "title": "ops/x", "at": SINCE}
    assert said(eviction=evicted) == [
        f"Evicted:      {times} for ops/x (Reclaiming), {SINCE} (3m ago)"
    ]


def test_an_older_dispatcher_does_not_tell() -> None:
    assert said() == said(reservation=None, keptOffBy=[], eviction=None) == []
