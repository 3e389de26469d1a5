"""What goes wrong in a random history: drawn by its seed, each part by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from tests.faults import weather
from tests.faults.edits import Edit
from tests.faults.injection import SPELLS, Befalling, Fault, Gap
from tests.faults.upheavals import Upheaval
from tests.faults.weather import (
    Denied,
    SlowController,
    SlowStream,
    StaleList,
    Terminated,
    Undiscovered,
)

FAULTS_AT_MOST, GAPS_AT_MOST, UPHEAVALS_AT_MOST = 3, 2, 3
CLOUDS = (2, 6)
WRITES, EVENTS = 40, 110  # among so many these are spread; a history has about as many
ALONE = [*(one for one in Fault if one not in (*SPELLS, Fault.BEQUEATHED)), *Edit]
LEADERS = [*SPELLS, Fault.BEQUEATHED, Fault.KILLED_BEFORE, Fault.KILLED_AFTER, Fault.LATE]
KILLS = (Fault.KILLED_BEFORE, Fault.KILLED_AFTER)

UPHEAVALS = [one for one in Upheaval if one is not Upheaval.TERMINATED]
CONTROLLERS = (
    "DeploymentController",
    "GarbageCollector",
    "JobController",
    "JobPodReleaser",
    "Kubelet",
    "Namespaces",
    "Nodes",
    "ReplicaSetController",
    "Scheduler",
)
PLURALS = [one.plural for one in weather.STREAMS]
GROUPS = ("apps", "batch", "workload.codeflare.dev")
DENIED = ("pods", "pods", "configmaps", "deployments", "jobs", "replicasets")
LAG_S = 5.0
BEHIND_S = (60.0, 180.0)
AGES_S = (0.5, 2.0, 10.0, 60.0)


class AtWrite(NamedTuple):
    """A write of the dispatcher, counted from 0, meets this."""

    number: int
    fault: Befalling


class AtEvent(NamedTuple):
    """An event of a watch, counted from 0, meets this."""

    number: int
    gap: Gap


Trouble = AtWrite | AtEvent | weather.Part


def faults(rng: Random, *, is_pair: bool) -> Iterator[Trouble]:
    """A few faults and gaps somewhere, and now and then an outage."""
    drawn: Sequence[Befalling] = LEADERS if is_pair else ALONE
    for _ in range(rng.randint(0, FAULTS_AT_MOST)):
        yield AtWrite(rng.randrange(WRITES), rng.choice(drawn))
    for _ in range(rng.randint(0, GAPS_AT_MOST)):
        yield AtEvent(rng.randrange(EVENTS), rng.choice(tuple(Gap)))
    if rng.random() < 0.25:
        outage = rng.choice((Fault.LOST_AFTER, Fault.NOT_FOUND, Fault.BROKEN))
        begin = rng.randrange(WRITES)
        for number in range(begin, begin + rng.randint(2, 8)):
            yield AtWrite(number, outage)


def upheavals(rng: Random) -> Iterator[Trouble]:
    """What is done to AppWrappers, and to the namespace of guests."""
    yield Terminated(rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 6, 9)))
    for _ in range(rng.randint(0, UPHEAVALS_AT_MOST)):
        yield AtWrite(rng.randrange(WRITES), rng.choice(UPHEAVALS))


def clouds(rng: Random, times: Sequence[float]) -> Iterator[Trouble]:
    """What is wrong in the cluster; what does not last begins at one of these times."""
    for _ in range(rng.randint(*CLOUDS)):
        draw = rng.choice((_slow, _lagging, _behind, _stale, _undiscovered, _denied, _denied))
        yield from draw(rng, times)


def _slow(rng: Random, _: Sequence[float]) -> Iterator[Trouble]:
    for name in rng.sample(CONTROLLERS, rng.randint(1, 3)):
        yield SlowController(name, round(rng.uniform(0, LAG_S), 2))


def _lagging(rng: Random, _: Sequence[float]) -> Iterator[Trouble]:
    for plural in rng.sample(PLURALS, rng.randint(1, 3)):
        yield SlowStream(plural, round(rng.uniform(0, LAG_S), 2))


def _behind(rng: Random, times: Sequence[float]) -> Iterator[Trouble]:
    begin_s, lag_s = _span(rng, times)[0], round(rng.uniform(*BEHIND_S), 2)
    yield SlowStream(rng.choice(PLURALS), lag_s, begin_s, begin_s + 2 * lag_s)


def _stale(rng: Random, _: Sequence[float]) -> Iterator[Trouble]:
    age_s = rng.choice(AGES_S)
    for plural in rng.choice((PLURALS, rng.sample(PLURALS, 2))):
        yield StaleList(plural, age_s)
    yield AtWrite(rng.randrange(WRITES), rng.choice(KILLS))


def _undiscovered(rng: Random, times: Sequence[float]) -> Iterator[Trouble]:
    begin_s, end_s = _span(rng, rng.choice(((0.0,), times)))
    yield Undiscovered(rng.choice(GROUPS), begin_s, end_s)


def _denied(rng: Random, times: Sequence[float]) -> Iterator[Trouble]:
    limit = rng.choice((None, None, 0, 0, 1, 2))
    yield Denied(rng.choice(DENIED), *_span(rng, times), limit)


def _span(rng: Random, times: Sequence[float]) -> tuple[float, float]:
    begin_s = rng.choice(times)
    return begin_s, round(begin_s + rng.uniform(5, 150), 2)
