"""The operations of OpenAPI documents, and what their parts are called.

Only that is described which clients read: which kind an operation is about, which parameters a
patch takes, which forms of patch there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mcad.sim.kinds import Kind
from mcad.sim.objects import builtin
from mcad.sim.serving import scale

Json = dict[str, Any]

JSON = "application/json"
_MERGE_PATCH = "application/merge-patch+json"
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


def component_of(kind: Kind) -> str:
    """``dev.codeflare.workload.v1beta2.AppWrapper``: a group is a domain, read from the end."""
    if not kind.is_custom:
        return builtin.component_name(kind)
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def pointer_to(component: str) -> str:
    """A reference to one of the document's schemas."""
    return f"#/components/schemas/{component}"


def gvk_of(kind: Kind) -> Json:
    """Group, version and kind, as extensions of OpenAPI name them."""
    return {"group": kind.group, "kind": kind.kind, "version": kind.version}


def paths_of(kind: Kind) -> Iterator[tuple[str, Json]]:
    """Every path of a kind with its operations."""
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
    if name == "binding":
        return {"post": {"responses": _responses("")}}
    methods = (("get", "get"), ("put", "update"), ("patch", "patch"))
    if name == "scale":
        return {method: _operation(scale.KIND, method, verb) for method, verb in methods}
    return {method: _operation(kind, method, verb) for method, verb in methods}


def _operation(kind: Kind, method: str, verb: str) -> Json:
    component = component_of(kind)
    described: Json = {
        "responses": _responses(f"{component}List" if verb == "list" else component),
        "x-kubernetes-action": verb if verb in ("list", "deletecollection") else method,
        "x-kubernetes-group-version-kind": gvk_of(kind),
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
        described["requestBody"] = _body((JSON,), component)
    return described


def _patch_body(kind: Kind) -> Json:
    forms = (_MERGE_PATCH,) if kind.is_custom else (_MERGE_PATCH, _STRATEGIC)
    return _body(forms, "")


def _body(forms: Iterable[str], component: str) -> Json:
    schema = {"$ref": pointer_to(component)} if component else {"type": "object"}
    return {"content": {form: {"schema": schema} for form in forms}, "required": True}


def _responses(component: str) -> Json:
    schema = {"$ref": pointer_to(component)} if component else {"type": "object"}
    return {"200": {"description": "OK", "content": {JSON: {"schema": schema}}}}


def _query_parameter(name: str) -> Json:
    schema = {"type": _TYPES.get(name, "string"), "uniqueItems": True}
    return {"name": name, "in": "query", "schema": schema}


def _path_parameter(name: str) -> Json:
    schema = {"type": "string", "uniqueItems": True}
    return {"name": name, "in": "path", "required": True, "schema": schema}
