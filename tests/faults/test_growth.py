"""A process that lasts holds no more after many days than after the first."""

from __future__ import annotations

from random import Random

from mcad.api.config import Config
from mcad.cli.stage import dispatching, embedded_cluster
from mcad.controller.kinds import APPWRAPPERS, PODS
from mcad.sim.clock import VirtualClock, run_virtually
from tests.faults.census import census, grown
from tests.faults.churn import live_a_day

EPISODES = 2  # of each kind and day


def test_nothing_is_left_of_a_day() -> None:
    async def days() -> dict[str, tuple[int, int]]:
        clock = VirtualClock()
        async with embedded_cluster(clock, Random(1)) as cluster:
            for number in range(3):
                cluster.add_node(f"node-{number}", cpu="4")
            async with dispatching(cluster, Config(), Random(2)) as user:
                await live_a_day(cluster, user, 0, EPISODES)  # what is learned once is learned
                before = census()
                for day in (1, 2):
                    await live_a_day(cluster, user, day, EPISODES)
                for kind in (APPWRAPPERS, PODS):
                    assert not (await user.list_all(kind))[0], f"the day left {kind.plural}"
                return grown(before, census())

    assert run_virtually(days()) == {}
