"""The API port on the registry: what ``mcad.kube`` sends to a real server it may send here.

In process an answer's body is the object itself, shared with the store and not to be changed;
``serve.py`` puts the same port behind HTTP.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from typing import cast

from mcad.kube.errors import api_error
from mcad.kube.port import Request, Response, nothing
from mcad.kube.types import Json
from mcad.sim import deletion, failures
from mcad.sim.failures import Failure
from mcad.sim.registry import Registry, check_name
from mcad.sim.serving import (
    absent,
    bodies,
    discovery,
    forms,
    listing,
    openapi,
    options,
    subresources,
    watching,
)
from mcad.sim.serving.patches import APPLY, change_of
from mcad.sim.serving.routing import Target, is_known_group, route
from mcad.sim.serving.selection import select
from mcad.sim.serving.subresources import Call
from mcad.sim.serving.watching import Watch
from mcad.sim.writes import Validation, Write

_NO_PAGE = b"404 page not found\n"
_PUT_CREATES = {
    ("", "endpoints"),
    ("", "limitranges"),
    ("", "services"),
    ("coordination.k8s.io", "leases"),
    *(
        ("rbac.authorization.k8s.io", name)
        for name in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
    ),
}
"""Kinds that a PUT creates if there is none of that name (``AllowCreateOnUpdate``)."""
_JOBS_KEEP_PODS = (
    "child pods are preserved by default when jobs are deleted; set"
    " propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress"
    " this warning"
)
_STATUS_ONLY = ("status", "finalize")
_VERBS = {"POST": "create", "DELETE": "delete"}  # that no subresource of a custom kind has
_OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}


class _NoPage(Exception):  # noqa: N818 - an answer
    """The path of no kind at all."""


class SimApi:
    """Implements ``mcad.kube.port.Api``."""

    def __init__(self, registry: Registry) -> None:
        """Requests and simulated controllers work on the same registry."""
        self.registry = registry

    async def request(self, request: Request, timeout: float | None = None) -> Response:  # noqa: ARG002
        """One exchange; it never times out."""
        forward = self.registry.aggregated.get(_group_of(request.path))
        if forward is not None:
            return await forward(request)
        await asyncio.sleep(0)  # an answer takes at least one turn of the loop, as over a network
        return self.answer(request)

    async def stream(
        self, request: Request, idle_timeout: float, opened: Callable[[], None] = nothing
    ) -> AsyncGenerator[bytes, None]:
        try:
            watch = self._watch(request)
        except _NoPage as error:
            raise api_error(404, _NO_PAGE) from error
        except Failure as failure:
            raise api_error(failure.code, failure.status()) from failure
        opened()
        if watch is None:  # one object is read and not watched, whatever the query says
            response = self.answer(request)
            if response.status != 200:
                raise api_error(response.status, response.json())
            yield json.dumps(response.json(), separators=(",", ":")).encode()
            return
        async for line in watching.lines(self.registry, watch, idle_timeout):
            yield line

    def answer(self, request: Request) -> Response:
        """The answer to anything but a watch, at once."""
        accept = request.headers.get("Accept", "")
        exchange: _Exchange | None = None
        try:
            if request.path == openapi.PATH_2:
                kind, document_2 = openapi.version_2(accept)
                return Response(200, document_2, {"Content-Type": kind})
            for document in (discovery.answer, openapi.answer):
                found = document(request.path, accept, self.registry.kinds)
                if found is not None:
                    return Response(200, found)
            target = route(request.path, self.registry.kinds)
            if target is None:
                raise self._nowhere(request.path)
            exchange = _Exchange(self.registry, request, target)
            status, body = exchange.answer()
            return Response(status, body, exchange.headers())
        except _NoPage:
            return Response(404, _NO_PAGE, {"Content-Type": "text/plain; charset=utf-8"})
        except Failure as failure:
            headers = exchange.headers() if exchange else {}
            if failure.retry_after_s:
                headers["Retry-After"] = str(failure.retry_after_s)
            return Response(failure.code, failure.status(), headers)

    def _nowhere(self, path: str) -> Exception:
        if told := absent.refusal(path):
            return told
        is_known = is_known_group(path, self.registry.kinds)
        return failures.no_such_resource() if is_known else _NoPage()

    def _watch(self, request: Request) -> Watch | None:
        target = route(request.path, self.registry.kinds)
        if target is None:
            raise self._nowhere(request.path)
        if target.name:
            return None
        watching.check(request.params)
        params = request.params
        accept, include = request.headers.get("Accept", ""), params.get("includeObject", "")
        form = forms.negotiate(accept, include, target.kind, "watch")
        return Watch(target.kind, select(target, params), form, params)


class _Exchange:
    """One request that concerns objects."""

    def __init__(self, registry: Registry, request: Request, target: Target) -> None:
        self._registry = registry
        self._request = request
        self._params = request.params
        self._target = target
        self._kind = target.kind
        of_list = not target.name and request.method in {"GET", "DELETE"}
        self._form = forms.negotiate(
            request.headers.get("Accept", ""),
            request.params.get("includeObject", ""),
            target.kind,
            "list" if of_list else "one",
        )
        self._how = _how(request.params, target.subresource, request.method)
        if self._kind.deprecation:
            self._how.warnings.append(self._kind.deprecation)

    def answer(self) -> tuple[int, Json | bytes]:
        """Status and body; raises Failure."""
        return self._verb()()

    def headers(self) -> dict[str, str]:
        """What is said beside the answer, be it a refusal or not."""
        if not self._how.warnings:
            return {}
        quoted = (json.dumps(text, ensure_ascii=False) for text in self._how.warnings)
        return {"Warning": ", ".join(f"299 - {text}" for text in quoted)}

    def _verb(self) -> Callable[[], tuple[int, Json | bytes]]:
        method, target = self._request.method, self._target
        if target.subresource:
            return self._subresource(method, target.subresource)
        verbs = self._on_object() if target.name else self._on_collection()
        found = verbs.get(method)
        if found is None or found[0] not in self._kind.verbs:
            raise failures.method_not_allowed()
        return found[1]

    def _on_object(self) -> dict[str, tuple[str, Callable[[], tuple[int, Json | bytes]]]]:
        return {
            "GET": ("get", self._get),
            "PUT": ("update", self._put),
            "PATCH": ("patch", self._patch),
            "DELETE": ("delete", self._delete),
        }

    def _on_collection(self) -> dict[str, tuple[str, Callable[[], tuple[int, Json | bytes]]]]:
        if self._kind.namespaced and self._target.namespace is None:
            return {"GET": ("list", self._list)}
        return {
            "GET": ("list", self._list),
            "POST": ("create", self._create),
            "DELETE": ("deletecollection", self._delete_all),
        }

    def _subresource(self, method: str, name: str) -> Callable[[], tuple[int, Json | bytes]]:
        answer = subresources.find(method, name, self._kind)
        if name not in self._kind.subresources and answer is not subresources.read_log:
            if self._kind.is_custom:
                raise failures.not_found(self._kind, self._target.name)
            raise absent.refusal(self._request.path) or failures.no_such_resource()
        if answer is not None:
            return partial(answer, self._call())
        usual = {"GET": self._get, "PUT": self._put, "PATCH": self._patch}
        found = usual.get(method) if name in _STATUS_ONLY else None
        if found is None:
            verb = _VERBS.get(method)
            if self._kind.is_custom and verb:
                raise failures.not_supported(self._kind, verb)
            raise failures.method_not_allowed()
        return found

    # -- objects -------------------------------------------------------------------------------

    def _get(self) -> tuple[int, Json]:
        listing.check_readable(self._registry.store, self._params)
        return 200, self._shown(self._registry.get(self._kind, self._target.key))

    def _list(self) -> tuple[int, Json]:
        store, selection = self._registry.store, select(self._target, self._params)
        token = self._params.get("continue")
        if token:
            expired = listing.expired_token(self._kind, store, token, self._target.namespace)
            if expired:
                return 410, expired
        objects, metadata = listing.page(store, self._kind, selection, self._params)
        now_us = self._registry.clock.now_us()
        return 200, forms.many(self._kind, objects, metadata, self._form, now_us)

    def _create(self) -> tuple[int, Json | bytes]:
        body = self._body()
        if self._kind.plural == "selfsubjectaccessreviews":
            return 201, body | {"status": {"allowed": True, "reason": "the simulator has no RBAC"}}
        created = self._registry.create(self._kind, self._target.namespace, body, self._how)
        return 201, self._shown(created)

    def _put(self) -> tuple[int, Json]:
        body, key = self._body(), self._target.key
        if self._kind.storage in _PUT_CREATES and self._registry.find(self._kind, key) is None:
            check_name(body, key[1])
            return 201, self._shown(self._registry.create(self._kind, key[0], body, self._how))
        return 200, self._shown(self._registry.update(self._kind, key, body, self._how))

    def _patch(self) -> tuple[int, Json]:
        if self._request.content_type == APPLY:
            return self._apply()
        change = change_of(self._kind, self._request)
        written = self._registry.patch(self._kind, self._target.key, change, self._how)
        return 200, self._shown(written)

    def _apply(self) -> tuple[int, Json]:
        config = bodies.read_applied(self._request, self._kind)
        key = self._target.key
        written, is_new = self._registry.apply(self._kind, key, config, self._how)
        return 201 if is_new else 200, self._shown(written)

    def _delete(self) -> tuple[int, Json]:
        wish = deletion.read_options(self._options_body(), self._params)
        if self._kind.storage == ("batch", "jobs") and wish.propagation is None:
            self._how.warnings.append(_JOBS_KEEP_PODS)
        left = self._registry.delete(self._kind, self._target.key, wish)
        return 200, left if left.get("kind") == "Status" else self._shown(left)

    def _delete_all(self) -> tuple[int, Json]:
        wish = deletion.read_options(self._options_body(), self._params)
        selection = select(self._target, self._params)
        objects, metadata = listing.page(self._registry.store, self._kind, selection, self._params)
        for obj in objects:
            key = (obj["metadata"].get("namespace") or "", obj["metadata"]["name"])
            self._registry.delete(self._kind, key, wish)
        now_us = self._registry.clock.now_us()
        return 200, forms.many(self._kind, objects, metadata, self._form, now_us)

    # -- bodies --------------------------------------------------------------------------------

    def _shown(self, obj: Json) -> Json:
        return forms.one(self._kind, obj, self._form, self._registry.clock.now_us())

    def _call(self) -> Call:
        return Call(self._registry, self._request, self._target, self._how)

    def _body(self) -> Json:
        return bodies.read(self._request, self._kind)

    def _options_body(self) -> Json:
        body = bodies.read_any(self._request) if self._request.body else {}
        return body if isinstance(body, dict) else {}


def _group_of(path: str) -> str:
    """The named API group of a path, "" if it has none."""
    first, _, rest = path.strip("/").partition("/")
    return rest.partition("/")[0] if first == "apis" else ""


def _how(params: Mapping[str, str], subresource: str, method: str) -> Write:
    if method in _OPTIONS:
        options.check_write(params, _OPTIONS[method])
    validation = params.get("fieldValidation") or "Warn"
    part = subresource if subresource in _STATUS_ONLY else ""
    return Write(bool(params.get("dryRun")), cast("Validation", validation), part)
