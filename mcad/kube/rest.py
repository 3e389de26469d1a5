"""The API port over HTTP: an aiohttp session with every default that matters written down.

No redirects, no cookies, no retries, a timeout on everything. Answers are handed on
as they are. The one thing that is repeated is a request refused with 401, if the credential
could be renewed: the server did not look at it.
"""

import asyncio
import json
import socket
import zlib
from collections.abc import AsyncGenerator, Callable
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from math import inf
from types import TracebackType
from typing import Self
from urllib.parse import urlencode

import aiohttp
import msgspec
from multidict import CIMultiDict
from yarl import URL

from mcad.kube.clock import Clock
from mcad.kube.connection import Connection, Credential
from mcad.kube.errors import BadAnswer, ConnectionLost, RequestTimeout, api_error
from mcad.kube.lines import LINE_BYTES_MAX, LineSplitter
from mcad.kube.plain import words
from mcad.kube.port import JSON, Request, Response, nothing
from mcad.kube.proxy import Proxy
from mcad.kube.retry import parse_retry_after

TIMEOUT_S = 15.0  # of a request that names none, and until a watch's headers come
CONNECTIONS = 32  # for requests at one time; streams have connections of their own
IDLE_CONNECTION_S = 30.0  # kube-apiserver closes idle ones after 90 s; never meet it half-way
BODY_BYTES_MAX = 512 * 1024 * 1024  # 500 objects at etcd's limit of 1.5 MB do not reach it
READ_BUFFER_BYTES = 256 * 1024  # bursts of watch events come in few wake-ups
KEEPALIVE_IDLE_S, KEEPALIVE_INTERVAL_S, KEEPALIVE_PROBES = 30, 15, 9  # client-go's

GZIP, IDENTITY = "gzip", "identity"
"""How an answer may be encoded. kube-apiserver compresses lists, and that costs it no more than to
encrypt all of their bytes, on loopback too. No stream: a proxy would keep events back."""

_GZIP_BITS = 16 + zlib.MAX_WBITS  # of zlib: with the header of gzip

_ENCODER = msgspec.json.Encoder()
_NO_TIMEOUT = aiohttp.ClientTimeout(total=None)  # asyncio.timeout covers all of a request


class RestApi:
    """``mcad.kube.port.Api`` for one ``Connection``; create it inside a running event loop."""

    def __init__(
        self,
        connection: Connection,
        clock: Clock,
        *,
        timeout_s: float = TIMEOUT_S,
        connections: int = CONNECTIONS,
    ) -> None:
        """``connections`` bounds concurrent requests."""
        self._connection = connection
        self._clock = clock
        self._proxy = connection.proxy
        self._base_url = connection.base_url
        self._timeout_s = timeout_s
        self._headers = {"Accept": JSON, "User-Agent": user_agent()}
        if connection.tls is None:  # there is no tunnel: the proxy reads the request itself
            self._headers |= _login(connection.proxy)
        # Two pools, so that watches can never starve the workers of connections.
        self._requests = _session(connections, GZIP)
        self._streams = _session(0, IDENTITY)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections; requests under way end with ``ConnectionLost``."""
        await self._requests.close()
        await self._streams.close()

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        seconds = self._timeout_s if timeout is None else timeout
        until = self._clock.monotonic() + seconds
        try:
            async with asyncio.timeout(seconds):
                credential = await self._connection.credential()
                answer = await self._exchange(request, credential, until)
                if answer.status == 401:
                    await self._connection.renew()
                    renewed = await self._connection.credential()
                    if renewed != credential:
                        answer = await self._exchange(request, renewed, until)
                return answer
        except TimeoutError as error:
            raise RequestTimeout(f"{_name(request)}: no answer within {seconds:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            if self._clock.monotonic() >= until:
                name = _name(request)
                raise RequestTimeout(f"{name}: no answer within {seconds:g} s") from error
            raise ConnectionLost(f"{_name(request)}: {self._words(error)}") from error

    async def stream(
        self, request: Request, idle_timeout: float, opened: Callable[[], None] = nothing
    ) -> AsyncGenerator[bytes, None]:
        splitter = LineSplitter(LINE_BYTES_MAX)
        answer: aiohttp.ClientResponse | None = None
        try:
            async with asyncio.timeout(self._timeout_s):
                credential = await self._connection.credential()
                answer = await self._open(self._streams, request, credential, idle_timeout)
                if answer.status != 200:
                    await self._refuse(answer)
                if _encoding(answer) != IDENTITY:
                    raise BadAnswer(f"a stream in the encoding {_encoding(answer)}")
            opened()
            async for chunk in answer.content.iter_any():
                for line in splitter.feed(chunk):
                    yield line
        except TimeoutError as error:
            raise RequestTimeout(f"{_name(request)}: nothing came for too long") from error
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionLost(f"{_name(request)}: {self._words(error)}") from error
        finally:
            if answer is not None:
                answer.close()

    async def _exchange(self, request: Request, credential: Credential, until: float) -> Response:
        answer = await self._open(self._requests, request, credential, until=until)
        try:
            body = await _read(answer)
        finally:
            answer.release()
        return Response(answer.status, body, answer.headers)

    async def _open(
        self,
        session: aiohttp.ClientSession,
        request: Request,
        credential: Credential,
        idle_timeout: float | None = None,
        until: float = inf,
    ) -> aiohttp.ClientResponse:
        if session.closed:
            raise aiohttp.ClientConnectionError("we have closed the connection")
        url = self._base_url + request.path
        if request.params:
            url += "?" + urlencode(request.params)
        headers = CIMultiDict({**self._headers, **credential.headers, **request.headers})
        headers.extend(self._connection.impersonated)
        body, data = request.body, None
        if body is not None:
            headers["Content-Type"] = request.content_type
            if not isinstance(body, bytes):
                body = _encoded(body)
            data = _Timely(body, self._clock, until)
        return await session.request(
            request.method,
            URL(url, encoded=True),
            data=data,
            headers=headers,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(sock_read=idle_timeout) if idle_timeout else _NO_TIMEOUT,
            server_hostname=self._connection.server_name,
            ssl=credential.ssl_context or True,  # another context means another connection
            proxy=self._proxy.url if self._proxy is not None else None,
            proxy_headers=_login(self._proxy),  # with which the tunnel is asked for
        )

    def _words(self, error: Exception) -> str:
        via = f"through the proxy {self._proxy}: " if self._proxy is not None else ""
        return via + _words(error)

    async def _refuse(self, answer: aiohttp.ClientResponse) -> None:
        retry_after = parse_retry_after(answer.headers.get("Retry-After"), self._clock.now_us())
        if answer.status == 401:
            await self._connection.renew()
        raise api_error(answer.status, await _read(answer), retry_after)


class _Timely(aiohttp.BytesPayload):
    """A body that is sent by a monotonic second or not at all.

    The headers go out with it, so nothing of such a request does. A process that was stopped
    between a decision and its sending would send it on waking up, before it looks at any timer.
    """

    def __init__(self, body: bytes, clock: Clock, until: float) -> None:
        super().__init__(body)
        self._clock = clock
        self._until = until

    async def write_with_length(
        self, writer: aiohttp.abc.AbstractStreamWriter, content_length: int | None
    ) -> None:
        """Write it, if there is time; aiohttp tells its caller that it failed."""
        if self._clock.monotonic() >= self._until:
            raise TimeoutError
        await super().write_with_length(writer, content_length)


def user_agent() -> str:
    """``mcad/<version>``; the server takes field managers' names from it, up to the slash."""
    try:
        return f"mcad/{version('mcad')}"
    except PackageNotFoundError:
        return "mcad/unpackaged"


def _encoded(body: object) -> bytes:
    try:
        return _ENCODER.encode(body)
    except (msgspec.MsgspecError, ValueError, OverflowError):  # half a surrogate pair, say
        return json.dumps(body, separators=(",", ":")).encode()


def _login(proxy: Proxy | None) -> dict[str, str]:
    if proxy is None or not proxy.user:
        return {}
    return {"Proxy-Authorization": aiohttp.encode_basic_auth(proxy.user, proxy.password)}


def _session(limit: int, encoding: str) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(
        limit=limit, keepalive_timeout=IDLE_CONNECTION_S, socket_factory=_socket
    )
    session = aiohttp.ClientSession(
        connector=connector,
        headers={"Accept-Encoding": encoding},
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        read_bufsize=READ_BUFFER_BYTES,
        auto_decompress=False,  # in small pieces, at twice the cost
    )
    # aiohttp sends an idempotent request again when a pooled connection turns out to be dead,
    # PUT and DELETE too. There is no public switch; test_rest.py notices if this one goes away.
    session._retry_connection = False
    return session


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """A socket with keep-alive probes, which detect that the peer is gone."""
    family, kind, protocol, _, _ = address
    opened = socket.socket(family, kind, protocol)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_IDLE_S),
        ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL_S),
        ("TCP_KEEPCNT", KEEPALIVE_PROBES),
    ):
        if hasattr(socket, option):  # macOS spells the first one differently
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return opened


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    body = BytesIO()  # it grows in place: megabytes of pieces would all be copied at the end
    async for piece in answer.content.iter_any():
        body.write(piece)
        if body.tell() > BODY_BYTES_MAX:
            raise _too_large()
    text = body.getvalue()
    if not text:
        return text  # of 204, say, whatever it says of its encoding
    try:
        return _decoded(text, _encoding(answer))
    except BadAnswer:
        if answer.ok:
            raise
        return text  # that of a refusal explains the status, which counts


def _encoding(answer: aiohttp.ClientResponse) -> str:
    return answer.headers.get("Content-Encoding", "").lower() or IDENTITY


def _decoded(text: bytes, encoding: str) -> bytes:
    """All of it at once: a page of a list takes some ten milliseconds."""
    if encoding == IDENTITY:
        return text
    if encoding != GZIP:
        raise BadAnswer(f"an answer in the encoding {encoding}, which was not asked for")
    size = int.from_bytes(text[-4:], "little")  # RFC 1952, section 2.3.1: ISIZE
    if size > BODY_BYTES_MAX:
        raise _too_large()
    try:
        # With the exact size it is not copied: one byte more costs as much as to inflate it.
        whole = zlib.decompress(text, _GZIP_BITS, bufsize=max(size, 1))
    except zlib.error as error:
        raise BadAnswer(f"an answer that is not gzip, or not all of it ({error})") from error
    if len(whole) != size:  # nor may there be several parts, which no server makes
        raise BadAnswer(f"an answer in gzip of {len(whole)} bytes that says {size}")
    return whole


def _too_large() -> BadAnswer:
    return BadAnswer(f"an answer of more than {BODY_BYTES_MAX} bytes")


def _name(request: Request) -> str:
    return f"{request.method} {request.path}"


def _words(error: Exception) -> str:
    """What went wrong, without what aiohttp says of its own objects (``ssl:default``)."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return words(error.certificate_error)
    if isinstance(error, aiohttp.ClientConnectorError):
        return words(error.os_error)
    if isinstance(error, aiohttp.ClientResponseError):  # of a proxy that would not connect us
        return f"{error.status} {error.message}"
    return str(error) or type(error).__name__
