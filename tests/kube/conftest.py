"""Fixtures: a server, a clock, and a client that connects them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mcad.kube.client import Client
from mcad.kube.rest import RestApi
from tests.fakeapi import FakeApi
from tests.kube.support import FakeClock, client_of, connection
from tests.pki import authority, issue
from tests.serving import serve


@pytest.fixture
async def server() -> AsyncIterator[FakeApi]:
    async with serve() as running:
        yield running


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def api(server: FakeApi, clock: FakeClock) -> AsyncIterator[RestApi]:
    async with RestApi(connection(server.url), clock, timeout_s=2.0) as opened:
        yield opened


@pytest.fixture
def client(api: RestApi, clock: FakeClock) -> Client:
    return client_of(api, clock)


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA, a server certificate for 127.0.0.1 and two client certificates, and another CA."""
    folder = tmp_path_factory.mktemp("pki")

    authority(folder, "ca")
    authority(folder, "other-ca")
    issue(folder, "ca", "server", "subjectAltName=IP:127.0.0.1")
    issue(folder, "ca", "client")
    issue(folder, "ca", "client2")
    return folder
