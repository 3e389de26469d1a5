"""Access to the cluster with the token of a caller, and with nothing of this process's own."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from typing import Self

from msgspec import Struct

from mcad.api.wire import as_map, as_text
from mcad.client.errors import McadError
from mcad.client.scope import Target
from mcad.client.session import Environment
from mcad.kube import kubeconfig
from mcad.kube.client import Client
from mcad.kube.errors import ApiError
from mcad.kube.kubeconfig import SERVICE_ACCOUNT, Context, Plain
from mcad.kube.plain import PlainApi
from mcad.kube.port import Api, Request, Response, nothing
from mcad.kube.resource import Resource
from mcad.kube.trust import trust

TOKEN_MAX = 16 * 1024  # characters
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750, 2.1
_ACCOUNT = re.compile(r"system:serviceaccount:([^:]+):[^:]+")
_REVIEWS = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)


class ApiServer(Struct, frozen=True):
    """The server of a kubeconfig, or that of this pod, without credentials."""

    plain: Plain
    namespace: str

    @classmethod
    def of(cls, target: Target) -> Self:
        """Raises ``McadError`` for one that cannot be reached without what the kubeconfig adds."""
        context = kubeconfig.read_context(target.kubeconfig, target.context)
        try:
            if context is None:
                return cls(_of_this_pod(), kubeconfig.namespace(None, None))
            found = kubeconfig.plain(Context(context.cluster, {}, context.namespace))
        except (OSError, ValueError) as error:
            raise McadError(f"the certificates of the cluster cannot be read: {error}") from error
        if found is None:
            raise McadError(
                "--login cannot use this context: its cluster has no server, or is reached "
                "through a proxy or by another name (proxy-url, tls-server-name, HTTPS_PROXY)"
            )
        return cls(found, context.namespace)


def _of_this_pod() -> Plain:
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
    if not host:
        raise McadError(
            "--login finds no API server: there is no kubeconfig, and this is not a pod; name one "
            "with --kubeconfig"
        )
    host = f"[{host}]" if ":" in host else host
    url = f"https://{host}:{os.environ.get('KUBERNETES_SERVICE_PORT', '443')}"
    return Plain(url, {}, trust(cafile=str(SERVICE_ACCOUNT / "ca.crt")))


def is_token(text: str) -> bool:
    """Whether it has the form of a bearer token, so that it can be a part of a header."""
    return len(text) <= TOKEN_MAX and bool(_TOKEN.fullmatch(text))


class TokenEnvironment(Environment):
    """Connections with the token of a caller."""

    def __init__(
        self,
        environment: Environment,
        server: ApiServer,
        token: str,
        on_refused: Callable[[], None] = nothing,
    ) -> None:
        """``environment`` has the clock. ``on_refused`` is called when the token is not accepted
        (any more)."""
        self.clock = environment.clock
        self.own = server.namespace
        self._server = server.plain
        self._token = token
        self._on_refused = on_refused

    @asynccontextmanager
    async def open(self, target: Target) -> AsyncIterator[tuple[Api, str]]:  # noqa: ARG002 - the server's
        """Yield the API without watches, and the namespace of the caller."""
        headers = {"Authorization": f"Bearer {self._token}"}
        server = Plain(self._server.url, headers, self._server.ssl_context)
        with closing(PlainApi(server)) as api:
            yield _Noticing(api, self._on_refused), self.own

    @asynccontextmanager
    async def open_quickly(self, target: Target) -> AsyncIterator[tuple[Api, str]]:
        """The same."""
        async with self.open(target) as opened:
            yield opened

    def namespace(self, target: Target) -> str:  # noqa: ARG002 - that of the caller
        """The namespace of the caller."""
        return self.own


class _Noticing:
    """``mcad.kube.port.Api`` that notices a token that is not accepted."""

    def __init__(self, api: Api, on_refused: Callable[[], None]) -> None:
        self._api = api
        self._on_refused = on_refused

    async def request(self, request: Request, timeout: float | None = None) -> Response:
        answer = await self._api.request(request, timeout)
        if answer.status == 401:
            self._on_refused()
        return answer

    def stream(
        self, request: Request, idle_timeout: float, opened: Callable[[], None] = nothing
    ) -> AsyncGenerator[bytes, None]:
        return self._api.stream(request, idle_timeout, opened)


async def read_user(client: Client) -> str:
    """The name that the API server knows the caller by; "" if it does not say it."""
    body = {"apiVersion": _REVIEWS.api_version, "kind": _REVIEWS.kind}
    try:
        answer = await client.read(Request("POST", _REVIEWS.path(), body=body))
    except ApiError as error:
        if error.forbidden or error.not_found:
            return ""
        raise
    return as_text(as_map(as_map(answer.get("status")).get("userInfo")).get("username"))


def namespace_of(user: str) -> str:
    """The namespace of a service account, "" of others."""
    found = _ACCOUNT.fullmatch(user)
    return found[1] if found is not None else ""
