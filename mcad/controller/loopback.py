"""Restricts figures, stacks and settings to callers on loopback, as with ``kubectl port-forward``.

The figures name AppWrappers of every namespace; probes and metrics do not, so they are for all
callers, but for metrics that are served over TLS as well. A forwarded port ends on the
loopback address of the pod, and forwarding needs a right in the namespace of the dispatcher: so no
token is needed here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from ipaddress import ip_address

from aiohttp import web

PRIVATE = ("/api/", "/debug/")
METRICS = "/metrics"
REFUSED = (
    "this is served on loopback only: run `kubectl port-forward` to the dispatcher's pod and ask "
    "http://127.0.0.1 there\n"
)


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse figures to callers from elsewhere."""
    return await _guard(request, handler, PRIVATE)


@web.middleware
async def guard_metrics_too(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse figures and metrics, which are served over TLS, to callers from elsewhere."""
    return await _guard(request, handler, (*PRIVATE, METRICS))


async def _guard(
    request: web.Request, handler: Handler, private: tuple[str, ...]
) -> web.StreamResponse:
    """Refuse what is private to callers from elsewhere.

    By which of our addresses a request came cannot be forged. The name that it was asked under has
    to be a loopback one as well: else a web page could have a browser ask for it (DNS rebinding).
    """
    if request.path.startswith(private) and not (_arrived(request) and _named(request.host)):
        raise web.HTTPForbidden(text=REFUSED)
    return await handler(request)


def _arrived(request: web.Request) -> bool:
    address = request.transport.get_extra_info("sockname") if request.transport else None
    return isinstance(address, tuple) and _is_loopback(str(address[0]))


def _named(host: str) -> bool:
    name = host.rpartition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    return name.lower() == "localhost" or _is_loopback(name)


def _is_loopback(text: str) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
