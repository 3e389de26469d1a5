"""What a manifest says that it is: its kind and its namespace."""

from __future__ import annotations

from typing import Any

from mcad.api.labels import GROUP, KIND, VERSIONS
from mcad.api.wire import as_map, as_text
from mcad.client.errors import McadError
from mcad.client.manifests.documents import Document
from mcad.core.state.spelling import did_you_mean

Json = dict[str, Any]

OLD_GROUP = "mcad.ibm.com"


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


def placed(document: Document, namespace: str | None, own: str) -> Json:
    """The object with its namespace: ``namespace`` if given, else its own or ``own``."""
    metadata = as_map(document.content.get("metadata"))
    given = as_text(metadata.get("namespace"))
    if namespace and given and given != namespace:
        raise McadError(
            f"{document.origin}: is for namespace {given}, not {namespace}; omit one of them"
        )
    return {**document.content, "metadata": {**metadata, "namespace": namespace or given or own}}
