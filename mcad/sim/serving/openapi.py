"""OpenAPI v3: what ``kubectl explain`` shows, and what kubectl looks up before it validates.

Version 2 is empty: kubectl asks for it before it takes a List apart, and leaves to the server what
it finds no schema for. Only the operations that kubectl reads are there: ``explain`` looks for the
kind that is created at a path, and before it sends anything kubectl looks whether a patch takes
``fieldValidation`` and ``dryRun``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Any

from mcad.kube.types import Json
from mcad.sim import failures
from mcad.sim.kinds import Kind, KindTable
from mcad.sim.objects import builtin
from mcad.sim.serving.discovery import KUBERNETES
from mcad.version import __version__

_JSON = "application/json"
_ROOT = "openapi/v3"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_METADATA = (
    "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/"
    "sig-architecture/api-conventions.md#metadata"
)
_SCALE = "io.k8s.api.autoscaling.v1.Scale"
_EVERY_KIND = ("apiVersion", "kind", "metadata")
_PATCH_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force")


PATH_2 = "/openapi/v2"
_EMPTY = {"swagger": "2.0", "info": {"title": "Kubernetes", "version": KUBERNETES}, "paths": {}}


def version_2(accept: str) -> tuple[str, bytes]:
    """The media type and the bytes of an OpenAPI document of version 2 without schemas."""
    for offered in accept.split(","):
        kind = offered.partition(";")[0].strip()
        if kind.startswith("application/com.github.proto-openapi.spec.v2"):
            return kind.replace("@", "."), _field(1, b"2.0") + _field(2, _info())
    return _JSON, json.dumps(_EMPTY).encode()


def _info() -> bytes:
    return _field(1, b"Kubernetes") + _field(2, KUBERNETES.encode())


def _field(number: int, text: bytes) -> bytes:
    """A short text or message in protobuf."""
    return bytes((number << 3 | 2, len(text))) + text


def answer(path: str, accept: str, kinds: KindTable) -> Json | None:
    """The document at ``path``, None if it is none of ours; raises Failure 406."""
    where = path.strip("/")
    if where != _ROOT and not where.startswith(f"{_ROOT}/"):
        return None
    _check_accept(accept)
    served = _by_group_version(kinds)
    if where == _ROOT:
        paths = {at: {"serverRelativeURL": _url(at, them)} for at, them in served.items()}
        return {"paths": paths}
    members = served.get(where.removeprefix(f"{_ROOT}/"))
    return _document(members, _digest(members)) if members else None


def _check_accept(accept: str) -> None:
    """kubectl prefers the protobuf form here and there, and takes JSON after a 406."""
    choices = {one.partition(";")[0].strip() for one in accept.split(",")} - {""}
    if choices and not choices & {_JSON, "application/*", "*/*"}:
        raise failures.not_acceptable((_JSON,))


def _by_group_version(kinds: KindTable) -> dict[str, tuple[Kind, ...]]:
    """``api/v1`` and ``apis/GROUP/__version__``, in the order in which they are served."""
    found: dict[str, tuple[Kind, ...]] = {}
    for kind in kinds.all():
        at = f"apis/{kind.api_version}" if kind.group else f"api/{kind.version}"
        found[at] = (*found.get(at, ()), kind)
    return found


def _url(at: str, members: Iterable[Kind]) -> str:
    return f"/{_ROOT}/{at}?hash={_digest(members)}"


def _digest(members: Iterable[Kind]) -> str:
    """Changes with the document: clients keep one for as long as its URL stays the same."""
    parts = [
        (kind.api_version, kind.plural, kind.kind, kind.verbs, kind.subresources, kind.schema)
        for kind in members
    ]
    text = json.dumps([__version__, parts], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest().upper()


@lru_cache(64)
def _document(members: tuple[Kind, ...], digest: str) -> Json:  # noqa: ARG001 - part of the key
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes, simulated", "version": KUBERNETES},
        "paths": dict(path for kind in members for path in _paths_of(kind)),
        "components": {"schemas": _schemas(members)},
    }


# -- schemas -----------------------------------------------------------------------------------


def _schemas(members: tuple[Kind, ...]) -> Json:
    found: Json = builtin.components([kind for kind in members if not kind.is_custom])
    _name_fields_v1(found)
    for kind in members:
        if kind.is_custom:
            found[_component_of(kind)] = _custom(kind)
        if "list" in kind.verbs and (component := _component_of(kind)):
            found[f"{component}List"] = _list(kind, component)
    return dict(sorted(found.items()))


def _name_fields_v1(found: Json) -> None:
    """The client library takes it for any object; it is a type with a name."""
    entry = found[f"{_META}.ManagedFieldsEntry"]
    fields = entry["properties"]["fieldsV1"] | _reference(f"{_META}.FieldsV1")
    properties = entry["properties"] | {"fieldsV1": fields}
    found[f"{_META}.ManagedFieldsEntry"] = entry | {"properties": properties}
    found[f"{_META}.FieldsV1"] = {"type": "object"}


def _custom(kind: Kind) -> Json:
    schema = kind.schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    own = {
        key: _published(value)
        for key, value in (schema.get("properties") or {}).items()
        if key not in _EVERY_KIND
    }
    return {**schema, "properties": _common("ObjectMeta") | own, **_about([kind])}


def _published(schema: Any) -> Any:
    """A schema as it is shown: what is an object of its own has what every object has."""
    if isinstance(schema, list):
        return [_published(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    shown = {key: _published(one) for key, one in schema.items()}
    if schema.get("x-kubernetes-embedded-resource") is not True:
        return shown
    required = shown.get("required") or []
    return shown | {
        "properties": (shown.get("properties") or {}) | _common("ObjectMeta"),
        "required": [*required, *(key for key in ("kind", "apiVersion") if key not in required)],
    }


@cache
def _common(metadata: str) -> Json:
    """The fields of every object or list, described as the client library does it."""
    described = builtin.components([])[_SCALE]["properties"]
    own = {"description": _METADATA, **_reference(f"{_META}.{metadata}")}
    return {"apiVersion": described["apiVersion"], "kind": described["kind"], "metadata": own}


def _list(kind: Kind, component: str) -> Json:
    items = {"type": "array", "items": {"$ref": _pointer_to(component)}}
    return {
        "description": f"{kind.kind}List is a list of {kind.kind}.",
        "type": "object",
        "required": ["items"],
        "properties": _common("ListMeta") | {"items": items},
        "x-kubernetes-group-version-kind": [{**_gvk_of(kind), "kind": f"{kind.kind}List"}],
    }


def _reference(component: str) -> Json:
    return {"allOf": [{"$ref": _pointer_to(component)}]}


def _about(kinds: Iterable[Kind]) -> Json:
    return {"x-kubernetes-group-version-kind": [_gvk_of(kind) for kind in kinds]}


# -- paths --------------------------------------------------------------------------------------


def _component_of(kind: Kind) -> str:
    """``dev.codeflare.workload.v1beta2.AppWrapper``: a group is a domain, read from the end."""
    if not kind.is_custom:
        return builtin.component_name(kind)
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def _pointer_to(component: str) -> str:
    """A reference to one of the document's schemas."""
    return f"#/components/schemas/{component}"


def _gvk_of(kind: Kind) -> Json:
    """Group, version and kind, as extensions of OpenAPI name them."""
    return {"group": kind.group, "kind": kind.kind, "version": kind.version}


def _paths_of(kind: Kind) -> Iterator[tuple[str, Json]]:
    """The collection and the object of a kind, with what is said of creating and patching."""
    prefix = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    base = f"{prefix}{'/namespaces/{namespace}' if kind.namespaced else ''}/{kind.plural}"
    if "create" in kind.verbs:
        yield base, {"post": _operation(kind, "post", ())}
    if "patch" in kind.verbs:
        yield f"{base}/{{name}}", {"patch": _operation(kind, "patch", _PATCH_PARAMETERS)}


def _operation(kind: Kind, method: str, parameters: tuple[str, ...]) -> Json:
    return {
        "parameters": [
            {"name": name, "in": "query", "schema": {"type": "string"}} for name in parameters
        ],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": method,
        "x-kubernetes-group-version-kind": _gvk_of(kind),
    }
