"""A gate between a dispatcher and its API server, that shuts exactly at one of its writes.

It forwards everything, and writes one after the other. So when it shuts, those before are over, and
nothing that comes after arrives: a process that is killed then dies between two writes.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import aiohttp
import yaml
from aiohttp import web

from tests.controlplane.controlplane import ControlPlane
from tests.e2e.fleet import ASIDE

OF_ONE_HOP = ("host", "connection", "content-length", "transfer-encoding", "keep-alive")


class Gate:
    """A context manager. ``writes`` are those that arrived since it was last opened, as method and
    path."""

    def __init__(self, plane: ControlPlane) -> None:
        self.writes: list[str] = []
        self.shut = threading.Event()  # it has shut
        self._plane = plane
        self._write, self._number, self._committed = "", 0, False
        self._opened = 0  # how often
        self._stop: Callable[[], object] = lambda: None
        self._started = threading.Event()
        self._port = 0
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def kubeconfig(self, account: Path) -> Path:
        """The same account, through the gate."""
        found = yaml.safe_load(account.read_text())
        found["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{self._port}"
        path = self._plane.folder / "gate.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(found))
        return path

    def open(self) -> None:
        """Everything goes through that arrives from now on."""
        self._number, self.writes, self._opened = 0, [], self._opened + 1
        self.shut.clear()

    def shut_at(self, write: str, number: int, *, committed: bool) -> None:
        """Shut when there is this write so often from now on, counted from 1, 0 is never: before it
        is sent, or when it is ``committed`` and before its answer is heard."""
        self.open()
        self._write, self._number, self._committed = write, number, committed

    def __enter__(self) -> Gate:
        self._thread.start()
        assert self._started.wait(20)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._thread.join(10)

    async def _serve(self) -> None:
        certificate = self._plane.layout.certificate  # one for 127.0.0.1, whose key is at hand
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(certificate, certificate.with_suffix(".key"))
        self._trust = ssl.create_default_context(cafile=str(certificate))
        self._turn = asyncio.Lock()
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._pass)
        runner = web.AppRunner(app, shutdown_timeout=0.01, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        self._port = runner.addresses[0][1]
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        self._stop = lambda: loop.call_soon_threadsafe(stop.set)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as self._session:
            self._started.set()
            await stop.wait()
            await runner.cleanup()

    async def _pass(self, asked: web.Request) -> web.StreamResponse:
        if self.shut.is_set():
            await _forever()
        if asked.method == "GET" or any(f"/{one}" in asked.path for one in ASIDE):
            return await self._forward(asked)
        opened = self._opened
        async with self._turn:
            if self.shut.is_set() or opened != self._opened:
                await _forever()  # it was shut while this one waited for its turn
            self.writes.append(write := f"{asked.method} {asked.path}")
            is_last = write == self._write and self.writes.count(write) == self._number
            if is_last and not self._committed:
                await self._shut()
            answer = await self._forward(asked)
            if is_last:
                await self._shut()
            return answer

    async def _shut(self) -> NoReturn:
        self.shut.set()
        await _forever()

    async def _forward(self, asked: web.Request) -> web.StreamResponse:
        url = f"{self._plane.layout.url}{asked.raw_path}"
        headers = {k: v for k, v in asked.headers.items() if k.lower() not in OF_ONE_HOP}
        body = await asked.read()
        asking = self._session.request(
            asked.method, url, headers=headers, data=body or None, ssl=self._trust
        )
        async with asking as heard:
            kept = {k: v for k, v in heard.headers.items() if k.lower() not in OF_ONE_HOP}
            if asked.query.get("watch") not in ("1", "true"):
                return web.Response(status=heard.status, headers=kept, body=await heard.read())
            answer = web.StreamResponse(status=heard.status, headers=kept)
            await answer.prepare(asked)
            async for chunk in heard.content.iter_any():
                await answer.write(chunk)
            return answer


async def _forever() -> NoReturn:
    """Until the waiting process is gone."""
    await asyncio.Event().wait()
    raise AssertionError("nothing sets it")
