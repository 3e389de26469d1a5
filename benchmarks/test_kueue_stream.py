"""The stream is more than the queue can run, and what is in use is counted for small ones alone."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from benchmarks import kueue_stream
from benchmarks.kueue_arms import JOB, Mcad, queues
from benchmarks.kueue_load import NOMINAL, Class
from benchmarks.kueue_queued import QUEUE
from benchmarks.kueue_stream import GANG, SHAPE, SMALL, Stream


class Admits:
    """A client of a cluster that runs a small workload 0.05 s after it was created, and the gang
    ``gang_s`` after it was."""

    def __init__(self, arm: Mcad, gang_s: float) -> None:
        self._arm = arm
        self._gang_s = gang_s
        self.stream: Stream | None = None

    async def create(self, resource: Any, namespace: str, body: Any) -> None:
        name = body["metadata"]["name"]
        job = {"metadata": {"namespace": namespace, "name": name, "uid": name}}
        delay = self._gang_s if name == "gang" else 0.05
        assert self.stream is not None
        loop = asyncio.get_running_loop()
        loop.call_later(delay, self.stream._take, self._arm.seen("ADDED", job))

    async def patch_status(self, *_: object) -> None:
        """A workload has ended."""


def _play(gang_s: float, monkeypatch: pytest.MonkeyPatch) -> kueue_stream.Outcome:
    monkeypatch.setattr(kueue_stream, "LOOK_S", 0.01)
    arm = Mcad()
    client = Admits(arm, gang_s)

    async def run() -> kueue_stream.Outcome:
        client.stream = stream = Stream(SHAPE, arm, cast(Any, client))
        small: Class = SMALL._replace(every_s=0.02, count=100, runs_s=0.1)
        monkeypatch.setattr(kueue_stream, "SMALL", small)
        stream._spawn(stream._generate(small, QUEUE))
        await asyncio.sleep(0.2)
        return await stream.gang(0.5)

    return asyncio.run(run())


def test_more_arrives_than_can_run() -> None:
    assert SMALL.cpu * SMALL.runs_s / SMALL.every_s == pytest.approx(1.2 * NOMINAL)
    assert GANG.cpu == NOMINAL
    assert GANG.priority == SMALL.priority


def test_a_gang_that_is_admitted_ends_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _play(0.2, monkeypatch)
    assert found.gang_s is not None
    assert found.gang_s >= 0.2
    assert found.use > 0
    assert 0.05 <= found.small_p50_s <= found.small_most_s


def test_a_gang_that_is_not_admitted_is_waited_for_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _play(9, monkeypatch)
    assert found.gang_s is None
    assert "not admitted" in str(found)


def test_the_strategy_of_the_queues_can_be_another() -> None:
    strategies = [
        one["spec"]["queueingStrategy"]
        for one in queues(SHAPE, "StrictFIFO")
        if one["kind"] == "ClusterQueue"
    ]
    assert strategies == ["StrictFIFO"]
    assert Mcad.watched == JOB
