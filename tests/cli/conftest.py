"""Fixtures: the tutorial's cluster, and a way to type ``mcad`` at it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from click.testing import CliRunner, Result

from mcad.cli.main import main
from mcad.client.scope import Target
from mcad.client.session import Environment
from mcad.kube.port import Api
from tests.cli.cluster import tutorial
from tests.cli.dispatcher import NOW_US, behold
from tests.fakeapi import FakeApi

Type = Callable[..., Result]


class StoppedClock:
    """Always the same moment; waiting takes no time."""

    def __init__(self) -> None:
        self.slept = 0.0

    def monotonic(self) -> float:
        return 100.0 + self.slept

    def now_us(self) -> int:
        return NOW_US

    async def sleep(self, seconds: float) -> None:
        self.slept += max(seconds, 0.0)


class FakeEnvironment(Environment):
    """A world with one API server in memory."""

    def __init__(self, api: FakeApi) -> None:
        self.clock = StoppedClock()
        self.api = api
        behold(api)

    @asynccontextmanager
    async def open(self, target: Target) -> AsyncIterator[tuple[Api, str]]:
        yield self.api, "default"

    @asynccontextmanager
    async def open_quickly(self, target: Target) -> AsyncIterator[tuple[Api, str]]:
        async with self.open(target) as opened:
            yield opened

    def namespace(self, target: Target) -> str:
        return "default"


@pytest.fixture
def api() -> FakeApi:
    return tutorial()


@pytest.fixture
def mcad(api: FakeApi) -> Type:
    """``mcad("queue", "-A")`` types a command."""

    def call(*args: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(main, args, obj=FakeEnvironment(api), input=stdin)

    return call
