"""The API port over HTTP, for kubectl and for controllers in other processes.

Nothing is decided here but how bytes become requests and answers become bytes. It is plain HTTP on
a loopback address: kubectl sends credentials over TLS only (client-go, ``clientcmd``), so a token
is of use to other clients alone, and off by default. What protects the port instead is that it
listens on loopback, and that a web page cannot use it: a request with an ``Origin``, or for a host
name that is not this machine's own, is refused (DNS rebinding).
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qsl

import yaml
from aiohttp import web

from mcad.kube.errors import ApiError, OutcomeUnknown
from mcad.kube.port import JSON, Api, Request, Response
from mcad.kube.types import Json
from mcad.sim import failures
from mcad.sim.failures import Failure
from mcad.sim.kinds import BUILTIN
from mcad.sim.serving import protobuf
from mcad.sim.serving.discovery import AGGREGATED, AGGREGATED_TYPE
from mcad.sim.serving.patches import APPLY

_LOG = logging.getLogger(__name__)

BODY_MAX = 3 * 1024 * 1024
"""Bytes of a request; kube-apiserver takes as many (MaxRequestBodyBytes)."""

_YAML = "application/yaml"
_SERVED = [{"apiVersion": one.api_version, "kind": one.kind} for one in BUILTIN]
_PASSED_ON = ("Accept", "User-Agent")
_HEALTH = frozenset({"healthz", "livez", "readyz"})
_IDLE_S = 24 * 3600.0  # a watch ends when it is over, not because nothing happens
_REFUSAL_S = 0.005
_GRACE_S = 1.0  # for answers that are being sent when the server closes


class ApiServerHttp:
    """Serves an ``Api`` until closed."""

    def __init__(self, api: Api, *, token: str = "") -> None:
        """With a ``token``, requests without it are answered with 401."""
        self._api = api
        self._token = token
        self._closing = asyncio.Event()
        self._is_local = True
        app = web.Application(client_max_size=BODY_MAX)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            handler_cancellation=True,  # a watch ends with its client
            shutdown_timeout=_GRACE_S,
        )

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Listen, on a port of the system's choice if it is 0; returns the URL."""
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        self._is_local = _is_loopback(host)
        bound = self._runner.addresses[0]
        shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        return f"http://{shown}:{bound[1]}"

    async def close(self) -> None:
        """End all watches at once, and stop listening."""
        self._closing.set()
        await self._runner.cleanup()

    async def _serve(self, http: web.Request) -> web.StreamResponse:
        try:
            self._admit(http)
            if http.path.strip("/").partition("/")[0] in _HEALTH:
                return web.Response(text="ok")
            request = await _read(http)
            if _is_watch(request):
                return await self._watch(http, request)
            return _written(await self._api.request(request), http)
        except Failure as failure:
            return _json(failure.code, failure.status())
        except OutcomeUnknown as error:
            return _json(504, Failure(504, "Timeout", str(error)).status())
        except RecursionError:
            return _json(400, failures.bad_request("the object is nested too deeply").status())
        except Exception:  # noqa: BLE001 - one request, not all of them
            _LOG.exception("%s %s", http.method, http.rel_url)
            message = "an error of the simulator: its log says more"
            return _json(500, Failure(500, "InternalError", message).status())

    def _admit(self, http: web.Request) -> None:
        if "Origin" in http.headers or (self._is_local and not _is_loopback(_host(http))):
            message = "requests of web pages, or under a foreign host name, are not served"
            raise Failure(403, "Forbidden", message)
        if not self._token:
            return
        scheme, _, given = http.headers.get("Authorization", "").partition(" ")
        same = hmac.compare_digest(given.strip().encode(), self._token.encode())
        if scheme.lower() != "bearer" or not same:
            raise Failure(401, "Unauthorized", "Unauthorized")

    async def _watch(self, http: web.Request, request: Request) -> web.StreamResponse:
        """One line per event, each in a chunk of its own; ends with the server or the client."""
        lines = self._api.stream(request, _IDLE_S)
        closing = asyncio.ensure_future(self._closing.wait())
        response = web.StreamResponse(headers={"Content-Type": JSON, "Cache-Control": "no-cache"})
        following = asyncio.ensure_future(anext(lines))
        try:
            # The client waits for the header, also if nothing happens; a refusal comes at once.
            await asyncio.wait({following}, timeout=_REFUSAL_S)
            if following.done() and isinstance(error := following.exception(), ApiError):
                return _json(error.status, _status(error))
            await response.prepare(http)
            while True:
                await asyncio.wait({following, closing}, return_when=asyncio.FIRST_COMPLETED)
                if not following.done():
                    break
                await response.write(following.result() + b"\n")
                following = asyncio.ensure_future(anext(lines))
        except (StopAsyncIteration, ConnectionError, ApiError, OutcomeUnknown):
            pass  # it is over, or the client is gone
        finally:
            await _end(following, closing)
            await lines.aclose()
        return response


def kubeconfig(url: str, token: str = "") -> Json:
    """A kubeconfig, as an object, whose only cluster is the one at ``url``."""
    name = "mcad-demo"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": url}}],
        "users": [{"name": name, "user": {"token": token} if token else {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


async def _end(*futures: asyncio.Future[Any]) -> None:
    for future in futures:
        future.cancel()
    await asyncio.gather(*futures, return_exceptions=True)


# -- from bytes ---------------------------------------------------------------------------------


async def _read(http: web.Request) -> Request:
    body = await _body(http)
    # Without a media type it is JSON; with one there is a body, be it an empty one.
    is_typed = bool(http.headers.get("Content-Type"))
    content_type = http.content_type if is_typed else JSON
    return Request(
        http.method if http.method != "HEAD" else "GET",
        http.rel_url.raw_path,
        dict(parse_qsl(http.rel_url.raw_query_string, keep_blank_values=True)),
        _checked(body, http.method, content_type) if body or is_typed else None,
        content_type if http.method == "PATCH" else JSON,
        {name: http.headers[name] for name in _PASSED_ON if name in http.headers},
    )


async def _body(http: web.Request) -> bytes:
    try:
        return await http.read()
    except web.HTTPRequestEntityTooLarge:
        message = f"Request entity too large: limit is {BODY_MAX}"
        raise Failure(413, "RequestEntityTooLarge", message) from None


def _checked(body: bytes, method: str, content_type: str) -> Json | bytes:
    """The body as JSON; that is decoded by the API itself, YAML and protobuf here."""
    if method == "PATCH":
        return _from_yaml(body) if content_type == APPLY else body
    match content_type:
        case "application/json":
            return body
        case "application/yaml":
            return _from_yaml(body)
        case protobuf.MEDIA_TYPE:
            return _from_protobuf(body)
    raise failures.unsupported_media_type((JSON, _YAML, protobuf.MEDIA_TYPE))


def _from_protobuf(body: bytes) -> Json:
    try:
        return protobuf.decode(body)
    except protobuf.UnknownKindError as error:
        if error.about in _SERVED:
            raise Failure(415, "UnsupportedMediaType", str(error)) from error
        return error.about  # whose path is not served either: that is what the API answers
    except protobuf.ProtobufError as error:
        raise failures.bad_request(f"error decoding protobuf: {error}") from error


def _from_yaml(body: bytes) -> Json:
    try:
        for event in yaml.parse(body, _Loader):
            if isinstance(event, yaml.AliasEvent):
                raise failures.bad_request("YAML with aliases is not read: write out what repeats")
        decoded = yaml.load(body, _Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise failures.bad_request(f"error decoding YAML: {error}") from error
    if not isinstance(decoded, dict):
        raise failures.bad_request("the object provided is not a map")
    return decoded


class _Loader(yaml.SafeLoader):
    """PyYAML without what JSON does not have: a time is a text."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - a class attribute of PyYAML's
        first: [(tag, pattern) for tag, pattern in rules if not tag.endswith((":timestamp", ":="))]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _is_watch(request: Request) -> bool:
    return request.method == "GET" and request.params.get("watch") in {"1", "true"}


def _host(http: web.Request) -> str:
    """The host that the client believes to talk to, without the port."""
    host, _, port = http.host.rpartition(":")
    return (host if port.isdecimal() and host else http.host).strip("[]")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


# -- to bytes -----------------------------------------------------------------------------------


def _written(response: Response, http: web.Request) -> web.Response:
    headers = dict(response.headers)
    if isinstance(response.body, bytes):
        headers.setdefault("Content-Type", "text/plain; charset=utf-8")
        return web.Response(status=response.status, body=response.body, headers=headers)
    return _json(response.status, response.body, headers, pretty=_wants_pretty(http))


def _json(
    status: int, body: Json, headers: Mapping[str, str] | None = None, *, pretty: bool = False
) -> web.Response:
    kind = AGGREGATED_TYPE if body.get("kind") == AGGREGATED else JSON
    separators = (",", ": ") if pretty else (",", ":")
    text = json.dumps(body, ensure_ascii=False, separators=separators, indent=2 if pretty else None)
    headers = {"Content-Type": kind, "Cache-Control": "no-cache, private", **(headers or {})}
    return web.Response(status=status, body=text.encode("utf-8", "surrogatepass"), headers=headers)


def _wants_pretty(http: web.Request) -> bool:
    """For people with curl, as kube-apiserver does it."""
    given = http.query.get("pretty")
    if given is not None:
        return given.lower() in {"1", "true"}
    return http.headers.get("User-Agent", "").startswith(("curl", "Wget", "Mozilla/5.0"))


def _status(error: ApiError) -> Json:
    return Failure(error.status, error.reason, error.message, error.details).status()
