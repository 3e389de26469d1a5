"""Checks of manifests before anything is sent: what the dispatcher will read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from mcad.api.appwrapper import Parsed, parse
from mcad.api.catalog import Catalog
from mcad.client.errors import warn
from mcad.client.manifests.declared import placed
from mcad.client.manifests.documents import Document
from mcad.core.state.waiting_reason import WaitingReason

Json = dict[str, Any]


class Prepared(Struct, frozen=True):
    """One AppWrapper to send, its place in a file, and its parsed form."""

    origin: str
    obj: Json
    parsed: Parsed


def prepare(
    documents: Sequence[Document], namespace: str | None, own: str, catalog: Catalog
) -> tuple[list[Prepared], list[str]]:
    """The objects to send, with namespaces, and all faults of the manifests."""
    prepared: list[Prepared] = []
    faults: list[str] = []
    for document in documents:
        obj = placed(document, namespace, own)
        parsed = _parse(obj, catalog)
        prepared.append(Prepared(document.origin, obj, parsed))
        faults += _faults(document, parsed)
    return prepared, faults


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
