"""Which writes and which events are alike: of those one is refused or missed, in any scenario.

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
from tests.faults.catalog import SCENARIOS
from tests.faults.injection import Fault, Moment, Plan
from tests.faults.scenarios import Scenario
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
def _firsts(key: Callable[[Moment], Gist]) -> dict[Scenario, list[int]]:
    """Per scenario its writes of which none before was alike, of all scenarios."""
    known: set[Gist] = set()
    found: dict[Scenario, list[int]] = {}
    for scenario in SCENARIOS:
        found[scenario] = []
        for number, moment in enumerate(undisturbed(scenario).moments):
            if (one := key(moment)) not in known:
                known.add(one)
                found[scenario].append(number)
    return found


def writes(scenario: Scenario, key: Callable[[Moment], Gist] = gist) -> list[int]:
    """The writes of a scenario that have a fault: those that no earlier scenario has, and its last
    one, so that none of the stories goes without."""
    last = undisturbed(scenario).writes - 1
    return sorted({*_firsts(key)[scenario], last})


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
    """Hears the events of a run, and tells what each says to one who has heard all before it."""

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


def events(scenario: Scenario, *, last: bool) -> list[int]:
    """The events of a scenario that have a gap: those that are the first of all that are alike, in
    whatever scenario, and the ``last`` ones, too, if there is much to miss."""
    places = _heard().values()
    mine = {n for one in places for at, n in (one[0], one[-1 if last else 0]) if at is scenario}
    return sorted(mine)
