"""One gap at the events of every watch: the end is that of a run in which nothing went wrong.

Sieve's unobserved states (OSDI 22), enumerated. After a gap the reflector goes on from where it
was, or lists anew and tells the difference: what came and went in between is never seen.

Of events that tell the same, as those of the pods of one Job, the first and the last have their
gap: where there is less to miss, the first alone.
"""

from __future__ import annotations

import json
from functools import cache

import pytest

from mcad.api import labels
from tests.faults.injection import Gap, Plan
from tests.faults.scenarios import SCENARIOS, Scenario
from tests.faults.world import MORE_WRITES, run, undisturbed

MISSING_MUCH = (Gap.FORGOTTEN, Gap.DELAYED)


def gist(line: bytes) -> tuple[object, ...]:
    """What a dispatcher learns from an event, but for how often it has learnt that before."""
    event = json.loads(line)
    obj, status = event["object"], event["object"].get("status") or {}
    owner = labels.labels_of(obj).get(labels.APPWRAPPER) or obj["metadata"]["name"]
    told: list[object] = [event["type"], obj["kind"], owner, "deletionTimestamp" in obj["metadata"]]
    match obj["kind"]:
        case "AppWrapper":
            phase = (status.get("dispatch") or {}).get("phase")
            told += [status.get("state"), phase, obj["spec"].get("suspend")]
        case "Pod":
            told += [status.get("phase"), bool(obj["spec"].get("nodeName"))]
        case _:
            told += sorted(
                c["type"] for c in status.get("conditions") or () if c["status"] == "True"
            )
    return tuple(told)


@cache
def by_gist(scenario: Scenario) -> dict[tuple[object, ...], list[int]]:
    """The numbers of the events of an undisturbed run, by what they tell."""
    told: dict[tuple[object, ...], list[int]] = {}

    def note(number: int, line: bytes) -> None:
        told.setdefault(gist(line), []).append(number)

    run(scenario, Plan(events=note))
    return told


def moments(scenario: Scenario, gap: Gap) -> list[int]:
    """The events that have this gap."""
    numbers = by_gist(scenario).values()
    return sorted({n for one in numbers for n in (one[0], one[-1 if gap in MISSING_MUCH else 0])})


@pytest.mark.parametrize("gap", Gap, ids=lambda one: one.name.lower())
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
def test_one_gap_in_a_watch_changes_nothing_in_the_end(scenario: Scenario, gap: Gap) -> None:
    expected = undisturbed(scenario)
    for k in moments(scenario, gap):
        plan = Plan(events=lambda number, line, k=k: gap if number == k else None)
        outcome = run(scenario, plan)
        where = f"{gap.value}: event {k}"
        assert outcome.objects == expected.objects, where
        assert outcome.writes <= expected.writes + MORE_WRITES, where
