"""What the benchmark of racks counts, on sights that are made up."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from benchmarks.real_racks import (
    RACK,
    Asks,
    Played,
    Racks,
    Where,
    empty_racks,
    manifest,
    outside,
    places,
    together,
)
from mcad.api.labels import APPWRAPPER_UID, ATTEMPT
from mcad.api.topology import GROUP, PREFERRED, REQUIRED
from tests.e2e.fleet import Sight

RACKS = Racks(nodes=4, racks=2)
BEGUN = 1_767_225_600.0  # 2026-01-01T00:00:00Z


def stamp(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}Z"


def bound(uid: str, attempt: str, node: str, since: int = 0, until: int | None = None) -> Sight:
    state = {} if until is None else {"terminated": {"finishedAt": stamp(until)}}
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(since)}
    pod = {
        "metadata": {
            "uid": f"{uid}-{attempt}-{node}-{since}",
            "labels": {APPWRAPPER_UID: uid, ATTEMPT: attempt},
        },
        "spec": {"nodeName": node},
        "status": {"conditions": [scheduled], "containerStatuses": [{"state": state}]},
    }
    return Sight("MODIFIED", "Pod", 1, pod)


def status(uid: str, attempt: int, *domains: str) -> Sight:
    record: dict[str, Any] = {"attempt": attempt}
    if domains:
        record["domains"] = [{"label": RACK, "value": one} for one in domains]
    thing = {"metadata": {"uid": uid, "name": f"gang-{uid}"}, "status": {"dispatch": record}}
    return Sight("MODIFIED", "AppWrapper", 1, thing)


def played(appwrappers: list[Sight], pods: list[Sight], submitted_s: float = 0.0) -> Played:
    return Played(appwrappers, pods, BEGUN, submitted_s)


def test_a_pod_elsewhere_than_its_status_says_is_outside() -> None:
    pods = [bound("a", "1", "node-0"), bound("a", "1", "node-2"), bound("a", "2", "node-2")]
    found = list(places(played([status("a", 1, "rack-0"), status("a", 2, "rack-1")], pods), RACKS))
    assert [(one.domains, one.racks) for one in found] == [
        ({"rack-0"}, ["rack-0", "rack-1"]),
        ({"rack-1"}, ["rack-1"]),
    ]
    assert outside(found, set()) == 1
    assert together(found) == (0, 1)


def test_a_domain_that_a_later_status_leaves_out_counts() -> None:
    seen = [status("a", 1, "rack-0"), status("a", 1)]
    assert [one.domains for one in places(played(seen, []), RACKS)] == [{"rack-0"}]


@pytest.mark.parametrize(
    ("needs", "domains", "expected"),
    [
        (set(), set(), 0),
        ({"gang"}, set(), 2),  # it needs a rack and has none
        ({"gang"}, {"rack-0"}, 0),
        ({"gang"}, {"rack-0", "rack-1"}, 1),  # it was given two
    ],
)
def test_a_gang_that_needs_a_rack_has_one(
    needs: set[str], domains: set[str], expected: int
) -> None:
    assert outside([Where("gang", domains, ["rack-0", "rack-0"])], needs) == expected


def test_a_rack_is_empty_before_the_binding_and_after_the_end() -> None:
    pods = [bound("a", "1", "node-0", 0, 4), bound("a", "1", "node-2", 2, 4)]
    assert empty_racks(played([], pods, 8.0), RACKS, 0.0) == pytest.approx(2 - (4 + 2) / 8)
    assert empty_racks(played([], pods, 8.0), RACKS, 4.0) == 2.0


def test_so_many_gangs_ask_for_a_rack() -> None:
    asks, asked, rng = Asks(0.5, 0.25, seed=1), [], Random(2)
    for number in range(400):
        made = manifest(f"gang-{number}", rng, 10)
        asks(made)
        (one,) = made["spec"]["resources"]["GenericItems"]
        template = one["generictemplate"]["spec"]["template"]
        asked.append(template.get("metadata", {}).get("annotations"))
    required = [one for one in asked if one == {REQUIRED: RACK, GROUP: "gang"}]
    preferred = [one for one in asked if one == {PREFERRED: RACK, GROUP: "gang"}]
    assert len(required) == len(asks.needs) == pytest.approx(200, abs=30)
    assert len(preferred) == pytest.approx(100, abs=30)
