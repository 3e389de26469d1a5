"""Metrics over TLS without a control plane: which callers get the page, and which certificate is
shown. ``tests/e2e/test_visibility.py`` has them behind a real kube-apiserver."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from mcad.api.config import Config
from mcad.controller.access import HOLDS_S, KEPT_MAX, Caller, Remembered
from mcad.controller.http_port import metrics_application
from mcad.controller.http_server import RETRY_S, Server
from mcad.controller.metrics_access import MetricsAccess, read_caller
from mcad.controller.metrics_listener import MetricsListening, MetricsPort
from mcad.controller.replica import Replica
from mcad.kube.client import Client
from tests import pki
from tests.fakeapi import FakeApi, Fault, answer, forbidden, reset
from tests.kube.support import FakeClock

Json = dict[str, Any]

PROMETHEUS = {
    "username": "system:serviceaccount:monitoring:prometheus",
    "groups": ["system:serviceaccounts"],
    "extra": {"pod": ["prometheus-0"]},
}


class Scraped:
    """The port of a standby whose API server the test has in hand; plain HTTP."""

    def __init__(self) -> None:
        self.api, self.clock = FakeApi(), FakeClock()
        client = Client(self.api, self.clock, Random(1))
        replica = Replica(client, Config(), identity="a")
        self.server = Server(metrics_application(replica, MetricsAccess(client)))
        self.port = 0

    def knows(self, user: Json | None) -> None:
        status = {"authenticated": user is not None, "user": user or {}}
        self.api.fail("POST", "/tokenreviews", answer({"status": status}, 201))

    def allows(self, allowed: bool) -> None:
        self.api.fail("POST", "/subjectaccessreviews", answer({"status": {"allowed": allowed}}))

    async def ask(self, header: str = "Bearer good", path: str = "/metrics") -> tuple[int, str]:
        headers = {"Authorization": header} if header else {}
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{self.port}{path}", headers=headers) as found,
        ):
            return found.status, await found.text()

    def asked(self) -> list[Any]:
        return [one.body for one in self.api.requests]


@pytest.fixture
async def scraped() -> AsyncIterator[Scraped]:
    one = Scraped()
    one.port = await one.server.start("127.0.0.1", 0)
    yield one
    await one.server.close()


async def test_a_caller_with_the_right_gets_the_page(scraped: Scraped) -> None:
    scraped.knows(PROMETHEUS)
    scraped.allows(True)
    status, text = await scraped.ask()
    assert status == 200
    assert "mcad_leader 0.0" in text
    token, right = scraped.asked()
    assert token["spec"] == {"token": "good"}
    assert right["spec"] == {
        "user": PROMETHEUS["username"],
        "groups": PROMETHEUS["groups"],
        "extra": PROMETHEUS["extra"],
        "nonResourceAttributes": {"verb": "get", "path": "/metrics"},
    }


async def test_a_caller_without_the_right_is_told_so(scraped: Scraped) -> None:
    scraped.knows(PROMETHEUS)
    scraped.allows(False)
    status, text = await scraped.ask()
    assert (status, text) == (
        403,
        'User "system:serviceaccount:monitoring:prometheus" cannot get path "/metrics"\n',
    )


async def test_a_token_of_another_cluster_is_refused(scraped: Scraped) -> None:
    scraped.knows(None)
    assert (await scraped.ask())[0] == 401


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic Z29vZA=="])
async def test_without_a_token_the_api_server_is_not_asked(header: str, scraped: Scraped) -> None:
    assert (await scraped.ask(header))[0] == 401
    assert scraped.asked() == []


@pytest.mark.parametrize("fault", [forbidden, reset, answer({})])
@pytest.mark.parametrize("review", ["tokenreviews", "subjectaccessreviews"])
async def test_without_an_answer_of_the_api_server_nothing_is_served(
    review: str, fault: Fault, scraped: Scraped
) -> None:
    scraped.api.fail_always("POST", f"/{review}", fault)
    if review != "tokenreviews":
        scraped.knows(PROMETHEUS)
    assert await scraped.ask() == (503, "the API server cannot be asked\n")


async def test_answers_hold_for_a_moment(scraped: Scraped) -> None:
    scraped.knows(PROMETHEUS)
    scraped.allows(True)
    assert [(await scraped.ask())[0] for _ in range(3)] == [200, 200, 200]
    assert len(scraped.asked()) == 2
    await scraped.clock.sleep(HOLDS_S)
    scraped.knows(None)
    assert (await scraped.ask())[0] == 401


async def test_nothing_else_is_served(scraped: Scraped) -> None:
    scraped.knows(PROMETHEUS)
    scraped.allows(True)
    assert (await scraped.ask(path="/api/v1/queue"))[0] == 404
    assert (await scraped.ask(path="/healthz"))[0] == 404


def test_a_review_without_a_name_is_of_no_caller() -> None:
    assert read_caller({"authenticated": True, "user": {"username": "jane"}}) == Caller("jane")
    assert read_caller({"authenticated": True}) is None
    assert read_caller({"authenticated": "true", "user": {"username": "jane"}}) is None
    assert read_caller({"authenticated": False, "user": {"username": "jane"}}) is None


async def test_what_is_remembered_is_bounded() -> None:
    asked = []

    async def ask(key: int) -> int:
        asked.append(key)
        return key

    remembered = Remembered(FakeClock(), ask)
    for key in [*range(KEPT_MAX), KEPT_MAX - 1]:
        await remembered.get(key)
    assert len(asked) == KEPT_MAX
    await remembered.get(KEPT_MAX)
    await remembered.get(0)
    assert len(asked) == KEPT_MAX + 2, "all were forgotten"


# -- the certificate -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("metrics")
    pki.authority(folder, "ca")
    return folder


def issue(authority: Path, folder: Path) -> None:
    pki.issue(authority, "ca", "tls", "subjectAltName=DNS:localhost")
    for name in ("tls.crt", "tls.key"):
        (folder / name).write_bytes((authority / name).read_bytes())


async def shown(port: int, authority: Path) -> bytes | None:
    """The certificate of the port."""
    trusting = ssl.create_default_context(cafile=str(authority / "ca.crt"))
    _, writer = await asyncio.open_connection("localhost", port, ssl=trusting)
    found: bytes | None = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return found


def port_of(folder: Path, clock: FakeClock) -> MetricsPort:
    return MetricsPort(web.Application(), MetricsListening("127.0.0.1", 0, folder), clock)


async def test_another_certificate_is_used_and_a_torn_one_is_not(
    authority: Path, tmp_path: Path
) -> None:
    """The port stays open."""
    port = port_of(tmp_path, FakeClock())
    issue(authority, tmp_path)
    await port.look()
    number, first = port.port, await shown(port.port, authority)
    crt = (tmp_path / "tls.crt").read_bytes()
    issue(authority, tmp_path)
    (tmp_path / "tls.crt").write_bytes(crt)
    with pytest.raises(OSError, match="mismatch"):
        await port.look()
    assert await shown(number, authority) == first
    issue(authority, tmp_path)
    await port.look()
    assert port.port == number
    assert await shown(number, authority) not in (None, first)
    await port.close()


async def test_a_missing_certificate_is_told_once_and_looked_for_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock(horizon=3 * RETRY_S)
    running = asyncio.ensure_future(port_of(tmp_path, clock).run())
    await asyncio.wait_for(clock.parked.wait(), 10)
    assert [str(tmp_path / "tls.crt") in one.message for one in caplog.records] == [True]
    assert clock.sleeps == [RETRY_S] * 4
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
