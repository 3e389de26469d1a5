"""Checks of manifests before anything is sent: their kind, and what the dispatcher will read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from mcad.api.appwrapper import Parsed, parse
from mcad.api.catalog import Catalog
from mcad.api.labels import GROUP, KIND, VERSIONS
from mcad.api.wire import as_map, as_text
from mcad.client.errors import McadError, warn
from mcad.client.manifests.documents import Document
from mcad.core.state.spelling import did_you_mean
from mcad.core.state.waiting_reason import WaitingReason

Json = dict[str, Any]

OLD_GROUP = "mcad.ibm.com"


class Prepared(Struct, frozen=True):
    """One AppWrapper to send, its place in a file, and its parsed form."""

    origin: str
    obj: Json
    parsed: Parsed


def check_kind(document: Document) -> None:
    """Raise ``McadError`` unless it is an AppWrapper of a known group and version."""
    content = document.content
    version, kind = as_text(content.get("apiVersion")), as_text(content.get("kind"))
    if kind != KIND:
        raise McadError(f"{document.origin}: {_another_kind(kind)}")
    if version == f"{OLD_GROUP}/v1beta1":
        raise McadError(
            f"{document.origin}: apiVersion {version} is that of MCAD before v1.33; "
            f"write {GROUP}/v1beta1, the spec may stay as it is"
        )
    if version not in [f"{GROUP}/{one}" for one in VERSIONS]:
        known = " or ".join(f"{GROUP}/{one}" for one in VERSIONS)
        raise McadError(f"{document.origin}: apiVersion {version or 'is missing'}: write {known}")


def _another_kind(kind: str) -> str:
    if not kind:
        return f"kind is missing; write {KIND}"
    if hint := did_you_mean(kind, [KIND]):
        return f"kind {kind} does not exist. {hint}"
    return (
        f"kind is {kind}, not {KIND}; put it into spec.components[].template of one, or create it "
        "with kubectl"
    )


def prepare(
    documents: Sequence[Document], namespace: str | None, own: str, catalog: Catalog
) -> tuple[list[Prepared], list[str]]:
    """The objects to send, with namespaces, and all faults of the manifests."""
    prepared: list[Prepared] = []
    faults: list[str] = []
    for document in documents:
        obj = _with_namespace(document, namespace, own)
        parsed = _parse(obj, catalog)
        prepared.append(Prepared(document.origin, obj, parsed))
        faults += _faults(document, parsed)
    return prepared, faults


def _with_namespace(document: Document, namespace: str | None, own: str) -> Json:
    metadata = as_map(document.content.get("metadata"))
    given = as_text(metadata.get("namespace"))
    if namespace and given and given != namespace:
        raise McadError(
            f"{document.origin}: is for namespace {given}, not {namespace}; omit one of them"
        )
    return {**document.content, "metadata": {**metadata, "namespace": namespace or given or own}}


def _parse(obj: Json, catalog: Catalog) -> Parsed:
    """Parse like the dispatcher; a generated name gets a suffix like that of the server."""
    metadata = obj["metadata"]
    prefix = metadata.get("generateName")
    name = metadata.get("name") or (f"{prefix}xxxxx" if prefix else None)
    return parse({**obj, "metadata": {**metadata, "name": name}}, catalog)


def _faults(document: Document, parsed: Parsed) -> list[str]:
    """What is wrong; what may still work is only a warning."""
    for text in parsed.workload.warnings:
        warn(f"{document.origin}: {text}")
    faults = []
    for problem in parsed.problems:
        if problem.kind is WaitingReason.INVALID:
            faults.append(f"{document.origin}: {problem}")
        else:
            warn(f"{document.origin}: {problem}")
    return faults
