"""Which requests the page answers: those of the browser that the printed address was opened in.

The server listens on loopback, but every user and every web page of this machine can reach that.
So the printed address has a token, which works once and is exchanged for a cookie; and the name in
Host has to be a loopback one, else a page elsewhere could have a browser ask (DNS rebinding). Its
port may be another one, because ``kubectl port-forward`` may have chosen it.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from aiohttp import web

from mcad.ui.view import VIEW, View

if TYPE_CHECKING:
    from aiohttp.typedefs import Middleware

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

NAMES = ("127.0.0.1", "localhost")
_HOST = re.compile(f"({'|'.join(map(re.escape, NAMES))}):[0-9]{{1,5}}")

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

NO_COOKIE = (
    "This browser has no session here. Open the address that `mcad ui` has printed last; each "
    "address works once.\n"
)
OTHER_HOST = "This page is served at 127.0.0.1 and localhost only.\n"


class Gate(Protocol):
    """Decides which requests are answered, and with the view of which caller."""

    @property
    def middleware(self) -> Middleware:
        """For ``web.Application``: puts the view of the caller into a request, or refuses it."""
        ...

    @property
    def routes(self) -> Sequence[web.RouteDef]:
        """Addresses of its own."""
        ...

    @property
    def address(self) -> str:
        """The address to open."""
        ...

    def serve_at(self, port: int) -> None:
        """The port is known as soon as the server listens."""
        ...

    def end_streams(self) -> None:
        """End what open pages are sent."""
        ...


class Guard:
    """Lets the browser in that has used the printed address: it sees what ``view`` has.

    Implements ``Gate``.
    """

    routes: Sequence[web.RouteDef] = ()

    def __init__(self, view: View, on_used: Callable[[str], None] | None = None) -> None:
        """``on_used`` is called with the next address after one was used."""
        self.view = view
        self._on_used = on_used
        self._session = secrets.token_urlsafe(32)
        self._token = secrets.token_urlsafe(32)
        self._port = 0

    def serve_at(self, port: int) -> None:
        """The port is known as soon as the server listens."""
        self._port = port

    @property
    def address(self) -> str:
        """The address to open, which works once."""
        return f"http://{NAMES[0]}:{self._port}/?token={self._token}"

    @property
    def cookie(self) -> str:
        """The name of the cookie."""
        return cookie_of(self._port)

    def end_streams(self) -> None:
        """End what open pages are sent."""
        self.view.end_streams()

    @property
    def middleware(self) -> Middleware:
        """For ``web.Application``."""

        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            check_host(request)
            if token := request.query.get("token"):
                return self._exchange(request, token)
            if not self._has_session(request):
                raise web.HTTPForbidden(text=NO_COOKIE)
            request[VIEW] = self.view
            return await handler(request)

        return check

    def _has_session(self, request: web.Request) -> bool:
        return _same(request.cookies.get(self.cookie, ""), self._session)

    def _exchange(self, request: web.Request, token: str) -> web.StreamResponse:
        """Redirect to the page without the token; a new token if this one was used now."""
        if not self._has_session(request):
            if not _same(token, self._token):
                raise web.HTTPForbidden(text=NO_COOKIE)
            self._token = secrets.token_urlsafe(32)
            if self._on_used is not None:
                self._on_used(self.address)
        answer = web.Response(status=303, headers={"Location": "/"})
        answer.set_cookie(self.cookie, self._session, httponly=True, samesite="Strict", path="/")
        return answer


def check_host(request: web.Request) -> None:
    """Refuse a request for another name than one of loopback."""
    hosts = request.headers.getall("Host", [])
    if len(hosts) != 1 or not _HOST.fullmatch(hosts[0].lower()):
        raise web.HTTPForbidden(text=OTHER_HOST)


def cookie_of(port: int) -> str:
    """The name of a cookie: cookies are not separated by ports."""
    return f"mcad-ui-{port}"


async def add_headers(_: web.Request, answer: web.StreamResponse) -> None:
    """Security headers of every answer, errors included."""
    answer.headers.update(HEADERS)
    answer.headers.pop("Server", None)


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())
