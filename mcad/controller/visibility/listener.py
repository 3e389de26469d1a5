"""Serves the visibility API while this process leads; certificates are reloaded."""

from __future__ import annotations

import logging
import ssl
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from mcad.controller.access import Access
from mcad.controller.http_server import Server, keep_open, read_pair, tls_context
from mcad.controller.leader_figures import LeaderFigures
from mcad.controller.visibility.front_proxy import PUBLISHED_IN, FrontProxy, read_front_proxy
from mcad.controller.visibility.routes import application
from mcad.kube.kinds import CONFIG_MAPS

if TYPE_CHECKING:
    from mcad.controller.visibility.endpoint import Endpoint
    from mcad.kube.client import Client

_log = logging.getLogger(__name__)


class Listening(Struct, frozen=True):
    """Where to listen, and the folder of ``tls.crt`` and ``tls.key``.

    Without ``endpoint`` no EndpointSlice is written.
    """

    host: str
    port: int
    certificates: Path
    endpoint: Endpoint | None = None


class _Terms(Struct, frozen=True):
    """What an open port depends on: it is opened again if this changes."""

    front_proxy: FrontProxy
    certificate: bytes
    key: bytes


class Visibility:
    """The port of the visibility API."""

    def __init__(self, figures: LeaderFigures, listening: Listening) -> None:
        self._figures = figures
        self._listening = listening
        self._terms: _Terms | None = None
        self._server: Server | None = None
        self._port = 0
        self._is_announced = False

    async def run(self, client: Client) -> None:
        """Serve until cancelled."""
        open_port = partial(self._open_port, client, Access(client))
        try:
            await keep_open("visibility API is", open_port, client.clock)
        finally:
            await self._close()

    async def _open_port(self, client: Client, access: Access) -> None:
        """Open the port, or open it again after a change; raises what prevents that."""
        terms = await self._read_terms(client)
        if terms != self._terms:
            context = context_of(terms.front_proxy, self._listening.certificates)
            await self._close()
            self._server = Server(application(self._figures, access, terms.front_proxy))
            listening = self._listening
            port = await self._server.start(listening.host, self._port or listening.port, context)
            self._terms, self._port = terms, port
            _log.info("visibility API listening address=%s:%d", listening.host, port)
        if self._listening.endpoint is not None and not self._is_announced:
            await self._listening.endpoint.announce(client, self._port)
            self._is_announced = True

    async def _read_terms(self, client: Client) -> _Terms:
        front_proxy = read_front_proxy(await client.get(CONFIG_MAPS, *PUBLISHED_IN))
        if front_proxy is None:
            raise ValueError("the API server has no front proxy (--requestheader-client-ca-file)")
        return _Terms(front_proxy, *read_pair(self._listening.certificates))

    async def _close(self) -> None:
        self._terms = None
        if self._server is not None:
            await self._server.close()
            self._server = None


def context_of(front_proxy: FrontProxy, folder: Path) -> ssl.SSLContext:
    """A TLS context with the certificate in ``folder`` that requires a front proxy certificate.

    Raises OSError or ValueError.
    """
    context = tls_context(folder)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=front_proxy.ca)
    return context
