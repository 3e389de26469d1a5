"""Requests with only the standard library, for commands that must be fast.

Programs that stay use ``rest.RestApi``; its libraries take longer to import than this takes to
answer.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import ssl
import zlib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from email.message import Message
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from socket import gaierror
from threading import Thread
from urllib.parse import urlencode, urlsplit

from msgspec import json

from mcad.kube.errors import ConnectionLost, OutcomeUnknown, RequestTimeout
from mcad.kube.impersonation import Pairs
from mcad.kube.kubeconfig import Plain
from mcad.kube.port import JSON, Request, Response, nothing

TIMEOUT_S = 15.0  # of a request that names none
_READS = frozenset({"GET", "HEAD"})


async def send(base_url: str, request: Request, timeout_s: float) -> Response:
    """The answer, whatever its status; raises ``OutcomeUnknown``. No redirects, no proxies."""
    link = Link(base_url)
    try:
        return await link.send(request, timeout_s, request.headers)
    finally:
        link.close()


class Link:
    """Requests to one server. The connection of a read is kept for the next read. Each write opens
    its own: a server may close a kept connection at any time, and no write is sent twice."""

    def __init__(self, base_url: str, context: ssl.SSLContext | None = None) -> None:
        self._url = urlsplit(base_url)
        self._context = context
        self._kept: list[HTTPConnection] = []
        self._is_open = True

    async def send(
        self, request: Request, timeout_s: float, headers: Mapping[str, str], more: Pairs = ()
    ) -> Response:
        """The answer, whatever its status; raises ``OutcomeUnknown``. No redirects, no proxies."""
        path = self._url.path.rstrip("/") + request.path
        if request.params:
            path += "?" + urlencode(request.params)
        sent = [("Accept-Encoding", "gzip"), *headers.items(), *more]
        body = request.body
        if body is not None:
            body = body if isinstance(body, bytes) else json.encode(body)
            sent += [("Content-Type", request.content_type), ("Content-Length", str(len(body)))]

        def ask(connection: HTTPConnection) -> Response:
            try:
                connection.putrequest(request.method, path, skip_accept_encoding=True)
                for header in sent:
                    connection.putheader(*header)
                connection.endheaders(body)
                answer = connection.getresponse()
                content = answer.read()
            except BaseException:
                connection.close()
                raise
            self._keep(connection)
            if answer.headers.get("Content-Encoding") == "gzip":
                content = gzip.decompress(content)
            return Response(answer.status, content, _joined(answer.headers))

        def exchange() -> Response:
            if request.method in _READS:
                # Another thread may have taken it, or the server may have closed it meanwhile.
                with suppress(IndexError, ConnectionError):
                    return ask(_hurried(self._kept.pop(), timeout_s))
            return ask(self._connection(timeout_s))

        try:
            return await _beside(exchange)
        except TimeoutError as error:
            raise RequestTimeout(f"no answer within {timeout_s:g} s") from error
        except OSError as error:
            raise ConnectionLost(words(error)) from error
        except (HTTPException, EOFError, zlib.error, ValueError) as error:
            said = str(error) or type(error).__name__
            raise ConnectionLost(f"no answer in HTTP ({said})") from error

    def close(self) -> None:
        """Close what is kept; a request under way closes its own connection."""
        self._is_open = False
        while self._kept:
            self._kept.pop().close()

    def _keep(self, connection: HTTPConnection) -> None:
        self._kept.append(connection)
        if not self._is_open:  # closed meanwhile, in the thread of the loop
            self.close()

    def _connection(self, timeout_s: float) -> HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme != "https":
            return HTTPConnection(host, port, timeout=timeout_s)
        return HTTPSConnection(host, port, timeout=timeout_s, context=self._context)


def _hurried(connection: HTTPConnection, timeout_s: float) -> HTTPConnection:
    """The connection with another timeout."""
    connection.timeout = timeout_s
    if connection.sock is not None:
        connection.sock.settimeout(timeout_s)
    return connection


async def _beside(work: Callable[[], Response]) -> Response:
    """The outcome of work in a thread that is not waited for any more once its asker has gone.

    ``asyncio.to_thread`` would keep the process alive until its timeout: a person has left by then.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Response] = loop.create_future()

    def tell(answer: Response | None, error: Exception | None) -> None:
        if outcome.done():  # the asker has given up
            return
        if error is not None:
            outcome.set_exception(error)
        elif answer is not None:
            outcome.set_result(answer)

    def run() -> None:
        answer, failure = None, None
        try:
            answer = work()
        except Exception as error:  # noqa: BLE001 - it is raised where it is awaited
            failure = error
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(tell, answer, failure)

    Thread(target=run, daemon=True).start()
    return await outcome


class PlainApi:
    """``mcad.kube.port.Api`` without watches."""

    def __init__(self, server: Plain) -> None:
        self._link = Link(server.url, server.ssl_context)
        self._headers = {"Accept": JSON, **server.headers}
        self._impersonated = server.impersonated

    def close(self) -> None:
        """Close its connections."""
        self._link.close()

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        seconds = TIMEOUT_S if timeout is None else timeout
        name = f"{request.method} {request.path}"
        try:
            headers = {**self._headers, **request.headers}
            return await self._link.send(request, seconds, headers, self._impersonated)
        except OutcomeUnknown as error:
            raise type(error)(f"{name}: {error}") from error

    def stream(
        self, request: Request, idle_timeout: float, opened: Callable[[], None] = nothing
    ) -> AsyncGenerator[bytes, None]:
        raise NotImplementedError("a watch needs RestApi")


def _joined(headers: Message) -> dict[str, str]:
    """The headers by name; what comes several times, as warnings do, is one list."""
    return {name: ", ".join(headers.get_all(name, [])) for name in headers}


def words(error: Exception) -> str:
    """What went wrong with a connection, in plain words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or error})"
    number = error.errno if isinstance(error, OSError) else None
    if number and not isinstance(error, gaierror):
        return os.strerror(number)  # asyncio's own text repeats the address
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
