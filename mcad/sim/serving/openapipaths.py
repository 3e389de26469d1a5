"""The operations of OpenAPI documents that kubectl reads, and what their parts are called.

``explain`` looks for the kind that is created at a path; before it sends anything kubectl looks
whether a patch takes ``fieldValidation`` and ``dryRun``. Clients do not read the other operations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcad.sim.kinds import Kind
from mcad.sim.objects import builtin

Json = dict[str, Any]

JSON = "application/json"
_PATCH_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force")


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
        "x-kubernetes-group-version-kind": gvk_of(kind),
    }
