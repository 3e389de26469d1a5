"""Two processes and one Lease: one that ends is started again, and one of them leads at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from random import Random

from mcad.api.config import LeaderElection
from mcad.cli.demo_cluster.cluster import embedded_cluster
from mcad.controller.replica import Replica
from mcad.kube.client import Client
from mcad.kube.lease import LeaseLost
from mcad.kube.port import Request, Response
from mcad.sim.clock import VirtualClock, run_virtually
from mcad.sim.cluster import Cluster
from tests.faults.injection import SPELL_S, Plan, Wire
from tests.faults.scenarios import Scenario
from tests.faults.world import RESTART_S, Outcome, World

# Four times the usual, so that days of virtual time are not spent on renewals.
LEASE = LeaderElection(leaseDuration=60, renewDeadline=40, retryPeriod=8)
Sleeping = Callable[[], Awaitable[None]]
assert LEASE.lease_duration + LEASE.retry_period < SPELL_S


class Stoppable:
    """The common clock, as a process has it that may be stopped."""

    def __init__(self, clock: VirtualClock, wire: Wire) -> None:
        self._clock = clock
        self._wire = wire

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def now_us(self) -> int:
        return self._clock.now_us()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        await self._wire.going.wait()


@dataclass(frozen=True)
class Leases:
    """How the processes hold the Lease: their terms, in turn, and how many seconds the answer to
    each renewal takes."""

    terms: tuple[LeaderElection, ...] = (LEASE,)
    answer_s: float = 0.0

    def of(self, number: int) -> LeaderElection:
        """The terms of a life, which count from 1."""
        return self.terms[(number - 1) % len(self.terms)]


class Noting:
    """Notes which process sends a write, Events and all, in the order in which they arrive at the
    wire; the answers to writes of the Lease are slow. It counts lists of AppWrappers."""

    def __init__(self, wire: Wire, number: int, order: list[int], slow: Sleeping) -> None:
        self._wire = wire
        self._number = number
        self._order = order
        self._slow = slow
        self.lists = 0
        self.stream = wire.stream

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        is_read = request.method == "GET"
        if is_read and request.path.endswith("/appwrappers") and request.params["limit"] != "1":
            self.lists += 1
        if not is_read and "/leases" not in request.path:
            self._order.append(self._number)
        answer = await self._wire.request(request, timeout)
        if not is_read and "/leases" in request.path:
            await self._slow()
        return answer


class Pair(World):
    """A run with two replicas."""

    losses = 0

    def __init__(self, cluster: Cluster, scenario: Scenario, plan: Plan, leases: Leases) -> None:
        super().__init__(cluster, scenario, plan)
        self._leases = leases
        self._order: list[int] = []
        self._noting: list[Noting] = []
        self._replicas: list[Replica] = []
        self.leading = lambda: next(
            (one.controller for one in self._replicas if one.lease.is_held), None
        )

    def begin(self) -> None:
        """The first one leads; the second one finds it there."""
        self.begin_life()
        asyncio.get_running_loop().call_later(0.5, self.begin_life)

    async def _live(self, wire: Wire, number: int) -> None:
        clock = Stoppable(self.clock, wire)
        slow = partial(clock.sleep, self._leases.answer_s)
        noting = Noting(wire, number, self._order, slow)
        self._noting.append(noting)
        client = Client(noting, clock, Random(number))
        terms = {"leader_election": self._leases.of(number)}
        config = self._scenario.settings(number).model_copy(update=terms)
        replica = Replica(client, config, identity=f"life-{number}")
        self._replicas.append(replica)
        try:
            await replica.run(asyncio.Event())
        except LeaseLost:
            self.losses += 1
            asyncio.get_running_loop().call_later(RESTART_S, self.begin_life)

    @property
    def lists(self) -> list[int]:
        """How often each life has listed AppWrappers."""
        return [one.lists for one in self._noting]

    def writers(self) -> list[int]:
        """The lives that wrote, once for each time that another one had written before it."""
        return [number for number, _ in groupby(self._order)]


def run(
    scenario: Scenario, plan: Plan | None = None, leases: Leases = Leases()
) -> tuple[Outcome, Pair]:
    """Live through a scenario, and check what must hold in any case."""
    plan = plan or Plan()

    async def whole() -> tuple[Outcome, Pair]:
        async with embedded_cluster(VirtualClock(), Random(3)) as cluster:
            pair = Pair(cluster, scenario, plan, leases)
            outcome = await pair.live_through()
            pair.check(outcome)
            return outcome, pair

    return run_virtually(whole())
