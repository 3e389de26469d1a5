"""Fixtures: a server, a clock, and a client that connects them."""

from collections.abc import AsyncIterator

import pytest

from mcad.kube.client import Client
from mcad.kube.rest import RestApi
from tests.kube.fakeserver import FakeServer, serve
from tests.kube.support import FakeClock, client_of, connection


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    async with serve() as running:
        yield running


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def api(server: FakeServer, clock: FakeClock) -> AsyncIterator[RestApi]:
    async with RestApi(connection(server.url), clock, timeout_s=2.0) as opened:
        yield opened


@pytest.fixture
def client(api: RestApi, clock: FakeClock) -> Client:
    return client_of(api, clock)
