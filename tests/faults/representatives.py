"""Which writes and which events are alike: a push has a fault at one of those, in any scenario.

Two are alike if a dispatcher cannot tell them apart, but for names. What it could tell them by is
their gist, and the end of their scenario is none of it: a fault that is borne in one scenario, and
leaves something behind that only another one would stumble over, is what the books are compared
for at every write (world.py), and all that is known with all there is at rest (rest.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from mcad.api import labels
from mcad.kube.port import Request
from tests import budget
from tests.faults.injection import Befalling, Fault, Gap, Moment, Plan
from tests.faults.scenarios import SCENARIOS, Scenario
from tests.faults.world import MORE_WRITES, run, undisturbed

Json = dict[str, Any]
Gist = tuple[object, ...]


def state(found: Json) -> Gist:
    """How far an AppWrapper has come, and which rules it lives by."""
    status = found.get("status") or {}
    dispatch = status.get("dispatch") or {}
    return (
        "components" in found["spec"],
        bool(found["spec"].get("suspend")),
        "deletionTimestamp" in found["metadata"],
        str(status.get("state")),
        str(dispatch.get("phase")),
        str(dispatch.get("next")),
        dispatch.get("attempt", 0) > 1,
    )


def gist(moment: Moment) -> Gist:
    """What a write is, what the AppWrapper is that it is about, and what the others are."""
    return (*bare(moment), *sorted(map(state, moment.others)))


def bare(moment: Moment) -> Gist:
    """The same without the others: for what is repeated until it is taken, whatever they do."""
    request, about = moment.request, moment.about
    return (request.method, *_target(request), about and state(about), *_said(request))


def _target(request: Request) -> tuple[str, ...]:
    """The kind, and the subresource if there is one: a path without the names in it."""
    parts = request.path.strip("/").split("/")
    below = parts[parts.index("namespaces") + 2 :]
    return tuple(below[::2])


def _said(request: Request) -> Gist:
    """Which state a patch says, and which item is made."""
    body = json.loads(request.body) if isinstance(request.body, bytes) else request.body or {}
    status = body.get("status") or {}
    dispatch = status.get("dispatch") or {}
    item = labels.labels_of(body).get(labels.ITEM)
    return status.get("state"), dispatch.get("phase"), dispatch.get("next"), item


@cache
def _kinds(key: Callable[[Moment], Gist]) -> dict[Gist, list[tuple[Scenario, int]]]:
    """The writes of all scenarios that are alike."""
    kinds: dict[Gist, list[tuple[Scenario, int]]] = {}
    for scenario in SCENARIOS:
        for number, moment in enumerate(undisturbed(scenario).moments):
            kinds.setdefault(key(moment), []).append((scenario, number))
    return kinds


def writes(
    scenario: Scenario, befalling: Befalling, key: Callable[[Moment], Gist] = bare
) -> list[int]:
    """The writes of a scenario at which this happens: of those that are alike, in whatever
    scenario, one, drawn for each befalling, for a part of the kinds; one of its own if none of
    these is. In a soak all."""
    count = undisturbed(scenario).writes
    if budget.SOAK:
        return list(range(count))
    drawn = _draw(befalling, _kinds(key))
    mine = {number for ((at, number),) in drawn if at is scenario}
    return sorted(mine or budget.draw(range(count), 1, befalling.name, scenario.name))


def _draw(
    befalling: Befalling | Gap, kinds: dict[Gist, list[tuple[Scenario, int]]]
) -> list[list[tuple[Scenario, int]]]:
    """One of each kind, for a part of the kinds."""
    return [
        budget.draw(places, 1, befalling.name, kind)
        for kind, places in kinds.items()
        if budget.in_part(befalling.name, kind)
    ]


def befall(scenario: Scenario, fault: Fault, numbers: Iterable[int]) -> None:
    """One fault at each of these writes in turn: the end is that of an undisturbed run."""
    expected = undisturbed(scenario)
    for k in numbers:
        plan = Plan(writes=lambda number, k=k: fault if number == k else None)
        outcome = run(scenario, plan)
        where = f"{fault.value}: write {k}, {expected.requests[k]}"
        assert outcome.lives == (2 if fault.name.startswith("KILLED") else 1), where
        assert outcome.objects == expected.objects, where
        assert outcome.evictions == expected.evictions, where
        assert outcome.writes <= expected.writes + MORE_WRITES, where


class Listener:
    """Hears the events of a run, and notes what each says to a reader of all before it."""

    def __init__(self) -> None:
        self.gists: list[Gist] = []
        self._states: dict[str, Gist] = {}

    def hear(self, number: int, line: bytes) -> None:
        """One event; the number counts them."""
        event = json.loads(line)
        obj = event["object"]
        owner = labels.labels_of(obj).get(labels.APPWRAPPER) or obj["metadata"]["name"]
        is_going = "deletionTimestamp" in obj["metadata"]
        told = (event["type"], obj["kind"], is_going, *_shown(obj))
        self.gists.append((told, self._states.get(owner)))
        if obj["kind"] == "AppWrapper":
            self._states[owner] = (event["type"], *state(obj))


def _shown(obj: Json) -> Gist:
    """How far an object has come."""
    status = obj.get("status") or {}
    match obj["kind"]:
        case "AppWrapper":
            return state(obj)
        case "Pod":
            return status.get("phase"), bool(obj["spec"].get("nodeName"))
        case _:
            conditions = status.get("conditions") or ()
            return tuple(sorted(c["type"] for c in conditions if c["status"] == "True"))


@cache
def _heard() -> dict[Gist, list[tuple[Scenario, int]]]:
    """Where an undisturbed run of any scenario tells what, by what is told."""
    heard: dict[Gist, list[tuple[Scenario, int]]] = {}
    for scenario in SCENARIOS:
        listener = Listener()
        run(scenario, Plan(events=listener.hear))
        for number, one in enumerate(listener.gists):
            heard.setdefault(one, []).append((scenario, number))
    return heard


def events(scenario: Scenario, gap: Gap) -> list[int]:
    """The events of a scenario that have this gap, drawn as the writes are. In a soak the first of
    all that are alike, and the last, too, if there is much to miss."""
    places = _heard()
    if budget.SOAK:
        ends = (0,) if gap is Gap.CUT else (0, -1)
        return sorted({one[n][1] for one in places.values() for n in ends if one[n][0] is scenario})
    drawn = _draw(gap, _told(places))
    mine = {number for ((at, number),) in drawn if at is scenario}
    own = [number for one in places.values() for at, number in one if at is scenario]
    return sorted(mine or budget.draw(sorted(own), 1, gap.name, scenario.name))


def _told(heard: dict[Gist, list[tuple[Scenario, int]]]) -> dict[Gist, list[tuple[Scenario, int]]]:
    """The same, by what an event tells of its own object alone."""
    kinds: dict[Gist, list[tuple[Scenario, int]]] = {}
    for (told, _), places in heard.items():
        kinds.setdefault(told, []).extend(places)
    return kinds
