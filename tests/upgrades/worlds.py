"""Runs of the fault suites in which one version of the dispatcher ends and another goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from random import Random
from typing import Any

from mcad.cli.demo_cluster.cluster import embedded_cluster
from mcad.controller.replica import Replica
from mcad.kube.client import Client
from mcad.kube.port import Api, Request, Response
from mcad.kube.types import Json
from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.cluster import Cluster
from tests.faults.edits import STORAGE
from tests.faults.injection import Plan, Wire, counts
from tests.faults.representatives import bare
from tests.faults.scenarios import Scenario
from tests.faults.two_processes import LEASE
from tests.faults.world import MORE_WRITES, Outcome, World, undisturbed
from tests.upgrades.journal import Journal, Mark

Life = Callable[[Api, VirtualClock, Scenario], Awaitable[None]]
"""A process of whatever version, until it is cancelled."""


class Marking:
    """Implements the port; marks every write that is committed before its sender hears of it."""

    def __init__(self, wire: Wire, marked: Callable[[Request], None]) -> None:
        self._wire = wire
        self._marked = marked
        self.stream = wire.stream

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        response = await self._wire.request(request, timeout)
        if counts(request) and response.status < 300:
            self._marked(request)
        return response


class Ancestor(World):
    """A life of any version, with a journal of it."""

    def __init__(self, cluster: Cluster, scenario: Scenario, plan: Plan, life: Life) -> None:
        super().__init__(cluster, scenario, plan)
        self.journal = Journal()
        self.journal.keep(cluster.registry)
        self.leading = lambda: None
        self._life, self._moments = life, plan.moments

    async def _live(self, wire: Wire, number: int) -> None:
        await self._life(Marking(wire, self._mark), self.clock, self._scenario)

    def _mark(self, request: Request) -> None:
        moment = next(one for one in self._moments if one.request is request)
        name = (moment.about or {"metadata": {"name": ""}})["metadata"]["name"]
        found = self._cluster.registry.store.get(STORAGE, ("default", name)) or {}
        self.journal.mark(
            f"{request.method} {request.path}",
            at_us=self.clock.now_us(),
            since_s=self.clock.monotonic() - self.begun_s,
            done=self.done,
            gist=f"{bare(moment)} {sorted({*_fields(found.get('status') or {})})}",
        )


class Heir(World):
    """The present version goes on where a journal has a mark."""

    def __init__(self, cluster: Cluster, scenario: Scenario, journal: Journal, mark: Mark) -> None:
        super().__init__(cluster, scenario, Plan())
        self._journal, self._mark = journal, mark
        self.done = mark.done
        self._found: dict[str, Json] = {}  # the statuses at the mark, by uid

    async def _furnish(self) -> float:
        self._journal.replay(self._cluster.registry, self._mark)
        self._found = self._statuses()
        return self.clock.monotonic() - self._mark.since_s

    def _miscounted(self) -> list[str]:
        return []  # its process did not count what the one before did

    def _former(self) -> set[str]:
        now = self._statuses()
        return {uid for uid, status in self._found.items() if now.get(uid) == status}

    def _statuses(self) -> dict[str, Json]:
        found = self._cluster.registry.store.items(STORAGE)
        return {obj["metadata"]["uid"]: obj.get("status") or {} for _, obj in found}


class Standby(Heir):
    """It stands by first, until the Lease of the journal is over."""

    async def _live(self, wire: Wire, number: int) -> None:
        client = Client(wire, self.clock, Random(number))
        settings = self._scenario.settings(number).model_copy(update={"leader_election": LEASE})
        replica = Replica(client, settings, identity=f"heir-{number}")
        self.leading = lambda: replica.controller if replica.lease.is_held else None
        await replica.run(asyncio.Event())


class Return(Heir):
    """Another version goes on, of which nothing is known but what it does."""

    def __init__(
        self, cluster: Cluster, scenario: Scenario, journal: Journal, mark: Mark, life: Life
    ) -> None:
        super().__init__(cluster, scenario, journal, mark)
        self.leading = lambda: None
        self._life = life

    async def _live(self, wire: Wire, number: int) -> None:
        await self._life(wire, self.clock, self._scenario)

    def _unrest(self) -> list[str]:
        return []


def _fields(value: Any, path: str = "") -> Iterator[str]:
    """The paths of all fields in it."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _fields(one, f"{path}.{key}")
    elif isinstance(value, list):
        for one in value:
            yield from _fields(one, f"{path}[]")
    else:
        yield path


def record(scenario: Scenario, life: Life) -> Journal:
    """Write down a life from the beginning to the end of a story, which has to be the usual end."""

    async def whole() -> Journal:
        async with embedded_cluster(VirtualClock(), Random(3)) as cluster:
            world = Ancestor(cluster, scenario, Plan(), life)
            outcome = await world.live_through()
            assert outcome.states == scenario.ends
            return world.journal.closed()

    return run_virtually(whole())


def inherit(
    scenario: Scenario, journal: Journal, mark: Mark, build: Callable[..., Heir] = Heir
) -> Outcome:
    """Live on from a mark to the end of the story, and check what must hold in any case."""

    async def whole() -> Outcome:
        # Other uids than those of the journal.
        async with embedded_cluster(VirtualClock(mark.at_us), Random(4)) as cluster:
            world = build(cluster, scenario, journal, mark)
            outcome = await world.live_through()
            world.check(outcome)
            return outcome

    return run_virtually(whole())


def trouble(
    scenario: Scenario, journal: Journal, number: int, build: Callable[..., Heir] = Heir
) -> str:
    """What is wrong if the process is killed at the write with this number; "" if nothing is."""
    expected = undisturbed(scenario)
    try:
        outcome = inherit(scenario, journal, journal.marks[number], build)
    except AssertionError as error:
        return str(error) or "the states at the end are others"
    if outcome.objects != expected.objects:
        return f"{outcome.objects} at the end, not {expected.objects}"
    if outcome.evictions != expected.evictions:
        return f"{outcome.evictions} evictions, not {expected.evictions}"
    if _forced(outcome) > _forced(expected):
        return f"{_forced(outcome)} objects were deleted by force"
    if outcome.writes > expected.writes - number + MORE_WRITES:
        return f"{outcome.writes} writes were left to do"
    return ""


def _forced(outcome: Outcome) -> int:
    bodies = (one.request.body for one in outcome.moments if one.request.method == "DELETE")
    return sum(isinstance(one, dict) and one.get("gracePeriodSeconds") == 0 for one in bodies)
