"""How many writes a short AppWrapper needs: all of them at rest, two of its status under load."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

import pytest

from mcad.kube.client import Client
from mcad.kube.port import Request, Response
from tests.faults.injection import Fault, Plan, Wire
from tests.faults.scenarios import Scenario, complete, create, job
from tests.faults.world import Outcome, World, run
from tests.manifests import components

COUNT = 150
WRITE_S = (0.2, 0.8)  # of a loaded server, for the answer to a write


class Loaded:
    """Implements the port; an answer to a write takes its time."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.stream = wire.stream
        self._rng = Random(1)

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        response = await self._wire.request(request, timeout)
        if request.method in ("POST", "PUT"):
            await asyncio.sleep(self._rng.uniform(*WRITE_S))
        return response


class LoadedWorld(World):
    """A run with such a server."""

    def _client(self, wire: Wire, number: int) -> Client:
        return Client(Loaded(wire), self.clock, Random(number))


def burst(count: int) -> Scenario:
    """So many short AppWrappers of either dialect at once, a third of which fits at a time."""
    names = [f"j{number}" for number in range(count)]
    made = [
        create(complete(name, job(name, 1, 1.0)) if n % 2 else components(name, job(name, 1, 1.0)))
        for n, name in enumerate(names)
    ]
    acts = tuple((0.0, one) for one in made)
    return Scenario(f"{count} short ones", (max(1, count // 3),), acts, dict.fromkeys(names, "*"))


def counted(scenario: Scenario, build: type[World]) -> tuple[Outcome, Counter[str]]:
    """How it ended, and how many statuses and Events were written."""
    worlds: list[World] = []

    class Watched(build):  # type: ignore[valid-type,misc]
        def begin(self) -> None:
            worlds.append(self)
            super().begin()

    outcome = run(scenario, build=Watched)
    written = Counter(one["reason"] for one in worlds[0].stored.events)
    written["statuses"] = sum(one.endswith("/status") for one in outcome.requests)
    return outcome, written


def test_one_at_rest_has_every_state_and_event_written_at_once() -> None:
    """Its intent, its confirmation, that its pod has a node, and its end."""
    _, written = counted(burst(1), World)
    assert written == {"statuses": 4, "Dispatched": 1, "Completed": 1}


def test_under_load_an_end_is_written_instead_of_the_confirmation_and_its_event() -> None:
    outcome, written = counted(burst(COUNT), LoadedWorld)
    assert set(outcome.states.values()) <= {"Completed", "Succeeded"}
    assert written["Completed"] == COUNT
    assert 2 * COUNT <= written["statuses"] <= 2.2 * COUNT
    assert written.total() - written["statuses"] <= 1.2 * COUNT


@pytest.mark.parametrize(
    "fault", [Fault.KILLED_AFTER, Fault.KILLED_BEFORE], ids=lambda one: one.name
)
@pytest.mark.parametrize("k", range(20, 120, 9))
def test_a_crash_while_confirmations_wait_changes_nothing_in_the_end(k: int, fault: Fault) -> None:
    plan = Plan(writes=lambda number: fault if number == k else None)
    outcome = run(burst(24), plan, LoadedWorld)
    assert set(outcome.states.values()) <= {"Completed", "Succeeded"}
    assert outcome.made == 24, "an item was created twice"
