"""Shared parts of the ports that the dispatcher serves: server, upkeep, query and answer."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

from mcad.api.list_page import PageQuery
from mcad.api.questions import Question, read_question
from mcad.controller.answers import BadQuestionError
from mcad.kube.clock import Clock
from mcad.kube.errors import KubeError

_log = logging.getLogger(__name__)

LOOK_S = 60.0  # between two looks whether a port is as it should be
RETRY_S = 5.0  # before an attempt that has failed is repeated
GRACE_S = 1.0  # for answers that are being sent at the end, and for connections that just began


class Server:
    """Serves an application until closed."""

    def __init__(self, app: web.Application) -> None:
        self._runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=GRACE_S
        )

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Listen; returns the port, a free one for 0."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, ssl_context=tls)
        await site.start()
        return int(self._runner.addresses[0][1])

    async def close(self) -> None:
        """Stop listening and end open requests."""
        await self._runner.cleanup()


async def keep_open(what: str, look: Callable[[], Awaitable[None]], clock: Clock) -> None:
    """Call ``look`` now and then until cancelled: it opens a port, or opens it again after a change
    of its certificates. A failure is logged once and retried; the dispatcher works without it.
    """
    trouble = ""
    while True:
        try:
            await look()
            trouble = ""
        except (KubeError, OSError, ValueError) as error:
            if trouble != f"{error}":
                trouble = f"{error}"
                _log.error("%s not served correctly error=%s", what, trouble)
        await clock.sleep(RETRY_S if trouble else LOOK_S)


def tls_context(certificates: Path) -> ssl.SSLContext:
    """TLS with ``tls.crt`` and ``tls.key`` of a folder. Raises OSError or ValueError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_pair(context, certificates)
    return context


def load_pair(context: ssl.SSLContext, certificates: Path) -> None:
    """Begin new connections with the certificate that is in the folder now."""
    context.load_cert_chain(*_pair(certificates))


def read_pair(certificates: Path) -> tuple[bytes, bytes]:
    """The certificate and the key, to be compared with those in use."""
    certificate, key = _pair(certificates)
    return certificate.read_bytes(), key.read_bytes()


def _pair(certificates: Path) -> tuple[Path, Path]:
    return certificates / "tls.crt", certificates / "tls.key"


def asks_for_starts(request: web.Request) -> bool:
    """Whether start time estimates are requested (``?starts=true``), which take more work."""
    return request.query.get("starts") == "true"


def asked_page(request: web.Request) -> PageQuery | None:
    """The page that is requested (``?pageSize=100``), None for the whole list."""
    try:
        return PageQuery.of(request.query)
    except ValueError as error:
        raise web.HTTPBadRequest(reason=str(error)) from error


async def asked_question(request: web.Request) -> Question:
    """The question in the body. It is not the simple request that any web page may send."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(reason="write Content-Type: application/json")
    try:
        return read_question(await request.read())
    except ValueError as error:
        raise BadQuestionError(str(error)) from error


def json_answer(body: bytes) -> web.Response:
    """An answer with the text of a JSON value."""
    return web.Response(body=body, content_type="application/json", charset="utf-8")
