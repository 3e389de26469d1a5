"""Serves metrics over TLS, on a port of their own; a new certificate is used without a restart."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from mcad.controller.http_server import Server, keep_open, load_pair, read_pair, tls_context

if TYPE_CHECKING:
    from aiohttp import web

    from mcad.kube.clock import Clock

_log = logging.getLogger(__name__)


class MetricsListening(Struct, frozen=True):
    """Where to listen, and the folder of ``tls.crt`` and ``tls.key``."""

    host: str
    port: int
    certificates: Path


class MetricsPort:
    """The port of metrics over TLS."""

    def __init__(self, app: web.Application, listening: MetricsListening, clock: Clock) -> None:
        self._server = Server(app)
        self._listening = listening
        self._clock = clock
        self._context: ssl.SSLContext | None = None  # of the open port
        self._pair = (b"", b"")
        self.port = 0

    async def run(self) -> None:
        """Serve until cancelled."""
        try:
            await keep_open("metrics are", self.look, self._clock)
        finally:
            await self.close()

    async def close(self) -> None:
        """Stop listening."""
        await self._server.close()

    async def look(self) -> None:
        """Open the port, or use another certificate; raises what prevents that."""
        folder, host = self._listening.certificates, self._listening.host
        pair = read_pair(folder)
        if pair == self._pair:
            return
        context = tls_context(folder)
        if self._context is not None:  # this pair is whole: new connections begin with it
            load_pair(self._context, folder)
            _log.info("new certificate of the metrics port is used")
        else:
            self.port = await self._server.start(host, self._listening.port, context)
            self._context = context
            _log.info("metrics listening address=%s:%d", host, self.port)
        self._pair = pair
