"""The connection to an API server, and the clock.

The client library is imported on use: it
takes most of a second, which is too long for completion and --server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from random import SystemRandom

from msgspec import Struct
from msgspec.structs import replace

from mcad.client.errors import explain
from mcad.client.scope import Target
from mcad.kube import kubeconfig
from mcad.kube.client import Client
from mcad.kube.clock import Clock, RealClock
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.impersonation import Pairs, impersonation
from mcad.kube.kubeconfig import Plain
from mcad.kube.plain import PlainApi
from mcad.kube.port import Api, Request
from mcad.kube.request_timeout import TimedApi

CALL_S = 15.0  # of one call, retries included
KNOCK_S = 10.0  # until the first answer
AT_ONCE = 8  # requests at the same time, where each is about another object


class Session(Struct, frozen=True):
    """A connection to a server that has answered. ``namespace`` is that of the context."""

    client: Client
    namespace: str


class Environment:
    """The clock and the connections."""

    def __init__(self) -> None:
        self.clock: Clock = RealClock()

    @asynccontextmanager
    async def connect(
        self, target: Target, *, watches: bool = True, knocks: bool = True
    ) -> AsyncIterator[Session]:
        """Yield a session; failed requests in the block become ``McadError``. Without watches it
        opens more quickly. ``knocks=False`` is for blocks whose first request is not repeated."""
        try:
            opening = self.open(target) if watches else self.open_quickly(target)
            async with opening as (api, namespace):
                if knocks:
                    await knock(api)
                timeout_s = target.request_timeout_s or CALL_S
                client = Client(api, self.clock, SystemRandom(), timeout_s=timeout_s)
                yield Session(client, namespace)
        except KubeError as error:
            raise explain(error) from error

    @asynccontextmanager
    async def open(self, target: Target) -> AsyncIterator[tuple[Api, str]]:
        """Yield the API and the namespace of the context."""
        from mcad.kube.connection import load  # noqa: PLC0415 - see above
        from mcad.kube.rest import RestApi  # noqa: PLC0415

        connection = await load(self.clock, target.kubeconfig, target.context)
        connection = replace(
            connection, impersonated=_impersonated(target) or connection.impersonated
        )
        async with RestApi(connection, self.clock) as api:
            yield _timed(api, target), connection.namespace

    @asynccontextmanager
    async def open_quickly(self, target: Target) -> AsyncIterator[tuple[Api, str]]:
        """The same without watches, and without the client library if the kubeconfig allows."""
        found = _plain_server(target)
        if found is not None:
            server, namespace = found
            with closing(PlainApi(server)) as api:
                yield _timed(api, target), namespace
            return
        async with self.open(target) as opened:
            yield opened

    def namespace(self, target: Target) -> str:
        """The namespace of the context, ``default`` without a context."""
        return kubeconfig.namespace(target.kubeconfig, target.context)


def _plain_server(target: Target) -> tuple[Plain, str] | None:
    """The server and the namespace of the context, if that takes no client library."""
    try:
        context = kubeconfig.read_context(target.kubeconfig, target.context)
        server = kubeconfig.plain(context) if context is not None else None
    except (OSError, ValueError):
        return None  # the client library says in words what is wrong
    if server is None or context is None:
        return None
    server = replace(server, impersonated=_impersonated(target) or server.impersonated)
    return server, context.namespace


def _impersonated(target: Target) -> Pairs:
    """The headers of --as and --as-group, which replace what the kubeconfig says."""
    return impersonation({"as": target.as_user, "as-groups": target.as_groups})


def _timed(api: Api, target: Target) -> Api:
    return TimedApi(api, target.request_timeout_s) if target.request_timeout_s else api


async def knock(api: Api) -> None:
    """Send one request without retries: a wrong address is reported at once."""
    answer = await api.request(Request("GET", "/version"), KNOCK_S)
    if answer.status == 401:
        raise ApiError(401, "Unauthorized", "401 Unauthorized")
