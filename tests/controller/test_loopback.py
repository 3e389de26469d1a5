"""All callers may probe and scrape; figures about AppWrappers are for callers on loopback."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from mcad.controller import loopback
from mcad.controller.http_server import Server

# All of 127.0.0.0/8 is loopback; an address from elsewhere is what the guard is told it is.
ASKED = ("/api/v1/queue", "/api/v1/appwrappers/ns/name", "/healthz", "/metrics")


async def ask(port: int, path: str, host: str) -> int:
    """The status of the answer to a request with this Host header."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    line = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return int(line.split()[1])


async def statuses(host: str, guard: Any = loopback.guard) -> list[int]:
    app = web.Application(middlewares=[guard])
    app.router.add_get("/{any:.*}", _answer)
    server = Server(app)
    port = await server.start("127.0.0.1", 0)
    try:
        return [await ask(port, path, host) for path in ASKED]
    finally:
        await server.close()


async def _answer(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:8080"])
async def test_from_here_everything_is_told(host: str) -> None:
    assert await statuses(host) == [200, 200, 200, 200]


@pytest.mark.parametrize("host", ["example.com", "mcad.mcad-system:8080", "10.0.0.7", "", "[::2]"])
async def test_under_another_name_nothing_private_is_told(host: str) -> None:
    """A page whose name an attacker points to 127.0.0.1 has a browser ask under that name."""
    assert await statuses(host) == [403, 403, 200, 200]


async def test_metrics_that_are_served_over_tls_are_private_here() -> None:
    assert await statuses("localhost", loopback.guard_metrics_too) == [200, 200, 200, 200]
    assert await statuses("10.0.0.7", loopback.guard_metrics_too) == [403, 403, 200, 403]


@pytest.mark.parametrize("ours", ["10.1.2.3", "::ffff:10.1.2.3", "fe80::1", None])
async def test_what_came_by_another_address_is_told_nothing_private(
    ours: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sockname = (ours, 8080) if ours else None
    monkeypatch.setattr(
        "asyncio.selector_events._SelectorSocketTransport.get_extra_info",
        lambda self, name, default=None: sockname if name == "sockname" else default,
    )
    assert await statuses("127.0.0.1") == [403, 403, 200, 200]


@pytest.mark.parametrize("ours", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_what_is_loopback(ours: str) -> None:
    assert loopback._is_loopback(ours)
