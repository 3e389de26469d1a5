"""Login with a token of the cluster: each browser sees what its own token may see.

The token comes from the form of the page, or with every request in the header ``Authorization``,
as a proxy adds it that has logged the user in (OIDC). It is kept in memory, by a session whose
cookie is random; it is in no address, no answer and no log.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from aiohttp import web

from mcad.client.errors import McadError
from mcad.client.scope import Source
from mcad.client.session import Environment
from mcad.ui.callers import Caller, Callers
from mcad.ui.guard import NAMES, check_host, cookie_of
from mcad.ui.pages import Pages
from mcad.ui.token_access import is_token
from mcad.ui.view import VIEW, html

if TYPE_CHECKING:
    from aiohttp.typedefs import Middleware

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

SESSIONS_MAX = 1000  # browsers; the oldest one logs in again

_BEARER = re.compile(r"(?i:bearer) +(\S+)")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_PLACE = re.compile(r"/(?![/\\])[!-\[\]-~]*")  # of this page: no scheme, no host
BAD_FORM = "This is not a token: it has one line, without spaces."
BAD_NAMESPACE = "This is not the name of a namespace."
ELSEWHERE = "A login comes from this page only.\n"


class Login:
    """Lets callers with a token in; implements ``mcad.ui.guard.Gate``."""

    def __init__(self, environment: Environment, source: Source) -> None:
        self.callers = Callers(environment, source)
        self._pages = Pages()
        self._port = 0
        self._sessions: dict[str, str] = {}  # keys of callers

    def serve_at(self, port: int) -> None:
        """The port is known as soon as the server listens."""
        self._port = port

    @property
    def address(self) -> str:
        """The address to open."""
        return f"http://{NAMES[0]}:{self._port}/"

    @property
    def routes(self) -> Sequence[web.RouteDef]:
        """The addresses of the login."""
        return (
            web.get("/login", self.form),
            web.post("/login", self.log_in),
            web.post("/logout", self.log_out),
        )

    def end_streams(self) -> None:
        """End what open pages are sent."""
        self.callers.end_streams()

    @property
    def middleware(self) -> Middleware:
        """For ``web.Application``."""

        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            check_host(request)
            if request.method == "POST":
                _check_origin(request)
            elif not _is_open(request):
                try:
                    caller = await self._caller(request)
                except McadError as error:
                    return self._ask(request, error.message)
                if caller is None:
                    return self._ask(request)
                request[VIEW] = caller.view
            return await handler(request)

        return check

    async def _caller(self, request: web.Request) -> Caller | None:
        """The caller of a request, None without a login; raises ``McadError``."""
        if token := _token_of_proxy(request):
            return await self.callers.enter(token, self._namespace(request))
        return self.callers.find(self._sessions.get(self._cookie(request), ""))

    async def form(self, request: web.Request) -> web.Response:
        """The form of a login, and of a logout."""
        problem, user = "", ""
        try:
            caller = await self._caller(request)
            user = caller.view.user if caller is not None else ""
        except McadError as error:
            problem = error.message
        return self._ask(request, problem, user=user, status=200)

    async def log_in(self, request: web.Request) -> web.Response:
        """Log in, and go to the page that was asked for."""
        form = await request.post()
        texts = {key: value.strip() for key, value in form.items() if isinstance(value, str)}
        namespace, back = texts.get("namespace", ""), texts.get("back", "")
        given = _token_of_proxy(request)
        token = given or texts.get("token", "")
        try:
            if not is_token(token):
                raise McadError(BAD_FORM)
            if namespace and not _NAMESPACE.fullmatch(namespace):
                raise McadError(BAD_NAMESPACE)
            caller = await self.callers.enter(token, namespace)
        except McadError as error:
            return self._ask(request, error.message, back=back)
        there = back if _PLACE.fullmatch(back) else "/"
        answer = web.Response(status=303, headers={"Location": there})
        if given:
            self._set(request, answer, f"{self._name}-namespace", namespace)
        else:
            self._forget(request, caller.key)
            session = secrets.token_urlsafe(32)
            self._sessions[session] = caller.key
            if len(self._sessions) > SESSIONS_MAX:
                del self._sessions[next(iter(self._sessions))]
            self._set(request, answer, self._name, session)
        return answer

    async def log_out(self, request: web.Request) -> web.Response:
        """End the session of this browser."""
        self._forget(request)
        answer = web.Response(status=303, headers={"Location": "/login"})
        answer.del_cookie(self._name, path="/")
        answer.del_cookie(f"{self._name}-namespace", path="/")
        return answer

    def _forget(self, request: web.Request, entered: str = "") -> None:
        """End the session of this browser; another one with the same token goes on."""
        key = self._sessions.pop(self._cookie(request), "")
        if key and key not in (entered, *self._sessions.values()):
            self.callers.leave(key)

    @property
    def _name(self) -> str:
        return cookie_of(self._port)

    def _cookie(self, request: web.Request) -> str:
        return request.cookies.get(self._name, "")

    def _namespace(self, request: web.Request) -> str:
        """What was chosen in the form, where a proxy logs in."""
        chosen = request.cookies.get(f"{self._name}-namespace", "")
        return chosen if _NAMESPACE.fullmatch(chosen) else ""

    def _set(self, request: web.Request, answer: web.Response, name: str, value: str) -> None:
        # Whatever a caller claims here, it only restricts its own cookie.
        is_secure = request.headers.get("X-Forwarded-Proto", "") == "https"
        answer.set_cookie(name, value, httponly=True, samesite="Strict", path="/", secure=is_secure)

    def _ask(
        self, request: web.Request, problem: str = "", *, status: int = 401, **more: str
    ) -> web.Response:
        """The form; ``more`` is where to go ``back`` to, and the ``user`` with a login."""
        if request.method == "GET" and not _is_open(request):
            more["back"] = request.path_qs
        needs_token = not _token_of_proxy(request)
        answer = html(self._pages.login(problem, needs_token=needs_token, **more), status)
        if status == 401:
            answer.headers["WWW-Authenticate"] = "Bearer"
        return answer


def _is_open(request: web.Request) -> bool:
    """Whether it is answered without a login."""
    return request.path == "/login" or request.path.startswith("/static/")


def _token_of_proxy(request: web.Request) -> str:
    """The token of the header ``Authorization``, "" without."""
    found = _BEARER.fullmatch(request.headers.get("Authorization", ""))
    return found[1] if found is not None and is_token(found[1]) else ""


def _check_origin(request: web.Request) -> None:
    """Refuse a form of another page: a browser says where it comes from."""
    if request.headers.get("Sec-Fetch-Site") != "same-origin":
        raise web.HTTPForbidden(text=ELSEWHERE)
