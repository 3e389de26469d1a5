"""The API port on the registry: what ``mcad.kube`` sends to a real server it may send here.

In process an answer's body is the object itself, shared with the store and not to be changed;
``serve.py`` puts the same port behind HTTP.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, cast

from mcad.kube.errors import api_error
from mcad.kube.port import Request, Response
from mcad.sim import (
    bodies,
    deletion,
    discovery,
    eviction,
    failures,
    forms,
    listing,
    openapi,
    options,
    scale,
    watching,
)
from mcad.sim.applying import read_intent
from mcad.sim.binding import bind
from mcad.sim.failures import Cause, Failure
from mcad.sim.patches import APPLY, read_patch
from mcad.sim.registry import Registry, Validation, Write
from mcad.sim.routing import Target, is_known_group, route
from mcad.sim.selection import select
from mcad.sim.watching import Watch

Json = dict[str, Any]

_ACCEPTED = ("application/json", "application/yaml")
_NO_PAGE = b"404 page not found\n"
_CREATED: Json = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Success",
    "code": 201,
}
_STATUS_ONLY = ("status", "finalize")
_VERBS = {"POST": "create", "DELETE": "delete"}  # that no subresource of a custom kind has
_OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}


class SimApi:
    """Implements ``mcad.kube.port.Api``."""

    def __init__(self, registry: Registry) -> None:
        """Requests and simulated controllers work on the same registry."""
        self.registry = registry

    async def request(self, request: Request, timeout: float | None = None) -> Response:  # noqa: ARG002
        """One exchange; it never times out."""
        await asyncio.sleep(0)  # an answer takes at least one turn of the loop, as over a network
        return self.answer(request)

    async def stream(self, request: Request, idle_timeout: float) -> AsyncGenerator[bytes, None]:
        """A watch as lines."""
        try:
            watch = self._watch(request)
        except Failure as failure:
            raise api_error(failure.code, failure.status()) from failure
        async for line in watching.lines(self.registry, watch, idle_timeout):
            yield line

    def answer(self, request: Request) -> Response:
        """The answer to anything but a watch, at once."""
        accept = request.headers.get("Accept", "")
        try:
            for document in (discovery.answer, openapi.answer):
                found = document(request.path, accept, self.registry.kinds)
                if found is not None:
                    return Response(200, found)
            target = route(request.path, self.registry.kinds)
            if target is None:
                if is_known_group(request.path, self.registry.kinds):
                    raise failures.no_such_resource()
                return Response(404, _NO_PAGE, {"Content-Type": "text/plain; charset=utf-8"})
            return _Exchange(self.registry, request, target).answer()
        except Failure as failure:
            headers = {"Retry-After": str(failure.retry_after_s)} if failure.retry_after_s else {}
            return Response(failure.code, failure.status(), headers)

    def _watch(self, request: Request) -> Watch:
        target = route(request.path, self.registry.kinds)
        if target is None or target.subresource:
            raise failures.no_such_resource()
        options.check_watch(request.params)
        options.version(request.params)
        params = request.params
        form = forms.negotiate(request.headers.get("Accept", ""), params.get("includeObject", ""))
        return Watch(target.kind, select(target, params), form, params)


class _Exchange:
    """One request that concerns objects."""

    def __init__(self, registry: Registry, request: Request, target: Target) -> None:
        self._registry = registry
        self._request = request
        self._params = request.params
        self._target = target
        self._kind = target.kind
        self._form = forms.negotiate(
            request.headers.get("Accept", ""), request.params.get("includeObject", "")
        )
        self._how = _how(request.params, target.subresource, request.method)

    def answer(self) -> Response:
        status, body = self._verb()()
        headers = {}
        if self._how.warnings:
            quoted = (json.dumps(text, ensure_ascii=False) for text in self._how.warnings)
            headers["Warning"] = ", ".join(f"299 - {text}" for text in quoted)
        return Response(status, body, headers)

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
        if name == "log" and self._kind.storage == ("", "pods") and method == "GET":
            return self._log
        if name not in self._kind.subresources:
            if self._kind.is_custom:
                raise failures.not_found(self._kind, self._target.name)
            raise failures.no_such_resource()
        special = {
            ("POST", "binding"): self._bind,
            ("POST", "eviction"): self._evict,
            ("GET", "scale"): self._get_scale,
            ("PUT", "scale"): self._put_scale,
            ("PATCH", "scale"): self._patch_scale,
        }
        usual = {"GET": self._get, "PUT": self._put, "PATCH": self._patch}
        found = special.get((method, name)) or (usual.get(method) if name in _STATUS_ONLY else None)
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
        if token and (expired := listing.expired_token(self._kind, store, token)):
            return 410, expired
        objects, metadata = listing.page(store, self._kind, selection, self._params)
        now_us = self._registry.clock.now_us()
        return 200, forms.many(self._kind, objects, metadata, self._form, now_us)

    def _create(self) -> tuple[int, Json]:
        body = self._body()
        if self._kind.plural == "selfsubjectaccessreviews":
            return 201, body | {"status": {"allowed": True, "reason": "the simulator has no RBAC"}}
        if self._kind.plural == "bindings":
            name = (body.get("metadata") or {}).get("name") or ""
            return self._bind_pod((self._target.namespace or "", name), body)
        created = self._registry.create(self._kind, self._target.namespace, body, self._how)
        return 201, self._shown(created)

    def _put(self) -> tuple[int, Json]:
        written = self._registry.update(self._kind, self._target.key, self._body(), self._how)
        return 200, self._shown(written)

    def _patch(self) -> tuple[int, Json]:
        if self._request.content_type == APPLY:
            return self._apply()
        change = read_patch(self._kind, self._request.content_type, bodies.read_any(self._request))
        written = self._registry.patch(self._kind, self._target.key, change, self._how)
        return 200, self._shown(written)

    def _apply(self) -> tuple[int, Json]:
        config = bodies.read_applied(self._request, self._kind)
        intent = read_intent(config, self._params)
        key = self._target.key
        written, is_new = self._registry.apply(self._kind, key, config, intent, self._how)
        return 201 if is_new else 200, self._shown(written)

    def _delete(self) -> tuple[int, Json]:
        wish = deletion.read_options(self._options_body(), self._params)
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

    # -- subresources --------------------------------------------------------------------------

    def _bind(self) -> tuple[int, Json]:
        return self._bind_pod(self._target.key, self._body())

    def _bind_pod(self, key: tuple[str, str], body: Json) -> tuple[int, Json]:
        node = (body.get("target") or {}).get("name") or ""
        if not node:
            raise failures.invalid(
                self._registry.kind("v1", "Binding"),
                key[1],
                [Cause("FieldValueRequired", "Required value", "target.name")],
            )
        bind(self._registry, key, node, self._how)
        return 201, _CREATED

    def _evict(self) -> tuple[int, Json]:
        body = self._body()
        wish = deletion.read_options(body.get("deleteOptions") or {}, {})
        eviction.evict(self._registry, self._target.key, wish, dry_run=self._how.dry_run)
        return 201, _CREATED

    def _log(self) -> tuple[int, Json | bytes]:
        self._registry.get(self._kind, self._target.key)
        return 200, b"(simulated pods run nothing, so there is nothing they could have written)\n"

    def _get_scale(self) -> tuple[int, Json]:
        return 200, scale.read(self._kind, self._registry.get(self._kind, self._target.key))

    def _put_scale(self) -> tuple[int, Json]:
        return self._write_scale(self._body())

    def _patch_scale(self) -> tuple[int, Json]:
        present = self._get_scale()[1]
        change = read_patch(self._kind, self._request.content_type, bodies.read_any(self._request))
        return self._write_scale(change(present))

    def _write_scale(self, wanted: Json) -> tuple[int, Json]:
        def change(obj: Json) -> Json:
            return scale.write(self._kind, obj, wanted)

        how = Write(dry_run=self._how.dry_run)
        written = self._registry.patch(self._kind, self._target.key, change, how)
        return 200, scale.read(self._kind, written)

    # -- bodies --------------------------------------------------------------------------------

    def _shown(self, obj: Json) -> Json:
        return forms.one(self._kind, obj, self._form, self._registry.clock.now_us())

    def _body(self) -> Json:
        return bodies.read(self._request, self._kind, self._registry.kinds)

    def _options_body(self) -> Json:
        body = bodies.read_any(self._request) if self._request.body else {}
        return body if isinstance(body, dict) else {}


def _how(params: Mapping[str, str], subresource: str, method: str) -> Write:
    if method in _OPTIONS:
        options.check_write(params, _OPTIONS[method])
    validation = params.get("fieldValidation") or "Warn"
    part = subresource if subresource in _STATUS_ONLY else ""
    return Write(bool(params.get("dryRun")), cast("Validation", validation), part)
