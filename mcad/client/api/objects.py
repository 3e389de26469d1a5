"""What a caller of the Python client may pass as objects, as manifests with their origin."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from mcad.client.errors import McadError
from mcad.client.manifests.documents import Document, read_documents
from mcad.kube.models import model_json

Json = dict[str, Any]

Objects = Any
"""A manifest (a dict), a model of ``kubernetes``, the path of a file, or several of these."""


def documents_of(objects: Objects) -> list[Document]:
    """The manifests, in their order; raises ``McadError`` for what is none."""
    if isinstance(objects, str | os.PathLike):
        return read_documents(os.fspath(objects))
    if _is_one(objects):
        return [_document(objects, "objects")]
    found: list[Document] = []
    for number, one in enumerate(objects):
        if isinstance(one, str | os.PathLike):
            found += read_documents(os.fspath(one))
        else:
            found.append(_document(one, f"objects[{number}]"))
    if not found:
        raise McadError("objects: is empty; pass a manifest, a model or the path of a file")
    return found


def _is_one(objects: Objects) -> bool:
    """Whether it is one object; models of ``kubernetes`` can be iterated over, too."""
    return not isinstance(objects, list | tuple | Iterator)


def _document(value: object, origin: str) -> Document:
    content = value if isinstance(value, Mapping) else model_json(value)
    if not isinstance(content, Mapping):
        raise McadError(
            f"{origin}: is {type(value).__name__}; pass a manifest as a dict, a model of"
            " kubernetes, or the path of a file"
        )
    try:
        return Document(origin, json.loads(json.dumps(content, allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as error:
        raise McadError(f"{origin}: cannot be sent as JSON: {error}") from None
