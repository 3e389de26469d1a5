"""OpenAPI v3: what ``kubectl explain`` shows, and what kubectl looks up before it validates.

Of the paths only that is described which clients read: which kind an operation is about, which
parameters a patch takes, which forms of patch there are. Version 2 is not served: kubectl needs it
only for servers without version 3.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Any

from mcad import __version__
from mcad.sim import builtin, failures, scale
from mcad.sim.discovery import KUBERNETES
from mcad.sim.kinds import Kind, KindTable

Json = dict[str, Any]

_ROOT = "openapi/v3"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_JSON = "application/json"
_MERGE_PATCH = "application/merge-patch+json"
_JSON_PATCH = "application/json-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_PATCH_PARAMETERS = (*_WRITE_PARAMETERS, "force")
_DELETE_PARAMETERS = (
    "dryRun",
    "gracePeriodSeconds",
    "orphanDependents",
    "propagationPolicy",
)
_LIST_PARAMETERS = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_TYPES = {
    "allowWatchBookmarks": "boolean",
    "force": "boolean",
    "gracePeriodSeconds": "integer",
    "limit": "integer",
    "orphanDependents": "boolean",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}
_METADATA = (
    "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/"
    "sig-architecture/api-conventions.md#metadata"
)
_SCALE = "io.k8s.api.autoscaling.v1.Scale"
_EVERY_KIND = ("apiVersion", "kind", "metadata")


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
    """``api/v1`` and ``apis/GROUP/VERSION``, in the order in which they are served."""
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
        "paths": dict(path for kind in members for path in _paths(kind)),
        "components": {"schemas": _schemas(members)},
    }


# -- schemas -----------------------------------------------------------------------------------


def _schemas(members: tuple[Kind, ...]) -> Json:
    found: Json = builtin.components([kind for kind in members if not kind.is_custom])
    _name_fields_v1(found)
    for kind in members:
        if kind.is_custom:
            found[_component(kind)] = _custom(kind)
        if "list" in kind.verbs and (component := _component(kind)):
            found[f"{component}List"] = _list(kind, component)
    return dict(sorted(found.items()))


def _name_fields_v1(found: Json) -> None:
    """The client library takes it for any object; it is a type with a name."""
    entry = found[f"{_META}.ManagedFieldsEntry"]
    fields = entry["properties"]["fieldsV1"] | _reference(f"{_META}.FieldsV1")
    properties = entry["properties"] | {"fieldsV1": fields}
    found[f"{_META}.ManagedFieldsEntry"] = entry | {"properties": properties}
    found[f"{_META}.FieldsV1"] = {"type": "object"}


def _component(kind: Kind) -> str:
    """``dev.codeflare.workload.v1beta2.AppWrapper``: a group is a domain, read from the end."""
    if not kind.is_custom:
        return builtin.component_name(kind)
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


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
    items = {"type": "array", "items": {"$ref": _pointer(component)}}
    return {
        "description": f"{kind.kind}List is a list of {kind.kind}.",
        "type": "object",
        "required": ["items"],
        "properties": _common("ListMeta") | {"items": items},
        "x-kubernetes-group-version-kind": [{**_gvk(kind), "kind": f"{kind.kind}List"}],
    }


def _reference(component: str) -> Json:
    return {"allOf": [{"$ref": _pointer(component)}]}


def _pointer(component: str) -> str:
    return f"#/components/schemas/{component}"


def _about(kinds: Iterable[Kind]) -> Json:
    return {"x-kubernetes-group-version-kind": [_gvk(kind) for kind in kinds]}


def _gvk(kind: Kind) -> Json:
    return {"group": kind.group, "kind": kind.kind, "version": kind.version}


# -- paths -------------------------------------------------------------------------------------


def _paths(kind: Kind) -> Iterator[tuple[str, Json]]:
    everywhere = kind.resource.path()
    base = _in_namespace(kind)
    collection = _operations(
        kind, (("get", "list"), ("post", "create"), ("delete", "deletecollection"))
    )
    if kind.namespaced:
        listing = {key: value for key, value in collection.items() if key == "get"}
        if listing:
            yield everywhere, listing
        collection |= {"parameters": [_path_parameter("namespace")]}
    yield base, collection
    one = _operations(
        kind, (("get", "get"), ("put", "update"), ("delete", "delete"), ("patch", "patch"))
    )
    parameters = [_path_parameter(name) for name in _placeholders(f"{base}/{{name}}")]
    if one:
        yield f"{base}/{{name}}", one | {"parameters": parameters}
    for subresource in kind.subresources:
        yield (
            f"{base}/{{name}}/{subresource}",
            _subresource(kind, subresource) | {"parameters": parameters},
        )


def _in_namespace(kind: Kind) -> str:
    prefix = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    return f"{prefix}{'/namespaces/{namespace}' if kind.namespaced else ''}/{kind.plural}"


def _placeholders(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]


def _operations(kind: Kind, wanted: Iterable[tuple[str, str]]) -> Json:
    return {method: _operation(kind, method, verb) for method, verb in wanted if verb in kind.verbs}


def _subresource(kind: Kind, name: str) -> Json:
    """Those that are about objects of the kind itself; of others only that they exist."""
    if name in ("binding", "eviction"):
        return {"post": {"responses": _responses("")}}
    methods = (("get", "get"), ("put", "update"), ("patch", "patch"))
    if name == "scale":
        return {method: _operation(scale.KIND, method, verb) for method, verb in methods}
    return {method: _operation(kind, method, verb) for method, verb in methods}


def _operation(kind: Kind, method: str, verb: str) -> Json:
    component = _component(kind)
    described: Json = {
        "responses": _responses(f"{component}List" if verb == "list" else component),
        "x-kubernetes-action": verb if verb in ("list", "deletecollection") else method,
        "x-kubernetes-group-version-kind": _gvk(kind),
    }
    names = {
        "list": _LIST_PARAMETERS,
        "patch": _PATCH_PARAMETERS,
        "delete": _DELETE_PARAMETERS,
        "deletecollection": (*_DELETE_PARAMETERS, *_LIST_PARAMETERS[1:-1]),
        "get": (),
    }.get(verb, _WRITE_PARAMETERS)
    if names:
        described["parameters"] = [_query_parameter(name) for name in names]
    if verb == "patch":
        described["requestBody"] = _patch_body(kind)
    elif method in ("post", "put"):
        described["requestBody"] = _body((_JSON,), component)
    return described


def _patch_body(kind: Kind) -> Json:
    forms = (
        (_JSON_PATCH, _MERGE_PATCH) if kind.is_custom else (_JSON_PATCH, _MERGE_PATCH, _STRATEGIC)
    )
    return _body(forms, "")


def _body(forms: Iterable[str], component: str) -> Json:
    schema = {"$ref": _pointer(component)} if component else {"type": "object"}
    return {"content": {form: {"schema": schema} for form in forms}, "required": True}


def _responses(component: str) -> Json:
    schema = {"$ref": _pointer(component)} if component else {"type": "object"}
    return {"200": {"description": "OK", "content": {_JSON: {"schema": schema}}}}


def _query_parameter(name: str) -> Json:
    schema = {"type": _TYPES.get(name, "string"), "uniqueItems": True}
    return {"name": name, "in": "query", "schema": schema}


def _path_parameter(name: str) -> Json:
    schema = {"type": "string", "uniqueItems": True}
    return {"name": name, "in": "path", "required": True, "schema": schema}
