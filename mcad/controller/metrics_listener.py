"""Serves metrics over TLS, on a port of their own; a new certificate is used without a restart."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from mcad.controller.http_server import Server

if TYPE_CHECKING:
    from aiohttp import web

    from mcad.kube.clock import Clock

_log = logging.getLogger(__name__)

LOOK_S = 60.0  # between two looks for another certificate
RETRY_S = 5.0  # before that which has failed is tried again


class MetricsListening(Struct, frozen=True):
    """Where to listen, and the folder of ``tls.crt`` and ``tls.key``."""

    host: str
    port: int
    certificates: Path


class MetricsPort:
    """The port. A failure is logged once and retried; the dispatcher works without it."""

    def __init__(self, app: web.Application, listening: MetricsListening, clock: Clock) -> None:
        self._server = Server(app)
        self._listening = listening
        self._clock = clock
        self._context: ssl.SSLContext | None = None  # of the open port
        self._pair = (b"", b"")
        self._trouble = ""
        self.port = 0

    async def run(self) -> None:
        """Serve until cancelled."""
        try:
            while True:
                try:
                    await self.look()
                    self._trouble = ""
                except (OSError, ValueError) as error:
                    self._log_once(f"{error}")
                await self._clock.sleep(RETRY_S if self._trouble else LOOK_S)
        finally:
            await self.close()

    async def close(self) -> None:
        """Stop listening."""
        await self._server.close()

    async def look(self) -> None:
        """Open the port, or use another certificate; raises what prevents that."""
        crt, key = (self._listening.certificates / name for name in ("tls.crt", "tls.key"))
        pair = (crt.read_bytes(), key.read_bytes())
        if pair == self._pair:
            return
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(crt, key)
        if self._context is not None:  # this pair is whole: new connections begin with it
            self._context.load_cert_chain(crt, key)
            _log.info("new certificate of the metrics port is used")
        else:
            host = self._listening.host
            self.port = await self._server.start(host, self._listening.port, context)
            self._context = context
            _log.info("metrics listening address=%s:%d", host, self.port)
        self._pair = pair

    def _log_once(self, trouble: str) -> None:
        if trouble != self._trouble:
            _log.error("metrics are not served correctly error=%s", trouble)
            self._trouble = trouble
