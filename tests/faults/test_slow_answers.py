"""Some answers take 30 s, which is longer than most requests wait: a process starts all the same,
says what it waits for, and brings everything to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

import pytest

from mcad.controller.runtime import Controller
from mcad.kube.client import Client
from mcad.kube.errors import RequestTimeout
from mcad.kube.port import Request, Response
from mcad.sim.cluster import Cluster
from tests.faults.injection import Plan, Wire
from tests.faults.scenarios import COMPLETED, IN_TURN, Scenario
from tests.faults.world import World, run, undisturbed

SLOW_S = 30.0
ONCE_S = 200.0  # after that much a start with slow discovery is through


class Sluggish:
    """Implements the port; a request that ``is_slow`` is carried out, its answer comes late."""

    def __init__(self, wire: Wire, is_slow: Callable[[Request], bool]) -> None:
        self._wire = wire
        self._is_slow = is_slow
        self.stream = wire.stream

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        if not self._is_slow(request):
            return await self._wire.request(request, timeout)
        response = await self._wire.request(request, timeout)
        if timeout is not None and timeout <= SLOW_S:
            await asyncio.sleep(timeout)
            raise RequestTimeout(f"no answer within {timeout:g} s")
        await asyncio.sleep(SLOW_S)
        return response


class Slow(World):
    """A run with such a server."""

    is_slow: Callable[[Request], bool]

    def __init__(self, cluster: Cluster, scenario: Scenario, plan: Plan) -> None:
        super().__init__(cluster, scenario, plan)
        self.said: set[str] = set()
        self.led_at = 0.0

    async def _live(self, wire: Wire, number: int) -> None:
        controller = self._leader(wire, number)
        looking = asyncio.ensure_future(self._look(controller))
        try:
            await controller.run(asyncio.Event())
        finally:
            looking.cancel()

    def _client(self, wire: Wire, number: int) -> Client:
        return Client(Sluggish(wire, self.is_slow), self.clock, Random(number))

    async def _look(self, controller: Controller) -> None:
        """What readiness says until it is synced."""
        while not controller.watches.is_synced:
            self.said.update(controller.watches.obstacles())
            await asyncio.sleep(1.0)
        self.led_at = self.clock.monotonic()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("scenario", [IN_TURN, COMPLETED], ids=lambda one: one.name)
def test_a_tenth_of_the_answers_takes_30_s(scenario: Scenario, seed: int) -> None:
    rng = Random(seed)

    class OneInTen(Slow):
        is_slow = staticmethod(lambda request: rng.random() < 0.1)

    outcome = run(scenario, build=OneInTen)
    assert outcome.objects == undisturbed(scenario).objects


def test_discovery_that_takes_30_s_for_each_answer_ends_and_is_told() -> None:
    worlds: list[Slow] = []

    class SlowDiscovery(Slow):
        is_slow = staticmethod(lambda request: request.path in ("/api", "/apis"))

        def begin(self) -> None:
            worlds.append(self)
            super().begin()

    outcome = run(IN_TURN, build=SlowDiscovery)
    assert outcome.objects == undisturbed(IN_TURN).objects
    assert any("retrying with 30 s for each answer" in said for said in worlds[0].said)
    assert 2 * SLOW_S < worlds[0].led_at < ONCE_S
